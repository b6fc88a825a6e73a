"""finfo and iinfo: the numeric limits of a dtype as PyTorch's objects show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine import dtypes, scalars
from engine.errors import TensorTypeError
from engine.modes import state

if TYPE_CHECKING:
    from engine.dtypes import DType

# Decimal digits that survive a trip through text: 10 ** -digits is the resolution.
_DIGITS = {
    "float64": 15,
    "float32": 6,
    "float16": 3,
    "bfloat16": 2,
    "float8_e4m3fn": 0,
    "float8_e5m2": 0,
}
# Bits of the significand's fraction, and the smallest normal exponent.
_SHAPES = {
    "float64": (52, -1022),
    "float32": (23, -126),
    "float16": (10, -14),
    "bfloat16": (7, -126),
    "float8_e4m3fn": (3, -6),
    "float8_e5m2": (2, -14),
}


class FloatLimits:
    """torch.finfo of a dtype; that of a complex one describes its parts."""

    __slots__ = ("named",)

    type_name = "finfo"

    def __init__(self, dtype: DType):
        self.named = dtypes.real_of(dtype)

    @property
    def bits(self) -> int:
        return self.named.itemsize * 8

    @property
    def max(self) -> float:
        return scalars.largest(self.named)

    @property
    def min(self) -> float:
        return -self.max

    @property
    def eps(self) -> float:
        return 2.0 ** -_SHAPES[self.named.name][0]

    @property
    def tiny(self) -> float:
        return 2.0 ** _SHAPES[self.named.name][1]

    @property
    def resolution(self) -> float:
        return float(f"1e-{_DIGITS[self.named.name]}")

    @property
    def dtype(self) -> str:
        return self.named.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FloatLimits) and other.named is self.named

    def __hash__(self) -> int:
        return hash(self.named)

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.tiny:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


FloatLimits.__name__ = "torch.finfo"  # what Python's own errors call it


class IntegerLimits:
    """torch.iinfo of an integer dtype."""

    __slots__ = ("named",)

    type_name = "iinfo"

    def __init__(self, dtype: DType):
        self.named = dtype

    @property
    def bits(self) -> int:
        return self.named.itemsize * 8

    @property
    def max(self) -> int:
        return int(np.iinfo(self.named.np).max)

    @property
    def min(self) -> int:
        return int(np.iinfo(self.named.np).min)

    @property
    def dtype(self) -> str:
        return self.named.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IntegerLimits) and other.named is self.named

    def __hash__(self) -> int:
        return hash(self.named)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


IntegerLimits.__name__ = "torch.iinfo"  # what Python's own errors call it


def finfo(type: Any = None) -> FloatLimits:
    """The limits of a floating-point dtype, of the default one when none is named."""
    if type is None:
        return FloatLimits(state.default_dtype)
    _check(type, "finfo")
    if type.category < dtypes.FLOAT:
        raise TensorTypeError(
            "torch.finfo() requires a floating point input type. Use torch.iinfo to handle "
            "'torch.finfo'"
        )
    return FloatLimits(type)


def iinfo(type: Any) -> IntegerLimits:
    """The limits of an integer dtype."""
    _check(type, "iinfo")
    if type.category >= dtypes.FLOAT:
        raise TensorTypeError(
            "torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'"
        )
    if type.is_bool:
        raise TensorTypeError("torch.bool is not supported by torch.iinfo")
    return IntegerLimits(type)


def _check(given: Any, name: str) -> None:
    if not isinstance(given, dtypes.DType):
        from engine.signature import type_name

        raise TensorTypeError(
            f"{name}(): argument 'type' (position 1) must be torch.dtype, not {type_name(given)}"
        )
