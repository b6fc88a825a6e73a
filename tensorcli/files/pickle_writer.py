"""Values written as pickled data of protocol 2; tensors by whoever hands in how. It calls nothing.

What occurs several times is written once, so that it is one object again when it is read.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from engine.layout import Size

if TYPE_CHECKING:
    from collections.abc import Callable

# Items between two marks, as Python's own pickler has it.
BATCH = 1000


class Pickle:
    """Pickled data in the making. `others` writes values of types that are not known here."""

    __slots__ = ("_kept", "_known", "_names", "_others", "data")

    def __init__(self, others: dict[type, Callable[[Pickle, Any], None]]) -> None:
        self.data = bytearray(b"\x80\x02")
        self._known: dict[int, int] = {}
        self._names: dict[str, int] = {}
        self._kept: list[Any] = []
        self._others = others

    def finished(self, value: Any) -> bytes:
        """All of the data, for a value. Raises TypeError where it holds what is no data."""
        self.write(value)
        self.data += b"."
        return bytes(self.data)

    def write(self, value: Any) -> None:
        kind = type(value)
        simple = ATOMS.get(kind)
        if simple is not None:
            self.data += simple(value)
            return
        number = self._known.get(id(value))
        if number is not None:
            self.data += b"h%c" % number if number < 256 else b"j" + struct.pack("<I", number)
            return
        writer = SHARED.get(kind) or self._others.get(kind)
        if writer is None:
            raise TypeError(f"cannot pickle '{kind.__name__}' object")
        writer(self, value)

    def remember(self, value: Any) -> None:
        """Put what was just written among what is known."""
        number = len(self._kept)
        self._known[id(value)] = number
        # As long as it is known, nothing else may get its id.
        self._kept.append(value)
        self._put(number)

    def name(self, full: str) -> None:
        """A name, such as `torch.float32`."""
        number = self._names.get(full)
        if number is not None:
            self.data += b"j" + struct.pack("<I", number)
            return
        module, _, last = full.rpartition(".")
        self.data += f"c{module}\n{last}\n".encode()
        number = self._names[full] = len(self._kept)
        self._kept.append(full)
        self._put(number)

    def call(self, full: str, arguments: tuple[Any, ...]) -> None:
        """The result of a call of a name."""
        self.name(full)
        self.items(arguments)
        self.data += b"R"

    def items(self, values: tuple[Any, ...]) -> None:
        """A tuple that is written here and nowhere else."""
        self.data += b"("
        for value in values:
            if callable(value):
                value()
            else:
                self.write(value)
        self.data += b"t"

    def _put(self, number: int) -> None:
        self.data += b"q%c" % number if number < 256 else b"r" + struct.pack("<I", number)


def _integer(value: int) -> bytes:
    if 0 <= value < 1 << 8:
        return b"K%c" % value
    if 0 <= value < 1 << 16:
        return b"M" + struct.pack("<H", value)
    if -(1 << 31) <= value < 1 << 31:
        return b"J" + struct.pack("<i", value)
    digits = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    if len(digits) < 256:
        return b"\x8a%c" % len(digits) + digits
    return b"\x8b" + struct.pack("<i", len(digits)) + digits


ATOMS: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda value: b"N",
    bool: lambda value: b"\x88" if value else b"\x89",
    int: _integer,
    float: lambda value: b"G" + struct.pack(">d", value),
}


def _text(pickle: Pickle, value: str) -> None:
    content = value.encode("utf-8", "surrogatepass")
    pickle.data += b"X" + struct.pack("<I", len(content)) + content
    pickle.remember(value)


def _complex(pickle: Pickle, value: complex) -> None:
    pickle.call("__builtin__.complex", (value.real, value.imag))


def _tuple(pickle: Pickle, value: tuple[Any, ...]) -> None:
    pickle.data += b"("
    for item in value:
        pickle.write(item)
    pickle.data += b"t"
    pickle.remember(value)


def _list(pickle: Pickle, value: list[Any]) -> None:
    pickle.data += b"]"
    # Known before its items are written: a list may hold itself.
    pickle.remember(value)
    for start in range(0, len(value), BATCH):
        pickle.data += b"("
        for item in value[start : start + BATCH]:
            pickle.write(item)
        pickle.data += b"e"


def _dict(pickle: Pickle, value: dict[Any, Any]) -> None:
    pickle.data += b"}"
    pickle.remember(value)
    for key, item in value.items():
        pickle.write(key)
        pickle.write(item)
        pickle.data += b"s"


def _set(pickle: Pickle, value: set[Any]) -> None:
    pickle.call("__builtin__.set", (list(value),))
    pickle.remember(value)


def _size(pickle: Pickle, value: Size) -> None:
    pickle.call("torch.Size", (tuple(value),))


SHARED: dict[type, Callable[[Pickle, Any], None]] = {
    str: _text,
    complex: _complex,
    tuple: _tuple,
    list: _list,
    dict: _dict,
    set: _set,
    Size: _size,
}
