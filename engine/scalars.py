"""Python numbers on their way into a dtype: what fits, what wraps and what PyTorch refuses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from engine import dtypes
from engine.errors import EngineError, TensorRuntimeError
from engine.modes import state

if TYPE_CHECKING:
    from engine.dtypes import DType

_SPELLED = {
    "int8": "int8_t",
    "uint8": "uint8_t",
    "int16": "int16_t",
    "uint16": "uint16_t",
    "int32": "int",
    "uint32": "uint32_t",
    "int64": "int64_t",
    "uint64": "uint64_t",
}


class NumberOverflowError(EngineError, OverflowError):
    """Python raises OverflowError here."""

    code = "overflow"


def number_dtype(value: Any) -> DType:
    """The dtype that a Python number gives a tensor: floats the default dtype."""
    kind = value.__class__
    if kind is bool:
        return dtypes.bool_
    if kind is int:
        return dtypes.int64
    return dtypes.complex_of(state.default_dtype) if kind is complex else state.default_dtype


def check_width(value: Any) -> None:
    """Refuse an integer that neither int64 nor uint64 holds."""
    if value.__class__ is int and not -(2**63) <= value < 2**64:
        raise NumberOverflowError("int too big to convert")


def overflows(value: Any, dtype: DType) -> bool:
    """PyTorch's test before a number becomes an element: negative integers wrap into unsigned
    dtypes, infinities pass into the dtypes that have them."""
    if dtype.is_bool:
        return False
    if value.__class__ is complex:
        if not dtype.is_complex:
            return value.imag != 0 or overflows(value.real, dtype)
        part = dtypes.real_of(dtype)
        return overflows(value.real, part) or overflows(value.imag, part)
    if dtype.is_integral:
        limits = np.iinfo(dtype.np)
        if value.__class__ is float:
            return not limits.min <= value <= limits.max
        if dtype.name == "uint64":
            return False
        return not (limits.min if dtype.signed else -limits.max) <= value <= limits.max
    if value != value or abs(value) == math.inf:
        return False
    return bool(abs(value) > largest(dtype))


def largest(dtype: DType) -> float:
    """The largest finite value of a floating-point or complex dtype."""
    real = dtypes.real_of(dtype)
    if real.name in ("float16", "float32", "float64"):
        return float(np.finfo(real.np).max)
    import ml_dtypes

    limits: Any = ml_dtypes.finfo
    return float(limits(real.np).max)


def element(value: Any, dtype: DType) -> Any:
    """``value`` as a 0-d array of ``dtype``. Raises RuntimeError where it does not fit."""
    check_fits(value, dtype)
    return _stored(value, dtype)


def check_fits(value: Any, dtype: DType) -> None:
    """Refuse a number that ``dtype`` cannot hold, in PyTorch's words."""
    check_width(value)
    if overflows(value, dtype):
        spelled = _SPELLED.get(dtype.name, dtype.cpp)
        if value.__class__ is complex and dtype.low:
            spelled = "double"
        raise TensorRuntimeError(f"value cannot be converted to type {spelled} without overflow")


def _stored(value: Any, dtype: DType) -> Any:
    if dtype.is_bool:
        return np.array(bool(value))
    if value.__class__ is complex and not dtype.is_complex:
        value = value.real
    if value.__class__ is int or value.__class__ is bool:
        wide = np.array(value, np.uint64 if value >= 2**63 else np.int64)
        return wide.astype(dtype.np)
    if dtype.is_integral:
        return np.array(int(value)).astype(dtype.np)
    if dtype.low:
        return np.array(value, np.float32).astype(dtype.np)
    return np.array(value).astype(dtype.np)
