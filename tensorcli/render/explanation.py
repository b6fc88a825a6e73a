"""Explanations as lines in pieces, the same for plain and rich text; numbers in a few digits."""

from __future__ import annotations

from tensorcli import results
from tensorcli.render.lines import hanging, joined, table
from tensorcli.render.shapes import columns_of, sizes_text, start_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tensorcli.render.lines import Line, Piece


def number(value: float | None) -> str:
    """Four significant digits, without the zeros that say nothing."""
    return "-" if value is None else f"{value:.4g}"


def size_text(count: int) -> str:
    """A number of bytes for people: 48 B, 1.5 KiB."""
    if count < 1024:
        return f"{count} B"
    value, power = count / 1024, 0
    while value >= 1000 and power < 3:
        value, power = value / 1024, power + 1
    return f"{value:.3g} {('KiB', 'MiB', 'GiB', 'TiB')[power]}"


def tuple_text(values: Sequence[int]) -> str:
    return f"({', '.join(map(str, values))}{',' if len(values) == 1 else ''})"


def _pairs(pairs: Sequence[tuple[str, str]], width: int) -> list[Line]:
    longest = max(len(title) for title, _ in pairs)
    return [
        line
        for title, text in pairs
        for line in hanging((f"{title:<{longest}}  ", "head"), text, width)
    ]


def layout_lines(result: results.LayoutResult, width: int) -> list[Line]:
    pairs = [
        ("shape", f"{list(result.shape)}  {result.dtype}, {result.device}"),
        ("strides", tuple_text(result.stride)),
        ("offset", str(result.storage_offset)),
        ("contiguous", _contiguity(result)),
        ("memory", _memory(result)),
    ]
    if result.seen is not None:
        pairs.append(("seen", f"{result.seen}, worked out at each look"))
    if result.view_of is not None:
        pairs.append(("view of", result.view_of))
    if result.shares:
        pairs.append(("shared with", ", ".join(result.shares)))
    lines = _pairs(pairs, width)
    if result.positions is not None and not result.contiguous:
        lines += _picture(result.shape, result.positions, width)
    if result.steps:
        from tensorcli.render.values import step_lines

        lines += step_lines(result.steps, width)
    return lines


def _picture(shape: Sequence[int], positions: Sequence[int], width: int) -> list[Line]:
    """Where each element lies: rows as they are printed, and the order of the walk over them."""
    title = "positions    "
    longest = max(len(str(place)) for place in positions)
    columns = shape[-1]
    rows = [positions[i : i + columns] for i in range(0, len(positions), columns)]
    texts = [" ".join(f"{place:>{longest}}" for place in row) for row in rows]
    if len(title) + max(map(len, texts)) > width:
        return []
    lines: list[Line] = []
    for i, text in enumerate(texts):
        if len(shape) > 2 and i and i % shape[-2] == 0:
            lines.append([])
        lines.append([(title if i == 0 else " " * len(title), "head"), (text, "")])
    walk = " ".join(map(str, positions))
    return [*lines, *hanging(("walk         ", "head"), walk, width)]


def _contiguity(result: results.LayoutResult) -> str:
    dim = result.first_break
    if dim is None:
        return "yes"
    return (
        f"no: dim {dim} has stride {result.stride[dim]}, "
        f"row-major order needs {result.contiguous_strides[dim]}"
    )


def _memory(result: results.LayoutResult) -> str:
    text = size_text(result.bytes)
    if result.storage_bytes is not None and result.storage_bytes != result.bytes:
        text += f" of a storage of {size_text(result.storage_bytes)}"
    return text


def summary_piece(summary: results.Summary | None) -> Piece:
    """A tensor's values in a few words, flags for what is not finite."""
    if summary is None:
        return "None", "bad"
    flags = [f"{name}!" for name, n in (("NaN", summary.nan), ("Inf", summary.inf)) if n]
    if summary.minimum is None or summary.maximum is None:
        text = "no elements" if summary.count == 0 else ""
    elif summary.minimum == summary.maximum:
        text = number(summary.minimum)
    else:
        text = f"{number(summary.minimum)} .. {number(summary.maximum)}"
    return " ".join(filter(None, [text, *flags])), "bad" if flags else ""


def gradient_lines(result: results.GradientsResult, width: int) -> list[Line]:
    if not result.rows:
        return [[("no named leaf requires a gradient", "dim")]]
    head = ("leaf", "shape", "value", "grad", "norm", "times")
    rows = [
        (
            (row.name, "name"),
            (str(list(row.shape)), ""),
            summary_piece(row.value),
            summary_piece(row.gradient),
            ("-" if row.gradient is None else number(row.gradient.norm), ""),
            ("-" if row.accumulated is None else str(row.accumulated), _times_role(row)),
        )
        for row in result.rows
    ]
    lines = table(head, rows, width)
    for row in result.rows:
        if row.reason is not None:
            lines += hanging((f"{row.name}  ", "name"), f"None: {row.reason}", width, "dim")
        elif row.gradient is not None and (row.gradient.nan or row.gradient.inf):
            words = f"trace_nan({row.name}.grad) says where it was born"
            lines += hanging((f"{row.name}  ", "name"), words, width, "dim")
    return lines


def _times_role(row: results.GradientRow) -> str:
    """More than one accumulation without zeroing is how wrong gradients usually come about."""
    return "warn" if row.accumulated is not None and row.accumulated > 1 else ""


def precision_lines(result: results.PrecisionResult, width: int) -> list[Line]:
    if not result.asked:
        return [line for row in result.rows for line in _loss(result.source_dtype, row, width)]
    head = (
        *("dtype", "exact", "max abs", "max rel", "max ulp"),
        *("to inf", "subn.", "to 0", "dB"),
    )
    rows = [
        (
            (row.dtype, "name"),
            (_share(row.exact, row.count), ""),
            (number(row.max_absolute), ""),
            (number(row.max_relative), ""),
            (number(row.max_ulp), ""),
            (str(row.overflowed), "bad" if row.overflowed else ""),
            (str(row.subnormal), "warn" if row.subnormal else ""),
            (str(row.zeroed), "bad" if row.zeroed else ""),
            ("-" if row.sqnr_db is None else f"{row.sqnr_db:.3g}", ""),
        )
        for row in result.rows
    ]
    return table(head, rows, width)


def _share(part: int, whole: int) -> str:
    return "-" if whole == 0 else "all" if part == whole else f"{100 * part / whole:.3g} %"


def _loss(source: str, row: results.PrecisionRow, width: int) -> list[Line]:
    """The line after a cast that lost something."""
    parts: list[Piece] = [
        (f"{source} to {row.dtype}", "dim"),
        (f"{row.count - row.exact} of {row.count} values changed", "warn"),
    ]
    if row.max_absolute:
        parts.append((f"largest error {number(row.max_absolute)}", "warn"))
        parts.append((f"relative {number(row.max_relative)}", "warn"))
        parts.append((f"{number(row.max_ulp)} ulp", "warn"))
    counts = (
        ("overflowed", row.overflowed),
        ("became subnormal", row.subnormal),
        ("went to zero", row.zeroed),
    )
    parts += [(f"{count} {what}", "bad") for what, count in counts if count]
    if row.sqnr_db is not None and row.count > 1:
        parts.append((f"SQNR {row.sqnr_db:.3g} dB", "dim"))
    return joined(parts, width)


def broadcast_lines(result: results.BroadcastResult, width: int) -> list[Line]:
    """The shapes under each other from the right, the failing dimension marked."""
    named = [(row.text, row.shape) for row in result.rows]
    if result.shape is not None:
        named.append(("result", result.shape))
    longest = max(len(text) for text, _ in named)
    columns = columns_of([shape for _, shape in named])
    lines: list[Line] = [
        [
            (f"{text:<{longest}}  ", "head" if text == "result" else "name"),
            (sizes_text(shape, columns), ""),
        ]
        for text, shape in named
    ]
    if result.failing_dim is not None:
        at = longest + 2 + start_of(result.failing_dim, columns)
        mark = "^" * columns[result.failing_dim]
        rule = "sizes must be equal or 1"
        title = f"{mark} dimension {result.failing_dim}: "
        lines.append([(" " * at, ""), (title, "mark")])
        if at + len(title) + len(rule) <= width:
            lines[-1].append((rule, ""))
        else:
            lines.append([(f"  {rule}", "")])
    return lines


LINES: dict[type, Callable[[Any, int], list[Line]]] = {
    results.LayoutResult: layout_lines,
    results.GradientsResult: gradient_lines,
    results.PrecisionResult: precision_lines,
    results.BroadcastResult: broadcast_lines,
}
