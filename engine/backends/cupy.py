"""The CUDA backend: cupy, imported when a cuda device is first named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import NoCudaError

if TYPE_CHECKING:
    from engine.device import Device

_count: int | None = None


def device_count() -> int:
    """How many CUDA devices this process can use; 0 without cupy or without a driver."""
    global _count
    if _count is None:
        _count = _find_devices()
    return _count


def _find_devices() -> int:
    try:
        import cupy

        return int(cupy.cuda.runtime.getDeviceCount())
    except Exception:  # a missing package, driver or device all mean the same here
        return 0


def require(target: Device) -> Device:
    """``target`` if it exists. Raises NoCudaError as PyTorch's CPU build does."""
    if (target.index or 0) >= device_count():
        raise NoCudaError
    return target


def as_array(
    buffer: Any, dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> Any:
    """The array that shows part of ``buffer``; strides and offset in bytes."""
    import cupy

    return cupy.ndarray(shape, dtype, memptr=buffer.data + offset, strides=strides)


def module() -> Any:
    """cupy itself."""
    import cupy

    return cupy
