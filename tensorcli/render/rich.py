"""Results for a terminal: the plain text, and beside it what a person would ask next, in colour.

The only module that imports rich, and only when there is something to colour.
"""

from __future__ import annotations

from engine.tape import shown_node
from tensorcli import results
from tensorcli.render import plain
from tensorcli.render.explanation import number, size_text, tuple_text
from tensorcli.render.lines import joined, merged, plain_text, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from tensorcli.render.lines import Line, Piece
    from tensorcli.value_results import HeatmapResult

STYLES = {
    "dim": "dim",
    "head": "dim",
    "name": "cyan",
    "good": "green",
    "fix": "green",
    "warn": "yellow",
    "bad": "bold red",
    "strong": "bold",
    "mark": "bold red",
    "label": "cyan",
}


def text(result: results.Result, width: int, file: str | None, colour: bool) -> str:
    """A result as text for a terminal, final newline included."""
    kind = type(result)
    if kind is results.TensorResult:
        line = tensor_line(result, width)  # type: ignore[arg-type]  # its type was just compared
        return plain.text(result, width, file) + painted(line, colour)
    if kind is results.PrintResult or kind is results.ValueResult:
        return visible(plain.text(result, width, file), keep="\n\t")
    if kind is results.ErrorResult:
        from tensorcli.render.snippet import diagnostic_lines

        assert isinstance(result, results.ErrorResult)
        diagnostic = diagnostic_lines(result.diagnostic, result.source, file, width, wraps=True)
        return painted(diagnostic, colour)
    if kind.__name__ == "HeatmapResult" and not colour:
        result.ascii = True  # type: ignore[attr-defined]  # half blocks are nothing but colours
    return painted(plain.explanation_lines(result, width, file), colour)


def image(result: HeatmapResult, width: int, protocol: str, colour: bool) -> str:
    """A heat map as a picture, its legend below."""
    from tensorcli.render.images import PROTOCOLS
    from tensorcli.render.pictures import legend

    return PROTOCOLS[protocol](result) + painted(legend(result, result.rows, width), colour)


def painted(lines: Sequence[Line], colour: bool) -> str:
    """The lines with their roles as colours."""
    if not colour:
        return plain_text(lines)
    from io import StringIO

    from rich.console import Console
    from rich.text import Text

    buffer = StringIO()
    console = Console(
        file=buffer,
        force_terminal=True,
        color_system="256",
        width=10_000,
        legacy_windows=False,
    )
    for line in lines:
        assembled = Text(no_wrap=True)
        for piece, role in merged(line):
            # What is no role is a style itself: the colours of a heat map.
            assembled.append(piece, STYLES.get(role, role or None))
        assembled.rstrip()
        console.print(assembled, soft_wrap=True, markup=False, highlight=False, emoji=False)
    return buffer.getvalue()


def tensor_line(result: results.TensorResult, width: int) -> list[Line]:
    """The dim line under a tensor, wrapped between its parts where the terminal is narrow."""
    return joined(_parts(result.value, result.names), width)


def _parts(tensor: Any, names: Any) -> Iterable[Piece]:
    from tensorcli.explain.layout import view_of
    from tensorcli.explain.summary import not_finite

    layout = tensor.layout
    yield f"{tensor.dtype.name} {list(layout.shape)}", "dim"
    if not layout.contiguous:
        yield f"strides {tuple_text(layout.strides)}", "dim"
        yield "not contiguous", "dim"
    base = view_of(tensor, names)
    if base is not None:
        yield f"view of {visible(base)}", "dim"
    yield str(tensor.device), "dim"
    yield size_text(layout.numel * tensor.dtype.itemsize), "dim"
    if layout.numel > MOST_SEEN:
        yield from _statistics(tensor)
    if tensor.requires_grad:
        node = shown_node(tensor)
        yield "requires grad" if node is None else f"grad by {node.type_name}", "dim"
    nan, inf = not_finite(tensor)
    if nan:
        yield "NaN!", "bad"
    if inf:
        yield "Inf!", "bad"


MOST_SEEN = 16
"""Elements that people take in by reading them; of more they are told in numbers."""


def _statistics(tensor: Any) -> Iterable[Piece]:
    """Range, mean, deviation, how the values spread, and how many are zero."""
    from tensorcli.explain.summaries import summarise
    from tensorcli.render.pictures import bars

    found = summarise(tensor, "")
    if found.minimum is None or found.maximum is None:
        return
    yield f"{number(found.minimum)} .. {number(found.maximum)}", "dim"
    if found.minimum == found.maximum:
        return
    if found.deviation is not None:
        yield f"mean {number(found.mean)} ± {number(found.deviation)}", "dim"
    yield bars(found.counts), "dim"
    if found.zeros:
        yield f"{100 * found.zeros / found.sampled:.3g} % zero", "dim"
    if found.sampled < found.count:
        yield f"of a sample of {found.sampled}", "dim"
