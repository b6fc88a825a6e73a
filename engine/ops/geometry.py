"""What a tensor's layout is: sizes, strides, offsets and bytes, as plain numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import layout as layouts
from engine.errors import TensorTypeError
from engine.layout import wrap_dim
from engine.registry import attribute, function, method
from engine.tensor import Tensor

if TYPE_CHECKING:
    from engine.layout import Size


@method("size")
def size(x: Tensor, dim: int | None = None) -> Any:
    """The shape, or the size of one dimension."""
    return x.layout.size if dim is None else x.layout.shape[wrap_dim(dim, x.layout.ndim)]


@method("stride")
def stride(x: Tensor, dim: int | None = None) -> Any:
    """The strides in elements, or that of one dimension."""
    return x.layout.strides if dim is None else x.layout.strides[wrap_dim(dim, x.layout.ndim)]


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
def dim_order(x: Tensor) -> tuple[int, ...]:
    """The dimensions from the largest stride to the smallest."""
    strides = x.layout.strides
    return tuple(sorted(range(x.layout.ndim), key=lambda d: -strides[d]))


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
    return (
        x.storage is tensor.storage
        and x.offset == tensor.offset
        and x.layout.shape == tensor.layout.shape
        and x.layout.strides == tensor.layout.strides
    )


@function("broadcast_shapes")
def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that all ``shapes`` (tuples or numbers) broadcast to."""
    result: tuple[int, ...] = ()
    for given in shapes:
        one = (given,) if given.__class__ is int else tuple(given)
        result = layouts.broadcast_shapes(result, one)
    return layouts.Size(result)
