"""One value explained, as lines in pieces: why, bits, dtypes, whole computations, summaries."""

from __future__ import annotations

from tensorcli import value_results as found
from tensorcli.render.explanation import number, size_text, tuple_text
from tensorcli.render.lines import cells, hanging, joined, table, visible
from tensorcli.render.pictures import bars, heatmap_lines, histogram_lines, plot_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tensorcli.render.lines import Line, Piece

# -- views and copies ------------------------------------------------------------------------

VERDICTS = {
    "view": "is a view",
    "copy": "is a copy",
    "own": "has memory of its own",
    "same": "is a tensor with several names",
}


def why_lines(result: found.WhyResult, width: int) -> list[Line]:
    """The verdict, its reason, the chain of operations, and who shares the memory."""
    verdict = VERDICTS[result.verdict]
    if result.view_of is not None:
        verdict += f" of {visible(result.view_of)}"
    elif result.verdict == "copy":
        verdict += f" of {size_text(result.bytes)}"
    elif result.verdict == "own":
        verdict += f", {size_text(result.bytes)}"
    name = visible(result.name)
    if cells(name) + cells(verdict) < width:
        lines = hanging((f"{name} ", "name"), verdict, width, "strong")
    else:
        lines = [*hanging(("", ""), name, width, "name"), *hanging(("  ", ""), verdict, width)]
    if result.reason:
        lines += hanging(("  because  ", "head"), result.reason, width)
    for note in result.notes:
        lines += hanging(("  note     ", "head"), note, width)
    lines += [[("  ", ""), *line] for line in step_lines(result.steps, width - 2, result.reason)]
    if result.shares:
        lines += hanging(("  shared with  ", "head"), ", ".join(result.shares), width)
    return lines


def step_lines(steps: Sequence[Any], width: int, said: str = "") -> list[Line]:
    """A chain of operations, each with the shape and strides it gave and how.

    `said`: a reason that was given before and is not given twice.
    """
    if not steps:
        return []
    rows: list[tuple[Piece, ...]] = []
    for step in steps:
        outcome = "" if step.outcome == "source" else step.outcome
        role = "warn" if step.outcome == "copy" else "good" if step.outcome == "view" else "dim"
        if step.outcome == "copy":
            outcome += f", {size_text(step.bytes)}"
        rows.append(
            (
                (visible(step.text), "name" if step.outcome == "source" else ""),
                (str(list(step.shape)), ""),
                (tuple_text(step.stride), ""),
                (outcome, role),
            )
        )
    lines = table(("made by", "shape", "strides", ""), rows, width)
    for step in steps:
        if step.reason and step.reason != said:
            title = f"  {visible(step.text)}: "
            if cells(title) > width // 2:
                lines += hanging(("  ", ""), f"{visible(step.text)}: {step.reason}", width, "dim")
            else:
                lines += hanging((title, "dim"), step.reason, width, "dim")
    return lines


# -- bits ------------------------------------------------------------------------------------

ROLES = {"sign": "bad", "exponent": "name", "mantissa": "good", "value": ""}


def bits_lines(result: found.BitsResult, width: int) -> list[Line]:
    """A line of bits for each element, and below it what they stand for."""
    lines: list[Line] = []
    if result.rows:
        names = " ".join(name for name, _ in result.rows[0].fields)
        lines.append([(f"{result.dtype}: {names}", "head")])
    longest = max((len(_index(row.index)) for row in result.rows), default=0)
    for row in result.rows:
        title = f"{_index(row.index):<{longest}}  " if longest else ""
        bits = [
            (piece, ROLES[name])
            for name, part in row.fields
            for piece in _folded(part, width - len(title) - 3)
        ]
        room = width - len(title) - sum(len(part) + 1 for part, _ in bits) - 1
        spaced: list[Line] = [[(title, "head")]]
        used = len(title)
        for piece in bits:
            if used + len(piece[0]) > width and used > len(title):
                spaced.append([(" " * len(title), "")])
                used = len(title)
            spaced[-1] += [piece, (" ", "")]
            used += len(piece[0]) + 1
        if len(row.value) <= room:
            spaced[-1].append((f" {row.value}", "strong"))
        else:
            spaced.append([(" " * len(title), ""), (row.value, "strong")])
        lines += spaced
        lines += [[(" " * len(title), ""), *line] for line in _facts(row, width - len(title))]
    if result.omitted:
        lines.append([(f"... {result.omitted} more", "dim")])
    return lines


def _folded(bits: str, room: int) -> list[str]:
    """Bits in pieces that fit into a line, eight by eight."""
    room = max(room // 8 * 8, 8)
    first = len(bits) % room if len(bits) > room else 0
    pieces = [bits[:first], *(bits[at : at + room] for at in range(first, len(bits), room))]
    return [piece for piece in pieces if piece]


def _index(index: tuple[int, ...]) -> str:
    return str(list(index)) if index else ""


def _facts(row: found.BitsRow, width: int) -> list[Line]:
    if row.spacing is None:
        return [] if row.kind == "integer" else [[(row.kind, "dim")]]
    parts: list[Piece] = [
        (row.kind, "warn" if row.kind == "subnormal" else "dim"),
        (f"times 2^{row.exponent}", "dim"),
        (f"spacing {row.spacing:.9g}", "dim"),
    ]
    parts += [
        (f"{name} {value:.9g}", "dim")
        for name, value in (("below", row.below), ("above", row.above))
        if value is not None
    ]
    return joined(parts, width)


def dtypes_lines(result: found.DtypesResult, width: int) -> list[Line]:
    """A row for each dtype."""
    head = ("dtype", "bits", "eps", "max", "normal from", "smallest", "whole to")
    rows = [
        (
            (row.dtype, "name"),
            ("+".join(map(str, row.bits)), ""),
            (number(row.eps), ""),
            (number(row.max), ""),
            (number(row.smallest_normal), ""),
            (number(row.smallest_subnormal), ""),
            (f"2^{row.largest_exact_integer.bit_length() - 1}", ""),
        )
        for row in result.rows
    ]
    return table(head, rows, width)


# -- whole computations ----------------------------------------------------------------------


def run_lines(result: found.PrecisionRunResult, width: int) -> list[Line]:
    """Each dtype: what came out, what its gradients lost, and where the error arose."""
    lines: list[Line] = []
    for run in result.runs:
        if lines:
            lines.append([])
        lines += _run(run, width)
    return lines


def _run(run: found.PrecisionRun, width: int) -> list[Line]:
    title = (f"{run.dtype}  ", "name")
    if run.error is not None:
        lines = hanging(title, f"cannot be run: {run.error}", width, "bad")
    else:
        text, role = _outcome(run)
        lines = hanging(title, text, width, role)
    for name, row in run.gradients:
        lost = f"{row.count - row.exact} of {row.count} differ"
        if row.max_absolute:
            lost += f", by up to {number(row.max_absolute)}, relative {number(row.max_relative)}"
        if row.overflowed:
            lost += f", {row.overflowed} overflowed"
        if row.zeroed:
            lost += f", {row.zeroed} went to zero"
        text = "exact" if row.exact == row.count else lost
        lines += hanging((f"  {name}.grad  ", "head"), text, width)
    steps = [step for step in run.steps if step.own or step.total or step.cause != "exact"]
    if steps:
        lines += [[("  ", ""), *line] for line in _step_table(steps, width - 2)]
    for step in steps:
        if step.cause not in ("rounding", "exact") and step.reason:
            head = f"  {step.cause} in {visible(step.text)}: "
            lines += (
                hanging((head, "warn"), step.reason, width)
                if cells(head) <= width // 2
                else [[(head.rstrip(), "warn")], *hanging(("    ", ""), step.reason, width)]
            )
    return lines


def _outcome(run: found.PrecisionRun) -> tuple[str, str]:
    row = run.result
    if run.value is not None and run.exact is not None:
        if run.value == run.exact:
            return f"{run.value:.9g}, as in float64", "good"
        off = abs(run.value - run.exact)
        share = f", {100 * off / abs(run.exact):.3g} % off" if run.exact and off < 1e300 else ""
        return f"{run.value:.9g} where float64 gives {run.exact:.9g}{share}", "warn"
    if row is None:
        return "the result is no floating-point tensor", ""
    if row.exact == row.count:
        return "every value as in float64", "good"
    text = (
        f"{row.count - row.exact} of {row.count} values differ from float64, "
        f"by up to {number(row.max_absolute)}, relative {number(row.max_relative)}"
    )
    if row.sqnr_db is not None:
        text += f", SQNR {row.sqnr_db:.3g} dB"
    if row.overflowed:
        text += f", {row.overflowed} overflowed"
    return text, "warn"


def _step_table(steps: list[found.RoundingStep], width: int) -> list[Line]:
    """The worst own error is marked: that is where the result was lost."""
    worst = max(step.own for step in steps)
    most = max(width - (54 if width >= WIDE else 25), 14)
    rows = [
        {
            "operation": (_named(step, most), ""),
            "line": (str(step.line), "dim"),
            "times": (str(step.times), "dim"),
            "own error": (_relative(step.own), "bad" if step.own == worst and worst else ""),
            "so far": (_relative(step.total), ""),
            "gradient": ("-" if step.gradient is None else _relative(step.gradient), ""),
            "cause": (step.cause, "" if step.cause in ("rounding", "exact") else "warn"),
        }
        for step in steps
    ]
    left_out = {"line", "so far", "gradient"} if width < WIDE else set()
    if all(step.gradient is None for step in steps):
        left_out.add("gradient")
    if all(step.times == 1 for step in steps) or width < WIDE:
        left_out.add("times")
    head = [title for title in rows[0] if title not in left_out]
    return table(head, [[row[title] for title in head] for row in rows], width)


WIDE = 60
"""From this many columns on the table of steps is whole."""


def _named(step: found.RoundingStep, most: int) -> str:
    """The operation as it is written, its operands left out where it is too long."""
    text = visible(step.text)
    return text if len(text) <= most else _cut(visible(step.short), most)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def _relative(value: float) -> str:
    return "0" if value == 0 else "inf" if value == float("inf") else f"{value:.2g}"


# -- summaries -------------------------------------------------------------------------------


def summary_lines(result: found.SummaryResult, width: int) -> list[Line]:
    """One fact a line; where a sample was read it says so."""
    shape = f"{list(result.shape)}  {result.dtype}, {result.device}"
    pairs: list[tuple[str, str, str]] = [("shape", shape, "")]
    if not result.contiguous:
        pairs.append(("strides", f"{tuple_text(result.stride)}, not contiguous", ""))
    elements = f"{result.count}, {size_text(result.bytes)}"
    if result.sampled < result.count and result.minimum is not None:
        elements += f"; what follows is of a sample of {result.sampled}"
    pairs.append(("elements", elements, ""))
    if result.minimum is not None:
        pairs.append(("range", f"{number(result.minimum)} .. {number(result.maximum)}", ""))
        mean = number(result.mean)
        if result.deviation is not None:
            mean += f", deviation {number(result.deviation)}"
        pairs.append(("mean", mean, ""))
        pairs.append(("zeros", str(result.zeros), ""))
    if len(result.counts) > 1:
        pairs.append(("spread", f"{bars(result.counts)}  {_counts(result.counts)}", ""))
    for name, count in (("NaN", result.nan), ("Inf", result.inf)):
        if count:
            pairs.append((name, f"{count} of {result.sampled}", "bad"))
    pairs.append(("gradient", result.gradient, ""))
    longest = max(len(title) for title, _, _ in pairs)
    return [
        line
        for title, text, role in pairs
        for line in hanging((f"{title:<{longest}}  ", "head"), text, width, role)
    ]


def _counts(counts: Sequence[int]) -> str:
    return " ".join(map(str, counts))


LINES: dict[type, Callable[[Any, int], list[Line]]] = {
    found.WhyResult: why_lines,
    found.BitsResult: bits_lines,
    found.DtypesResult: dtypes_lines,
    found.PrecisionRunResult: run_lines,
    found.SummaryResult: summary_lines,
    found.HistogramResult: histogram_lines,
    found.PlotResult: plot_lines,
    found.HeatmapResult: heatmap_lines,
}
