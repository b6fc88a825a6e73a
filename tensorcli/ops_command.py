"""What `tensorcli ops` does: list the operations, or show the page of one with its example run."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from tensorcli import commands, reference
from tensorcli.environment import Environment
from tensorcli.execution import report, usage_diagnostic
from tensorcli.exit_status import ExitStatus
from tensorcli.render import listing
from tensorcli.render.output import Output
from tensorcli.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable


def show(words: tuple[str, ...], environment: Environment, settings: Settings) -> int:
    """One word that names an operation gives its page, anything else a list; the exit status."""
    if len(words) == 1 and (entry := reference.find(words[0])) is not None:
        return _write_page(entry, environment, settings)
    found = reference.search(words[0] if words else "")
    for word in words[1:]:
        also = reference.search(word)
        found = [entry for entry in found if entry in also]
    if not found:
        near = [name for word in words for name in reference.near(word)]
        hint = f" Near it: {', '.join(near)}." if near else ""
        message = f"No operation is called or speaks of '{' '.join(words)}'.{hint}"
        return report(usage_diagnostic(message), ExitStatus.USAGE, settings, environment)
    _write_list(found, environment, settings)
    return ExitStatus.OK


def _write_page(entry: reference.Entry, environment: Environment, settings: Settings) -> int:
    if settings.format == "json":
        _write_records([entry], environment)
        return ExitStatus.OK
    _write(listing.page(entry, environment.width(), example_text(entry)), environment, settings)
    return ExitStatus.OK


def _write_list(found: list[reference.Entry], environment: Environment, settings: Settings) -> None:
    if settings.format == "json":
        _write_records(found, environment)
        return
    rows = tuple((entry.name, entry.summary) for entry in found)
    table = commands.Table(("operation", "what it does"), rows)
    _write(listing.table(table, environment.width()), environment, settings)


def _write(lines: list[listing.Line], environment: Environment, settings: Settings) -> None:
    stdout = environment.stdout
    rich = Output(environment, settings).is_rich(stdout)
    stdout.write(listing.painted(lines, rich and environment.colour(stdout, settings.color)))


def _write_records(found: Iterable[reference.Entry], environment: Environment) -> None:
    import json
    from dataclasses import asdict

    for entry in found:
        record = {"schema": 1, "kind": "operation", **asdict(entry)}
        environment.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")


def example_text(entry: reference.Entry) -> list[str]:
    """What the entry's example prints, run in a session of its own."""
    from tensorcli.session import Session

    stream = StringIO()
    quiet = Environment(stdin=StringIO(), stdout=stream, stderr=stream, variables={}, width=80)
    settings = Settings(format="plain", seed=0, time_limit=5.0)
    if entry.example:
        Session(quiet, settings).run(entry.example, Output(quiet, settings).emit)
    return stream.getvalue().splitlines()
