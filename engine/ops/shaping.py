"""The same elements in another shape: view, reshape, flatten and their relatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import layout as layouts
from engine import lazy
from engine.dtypes import DType
from engine.errors import TensorRuntimeError
from engine.formats import contiguous_format
from engine.kinds import composite, view
from engine.layout import wrap_dim
from engine.overloads import no_overload
from engine.registry import method, ops
from engine.tensor import kind_of

if TYPE_CHECKING:
    from engine.layout import Layout
    from engine.parameter_types import Dim, Shape, Size
    from engine.tensor import Kind, Tensor


@view(
    vjp=lambda g, input_shape: g.reshape(input_shape),
    name="view",
    function=False,
    node="ViewBackward0",
    example="tensor([1., 2.]).view(2, 1)",
)
def view_shape(input: Layout, size: Size) -> Layout:
    """The same memory in another shape; refused where strides cannot express it."""
    return layouts.view(input, layouts.infer_shape(size, input.numel))


@view(
    vjp=lambda g, input_shape: g.reshape(input_shape),
    function=False,
    method=False,
    view="no",
    node="UnsafeViewBackward0",
)
def _unsafe_view(input: Layout, size: Size) -> Layout:
    """Another shape of a fresh copy that nobody else holds."""
    return layouts.view(input, size)


@view(
    vjp=lambda g, input_shape: g.reshape(input_shape),
    function=False,
    method=False,
    node="ReshapeAliasBackward0",
)
def _reshape_alias(input: Layout, size: Size) -> Layout:
    """The same memory in another shape, where the tensor is not contiguous."""
    return layouts.view(input, size)


def _reshaped(input: Tensor, shape: tuple[int, ...]) -> Tensor:
    size = layouts.infer_shape(shape, input.layout.numel)
    if layouts.view_strides(input.layout.shape, input.layout.strides, size) is not None:
        return ops["_reshape_alias"].function(input, size)
    y: Tensor = ops["_unsafe_view"].function(input.clone(memory_format=contiguous_format), size)
    y.base = None
    return y


@view(
    vjp=lambda g, input_shape: g.reshape(input_shape),
    otherwise=_reshaped,
    view="sometimes",
    node="ViewBackward0",
    example="reshape(arange(6), (2, 3))",
)
def reshape(input: Layout, shape: Size) -> Layout | None:
    """Another shape: a view where strides allow it, else a copy."""
    size = layouts.infer_shape(shape, input.numel)
    return layouts.view(input, size) if input.contiguous else None


@view(
    located=True,
    recorded=False,
    function=False,
    method=False,
    example="tensor([1.]).view(int32)",
)
def _view_dtype(input: Tensor, dtype: DType) -> tuple[Layout, int, Kind]:
    """The same bytes read as another dtype; the last dimension shrinks or grows with its size."""
    layout = input.layout
    if lazy.is_lazy(input):
        seen = (
            "conjugate view tensors"
            if lazy.has(input.memory, lazy.CONJUGATED)
            else "tensors with negative bit set"
        )
        raise TensorRuntimeError(
            f"torch.Tensor.view is not supported for {seen} when converting to a different dtype."
        )
    old, new = input.dtype.itemsize, dtype.itemsize
    kind = kind_of(dtype, input.device)
    if old == new:
        return layout, input.offset, kind
    if layout.ndim == 0:
        raise TensorRuntimeError(
            f"self.dim() cannot be 0 to view {input.dtype.title} as {dtype.title} (different "
            "element sizes)"
        )
    if layout.strides[-1] != 1:
        raise TensorRuntimeError(
            f"self.stride(-1) must be 1 to view {input.dtype.title} as {dtype.title} (different "
            f"element sizes), but got {layout.strides[-1]}"
        )
    if old > new:
        times = old // new
        shape = (*layout.shape[:-1], layout.shape[-1] * times)
        strides = (*(s * times for s in layout.strides[:-1]), 1)
        return layouts.layout(shape, strides), input.offset * times, kind
    times = new // old
    for what, value in (
        ("size(-1)", layout.shape[-1]),
        ("storage_offset()", input.offset),
        *((f"stride({d})", s) for d, s in enumerate(layout.strides[:-1])),
    ):
        if value % times:
            raise TensorRuntimeError(
                f"self.{what} must be divisible by {times} to view {input.dtype.title} as "
                f"{dtype.title} (different element sizes), but got {value}"
            )
    shape = (*layout.shape[:-1], layout.shape[-1] // times)
    strides = (*(s // times for s in layout.strides[:-1]), 1)
    return layouts.layout(shape, strides), input.offset // times, kind


@method("view")
def view_method(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The same memory in another shape, or read as another dtype."""
    if args and args[0].__class__ is DType or "dtype" in kwargs:
        return ops["_view_dtype"].function(x, *args, **kwargs)
    if not args and not kwargs:
        raise no_overload("view", args, kwargs, ("(torch.dtype dtype)", "(tuple of ints size)"))
    return ops["view"].function(x, *args, **kwargs)


def _flat_shape(input: Layout, start_dim: int, end_dim: int) -> tuple[int, ...]:
    first, last = wrap_dim(start_dim, input.ndim), wrap_dim(end_dim, input.ndim)
    if first > last:
        raise TensorRuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    shape = input.shape
    if not shape:
        return (1,)
    return (*shape[:first], numel(shape[first : last + 1]), *shape[last + 1 :])


def _flattened(input: Tensor, start_dim: int, end_dim: int) -> Tensor:
    shape = _flat_shape(input.layout, start_dim, end_dim)
    return input if len(shape) == input.ndim else input.reshape(shape)


@view(
    vjp=lambda g, input_shape: g.reshape(input_shape),
    otherwise=_flattened,
    view="sometimes",
    node="ViewBackward0",
    example="flatten(zeros(2, 3, 4), 1).shape",
)
def flatten(input: Layout, start_dim: Dim = 0, end_dim: Dim = -1) -> Layout | None:
    """The dimensions from ``start_dim`` to ``end_dim`` made one; a number becomes a vector."""
    shape = _flat_shape(input, start_dim, end_dim)
    if len(shape) == input.ndim or not input.contiguous:
        return None
    return layouts.view(input, shape)


@composite(view="sometimes", out=False, example="ravel(tensor([[1., 2.], [3., 4.]]))")
def ravel(input: Tensor) -> Tensor:
    """All elements in a vector; a view where the memory is row-major."""
    return input.contiguous().view((input.layout.numel,))


@composite(view="always", out=False, example="unflatten(arange(6), 0, (2, 3))")
def unflatten(input: Tensor, dim: Dim, sizes: Shape) -> Tensor:
    """One dimension split into several; one of ``sizes`` may be -1."""
    d = wrap_dim(dim, input.ndim)
    if not sizes:
        raise TensorRuntimeError("unflatten: sizes must be non-empty")
    if sum(n == -1 for n in sizes) > 1:
        raise TensorRuntimeError(
            "unflatten got an unexpected error:\nonly one dimension can be inferred"
        )
    size = input.layout.shape[d] if input.ndim else 1
    known = numel(tuple(n for n in sizes if n != -1))
    if (known == 0 or size % known) if -1 in sizes else known != size:
        raise TensorRuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {d} "
            f"({size}) in the input tensor"
        )
    full = tuple(size // known if n == -1 else n for n in sizes)
    shape = input.layout.shape
    return input.view((*shape[:d], *full, *shape[d + 1 :]))


@composite(view="always", function=False, out=False, example="arange(4).view_as(zeros(2, 2))")
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """The same memory in the shape of ``other``."""
    return input.view(other.layout.shape)


@composite(view="sometimes", function=False, out=False, example="arange(4).reshape_as(zeros(2, 2))")
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """Reshaped to the shape of ``other``."""
    return input.reshape(other.layout.shape)


def numel(shape: tuple[int, ...]) -> int:
    """The number of elements of a tensor of that shape."""
    n = 1
    for size in shape:
        n *= size
    return n
