"""summary(x), hist(x), plot(x), heatmap(x): a tensor in numbers, and what pictures show.

Above a size a regular sample is read, and the result says so.
"""

from __future__ import annotations

import numpy as np

from engine.tape import shown_node
from engine.tensor import Tensor
from tensorcli.explain.summary import doubles
from tensorcli.value_results import HeatmapResult, HistogramResult, PlotResult, SummaryResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

MOST_ELEMENTS = 1_000_000
"""Larger tensors are sampled."""

BINS = 12
MOST_POINTS = 160
MOST_ROWS, MOST_COLUMNS = 48, 76


def sampled(tensor: Tensor) -> Any:
    """The elements as float64 in one row: all, or every n-th of too many; None on meta."""
    array = tensor.array
    if array is None:
        return None
    if tensor.layout.numel <= MOST_ELEMENTS:
        return doubles(tensor).reshape(-1)
    step = -(-tensor.layout.numel // MOST_ELEMENTS)
    if not array.flags.c_contiguous:
        # Rows and columns by themselves: a flat sample would copy all of it first.
        steps = [1] * array.ndim
        while (
            int(np.prod([-(-n // s) for n, s in zip(array.shape, steps, strict=True)]))
            > MOST_ELEMENTS
        ):
            largest = int(np.argmax([n / s for n, s in zip(array.shape, steps, strict=True)]))
            steps[largest] += 1
        part = array[tuple(slice(None, None, s) for s in steps)].reshape(-1)
    else:
        part = array.reshape(-1)[::step]
    if tensor.dtype.is_complex:
        part = np.abs(part)
    return np.asarray(part).astype(np.float64)


def summarise(tensor: Tensor, name: str) -> SummaryResult:
    """Range, mean, deviation and the rest."""
    layout = tensor.layout
    values = sampled(tensor)
    minimum = maximum = mean = deviation = None
    zeros = nan = inf = read = 0
    counts: tuple[int, ...] = ()
    if values is not None and values.size:
        read = values.size
        nan, inf = int(np.isnan(values).sum()), int(np.isinf(values).sum())
        zeros = int((values == 0).sum())
        kept = values[np.isfinite(values)] if nan or inf else values
        if kept.size:
            minimum, maximum = float(kept.min()), float(kept.max())
            with np.errstate(all="ignore"):
                mean = float(kept.mean())
                deviation = float(kept.std(ddof=1)) if kept.size > 1 else None
            counts = histogram(kept, min(BINS, max(1, kept.size)))
    return SummaryResult(
        name=name,
        dtype=tensor.dtype.name,
        device=str(tensor.device),
        shape=tuple(layout.shape),
        stride=tuple(layout.strides),
        contiguous=layout.contiguous,
        bytes=layout.numel * tensor.dtype.itemsize,
        count=layout.numel,
        sampled=read,
        minimum=minimum,
        maximum=maximum,
        mean=mean,
        deviation=deviation,
        zeros=zeros,
        nan=nan,
        inf=inf,
        counts=counts,
        gradient=_gradient_state(tensor),
    )


def _gradient_state(tensor: Tensor) -> str:
    if not tensor.requires_grad:
        return "none required"
    node = shown_node(tensor)
    if node is not None:
        return f"by {node.type_name}"
    return "leaf, not computed yet" if tensor.grad is None else "leaf, has a gradient"


def histogram(values: Any, bins: int) -> tuple[int, ...]:
    """How many values lie in each of equal parts of their range."""
    low, high = float(values.min()), float(values.max())
    if low == high or not np.isfinite(high - low):
        return (int(values.size),)
    places = ((values - low) * (bins / (high - low))).astype(np.int64)
    return tuple(np.bincount(np.minimum(places, bins - 1), minlength=bins).tolist())


def hist(tensor: Tensor, name: str, bins: int | None, ascii: bool) -> HistogramResult:
    """Counts between equally spaced edges."""
    values = sampled(tensor)
    if values is None:
        raise TypeError("hist() needs a tensor with data, not one on meta")
    nan, inf = int(np.isnan(values).sum()), int(np.isinf(values).sum())
    kept = values[np.isfinite(values)]
    counts: tuple[int, ...] = ()
    edges: tuple[float, ...] = ()
    if kept.size:
        counts = histogram(kept, bins or BINS)
        low, high = float(kept.min()), float(kept.max())
        n = len(counts)
        edges = tuple(low + (high - low) * i / n for i in range(n)) + (high,)
    return HistogramResult(
        name, edges, counts, nan, inf, tensor.layout.numel, int(values.size), ascii
    )


def plot(values: Any, name: str, ascii: bool) -> PlotResult:
    """The points of a line; long vectors as the means of groups."""
    flat = np.asarray(values, dtype=np.float64).reshape(-1)
    points = flat
    if flat.size > MOST_POINTS:
        points = _blocks(flat, MOST_POINTS)
    kept = points[np.isfinite(points)]
    low = float(kept.min()) if kept.size else None
    high = float(kept.max()) if kept.size else None
    return PlotResult(name, _optional(points), int(flat.size), low, high, ascii)


def heatmap(tensor: Tensor, name: str, ascii: bool) -> HeatmapResult:
    """The matrix, or the means of its blocks. Raises TypeError for what is no matrix."""
    shape = tuple(tensor.layout.shape)
    if len(shape) not in (1, 2) or 0 in shape:
        raise TypeError(f"heatmap() takes a matrix, not a tensor of shape {list(shape)}")
    values = doubles(tensor)
    if values is None:
        raise TypeError("heatmap() needs a tensor with data, not one on meta")
    grid = values.reshape(1, -1) if len(shape) == 1 else values
    grid = _blocks(_blocks(grid, MOST_ROWS).T, MOST_COLUMNS).T
    kept = grid[np.isfinite(grid)]
    low = float(kept.min()) if kept.size else None
    high = float(kept.max()) if kept.size else None
    return HeatmapResult(name, shape, tuple(map(_optional, grid)), low, high, ascii)


def _blocks(grid: Any, most: int) -> Any:
    """Rows, at most so many: each the mean of its share.

    The shares lie evenly; array_split puts the larger ones first, which would bend the axis.
    """
    count = grid.shape[0]
    if count <= most:
        return grid
    edges = [i * count // most for i in range(most + 1)]
    return np.array([grid[a:b].mean(axis=0) for a, b in zip(edges, edges[1:], strict=False)])


def _optional(values: Any) -> tuple[float | None, ...]:
    return tuple(float(v) if np.isfinite(v) else None for v in values)


def numbers(value: object, text: str) -> Any:
    """What plot() draws: a vector, or a list of numbers and one-element tensors, such as losses."""
    if isinstance(value, Tensor):
        found = doubles(value)
        if found is None:
            raise TypeError("plot() needs a tensor with data, not one on meta")
        if value.layout.ndim > 1 and max(value.layout.shape) != value.layout.numel:
            raise TypeError(
                f"plot() takes a vector or a list of numbers, '{text}' has shape "
                f"{list(value.layout.shape)}"
            )
        return found
    if isinstance(value, list | tuple) and value:
        return np.array(_items(value, text))
    raise TypeError(f"plot() takes a vector or a list of numbers, not '{text}'")


def _items(values: Sequence[object], text: str) -> list[float]:
    found = []
    for value in values:
        if isinstance(value, Tensor) and value.layout.numel == 1 and value.array is not None:
            found.append(float(doubles(value).reshape(())))
        elif isinstance(value, int | float):
            found.append(float(value))
        else:
            raise TypeError(f"plot() takes a vector or a list of numbers, not '{text}'")
    return found
