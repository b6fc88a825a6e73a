"""The loop behind the prompt: read, run, show, and never fall over.

Where lines come from is the reader's business, so it runs in a terminal and in a test alike.
"""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Protocol

from engine import modes, printing, registry
from tensorcli import commands, observing, reference, results
from tensorcli.diagnostics import Diagnostic
from tensorcli.environment import Environment
from tensorcli.exit_status import ExitStatus
from tensorcli.render import listing
from tensorcli.render.output import Output, OutputFailed
from tensorcli.repl.completeness import assigned_names, without_prompts
from tensorcli.settings import Settings

if TYPE_CHECKING:
    from tensorcli.session import Session

MOST_NAMES = 8
"""Lines shown for one input's assignments."""


class Reader(Protocol):
    """Where the text comes from."""

    def read(self) -> str:
        """One complete input; EOFError at the end, KeyboardInterrupt when it was called off."""


class Loop:
    """A session in conversation with somebody."""

    def __init__(
        self, session: Session, environment: Environment, settings: Settings, reader: Reader
    ) -> None:
        self._session = session
        self._environment = environment
        self._settings = settings
        self._output = Output(environment, settings)
        session.explains = self._output.is_rich(environment.stdout)
        self._reader = reader

    def run(self) -> int:
        """Until the end of input or `:quit`; what goes wrong on the way is shown, not raised."""
        while True:
            try:
                text = self._reader.read()
                if not self._take(text):
                    return ExitStatus.OK
            except KeyboardInterrupt:
                continue
            except EOFError:
                return ExitStatus.OK
            except OutputFailed as failure:
                return ExitStatus.OK if failure.closed else ExitStatus.FILE
            except Exception as fault:
                self._report(fault)

    def _take(self, text: str) -> bool:
        """Deal with one input; False to leave."""
        if commands.is_command(text):
            return self._carry_out(commands.perform(self._session, text))
        self._evaluate(without_prompts(text))
        return True

    def _evaluate(self, text: str) -> None:
        if not text.strip():
            return
        values: list[object] = []

        def emit(result: results.Result) -> None:
            if isinstance(result, results.TensorResult | results.ValueResult):
                values[:] = [result.value]
            self._output.emit(result)

        status = self._session.run(text, emit, interactive=True)
        if status == ExitStatus.OK:
            self._show_assigned(text)
        self._remember(values)
        self._output.flush()

    def _remember(self, values: list[object]) -> None:
        """Bind `_` to the latest value, as Python's prompt does.

        It stays the last of the names, so that explanations call a value by its own name first.
        """
        names = self._session.names
        if values or "_" in names:
            names["_"] = [names.pop("_", None), *values][-1]

    def _show_assigned(self, text: str) -> None:
        known = self._session.names
        for name in [name for name in assigned_names(text) if name in known][:MOST_NAMES]:
            self._write([listing.binding(name, known[name], known, self._environment.width())])

    def _carry_out(self, outcome: commands.Outcome) -> bool:
        width = self._environment.width()
        match outcome:
            case commands.Leave():
                return False
            case commands.Evaluate(text):
                self._evaluate(text)
            case commands.Page(entry):
                with observing.watching(entry) as watch:
                    example = self._example(entry)
                entry = reference.observed(entry, watch.seen)
                self._write(listing.page(entry, width, example))
            case commands.Table():
                self._write(listing.table(outcome, width))
            case commands.Note(text):
                self._write([[(text, "dim")]])
            case commands.Mistake(text):
                self._output.emit(results.ErrorResult(Diagnostic("command", "", text)))
        self._output.flush()
        return True

    def _example(self, entry: reference.Entry) -> list[str]:
        """What the example prints, run in this session and leaving no trace in it."""
        session = self._session
        if not entry.example:
            return []
        names, random = dict(session.names), registry.functions["get_rng_state"]()
        state, options = modes.state.snapshot(), printing.get_options()
        settings = Settings(format="plain")
        stream = StringIO()
        quiet = Environment(stdin=stream, stdout=stream, stderr=stream, variables={}, width=80)
        try:
            session.run(entry.example, Output(quiet, settings).emit, interactive=True)
        finally:
            session.names.clear()
            session.names.update(names)
            modes.state.restore(state)
            printing.set_printoptions(**options)
            registry.functions["set_rng_state"](random)
        return stream.getvalue().splitlines()

    def _write(self, lines: list[listing.Line]) -> None:
        stdout = self._environment.stdout
        colour = self._output.is_rich(stdout) and self._environment.colour(
            stdout, self._settings.color
        )
        stdout.write(listing.painted(lines, colour))

    def _report(self, fault: Exception) -> None:
        """The last ring: a fault of ours costs one input, not the session."""
        if self._environment.variables.get("TENSORCLI_DEBUG"):
            import traceback

            traceback.print_exc(file=self._environment.stderr)
        message = f"internal fault: {type(fault).__name__}: {fault}"
        self._output.emit(results.ErrorResult(Diagnostic("internal", "InternalError", message)))
