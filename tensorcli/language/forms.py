"""Special forms: calls that receive their arguments' source and closures, not only values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorcli.language.compiling import GLOBALS, PARENT

if TYPE_CHECKING:
    import ast

    from tensorcli.diagnostics import Span
    from tensorcli.language.compiling import Frame, Value
    from tensorcli.language.source import Source


class Argument:
    """One argument of a special form: `value(frame)` evaluates it, as often as wanted."""

    __slots__ = ("node", "source", "value")

    def __init__(self, source: Source, node: ast.expr, value: Value) -> None:
        self.source = source
        self.node = node
        self.value = value

    @property
    def text(self) -> str:
        return self.source.segment(self.node)

    @property
    def span(self) -> Span:
        return self.source.span(self.node)


class Form:
    """A call of a special form, as it stands in the text."""

    __slots__ = ("args", "keywords", "name", "node", "source")

    def __init__(
        self,
        source: Source,
        node: ast.Call,
        name: str,
        args: tuple[Argument, ...],
        keywords: dict[str, Argument],
    ) -> None:
        self.source = source
        self.node = node
        self.name = name
        self.args = args
        self.keywords = keywords

    @property
    def span(self) -> Span:
        return self.source.span(self.node)


def visible_names(frame: Frame) -> dict[str, Any]:
    """The user's names as seen from a frame, inner ones over outer ones."""
    scopes = [frame]
    while GLOBALS in frame:
        frame = frame[PARENT]
        scopes.append(frame)
    names: dict[str, Any] = {}
    for scope in reversed(scopes):
        names.update((name, value) for name, value in scope.items() if isinstance(name, str))
    return names
