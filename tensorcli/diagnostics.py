"""What is said about a mistake, as data: places, labels, notes; knows no rendering."""

from __future__ import annotations

from collections.abc import Iterable


class Span:
    """A stretch of source text: 1-based lines, 1-based columns in characters, end exclusive."""

    __slots__ = ("column", "end_column", "end_line", "line")

    def __init__(self, line: int, column: int, end_line: int, end_column: int) -> None:
        self.line = line
        self.column = column
        self.end_line = end_line
        self.end_column = end_column

    def key(self) -> tuple[int, int, int, int]:
        return self.line, self.column, self.end_line, self.end_column

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Span) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())

    def __repr__(self) -> str:
        return f"Span{self.key()}"


def line_span(text: str, line: int) -> Span:
    """A whole line of a text without its indentation, for what has no narrower place."""
    lines = text.splitlines()
    content = lines[line - 1].rstrip() if 0 < line <= len(lines) else ""
    first = len(content) - len(content.lstrip())
    return Span(line, first + 1, line, len(content) + 1)


class Label:
    """A remark on one stretch of source text."""

    __slots__ = ("span", "text")

    def __init__(self, span: Span, text: str) -> None:
        self.span = span
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Label) and (self.span, self.text) == (other.span, other.text)

    def __hash__(self) -> int:
        return hash((self.span, self.text))

    def __repr__(self) -> str:
        return f"Label({self.span!r}, {self.text!r})"


class ShapeLine:
    """The shape of one operand; `dim` is the dimension of it that does not fit, if one is."""

    __slots__ = ("dim", "shape", "text")

    def __init__(self, text: str, shape: tuple[int, ...], dim: int | None = None) -> None:
        self.text = text
        self.shape = shape
        self.dim = dim if dim is not None and 0 <= dim < len(shape) else None

    def __repr__(self) -> str:
        return f"ShapeLine({self.text!r}, {self.shape!r}, {self.dim!r})"


class Diagnostic:
    """One mistake: `type` and `message` are what Python or PyTorch would show, the rest is ours.

    `code` is a short stable word (`syntax`, `construct`, `name`, `limit-memory` …); `span` is None
    where the mistake has no place in a text; a fix is any object that the explanations made.
    `shapes` are to be shown under each other.
    """

    __slots__ = ("code", "fixes", "labels", "message", "notes", "shapes", "span", "type")

    def __init__(
        self,
        code: str,
        type: str,
        message: str,
        span: Span | None = None,
        labels: Iterable[Label] = (),
        notes: Iterable[str] = (),
        fixes: Iterable[object] = (),
        shapes: Iterable[ShapeLine] = (),
    ) -> None:
        self.code = code
        self.type = type
        self.message = message
        self.span = span
        self.labels = tuple(labels)
        self.notes = tuple(notes)
        self.fixes = tuple(fixes)
        self.shapes = tuple(shapes)

    def with_more(
        self,
        *,
        labels: Iterable[Label] = (),
        notes: Iterable[str] = (),
        fixes: Iterable[object] = (),
        shapes: Iterable[ShapeLine] = (),
    ) -> Diagnostic:
        """The same mistake with more said about it."""
        return Diagnostic(
            self.code,
            self.type,
            self.message,
            self.span,
            (*self.labels, *labels),
            (*self.notes, *notes),
            (*self.fixes, *fixes),
            (*self.shapes, *shapes),
        )

    def __repr__(self) -> str:
        return f"Diagnostic({self.code!r}, {self.type!r}, {self.message!r}, {self.span!r})"
