"""Who listens to the program that is running: values and prints go there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable

    from tensorcli.diagnostics import Span
    from tensorcli.language.source import Source


class Emitted:
    """The expression statement that a value came from."""

    __slots__ = ("in_loop", "is_last", "node", "source")

    def __init__(self, source: Source, node: ast.Expr, in_loop: bool, is_last: bool) -> None:
        self.source = source
        self.node = node
        self.in_loop = in_loop
        self.is_last = is_last

    @property
    def line(self) -> int:
        return self.node.lineno

    @property
    def span(self) -> Span:
        return self.source.span(self.node)

    @property
    def called_name(self) -> str:
        """The last part of the name that the statement calls: `add_` for `x.y.add_(1)`."""
        call = self.node.value
        function = getattr(call, "func", None)
        name = getattr(function, "attr", None) or getattr(function, "id", None)
        return name if isinstance(name, str) else ""

    @property
    def is_inplace_call(self) -> bool:
        name = self.called_name
        return name.endswith("_") and not name.endswith("__")

    @property
    def is_manual_seed(self) -> bool:
        return self.called_name == "manual_seed"

    @property
    def is_quiet(self) -> bool:
        """Whether people's renderings leave the value out by default."""
        return self.in_loop or self.is_inplace_call or self.is_manual_seed


class Listener(Protocol):
    """What a program's results are told to."""

    def value(self, value: object, statement: Emitted) -> None:
        """An expression statement outside a function has a value other than None.

        Calls of backward are told too, with the None that they answer.
        """

    def hears(self, statement: Emitted) -> bool:
        """Whether anybody gets to know the values of that statement."""

    def print(self, text: str, line: int) -> None:
        """The program printed `text`, its end included, while `line` was running."""


class Silence:
    """A listener for reruns: nothing is heard."""

    __slots__ = ()

    def value(self, value: object, statement: Emitted) -> None:
        pass

    def hears(self, statement: Emitted) -> bool:
        return False

    def print(self, text: str, line: int) -> None:
        pass


class Running:
    """The state of the evaluation that is running; `handling` are the exceptions being handled.

    `replay` gives whatever can run the program once more, for the explanations that must. `files`
    says whether programs may read and write files; while `is_dry`, an expression is evaluated
    without data, and whatever it does must leave no trace.
    """

    __slots__ = ("files", "handling", "is_dry", "listener", "replay")

    def __init__(self) -> None:
        self.listener: Listener = Silence()
        self.handling: list[BaseException] = []
        self.replay: Callable[[], Any] | None = None
        self.files = False
        self.is_dry = False


now = Running()
