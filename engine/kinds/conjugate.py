"""The conjugate in derivatives: itself for everything real, at no cost."""

from __future__ import annotations

from typing import Any

from engine.dtypes import COMPLEX
from engine.registry import F
from engine.tensor import Tensor


def conj(value: Any) -> Any:
    """The complex conjugate of a tensor or number; a real one is returned as it is."""
    if value.__class__ is Tensor:
        return F.conj_physical(value) if value.kind.dtype.category == COMPLEX else value
    return value.conjugate() if value.__class__ is complex else value
