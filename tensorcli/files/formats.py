"""Which format a file has, and the functions that read and write each of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tensorcli.files.disk import open_input, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorcli.files.disk import Input

SUFFIXES = {
    ".npy": "npy",
    ".npz": "npz",
    ".safetensors": "safetensors",
    ".csv": "csv",
    ".tsv": "tsv",
    ".pt": "pt",
    ".pth": "pt",
    ".ckpt": "pt",
    ".bin": "pt",
}
KNOWN = ".npy, .npz, .safetensors, .csv, .tsv and .pt"


def load(path: str, locate: Callable[[str], str] = str) -> Any:
    """What a file holds: one tensor, or a dict of them by name; of .pt files what was saved.

    Where the name does not tell the format, the content does. Raises OSError as open() does, and
    ValueError for content of another format.
    """
    with open_input(path) as source:
        form = SUFFIXES.get(os.path.splitext(path)[1].lower()) or _by_content(source)
        return READERS[form](source, locate)


def save(value: object, path: str) -> None:
    """Write a value in the format that the name tells. Raises ValueError where it tells none."""
    form = SUFFIXES.get(os.path.splitext(path)[1].lower())
    if form is None:
        raise ValueError(f"the name {shown(path)} tells no format: {KNOWN} are known")
    WRITERS[form](value, path)


def load_pt(path: str, locate: Callable[[str], str] = str) -> Any:
    """What torch.save wrote, whatever the file is called."""
    with open_input(path) as source:
        return _read_pt(source, locate)


def save_pt(value: object, path: str) -> None:
    """Write a value as torch.save does. Raises RuntimeError, as it does, for want of a folder."""
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {shown(folder)[1:-1]} does not exist.")
    _write_pt(value, path)


def _by_content(source: Input) -> str:
    start = source.start(64)
    if start[:6] == b"\x93NUMPY":
        return "npy"
    if start[:4] == b"PK\3\4":
        return "npz" if b".npy" in start else "pt"
    if start[8:10] == b'{"':
        return "safetensors"
    line = start.partition(b"\n")[0]
    if start and all(byte in _TEXT for byte in start):
        return "tsv" if b"\t" in line else "csv"
    raise ValueError(f"{source.name} is of no format that is known: {KNOWN}")


_TEXT = frozenset(range(32, 127)) | {9, 10, 13}


def _read_npy(source: Input, locate: Callable[[str], str]) -> Any:
    from tensorcli.files.npy import load_npy

    return load_npy(source)


def _read_npz(source: Input, locate: Callable[[str], str]) -> Any:
    from tensorcli.files.npy import load_npz

    return load_npz(source)


def _read_safetensors(source: Input, locate: Callable[[str], str]) -> Any:
    from tensorcli.files.safe_tensors import load

    return load(source)


def _read_text(delimiter: str) -> Callable[[Input, Callable[[str], str]], Any]:
    def read(source: Input, locate: Callable[[str], str]) -> Any:
        from tensorcli.files.delimited import load

        return load(source, delimiter)

    return read


def _read_pt(source: Input, locate: Callable[[str], str]) -> Any:
    from tensorcli.files.pt import load

    return load(source, locate)


READERS: dict[str, Callable[[Input, Callable[[str], str]], Any]] = {
    "npy": _read_npy,
    "npz": _read_npz,
    "safetensors": _read_safetensors,
    "csv": _read_text(","),
    "tsv": _read_text("\t"),
    "pt": _read_pt,
}


def _write_npy(value: object, path: str) -> None:
    from tensorcli.files.npy import save_npy

    save_npy(value, path)


def _write_npz(value: object, path: str) -> None:
    from tensorcli.files.npy import save_npz

    save_npz(value, path)


def _write_safetensors(value: object, path: str) -> None:
    from tensorcli.files.safe_tensors import save

    save(value, path)


def _write_text(delimiter: str) -> Callable[[object, str], None]:
    def write(value: object, path: str) -> None:
        from tensorcli.files.delimited import save

        save(value, path, delimiter)

    return write


def _write_pt(value: object, path: str) -> None:
    from tensorcli.files.pt import save

    save(value, path)


WRITERS: dict[str, Callable[[object, str], None]] = {
    "npy": _write_npy,
    "npz": _write_npz,
    "safetensors": _write_safetensors,
    "csv": _write_text(","),
    "tsv": _write_text("\t"),
    "pt": _write_pt,
}
