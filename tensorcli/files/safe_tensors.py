"""The safetensors format, by its own library: named tensors, nothing but data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine import dtypes, storage
from tensorcli.files.arrays import array_of, booleans, count_of, made
from tensorcli.files.disk import replace, shown

if TYPE_CHECKING:
    from engine.dtypes import DType
    from engine.tensor import Tensor
    from tensorcli.files.disk import Input

# The library's own bound on the header.
MOST_HEADER = 100_000_000

DTYPES: dict[str, DType] = {
    "BOOL": dtypes.bool_, "U8": dtypes.uint8, "I8": dtypes.int8, "I16": dtypes.int16,
    "U16": dtypes.uint16, "I32": dtypes.int32, "U32": dtypes.uint32, "I64": dtypes.int64,
    "U64": dtypes.uint64, "F16": dtypes.float16, "BF16": dtypes.bfloat16, "F32": dtypes.float32,
    "F64": dtypes.float64, "F8_E4M3": dtypes.float8_e4m3fn, "F8_E5M2": dtypes.float8_e5m2,
    "C64": dtypes.complex64,
}  # fmt: skip


def load(source: Input) -> dict[str, Tensor]:
    """The tensors of a file by name, names in order. Raises ValueError for any other content."""
    from safetensors import SafetensorError, deserialize

    length = int.from_bytes(source.start(8), "little")
    if source.size < 8 or length > min(MOST_HEADER, source.size - 8):
        raise ValueError(f"{source.name} is no safetensors file: a header of {length} bytes")
    # The file, and the library's copy of each tensor; a header is many small objects.
    storage.ask(2 * source.size + 10 * length)
    try:
        entries = deserialize(source.file.read())  # type: ignore[no-untyped-call]  # compiled
    except SafetensorError as error:
        raise ValueError(f"{source.name} is no safetensors file: {shown(str(error))}") from None
    return {name: _tensor(entry, name, source) for name, entry in sorted(entries, key=_name)}


def _name(entry: tuple[str, Any]) -> str:
    return entry[0]


def _tensor(entry: dict[str, Any], name: str, source: Input) -> Tensor:
    where = f"{shown(name)} in {source.name}"
    dtype = DTYPES.get(entry["dtype"])
    if dtype is None:
        raise ValueError(f"{where} is of type {shown(str(entry['dtype']), 40)}, which is not known")
    shape = tuple(entry["shape"])
    wanted = count_of(shape, dtype.itemsize, where) * dtype.itemsize
    content = np.frombuffer(entry["data"], np.uint8)
    if content.size != wanted:
        raise ValueError(f"{where}: {wanted} bytes of data expected, {content.size} found")
    if not content.flags.writeable:
        content = content.copy()
    flat = booleans(content) if dtype is dtypes.bool_ else content.view(dtype.np)
    return made(flat, dtype, shape)


def save(value: object, path: str) -> None:
    """A dict of tensors by name. Raises TypeError for anything else and for complex128."""
    from safetensors import SafetensorError
    from safetensors.numpy import save as serialized

    if type(value) is not dict:
        raise TypeError(
            "a .safetensors file holds tensors by name: save a dict, such as {'x': x}, "
            f"not a value of type '{type(value).__name__}'"
        )
    arrays: dict[str, Any] = {}
    for name, item in value.items():
        if type(name) is not str:
            raise TypeError(f"names in a .safetensors file are text, not '{type(name).__name__}'")
        array, dtype = array_of(item, shown(name))
        if dtype not in DTYPES.values():
            raise TypeError(f"safetensors has no {dtype.name} ({shown(name)}): use .pt instead")
        # Not ascontiguousarray, which makes vectors of numbers.
        arrays[name] = np.asarray(array, order="C")
    storage.ask(2 * sum(array.nbytes for array in arrays.values()))
    try:
        content = serialized(arrays)
    except SafetensorError as error:
        raise ValueError(f"{shown(path)} cannot be written: {shown(str(error))}") from None
    replace(path, lambda file: file.write(content))
