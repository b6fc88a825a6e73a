"""Sorting, choosing the largest, distinct values, and searching in sorted sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine import dtypes, selection
from engine import layout as layouts
from engine.errors import (
    DtypeError,
    NoDataError,
    TensorIndexError,
    TensorRuntimeError,
)
from engine.kinds import kernel, made, working
from engine.kinds.composite import composite, overloaded
from engine.kinds.missing import unwritten
from engine.kinds.reduction import check_takes
from engine.layout import wrap_dim
from engine.ops.extrema import gradient_to_picked
from engine.registry import ops

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.parameter_types import Dim
    from engine.tensor import Tensor


# In rows longer than this ties are left in stable order: PyTorch's order among equals would cost
# a sort in Python.
_LONGEST_ROW = 4096

# So few elements are quicker chosen one by one.
_FEW = 64


def order_along(xp: Any, x: Any, axis: int, descending: bool) -> Any:
    """The stable order of the elements along ``axis``; nan is the largest."""
    if not descending:
        return xp.argsort(x, axis=axis, kind="stable")
    back = xp.flip(xp.argsort(xp.flip(x, axis), axis=axis, kind="stable"), axis)
    return x.shape[axis] - 1 - back


def _picked_gradient(g: Any, y: Any, input_shape: Any, dim: int) -> Any:
    return gradient_to_picked(g, y, input_shape, dim, True)


def _order_as_left(xp: Any, x: Any, axis: int, descending: bool) -> Any:
    """The order that PyTorch's unstable sort leaves: that of introsort where there are ties."""
    n = x.shape[axis]
    if n <= selection.SHORT:
        return order_along(xp, x, axis, descending)
    order = xp.argsort(x, axis=axis)
    there = xp.moveaxis(xp.take_along_axis(x, order, axis=axis), axis, -1)
    same = (there[..., 1:] == there[..., :-1]) | (there[..., :-1] != there[..., :-1])
    ties = same.any(axis=-1)
    if descending:
        order = xp.flip(order, axis)
    if not ties.any():
        return order
    rows = xp.moveaxis(x, axis, -1).reshape(-1, n)
    moved = xp.moveaxis(order, axis, -1)
    flat = moved.reshape(-1, n).copy()
    for i in xp.flatnonzero(ties):
        flat[i] = _introsorted(xp, rows[i], descending)
    return xp.moveaxis(flat.reshape(moved.shape), -1, axis)


def _introsorted(xp: Any, row: Any, descending: bool) -> Any:
    if len(row) > _LONGEST_ROW:
        return order_along(xp, row, 0, descending)
    places = list(range(len(row)))
    by = selection.greater_by if descending else selection.less_by
    selection.sort(places, 0, len(places), by(row.tolist()))
    return places


def _sorted(input: Tensor, dim: int, descending: bool, stable: bool | None) -> tuple[Made, ...]:
    d = wrap_dim(dim, input.ndim)
    if input.dtype.is_complex:
        raise DtypeError(" Sort does not support complex dtypes on CPU")
    layout = layouts.preserved(input.layout)

    def run(xp: Any) -> Any:
        x = working(input)
        if not x.ndim:
            return [x, xp.zeros((), "int64")]
        order = (order_along if stable else _order_as_left)(xp, x, d, descending)
        return [xp.take_along_axis(input.array, order, axis=d), order]

    return made(input.dtype, layout, run), made(dtypes.int64, layout, run)


@kernel(
    name="_plain.sort",
    vjp=_picked_gradient,
    fields=("values", "indices"),
    function=False,
    method=False,
)
def _sort(input: Tensor, dim: Dim = -1, descending: bool = False) -> tuple[Made, ...]:
    return _sorted(input, dim, descending, False)


@kernel(
    name="_stable.sort",
    vjp=_picked_gradient,
    fields=("values", "indices"),
    function=False,
    method=False,
)
def _sort_stable(
    input: Tensor, *, stable: bool | None, dim: Dim = -1, descending: bool = False
) -> tuple[Made, ...]:
    return _sorted(input, dim, descending, stable)


@overloaded(
    (
        "_plain.sort",
        "(Tensor input, *, bool stable, int dim = -1, bool descending = False, tuple of Tensors "
        "out = None)",
    ),
    (
        "_stable.sort",
        "(Tensor input, int dim = -1, bool descending = False, *, tuple of Tensors out = None)",
    ),
    example="sort(tensor([3., 1., 2.]))",
)
def sort(
    input: Tensor, dim: Dim = -1, descending: bool = False, *, stable: bool = False
) -> tuple[Tensor, ...]:
    """The elements of each row in order, and where they came from.

    nan is larger than everything. Equals keep their order with ``stable``, or in short rows.
    """
    raise AssertionError("bound, not called")


@kernel(example="argsort(tensor([3., 1., 2.]))", out=False)
def argsort(
    input: Tensor, dim: Dim = -1, descending: bool = False, *, stable: bool = False
) -> Made:
    """Where the elements of each row in order come from."""
    both = _sorted(input, dim, descending, stable)[1]
    return made(dtypes.int64, both.layout, lambda xp: both.run(xp)[1])


@composite(example="msort(tensor([[3., 1.], [1., 2.]]))")
def msort(input: Tensor) -> Tensor:
    """The elements in order along the first dimension."""
    values: Tensor = ops["_plain.sort"].function(input, 0)[0]
    return values


def _leading(xp: Any, x: Any, k: int, axis: int, largest: bool, in_order: bool) -> Any:
    """Where the ``k`` largest (or smallest) elements along the axis are."""
    n = x.shape[axis]
    rows = xp.moveaxis(x, axis, -1)
    if x.size <= _FEW:
        places = [_chosen(row, k, largest, in_order) for row in rows.reshape(-1, n).tolist()]
        return xp.moveaxis(xp.asarray(places).reshape(*rows.shape[:-1], k), -1, axis)
    if k * 8 < n:
        part = xp.argpartition(rows, n - k if largest else k - 1, axis=-1)
        some = xp.sort(part[..., n - k :] if largest else part[..., :k], axis=-1)
        order = order_along(xp, xp.take_along_axis(rows, some, axis=-1), -1, largest)
        at = xp.take_along_axis(some, order, axis=-1)
    else:
        at = order_along(xp, rows, -1, largest)[..., :k]
    if n <= _LONGEST_ROW:
        at = _as_chosen(xp, rows, at, k, largest, in_order)
    return xp.moveaxis(at, -1, axis)


def _as_chosen(xp: Any, rows: Any, at: Any, k: int, largest: bool, in_order: bool) -> Any:
    """``at`` with PyTorch's choice in those rows where there is a choice."""
    if in_order:
        picked = xp.take_along_axis(rows, at, axis=-1)
        last = picked[..., -1:]
        choice = (rows == last).sum(axis=-1) > (picked == last).sum(axis=-1)
        after, before = picked[..., 1:], picked[..., :-1]
        choice |= ((after == before) | (after != after)).any(axis=-1)
        choice |= (last != last)[..., 0]
        if not choice.any():
            return at
    else:
        choice = xp.ones(at.shape[:-1], bool)
    flat = rows.reshape(-1, rows.shape[-1])
    result = at.reshape(-1, k).copy()
    for i in xp.flatnonzero(choice):
        result[i] = _chosen(flat[i].tolist(), k, largest, in_order)
    return result.reshape(at.shape)


def _chosen(values: list[Any], k: int, largest: bool, in_order: bool) -> list[int]:
    """The places of the leading ``k`` values in the order that PyTorch leaves them in."""
    places = list(range(len(values)))
    if in_order and len(set(values)) == len(values) and all(v == v for v in values):
        return sorted(places, key=values.__getitem__, reverse=largest)[:k]
    less = selection.greater_by(values) if largest else selection.less_by(values)
    if k * 64 <= len(values):
        selection.partial_sort(places, 0, k, len(values), less)
        return places[:k]
    selection.nth_element(places, 0, k - 1, len(values), less)
    if in_order:
        selection.sort(places, 0, k - 1, less)
    return places[:k]


@kernel(
    vjp=lambda g, y, input_shape, dim: gradient_to_picked(g, y, input_shape, dim, True),
    fields=("values", "indices"),
    example="topk(tensor([3., 1., 2.]), 2)",
)
def topk(
    input: Tensor, k: int, dim: Dim = -1, largest: bool = True, sorted: bool = True
) -> tuple[Made, ...]:
    """The ``k`` largest (or smallest) elements along ``dim`` and their places.

    nan is larger than everything. Which of equal elements are chosen is not specified.
    """
    d = wrap_dim(dim, input.ndim)
    shape = input.layout.shape
    if not 0 <= k <= (shape[d] if shape else 1):
        raise TensorRuntimeError("selected index k out of range")
    if input.dtype.is_complex:
        raise DtypeError(" topk does not support complex dtypes on CPU")
    if input.dtype.is_bool:
        raise DtypeError("topk does not support bool dtypes on CPU")
    check_takes("if", "topk_cpu", input.dtype)
    if shape:
        shape = (*shape[:d], k, *shape[d + 1 :])

    def run(xp: Any) -> Any:
        x = working(input)
        if not x.ndim or not k or not x.size:
            return [x.reshape(-1)[: 0 if x.ndim else 1].reshape(shape), xp.zeros(shape, "int64")]
        at = _leading(xp, x, k, d, largest, sorted)
        return [xp.take_along_axis(input.array, at, axis=d), at]

    return made(input.dtype, shape, run), made(dtypes.int64, shape, run)


def _with_dim(input: Tensor, dim: int) -> tuple[int, Any]:
    """The dimension, and the slices along it as rows."""
    if not input.ndim:
        raise TensorIndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    d = wrap_dim(dim, input.ndim)
    shape = input.layout.shape
    zeros = sum(n == 0 for n in shape)
    if shape[d] == 0 and zeros > 1:
        raise TensorRuntimeError(
            "Number of zero sized dimensions is more than one, so unique cannot be applied "
        )
    if shape[d] and zeros:
        raise TensorRuntimeError(
            "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied"
        )
    rows = np.moveaxis(input.array, d, 0)
    return d, rows.reshape(len(rows), rows.size // len(rows) if len(rows) else 0)


def _rows_back(input: Tensor, d: int, rows: Any) -> Made:
    """Slices in rows as a tensor again, laid out with the dimension outermost."""
    shape = list(input.layout.shape)
    shape[d] = len(rows)
    order = [d, *[i for i in range(len(shape)) if i != d]]
    if len(rows):
        layout = layouts.layout(tuple(shape), layouts.strides_along(shape, order))
    else:
        layout = layouts.contiguous(tuple(shape))
    moved = [shape[i] for i in order]
    return made(input.dtype, layout, lambda xp: np.moveaxis(rows.reshape(moved), 0, d))


def _parts(values: Made, inverse: Any, counts: Any, shape: tuple[int, ...]) -> Any:
    """What the flags ask for: the values alone, or a tuple with inverse and counts."""
    parts = [values]
    if inverse is not None:
        parts.append(made(dtypes.int64, shape, lambda xp: inverse))
    if counts is not None:
        parts.append(made(dtypes.int64, counts.shape, lambda xp: counts))
    return tuple(parts) if len(parts) > 1 else values


def _check_data(input: Tensor, name: str, dim: int | None) -> None:
    if input.array is None:
        raise NoDataError(name)
    check_takes("bifu", "unique" if dim is None else "unique_dim", input.dtype)


@kernel(
    vjp=unwritten("_unique2"),
    node="Unique2Backward0",
    data_dependent=True,
    out=False,
    example="unique(tensor([3, 1, 3]), return_counts=True)",
)
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: Dim | None = None,
) -> Any:
    """The distinct elements (or slices along ``dim``) in order; every nan is distinct."""
    _check_data(input, "_unique2", dim)
    if dim is None:
        flat = working(input).reshape(-1)
        found = np.unique(flat, return_inverse=True, return_counts=True, equal_nan=False)
        values, inverse, counts = found
        plan = made(input.dtype, values.shape, lambda xp: values)
        shape = input.layout.shape
    else:
        d, rows = _with_dim(input, dim)
        order = np.lexsort(rows.T[::-1]) if rows.size else np.arange(len(rows))
        ordered = rows[order]
        starts, group, counts = _runs(ordered)
        inverse = np.empty(len(rows), "int64")
        inverse[order] = group
        plan = _rows_back(input, d, ordered[starts])
        shape = (len(rows),)
    return _parts(
        plan, inverse if return_inverse else None, counts if return_counts else None, shape
    )


def _runs(rows: Any) -> tuple[Any, Any, Any]:
    """Where runs of equal rows start, the run of each row, and the lengths of the runs."""
    n = len(rows)
    fresh = np.ones(n, bool)
    if n > 1:
        differs = rows[1:] != rows[:-1]
        fresh[1:] = differs.any(axis=1) if rows.ndim > 1 else differs
    starts = np.flatnonzero(fresh)
    return starts, np.cumsum(fresh) - 1, np.diff(np.append(starts, n))


@kernel(
    vjp=unwritten("unique_consecutive"),
    data_dependent=True,
    out=False,
    example="unique_consecutive(tensor([1, 1, 2, 1]))",
)
def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: Dim | None = None,
) -> Any:
    """The elements (or slices along ``dim``) without those equal to the one before."""
    _check_data(input, "unique_consecutive", dim)
    if dim is None:
        rows = input.array.reshape(-1)
        starts, group, counts = _runs(rows)
        values = rows[starts]
        plan = made(input.dtype, values.shape, lambda xp: values)
        shape = input.layout.shape
    else:
        d, rows = _with_dim(input, dim)
        starts, group, counts = _runs(rows)
        plan = _rows_back(input, d, rows[starts])
        shape = (len(rows),)
    return _parts(plan, group if return_inverse else None, counts if return_counts else None, shape)
