"""What index tensors may be: dtypes and bounds, refused in PyTorch's words; knows no op."""

from __future__ import annotations

from typing import Any

from engine import dtypes
from engine.errors import TensorIndexError, TensorRuntimeError

WHOLE = (dtypes.int64, dtypes.int32)


def check_vector(at: Any, size: int, ndim: int) -> None:
    """Refuse values outside 0 to size-1, as the ops that take a vector of indices do."""
    if at.size == 0 or (at.min() >= 0 and at.max() < size):
        return
    if ndim <= 1:
        raise TensorIndexError("index out of range in self")
    bad = at[(at < 0) | (at >= size)].reshape(-1)[0]
    raise TensorRuntimeError(f"index {bad} is out of bounds for dimension 0 with size {size}")
