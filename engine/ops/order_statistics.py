"""Medians, modes, elements of a rank, and quantiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine import dtypes, selection
from engine.errors import DtypeError, TensorRuntimeError
from engine.kinds import kernel, made, reduction, working
from engine.kinds.composite import composite, overloaded
from engine.kinds.reduction import check_not_empty, check_takes, reduced_shape
from engine.kinds.twins import as_numbered
from engine.layout import wrap_dim
from engine.ops.extrema import gradient_to_picked, gradient_to_ties
from engine.registry import F
from engine.tensor import Tensor

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.parameter_types import Dim, Operand

# Rows longer than this are not searched for PyTorch's choice among ties: the first one is taken.
_LONGEST_ROW = 4096


def _ranked(xp: Any, x: Any, axis: int, rank: Any) -> Any:
    """The places (axis kept at size 1) of the elements of ``rank`` in stable order."""
    return xp.take_along_axis(xp.argsort(x, axis=axis, kind="stable"), rank, axis=axis)


def _quick_selected(xp: Any, x: Any, axis: int, rank: Any) -> Any:
    """As ``_ranked``, PyTorch's quick select choosing among ties."""
    at = _ranked(xp, x, axis, rank)
    value = xp.take_along_axis(x, at, axis=axis)
    ties = ((x == value) | ((x != x) & (value != value))).sum(axis=axis, keepdims=True) > 1
    n = x.shape[axis]
    if n > _LONGEST_ROW or not ties.any():
        return at
    rows = xp.moveaxis(x, axis, -1).reshape(-1, n)
    moved = xp.moveaxis(at, axis, -1)
    flat, ranks = moved.reshape(-1).copy(), xp.moveaxis(rank, axis, -1).reshape(-1)
    for i in xp.flatnonzero(xp.moveaxis(ties, axis, -1)):
        flat[i] = selection.quick_select(rows[i].tolist(), int(ranks[i]))
    return xp.moveaxis(flat.reshape(moved.shape), -1, axis)


def _middle(xp: Any, x: Any, axis: int, skip_nan: bool) -> Any:
    n = x.shape[axis]
    nan = x != x
    some = nan.sum(axis=axis, keepdims=True)
    rank = xp.maximum(n - 1 - some, 0) // 2 if skip_nan else xp.full(some.shape, (n - 1) // 2)
    at = _ranked(xp, x, axis, rank)
    if not skip_nan and nan.any():
        first = xp.expand_dims(xp.argmax(nan, axis=axis), axis)
        at = xp.where(some > 0, first, at)
    return at


def _picked(input: Tensor, d: int, keepdim: bool, places: Any) -> tuple[Made, ...]:
    """Values and indices of what ``places(xp, x)`` (dimension kept) picks along a dimension."""
    shape = reduced_shape(input.layout.shape, (d,), keepdim)

    def run(xp: Any) -> Any:
        x = input.array
        if not x.ndim or x.size == 0:
            return [x.reshape(shape), xp.zeros(shape, "int64")]
        at = places(xp, working(input))
        return [xp.take_along_axis(x, at, axis=d), at]

    return made(input.dtype, shape, run), made(dtypes.int64, shape, run)


def _nan_as(xp: Any, dtype: Any) -> Any:
    """nan converted to a dtype that has none, as C does."""
    with xp.errstate(invalid="ignore"):
        return xp.asarray(np.nan).astype(dtype)


def _medians(name: str) -> None:
    """The two overloads of median or nanmedian."""
    skip_nan = name == "nanmedian"

    def of_all(xp: Any, x: Any, axes: Any) -> Any:
        flat = x.reshape(-1)
        if flat.size == 0:
            return xp.asarray(np.nan) if x.dtype.kind == "f" else _nan_as(xp, x.dtype)
        nan = int((flat != flat).sum())
        if nan and not skip_nan:
            return x.dtype.type(np.nan)
        left = flat.size - nan
        rank = max(left - 1, 0) // 2
        return xp.partition(flat, rank)[rank]

    @reduction(
        kernel=of_all,
        name=f"_all.{name}",
        takes="if",
        takes_empty=True,
        stub="median_cpu",
        vjp=lambda g, y, input: gradient_to_ties(g, y, input),
        function=False,
        method=False,
    )
    def whole(input: Tensor) -> Tensor: ...

    @kernel(
        name=f"_dim.{name}",
        vjp=gradient_to_picked,
        node=f"{name.title()}Backward1",
        fields=("values", "indices"),
        function=False,
        method=False,
    )
    def along(input: Tensor, dim: Dim, keepdim: bool = False) -> tuple[Made, ...]:
        d = wrap_dim(dim, input.ndim)
        check_not_empty("median", input.layout, (d,))
        check_takes("if", "median_out", input.dtype)
        return _picked(input, d, keepdim, lambda xp, x: _middle(xp, x, d, skip_nan))


for _name in ("median", "nanmedian"):
    _medians(_name)

_FORMS = (
    "(Tensor input)",
    "(Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None)",
)


@overloaded(
    ("_all.median", _FORMS[0]),
    ("_dim.median", _FORMS[1]),
    example="median(tensor([3., 1., 2., 4.]))",
)
def median(input: Tensor, dim: Dim | None = None, keepdim: bool = False) -> Any:
    """The median (the lower one of two); with ``dim`` the medians and their places.

    A nan makes it nan; of nothing it is nan.
    """


@overloaded(
    ("_all.nanmedian", _FORMS[0]),
    ("_dim.nanmedian", _FORMS[1]),
    example="nanmedian(tensor([3., nan, 2.]))",
)
def nanmedian(input: Tensor, dim: Dim | None = None, keepdim: bool = False) -> Any:
    """The median of what is not nan; with ``dim`` the medians and their places."""


@kernel(
    vjp=gradient_to_picked,
    fields=("values", "indices"),
    example="kthvalue(tensor([3., 1., 2.]), 2)",
)
def kthvalue(input: Tensor, k: int, dim: Dim = -1, keepdim: bool = False) -> tuple[Made, ...]:
    """The ``k``-th smallest element (counted from 1) along ``dim`` and its place; nan is last."""
    d = wrap_dim(dim, input.ndim)
    check_not_empty("kthvalue", input.layout, (d,))
    n = input.layout.shape[d] if input.ndim else 1
    if not 0 < k <= n:
        raise TensorRuntimeError(f"kthvalue(): selected number k out of range for dimension {d}")
    if input.ndim:
        check_takes("if", "kthvalue_cpu", input.dtype)

    def places(xp: Any, x: Any) -> Any:
        rank = xp.full([1 if i == d else size for i, size in enumerate(x.shape)], k - 1)
        return _quick_selected(xp, x, d, rank)

    return _picked(input, d, keepdim, places)


def _mode_of(values: list[Any]) -> int:
    """The last place, in sorted order, of the most frequent value; the smallest of equals."""
    places = list(range(len(values)))
    selection.sort(places, 0, len(places), lambda i, j: values[i] < values[j])
    best = found = times = 0
    for at, place in enumerate(places):
        times += 1
        if at + 1 == len(places) or values[place] != values[places[at + 1]]:
            if times > best:
                best, found = times, place
            times = 0
    return found


@kernel(
    vjp=gradient_to_picked,
    fields=("values", "indices"),
    example="mode(tensor([1., 2., 2., 3.]))",
)
def mode(input: Tensor, dim: Dim = -1, keepdim: bool = False) -> tuple[Made, ...]:
    """The most frequent element along ``dim`` (the smallest of equals) and a place of it."""
    d = wrap_dim(dim, input.ndim)
    check_not_empty("mode", input.layout, (d,))
    if input.ndim and input.layout.numel:
        check_takes("bif", "mode_cpu", input.dtype)

    def places(xp: Any, x: Any) -> Any:
        rows = xp.moveaxis(x, d, -1)
        at = [_mode_of(row.tolist()) for row in rows.reshape(-1, rows.shape[-1])]
        return xp.moveaxis(xp.asarray(at, "int64").reshape(*rows.shape[:-1], 1), -1, d)

    return _picked(input, d, keepdim, places)


_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _check_quantile(name: str, input: Tensor, q: Any, interpolation: str) -> None:
    if interpolation not in _INTERPOLATIONS:
        raise TensorRuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, "
            f"but got {interpolation}"
        )
    if input.layout.numel == 0:
        raise TensorRuntimeError(f"{name}() input tensor must be non-empty")
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            raise TensorRuntimeError(f"{name}() q must be in the range [0, 1] but got {q:g}")
    elif q.ndim > 1:
        raise TensorRuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if input.dtype not in (dtypes.float32, dtypes.float64):
        raise DtypeError(f"{name}() input tensor must be either float or double dtype")
    if isinstance(q, Tensor):
        if q.dtype is not input.dtype:
            raise DtypeError(f"{name}() q tensor must be same dtype as the input tensor")
        if q.array is not None and not ((q.array >= 0) & (q.array <= 1)).all():
            raise TensorRuntimeError(f"{name}() q values must be in the range [0, 1]")


def _quantile(
    name: str, input: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str
) -> Any:
    d = None if dim is None else wrap_dim(dim, input.ndim)
    _check_quantile("quantile", input, q, interpolation)
    single = not isinstance(q, Tensor) or q.ndim == 0
    if not isinstance(q, Tensor):
        q = F.full((), float(q), dtype=input.dtype, device=input.device)
    whole = input.ndim
    rows = input.reshape(-1)
    if d is not None and whole:
        rows = input.unsqueeze(-1).transpose(d, -1)
    ordered = rows.sort()[0]
    last = rows.layout.shape[-1] - 1
    nan = ordered.detach().isnan()
    q = q.reshape(-1)
    if name == "nanquantile":
        ranks = q * (nan.logical_not().sum(-1, keepdim=True) - 1)
        ranks = ranks.masked_fill(ranks < 0, 0)
    else:
        ranks = (q * last).expand((*rows.layout.shape[:-1], q.layout.numel))
        ranks = ranks.masked_fill(nan.any(-1, keepdim=True), last)
    rounded = {"lower": F.floor, "higher": F.ceil, "nearest": F.round}.get(interpolation)
    if rounded is not None:
        ranks = rounded(ranks)
    below = ranks.to(dtypes.int64)
    values = ordered.gather(-1, below)
    if interpolation in ("linear", "midpoint"):
        weights = F.full_like(ranks, 0.5) if interpolation == "midpoint" else ranks - below
        above = ordered.gather(-1, ranks.ceil().to(dtypes.int64))
        values = F.lerp(values, above, weights)
    return _shaped(values, single, whole, d, keepdim)


def _shaped(values: Tensor, single: bool, ndim: int, d: int | None, keepdim: bool) -> Any:
    """Rows of quantiles brought to the result's shape: the quantiles first, if several."""
    if d is None or not ndim:
        if keepdim:
            values = values.reshape((1,) * ndim + (values.layout.shape[-1],))
    elif not keepdim:
        values = values.squeeze(d)
    return as_numbered(values.squeeze(-1), 3) if single else values.movedim(-1, 0)


@composite(example="quantile(tensor([1., 2., 4.]), 0.25)")
def quantile(
    input: Tensor,
    q: Operand,
    dim: Dim | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """The value below which a share ``q`` of the elements lies; several shares come first in the
    shape. A nan makes the quantile nan."""
    y: Tensor = _quantile("quantile", input, q, dim, keepdim, interpolation)
    return y


@composite(example="nanquantile(tensor([1., nan, 4.]), 0.5)")
def nanquantile(
    input: Tensor,
    q: Operand,
    dim: Dim | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """As ``quantile`` of what is not nan."""
    y: Tensor = _quantile("nanquantile", input, q, dim, keepdim, interpolation)
    return y
