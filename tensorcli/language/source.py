"""Program text: lines, places in it, and Python's parser behind one kind of refusal."""

from __future__ import annotations

import ast
import warnings
from typing import NoReturn

from tensorcli.diagnostics import Diagnostic, Span
from tensorcli.language.errors import Refused

TOO_DEEP = "the text is nested too deeply"


class Source:
    """One text that was read as a program; `file` is its name as the user gave it, or None."""

    __slots__ = ("_lines", "file", "text")

    def __init__(self, text: str, file: str | None = None) -> None:
        text = text.removeprefix("\ufeff")
        # Python's parser takes all three line ends for one; so must whoever counts lines.
        self.text = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
        self.file = file
        self._lines: list[str] | None = None

    @property
    def lines(self) -> list[str]:
        if self._lines is None:
            self._lines = self.text.split("\n")
        return self._lines

    def line(self, number: int) -> str:
        """A line by its 1-based number; empty beyond the end."""
        lines = self.lines
        return lines[number - 1] if 0 < number <= len(lines) else ""

    def column(self, line: int, offset: int) -> int:
        """The 1-based column in characters of a 0-based offset in UTF-8 bytes."""
        text = self.line(line)
        if not text.isascii():
            offset = len(text.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "replace"))
        return offset + 1

    def span(self, node: ast.AST) -> Span:
        """Where a node stands; nodes without a place of their own have that of their first part."""
        while not hasattr(node, "lineno"):
            node = next(ast.iter_child_nodes(node), _NOWHERE)
        line, end_line = node.lineno, getattr(node, "end_lineno", None) or node.lineno
        end = getattr(node, "end_col_offset", None)
        return Span(
            line,
            self.column(line, getattr(node, "col_offset", 0)),
            end_line,
            self.column(end_line, end if end is not None else 0),
        )

    def segment(self, node: ast.AST) -> str:
        """The text of a node."""
        span = self.span(node)
        if span.line == span.end_line:
            return self.line(span.line)[span.column - 1 : span.end_column - 1]
        middle = self.lines[span.line : span.end_line - 1]
        first = self.line(span.line)[span.column - 1 :]
        return "\n".join([first, *middle, self.line(span.end_line)[: span.end_column - 1]])


_NOWHERE = ast.Pass(lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)


def decode(data: bytes) -> str:
    """Bytes of a program as text; raises Refused where they are not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        before = data[: exc.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
        refuse(
            "encoding",
            f"the text is not UTF-8: byte 0x{data[exc.start]:02x}",
            Span(line, column, line, column + 1),
        )


def refuse(code: str, message: str, span: Span | None, *notes: str) -> NoReturn:
    raise Refused(Diagnostic(code, "SyntaxError", message, span, notes=notes))


def parse(source: Source) -> ast.Module:
    """The syntax tree; whatever Python's parser throws at odd text is one Refused."""
    if "\0" in source.text:
        _refuse_characters(source)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if "?" in source.text:
                return _parse_with_holes(source)
            return ast.parse(source.text)
    except SyntaxError as exc:
        _refuse_syntax(source, exc)
    except (RecursionError, MemoryError):
        refuse("nesting", TOO_DEEP, None)
    except (ValueError, OverflowError):
        _refuse_characters(source)


def _parse_with_holes(source: Source) -> ast.Module:
    """As it stands if that is Python; else question marks may stand for operands."""
    try:
        return ast.parse(source.text)
    except SyntaxError:
        from tensorcli.language import holes

        tree = holes.parse(source.text)
        if tree is None:
            raise
        return tree


def _refuse_syntax(source: Source, exc: SyntaxError) -> NoReturn:
    if exc.msg == "too many nested parentheses":
        refuse("nesting", TOO_DEEP, _syntax_span(source, exc))
    # Nested f-strings and deep text make the parser report itself rather than the program.
    message = (exc.msg or "invalid syntax").replace("(<unknown>, line 1)", "").strip()
    refuse("syntax", message, _syntax_span(source, exc))


def _syntax_span(source: Source, exc: SyntaxError) -> Span:
    line = min(max(exc.lineno or 1, 1), len(source.lines))
    column = max(exc.offset or 1, 1)
    end_line = exc.end_lineno or line
    end_column = exc.end_offset or 0
    if (end_line, end_column) <= (line, column):
        end_line, end_column = line, column + 1
    return Span(line, column, end_line, end_column)


def _refuse_characters(source: Source) -> NoReturn:
    for number, text in enumerate(source.lines, 1):
        for column, character in enumerate(text, 1):
            if character == "\0" or "\ud800" <= character <= "\udfff":
                span = Span(number, column, number, column + 1)
                what = "a null character" if character == "\0" else "half a surrogate pair"
                refuse("encoding", f"the text contains {what}", span)
    refuse("syntax", "the text cannot be read", None)
