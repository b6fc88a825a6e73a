"""A diagnostic as lines: the sentence, the source line with a mark per label, notes and fixes."""

from __future__ import annotations

from tensorcli.render.lines import cells, hanging, merged, visible
from tensorcli.render.shapes import columns_of, sizes_text, start_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorcli.diagnostics import Diagnostic, Label, ShapeLine, Span
    from tensorcli.render.lines import Line, Piece

MOST_LINES = 6
"""Source lines shown of a diagnostic whose labels are on many."""


def diagnostic_lines(
    diagnostic: Diagnostic,
    source: str | None,
    file: str | None,
    width: int,
    *,
    wraps: bool = False,
) -> list[Line]:
    """The whole diagnostic, as people see it on standard error.

    `wraps`: the message is broken between words, for terminals; whoever reads a pipe wants to
    find it in one piece.
    """
    lines: list[Line] = []
    message = visible(diagnostic.message, keep="\n\t") or diagnostic.type
    first, *more = message.split("\n")
    if wraps and diagnostic.message and diagnostic.type:
        lines += hanging((f"{diagnostic.type}: ", "bad"), first, width, "strong")
    elif diagnostic.message and diagnostic.type:
        lines.append([(f"{diagnostic.type}: ", "bad"), (first, "strong")])
    else:
        lines.append([(first, "bad")])
    lines += [[(text, "")] for text in more]
    if diagnostic.span is not None:
        lines += _place(diagnostic, source, file, width)
    elif file is not None:
        lines.append([("  --> ", "dim"), (visible(file), "")])
    lines += _shapes(diagnostic.shapes, width)
    for note in diagnostic.notes:
        lines += hanging(("  note: ", "dim"), note, width)
    for fix in diagnostic.fixes:
        lines += _fix(fix, width)
    return lines


def warning_lines(message: str, line: int | None, file: str | None, width: int) -> list[Line]:
    """A warning, and the line that caused it."""
    place = "" if line is None else f" (line {line})"
    return hanging(("warning: ", "warn"), message + place, width)


def hint_lines(hint: Diagnostic, file: str | None, width: int) -> list[Line]:
    """A hint, its place, and what could be written instead."""
    place = "" if hint.span is None else f" (line {hint.span.line})"
    lines = hanging(("hint: ", "warn"), hint.message + place, width)
    for fix in hint.fixes:
        lines += _fix(fix, width)
    return lines


def _fix(fix: object, width: int) -> list[Line]:
    """An expression that works, in one piece to be copied, and the shape that it gives."""
    expression = str(getattr(fix, "expr", fix))
    shape = getattr(fix, "shape", None)
    line: Line = [("  fix: ", "good"), (visible(expression), "fix")]
    if shape is None:
        return [line]
    gives = f"gives shape {list(shape)}"
    if cells(expression) + len(gives) + 10 > width:
        return [line, [(f"       {gives}", "")]]
    return [[*line, (f"   {gives}", "")]]


def _shapes(shapes: Sequence[ShapeLine], width: int) -> list[Line]:
    """Shapes under each other from the right, with a mark under what does not fit."""
    if not shapes:
        return []
    columns = columns_of([row.shape for row in shapes])
    room = max(width - sum(columns) - 2 * len(columns) - 6, 8)
    names = [visible(row.text).replace("\n", " ") for row in shapes]
    names = [name if len(name) <= room else name[: room - 3] + "..." for name in names]
    longest = max(map(len, names))
    lines: list[Line] = []
    for name, row in zip(names, shapes, strict=True):
        lines.append([(f"    {name:<{longest}}  ", "name"), (sizes_text(row.shape, columns), "")])
    blamed = {
        dim - len(row.shape) + len(columns)
        for row in shapes
        for dim in [row.dim]
        if dim is not None
    }
    if blamed:
        marks = [" "] * (sum(columns) + 2 * len(columns))
        for column in blamed:
            first = start_of(column, columns)
            marks[first : first + columns[column]] = "^" * columns[column]
        lines.append([(" " * (longest + 6), ""), ("".join(marks).rstrip(), "mark")])
    return lines


def _place(diagnostic: Diagnostic, source: str | None, file: str | None, width: int) -> list[Line]:
    span = diagnostic.span
    assert span is not None
    name = visible(file) if file is not None else "expression"
    texts = [] if source is None else _split(source)
    numbers = _lines_to_show(span, diagnostic.labels, len(texts))
    gutter = max((len(str(number)) for number in numbers), default=1)
    lines: list[Line] = [
        [(" " * gutter + "--> ", "dim"), (f"{name}:{span.line}:{span.column}", "")]
    ]
    previous = None
    for number in numbers:
        if previous is not None and number > previous + 1:
            lines.append([(" " * gutter + " ...", "dim")])
        lines += _source_line(diagnostic, texts[number - 1], number, gutter, width)
        previous = number
    return lines


def _split(source: str) -> list[str]:
    """Lines as Python counts them; str.splitlines would also split at form feeds."""
    return source.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _lines_to_show(span: Span, labels: Sequence[Label], count: int) -> list[int]:
    wanted = {span.line, *(label.span.line for label in labels)}
    return sorted(number for number in wanted if 1 <= number <= count)[:MOST_LINES]


class _Window:
    """The part of a source line that fits the terminal, as shown, with the cell of each column."""

    __slots__ = ("offsets", "pieces", "text")

    def __init__(self, text: str, keep: int, room: int) -> None:
        shown = ["    " if char == "\t" else visible(char) for char in text]
        widths = [cells(part) for part in shown]
        start, end = 0, len(shown)
        if sum(widths) > room:
            start = max(0, min(keep - room // 3, end))
            total = 0
            stop = start
            while stop < end and total + widths[stop] <= room - 6:
                total += widths[stop]
                stop += 1
            end = stop
        before, after = ("..." if start else ""), ("..." if end < len(shown) else "")
        self.text = before + "".join(shown[start:end]) + after
        self.offsets: list[int] = []
        at = len(before)
        for index, width in enumerate(widths):
            self.offsets.append(at if index >= start else 0)
            if start <= index < end:
                at += width
        self.offsets.append(at)

    def cell(self, column: int) -> int:
        """The terminal cell of a 1-based column."""
        return self.offsets[max(0, min(column - 1, len(self.offsets) - 1))]


def _source_line(
    diagnostic: Diagnostic, text: str, number: int, gutter: int, width: int
) -> list[Line]:
    span = diagnostic.span
    assert span is not None
    labels = [label for label in diagnostic.labels if label.span.line == number]
    columns = [label.span.column for label in labels]
    if span.line == number:
        columns.append(span.column)
    window = _Window(text, min(columns) - 1, max(width - gutter - 3, 24))
    bar = (" " * gutter + " | ", "dim")
    lines: list[Line] = [[(f"{number:>{gutter}} | ", "dim"), (window.text, "")]]
    marks = _marks(window, span if span.line == number else None, labels, len(text))
    if marks:
        lines.append([bar, *marks])
    for label in sorted(labels, key=lambda label: -label.span.column):
        lines.append([bar, *_hanging(window, label, labels)])
    return lines


def _marks(window: _Window, span: Span | None, labels: Sequence[Label], length: int) -> list[Piece]:
    """The row under a source line: `^` for the place of the error, `~` for labelled operands."""
    row: dict[int, tuple[str, str]] = {}

    def draw(place: Span, char: str, role: str) -> None:
        last = place.end_column if place.end_line == place.line else length + 1
        start = window.cell(place.column)
        for cell in range(start, max(window.cell(last), start + 1)):
            row[cell] = (char, role)

    if span is not None:
        draw(span, "^", "mark")
    for label in labels:
        if span is None or label.span != span:
            draw(label.span, "~", "label")
    end = max(row, default=-1) + 1
    return merged([row.get(cell, (" ", "")) for cell in range(end)])


def _hanging(window: _Window, label: Label, labels: Sequence[Label]) -> list[Piece]:
    """A label's text under its operand, with a stroke down from those to its left."""
    own = window.cell(label.span.column)
    strokes = sorted({window.cell(other.span.column) for other in labels} - {own})
    pieces: list[Piece] = []
    at = 0
    for stroke in strokes:
        if stroke < own:
            pieces += [(" " * (stroke - at), ""), ("|", "label")]
            at = stroke + 1
    pieces += [(" " * (own - at), ""), (visible(label.text), "label")]
    return pieces
