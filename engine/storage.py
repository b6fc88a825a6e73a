"""Memory of tensors: the buffer that views share, and the counters of in-place changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine import device as devices

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.device import Device
    from engine.layout import Layout
    from engine.tensor import Kind


# Arrays above this size in bytes are asked for before they are made.
BIG = 1 << 20
_ask: Callable[[int], None] | None = None


def ask_before(ask: Callable[[int], None] | None) -> None:
    """Have ``ask`` called with the bytes of each large array before it is made; it may raise."""
    global _ask
    _ask = ask


def is_big(kind: Kind, layout: Layout) -> bool:
    """Whether an array of that kind and layout is asked for first."""
    cells = layout.numel if layout.contiguous else layout.span
    return cells * kind.dtype.itemsize > BIG and kind.device is not devices.meta


def make_room(kind: Kind, layout: Layout) -> None:
    """Ask for the memory of an array of that kind and layout, if it is large."""
    if _ask is not None and is_big(kind, layout):
        _ask(layout.span * kind.dtype.itemsize)


def ask(count: int) -> None:
    """Ask for that many bytes, if they are many."""
    if _ask is not None and count > BIG:
        _ask(count)


class Version:
    """How often the elements behind a group of tensors were changed in place.

    An object of its own: views and ``detach()`` share it, ``.data`` gets a fresh one.
    """

    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n = 0


# Stands for the counter of tensors made in inference mode, which have none.
UNTRACKED: Any = Version()


class Storage:
    """One run of memory. ``buffer`` is a one-dimensional or contiguous array (None on meta)."""

    __slots__ = ("buffer", "device", "nbytes")

    def __init__(self, buffer: Any, nbytes: int, device: Device):
        self.buffer = buffer
        self.nbytes = nbytes
        self.device = device

    @property
    def root(self) -> Storage:
        """The memory itself, however this one shows it."""
        return self

    def array(self, kind: Kind, layout: Layout, offset: int) -> Any:
        """The array that shows ``layout`` at ``offset`` elements into this memory."""
        if self.buffer is None:
            return None
        np_dtype = kind.np
        if layout.numel == 0:
            return np.empty(layout.shape, np_dtype)
        size = np_dtype.itemsize
        strides = layout.memo.get(size)
        if strides is None:
            strides = layout.memo[size] = tuple([s * size for s in layout.strides])
        if self.device.type == "cuda":
            from engine.backends import cupy

            return cupy.as_array(self.buffer, np_dtype, layout.shape, strides, offset * size)
        return np.ndarray(layout.shape, np_dtype, self.buffer, offset * size, strides)


def of_tensor(array: Any, kind: Kind, layout: Layout) -> Storage:
    """The storage of a tensor's own array; on meta there is only its size."""
    if array is None:
        return Storage(None, layout.span * kind.dtype.itemsize, kind.device)
    if not layout.dense and not layout.contiguous:
        while array.base is not None:
            array = array.base
    return of_array(array, kind)


def of_array(array: Any, kind: Kind) -> Storage:
    """The storage of a dense array that the engine made, whatever the order of its dimensions."""
    flat = array if array.flags.c_contiguous else array.ravel("K")
    if kind.opaque:
        flat = flat.reshape(-1).view(np.uint8)
    return Storage(flat, flat.nbytes, kind.device)


def allocate(kind: Kind, layout: Layout) -> Any:
    """A new uninitialised array of that layout, dense memory of its span (None on meta)."""
    device = kind.device
    if device is devices.meta:
        return None
    make_room(kind, layout)
    xp = kind.xp
    if layout.plain or layout.ndim == 0:
        return xp.empty(layout.shape, kind.np)
    flat = xp.empty(layout.span, kind.np)
    size = kind.np.itemsize
    if layout.numel == 0:
        return xp.empty(layout.shape, kind.np)
    strides = tuple([s * size for s in layout.strides])
    return xp.lib.stride_tricks.as_strided(flat, layout.shape, strides)
