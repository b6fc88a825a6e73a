"""Uniform draws in [0, 1) and [low, high) from a generator's words; knows no other distribution.

A float32 draw keeps the low 24 bits of one word, a float64 draw the low 53 bits of two, the
first one high.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine.dtypes import by_name
from engine.errors import TensorRuntimeError
from engine.random.source import BLOCK

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engine.random.source import Generator

# The largest finite value of the dtypes that are filled with real draws.
LARGEST = {
    "float16": 65504.0,
    "bfloat16": (2 - 2.0**-7) * 2.0**127,
    "float32": (2 - 2.0**-23) * 2.0**127,
    "float64": (2 - 2.0**-52) * 2.0**1023,
}

_LOW_24 = np.uint32((1 << 24) - 1)
_SCALE_24 = np.float32(2.0**-24)
_LOW_21 = np.uint64((1 << 21) - 1)
_HALF_WORD = np.uint64(32)
_SCALE_53 = 2.0**-53
_DEKKER = 134217729.0  # 2**27 + 1 splits a float64 into two halves whose products are exact


def floats24(generator: Generator, n: int) -> NDArray[np.float32]:
    """`n` float32 draws of 24 bits."""
    if n <= BLOCK:
        few = (generator.words(n) & _LOW_24).astype(np.float32)
        few *= _SCALE_24
        return few
    drawn = np.empty(n, np.float32)
    start = 0
    for words in generator.blocks(n):
        part = drawn[start : start + words.size]
        part[:] = words & _LOW_24
        part *= _SCALE_24
        start += words.size
    return drawn


def floats53(generator: Generator, n: int) -> NDArray[np.float64]:
    """`n` float64 draws of 53 bits."""
    if 2 * n <= BLOCK:
        return _of_pairs(generator.words(2 * n))
    drawn = np.empty(n)
    start = 0
    for words in generator.blocks(2 * n):
        stop = start + words.size // 2
        drawn[start:stop] = _of_pairs(words)
        start = stop
    return drawn


def _of_pairs(words: NDArray[np.uint32]) -> NDArray[np.float64]:
    pairs = words.view(np.uint64)
    mantissas = (pairs & _LOW_21) << _HALF_WORD
    mantissas |= pairs >> _HALF_WORD
    drawn = mantissas.view(np.int64).astype(np.float64)  # signed: the conversion has an instruction
    drawn *= _SCALE_53
    return drawn


def cast(values: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Float results to a dtype by name, by way of float32 where PyTorch goes that way."""
    record = by_name[dtype]
    if record.low and values.dtype == np.float64:
        values = values.astype(np.float32)
    if values.dtype == record.np:
        return values
    with np.errstate(over="ignore"):
        result: NDArray[Any] = values.astype(record.np, copy=False)
    return result


def fused(a: NDArray[Any], b: float, c: float) -> NDArray[Any]:
    """`a * b + c` rounded once, as PyTorch's kernels do; `b` and `c` have the dtype of `a`."""
    if b == 1:
        moved: NDArray[Any] = a + a.dtype.type(c)
        return moved
    if a.dtype == np.float32:
        return (a.astype(np.float64) * b + c).astype(np.float32)
    product = a * b
    if c == 0:
        return product
    rough = product + c
    a_high = a * _DEKKER
    a_high -= a_high - a
    b_high = b * _DEKKER
    b_high -= b_high - b
    a_low, b_low = a - a_high, b - b_high
    lost = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    back = rough - product
    lost += (product - (rough - back)) + (c - back)
    exact = rough + lost
    return np.where(np.isfinite(exact), exact, rough)  # the split of a huge factor overflows


def uniform(
    generator: Generator, n: int, dtype: str, low: float = 0.0, high: float = 1.0
) -> NDArray[Any]:
    """`n` draws in [low, high). complex dtypes draw both parts, the real one first.

    A draw that rounds up to `high` comes out as `low`, in every dtype.
    Raises RuntimeError where the bounds are out of order or out of the dtype's range.
    """
    if dtype.startswith("complex"):
        part = "float32" if dtype == "complex64" else "float64"
        return uniform(generator, 2 * n, part, low, high).view(dtype)
    low, high = _checked_bounds(dtype, low, high)
    if dtype == "float64":
        drawn: NDArray[Any] = floats53(generator, n)
        start, end = low, high
        span = high - low
    else:
        drawn = floats24(generator, n)
        start, end = float(np.float32(low)), float(np.float32(high))
        span = float(np.float32(end - start))
    if span != 1 or start != 0:
        drawn = fused(drawn, span, start)
    elif dtype in ("float32", "float64"):
        return drawn  # below 1 as they are
    result = cast(drawn, dtype)
    kind = result.dtype.type
    result[result == kind(end)] = kind(start)
    return result


def _checked_bounds(dtype: str, low: float, high: float) -> tuple[float, float]:
    if 0 <= low <= high <= 1:
        return low, high
    record = by_name[dtype]
    largest = LARGEST[dtype]
    for value, name in ((low, "from"), (high, "to")):
        if not -largest <= value <= largest:
            raise TensorRuntimeError(f"{name} is out of bounds for {record.cpp}")
    if not low <= high:
        raise TensorRuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}"
        )
    if high - low > largest:
        raise TensorRuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{record.title}>::max(), but found "
            f"to={high:g} and from={low:g} which result in to-from to exceed the limit"
        )
    return low, high
