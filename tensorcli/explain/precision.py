"""precision(x): what a tensor's values lose in dtypes of lower precision."""

from __future__ import annotations

import numpy as np

from engine import dtypes
from tensorcli.explain.summary import doubles
from tensorcli.results import PrecisionResult, PrecisionRow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from engine.dtypes import DType
    from engine.tensor import Tensor

# dtype -> explicit mantissa bits, exponent of the smallest normal number, largest finite number.
FORMATS: dict[str, tuple[int, int, float]] = {
    "float64": (52, -1022, 1.7976931348623157e308),
    "float32": (23, -126, 3.4028234663852886e38),
    "float16": (10, -14, 65504.0),
    "bfloat16": (7, -126, 3.3895313892515355e38),
    "float8_e4m3fn": (3, -6, 448.0),
    "float8_e5m2": (2, -14, 57344.0),
}


def explain(
    tensor: Tensor, wanted: Sequence[DType], line: int | None, *, asked: bool = True
) -> PrecisionResult:
    """A row for each dtype; without any, for all that hold less than the tensor's own.

    Raises TypeError for what is not a real floating-point tensor or dtype.
    """
    if not tensor.dtype.is_floating_point:
        raise TypeError(f"precision() takes a floating-point tensor, not {tensor.dtype.name}")
    if not wanted:
        bits = FORMATS[tensor.dtype.name][0]
        wanted = [dtypes.by_name[name] for name, row in FORMATS.items() if row[0] < bits]
    values = doubles(tensor)
    if values is None:
        raise TypeError("precision() needs a tensor with data, not one on meta")
    rows = tuple(_row(values, dtype) for dtype in wanted)
    return PrecisionResult(tensor.dtype.name, rows, line, asked)


def _row(values: Any, dtype: DType) -> PrecisionRow:
    if dtype.name not in FORMATS:
        raise TypeError(f"precision() compares floating-point dtypes, not {dtype.name}")
    with np.errstate(all="ignore"):
        return compare(values, cast(values, dtype), dtype.name)


def cast(values: Any, dtype: DType) -> Any:
    """Doubles rounded to a dtype, as doubles again; through float32 where PyTorch goes so."""
    if dtype.itemsize < 4:
        values = values.astype(np.float32)
    return values.astype(dtype.np).astype(np.float64)


def spacing(magnitude: Any, dtype: str) -> Any:
    """The distance between neighbours of a dtype at a magnitude, on the side away from zero."""
    mantissa, lowest, _ = FORMATS[dtype]
    _, exponent = np.frexp(magnitude)
    return np.ldexp(1.0, np.maximum(exponent - 1, lowest) - mantissa)


def compare(exact: Any, rounded: Any, dtype: str) -> PrecisionRow:
    """What `rounded`, values of that dtype, lost against `exact`; both as float64 arrays."""
    lowest = FORMATS[dtype][1]
    finite = np.isfinite(exact)
    kept = finite & np.isfinite(rounded)
    x, y = exact[kept], rounded[kept]
    error = np.abs(y - x)
    magnitude = np.abs(x)
    relative = error[magnitude > 0] / magnitude[magnitude > 0]
    ulp = spacing(magnitude, dtype)
    same = (exact == rounded) | (np.isnan(exact) & np.isnan(rounded))
    smallest = 2.0**lowest
    return PrecisionRow(
        dtype=dtype,
        count=int(exact.size),
        exact=int(same.sum()),
        max_absolute=float(error.max(initial=0.0)),
        max_relative=float(relative.max(initial=0.0)),
        max_ulp=float((error / ulp).max(initial=0.0)),
        overflowed=int((finite & ~np.isfinite(rounded)).sum()),
        subnormal=int(((y != 0) & (np.abs(y) < smallest)).sum()),
        zeroed=int(((x != 0) & (y == 0)).sum()),
        sqnr_db=_sqnr(x, y - x),
    )


def _sqnr(signal: Any, noise: Any) -> float | None:
    """The ratio of the values' power to the error's in dB; None without an error or a value."""
    if not np.any(noise) or not np.any(signal):
        return None
    scale = np.abs(signal).max()  # squares of extreme values would overflow or vanish
    ratio = np.square(signal / scale).sum() / np.square(noise / scale).sum()
    return float(10.0 * np.log10(ratio)) if 0 < ratio < np.inf else None
