"""A tensor in a few numbers: range, mean, norm, and how many elements are not finite."""

from __future__ import annotations

import numpy as np

from tensorcli.results import Summary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from engine.tensor import Tensor


def doubles(tensor: Tensor) -> Any:
    """The elements as float64 (magnitudes, for complex ones); None on meta."""
    array = tensor.array
    if array is None:
        return None
    fetch = getattr(array, "get", None)
    if fetch is not None:
        array = fetch()
    if tensor.dtype.is_complex:
        array = np.abs(array)
    return np.asarray(array).astype(np.float64)


def summary(tensor: Tensor) -> Summary:
    """Over the finite elements; the norm over all of them."""
    values = doubles(tensor)
    if values is None:
        return Summary(tensor.layout.numel, None, None, None, None, 0, 0)
    finite = np.isfinite(values)
    nan, inf = int(np.isnan(values).sum()), int(np.isinf(values).sum())
    kept = values[finite]
    if kept.size == 0:
        return Summary(values.size, None, None, None, None, nan, inf)
    norm = float(np.sqrt((kept * kept).sum())) if kept.size == values.size else None
    return Summary(
        values.size, float(kept.min()), float(kept.max()), float(kept.mean()), norm, nan, inf
    )


def not_finite(tensor: Tensor) -> tuple[bool, bool]:
    """Whether there is a NaN, and whether there is an infinity."""
    if not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
        return False, False
    array = tensor.array
    if array is None or array.size == 0:
        return False, False
    if np.isfinite(array).all():
        return False, False
    return bool(np.isnan(array).any()), bool(np.isinf(array).any())
