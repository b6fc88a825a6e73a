"""An argument of an explanation evaluated in a rerun of the program, up to where it stands."""

from __future__ import annotations

from tensorcli.explain.replay import Enough, Watcher
from tensorcli.language.forms import visible_names
from tensorcli.language.running import now

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    from typing import Any

    from tensorcli.explain.replay import Outcome, Replay
    from tensorcli.language.compiling import Frame, Value
    from tensorcli.language.forms import Argument
    from tensorcli.language.source import Source

RERUNS = 40
"""How often one explanation may run the program again."""


def replay() -> Replay | None:
    """What can run the program again; None inside such a run."""
    return None if now.replay is None else now.replay()


def place_of(node: ast.AST) -> tuple[Any, ...]:
    """A node's place in its text, the same for every compilation of it."""
    names = ("lineno", "col_offset", "end_lineno", "end_col_offset")
    return tuple(getattr(node, name, None) for name in names)


class Upto(Watcher):
    """Runs until an argument has been evaluated; `value` is what it was, `names` what stood there.

    `found` is false where the rerun never came there.
    """

    def __init__(self, texts: list[str], argument: Argument) -> None:
        text = argument.source.text
        same = [number for number, one in enumerate(texts) if one.endswith(text)]
        self.number = same[-1] if same else len(texts) - 1
        self.place = place_of(argument.node)
        self.found = False
        self.value: Any = None
        self.names: dict[str, Any] = {}

    def begin(self) -> None:
        """Graphs are kept, so that a pass through them can be told again."""
        from engine.modes import state

        state.observe = ignore

    def expression(self, text: int, source: Source, node: ast.expr, value: Value) -> Value:
        if text != self.number or place_of(node) != self.place:
            return value

        def watched(frame: Frame) -> Any:
            found = value(frame)
            self.arrived(frame, found)
            return found

        return watched

    def arrived(self, frame: Frame, value: Any) -> None:
        """The argument has a value: that was all."""
        self.found = True
        self.value = value
        self.names = visible_names(frame)
        raise Enough


def ignore(node: Any, g: Any, gradients: Any) -> None:
    """An observer that looks away."""


def run(watcher: Watcher, runner: Replay) -> Outcome:
    """A rerun that may be one of many."""
    runner.most = max(runner.most, runner.runs + 1)
    return runner.run(watcher)
