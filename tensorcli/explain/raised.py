"""From an exception to a diagnostic: its public type, its place, what its operands were."""

from __future__ import annotations

import builtins

from engine import modes
from engine.errors import EngineError, public_type
from tensorcli.diagnostics import Diagnostic, Span
from tensorcli.explain import mismatch
from tensorcli.language import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorcli.explain.replay import Replay

NO_NAMES: Mapping[str, object] = {}

# The kind of mistake, for programs that read errors; the engine's errors bring their own.
CODES: dict[type[BaseException], str] = {
    NameError: "name",
    AttributeError: "attribute",
    ImportError: "import",
    AssertionError: "assertion",
    ZeroDivisionError: "zero-division",
    OverflowError: "overflow",
    IndexError: "index",
    KeyError: "key",
    TypeError: "type",
    ValueError: "value",
    NotImplementedError: "not-implemented",
    OSError: "file",
    RuntimeError: "runtime",
}

_PUBLIC = {
    kind
    for kind in vars(builtins).values()
    if isinstance(kind, type) and issubclass(kind, Exception)
}


def diagnostic_of(
    exc: Exception,
    since: int = 0,
    names: Mapping[str, object] = NO_NAMES,
    replay: Replay | None = None,
) -> Diagnostic:
    """What an exception of the program says, with what the operands have to do with it.

    Graph nodes whose sequence number is above `since` were recorded by this text, so that
    their lines are lines of it; those of earlier inputs at a prompt are not. `names` are the
    program's variables; `replay` can run the program once more.
    """
    where = errors.where(exc)
    notes = [str(hint) for hint in errors.hints(exc)]
    diagnostic = Diagnostic(
        code_of(exc),
        type_of(exc),
        str(exc),
        None if where is None else where.span,
        notes=[note for note in notes if note],
    )
    if where is None:
        return diagnostic
    try:
        return mismatch.with_reasons(diagnostic, exc, where, since, names, replay)
    except Exception:  # a reason that cannot be given must not hide the error itself
        if modes.state.check:
            raise
        return diagnostic


def type_of(exc: BaseException) -> str:
    """The class as PyTorch or Python would show it: never one of numpy's or ours."""
    if isinstance(exc, EngineError):
        return public_type(exc)
    for kind in type(exc).__mro__:
        if kind in _PUBLIC:
            return kind.__name__
    return type(exc).__name__


def code_of(exc: BaseException) -> str:
    if isinstance(exc, EngineError) and exc.code != "error":
        return exc.code
    return next((code for kind, code in CODES.items() if isinstance(exc, kind)), "error")


def limit_diagnostic(kind: str, message: str, place: Span | None) -> Diagnostic:
    return Diagnostic(f"limit-{kind}", "LimitError", message, place)
