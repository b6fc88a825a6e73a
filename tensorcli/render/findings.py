"""Findings as lines in pieces: graphs, backward passes, checked gradients, provenance, shapes."""

from __future__ import annotations

from tensorcli import findings
from tensorcli.render.explanation import number, size_text, tuple_text
from tensorcli.render.lines import cells, hanging, joined, table, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tensorcli.render.lines import Line, Piece


# -- graphs ----------------------------------------------------------------------------------


def graph_lines(result: findings.GraphResult, width: int) -> list[Line]:
    """The graph as a tree by indentation, each line an operation with what is known of it."""
    lines: list[Line] = []
    for row in result.rows:
        indent = min(2 * row.depth, max(width // 2, 20), max(width - 40, 4))
        deep = [] if indent == 2 * row.depth else [f"{row.depth} deep"]
        leaf = row.operation == "leaf"
        title = visible(row.name or "leaf") if leaf else row.operation
        lines += hanging_facts(
            [(" " * indent, ""), (title, "name" if leaf else "")], [*deep, *_facts(row)], width
        )
    if result.omitted:
        lines.append([("...", "dim")])
    if result.saved_bytes:
        lines.append([(f"{size_text(result.saved_bytes)} kept for backward", "dim")])
    return lines


def _facts(row: findings.GraphNode) -> list[str]:
    facts = []
    if row.shape is not None:
        dtype = "" if row.dtype == "float32" else f" {row.dtype}"
        facts.append(f"{list(row.shape)}{dtype}")
    if row.operation == "leaf":
        facts.append("leaf")
    elif row.name is not None:
        facts.append(f"is {visible(row.name)}")
    if row.line is not None:
        facts.append(f"line {row.line}")
    if row.freed:
        facts.append("freed")
    if row.repeated:
        facts.append("as above")
    kept = dict.fromkeys(
        visible(kept.name) if kept.name is not None else f"{kept.role} {list(kept.shape or ())}"
        for kept in row.saved
    )
    if kept:
        facts.append("keeps " + ", ".join(kept))
    return facts


def hanging_facts(start: Line, facts: list[str], width: int) -> list[Line]:
    """Facts with dots between them after a title, wrapped under themselves."""
    used = sum(cells(text) for text, _ in start)
    wrapped = joined([(fact, "dim") for fact in facts], max(width - used - 2, 20))
    lines: list[Line] = [[*start, ("  ", ""), *wrapped[0]]]
    indent = next((text for text, _ in start if not text.strip()), "")
    lines += [[(indent + "  ", ""), *line] for line in wrapped[1:]]
    return lines


def document_lines(result: findings.GraphDocument, width: int) -> list[Line]:
    """The document as it stands: it is for a file."""
    from tensorcli.render.graph_documents import text

    return [[(line, "")] for line in text(result).splitlines()]


# -- a backward pass -------------------------------------------------------------------------


def backward_lines(result: findings.BackwardResult, width: int) -> list[Line]:
    lines: list[Line] = [
        [("from ", "dim"), (visible(result.root), "name"), (": gradient 1", "dim")]
    ]
    for count, step in enumerate(result.steps, 1):
        lines += _step(count, step, width)
    if result.omitted:
        lines.append([(f"... {result.omitted} steps more", "dim")])
    lines.append([("leaves", "head")])
    for end in result.leaves:
        lines += hanging((f"  {visible(end.to)}  ", "name"), _sent_text(end), width)
    if result.rerun:
        note = "the graph had been freed: the program was run once more to look at it"
        lines += hanging(("", ""), note, width, "dim")
    return lines


def _step(count: int, step: findings.BackwardStep, width: int) -> list[Line]:
    head: Line = [(f"{count:>2}  ", "dim"), (step.operation, "strong")]
    if step.line is not None:
        code = "" if step.code is None else f": {visible(step.code)}"
        room = width - cells(step.operation) - 6
        where = f"line {step.line}{code}"
        head.append(("  " + (where if cells(where) <= room else where[: room - 3] + "..."), "dim"))
    lines = [head]
    if step.incoming is not None:
        text = f"{list(step.incoming)}  {step.incoming_value or ''}"
        if step.arrivals > 1:
            text += f"  (sum of {step.arrivals})"
        lines += hanging(("    g     ", "head"), text, width)
    if step.rule is not None:
        lines += hanging(("    rule  ", "head"), step.rule, width)
    for sent in step.outgoing:
        lines += hanging(("    to    ", "head"), f"{visible(sent.to)}  {_sent_text(sent)}", width)
    return lines


def _sent_text(sent: findings.BackwardInput) -> str:
    text = f"{list(sent.shape or ())}  {sent.value or ''}"
    if sent.summed and sent.from_shape is not None:
        dims = "dims" if len(sent.summed) > 1 else "dim"
        numbers = ", ".join(map(str, sent.summed))
        text += f"  (summed over {dims} {numbers} of {list(sent.from_shape)}: it was broadcast)"
    if sent.cast is not None:
        text += f"  (cast to {sent.cast})"
    return text


def absent_lines(result: findings.AbsentGradient, width: int) -> list[Line]:
    return hanging((f"{visible(result.of)} is None  ", "warn"), visible(result.reason), width)


# -- gradients beside differences ------------------------------------------------------------


def check_lines(result: findings.GradientCheckResult, width: int) -> list[Line]:
    if not result.rows:
        return [[("no named leaf of it requires a gradient", "dim")]]
    head = ("leaf", "shape", "worst", "gradient", "difference", "error", "checked", "")
    rows = [
        (
            (visible(row.name), "name"),
            (str(list(row.shape)), ""),
            ("-" if row.index is None else str(list(row.index)), ""),
            (number(row.gradient), ""),
            (number(row.difference), ""),
            (number(row.error), "" if row.agrees else "bad"),
            (str(row.compared), ""),
            _verdict(row),
        )
        for row in result.rows
    ]
    lines = table(head, rows, width)
    for row in result.rows:
        if row.note is not None:
            lines += hanging((f"{visible(row.name)}  ", "name"), row.note, width)
    of = f"the sum of {result.of}" if result.summed else result.of
    how = f"differences of {visible(of)} = {number(result.value)}, steps of {number(result.step)}"
    return [*lines, *hanging(("", ""), how, width, "dim")]


def _verdict(row: findings.CheckedGradient) -> Piece:
    if row.compared == 0:
        return "not checked", "warn"
    return ("agrees", "good") if row.agrees else ("DIFFERS", "bad")


# -- NaN and Inf -----------------------------------------------------------------------------


def provenance_lines(result: findings.ProvenanceResult, width: int) -> list[Line]:
    counts = [f"{n} {what}" for n, what in ((result.nan, "NaN"), (result.inf, "Inf")) if n]
    of = visible(result.of)
    if not counts:
        lines = hanging((f"{of}  ", "name"), "has no NaN and no Inf", width, "good")
    else:
        text = f"{' and '.join(counts)} among {result.count} values"
        if result.count == 1:
            text = f"is {'NaN' if result.nan else 'infinite'}"
        lines = hanging((f"{of}  ", "name"), text, width, "bad")
    for origin in result.origins:
        lines += _origin(origin, width)
    if result.path:
        steps = " -> ".join(
            visible(step.text) + ("" if step.line is None else f" (line {step.line})")
            for step in result.path
        )
        lines += hanging(("then      ", "head"), steps, width)
    if result.note is not None:
        lines += hanging(("", ""), result.note, width, "dim")
    return lines


def _origin(origin: findings.Origin, width: int) -> list[Line]:
    where = "" if origin.line is None else f", line {origin.line}"
    phase = " of the backward pass" if origin.phase == "backward" else ""
    title = f"first {origin.what}{phase}{where}: {visible(origin.text)}"
    lines = hanging(("", ""), title, width, "strong")
    if origin.index is not None:
        more = "" if origin.count == 1 else f", the first of {origin.count}"
        place = f"{list(origin.index)}{more}" if origin.index else "the only one"
        lines += hanging(("element   ", "head"), place, width)
    for operand in origin.operands:
        at = "" if not operand.index else f"{list(operand.index)}"
        text = visible(operand.text)
        if at and not text.replace("_", "").isalnum() and text[-1:] not in ")]":
            text = f"({text})"
        lines += hanging(("input     ", "head"), f"{text}{at} = {operand.value}", width)
    lines += hanging(("reason    ", "head"), origin.reason, width)
    if origin.cure is not None:
        lines += hanging(("cure      ", "head"), visible(origin.cure), width, "fix")
    if origin.fix is not None:
        fix = f"{visible(origin.fix)}  (tried: it is gone)"
        lines += hanging(("fix       ", "head"), fix, width, "fix")
    return lines


# -- shapes without data ---------------------------------------------------------------------


def checked_lines(result: findings.CheckResult, width: int) -> list[Line]:
    """Each line of the program with what it made under it, or beside it where there is room."""
    longest = max((cells(row.text) for row in result.rows), default=0)
    column = min(longest, width // 2 - 6) if width >= 60 else 2
    digits = max((len(str(row.line)) for row in result.rows), default=1)
    lines: list[Line] = []
    last = 0
    for row in result.rows:
        number_text = f"{row.line:>{digits}}  " if row.line != last else " " * (digits + 2)
        text = visible(row.text) if row.line != last else ""
        last = row.line
        made = _made(row)
        if cells(text) > column or not made[0][0]:
            lines.append([(number_text, "dim"), (text, "")])
            if not made[0][0]:
                continue
            number_text, text = " " * (digits + 2), ""
        space = " " * (column - cells(text) + 2)
        indent = digits + 4 + column
        wrapped = joined(made, max(width - indent, 16))
        lines.append([(number_text, "dim"), (text, ""), (space, ""), *wrapped[0]])
        lines += [[(" " * indent, ""), *line] for line in wrapped[1:]]
    where = "" if result.peak_line is None else f" at line {result.peak_line}"
    total = [(f"peak memory {size_text(result.peak)}{where}", "")]
    if result.operations:
        total.append((f"{count_text(result.operations)} floating-point operations", ""))
    lines += joined(total, width)
    if result.note is not None:
        lines += hanging(("", ""), result.note, width, "dim")
    return lines


def _made(row: findings.CheckedLine) -> list[Piece]:
    if row.shape is None:
        cost = f"{count_text(row.operations)} flop" if row.operations and not row.note else ""
        return [(visible(row.note or cost), "dim")]
    name = f"{visible(row.name)} " if row.name else ""
    parts: list[Piece] = [(f"{name}{list(row.shape)} {row.dtype}", "name")]
    if row.stride is not None and not row.contiguous:
        parts.append((f"strides {tuple_text(row.stride)}", "dim"))
    parts.append((size_text(row.bytes), "dim"))
    if row.operations:
        parts.append((f"{count_text(row.operations)} flop", "dim"))
    if row.times > 1:
        parts.append((f"{row.times} times", "dim"))
    if row.note:
        parts.append((visible(row.note), "dim"))
    return parts


def count_text(count: int) -> str:
    """A large count for people: 1200, 48.2 k, 3.1 M."""
    if count < 10_000:
        return str(count)
    value, power = count / 1000, 0
    while value >= 1000 and power < 3:
        value, power = value / 1000, power + 1
    return f"{value:.3g} {('k', 'M', 'G', 'T')[power]}"


def shape_lines(result: findings.ShapeResult, width: int) -> list[Line]:
    parts: list[Piece] = [
        (f"{list(result.shape)} {result.dtype}", "strong"),
        (f"strides {tuple_text(result.stride)}", "dim"),
        (size_text(result.bytes), "dim"),
    ]
    if result.operations:
        parts.append((f"{count_text(result.operations)} flop", "dim"))
    return joined(parts, width)


def holes_lines(result: findings.HolesResult, width: int) -> list[Line]:
    if not result.fits:
        return hanging(("", ""), f"no shape fits in {visible(result.text)}", width, "bad")
    lines: list[Line] = []
    for fit in result.fits:
        holes = ", ".join(sizes(hole) for hole in fit.holes)
        lines += joined([(f"? = {holes}", "good"), (f"gives {sizes(fit.result)}", "dim")], width)
    if result.omitted:
        lines.append([("... and others", "dim")])
    return lines


def sizes(shape: tuple[int | str, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"


LINES: dict[type, Callable[[Any, int], list[Line]]] = {
    findings.GraphResult: graph_lines,
    findings.GraphDocument: document_lines,
    findings.BackwardResult: backward_lines,
    findings.AbsentGradient: absent_lines,
    findings.GradientCheckResult: check_lines,
    findings.ProvenanceResult: provenance_lines,
    findings.CheckResult: checked_lines,
    findings.ShapeResult: shape_lines,
    findings.HolesResult: holes_lines,
}
