"""Statements in other words, and whether the program runs with them: each is tried by a rerun."""

from __future__ import annotations

import ast
import re

from engine import errors as faults
from tensorcli.explain.replay import rewritten
from tensorcli.explain.shapes import OPERATORS
from tensorcli.explain.trial import Fix
from tensorcli.language.errors import where
from tensorcli.language.source import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tensorcli.diagnostics import Span
    from tensorcli.explain.replay import Outcome, Place, Replay

    # Words to be shown, a text of the session with them in it, and the number of that text.
    Rewrite = tuple[str, str, int]


def other_ways(place: Place, failing: Place | None, replay: Replay | None) -> Iterator[Rewrite]:
    """(words to be shown, the text with them, its number): other ways to write a statement."""
    node = place.node
    yield from _made_apart(place)
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name | ast.Attribute):
        if not _is_update(node):
            target = place.source.segment(node.target)
            value = place.source.segment(node.value)
            if isinstance(node.value, ast.BinOp | ast.IfExp | ast.Compare):
                value = f"({value})"
            words = f"{target} = {target} {OPERATORS[type(node.op).__name__]} {value}"
            yield in_place(place, place.span, words)
    call = node.value if isinstance(node, ast.Expr | ast.Assign) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        if call.func.attr.endswith("_") and isinstance(call.func.value, ast.Name):
            root = call.func.value.id
            text = place.source.segment(call)
            at = text.index("(", len(place.source.segment(call.func)) - 1)
            new = text[: at - 1] + text[at:]
            words = new if isinstance(node, ast.Assign) else f"{root} = {new}"
            whole = place.span if isinstance(node, ast.Expr) else place.source.span(call)
            yield in_place(place, whole, words)
    target_node = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    if isinstance(target_node, ast.Subscript) and isinstance(target_node.value, ast.Name):
        name = target_node.value.id
        words = f"{name} = {name}.clone(); {place.words}"
        yield in_place(place, place.span, words)
    if failing is not None and failing.text == place.text and failing.node is not node:
        yield from _moved(place, failing)


def _made_apart(place: Place) -> Iterator[Rewrite]:
    """`b = a.detach().clone()` for the `b = a.detach()` whose result was changed."""
    changed: Any = place.node
    if isinstance(changed, ast.Expr) and isinstance(changed.value, ast.Call):
        changed = getattr(changed.value.func, "value", None)
    else:
        changed = changed.targets[0] if isinstance(changed, ast.Assign) else changed
        changed = getattr(changed, "target", changed)
    while isinstance(changed, ast.Subscript):
        changed = changed.value
    if not isinstance(changed, ast.Name):
        return
    made = None
    for node in ast.walk(ast.parse(place.source.text)):
        if isinstance(node, ast.Assign) and node.lineno < place.span.line:
            if any(isinstance(t, ast.Name) and t.id == changed.id for t in node.targets):
                made = node
    last = None if made is None else made.value
    if isinstance(last, ast.Call):
        last = last.func
    if made is not None and isinstance(last, ast.Attribute) and last.attr in ("detach", "data"):
        span = place.source.span(made)
        words = f"{place.source.segment(made)}.clone()"
        yield f"{words}  # line {span.line}", rewritten(place.source, span, words), place.text


def _is_update(node: ast.AugAssign) -> bool:
    """Whether it looks like an optimiser's step, which must stay in place."""
    return any(isinstance(n, ast.Attribute) and n.attr == "grad" for n in ast.walk(node.value))


def _moved(place: Place, failing: Place) -> Iterator[Rewrite]:
    """The failing statement before the one that changed what it needs."""
    tree = ast.parse(place.source.text)
    top = [n for n in tree.body if n.lineno <= place.span.line <= (n.end_lineno or n.lineno)]
    last = [n for n in tree.body if n.lineno == failing.span.line]
    if not top or not last or top[0].lineno >= last[0].lineno or last[0].col_offset:
        return
    words, first = failing.words, place.source.span(top[0])
    without = Source(rewritten(place.source, failing.span, "pass"))
    moved = f"{words}\n{place.source.segment(top[0])}"
    text = rewritten(without, first, moved)
    yield f"{words}  # moved before line {first.line}", text, place.text


def in_place(place: Place, span: Span, words: str) -> Rewrite:
    return f"{words}  # line {span.line}", rewritten(place.source, span, words), place.text


def first_that_runs(
    rewrites: Iterator[Rewrite], replay: Replay | None, *, whole: bool = False
) -> list[Fix]:
    """The first rewrite with which the program has no such error any more (`whole`: none)."""
    if replay is None:
        return []
    for shown, text, number in rewrites:
        outcome = replay.run(changed={number: text})
        runs = outcome.error is None if whole else got_past(outcome, replay)
        if outcome.finished and runs:
            if number != len(replay.texts) - 1:
                shown = re.sub(r"# line \d+$", "# in an earlier input", shown)
            return [Fix(shown, None)]
    return []


def got_past(outcome: Outcome, replay: Replay) -> bool:
    """Whether a rerun of other words reached the end, or failed for another reason further down."""
    if outcome.error is None:
        return True
    place = where(outcome.error)
    lines = len(replay.texts[-1].rstrip().split("\n"))
    refused = isinstance(outcome.error, faults.AutogradError | faults.InplaceError | TypeError)
    return not refused and place is not None and place.span.line >= lines


def keeping(place: Place) -> Iterator[Rewrite]:
    """The pass that freed the graph, told to keep it."""
    for node in ast.walk(place.node):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
        if name not in ("backward", "grad") or any(k.arg == "retain_graph" for k in node.keywords):
            continue
        text = place.source.segment(node)
        comma = ", " if node.args or node.keywords else ""
        words = f"{text[:-1]}{comma}retain_graph=True)"
        yield in_place(place, place.source.span(node), words)


def carried(place: Place) -> Iterator[Rewrite]:
    """A state that a loop carries from pass to pass, taken out of the graph before it is used."""
    loop = _loop_around(place)
    for node in ast.walk(loop) if loop is not None else ():
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        name = node.targets[0].id
        uses = [n for n in ast.walk(node.value) if isinstance(n, ast.Name) and n.id == name]
        if not uses:
            continue
        text, span = place.source.segment(node), place.source.span(node)
        for use in sorted(uses, key=lambda n: (n.lineno, n.col_offset), reverse=True):
            end = place.source.span(use)
            if end.line == end.end_line == span.line:
                at = end.end_column - span.column
                text = f"{text[:at]}.detach(){text[at:]}"
        yield in_place(place, span, text)


def _loop_around(place: Place) -> ast.For | ast.While | None:
    for node in ast.walk(ast.parse(place.source.text)):
        if isinstance(node, ast.For | ast.While):
            last = node.end_lineno or node.lineno
            if node.lineno <= place.span.line <= last:
                return node
    return None
