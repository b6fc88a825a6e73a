"""Checks of sizes before memory is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import layout as layouts
from engine.errors import TensorRuntimeError

if TYPE_CHECKING:
    from engine.dtypes import DType
    from engine.layout import Layout


def check_sizes(size: tuple[int, ...], dtype: DType) -> Layout:
    """The contiguous layout of that shape. Raises RuntimeError for sizes no memory can have."""
    for n in size:
        if n < 0:
            raise TensorRuntimeError(
                f"Trying to create tensor with negative dimension {n}: {list(size)}"
            )
    check_storage(size, dtype)
    return layouts.contiguous(size)


def check_storage(size: tuple[int, ...], dtype: DType) -> None:
    """Refuse more bytes than an address can count."""
    count = dtype.itemsize
    for n in size:
        count *= n
    if count >= 2**63:
        raise TensorRuntimeError(f"Storage size calculation overflowed with sizes={list(size)}")
