"""What `tensorcli ops` does: list the operations, or show the page of one with its example run."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from tensorcli import commands, observing, reference
from tensorcli.environment import Environment
from tensorcli.execution import report, usage_diagnostic
from tensorcli.exit_status import ExitStatus
from tensorcli.render import listing
from tensorcli.render.output import Output
from tensorcli.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable


def show(word: str | None, environment: Environment, settings: Settings) -> int:
    """The page of the operation of that name, or those that speak of the word; the exit status."""
    entry = None if word is None else reference.find(word)
    found = reference.search(word or "") if entry is None else [entry]
    if not found:
        near = reference.near(word or "")
        hint = f" Near it: {', '.join(near)}." if near else ""
        message = f"No operation is called or speaks of '{word}'.{hint}"
        return report(usage_diagnostic(message), ExitStatus.USAGE, settings, environment)
    if settings.format == "json":
        _write_records(found, environment)
    elif entry is not None:
        with observing.watching(entry) as watch:
            example = example_text(entry)
        page = listing.page(reference.observed(entry, watch.seen), environment.width(), example)
        _write(page, environment, settings)
    else:
        rows = tuple((entry.name, str(entry.tier), entry.summary) for entry in found)
        table = commands.Table(("operation", "tier", "what it does"), rows)
        _write(listing.table(table, environment.width()), environment, settings)
    return ExitStatus.OK


def _write(lines: list[listing.Line], environment: Environment, settings: Settings) -> None:
    stdout = environment.stdout
    rich = Output(environment, settings).is_rich(stdout)
    stdout.write(listing.painted(lines, rich and environment.colour(stdout, settings.color)))


def _write_records(found: Iterable[reference.Entry], environment: Environment) -> None:
    import json
    from dataclasses import asdict

    for entry in map(observed, found):
        record = {"schema": 1, "kind": "operation", "tier": entry.tier, **asdict(entry)}
        environment.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")


def observed(entry: reference.Entry) -> reference.Entry:
    """The entry, its example run where only that tells what it does."""
    if not entry.composed:
        return entry
    with observing.watching(entry) as watch:
        example_text(entry)
    return reference.observed(entry, watch.seen)


def example_text(entry: reference.Entry) -> list[str]:
    """What the entry's example prints, run in a session of its own."""
    from tensorcli.session import Session

    stream = StringIO()
    quiet = Environment(stdin=StringIO(), stdout=stream, stderr=stream, variables={}, width=80)
    settings = Settings(format="plain", show="all", seed=0, time_limit=5.0)
    if entry.example:
        Session(quiet, settings).run(entry.example, Output(quiet, settings).emit)
    return stream.getvalue().splitlines()
