"""How arrays of other libraries come in and go out; knows numpy's, and whatever is entered here.

A program that embeds the engine may show arrays as values of its own: it sets ``wrap`` and
enters its type in ``arrays``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine import dtypes
from engine.errors import TensorTypeError, TensorValueError

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.dtypes import DType

# Type of an array -> function to numpy's array that shares its memory.
arrays: dict[type, Callable[[Any], Any]] = {np.ndarray: lambda array: array}

_SUPPORTED = (
    "float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, "
    "uint16, uint8, and bool"
)


class Exchange:
    """What numpy arrays that leave the engine are handed out as, and how functions come in:
    ``function`` gives what may be called for a value that a program passes as a function."""

    __slots__ = ("function", "wrap")

    def __init__(self) -> None:
        self.wrap: Callable[[Any], Any] = lambda array: array
        self.function: Callable[[Any], Callable[..., Any]] = lambda value: value


exchange = Exchange()


def array_of(value: Any) -> Any:
    """numpy's array behind ``value``, None if it is no array."""
    found = arrays.get(value.__class__)
    return None if found is None else found(value)


def dtype_of(array: Any) -> DType:
    """The dtype of a numpy array or scalar. Raises TypeError for those PyTorch has no name for."""
    found = dtypes.from_np(array.dtype) if array.dtype.kind in "biufcV" else None
    if found is None:
        raise TensorTypeError(
            f"can't convert np.ndarray of type {_type_text(array.dtype)}. The only supported "
            f"types are: {_SUPPORTED}."
        )
    return found


def _type_text(dtype: Any) -> str:
    kind = dtype.type
    return f"numpy.{kind.__name__}"


def check_geometry(array: Any) -> None:
    """Refuse what no tensor can show: foreign byte order, strides that run backwards or between
    elements."""
    if not array.dtype.isnative:
        raise TensorValueError(
            "given numpy array has byte order different from the native byte order. Conversion "
            "between byte orders is currently not supported."
        )
    for stride in array.strides:
        if stride < 0:
            raise TensorValueError(
                "At least one stride in the given numpy array is negative, and tensors with "
                "negative strides are not currently supported. (You can probably work around "
                "this by making a copy of your array  with array.copy().) "
            )
        if stride % array.itemsize:
            raise TensorValueError(
                "given numpy array strides not a multiple of the element byte size. Copy the "
                "numpy array to reallocate the memory."
            )
