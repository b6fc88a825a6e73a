"""Tensors as arrays of numbers and back, with the checks that every format needs; opens nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine import dtypes, foreign, layout, lazy, tensor
from engine.registry import functions
from engine.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.dtypes import DType

# numpy's own bound; PyTorch and the engine have none.
MOST_DIMS = 64
MOST_BYTES = 1 << 62


def count_of(shape: Sequence[object], itemsize: int, name: str) -> int:
    """The number of elements of a shape that a file states. Raises ValueError for no shape."""
    count = 1
    for size in shape:
        if type(size) is not int or size < 0:
            raise ValueError(f"{name}: a tensor with a size of {size!r:.40}")
        count *= size
        if count * itemsize > MOST_BYTES:
            raise ValueError(f"{name}: a tensor of more than 2**62 bytes")
    if len(shape) > MOST_DIMS:
        raise ValueError(f"{name}: a tensor of {len(shape)} dimensions")
    return count


def booleans(content: Any) -> Any:
    """Bytes as booleans: what is not 0 is True."""
    return content.view(np.bool_) if not (content > 1).any() else content != 0


def elements(content: Any, np_dtype: Any) -> Any:
    """The elements in an array of bytes, in the machine's byte order, on aligned memory."""
    if np_dtype.kind == "b":
        return booleans(content)
    if content.__array_interface__["data"][0] % np_dtype.itemsize:
        content = content.copy()
    found = content.view(np_dtype)
    return found if np_dtype.isnative else found.astype(np_dtype.newbyteorder("="))


def shared(array: Any) -> Tensor:
    """A tensor that shows numpy's array; of arrays in Fortran's order with those strides."""
    made: Tensor = functions["from_numpy"](array)
    return made


def made(flat: Any, dtype: DType, shape: tuple[int, ...]) -> Tensor:
    """A contiguous tensor over a flat array of just its elements."""
    return tensor.wrap(flat.reshape(shape), tensor.kind_of(dtype), layout.contiguous(shape))


def array_of(value: object, name: str = "a value") -> tuple[Any, DType]:
    """The numbers of a tensor, an array, a number or a nested list, and their dtype.

    Raises TypeError for what is none of these, and for tensors without data in main memory.
    """
    array = foreign.array_of(value)
    if array is not None:
        return array, foreign.dtype_of(array)
    if type(value) in (bool, int, float, complex, list, tuple):
        value = functions["tensor"](value)
    if not isinstance(value, Tensor):
        raise TypeError(f"cannot save {name} of type '{type(value).__name__}' as a tensor")
    check_on_cpu(value)
    return (value.array.read() if lazy.is_lazy(value) else value.array), value.dtype


def check_on_cpu(value: Tensor) -> None:
    if value.array is None:
        raise TypeError("a tensor on meta has no data to save")
    if value.device.type != "cpu":
        raise TypeError(f"a tensor on {value.device} cannot be saved: save its .cpu()")


def plain_array_of(value: object, form: str, name: str = "a value") -> Any:
    """The same for formats that know no more dtypes than numpy."""
    array, dtype = array_of(value, name)
    if dtype in (dtypes.bfloat16, dtypes.float8_e4m3fn, dtypes.float8_e5m2):
        raise TypeError(
            f"{form} has no {dtype.name}: save .float(), or use .safetensors or .pt instead"
        )
    return array
