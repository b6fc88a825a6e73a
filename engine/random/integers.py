"""Integer draws and permutations from a generator's words, for every dtype they may be put in."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.dtypes import by_name
from engine.errors import DtypeNotImplementedError, TensorRuntimeError
from engine.random.source import BLOCK
from engine.random.uniform import LARGEST, cast

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engine.random.source import Generator

_LOWEST = -(1 << 63)
_ALL_64 = 1 << 64
_WIDE_RANGE = 1 << 28  # from here on a draw takes two words
_RUNS_PAY = 60_000  # elements from which exchanges in runs beat a plain loop
_HALF_WORD = np.uint64(32)

# Bits of the significand: the largest power of two up to which every integer is a value.
_DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
_BOUNDS = {
    "bool": (0, 1),
    "uint8": (0, 255),
    "int8": (-128, 127),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "int64": (_LOWEST, (1 << 63) - 1),
    "uint16": (0, (1 << 16) - 1),
    "uint32": (0, (1 << 32) - 1),
    "uint64": (0, (1 << 63) - 1),  # PyTorch takes bounds as int64
}
# What PyTorch's bounds checks call the dtypes.
_SPELLED = {
    "bool": "bool",
    "uint8": "unsigned char",
    "int8": "signed char",
    "int16": "short int",
    "int32": "int",
    "int64": "long int",
    "uint16": "short unsigned int",
    "uint32": "unsigned int",
    "uint64": "long unsigned int",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "float32": "float",
    "float64": "double",
}


def randint(generator: Generator, n: int, low: int, high: int, dtype: str) -> NDArray[Any]:
    """`n` integers in [low, high): random_(low, high) by torch.randint's name."""
    return random_from_to(generator, n, low, high, dtype)


def random_from_to(generator: Generator, n: int, low: int, high: int, dtype: str) -> NDArray[Any]:
    """random_(low, high). In float dtypes a bound that rounds out of the range moves inward.

    Raises RuntimeError for an empty range and for bounds outside the dtype.
    """
    if not low < high:
        raise TensorRuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    if dtype in _DIGITS:
        low, high = _moved_up(low, dtype), _moved_down(high, dtype)
        if not low < high:
            raise TensorRuntimeError(
                "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, "
                f"but got from={low} >= to={high}"
            )
    _check_bounds(low, high - 1, dtype)
    return _in_range(generator, n, high - low, low, dtype)


def random_from(generator: Generator, n: int, low: int, dtype: str) -> NDArray[Any]:
    """random_(low, None): up to the dtype's largest (or largest exact) integer, inclusive."""
    if low == _LOWEST:
        if dtype in ("uint8", "int8", "int16", "int32"):
            raise TensorRuntimeError(
                "random_full_64_bits_range_kernel_cpu handles only int64, double, float and "
                "bfloat16"
            )
        if dtype not in ("int64", "float64", "float32", "bfloat16"):
            raise _no_kernel("random_full_64_bits_range_kernel_cpu", dtype)
        return _in_range(generator, n, _ALL_64, 0, dtype)
    if dtype in _DIGITS:
        last = 1 << _DIGITS[dtype]
        low = _moved_up(low, dtype)
        if not low < last:
            raise TensorRuntimeError(
                "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' "
                f"casted to dtype, but got from={low} > to_inc={last}"
            )
    elif dtype in _BOUNDS:
        last = _BOUNDS[dtype][1] if dtype != "uint64" else -1
    else:
        raise TensorRuntimeError(
            "random_from_to_impl handles only integral, floating-point and boolean types"
        )
    _check_bounds(low, last, dtype)
    return _in_range(generator, n, last - low + 1, low, dtype)


def random_(generator: Generator, n: int, dtype: str) -> NDArray[Any]:
    """random_(): 0 to the largest value of an integer dtype, 0 to 2**digits of a float dtype."""
    if dtype in _DIGITS:
        span = (1 << _DIGITS[dtype]) + 1
    elif dtype in ("uint16", "uint32", "uint64") or dtype not in _BOUNDS:
        raise _no_kernel("random_kernel_cpu", dtype)
    else:
        span = _BOUNDS[dtype][1] + 1
    wide = dtype in ("int64", "float64")
    return _put(_remainders(generator, n, span, wide=wide).astype(np.int64), dtype)


def randperm(generator: Generator, n: int, dtype: str = "int64") -> NDArray[Any]:
    """A permutation of 0 … n - 1 by exchanges from the front, one word each."""
    if dtype == "bool" or dtype not in _BOUNDS and dtype not in _DIGITS:
        raise _no_kernel("randperm", dtype)
    if n < 2:
        return _put(np.arange(n), dtype)
    spans = np.arange(n, 1, -1, dtype=np.uint32)
    targets = np.concatenate([*generator.blocks(n - 1)]) % spans + np.arange(n - 1)
    return _put(_exchanged(n, targets), dtype)


def _exchanged(n: int, targets: NDArray[np.int64]) -> NDArray[np.int64]:
    """0 … n - 1 after exchanging element i with element targets[i] >= i, for i in order.

    Far from the end a run of exchanges seldom meets itself and is done at once; one that does,
    and the end, go one by one. At 10**6 elements that takes 1/6 of the time of a plain loop.
    """
    numbers = np.arange(n)
    marks = np.empty(n, np.int64)
    start = 0
    while n - start > _RUNS_PAY:
        stop = start + math.isqrt(n - start) // 4
        ahead = targets[start:stop]
        order = np.arange(stop - start)
        marks[ahead] = order
        if int(ahead.min()) >= stop and (marks[ahead] == order).all():
            taken = numbers[ahead]
            numbers[ahead] = numbers[start:stop]
            numbers[start:stop] = taken
        else:
            for index, other in zip(range(start, stop), ahead.tolist(), strict=True):
                kept = numbers[index]
                numbers[index] = numbers[other]
                numbers[other] = kept
        start = stop
    rest = numbers[start:].tolist()
    for index, other in enumerate((targets[start:] - start).tolist()):
        rest[index], rest[other] = rest[other], rest[index]
    numbers[start:] = rest
    return numbers


def _no_kernel(kernel: str, dtype: str) -> DtypeNotImplementedError:
    return DtypeNotImplementedError(f"\"{kernel}\" not implemented for '{by_name[dtype].title}'")


def _in_range(generator: Generator, n: int, span: int, low: int, dtype: str) -> NDArray[Any]:
    wide = span >= _WIDE_RANGE
    drawn = _remainders(generator, n, span, wide=wide)
    if not wide and dtype == "int64":
        sums: NDArray[np.int64] = np.add(drawn, np.int64(low), dtype=np.int64)
        return sums
    values = drawn.view(np.int64) if wide else drawn.astype(np.int64)
    if low:
        values = values + np.int64(low)
    return _put(values, dtype)


def _put(values: NDArray[np.int64], dtype: str) -> NDArray[Any]:
    if dtype in ("float16", "bfloat16"):
        return cast(values.astype(np.float32), dtype)
    put: NDArray[Any] = values.astype(by_name[dtype].np, copy=False)
    return put


def _remainders(generator: Generator, n: int, span: int, *, wide: bool) -> NDArray[Any]:
    """`n` draws modulo span, uint64 if wide else uint32."""
    kind: Any = np.uint64 if wide else np.uint32
    width = 2 if wide else 1
    drawn = np.empty(n, kind)
    start = 0
    for words in generator.blocks(width * n):
        part: NDArray[Any] = words
        if wide:
            pairs = words.view(np.uint64)
            part = (pairs << _HALF_WORD) | (pairs >> _HALF_WORD)
        stop = start + part.size
        if span >= _ALL_64 or (not wide and span > 0xFFFFFFFF):
            drawn[start:stop] = part
        elif part.size < BLOCK // 16:
            np.remainder(part, kind(span), out=drawn[start:stop])
        else:
            # Division by one number is vectorised, remainder is not: 0.4 against 2.5 ns.
            quotients = part // kind(span)
            quotients *= kind(span)
            np.subtract(part, quotients, out=drawn[start:stop])
        start = stop
    return drawn


def _check_bounds(low: int, last: int, dtype: str) -> None:
    if dtype in _DIGITS:
        largest: float = LARGEST[dtype]
        least: float = -largest
    elif dtype in _BOUNDS:
        least, largest = _BOUNDS[dtype]
    else:
        raise TensorRuntimeError(
            "check_random_bounds handles only integral, floating-point and boolean types"
        )
    for value, name in ((low, "from"), (last, "to - 1")):
        if not least <= value <= largest:
            raise TensorRuntimeError(f"{name} is out of bounds for {_SPELLED[dtype]}")


def _stored(value: int, dtype: str) -> int:
    """The integer after a trip through the float dtype; beyond its range, int64's lowest."""
    stored = float(cast(np.array([value], np.int64).astype(np.float64), dtype)[0])
    return int(stored) if abs(stored) < 2.0**63 else _LOWEST


def _spacing(value: int, dtype: str) -> int:
    shift = abs(value).bit_length() - _DIGITS[dtype]
    return 1 << shift if shift >= 0 else 0


def _moved_up(low: int, dtype: str) -> int:
    stored = _stored(low + 1, dtype)
    return stored + _spacing(low + 1, dtype) if stored < low else low


def _moved_down(high: int, dtype: str) -> int:
    stored = _stored(high - 1, dtype)
    return stored - _spacing(high - 1, dtype) if stored >= high else high
