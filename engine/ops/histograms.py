"""Counting values: by number, and in bins of one or several dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine import dtypes
from engine.errors import (
    DtypeNotImplementedError,
    NoDataError,
    TensorRuntimeError,
)
from engine.kinds import kernel, made, working
from engine.kinds.composite import composite
from engine.kinds.missing import NODE, no_derivative
from engine.kinds.reduction import check_takes
from engine.registry import F
from engine.return_types import named
from engine.tensor import Tensor, from_array

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.parameter_types import Scalar


@kernel(
    vjp={"weights": no_derivative("bincount")},
    node=NODE,
    data_dependent=True,
    out=False,
    example="bincount(tensor([0, 1, 1, 3]))",
)
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Made:
    """How often each number from 0 up occurs, or the sum of the weights at it."""
    if minlength < 0:
        raise TensorRuntimeError("minlength should be >= 0")
    if input.array is None:
        raise NoDataError("bincount")
    if input.dtype.category != dtypes.INT:
        raise DtypeNotImplementedError(
            f"\"bincount_cpu\" not implemented for '{input.dtype.title}'"
        )
    x = input.array
    if input.ndim == 1 and not x.size:
        return made(dtypes.int64, (minlength,), lambda xp: xp.zeros(minlength, "int64"))
    if input.ndim != 1 or (x.size and x.min() < 0):
        raise TensorRuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None:
        counts = np.bincount(x.astype("int64"), minlength=minlength)
        return made(dtypes.int64, counts.shape, lambda xp: counts)
    if weights.layout.shape != input.layout.shape:
        raise TensorRuntimeError("weights should be 1-d and have the same length as input")
    final = dtypes.float32 if weights.dtype is dtypes.float32 else dtypes.float64
    sums = np.zeros(max(minlength, int(x.max()) + 1), final.np)
    np.add.at(sums, x.astype("int64"), working(weights).astype(final.np))
    return made(final, sums.shape, lambda xp: sums)


def _check_bins(bins: int, dim: int = 0) -> None:
    if bins <= 0:
        raise TensorRuntimeError(
            f"torch.histogram(): bins must be > 0, but got {bins} for dimension {dim}"
        )


@kernel(example="histc(tensor([1., 2., 1.]), 4, 0, 3)")
def histc(input: Tensor, bins: int = 100, min: Scalar = 0, max: Scalar = 0) -> Made:
    """How many elements fall into each of ``bins`` equal bins from ``min`` to ``max``.

    Equal bounds (the default) mean those of the data; what lies outside is not counted.
    """
    if input.dtype.is_complex:
        check_takes("f", "aminmax_cpu", input.dtype)
    if input.dtype.is_bool:
        check_takes("f", "linspace_cpu", input.dtype)
    _check_bins(bins)
    if max < min:
        raise TensorRuntimeError("torch.histc: max must be larger than min")
    check_takes("f", "histogram_cpu", input.dtype)

    def run(xp: Any) -> Any:
        x = working(input).reshape(-1)
        low, high = x.dtype.type(min), x.dtype.type(max)
        if low == high and x.size:
            low, high = x.min(), x.max()
        if low == high:
            low, high = low - 1, high + 1
        if not (xp.isfinite(low) and xp.isfinite(high)):
            raise TensorRuntimeError(
                f"torch.histc: range of [{_written(low)}, {_written(high)}] is not finite"
            )
        inside = x[(x >= low) & (x <= high)]
        # Each step is rounded to the input's own dtype, which decides about bounds of bins.
        own = input.dtype.np
        inside, first, width = inside.astype(own), own.type(low), own.type(high) - own.type(low)
        at = ((inside - first) * own.type(bins) / width).astype("int64")
        return xp.bincount(xp.minimum(at, bins - 1), minlength=bins).astype(x.dtype)

    return made(input.dtype, (bins,), run)


def _written(value: Any) -> str:
    return "-nan" if value != value else f"{value:g}"


def _outer_edges(columns: Any, limits: Any) -> list[tuple[float, float]]:
    """The lowest and highest edge of each dimension: those given, or those of the data."""
    edges: list[tuple[float, float]] = []
    n = columns.shape[1]
    if limits is not None and len(limits) != 2 * n:
        raise TensorRuntimeError(
            f"torch.histogramdd: for a {n}-dimensional histogram range should have {2 * n} "
            f"elements, but got {len(limits)}"
        )
    for d in range(n):
        if limits is not None:
            low, high = float(limits[2 * d]), float(limits[2 * d + 1])
            if low > high:
                raise TensorRuntimeError(
                    f"torch.histogramdd: min should not exceed max, but got min {low:g} max "
                    f"{high:g} for dimension {d}"
                )
        elif len(columns):
            low, high = float(columns[:, d].min()), float(columns[:, d].max())
        else:
            low, high = 0.0, 1.0
        if not (np.isfinite(low) and np.isfinite(high)):
            raise TensorRuntimeError(
                f"torch.histogramdd: dimension {d}'s range [{low:g}, {high:g}] is not finite"
            )
        edges.append((low - 0.5, high + 0.5) if low == high else (low, high))
    return edges


def _counted(
    rows: Tensor, edges: list[Tensor], weight: Tensor | None, density: bool, shape: Any
) -> Tensor:
    """The histogram of ``rows`` (points by coordinates); points outside are not counted."""
    if weight is not None and weight.layout.shape != shape:
        raise TensorRuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the "
            "input tensor excluding its innermost dimension, but got input with shape "
            f"{[*shape, rows.layout.shape[1]]} and weight with shape "
            f"{list(weight.layout.shape)}"
        )
    if rows.dtype not in (dtypes.float32, dtypes.float64):
        raise DtypeNotImplementedError(f"\"histogramdd\" not implemented for '{rows.dtype.title}'")
    x = rows.array
    sizes = [e.layout.numel - 1 for e in edges]
    inside = np.ones(len(x), bool)
    places = []
    for d, e in enumerate(edges):
        at = np.searchsorted(e.array, x[:, d], side="right") - 1
        inside &= (x[:, d] >= e.array[0]) & (x[:, d] <= e.array[-1])
        places.append(np.clip(at, 0, sizes[d] - 1))
    flat = np.ravel_multi_index([p[inside] for p in places], sizes)
    weights = None if weight is None else weight.array.reshape(-1)[inside].astype("float64")
    counts = np.bincount(flat, weights, minlength=int(np.prod(sizes))).astype(x.dtype)
    hist = counts.reshape(sizes)
    if density:
        hist = hist / hist.sum()
        for d, e in enumerate(edges):
            widths = np.diff(e.array)
            hist = hist / widths.reshape((-1,) + (1,) * (hist.ndim - 1 - d))
    return from_array(np.ascontiguousarray(hist.astype(x.dtype)))


def _check_edges(rows: Tensor, edges: list[Tensor]) -> None:
    for d, e in enumerate(edges):
        if e.dtype is not rows.dtype:
            raise TensorRuntimeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but "
                f"got input with dtype {rows.dtype.cpp} and bins for dimension {d} with dtype "
                f"{e.dtype.cpp}"
            )
        if e.ndim != 1:
            raise TensorRuntimeError(
                "torch.histogramdd: bins tensor should have one dimension, but got "
                f"{e.ndim} dimensions in the bins tensor for dimension {d}"
            )
        if e.layout.numel == 0:
            raise TensorRuntimeError(
                "torch.histogramdd: bins tensor should have at least 1 element, but got 0 "
                f"elements in the bins tensor for dimension {d}"
            )


def _even_edges(rows: Tensor, bins: list[int], limits: Any) -> list[Tensor]:
    for d, n in enumerate(bins):
        _check_bins(n, d)
    if rows.dtype not in (dtypes.float32, dtypes.float64):
        raise DtypeNotImplementedError(f"\"histogramdd\" not implemented for '{rows.dtype.title}'")
    outer = _outer_edges(rows.array, limits)
    return [
        F.linspace(low, high, n + 1, dtype=rows.dtype)
        for (low, high), n in zip(outer, bins, strict=True)
    ]


@composite(
    data_dependent=True, out=False, example="histogram(tensor([1., 2., 1.]), 4, range=(0., 3.))"
)
def histogram(
    input: Tensor,
    bins: Any,
    *,
    range: Any = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """Counts (or sums of weights) in bins, and the bins' edges.

    ``bins`` is a number of equal bins over ``range`` or the data's, or the edges themselves; the
    last bin includes its upper edge.
    """
    if input.array is None:
        raise NoDataError(f"histogram.bin{'s_tensor' if isinstance(bins, Tensor) else '_ct'}")
    rows = input.detach().reshape(-1, 1)
    if isinstance(bins, Tensor):
        edges = [bins]
        _check_edges(rows, edges)
    else:
        edges = _even_edges(rows, [bins], range)
    flat = None if weight is None else weight.reshape(-1)
    shape = (rows.layout.shape[0],)
    hist = _counted(rows, edges, flat, density, shape)
    return named("histogram", ("hist", "bin_edges"))((hist, edges[0]))


@composite(
    data_dependent=True,
    out=False,
    method=False,
    example="histogramdd(tensor([[0., 1.], [1., 0.]]), bins=2)",
)
def histogramdd(
    input: Tensor,
    bins: Any,
    range: Any = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """Counts in bins of several dimensions; the last dimension of ``input`` is the coordinates."""
    if input.ndim < 2:
        raise TensorRuntimeError(
            f"torch.histogramdd: input tensor should have at least 2 dimensions, but got "
            f"{input.ndim}"
        )
    n = input.layout.shape[-1]
    rows = input.detach().reshape(-1, n)
    if isinstance(bins, int):
        bins = [bins] * n
    if len(bins) != n:
        raise TensorRuntimeError(
            f"torch.histogramdd: The size of bins must be equal to the innermost dimension of the "
            f"input, got {len(bins)} != {n}"
        )
    if input.array is None:
        raise NoDataError(f"_histogramdd_{'from_bin_tensors' if _are_edges(bins) else 'bin_edges'}")
    if _are_edges(bins):
        edges = list(bins)
        _check_edges(rows, edges)
    else:
        edges = _even_edges(rows, list(bins), range)
    hist = _counted(rows, edges, weight, density, input.layout.shape[:-1])
    return named("histogramdd", ("hist", "bin_edges"))((hist, tuple(edges)))


def _are_edges(bins: Any) -> bool:
    """Whether bins are given as edges rather than as numbers."""
    return len(bins) > 0 and all(isinstance(b, Tensor) for b in bins)
