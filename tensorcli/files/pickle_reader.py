"""Pickled data read opcode by opcode: containers, numbers and text; what else may be is handed in.

Nothing is imported and nothing of the data is called: a name means something only if the caller's
table has it. It knows no tensors.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from engine import storage
from engine.errors import EngineError
from tensorcli.files.disk import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Opcodes that may take 64 bytes each between two requests for memory.
BATCH = 1 << 14
MOST_NAME = 1000
# Bytes of an integer: a million bits, as many as programs may have.
MOST_INTEGER = 125_000


class UnpicklingError(EngineError):
    """What the data asks for is not read, or the data is damaged. Shown by this name, as Python's
    own."""

    code = "file"


class Known:
    """A name that the data may call; `call` gets the tuple of arguments."""

    __slots__ = ("call", "name")

    def __init__(self, name: str, call: Callable[[tuple[Any, ...]], Any]) -> None:
        self.name = name
        self.call = call


# Python 2's names, which the old protocols write.
RENAMED = {"__builtin__": "builtins", "copy_reg": "copyreg"}

ATOMS = frozenset({str, int, float, bool, complex, type(None)})


class Machine:
    """Reads one pickle; `names` are the names it may use, `persistent` finds what lies outside."""

    __slots__ = ("at", "data", "marks", "memo", "names", "persistent", "stack")

    def __init__(
        self, data: bytes, names: Mapping[str, object], persistent: Callable[[Any], Any]
    ) -> None:
        self.data = data
        self.at = 0
        self.names = names
        self.persistent = persistent
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        """The value. Raises UnpicklingError."""
        try:
            return self._run()
        except (IndexError, KeyError, struct.error, UnicodeDecodeError):
            raise UnpicklingError(f"the data is damaged before byte {self.at}") from None

    def _run(self) -> Any:
        left = 0
        while True:
            if left == 0:
                storage.ask(BATCH * 64 + 1)
                left = BATCH
            left -= 1
            code = self.data[self.at]
            self.at += 1
            if code == STOP:
                return self.stack.pop()
            handler = OPCODES.get(code)
            if handler is None:
                raise UnpicklingError(f"Unsupported operand {code} at byte {self.at - 1}")
            handler(self)

    def take(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self.data):
            raise UnpicklingError("the data ends within an operand")
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def line(self) -> str:
        end = self.data.find(b"\n", self.at, self.at + MOST_NAME)
        if end < 0:
            raise UnpicklingError(f"a name of more than {MOST_NAME} bytes, or without an end")
        taken = self.data[self.at : end].decode("utf-8")
        self.at = end + 1
        return taken

    def since_mark(self) -> list[Any]:
        items = self.stack
        self.stack = self.marks.pop()
        return items


def _push(value: Callable[[Machine], Any]) -> Callable[[Machine], None]:
    def handler(m: Machine) -> None:
        # First the value: taking what lies above a mark puts another stack in place.
        found = value(m)
        m.stack.append(found)

    return handler


def _protocol(m: Machine) -> None:
    found = m.number("B")
    if found > 3:
        raise UnpicklingError(f"protocol {found} of pickle is not read, 2 is what PyTorch writes")


def _mark(m: Machine) -> None:
    m.marks.append(m.stack)
    m.stack = []


def _tuple_of(count: int) -> Callable[[Machine], None]:
    def handler(m: Machine) -> None:
        if len(m.stack) < count:
            raise IndexError
        m.stack[-count:] = [tuple(m.stack[-count:])]

    return handler


def _text(m: Machine) -> str:
    return m.take(m.number("<I")).decode("utf-8", "surrogatepass")


def _short_text(m: Machine) -> str:
    return m.take(m.number("B")).decode("utf-8")


def _integer(form: str) -> Callable[[Machine], int]:
    def value(m: Machine) -> int:
        count = m.number(form)
        if not 0 <= count <= MOST_INTEGER:
            raise UnpicklingError(f"an integer of {count} bytes")
        return int.from_bytes(m.take(count), "little", signed=True)

    return value


def _get(form: str) -> Callable[[Machine], None]:
    return _push(lambda m: m.memo[m.number(form)])


def _put(form: str) -> Callable[[Machine], None]:
    def handler(m: Machine) -> None:
        m.memo[m.number(form)] = m.stack[-1]

    return handler


def _append(m: Machine) -> None:
    _extend(m, [m.stack.pop()])


def _appends(m: Machine) -> None:
    _extend(m, m.since_mark())


def _extend(m: Machine, items: list[Any]) -> None:
    if type(m.stack[-1]) is not list:
        raise UnpicklingError(f"Can only append to lists, but got {type(m.stack[-1]).__name__}")
    m.stack[-1].extend(items)


def _set_item(m: Machine) -> None:
    value = m.stack.pop()
    key = m.stack.pop()
    _update(m, [key, value])


def _set_items(m: Machine) -> None:
    _update(m, m.since_mark())


def _update(m: Machine, items: list[Any]) -> None:
    table = m.stack[-1]
    if type(table) is not dict or len(items) % 2:
        raise UnpicklingError(f"Can only set items of dicts, but got {type(table).__name__}")
    for i in range(0, len(items), 2):
        table[key_of(items[i])] = items[i + 1]


def key_of(value: Any) -> Any:
    """A value that may be a key; hashing anything deep would end the process."""
    kind = type(value)
    if kind in ATOMS or (isinstance(value, tuple) and all(type(item) in ATOMS for item in value)):
        return value
    by_identity: Any = object.__hash__
    if kind.__hash__ is by_identity:
        return value
    raise UnpicklingError(f"a key of type {kind.__name__}")


def _global(m: Machine) -> Any:
    module, name = m.line(), m.line()
    full = f"{RENAMED.get(module, module)}.{name}"
    found = m.names.get(full)
    if found is None:
        raise UnpicklingError(
            f"Unsupported global: GLOBAL {shown(full)[1:-1]} was not an allowed global by default"
        )
    return found


def _reduce(m: Machine) -> None:
    arguments = m.stack.pop()
    function = m.stack[-1]
    if type(function) is not Known or type(arguments) is not tuple:
        raise UnpicklingError(
            f"Trying to call reduce for unrecognized function of type {type(function).__name__}"
        )
    m.stack[-1] = function.call(arguments)


def _build(m: Machine) -> None:
    """The attributes of a state dict say which versions wrote it; there is no place for them."""
    m.stack.pop()
    if type(m.stack[-1]) is not dict:
        raise UnpicklingError(f"Can only build OrderedDict, but got {type(m.stack[-1]).__name__}")


def _persistent(m: Machine) -> None:
    m.stack[-1] = m.persistent(m.stack[-1])


STOP = ord(".")

OPCODES: dict[int, Callable[[Machine], None]] = {
    ord(code): handler
    for code, handler in {
        "\x80": _protocol,
        "(": _mark,
        "N": _push(lambda m: None),
        "\x88": _push(lambda m: True),
        "\x89": _push(lambda m: False),
        ")": _push(lambda m: ()),
        "]": _push(lambda m: []),
        "}": _push(lambda m: {}),
        "\x8f": _push(lambda m: set()),
        "t": _push(lambda m: tuple(m.since_mark())),
        "\x85": _tuple_of(1),
        "\x86": _tuple_of(2),
        "\x87": _tuple_of(3),
        "J": _push(lambda m: m.number("<i")),
        "K": _push(lambda m: m.number("B")),
        "M": _push(lambda m: m.number("<H")),
        "\x8a": _push(_integer("B")),
        "\x8b": _push(_integer("<i")),
        "G": _push(lambda m: m.number(">d")),
        "X": _push(_text),
        "U": _push(_short_text),
        "h": _get("B"),
        "j": _get("<I"),
        "q": _put("B"),
        "r": _put("<I"),
        "a": _append,
        "e": _appends,
        "s": _set_item,
        "u": _set_items,
        "c": _push(_global),
        "R": _reduce,
        "b": _build,
        "Q": _persistent,
    }.items()
}
