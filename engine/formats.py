"""Memory formats and storage layouts as values: torch.channels_last, torch.strided and their kin.

Names only, with the strides that a format asks for; no arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import layout as layouts
from engine.errors import TensorRuntimeError

if TYPE_CHECKING:
    from engine.layout import Layout


class MemoryFormat:
    """How the dimensions of a tensor are to lie in memory."""

    __slots__ = ("name",)

    type_name = "memory_format"

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


class StorageLayout:
    """Whether a tensor is dense (strided) or one of PyTorch's sparse kinds."""

    __slots__ = ("name",)

    type_name = "layout"

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


contiguous_format = MemoryFormat("contiguous_format")
preserve_format = MemoryFormat("preserve_format")
channels_last = MemoryFormat("channels_last")
channels_last_3d = MemoryFormat("channels_last_3d")
strided = StorageLayout("strided")
sparse_coo = StorageLayout("sparse_coo")
sparse_csr = StorageLayout("sparse_csr")

_RANKS = {channels_last: 4, channels_last_3d: 5}


def with_format(layout: Layout, memory_format: MemoryFormat | None) -> Layout:
    """The layout of a copy of something laid out as ``layout``; dense strides are kept unless a
    format is named. Raises RuntimeError for a rank that the format does not have."""
    if memory_format is None or memory_format is preserve_format:
        return layouts.preserved(layout)
    return of_shape(layout.shape, memory_format)


def of_shape(shape: tuple[int, ...], memory_format: MemoryFormat | None) -> Layout:
    """The layout of a new tensor of that shape."""
    if memory_format is None or memory_format is contiguous_format:
        return layouts.contiguous(shape)
    if memory_format is preserve_format:
        raise TensorRuntimeError("unsupported memory format Preserve")
    if len(shape) != _RANKS[memory_format]:
        raise TensorRuntimeError(
            f"required rank {_RANKS[memory_format]} tensor to use {memory_format.name} format"
        )
    return layouts.layout(shape, layouts.channels_last_strides(shape))


def has_format(layout: Layout, memory_format: MemoryFormat) -> bool:
    """Whether a tensor of that layout lies in that format."""
    if memory_format is contiguous_format:
        return layout.contiguous
    if memory_format is preserve_format:
        raise TensorRuntimeError("preserve memory format is unsupported by the contiguous operator")
    if layout.ndim != _RANKS[memory_format]:
        return False
    return layouts.is_channels_last(layout.shape, layout.strides)
