"""load, save, torch.load and torch.save as programs call them: who may use files, and when.

The formats are in tensorcli.files, which is imported on the first call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import device as devices
from engine.device import Device
from engine.modes import state
from engine.tensor import Tensor
from tensorcli.language.attributes import type_name
from tensorcli.language.functions import callable_for
from tensorcli.language.running import Silence, now

if TYPE_CHECKING:
    from collections.abc import Callable


def load(path: Any, map_location: Any = None, *, weights_only: Any = None) -> Any:
    """What a file holds: npy, npz, safetensors, csv, tsv or pt."""
    _check(path, "load")
    from tensorcli.files import formats

    return _as_wanted(formats.load(path, _locate(map_location)))


def save(value: Any, path: Any) -> None:
    """Write a value in the format that the path ends in."""
    _check(path, "save")
    if not _is_heard():
        return
    from tensorcli.files import formats

    formats.save(value, path)


def torch_load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: Any = None,
    mmap: Any = None,
    **pickle_load_args: Any,
) -> Any:
    """What torch.save wrote. Read as data whatever `weights_only` says."""
    if type(f) is not str:
        raise AttributeError(
            f"'{type_name(f)}' object has no attribute 'seek'. You can only torch.load from a "
            "file that is seekable. Please pre-load the data into a buffer like io.BytesIO and "
            "try to load from it instead."
        )
    _check(f, "torch.load")
    from tensorcli.files import formats

    return _as_wanted(formats.load_pt(f, _locate(map_location)))


def torch_save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: Any = 2,
    _use_new_zipfile_serialization: Any = True,
    _disable_byteorder_record: Any = False,
) -> None:
    """Write a value of tensors, numbers, text and containers as PyTorch does."""
    if type(f) is not str:
        raise AttributeError(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
        )
    if not _use_new_zipfile_serialization:
        raise RuntimeError("PyTorch's legacy format is not written here")
    _check(f, "torch.save")
    if not _is_heard():
        return
    from tensorcli.files import formats

    formats.save_pt(obj, f)


# What complaints about arguments call them.
torch_load.__name__ = torch_load.__qualname__ = "load"
torch_save.__name__ = torch_save.__qualname__ = "save"

BARE: dict[str, object] = {"load": load, "save": save}
TORCH: dict[str, object] = {"load": torch_load, "save": torch_save}


def _check(path: Any, name: str) -> None:
    if type(path) is not str:
        raise TypeError(f"{name}(): the path must be str, not {type_name(path)}")
    if not now.files:
        raise PermissionError(
            f"{name}() is turned off: files are out of reach with --no-files or the setting files"
        )


def _is_heard() -> bool:
    """Whether this is the program itself, and no rerun of it for an explanation."""
    return not now.is_dry and not isinstance(now.listener, Silence)


def _locate(map_location: Any) -> Callable[[str], str]:
    """Where the storages of a file go, given where they were.

    A function gets no storage to look at: like most that are written, it leaves them on the CPU.
    """
    if map_location is None:
        return str
    if isinstance(map_location, str | Device):
        target = str(map_location)
        return lambda location: target
    if type(map_location) is dict:
        table = {str(key): str(value) for key, value in map_location.items()}
        return lambda location: table.get(location, location)
    if callable_for(map_location) is not None:
        return lambda location: "cpu"
    raise TypeError(f"'{type_name(map_location)}' object is not callable")


def _as_wanted(value: Any) -> Any:
    """What was loaded; its tensors without data where a program is only looked at."""
    checked = isinstance(now.listener, Silence) and state.default_device is devices.meta
    return _without_data(value) if now.is_dry or checked else value


def _without_data(value: Any) -> Any:
    if isinstance(value, Tensor):
        made = value.detach().to(devices.meta)
        return made.requires_grad_() if value.requires_grad else made
    if type(value) is dict:
        return {key: _without_data(item) for key, item in value.items()}
    return value
