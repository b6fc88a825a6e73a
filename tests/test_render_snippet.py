"""Diagnostics as text: labels under their operands, wide characters, narrow terminals."""

from __future__ import annotations

from tensorcli.diagnostics import Diagnostic, Label, Span
from tensorcli.render.lines import cells, plain_text, table, visible
from tensorcli.render.snippet import diagnostic_lines


def span(line: int, column: int, end: int) -> Span:
    return Span(line, column, line, end)


def shown(diagnostic: Diagnostic, source: str, width: int = 80, file: str | None = None) -> str:
    return plain_text(diagnostic_lines(diagnostic, source, file, width))


BROADCAST = Diagnostic(
    "broadcast",
    "RuntimeError",
    "The sizes do not match",
    span(2, 5, 10),
    [Label(span(2, 5, 6), "shape [2, 3]"), Label(span(2, 9, 10), "shape [2]")],
    ["sizes are matched from the right"],
    ["x + y[:, None]"],
)


def test_labels_hang_under_their_operands() -> None:
    assert shown(BROADCAST, "x = 1\nz = x + y\n", file="a.tx") == (
        "RuntimeError: The sizes do not match\n"
        " --> a.tx:2:5\n"
        "2 | z = x + y\n"
        "  |     ~^^^~\n"
        "  |     |   shape [2]\n"
        "  |     shape [2, 3]\n"
        "  note: sizes are matched from the right\n"
        "  fix: x + y[:, None]\n"
    )


def test_wide_characters_take_two_cells() -> None:
    diagnostic = Diagnostic("name", "NameError", "no", span(1, 8, 9))
    assert shown(diagnostic, "'数据' + y").splitlines()[2:] == ["1 | '数据' + y", "  |          ^"]
    assert cells("数据é") == 5


def test_tabs_and_control_characters_are_made_visible() -> None:
    diagnostic = Diagnostic("syntax", "SyntaxError", "bad \x1b[31m", span(1, 4, 5))
    text = shown(diagnostic, "\t\x1b x")
    assert "\x1b" not in text
    assert text.splitlines()[2:] == ["1 |     \\x1b x", "  |          ^"]


def test_long_lines_are_cut_around_the_mistake() -> None:
    source = "x" * 200 + " + y"
    diagnostic = Diagnostic("name", "NameError", "no", span(1, 204, 205))
    lines = shown(diagnostic, source, width=40).splitlines()
    assert all(len(line) <= 40 for line in lines)
    mark = lines[3].index("^")
    assert lines[2][mark] == "y"


def test_spans_beyond_the_text_do_no_harm() -> None:
    diagnostic = Diagnostic(
        "syntax", "SyntaxError", "end", span(9, 3, 4), [Label(span(1, 90, 95), "x")]
    )
    assert shown(diagnostic, "a").startswith("SyntaxError: end\n")


def test_an_unplaced_diagnostic_names_its_file() -> None:
    diagnostic = Diagnostic("file", "OSError", "cannot read x")
    assert shown(diagnostic, "", file="x\x1b") == "OSError: cannot read x\n  --> x\\x1b\n"


def test_labels_on_other_lines_are_shown_too() -> None:
    diagnostic = Diagnostic("a", "E", "m", span(5, 1, 2), [Label(span(1, 1, 2), "made here")])
    lines = shown(diagnostic, "a\n\n\n\nb").splitlines()
    assert lines[2:5] == ["1 | a", "  | ~", "  | made here"]
    assert "  ..." in lines


def test_tables_become_paragraphs_when_narrow() -> None:
    rows = [(("weight", "name"), ("[2, 3]", "")), (("b", "name"), ("[3]", ""))]
    assert (
        plain_text(table(("leaf", "shape"), rows, 80))
        == "leaf     shape\nweight  [2, 3]\nb          [3]\n"
    )
    assert (
        plain_text(table(("leaf", "shape"), rows, 10))
        == "weight\n  shape  [2, 3]\nb\n  shape  [3]\n"
    )


def test_visible() -> None:
    assert visible("a\x1b\x7f\ud800\t\n") == "a\\x1b\\x7f\\ud800\\t\\n"
