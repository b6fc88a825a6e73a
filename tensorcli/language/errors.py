"""Refusals of the checker, and where in the program an exception happened; knows no rendering."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorcli.diagnostics import Diagnostic, Span

if TYPE_CHECKING:
    import ast
    from collections.abc import Sequence

    from tensorcli.language.source import Source


class Refused(Exception):
    """The text is no valid program: grammar, or a construct outside the language."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


class Operand:
    """One operand of the operation that failed: its place, its source text and its value."""

    __slots__ = ("span", "text", "value")

    def __init__(self, span: Span, text: str, value: object) -> None:
        self.span = span
        self.text = text
        self.value = value


class Where:
    """Where an exception was raised: the innermost node, its operands, the calls that led there.

    Closures store nodes, not spans: spans and texts are worked out only when somebody looks.
    """

    __slots__ = ("_calls", "_node", "_operands", "source")

    def __init__(
        self,
        source: Source,
        node: ast.AST,
        operands: tuple[tuple[ast.AST, object], ...] = (),
    ) -> None:
        self.source = source
        self._node = node
        self._operands = operands
        self._calls: list[tuple[Source, ast.AST]] = []

    @property
    def span(self) -> Span:
        return self.source.span(self._node)

    @property
    def node(self) -> ast.AST:
        return self._node

    @property
    def operands(self) -> list[Operand]:
        source = self.source
        return [Operand(source.span(n), source.segment(n), v) for n, v in self._operands]

    @property
    def pairs(self) -> tuple[tuple[ast.AST, object], ...]:
        """The operands as (node, value)."""
        return self._operands

    @property
    def calls(self) -> list[Span]:
        """The places of the calls that were running, innermost first."""
        return [source.span(node) for source, node in self._calls]

    def passed(self, source: Source, node: ast.AST) -> None:
        # A hundred call sites tell a recursion as well as ten thousand would.
        if len(self._calls) < 100:
            self._calls.append((source, node))


def attach(
    exc: BaseException,
    source: Source,
    node: ast.AST,
    nodes: Sequence[ast.AST] = (),
    values: Sequence[object] = (),
) -> None:
    """Note where `exc` was raised; the innermost place wins, later ones become the calls to it."""
    where = getattr(exc, "tensorcli_where", None)
    if where is None:
        pairs = tuple(zip(nodes, values, strict=False))
        exc.tensorcli_where = Where(source, node, pairs)  # type: ignore[attr-defined]  # exceptions take attributes
    else:
        where.passed(source, node)


def where(exc: BaseException) -> Where | None:
    """The place `attach` noted on an exception, or None."""
    place: Where | None = getattr(exc, "tensorcli_where", None)
    return place


def hints(exc: BaseException) -> tuple[str, ...]:
    """Notes that the language left on an exception, such as near names."""
    texts = (str(hint) for hint in getattr(exc, "tensorcli_hints", ()))
    return tuple(text for text in texts if text)


def add_hint(exc: BaseException, hint: object) -> None:
    """Leave a note; its text is made when somebody reads it."""
    exc.tensorcli_hints = (*getattr(exc, "tensorcli_hints", ()), hint)  # type: ignore[attr-defined]  # exceptions take attributes
