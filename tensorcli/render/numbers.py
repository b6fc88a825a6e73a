"""A tensor's elements as decimal text: the shortest that reads back to the same value."""

from __future__ import annotations

import numpy as np

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


def float_text(value: float) -> str:
    """Strict JSON has no NaN and no infinity: they become strings."""
    if value - value == 0.0:
        return repr(value)
    return '"nan"' if value != value else '"inf"' if value > 0 else '"-inf"'


def _doubles(array: Any) -> list[str]:
    return [float_text(value) for value in array.tolist()]


_NOT_FINITE = {"nan": '"nan"', "inf": '"inf"', "-inf": '"-inf"'}


def _scalars(array: Any) -> list[str]:
    """numpy's own scalars print the shortest decimal of their dtype."""
    texts = list(map(str, array))
    if not np.isfinite(array).all():
        texts = [_NOT_FINITE.get(text, text) for text in texts]
    return texts


def _small(array: Any) -> list[str]:
    """Dtypes that numpy does not know: few digits, and few distinct values."""
    known: dict[float, str] = {}
    texts = []
    with np.errstate(invalid="ignore"):  # signalling NaN
        values = array.astype("float64").tolist()
    for value in values:
        text = known.get(value)
        if text is None:
            text = known[value] = _shortest(value, array.dtype.type)
        texts.append("-0.0" if text == "0.0" and _negative_zero(value) else text)
    return texts


def _negative_zero(value: float) -> bool:
    return str(value) == "-0.0"


def _shortest(value: float, scalar: Callable[[float], Any]) -> str:
    if value - value != 0.0:
        return float_text(value)
    for digits in range(1, 9):
        short = float(f"{value:.{digits}g}")
        if float(scalar(short)) == value:
            return repr(abs(short) if value == 0.0 else short)
    return repr(value)


def _complex(part: Callable[[Any], list[str]], name: str) -> Callable[[Any], list[str]]:
    def texts(array: Any) -> list[str]:
        parts = part(np.ascontiguousarray(array).view(name))
        return [f"[{re},{im}]" for re, im in zip(parts[::2], parts[1::2], strict=True)]

    return texts


_TEXTS: dict[str, Callable[[Any], list[str]]] = {
    "bool": lambda array: ["true" if value else "false" for value in array.tolist()],
    "float64": _doubles,
    "float32": _scalars,
    "float16": _scalars,
    "bfloat16": _small,
    "float8_e4m3fn": _small,
    "float8_e5m2": _small,
    "complex64": _complex(_scalars, "float32"),
    "complex128": _complex(_doubles, "float64"),
}


def array_text(array: Any, dtype: str) -> str:
    """An array's elements as nested JSON lists, a 0-d array as its one element."""
    if array.size == 0:
        return str(array.tolist()).replace(" ", "")
    texts_of = _TEXTS.get(dtype)
    if texts_of is None:  # the integers: Python's lists of them are JSON as they stand
        return str(array.tolist()).replace(" ", "")
    return _nest(texts_of(array.reshape(-1)), array.shape)


def _nest(texts: Sequence[str], shape: Sequence[int]) -> str:
    for size in reversed(shape):
        texts = [
            "[" + ",".join(texts[start : start + size]) + "]"
            for start in range(0, len(texts), size)
        ]
    return texts[0]
