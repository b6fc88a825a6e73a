"""PyTorch's own files (.pt): tensors with their strides and shared storages, as data.

An archive holds one pickle, whose opcodes are read one by one, and the bytes of each storage.
"""

from __future__ import annotations

import sys
import zipfile
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from engine import device as devices
from engine import dtypes, lazy, tensor
from engine import layout as layouts
from engine.device import Device
from engine.dtypes import DType
from engine.errors import DeviceError
from engine.layout import Size
from engine.registry import functions, methods
from engine.storage import Storage, Version
from engine.tensor import ParameterAutograd, Tensor
from tensorcli.files.archives import member, open_archive
from tensorcli.files.arrays import booleans, count_of
from tensorcli.files.disk import replace, shown
from tensorcli.files.pickle_reader import Known, Machine, UnpicklingError, key_of
from tensorcli.files.pickle_writer import Pickle

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tensorcli.files.disk import Input

    Locate = Callable[[str], str]

ZIP = b"PK\3\4"
FAILED = "Weights only load failed. "
ALIGNMENT = 64

# These came after PyTorch stopped making a storage class for each dtype.
UNTYPED = (
    dtypes.uint16, dtypes.uint32, dtypes.uint64, dtypes.float8_e4m3fn, dtypes.float8_e5m2,
)  # fmt: skip
# PyTorch's names for how a lazy view shows its memory.
SEEN = (("conj", lazy.CONJUGATED), ("neg", lazy.NEGATED))
ANY_BYTES = "torch.storage.UntypedStorage"


class StorageClass:
    """The class of a storage in the pickle; of an untyped one the dtype is None."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: DType | None) -> None:
        self.dtype = dtype


class Stored:
    """A storage of the file; `memory` is None where it was sent to meta."""

    __slots__ = ("dtype", "memory", "nbytes")

    def __init__(self, memory: Storage | None, nbytes: int, dtype: DType | None) -> None:
        self.memory = memory
        self.nbytes = nbytes
        self.dtype = dtype


# -- reading ---------------------------------------------------------------------------------


def load(source: Input, locate: Locate = str) -> Any:
    """What torch.save wrote. `locate` gives for the device of each storage the one to put it on.

    Raises UnpicklingError for what is no data, RuntimeError for files that are damaged or older
    than PyTorch 1.6, EOFError for empty ones.
    """
    start = source.start(4)
    if not start:
        raise EOFError("Ran out of input")
    if start != ZIP:
        _refuse_start(start, source)
    try:
        archive = open_archive(source)
    except ValueError as error:
        raise RuntimeError(
            f"PytorchStreamReader failed reading zip archive: {error}. There is a high likelihood "
            "that your checkpoint file is corrupted."
        ) from None
    with archive:
        return _Reader(source, archive, locate).value()


def _refuse_start(start: bytes, source: Input) -> None:
    if start[:1] == b"\x80":
        raise RuntimeError(
            f"{source.name} is in PyTorch's legacy format, from before version 1.6, which is not "
            "read here: load it in PyTorch and save it again"
        )
    raise UnpicklingError(f"{FAILED}{source.name} is no file that torch.save wrote")


class _Reader:
    """One file being read."""

    def __init__(self, source: Input, archive: zipfile.ZipFile, locate: Locate) -> None:
        self.source = source
        self.archive = archive
        self.locate = locate
        self.members = {info.filename: info for info in archive.infolist()}
        self.root = next((name[:-9] for name in self.members if name.endswith("/data.pkl")), None)
        self.storages: dict[str, Stored] = {}
        self.swaps = self._byte_order() != sys.byteorder

    def value(self) -> Any:
        data = self._member("data.pkl").tobytes()
        machine = Machine(data, NAMES, self.persistent)
        try:
            value = machine.run()
            _check(value)
        except UnpicklingError as error:
            raise UnpicklingError(
                f"{FAILED}{error}. The file {self.source.name} is read as data: tensors, numbers, "
                "text and containers of them"
            ) from None
        return value

    def _member(self, name: str) -> Any:
        info = self.members.get(f"{self.root}/{name}")
        if info is None:
            raise RuntimeError(
                f"PytorchStreamReader failed locating file {shown(name)[1:-1]}: file not found"
            )
        try:
            return member(self.archive, info, self.source)
        except ValueError as error:
            raise RuntimeError(f"PytorchStreamReader failed reading file: {error}") from None

    def _byte_order(self) -> str:
        if f"{self.root}/byteorder" not in self.members:
            return "little"
        order: str = self._member("byteorder").tobytes()[:16].decode("latin1")
        if order not in ("little", "big"):
            raise RuntimeError(f"Unknown endianness type: {shown(order)[1:-1]}")
        return order

    def persistent(self, key: Any) -> Stored:
        """The storage that the pickle names."""
        shape = tuple(map(type, key)) if type(key) is tuple else ()
        if shape != (str, StorageClass, str, str, int) or key[0] != "storage":
            raise UnpicklingError("Only persistent_load of storage is allowed")
        _, kind, name, location, count = key
        found = self.storages.get(name)
        if found is None:
            found = self.storages[name] = self._storage(kind.dtype, name, location, count)
        return found

    def _storage(self, dtype: DType | None, name: str, location: str, count: int) -> Stored:
        itemsize = 1 if dtype is None else dtype.itemsize
        info = self.members.get(f"{self.root}/data/{name}")
        if info is not None and info.file_size != count * itemsize:
            raise UnpicklingError(
                f"storage {shown(name, 40)} has {info.file_size} bytes, not {count} elements"
            )
        if _target(self.locate(location)) is devices.meta:
            return Stored(None, count * itemsize, dtype)
        content = self._member(f"data/{name}")
        if dtype is dtypes.bool_:
            content = booleans(content).view(np.uint8)
        if self.swaps and dtype is not None:
            width = itemsize // 2 if dtype.is_complex else itemsize
            content = content.view(f"u{width}").byteswap().view(np.uint8)
        return Stored(Storage(content, content.nbytes, devices.cpu), content.nbytes, dtype)


def _target(location: str) -> Device:
    """The device of that name. Raises RuntimeError, as PyTorch, for those that are not there."""
    if location == "cpu":
        return devices.cpu
    if location == "meta":
        return devices.meta
    if location.partition(":")[0] == "cuda":
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is "
            "False. If you are running on a CPU-only machine, please use torch.load with "
            "map_location=torch.device('cpu') to map your storages to the CPU."
        )
    raise RuntimeError(
        "don't know how to restore data location of torch.storage.UntypedStorage (tagged with "
        f"{shown(location, 40)[1:-1]})"
    )


def _check(value: Any) -> None:
    """Storages and names mean nothing outside of a tensor."""
    seen: set[int] = set()
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, Known | StorageClass | Stored):
            raise UnpicklingError("a storage or a name that belongs to no tensor")
        if isinstance(item, list | tuple | dict | set) and id(item) not in seen:
            seen.add(id(item))
            left.extend(item)
            if isinstance(item, dict):
                left.extend(item.values())


def _shown_tensor(
    stored: Any, dtype: DType | None, offset: Any, shape: Any, strides: Any
) -> Tensor:
    """A tensor that shows a storage. All that the file states of it is checked."""
    if type(stored) is not Stored or dtype is None:
        raise UnpicklingError("a tensor without a storage")
    layout = _layout(dtype, shape, strides)
    if type(offset) is not int or offset < 0:
        raise UnpicklingError("a tensor with a storage offset that is no count")
    if layout.numel and (offset + layout.span) * dtype.itemsize > stored.nbytes:
        raise UnpicklingError(
            f"a tensor of shape {list(layout.shape)} and strides {list(layout.strides)} at "
            f"{offset} reaches beyond its storage of {stored.nbytes} bytes"
        )
    if stored.memory is None:
        made = tensor.wrap(None, tensor.kind_of(dtype, devices.meta), layout)
    else:
        kind = tensor.kind_of(dtype)
        made = tensor.wrap(stored.memory.array(kind, layout, offset), kind, layout)
        made.memory = stored.memory
    made.offset = offset
    # PyTorch puts the storage into a tensor that was there already, which counts as a change.
    made.counter = Version()
    made.counter.n = 1
    return made


def _layout(dtype: DType, shape: Any, strides: Any) -> layouts.Layout:
    if not isinstance(shape, tuple) or not isinstance(strides, tuple):
        raise UnpicklingError("a tensor whose sizes and strides are no tuples")
    try:
        count_of(shape, dtype.itemsize, "the file")
    except ValueError as error:
        raise UnpicklingError(str(error)) from None
    if len(shape) != len(strides) or not all(
        type(stride) is int and 0 <= stride < 1 << 62 for stride in strides
    ):
        raise UnpicklingError("a tensor whose strides do not fit its sizes")
    return layouts.layout(tuple(shape), tuple(strides))


def _rebuilt(arguments: tuple[Any, ...], dtype: DType | None, flags: Any) -> Tensor:
    stored, offset, shape, strides, requires_grad, _hooks = arguments
    made = _shown_tensor(stored, dtype, offset, shape, strides)
    for name, change in SEEN:
        if type(flags) is dict and flags.get(name) is True:
            lazy.show(made, lazy.changed(made, change))
    return _requiring(made, requires_grad)


def _requiring(made: Tensor, requires_grad: Any) -> Tensor:
    if requires_grad is True:
        if not (made.dtype.is_floating_point or made.dtype.is_complex):
            raise UnpicklingError(f"a tensor of {made.dtype.name} that requires gradients")
        methods["requires_grad_"](made)
    return made


def _arguments(arguments: tuple[Any, ...], least: int, most: int) -> tuple[Any, ...]:
    if not least <= len(arguments) <= most:
        raise UnpicklingError(f"a call with {len(arguments)} arguments")
    return arguments


def _tensor_v1(arguments: tuple[Any, ...]) -> Tensor:
    stored, offset, shape, strides = _arguments(arguments, 4, 4)
    return _shown_tensor(stored, getattr(stored, "dtype", None), offset, shape, strides)


def _tensor_v2(arguments: tuple[Any, ...]) -> Tensor:
    flags = _arguments(arguments, 6, 7)[6:]
    dtype = getattr(arguments[0], "dtype", None)
    return _rebuilt(arguments[:6], dtype, flags[0] if flags else None)


def _tensor_v3(arguments: tuple[Any, ...]) -> Tensor:
    flags = _arguments(arguments, 7, 8)[7:]
    dtype = arguments[6]
    if type(dtype) is not DType:
        raise UnpicklingError("a tensor without a dtype")
    return _rebuilt(arguments[:6], dtype, flags[0] if flags else None)


def _meta_tensor(arguments: tuple[Any, ...]) -> Tensor:
    dtype, shape, strides, requires_grad = _arguments(arguments, 4, 4)
    if type(dtype) is not DType:
        raise UnpicklingError("a tensor without a dtype")
    layout = _layout(dtype, shape, strides)
    made = tensor.wrap(None, tensor.kind_of(dtype, devices.meta), layout)
    return _requiring(made, requires_grad)


def _parameter(arguments: tuple[Any, ...]) -> Tensor:
    data, requires_grad, _hooks = _arguments(arguments, 3, 3)
    if type(data) is not Tensor:
        raise UnpicklingError("a parameter without a tensor")
    if not (data.dtype.is_floating_point or data.dtype.is_complex):
        requires_grad = False
    made: Tensor = functions["nn.Parameter"](data, requires_grad is True)
    return made


def _dict(arguments: tuple[Any, ...]) -> dict[Any, Any]:
    """An OrderedDict: the language's dicts are ordered."""
    if not arguments:
        return {}
    pairs = arguments[0]
    if len(arguments) > 1 or type(pairs) is not list:
        raise UnpicklingError("an OrderedDict of something else than pairs")
    if not all(type(pair) in (list, tuple) and len(pair) == 2 for pair in pairs):
        raise UnpicklingError("an OrderedDict of something else than pairs")
    return {key_of(key): value for key, value in pairs}


def _set(arguments: tuple[Any, ...]) -> set[Any]:
    if len(arguments) != 1 or type(arguments[0]) is not list:
        raise UnpicklingError("a set of something else than a list")
    return set(map(key_of, arguments[0]))


def _complex(arguments: tuple[Any, ...]) -> complex:
    if [type(part) for part in arguments] != [float, float]:
        raise UnpicklingError("a complex number of something else than two floats")
    return complex(*arguments)


def _size(arguments: tuple[Any, ...]) -> Size:
    sizes = arguments[0] if len(arguments) == 1 else None
    if type(sizes) is not tuple or not all(type(size) is int for size in sizes):
        raise UnpicklingError("a torch.Size of something else than integers")
    return Size(sizes)


def _device(arguments: tuple[Any, ...]) -> Device:
    named = arguments[0] if arguments else None
    if type(named) is not str or [type(part) for part in arguments[1:]] not in ([], [int]):
        raise UnpicklingError("a torch.device of something else than a name")
    try:
        return devices.device(":".join(map(str, arguments)))
    except DeviceError as error:
        raise UnpicklingError(shown(str(error))) from None


CALLS: dict[str, Callable[[tuple[Any, ...]], Any]] = {
    "torch._utils._rebuild_tensor": _tensor_v1,
    "torch._utils._rebuild_tensor_v2": _tensor_v2,
    "torch._utils._rebuild_tensor_v3": _tensor_v3,
    "torch._utils._rebuild_meta_tensor_no_storage": _meta_tensor,
    "torch._utils._rebuild_parameter": _parameter,
    "collections.OrderedDict": _dict,
    "builtins.set": _set,
    "builtins.complex": _complex,
    "torch.Size": _size,
    "torch.device": _device,
}

# All that a file may name.
NAMES: Mapping[str, object] = {
    **{name: Known(name, call) for name, call in CALLS.items()},
    **{f"torch.{name}": dtype for name, dtype in dtypes.by_name.items()},
    **{
        f"torch.{dtype.title}Storage": StorageClass(dtype)
        for dtype in dtypes.by_name.values()
        if dtype not in UNTYPED
    },
    ANY_BYTES: StorageClass(None),
}


# -- writing ---------------------------------------------------------------------------------


def save(value: Any, path: str) -> None:
    """Write a value as torch.save does; a tensor brings its whole storage with it.

    Raises TypeError for what is no data.
    """
    writer = _Writer()
    content = Pickle({Tensor: writer.tensor, DType: _write_dtype, Device: _write_device}).finished(
        value
    )

    def write(file: IO[bytes]) -> None:
        with zipfile.ZipFile(file, "w") as archive:
            _add(archive, file, "data.pkl", content)
            _add(archive, file, ".format_version", b"1")
            _add(archive, file, ".storage_alignment", b"%d" % ALIGNMENT)
            _add(archive, file, "byteorder", sys.byteorder.encode())
            for memory, _, number in writer.storages.values():
                _add(archive, file, f"data/{number}", _bytes_of(memory))
            _add(archive, file, "version", b"3\n")

    replace(path, write)


def _add(archive: zipfile.ZipFile, file: IO[bytes], name: str, content: Any) -> None:
    """A member whose content begins at a multiple of 64 bytes, so that it could be mapped."""
    info = zipfile.ZipInfo(f"archive/{name}")
    nbytes = memoryview(content).nbytes
    is_long = nbytes * 1.05 > 1 << 31
    start = file.tell() + 30 + len(info.filename) + 4 + (20 if is_long else 0)
    padding = -start % ALIGNMENT
    info.extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
    info.file_size = nbytes
    with archive.open(info, "w", force_zip64=is_long) as part:
        part.write(content)


def _bytes_of(memory: Storage) -> Any:
    return memoryview(memory.buffer.reshape(-1).view(np.uint8))


class _Writer:
    """The storages of what is being written, in the order in which they were met."""

    def __init__(self) -> None:
        self.storages: dict[int, tuple[Storage, DType | None, int]] = {}

    def tensor(self, pickle: Pickle, value: Tensor) -> None:
        if isinstance(value.ag, ParameterAutograd):

            def inner() -> None:
                self.plain(pickle, value, False)

            hooks = _hooks(pickle)
            pickle.call("torch._utils._rebuild_parameter", (inner, value.requires_grad, hooks))
        else:
            self.plain(pickle, value, value.requires_grad)
        pickle.remember(value)

    def plain(self, pickle: Pickle, value: Tensor, requires_grad: bool) -> None:
        shape, strides = tuple(value.layout.shape), tuple(value.layout.strides)
        dtype = value.dtype
        if value.is_meta:
            described = (lambda: _write_dtype(pickle, dtype), shape, strides, requires_grad)
            pickle.call("torch._utils._rebuild_meta_tensor_no_storage", described)
            return
        if value.device.type != "cpu":
            raise TypeError(f"a tensor on {value.device} cannot be saved: save its .cpu()")
        memory, stored_as = value.storage.root, None if dtype in UNTYPED else dtype
        number = self._number(memory, stored_as)
        written = (
            lambda: _write_storage(pickle, memory, stored_as, number),
            value.offset,
            shape,
            strides,
            requires_grad,
            _hooks(pickle),
        )
        seen = {name: True for name, change in SEEN if lazy.has(value.memory, change)}
        flags = (lambda: pickle.write(seen),) if seen else ()
        if stored_as is None:
            function = "torch._utils._rebuild_tensor_v3"
            pickle.call(function, (*written, lambda: _write_dtype(pickle, dtype), *flags))
        else:
            pickle.call("torch._utils._rebuild_tensor_v2", (*written, *flags))

    def _number(self, memory: Storage, dtype: DType | None) -> int:
        new = (memory, dtype, len(self.storages))
        _, known, number = self.storages.setdefault(id(memory), new)
        if known is not dtype:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different "
                "types"
            )
        return number


def _hooks(pickle: Pickle) -> Callable[[], None]:
    return lambda: pickle.call("collections.OrderedDict", ())


def _write_storage(pickle: Pickle, memory: Storage, dtype: DType | None, number: int) -> None:
    name = ANY_BYTES if dtype is None else f"torch.{dtype.title}Storage"
    count = memory.nbytes // (1 if dtype is None else dtype.itemsize)
    pickle.items(("storage", lambda: pickle.name(name), str(number), "cpu", count))
    pickle.data += b"Q"


def _write_dtype(pickle: Pickle, dtype: DType) -> None:
    pickle.name(f"torch.{dtype.name}")


def _write_device(pickle: Pickle, device: Device) -> None:
    kind, _, index = str(device).partition(":")
    pickle.call("torch.device", (kind, int(index)) if index else (kind,))
