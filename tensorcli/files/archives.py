"""Zip archives read with bounds: directory and members are measured before memory is taken.

It knows nothing of what the members hold.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

from engine import storage
from tensorcli.files.disk import filled, shown

if TYPE_CHECKING:
    from tensorcli.files.disk import Input

MOST_DIRECTORY = 64 << 20
# What an entry of the directory costs in memory, in multiples of its size in the file.
ENTRY_COST = 20
# No byte of deflated data stands for more than this many.
DEFLATE_RATIO = 1032

BROKEN = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, KeyError, NotImplementedError,
    OSError, OverflowError, RuntimeError, ValueError,
)  # fmt: skip


def open_archive(source: Input) -> zipfile.ZipFile:
    """Raises ValueError where the file is no archive or its directory is unreasonably long."""
    length = directory_length(source)
    if length > min(MOST_DIRECTORY, source.size):
        raise ValueError(f"{source.name}: the archive's directory has {length} bytes")
    storage.ask(length * ENTRY_COST)
    source.file.seek(0)
    try:
        return zipfile.ZipFile(source.file)
    except BROKEN as error:
        raise ValueError(f"{source.name} is a damaged archive: {_reason(error)}") from None


def directory_length(source: Input) -> int:
    """The bytes of the directory that zipfile is going to read; 0 where it finds none."""
    tail = min(source.size, (1 << 16) + 22 + 76)
    source.file.seek(source.size - tail)
    data = source.file.read(tail)
    end = len(data) - 22
    if end < 0:
        return 0
    if data[end : end + 4] != b"PK\5\6" or data[-2:] != b"\0\0":
        end = data.rfind(b"PK\5\6")
        if end < 0 or len(data) - end < 22:
            return 0
    length: int = struct.unpack_from("<I", data, end + 12)[0]
    long = end - 20 - 56
    if long >= 0 and data[end - 20 : end - 16] == b"PK\6\7":
        long_length: int = struct.unpack_from("<Q", data, long + 40)[0]
        return max(long_length, 0 if length == 0xFFFFFFFF else length)
    return length


def member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, source: Input) -> Any:
    """The content of a member as an array of bytes; its checksum is checked."""
    name = f"{shown(info.filename)} in {source.name}"
    packed, size = info.compress_size, info.file_size
    ratio = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: DEFLATE_RATIO}.get(info.compress_type)
    if ratio is None or info.flag_bits & 1:
        raise ValueError(f"{name} is encrypted, or packed in an unknown way")
    if packed > source.size or size > packed * ratio:
        raise ValueError(f"{name} states {size} bytes, which cannot be in {packed}")
    storage.ask(size)
    try:
        with archive.open(info) as file:
            content = filled(file, size, name)
            # The checksum is compared where the member ends, at the latest here.
            file.read(1)
    except BROKEN as error:
        raise ValueError(f"{name} is damaged: {_reason(error)}") from None
    return content


def _reason(error: BaseException) -> str:
    """What the library says of a damaged archive; it may quote names that are in it."""
    return shown(str(error))[1:-1]
