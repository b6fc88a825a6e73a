"""A session: names, modes and the way from a text to results; it prints nothing."""

from __future__ import annotations

import ast

import numpy as np

from engine import modes, printing, storage
from engine.registry import functions
from engine.tensor import Tensor
from tensorcli import results
from tensorcli.diagnostics import Diagnostic, Span, line_span
from tensorcli.exit_status import ExitStatus
from tensorcli.explain import forms as _forms  # noqa: F401 - registers the explanations
from tensorcli.explain.advice import Adviser
from tensorcli.explain.replay import Replay
from tensorcli.language import limits
from tensorcli.language.errors import Refused, attach
from tensorcli.language.program import compile_program
from tensorcli.language.running import now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorcli.environment import Environment
    from tensorcli.language.running import Emitted
    from tensorcli.settings import Settings

    Emit = Callable[[results.Result], None]


class InternalFault(BaseException):
    """A mistake of ours while a result was told; no exception of the language."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


# Lines above which a text is taken for a machine's: watching it costs a third of its time.
_LONG = 10_000


class Session:
    """One person's names and modes. Making one puts the engine back to its first state.

    `explains`: results that nobody asked for (the gradient table after backward, what a cast lost)
    are worked out too; they are for terminals.
    """

    __slots__ = ("environment", "explains", "names", "seed", "settings", "texts")

    def __init__(self, environment: Environment, settings: Settings) -> None:
        self.environment = environment
        self.settings = settings
        self.explains = False
        self.names: dict[str, object] = {}
        # What ran so far, for explanations that must run it once more.
        self.texts: list[str] = []
        self.reset()

    def reset(self) -> None:
        """No names, default modes and print options, the generator seeded afresh."""
        self.names.clear()
        self.texts.clear()
        modes.state.reset()
        printing.reset_options()
        self.seed = reseed(self.settings.seed)

    def run(
        self,
        text: str,
        emit: Emit,
        *,
        file: str | None = None,
        interactive: bool = False,
        shows_last: bool = False,
    ) -> int:
        """Run a text, telling each result to `emit` as it happens; returns the exit status.

        Of an interactive text every value is shown; `shows_last` shows at least the last one's.

        Whatever the program does ends in a result. What passes through are the exceptions of
        `emit` itself, if they are no ordinary ones (a stream that cannot be written).
        """
        listener = Listener(self, emit, interactive, shows_last)
        limits.use(self._limits())
        storage.ask_before(limits.charge_bytes)
        now.files = self.settings.files
        modes.state.site = None
        outer_warn, modes.state.warn = modes.state.warn, listener.warn
        try:
            with np.errstate(all="ignore"):
                return self._run(text, file, listener)
        except limits.LimitReached as limit:
            from tensorcli.explain.raised import limit_diagnostic

            diagnostic = limit_diagnostic(limit.kind, limit.message, place_running(text))
            return _ended(emit, diagnostic, text, ExitStatus.LIMIT)
        except KeyboardInterrupt:
            return _ended(emit, interrupt_diagnostic(text), text, ExitStatus.INTERRUPTED)
        finally:
            modes.state.warn = outer_warn

    def _run(self, text: str, file: str | None, listener: Listener) -> int:
        """The ring around statements: errors of the program, and faults of ours."""
        program = None
        since = modes.state.sequence
        replay = Replay(self.texts, text, self.seed)
        now.replay = lambda: replay
        try:
            program = compile_program(text, file, advice=self._advice(text, listener))
            program.run(self.names, listener)
            self.texts.append(text)
            if self.settings.trace_nan:
                _trace_nan(listener, replay)
        except Refused as refused:
            return _ended(listener.emit, refused.diagnostic, text, ExitStatus.INVALID)
        except InternalFault as fault:
            self._show_traceback()
            return _ended(
                listener.emit, fault_diagnostic(fault.cause, text), text, ExitStatus.ERROR
            )
        except Exception as exc:
            self._show_traceback()
            if self.settings.trace_nan and program is not None:
                _trace_nan(listener, replay)
            status, diagnostic = _judged(
                exc, text, since, self.names, replay, started=program is not None
            )
            self.texts.append(text)
            return _ended(listener.emit, diagnostic, text, status)
        return ExitStatus.OK

    def _advice(self, text: str, listener: Listener) -> Adviser | None:
        """An eye for silent surprises, where hints are wanted and the text is a person's."""
        if self.settings.hints == "off" or text.count("\n") > _LONG:
            return None
        return Adviser(listener.hint, self.names, listener.interactive)

    def _limits(self) -> limits.Limits:
        settings = self.settings
        return limits.Limits(
            time=settings.time_limit,
            memory=settings.memory_limit,
            steps=settings.step_limit,
            output=settings.output_limit,
        )

    def _show_traceback(self) -> None:
        if self.environment.variables.get("TENSORCLI_DEBUG"):
            import traceback

            traceback.print_exc(file=self.environment.stderr)


class Listener:
    """Turns what the program tells into results, and decides which of them people are shown."""

    __slots__ = ("interactive", "_session", "_shows_last", "emit")

    def __init__(self, session: Session, emit: Emit, interactive: bool, shows_last: bool) -> None:
        self._session = session
        self.interactive = interactive
        self._shows_last = shows_last
        self.emit = emit

    def value(self, value: object, statement: Emitted) -> None:
        try:
            self._value(value, statement)
        except Exception as exc:
            if isinstance(exc, ValueError) and "integer string conversion" in str(exc):
                # More digits than Python is willing to write: the program's mistake.
                attach(exc, statement.source, statement.node.value)
                raise
            raise InternalFault(exc) from exc

    def _value(self, value: object, statement: Emitted) -> None:
        line = statement.line
        shown = self._is_shown(statement)
        if isinstance(value, Tensor):
            names = self._session.names
            self.emit(results.TensorResult(value, line, shown, names))
            if shown and self._session.explains:
                self._show_loss(value, statement)
        elif value is None and isinstance(statement.node.value, ast.Attribute):
            if shown and self._session.explains:
                self._show_absence(statement)
        elif value is None:
            self._show_gradients(line, statement)
        elif isinstance(value, results.Result):
            value.line = line
            value.shown = shown
            self.emit(value)
        else:
            self.emit(results.ValueResult(value, line, shown))

    def _show_loss(self, value: Tensor, statement: Emitted) -> None:
        """Under a value: what its cast or its low precision lost."""
        if not value.dtype.is_floating_point:
            return
        from tensorcli.explain import loss

        node = statement.node.value
        found = loss.line_under(value, node, self._session.names, statement.line)
        if found is not None:
            self.emit(found)

    def _show_gradients(self, line: int, statement: Emitted) -> None:
        """After `loss.backward()`: the leaves as they are now, for whoever sits at a terminal."""
        if statement.in_loop or not self._session.explains:
            return
        from tensorcli.explain import gradients

        self.emit(gradients.explain(self._session.names, line, asked=False))

    def _show_absence(self, statement: Emitted) -> None:
        """In place of a .grad that is None: why it is."""
        node = statement.node.value
        assert isinstance(node, ast.Attribute)
        owner = self._session.names.get(getattr(node.value, "id", ""))
        if isinstance(owner, Tensor):
            from tensorcli.explain import absent
            from tensorcli.findings import AbsentGradient

            text = statement.source.segment(node.value)
            reason = absent.reason(text, owner, self._session.names)
            self.emit(AbsentGradient(statement.line, f"{text}.grad", reason))

    def hears(self, statement: Emitted) -> bool:
        return self._session.settings.format == "json" or self._is_shown(statement)

    def print(self, text: str, line: int) -> None:
        try:
            self.emit(results.PrintResult(text, line))
        except Exception as exc:
            raise InternalFault(exc) from exc

    def hint(self, hint: Diagnostic) -> None:
        try:
            self.emit(results.HintResult(hint))
        except Exception as exc:
            raise InternalFault(exc) from exc

    def warn(self, message: str, category: str) -> None:
        try:
            self.emit(results.WarningResult(message, line_running()))
        except Exception as exc:
            raise InternalFault(exc) from exc

    def _is_shown(self, statement: Emitted) -> bool:
        show = self._session.settings.show
        if show is not None:
            return show == "all" or (show == "last" and statement.is_last)
        if self.interactive or not statement.is_quiet:
            return True
        return self._shows_last and statement.is_last


def _trace_nan(listener: Listener, replay: Replay) -> None:
    """Run the program once more to see where its first NaN or infinity was born."""
    from tensorcli.explain import provenance

    found = provenance.explain_run(replay)
    if found is not None:
        listener.emit(found)


def reseed(seed: int | None) -> int:
    """The generator as PyTorch's at the start: from the system's entropy unless a seed is given.

    The answer is the seed in use, with which a rerun meets the same numbers.
    """
    if seed is None:
        return int(functions["seed"]())
    functions["manual_seed"](seed)
    return seed


def line_running() -> int | None:
    """The line of the statement that is running, as far as anybody noted it."""
    site = modes.state.site
    return site if isinstance(site, int) else None


def place_running(text: str) -> Span | None:
    """The whole line that is running: limits and interrupts have no narrower place."""
    line = line_running()
    return None if line is None else line_span(text, line)


def time_limit_diagnostic(seconds: float | None, text: str) -> Diagnostic:
    """A computation did not come back in time, so that nothing but its line is known."""
    from tensorcli.explain.raised import limit_diagnostic

    return limit_diagnostic("time", f"ran longer than {seconds:g} s", place_running(text))


def interrupt_diagnostic(text: str) -> Diagnostic:
    """Somebody pressed ^C."""
    place = place_running(text)
    return Diagnostic("interrupted", "KeyboardInterrupt", "interrupted", place)


def fault_diagnostic(fault: Exception, text: str) -> Diagnostic:
    """What is said of a mistake of ours: one sentence, and the line that brought it to light."""
    what = f"internal fault: {type(fault).__name__}: {fault}"
    return Diagnostic("internal", "InternalError", what, place_running(text))


def _judged(
    exc: Exception,
    text: str,
    since: int,
    names: dict[str, object],
    replay: Replay,
    *,
    started: bool,
) -> tuple[ExitStatus, Diagnostic]:
    """The exit status and the diagnostic of an exception that ended a program."""
    from tensorcli.explain import raised

    if isinstance(exc, MemoryError):
        place = place_running(text)
        return ExitStatus.LIMIT, raised.limit_diagnostic("memory", "out of memory", place)
    diagnostic = raised.diagnostic_of(exc, since, names, replay)
    if not started or diagnostic.span is None:
        # No node of the program noted it: it did not come from the program.
        return ExitStatus.ERROR, fault_diagnostic(exc, text)
    failed_check = type(exc) is AssertionError
    return (ExitStatus.ASSERTION if failed_check else ExitStatus.ERROR), diagnostic


def _ended(emit: Emit, diagnostic: Diagnostic, text: str | None, status: ExitStatus) -> ExitStatus:
    emit(results.ErrorResult(diagnostic, text))
    return status
