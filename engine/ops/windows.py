"""Views of parts: one index, a slice, a diagonal, sliding windows, any strided geometry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import layout as layouts
from engine import tape
from engine.errors import TensorIndexError, TensorRuntimeError
from engine.kinds import view
from engine.layout import wrap_dim

if TYPE_CHECKING:
    from engine.layout import Layout
    from engine.parameter_types import Dim, Shape
    from engine.tensor import Tensor


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
            f"dimension {d}"
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
    return tape.strided_gradient(
        g, input_layout, input_offset, layouts.layout(size, stride), offset
    )


@view(
    vjp=_as_strided_gradient,
    located=True,
    inplace=True,
    inplace_number=1,
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


@view(node="SliceBackward0", example="narrow(arange(5), 0, 1, 3)")
def narrow(input: Layout, dim: Dim, start: int, length: int) -> tuple[Layout, int]:
    """``length`` elements of a dimension, from ``start`` on (negative: counted from the end)."""
    if input.ndim == 0:
        raise TensorRuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise TensorRuntimeError("narrow(): length must be non-negative.")
    d = wrap_dim(dim, input.ndim)
    size = input.shape[d]
    if not -size <= start <= size:
        raise TensorIndexError(
            f"start out of range (expected to be in range of [-{size}, {size}], but got {start})"
        )
    first = start + size if start < 0 else start
    if first + length > size:
        raise TensorRuntimeError(
            f"start ({first}) + length ({length}) exceeds dimension size ({size})."
        )
    return layouts.narrow(input, d, first, length)


def diagonal_layout(input: Layout, offset: int, dim1: int, dim2: int) -> tuple[Layout, int]:
    """The layout of a diagonal, put last, and how far the offset moves."""
    a, b = wrap_dim(dim1, input.ndim), wrap_dim(dim2, input.ndim)
    if a == b:
        raise TensorRuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rows, columns = input.shape[a], input.shape[b]
    if offset >= 0:
        count = max(min(rows, columns - offset), 0)
        move = offset * input.strides[b]
    else:
        count = max(min(rows + offset, columns), 0)
        move = -offset * input.strides[a]
    rest = [d for d in range(input.ndim) if d not in (a, b)]
    shape = (*(input.shape[d] for d in rest), count)
    strides = (*(input.strides[d] for d in rest), input.strides[a] + input.strides[b])
    return layouts.layout(shape, strides), move if count else 0


@view(example="diagonal(tensor([[1., 2.], [3., 4.]]))")
def diagonal(input: Layout, offset: int = 0, dim1: Dim = 0, dim2: Dim = 1) -> tuple[Layout, int]:
    """The diagonal of two dimensions as a last one; ``offset`` counts to the upper right."""
    return diagonal_layout(input, offset, dim1, dim2)


def _unfold_gradient(
    g: Tensor, input_layout: Layout, dimension: int, size: int, step: int
) -> Tensor:
    plain = layouts.contiguous(input_layout.shape)
    return tape.strided_gradient(g, plain, 0, unfold_layout(plain, dimension, size, step), 0)


def unfold_layout(input: Layout, dimension: int, size: int, step: int) -> Layout:
    """The layout of windows of a dimension, the place in the window put last."""
    d = wrap_dim(dimension, input.ndim)
    n = input.shape[d] if input.ndim else 1
    stride = input.strides[d] if input.ndim else 1
    if size < 0:
        raise TensorRuntimeError(f"size is {size} but must be >= 0")
    if size > n:
        raise TensorRuntimeError(
            f"maximum size for tensor at dimension {d} is {n} but size is {size}"
        )
    if step <= 0:
        raise TensorRuntimeError(f"step is {step} but must be > 0")
    if input.ndim == 0:
        return layouts.layout((size,), (1,))
    shape = (*input.shape[:d], (n - size) // step + 1, *input.shape[d + 1 :], size)
    strides = (*input.strides[:d], stride * step, *input.strides[d + 1 :], stride)
    return layouts.layout(shape, strides)


@view(vjp=_unfold_gradient, function=False, example="arange(5).unfold(0, 3, 1)")
def unfold(input: Layout, dimension: Dim, size: int, step: int) -> Layout:
    """All windows of ``size`` elements of a dimension, ``step`` apart; they may overlap."""
    return unfold_layout(input, dimension, size, step)
