"""Lines of text in pieces, each with a role; plain drops the roles, rich gives them colours.

Also how wide text is in a terminal, and what of it must not reach one.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Piece = tuple[str, str]
    Line = list[Piece]

# The roles: "" ordinary, "dim" aside, "head" of a table, "name" of a variable, "good", "bad",
# "mark" under the place of an error, "label" under its operands, "fix" that was tried.


def plain_text(lines: Iterable[Sequence[Piece]]) -> str:
    """The lines without roles, each ended by a newline."""
    return "".join("".join(text for text, _ in line).rstrip() + "\n" for line in lines)


def merged(pieces: Iterable[Piece]) -> Line:
    """The pieces with neighbours of one role joined."""
    line: Line = []
    for text, role in pieces:
        if line and line[-1][1] == role:
            line[-1] = (line[-1][0] + text, role)
        else:
            line.append((text, role))
    return line


def hanging(title: Piece, text: str, width: int, role: str = "") -> list[Line]:
    """A title and a text, its words wrapped to the terminal, every line beside the title."""
    indent = cells(title[0])
    room = max(width - indent, 20)
    rows = [""]
    for word in visible(text).split(" "):
        if rows[-1] and cells(rows[-1]) + 1 + cells(word) > room:
            rows.append(word)
        else:
            rows[-1] += (" " if rows[-1] else "") + word
    return [[title, (rows[0], role)], *([(" " * indent + row, role)] for row in rows[1:])]


def joined(parts: Iterable[Piece], width: int) -> list[Line]:
    """Parts with dots between them, on as many lines as the terminal's width asks for."""
    lines: list[Line] = [[]]
    used = 0
    for text, role in parts:
        if lines[-1] and used + 3 + cells(text) > width:
            lines.append([("  ", "")])
            used = 2
        elif lines[-1]:
            lines[-1].append((" · ", "dim"))
            used += 3
        lines[-1].append((text, role))
        used += cells(text)
    return lines


def visible(text: str, keep: str = "") -> str:
    """Text with its control characters, which could drive a terminal, as escapes."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else _escape(char) for char in text)


def _escape(char: str) -> str:
    code = ord(char)
    if char in "\t\n\r":
        return {"\t": "\\t", "\n": "\\n", "\r": "\\r"}[char]
    if code < 256:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"


def cells(text: str) -> int:
    """How many columns text takes in a terminal: two for wide characters, none for marks."""
    if text.isascii():
        return len(text)
    import unicodedata

    width = 0
    for char in text:
        if unicodedata.combining(char):
            continue
        width += 2 if unicodedata.east_asian_width(char) in "WF" else 1
    return width


def table(head: Sequence[str], rows: Iterable[Sequence[Piece]], width: int) -> list[Line]:
    """A table aligned in columns: the first flush left, the others right.

    Where it is wider than the terminal each row becomes a paragraph of `column: cell` lines.
    """
    rows = list(rows)
    widths = [
        max(cells(title), *(cells(row[i][0]) for row in rows)) if rows else cells(title)
        for i, title in enumerate(head)
    ]
    if sum(widths) + 2 * (len(widths) - 1) > width:
        return _paragraphs(head, rows)
    lines = [_aligned([(title, "head") for title in head], widths)]
    lines += [_aligned(row, widths) for row in rows]
    return lines


def _aligned(row: Sequence[Piece], widths: Sequence[int]) -> Line:
    line: Line = []
    for i, (text, role) in enumerate(row):
        space = " " * (widths[i] - cells(text))
        if i == 0:
            line += [(text, role), (space, "")]
        else:
            line += [("  " + space, ""), (text, role)]
    return line


def _paragraphs(head: Sequence[str], rows: Iterable[Sequence[Piece]]) -> list[Line]:
    longest = max(map(cells, head[1:]), default=0)
    lines: list[Line] = []
    for row in rows:
        lines.append([row[0]])
        for title, cell in zip(head[1:], row[1:], strict=True):
            if cell[0]:
                space = " " * (longest - cells(title))
                lines.append([("  ", ""), (title, "head"), (space + "  ", ""), cell])
    return lines
