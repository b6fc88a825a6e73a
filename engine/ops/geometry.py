"""What a tensor's layout is: sizes, strides, offsets and bytes, as plain numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import layout as layouts
from engine import tape
from engine.errors import (
    TensorIndexError,
    TensorRuntimeError,
    TensorTypeError,
    TensorValueError,
)
from engine.layout import wrap_dim
from engine.plain_calls import check_tensor
from engine.registry import attribute, function, method
from engine.storage import allocate
from engine.tensor import Tensor, wrap

if TYPE_CHECKING:
    from engine.layout import Layout, Size


@method("size")
def size(x: Tensor, dim: int | None = None) -> Any:
    """The shape, or the size of one dimension."""
    return x.layout.size if dim is None else x.layout.shape[_dim_of(x, dim)]


@method("stride")
def stride(x: Tensor, dim: int | None = None) -> Any:
    """The strides in elements, or that of one dimension."""
    return x.layout.strides if dim is None else x.layout.strides[_dim_of(x, dim)]


def _dim_of(x: Tensor, dim: int) -> int:
    if x.layout.ndim == 0:
        raise TensorIndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, x.layout.ndim)


@method("dim", "ndimension")
def dim(x: Tensor) -> int:
    """The number of dimensions."""
    return x.layout.ndim


@attribute("ndim")
def ndim(x: Tensor) -> int:
    """The number of dimensions."""
    return x.layout.ndim


@attribute("shape")
def shape(x: Tensor) -> Size:
    """The sizes of the dimensions."""
    return x.layout.size


@method("numel", "nelement")
@function("numel")
def numel(input: Tensor) -> int:
    """The number of elements."""
    if not isinstance(input, Tensor):
        raise TensorTypeError(
            f"numel(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}"
        )
    return input.layout.numel


@method("storage_offset")
def storage_offset(x: Tensor) -> int:
    """Where the first element lies in the storage, in elements."""
    return x.offset


@method("is_contiguous")
def is_contiguous(x: Tensor, memory_format: Any = None) -> bool:
    """Whether the elements lie in memory in the order of their indices."""
    name = str(memory_format)
    if name.endswith(("channels_last", "channels_last_3d")):
        wanted = 5 if name.endswith("3d") else 4
        return x.layout.ndim == wanted and layouts.is_channels_last(
            x.layout.shape, x.layout.strides
        )
    return x.layout.contiguous


@method("dim_order")
def dim_order(x: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions from the largest stride to the smallest.

    With ``ambiguity_check`` an order that is not the only possible one is refused; a list of
    memory formats accepts an order that exactly one of them explains.
    """
    layout = x.layout
    order = tuple(sorted(range(layout.ndim), key=lambda d: -layout.strides[d]))
    if ambiguity_check is False:
        return order
    if ambiguity_check is not True and not isinstance(ambiguity_check, list):
        raise TensorTypeError(
            "The ambiguity_check argument must be a bool or a list of memory formats."
        )
    if layout.overlaps:
        raise TensorRuntimeError("The tensor does not have unique dim order.")
    unique = len(set(layout.strides)) == layout.ndim and 1 not in layout.shape
    if ambiguity_check is not True:
        unique = sum(is_contiguous(x, f) for f in ambiguity_check) == 1
    if not unique:
        raise TensorRuntimeError(
            "The tensor does not have unique dim order, or cannot map to exact one of the given "
            "memory formats."
        )
    return order


@method("data_ptr")
def data_ptr(x: Tensor) -> int:
    """The address of the first element; 0 where there is none."""
    return 0 if x.array is None or not x.layout.numel else int(x.array.ctypes.data)


@attribute("nbytes")
def nbytes(x: Tensor) -> int:
    """The bytes of all elements."""
    return x.layout.numel * x.dtype.itemsize


@method("is_set_to")
def is_set_to(x: Tensor, tensor: Tensor) -> bool:
    """Whether both show the same memory in the same way."""
    check_tensor("is_set_to", "tensor", 2, tensor)
    return (
        x.storage is tensor.storage
        and x.offset == tensor.offset
        and x.layout.shape == tensor.layout.shape
        and x.layout.strides == tensor.layout.strides
    )


@function("broadcast_shapes")
def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that all ``shapes`` (tuples or numbers) broadcast to."""
    wanted: tuple[int, ...] = ()
    for at, given in enumerate(shapes):
        one = (given,) if given.__class__ is int else given
        if not isinstance(one, (tuple, list)) or any(n.__class__ is not int for n in one):
            raise TensorRuntimeError(
                "Input shapes should be of type ints, a tuple of ints, or a list of ints, got "
                f"{given}"
            )
        one = tuple(one)
        if any(n < 0 for n in one):
            raise TensorValueError("Attempting to broadcast a dimension with negative length!")
        n = max(len(wanted), len(one))
        left, right = (1,) * (n - len(wanted)) + wanted, (1,) * (n - len(one)) + one
        for d in range(n - 1, -1, -1):
            if right[d] != 1 and left[d] not in (1, right[d]):
                raise TensorRuntimeError(
                    f"Attempting to broadcast a dimension of length {right[d]} at {d - n}! "
                    f"Mismatching argument at index {at} had {given}; but expected shape should "
                    f"be broadcastable to {list(left)}"
                )
        wanted = tuple(b if a == 1 else a for a, b in zip(left, right, strict=True))
    return layouts.Size(wanted)


@method("resize_")
def resize_(x: Tensor, *sizes: Any, memory_format: Any = None) -> Tensor:
    """The tensor with another shape, row-major; memory grows where it is too small."""
    size = tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    return _resized(x, layouts.contiguous(tuple(size)))


@method("resize_as_")
@function("resize_as_")
def resize_as_(x: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """The tensor with the shape of another."""
    check_tensor("resize_as_", "the_template", 2, the_template)
    return _resized(x, layouts.contiguous(the_template.layout.shape))


def _resized(x: Tensor, layout: Layout) -> Tensor:
    if tape.requires_grad(x):
        raise TensorRuntimeError("cannot resize variables that require grad")
    if x.layout.shape == layout.shape:
        return x
    tape.bump(x)
    if (x.offset + layout.span) * x.dtype.itemsize > x.storage.nbytes:
        grown = allocate(x.kind, layout)
        if grown is not None:
            kept = x.storage.array(x.kind, layouts.contiguous((_cells(x),)), 0)
            grown.reshape(-1)[: kept.size] = kept[: grown.size]
        fresh = wrap(grown, x.kind, layout)
        x.memory = fresh.storage
        x.offset = 0
    x.layout = layout
    x.array = x.storage.array(x.kind, layout, x.offset)
    return x


def _cells(x: Tensor) -> int:
    return x.storage.nbytes // x.dtype.itemsize
