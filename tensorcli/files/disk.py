"""Files as they are opened and replaced: sizes known before reading, no half-written target.

It knows no format. Memory is asked for before it is allocated.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from engine import storage

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK = 4 << 20


class Input:
    """An open file that can be sought in; `size` is how many bytes it has, `name` how to call it
    in messages."""

    __slots__ = ("file", "name", "size")

    def __init__(self, file: IO[bytes], name: str, size: int) -> None:
        self.file = file
        self.name = name
        self.size = size

    def __enter__(self) -> Input:
        return self

    def __exit__(self, *exc: object) -> None:
        self.file.close()

    def start(self, count: int) -> bytes:
        """The first bytes, without moving."""
        self.file.seek(0)
        found = self.file.read(count)
        self.file.seek(0)
        return found

    def everything(self) -> Any:
        """The whole content as an array of bytes."""
        storage.ask(self.size)
        self.file.seek(0)
        return filled(self.file, self.size, self.name)


def shown(text: str, most: int = 200) -> str:
    """A name out of a file, or of one, as messages may show it: quoted, escaped, of bounded length.

    >>> shown("a\x1b[1m")
    "'a\\x1b[1m'"
    """
    return repr(text if len(text) <= most else text[:most] + "…")


def open_input(path: str) -> Input:
    """Open a file, or read a pipe to its end. Raises OSError as open() does, and for devices."""
    file = open(path, "rb")  # noqa: SIM115 - the Input closes it
    try:
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode):
            return Input(file, shown(path), status.st_size)
        if not stat.S_ISFIFO(status.st_mode):
            raise OSError(errno.EINVAL, "Neither a file nor a pipe", path)
        content = _drained(file)
        file.close()
        return Input(content, shown(path), len(content.getbuffer()))
    except BaseException:
        file.close()
        raise


def _drained(pipe: IO[bytes]) -> io.BytesIO:
    content = io.BytesIO()
    while chunk := pipe.read(CHUNK):
        storage.ask(content.tell() + len(chunk))
        content.write(chunk)
    content.seek(0)
    return content


def filled(file: IO[bytes], count: int, name: str) -> Any:
    """An array of the next bytes of a file. Raises ValueError where it ends before."""
    content = np.empty(count, np.uint8)
    at, view = 0, memoryview(content.data)
    while at < count:
        got = file.readinto(view[at : at + CHUNK])  # type: ignore[attr-defined]  # binary files have it
        if not got:
            raise ValueError(f"{name} ends after {at} of {count} bytes")
        at += got
    return content


def replace(path: str, write: Callable[[IO[bytes]], object]) -> None:
    """Let `write` fill a file beside the target, and put it in the target's place when it is done.

    Whatever goes wrong, an older file stays as it was. Raises OSError with the target's name.
    """
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    beside = os.path.join(folder, f".{os.getpid():x}-{os.urandom(4).hex()}.tmp")
    try:
        mode = _mode_of(target)
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with open(handle, "wb") as file:
                if mode is not None:
                    os.chmod(beside, mode)
                write(file)
            os.replace(beside, target)
        except BaseException:
            os.unlink(beside)
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None


def _mode_of(target: str) -> int | None:
    """The permissions of a file that is there already; only files may be replaced."""
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), target)
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "Not a file", target)
    return stat.S_IMODE(mode)
