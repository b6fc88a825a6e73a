"""The distances between the rows of two matrices, batch by batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import (
    DtypeNotImplementedError,
    TensorRuntimeError,
    TensorValueError,
)
from engine.kinds import kernel, made, working
from engine.kinds.missing import unwritten
from engine.kinds.results import common_device
from engine.layout import broadcast_shapes
from engine.registry import function, ops
from engine.signature import bind, parameters_of
from engine.tensor import Tensor

if TYPE_CHECKING:
    from engine.kinds import Made

_MODES = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": 1,
    "donot_use_mm_for_euclid_dist": 2,
}
# From this many rows on PyTorch takes Euclidean distances from a matrix product.
_MANY = 25


def _power_of_difference(xp: Any, difference: Any, p: float) -> Any:
    size = xp.abs(difference)
    if p == 0:
        return xp.sum(size != 0, axis=-1).astype(size.dtype)
    if p == 1:
        return size.sum(axis=-1)
    if p == 2:
        return xp.sqrt((size * size).sum(axis=-1))
    if p == float("inf"):
        return size.max(axis=-1)
    return (size**p).sum(axis=-1) ** size.dtype.type(1 / p)


def _slopes(xp: Any, g: Any, difference: Any, y: Any, p: float) -> Any:
    """The gradient for each element of the differences; 0 where a distance is 0."""
    g, y = g[..., None], y[..., None]
    size = xp.abs(difference)
    if p == 1:
        return xp.sign(difference) * g
    if p == float("inf"):
        return xp.sign(difference) * (size == y) * g
    if p == 2:
        return xp.where(y == 0, 0, g * difference / y)
    if p < 2:
        found = xp.sign(difference) * size ** (p - 1) * g / y ** (p - 1)
    else:
        found = difference * size ** (p - 2) * g / y ** (p - 1)
    return xp.where((y == 0) | (difference == 0), 0, found)


def _differences(x1: Tensor, x2: Tensor) -> Any:
    return x1.array[..., :, None, :] - x2.array[..., None, :, :]


@kernel(
    name="_cdist_backward",
    vjp=dict.fromkeys(("grad", "x1", "x2"), unwritten("_cdist_backward")),
    function=False,
    method=False,
    out=False,
    node="CdistBackwardBackward0",
)
def distance_slopes(grad: Tensor, x1: Tensor, x2: Tensor, p: float, cdist: Tensor) -> Made:
    """The gradient for ``x1``."""
    batch = cdist.layout.shape[:-2]

    def run(xp: Any) -> Any:
        if p == 0 or not cdist.layout.numel or not x1.layout.numel:
            return xp.zeros((*batch, *x1.layout.shape[-2:]), x1.kind.np)
        slopes = _slopes(xp, grad.array, _differences(x1, x2), cdist.array, p)
        return slopes.sum(axis=-2)

    return made(x1.dtype, (*batch, *x1.layout.shape[-2:]), run)


@kernel(
    name="_cdist_forward",
    vjp={
        "x1": lambda g, x1, x2, p, y: ops["_cdist_backward"].function(g, x1, x2, p, y),
        "x2": lambda g, x1, x2, p, y: ops["_cdist_backward"].function(g.mT, x2, x1, p, y.mT),
    },
    function=False,
    method=False,
    out=False,
    node="CdistBackward0",
    example="cdist(zeros(1, 2), tensor([[3., 4.], [0., 1.]]))",
)
def distances(x1: Tensor, x2: Tensor, p: float) -> Made:
    """The p-norms of the differences of rows; one batch shape for both."""
    shape = (*x1.layout.shape[:-1], x2.layout.shape[-2])

    def run(xp: Any) -> Any:
        if not x1.layout.shape[-1]:
            return xp.zeros(shape, x1.kind.np)
        return _power_of_difference(xp, _differences(x1, x2), p)

    return made(x1.dtype, shape, run)


@kernel(
    name="_euclidean_dist",
    vjp={
        "x1": lambda g, x1, x2, y: _euclidean_slope(g, x1, x2, y),
        "x2": lambda g, x1, x2, y: _euclidean_slope(g.mT, x2, x1, y.mT),
    },
    function=False,
    method=False,
    out=False,
    node="EuclideanDistBackward0",
    example="cdist(zeros(1, 2), tensor([[3., 4.]]), compute_mode='use_mm_for_euclid_dist')",
)
def euclidean_distances(x1: Tensor, x2: Tensor) -> Made:
    """As distances with p = 2, from a matrix product: quick, and less exact."""
    shape = (*x1.layout.shape[:-1], x2.layout.shape[-2])

    def run(xp: Any) -> Any:
        a, b = working(x1), working(x2)
        first = (a * a).sum(axis=-1, keepdims=True)
        second = (b * b).sum(axis=-1, keepdims=True)
        left = xp.concatenate((-2 * a, first, xp.ones_like(first)), axis=-1)
        right = xp.concatenate((b, xp.ones_like(second), second), axis=-1)
        return xp.sqrt(xp.maximum(left @ xp.swapaxes(right, -1, -2), 0))

    return made(x1.dtype, shape, run)


def _euclidean_slope(g: Tensor, x1: Tensor, x2: Tensor, y: Tensor) -> Tensor:
    ratio = (g / y).masked_fill(y == 0, 0)
    return x1 * ratio.sum(-1, keepdim=True) - ratio @ x2


def _own(x1: Tensor, x2: Tensor, p: float = 2.0) -> None: ...


_BOUND: Any = parameters_of(_own)


@function("cdist")
def cdist(
    x1: Any,
    x2: Any,
    p: Any = 2.0,
    compute_mode: Any = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """The p-norm of the difference of each row of ``x1`` and each row of ``x2``.

    Euclidean distances of more than 25 rows come from a matrix product unless ``compute_mode``
    says otherwise.
    """
    if compute_mode not in _MODES:
        raise TensorValueError(f"{compute_mode} is not a valid value for compute_mode")
    x1, x2, p = bind("cdist", _BOUND, (x1, x2, p), {})
    for name, x in (("X1", x1), ("X2", x2)):
        if x.ndim < 2:
            raise TensorRuntimeError(
                f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D"
            )
    columns, other = x1.layout.shape[-1], x2.layout.shape[-1]
    if columns != other:
        raise TensorRuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {columns} X2: {other}"
        )
    for name, x in (("X1", x1), ("X2", x2)):
        if not x.dtype.is_floating_point:
            raise TensorRuntimeError(
                f"cdist only supports floating-point dtypes, {name} got: {x.dtype.title}"
            )
    if p < 0:
        raise TensorRuntimeError("cdist only supports non-negative p values")
    common_device("cdist", [x1, x2])
    batch = broadcast_shapes(x1.layout.shape[:-2], x2.layout.shape[:-2])
    if x1.dtype is not x2.dtype:
        raise TensorRuntimeError(
            f"expected scalar type {x1.dtype.title} but found {x2.dtype.title}"
        )
    rows, others = x1.layout.shape[-2], x2.layout.shape[-2]
    mode = _MODES[compute_mode]
    product = mode == 1 or (mode is None and (rows > _MANY or others > _MANY))
    a = x1 if x1.layout.shape[:-2] == batch else x1.expand((*batch, rows, columns))
    b = x2 if x2.layout.shape[:-2] == batch else x2.expand((*batch, others, columns))
    if p == 2.0 and product and rows and others and columns:
        return ops["_euclidean_dist"].function(a, b).view((*batch, rows, others))
    if x1.dtype.itemsize < 4:
        raise DtypeNotImplementedError(f"\"cdist\" not implemented for '{x1.dtype.title}'")
    return ops["_cdist_forward"].function(a, b, p)
