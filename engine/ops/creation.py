"""Tensors of one value: zeros, ones, full, empty, their twins for another tensor's geometry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import formats, scalars
from engine import layout as layouts
from engine.errors import TensorRuntimeError
from engine.kinds.creation import creation
from engine.kinds.kernel import made
from engine.kinds.sizes import check_sizes, check_storage
from engine.modes import state
from engine.tensor import kind_of

if TYPE_CHECKING:
    from engine.dtypes import DType
    from engine.formats import MemoryFormat
    from engine.kinds import Made
    from engine.layout import Layout
    from engine.parameter_types import Scalar, Shape, Size
    from engine.tensor import Tensor


def _zeros(dtype: DType, layout: Layout) -> Made:
    return made(dtype, layout, lambda xp: xp.zeros(layout.shape, dtype.np))


def _ones(dtype: DType, layout: Layout) -> Made:
    return made(dtype, layout, lambda xp: xp.ones(layout.shape, dtype.np))


def _empty(dtype: DType, layout: Layout) -> Made:
    from engine.storage import allocate

    return made(dtype, layout, lambda xp: allocate(kind_of(dtype), layout))


def _full(dtype: DType, layout: Layout, value: Any) -> Made:
    stored = scalars.element(value, dtype)
    return made(dtype, layout, lambda xp: xp.full(layout.shape, stored, dtype.np))


@creation(method=False, example="zeros(2, 3)")
def zeros(size: Size, *, dtype: DType | None = None) -> Made:
    """Zeros."""
    if any(n < 0 for n in size):
        raise TensorRuntimeError("zeros: Dimension size must be non-negative.")
    found = dtype or state.default_dtype
    return _zeros(found, check_sizes(size, found))


@creation(method=False, example="ones(2, 3)")
def ones(size: Size, *, dtype: DType | None = None) -> Made:
    """Ones."""
    found = dtype or state.default_dtype
    return _ones(found, check_sizes(size, found))


@creation(method=False, example="empty(2, 3).shape")
def empty(
    size: Size, *, dtype: DType | None = None, memory_format: MemoryFormat | None = None
) -> Made:
    """A tensor whose elements are whatever was in its memory."""
    found = dtype or state.default_dtype
    layout = check_sizes(size, found)
    if memory_format is not None:
        layout = formats.of_shape(layout.shape, memory_format)
    return _empty(found, layout)


@creation(method=False, example="full((2, 3), 7.)")
def full(size: Shape, fill_value: Scalar, *, dtype: DType | None = None) -> Made:
    """One number everywhere; without ``dtype`` the number's kind tells the dtype."""
    scalars.check_width(fill_value)
    found = dtype or scalars.number_dtype(fill_value)
    return _full(found, check_sizes(size, found), fill_value)


@creation(method=False, out=False, example="scalar_tensor(3)")
def scalar_tensor(s: Scalar, *, dtype: DType | None = None) -> Made:
    """A 0-d tensor of the default dtype, or of ``dtype``."""
    return _full(dtype or state.default_dtype, layouts.contiguous(()), s)


@creation(method=False, out=False, example="zeros_like(tensor([1, 2]))")
def zeros_like(
    input: Tensor, *, dtype: DType | None = None, memory_format: MemoryFormat | None = None
) -> Made:
    """Zeros of the tensor's shape, dtype and device; dense strides are kept."""
    return _zeros(dtype or input.dtype, formats.with_format(input.layout, memory_format))


@creation(method=False, out=False, example="ones_like(tensor([1, 2]))")
def ones_like(
    input: Tensor, *, dtype: DType | None = None, memory_format: MemoryFormat | None = None
) -> Made:
    """Ones of the tensor's shape, dtype and device; dense strides are kept."""
    return _ones(dtype or input.dtype, formats.with_format(input.layout, memory_format))


@creation(method=False, out=False, example="empty_like(tensor([1, 2])).shape")
def empty_like(
    input: Tensor, *, dtype: DType | None = None, memory_format: MemoryFormat | None = None
) -> Made:
    """Uninitialised, of the tensor's shape, dtype and device; dense strides are kept."""
    return _empty(dtype or input.dtype, formats.with_format(input.layout, memory_format))


@creation(method=False, out=False, example="full_like(tensor([1, 2]), 7)")
def full_like(
    input: Tensor,
    fill_value: Scalar,
    *,
    dtype: DType | None = None,
    memory_format: MemoryFormat | None = None,
) -> Made:
    """One number everywhere, in the tensor's shape, dtype and device."""
    layout = formats.with_format(input.layout, memory_format)
    return _full(dtype or input.dtype, layout, fill_value)


@creation(function=False, out=False, example="tensor([1, 2]).new_zeros(3)")
def new_zeros(input: Tensor, size: Size, *, dtype: DType | None = None) -> Made:
    """Zeros of the tensor's dtype and device."""
    found = dtype or input.dtype
    return _zeros(found, check_sizes(size, found))


@creation(function=False, out=False, example="tensor([1, 2]).new_ones(3)")
def new_ones(input: Tensor, size: Size, *, dtype: DType | None = None) -> Made:
    """Ones of the tensor's dtype and device."""
    found = dtype or input.dtype
    return _ones(found, check_sizes(size, found))


@creation(function=False, out=False, example="tensor([1, 2]).new_empty(3).shape")
def new_empty(input: Tensor, size: Size, *, dtype: DType | None = None) -> Made:
    """Uninitialised, of the tensor's dtype and device."""
    found = dtype or input.dtype
    return _empty(found, check_sizes(size, found))


@creation(function=False, out=False, example="tensor([1, 2]).new_full((3,), 7)")
def new_full(input: Tensor, size: Shape, fill_value: Scalar, *, dtype: DType | None = None) -> Made:
    """One number everywhere, in the tensor's dtype and device."""
    found = dtype or input.dtype
    return _full(found, check_sizes(size, found), fill_value)


@creation(
    function=False, out=False, example="tensor(1.).new_empty_strided((2, 3), (1, 2)).stride()"
)
def new_empty_strided(
    input: Tensor, size: Shape, stride: Shape, *, dtype: DType | None = None
) -> Made:
    """Uninitialised, of that shape and strides, of the tensor's dtype and device."""
    return _strided(size, stride, dtype or input.dtype)


@creation(method=False, out=False, example="empty_strided((2, 3), (1, 2)).stride()")
def empty_strided(size: Shape, stride: Shape, *, dtype: DType | None = None) -> Made:
    """Uninitialised, of that shape and strides (in elements)."""
    return _strided(size, stride, dtype or state.default_dtype)


def _strided(size: tuple[int, ...], stride: tuple[int, ...], dtype: DType) -> Made:
    check_sizes(size, dtype)
    if len(size) != len(stride):
        raise TensorRuntimeError(
            f"dimensionality of sizes ({len(size)}) must match dimensionality of strides "
            f"({len(stride)})"
        )
    layout = layouts.layout(size, stride)
    if any(s < 0 for s in stride) or layout.span * dtype.itemsize >= 2**63:
        raise TensorRuntimeError(
            f"Storage size calculation overflowed with sizes={list(size)} and "
            f"strides={list(stride)}"
        )
    return _empty(dtype, layout)


@creation(method=False, out=False, example="empty_permuted((2, 3, 5), (1, 2, 0)).stride()")
def empty_permuted(size: Shape, physical_layout: Shape, *, dtype: DType | None = None) -> Made:
    """Uninitialised and dense; ``physical_layout`` lists the dimensions from outermost in."""
    n = len(size)
    if n != len(physical_layout):
        raise TensorRuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; "
            f"i.e. len(size) = {n} is not equal to len(physical_layout) = {len(physical_layout)}"
        )
    for at, dim in enumerate(physical_layout):
        if not 0 <= dim < n:
            raise TensorRuntimeError(
                f"Dimension out of range (expected to be between 0 and {n - 1}, but got {dim} at "
                f"index {at}).  NB: negative dims not currently supported; file an issue if you "
                "want it."
            )
        if dim in physical_layout[:at]:
            raise TensorRuntimeError("Duplicate dim not allowed")
    found = dtype or state.default_dtype
    check_storage(size, found)
    return _empty(found, layouts.layout(size, layouts.strides_along(size, physical_layout)))
