"""Lists and pages that belong to no program: commands, operations, names, assignments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorcli import results
from tensorcli.observing import NO_TENSOR
from tensorcli.render import lines, rich

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorcli.commands import Table
    from tensorcli.reference import Entry
    from tensorcli.render.lines import Line

__all__ = ["Line", "binding", "page", "painted", "table"]

painted = rich.painted

_TIERS = {1: "1, most programs use it", 2: "2, many programs use it", 3: "3"}


def table(content: Table, width: int) -> list[Line]:
    """Rows with the first column as names, the last one cut at the terminal's edge."""
    if not content.rows:
        return [[(content.empty, "dim")]]
    first = max(lines.cells(row[0]) for row in content.rows)
    listed: list[Line] = []
    for name, *rest in content.rows:
        text = shortened(lines.visible("  ".join(rest)), max(width - first - 2, 10))
        space = " " * (first - lines.cells(name) + 2)
        listed.append([(lines.visible(name), "name"), (space, ""), (text, "")])
    return listed


def page(entry: Entry, width: int, example: Sequence[str] = ()) -> list[Line]:
    """The reference page of an operation; `example` is what its example printed."""
    listed: list[Line] = [[(entry.signature, "strong")]]
    listed += _paragraphs(entry.doc, width)
    listed.append([])
    for form in entry.forms:
        listed += _wrapped("" if form is not entry.forms[0] else "call forms", form, width)
    seen = " (in the example)" if entry.composed else ""
    facts = [("also", ", ".join(entry.spellings)), ("memory", entry.view and entry.view + seen)]
    facts.append(("tier", _TIERS[entry.tier]))
    if entry.saves is not None:
        facts.append(("backward keeps", (", ".join(entry.saves) or "nothing") + seen))
    elif entry.view not in ("", NO_TENSOR):
        facts.append(("backward keeps", "nothing: no gradient flows through it" + seen))
    if entry.nodes:
        facts.append(("recorded as", ", ".join(entry.nodes)))
    if entry.data_dependent:
        facts.append(("meta", "not on meta tensors: the result depends on values"))
    for title, text in facts:
        if text:
            listed += _wrapped(title, text, width)
    if entry.example:
        listed += _wrapped("example", entry.example, width)
        listed += [[(" " * 18, ""), (text, "good")] for text in example]
    return listed


def _paragraphs(doc: str, width: int) -> list[Line]:
    """The documentation in lines as long as the terminal's, its paragraphs kept apart."""
    from textwrap import wrap

    listed: list[Line] = []
    for paragraph in doc.split("\n\n") if doc else []:
        rows = wrap(" ".join(paragraph.split()), max(min(width, 100) - 2, 20))
        listed += [[("  " + row, "")] for row in rows] + [[]]
    return listed[:-1]


def _wrapped(title: str, text: str, width: int) -> list[Line]:
    """A titled text with a hanging indent; its lines stay apart, and keep their own indents."""
    from textwrap import TextWrapper

    wrapper = TextWrapper(max(width - 18, 20), break_long_words=False, break_on_hyphens=False)
    rows = [row for line in text.split("\n") for row in wrapper.wrap(line)]
    first, *more = rows or [""]
    return [
        [(f"  {title:<16}", "dim"), (first, "")],
        *([(" " * 18, ""), (row, "")] for row in more),
    ]


def binding(name: str, value: object, names: Mapping[str, object], width: int) -> Line:
    """One line for an assignment: the value where it fits, what it is where it does not."""
    from engine.tensor import Tensor

    room = width - lines.cells(name) - 3
    if isinstance(value, Tensor):
        return _tensor_binding(name, value, names, room)
    from tensorcli.language.value_text import repr_of

    text = shortened(lines.visible(repr_of(value)), max(room, 10))
    return [(name, "name"), (" = ", "dim"), (text, "")]


def _tensor_binding(name: str, value: object, names: Mapping[str, object], room: int) -> Line:
    from engine.printing import tensor_text
    from engine.tensor import Tensor

    assert isinstance(value, Tensor)
    others = {other: held for other, held in names.items() if held is not value}
    facts = rich.tensor_line(results.TensorResult(value, None, True, others), 10_000)[0]
    small = value.numel() <= 16 and str(value.device) == "cpu"
    text = tensor_text(value) if small else ""
    if text and "\n" not in text and len(text) <= room:
        return [(name, "name"), (" = ", "dim"), (text, "")]
    cut: Line = [(name, "name"), (" : ", "dim")]
    for piece, role in facts:
        room -= lines.cells(piece)
        if room < 0:
            break
        cut.append((piece, role))
    return cut[:-1] if cut[-1][0] == " · " else cut


def shortened(text: str, room: int) -> str:
    """The text, or as much of it as fits with dots after it."""
    if lines.cells(text) <= room:
        return text
    while text and lines.cells(text) > room - 3:
        text = text[: room - 3] if len(text) > room - 3 else text[:-1]
    return text + "..."
