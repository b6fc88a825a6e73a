"""Device records; knows which kinds there are, not how they compute."""

from __future__ import annotations

from engine.errors import DeviceError, TensorNotImplementedError

_TYPES = ("cpu", "cuda", "meta")
_REFUSED = {"mps", "xla", "xpu", "hpu", "mkldnn", "ipu", "lazy", "privateuseone"}


class Device:
    """A device type and an optional index; interned by ``device()``."""

    __slots__ = ("index", "type")

    def __init__(self, type_: str, index: int | None):
        self.type = type_
        self.index = index

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"


Device.__name__ = "torch.device"  # what Python's own errors call it


_known: dict[tuple[str, int | None], Device] = {}


def device(name: str | Device | int, index: int | None = None) -> Device:
    """The device of that name ("cpu", "cuda:0", "meta"); an integer is a cuda index.

    Raises DeviceError for a name that PyTorch does not know either.
    """
    if isinstance(name, Device):
        return name
    if isinstance(name, int):
        from engine.backends import cupy

        if not cupy.device_count():
            raise DeviceError("Cannot access accelerator device when none is available.")
        index, name = name, "cuda"
    text, _, number = name.partition(":")
    if text not in _TYPES and text not in _REFUSED or (number and not number.isdigit()):
        if text in _TYPES or text in _REFUSED or not text.replace("_", "a").isalpha():
            raise DeviceError(f"Invalid device string: '{name}'")
        raise DeviceError(
            "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, "
            "maia, xla, lazy, vulkan, mps, meta, hpu, mtia, privateuseone device type at start of "
            f"device string: {text}"
        )
    key = (text, int(number) if number else index)
    found = _known.get(key)
    if found is None:
        found = _known[key] = Device(*key)
    return found


cpu = device("cpu")
meta = device("meta")


def require(target: Device) -> Device:
    """``target`` itself if this process can compute on it; PyTorch's error otherwise."""
    if target.type in ("cpu", "meta"):
        return cpu if target.type == "cpu" else meta
    if target.type == "cuda":
        from engine.backends import cupy

        return cupy.require(target)
    raise TensorNotImplementedError(
        "Could not run 'aten::empty.memory_format' with arguments from the "
        f"'{target.type.upper()}' backend. This could be because the operator doesn't exist for "
        "this backend, or was omitted during the selective/custom build process (if using custom "
        "build)."
    )
