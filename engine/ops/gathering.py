"""Reading chosen elements: by index tensors along a dimension, by masks, by flat position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes, indices
from engine import layout as layouts
from engine.errors import (
    TensorIndexError,
    TensorRuntimeError,
    TensorTypeError,
    TensorValueError,
)
from engine.kinds import composite, kernel, made
from engine.layout import wrap_dim
from engine.registry import F, function
from engine.tensor import Tensor

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.parameter_types import Dim


def _index_select_gradient(g: Tensor, input_shape: Any, dim: int, index: Tensor) -> Tensor:
    return g.new_zeros(input_shape).index_add(dim, index, g)


@kernel(
    same_out="index_select(): self and result must have the same scalar type",
    vjp=_index_select_gradient,
    example="index_select(tensor([1., 2., 3.]), 0, tensor([2, 0]))",
)
def index_select(input: Tensor, dim: Dim, index: Tensor) -> Made:
    """The slices of ``dim`` whose numbers ``index`` (a vector) lists; negative ones are refused."""
    d = wrap_dim(dim, input.ndim)
    if index.ndim > 1:
        raise TensorIndexError("index_select(): Index is supposed to be a vector")
    count = index.layout.numel
    if input.ndim == 0 and count != 1:
        raise TensorRuntimeError(
            f"index_select(): Index to scalar can have only 1 value, got {count} value(s)"
        )
    if index.dtype not in indices.WHOLE:
        raise TensorRuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if input.ndim == 0:
        shape: tuple[int, ...] = ()
    else:
        shape = (*input.layout.shape[:d], count, *input.layout.shape[d + 1 :])

    def run(xp: Any) -> Any:
        at = index.array.reshape(-1)
        size = input.layout.shape[d] if input.ndim else 1
        if count and (at.min() < 0 or at.max() >= size):
            raise TensorIndexError("index out of range in self")
        return input.array if input.ndim == 0 else xp.take(input.array, at, axis=d)

    return made(input.dtype, shape, run)


@kernel(
    same_out="Expected out tensor to have dtype {y.c_type}, but got {out.c_type} instead",
    vjp=lambda g, dim, index, input_shape: g.new_zeros(input_shape).scatter_add(dim, index, g),
    example="gather(tensor([[1., 2.], [3., 4.]]), 1, tensor([[0], [1]]))",
)
def gather(input: Tensor, dim: Dim, index: Tensor, *, sparse_grad: bool = False) -> Made:
    """For each element of ``index`` the element of ``input`` at that place of ``dim``.

    The other places are those of the element of ``index`` itself; negative ones are refused.
    """
    d = wrap_dim(dim, input.ndim)
    shape = index.layout.shape
    if index.layout.numel:
        if index.dtype not in indices.WHOLE:
            raise TensorRuntimeError("gather(): Expected dtype int32/int64 for index")
        if max(index.ndim, 1) != max(input.ndim, 1):
            raise TensorRuntimeError(
                "Index tensor must have the same number of dimensions as input tensor"
            )
        for at in range(index.ndim if input.ndim else 0):
            if at != d and shape[at] > input.layout.shape[at]:
                raise TensorRuntimeError(
                    f"Size does not match at dimension {at} expected index {list(shape)} to be "
                    f"no larger than self {list(input.layout.shape)} apart from dimension {d}"
                )

    def run(xp: Any) -> Any:
        if not index.layout.numel:
            return xp.empty(shape, input.array.dtype)
        array = input.array if input.ndim else input.array.reshape(1)
        at = index.array if index.ndim else index.array.reshape(1)
        return array[indices.grid(xp, at, d, array.shape[d])].reshape(shape)

    return made(input.dtype, shape, run)


def _take_gradient(g: Tensor, input_shape: Any, index: Tensor) -> Tensor:
    return g.new_zeros(input_shape).put(index, g, True)


@kernel(
    same_out="take(): self and out expected to have the same dtype, but got "
    "self.dtype = {y.title} and out.dtype = {out.title}",
    vjp=_take_gradient,
    example="take(tensor([[1., 2.], [3., 4.]]), tensor([0, 3]))",
)
def take(input: Tensor, index: Tensor) -> Made:
    """The elements at flat positions, negative ones counted from the end."""
    if index.dtype is not dtypes.int64:
        raise TensorRuntimeError(
            f"take(): Expected a long tensor for index, but got {index.dtype.title}"
        )
    if input.layout.numel == 0 and index.layout.numel:
        raise TensorIndexError("take(): tried to take from an empty tensor")

    def run(xp: Any) -> Any:
        indices.check_flat(index.array, input.layout.numel)
        return xp.take(input.array.reshape(-1), index.array)

    return made(input.dtype, index.layout.shape, run)


@composite(example="take_along_dim(tensor([[1., 2.]]), tensor([[1]]), 1)")
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """As ``gather``, the other dimensions broadcast; without ``dim`` of the flattened tensor."""
    if indices.dtype is not dtypes.int64:
        raise TensorRuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype.title}"
        )
    if dim is None:
        return input.view((-1,)).gather(0, indices.view((-1,)))
    if input.ndim != indices.ndim:
        raise TensorRuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of "
            f"dimensions, but got {input.ndim} dimensions for input, and {indices.ndim} "
            "dimensions for indices"
        )
    d = wrap_dim(dim, input.ndim)
    a, b = list(input.layout.shape), list(indices.layout.shape)
    whole = layouts.broadcast_shapes((*a[:d], 1, *a[d + 1 :]), (*b[:d], 1, *b[d + 1 :]))
    rest = whole[d + 1 :]
    wide = input.expand((*whole[:d], a[d], *rest))
    if a[d]:
        indices = indices.remainder(a[d])  # PyTorch counts on around the ends here
    return wide.gather(d, indices.expand((*whole[:d], b[d], *rest)))


@function("unravel_index")
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The coordinates in a tensor of ``shape`` of flat positions."""
    if not isinstance(indices, Tensor) or not indices.dtype.is_integral:
        raise TensorTypeError(
            f"expected 'indices' to be integer dtype, but got {getattr(indices, 'dtype', indices)}"
        )
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(n < 0 for n in sizes):
        raise TensorValueError(f"'shape' cannot have negative values, but got {tuple(sizes)}")
    if not sizes:
        return ()
    steps = layouts.contiguous_strides(sizes)
    indices = indices.to(dtypes.int64)
    coordinates = F.stack(
        [
            F.remainder(F.floor_divide(indices, step), size)
            for step, size in zip(steps, sizes, strict=True)
        ],
        -1,
    )
    return coordinates.unbind(-1)
