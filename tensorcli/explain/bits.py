"""bits(x): elements as their bits; dtypes(): what the floating-point dtypes hold."""

from __future__ import annotations

import math

import numpy as np

from engine.tensor import Tensor
from tensorcli.explain.precision import FORMATS
from tensorcli.value_results import BitsResult, BitsRow, DtypeRow, DtypesResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from engine.dtypes import DType

MOST_ROWS = 16

EXPONENT_BITS = {
    "float64": 11,
    "float32": 8,
    "float16": 5,
    "bfloat16": 8,
    "float8_e4m3fn": 4,
    "float8_e5m2": 5,
}
# The one float that spends its highest exponent on numbers: a NaN is all ones, there is no inf.
WITHOUT_INF = "float8_e4m3fn"


def explain(tensor: Tensor) -> BitsResult:
    """A row for each element, those beyond the first few left out.

    Raises TypeError for complex tensors and those without data.
    """
    if tensor.dtype.is_complex:
        raise TypeError(f"bits() takes real numbers, not {tensor.dtype.name}")
    array = tensor.array
    if array is None:
        raise TypeError("bits() needs a tensor with data, not one on meta")
    array = np.asarray(array)
    count = min(array.size, MOST_ROWS)
    indices = [tuple(int(i) for i in np.unravel_index(n, array.shape)) for n in range(count)]
    rows = tuple(_row(array[index], index, tensor.dtype) for index in indices)
    return BitsResult(tensor.dtype.name, rows, array.size - count)


def _row(value: Any, index: tuple[int, ...], dtype: DType) -> BitsRow:
    width = 8 * dtype.itemsize
    raw = int.from_bytes(np.asarray(value).tobytes(), "little")
    text = f"{raw:0{width}b}"
    if dtype.name not in EXPONENT_BITS:
        fields = [("sign", text[:1]), ("value", text[1:])] if dtype.signed else [("value", text)]
        if dtype.is_bool:
            fields = [("value", text)]
        return BitsRow(index, str(value), tuple(fields), "integer", None, None, None, None)
    middle = 1 + EXPONENT_BITS[dtype.name]
    parts = (("sign", text[:1]), ("exponent", text[1:middle]), ("mantissa", text[middle:]))
    number = float(value)
    kind = _kind(number, dtype.name)
    if kind in ("NaN", "infinite"):
        return BitsRow(index, str(number), parts, kind, None, None, None, None)
    mantissa, lowest, _ = FORMATS[dtype.name]
    exponent = max(math.frexp(number)[1] - 1, lowest) if number else lowest
    below, above = _neighbours(raw, width, dtype)
    gap = math.ldexp(1.0, exponent - mantissa)
    return BitsRow(index, repr(number), parts, kind, exponent, gap, below, above)


def _kind(number: float, dtype: str) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "infinite"
    if number == 0:
        return "zero"
    return "subnormal" if abs(number) < 2.0 ** FORMATS[dtype][1] else "normal"


def _neighbours(raw: int, width: int, dtype: DType) -> tuple[float | None, float | None]:
    """The next smaller and the next larger number of the dtype, None where there is none."""
    top = 1 << (width - 1)
    ordered = raw if raw < top else -(raw - top)  # sign and magnitude as one scale

    def at(place: int) -> float | None:
        bits = place if place >= 0 else top - place
        if bits >= 1 << width or (place >= top):
            return None
        array = np.frombuffer(bits.to_bytes(width // 8, "little"), dtype.np)
        number = float(array[0])
        return None if math.isnan(number) else number

    return at(ordered - 1), at(ordered + 1)


def table() -> DtypesResult:
    """The limits of each floating-point dtype, widest first."""
    rows = []
    for name, (mantissa, lowest, largest) in FORMATS.items():
        rows.append(
            DtypeRow(
                dtype=name,
                bits=(1, EXPONENT_BITS[name], mantissa),
                eps=2.0**-mantissa,
                max=largest,
                smallest_normal=2.0**lowest,
                smallest_subnormal=math.ldexp(1.0, lowest - mantissa),
                digits=int(mantissa * math.log10(2.0)),
                largest_exact_integer=2 ** (mantissa + 1),
            )
        )
    return DtypesResult(tuple(rows))
