"""numpy's files: one array (.npy), or an archive of named ones (.npz). No header is evaluated."""

from __future__ import annotations

import re
import zipfile
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from tensorcli.files.archives import member, open_archive
from tensorcli.files.arrays import count_of, elements, plain_array_of, shared
from tensorcli.files.disk import replace, shown

if TYPE_CHECKING:
    from engine.tensor import Tensor
    from tensorcli.files.disk import Input

MAGIC = b"\x93NUMPY"
# numpy's own readers refuse longer ones too; plain arrays need 118 bytes.
MOST_HEADER = 10_000

_DESCR = re.compile(r"""['"]descr['"]\s*:\s*['"]([^'"]*)['"]""")
_ORDER = re.compile(r"""['"]fortran_order['"]\s*:\s*(True|False)\b""")
_SHAPE = re.compile(r"""['"]shape['"]\s*:\s*\(([\d,\sL]*)\)""")
_NUMERIC = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248]|c8|c16)")


def load_npy(source: Input) -> Tensor:
    """The array of a file; a tensor of its strides. Raises ValueError for any other content."""
    return shared(parsed(source.everything(), source.name))


def load_npz(source: Input) -> dict[str, Tensor]:
    """The arrays of an archive by name."""
    found: dict[str, Tensor] = {}
    with open_archive(source) as archive:
        for info in archive.infolist():
            if info.filename.endswith("/"):
                continue
            name = info.filename.removesuffix(".npy")
            content = member(archive, info, source)
            found[name] = shared(parsed(content, f"{shown(info.filename)} in {source.name}"))
    return found


def parsed(content: Any, name: str) -> Any:
    """The array in the bytes of a .npy file."""
    header, at = _header(content, name)
    descr, order, shape = (p.search(header) for p in (_DESCR, _ORDER, _SHAPE))
    if descr is None and "descr" in header:
        raise ValueError(f"{name} holds records, not numbers")
    if descr is None or order is None or shape is None:
        raise ValueError(f"{name}: the header does not describe an array")
    np_dtype = _dtype(descr[1], name)
    sizes = tuple(_size(part, name) for part in shape[1].split(",") if part.strip())
    wanted = count_of(sizes, np_dtype.itemsize, name) * np_dtype.itemsize
    if wanted > content.size - at:
        raise ValueError(f"{name}: {wanted} bytes of data expected, {content.size - at} found")
    flat = elements(content[at : at + wanted], np_dtype)
    return flat.reshape(sizes[::-1]).T if order[1] == "True" else flat.reshape(sizes)


def _header(content: Any, name: str) -> tuple[str, int]:
    """The header's text and where the data begins."""
    start = content[:12].tobytes()
    if start[:6] != MAGIC or len(start) < 12:
        raise ValueError(f"{name} is no .npy file")
    width = {1: 2, 2: 4, 3: 4}.get(start[6])
    if width is None:
        raise ValueError(f"{name}: version {start[6]} of the format is not known")
    length = int.from_bytes(start[8 : 8 + width], "little")
    at = 8 + width
    if length > min(MOST_HEADER, content.size - at):
        raise ValueError(f"{name}: a header of {length} bytes")
    return content[at : at + length].tobytes().decode("latin1"), at + length


def _size(text: str, name: str) -> int:
    digits = text.strip().removesuffix("L")
    if not digits.isdigit() or len(digits) > 20:
        raise ValueError(f"{name}: the header states a size of {shown(text, 30)}")
    return int(digits)


def _dtype(descr: str, name: str) -> Any:
    if _NUMERIC.fullmatch(descr):
        return np.dtype(descr)
    kind = descr.lstrip("<>|=")
    if kind[:1] == "O":
        raise ValueError(f"{name} holds Python objects, which are code: only numbers are read")
    if kind in ("V2", "V1"):
        raise ValueError(
            f"{name} holds elements of {kind[1]} raw bytes, which is what numpy makes of bfloat16 "
            "and float8: save as .safetensors or .pt instead"
        )
    raise ValueError(f"{name} holds elements of type {shown(descr, 30)}: only numbers are read")


def save_npy(value: object, path: str) -> None:
    array = plain_array_of(value, ".npy")
    replace(path, lambda file: _write(file, array))


def save_npz(value: object, path: str) -> None:
    """A dict of tensors by name; those of a list or tuple, or one alone, as arr_0, arr_1 …"""
    arrays: dict[str, Any] = {}
    for name, item in _named(value).items():
        if type(name) is not str:
            raise TypeError(f"names in a .npz file are text, not '{type(name).__name__}'")
        if not name or "\0" in name or len(name.encode("utf-8", "replace")) > 60_000:
            raise ValueError(f"a .npz file cannot hold an array named {shown(name)}")
        arrays[name] = plain_array_of(item, ".npz", f"'{name}'")

    def write(file: IO[bytes]) -> None:
        with zipfile.ZipFile(file, "w") as archive:
            for name, array in arrays.items():
                # numpy's own date, so that equal arrays give equal files.
                info = zipfile.ZipInfo(f"{name}.npy")
                with archive.open(info, "w", force_zip64=array.nbytes > 1 << 30) as part:
                    _write(part, array)

    replace(path, write)


def _named(value: object) -> dict[Any, object]:
    if type(value) is dict:
        return value
    items: Any = value if type(value) in (list, tuple) else [value]
    return {f"arr_{i}": item for i, item in enumerate(items)}


def _write(file: IO[bytes], array: Any) -> None:
    np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)
