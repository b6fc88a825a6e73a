"""Views: other shapes and orders of the same memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import layout as layouts
from engine import tape
from engine.errors import TensorIndexError, TensorRuntimeError
from engine.kinds import view
from engine.kinds.composite import composite
from engine.layout import wrap_dim

if TYPE_CHECKING:
    from engine.layout import Layout
    from engine.tensor import Tensor


@view(vjp=lambda g, dim0, dim1: g.transpose(dim0, dim1), aliases=("swapaxes", "swapdims"), inplace=True, example="transpose(tensor([[1., 2.]]), 0, 1)")
def transpose(input: Layout, dim0: Dim, dim1: Dim) -> Layout:
    """Swap two dimensions. A view: no data moves."""
    return layouts.swap(input, wrap_dim(dim0, input.ndim), wrap_dim(dim1, input.ndim)) if input.ndim else input


@view(vjp=lambda g: g.t(), inplace=True, example="t(tensor([[1., 2.]]))")
def t(input: Layout) -> Layout:
    """The transpose of a matrix; a vector or a number stays as it is."""
    if input.ndim > 2:
        raise TensorRuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D")
    return layouts.swap(input, 0, 1) if input.ndim == 2 else input


@view(vjp=lambda g, input_shape: g.reshape(input_shape), name="view", function=False, node="ViewBackward0", example="tensor([1., 2.]).view(2, 1)")
def view_shape(input: Layout, size: Size) -> Layout:
    """The same memory in another shape; refused where strides cannot express it."""
    return layouts.view(input, layouts.infer_shape(size, input.numel))


@view(vjp=lambda g: g, function=False, example="tensor([[1.], [2.]]).expand(2, 3)")
def expand(input: Layout, size: Size) -> Layout:
    """Broadcast to a larger shape by strides of zero; the gradient is summed back."""
    return layouts.expand(input, size)


@view(vjp=lambda g, dim: g.squeeze(dim), inplace=True, example="unsqueeze(tensor([1., 2.]), 0)")
def unsqueeze(input: Layout, dim: Dim) -> Layout:
    """A dimension of size 1 put before ``dim``."""
    return layouts.unsqueeze(input, wrap_dim(dim, input.ndim + 1))


@view(vjp=lambda g, input_shape: g.reshape(input_shape), inplace=True, example="squeeze(zeros(1, 3, 1)).shape")
def squeeze(input: Layout, dim: Dims | None = None) -> Layout:
    """Without the dimensions of size 1, or without those of ``dim`` that have it."""
    if dim is None:
        dims = tuple(range(input.ndim))
    else:
        dims = layouts.wrap_dims(dim, input.ndim)
    return layouts.squeeze(input, dims)


@view(vjp=lambda g, dims: g.permute(_inverse(dims)), example="permute(zeros(2, 3, 4), (2, 0, 1)).shape")
def permute(input: Layout, dims: SpreadDims) -> Layout:
    """The dimensions in another order."""
    if len(dims) != input.ndim:
        raise TensorRuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the "
            f"length of the desired ordering of dimensions i.e. input.dim() = {input.ndim} is not "
            f"equal to len(dims) = {len(dims)}"
        )
    return layouts.permute(input, layouts.wrap_dims(dims, input.ndim))


def _inverse(dims: tuple[int, ...]) -> tuple[int, ...]:
    order = [0] * len(dims)
    for i, d in enumerate(dims):
        order[d % len(dims)] = i
    return tuple(order)


@view(node="SelectBackward0", example="select(tensor([[1., 2.], [3., 4.]]), 0, 1)")
def select(input: Layout, dim: Dim, index: int) -> tuple[Layout, int]:
    """One index of a dimension."""
    if input.ndim == 0:
        raise TensorIndexError("select() cannot be applied to a 0-dim tensor.")
    d = wrap_dim(dim, input.ndim)
    size = input.shape[d]
    if not -size <= index < size:
        raise TensorIndexError(
            f"select(): index {index} out of range for tensor of size {list(input.shape)} at "
            f"dimension {dim}"
        )
    return layouts.select(input, d, index % size)


def _as_strided_gradient(
    g: Tensor,
    input_layout: Layout,
    input_offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    storage_offset: int | None,
) -> Tensor:
    offset = input_offset if storage_offset is None else storage_offset
    return tape.strided_gradient(g, input_layout, input_offset, layouts.layout(size, stride), offset)


@view(
    vjp=_as_strided_gradient,
    located=True,
    inplace=True,
    example="as_strided(arange(6.), (2, 2), (1, 2))",
)
def as_strided(
    input: Tensor, size: Shape, stride: Shape, storage_offset: int | None = None
) -> tuple[Layout, int]:
    """Any geometry over the storage of ``input``; the offset is absolute.

    Nothing but the bounds of the storage is checked: elements may overlap.
    """
    offset = input.offset if storage_offset is None else storage_offset
    if len(size) != len(stride):
        raise TensorRuntimeError("mismatch in length of strides and shape")
    if any(s < 0 for s in stride):
        raise TensorRuntimeError(
            "as_strided: Negative strides are not supported at the moment, got strides: "
            f"{list(stride)}"
        )
    if any(n < 0 for n in size):
        raise TensorRuntimeError(
            f"Storage size calculation overflowed with sizes={list(size)} and "
            f"strides={list(stride)}"
        )
    if offset < 0:
        raise TensorRuntimeError(f"Tensor: invalid storage offset {offset}")
    layout = layouts.layout(size, stride)
    itemsize = input.dtype.itemsize
    needed = (offset + layout.span) * itemsize
    if layout.numel and needed > input.storage.nbytes:
        raise TensorRuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, "
            f"and itemsize {itemsize} requiring a storage size of {needed} are out of bounds for "
            f"storage of size {input.storage.nbytes}"
        )
    return layout, offset


@composite(view="sometimes", node="ViewBackward0", example="reshape(arange(6), (2, 3))")
def reshape(input: Tensor, shape: Size) -> Tensor:
    """Another shape: a view where strides allow it, else a copy."""
    size = layouts.infer_shape(shape, input.layout.numel)
    if layouts.view_strides(input.layout.shape, input.layout.strides, size) is not None:
        return input.view(size)
    return input.clone(memory_format="contiguous").view(size)
