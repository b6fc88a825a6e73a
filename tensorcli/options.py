"""The flags of eval and run as one table, and a parser of them that needs no library.

The parser answers None for whatever it does not know for certain; the typer app, which defines
the same flags, then says what is wrong. A parity test holds the two together.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    FlagValue = str | int | float | bool


class Request:
    """A command line that was understood: command, its operands, and the flags that were given."""

    __slots__ = ("command", "flags", "operands")

    def __init__(
        self, command: str, operands: tuple[str, ...], flags: dict[str, FlagValue]
    ) -> None:
        self.command = command
        self.operands = operands
        self.flags = flags

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Request) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash((self.command, self.operands))

    def __repr__(self) -> str:
        return f"Request{self._fields()!r}"

    def _fields(self) -> tuple[str, tuple[str, ...], dict[str, FlagValue]]:
        return self.command, self.operands, self.flags


def _choice(*names: str) -> Callable[[str], str]:
    def convert(text: str) -> str:
        if text not in names:
            raise ValueError(f"'{text}' is not one of {', '.join(map(repr, names))}.")
        return text

    return convert


def integer(text: str) -> int:
    """A decimal integer; int() alone would take '1_0' and surrounding blanks."""
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 20:
        raise ValueError(f"'{text}' is not an integer.")
    return int(text)


def positive_integer(text: str) -> int:
    value = integer(text)
    if value <= 0:
        raise ValueError(f"'{text}' is not a positive integer.")
    return value


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 < value < 1e9:
        raise ValueError(f"'{text}' is not a positive number of seconds.")
    return value


_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def size(text: str) -> int:
    """A number of bytes: '500000', '64M', '1.5GiB'."""
    number = text.upper().removesuffix("IB").removesuffix("B")
    unit = number[-1:] if number[-1:] in _UNITS else ""
    try:
        value = float(number.removesuffix(unit)) * _UNITS[unit]
    except ValueError:
        value = -1.0
    if not 1.0 <= value < 2.0**60:
        raise ValueError(f"'{text}' is not a size in bytes, such as 500000, 64M or 2G.")
    return int(value)


# flag -> (setting, value): flags that stand alone.
SWITCHES: dict[str, tuple[str, FlagValue]] = {
    "--json": ("format", "json"),
    "--plain": ("format", "plain"),
    "--rich": ("format", "rich"),
    "--full": ("full", True),
    "--trace-nan": ("trace_nan", True),
    "--no-files": ("files", False),
}

# flag -> (setting, converter): flags that take a value.
VALUED: dict[str, tuple[str, Callable[[str], FlagValue]]] = {
    "--color": ("color", _choice("always", "never", "auto")),
    "--show": ("show", _choice("last", "all", "none")),
    "--hints": ("hints", _choice("auto", "on", "off")),
    "--seed": ("seed", integer),
    "--time-limit": ("time_limit", seconds),
    "--memory-limit": ("memory_limit", size),
    "--step-limit": ("step_limit", positive_integer),
    "--output-limit": ("output_limit", size),
}

COMMANDS = ("eval", "run")


def with_command(arguments: Sequence[str]) -> list[str]:
    """The command line with the `run` that may be left out: `tensorcli a.tx`, `… --json < a.tx`."""
    arguments = list(arguments)
    if not arguments:
        return ["run", "-"]
    first = arguments[0]
    is_flag = first.partition("=")[0] in SWITCHES.keys() | VALUED.keys()
    if is_flag or first.endswith(".tx") or "/" in first:
        return ["run", *arguments]
    return arguments


def is_expression(argument: str, command: str) -> bool:
    """Whether an argument that begins with a minus is an expression: `tensorcli eval "-x"`."""
    return command in ("eval", "precision") and argument[:2] != "--" and argument not in ("-", "-h")


def parse(arguments: Sequence[str]) -> Request | None:
    """The request in a command line of eval or run, or None where the full parser must look."""
    arguments = with_command(arguments)
    command = arguments[0]
    if command not in COMMANDS:
        return None
    operands: list[str] = []
    flags: dict[str, FlagValue] = {}
    rest = iter(arguments[1:])
    for argument in rest:
        if argument == "--":
            operands.extend(rest)
        elif argument[:1] != "-" or argument == "-" or is_expression(argument, command):
            operands.append(argument)
        elif not _take_flag(argument, rest, flags):
            return None
    if command == "eval" and not operands:
        return None
    return Request(command, tuple(operands), flags)


def _take_flag(argument: str, rest: Iterator[str], flags: dict[str, FlagValue]) -> bool:
    """Put one flag, with its value from the rest, among the flags; False where it is not plain."""
    if argument in SWITCHES:
        setting, value = SWITCHES[argument]
        if flags.get(setting, value) != value:
            return False
    else:
        name, equals, text = argument.partition("=")
        if name not in VALUED:
            return False
        setting, convert = VALUED[name]
        if not equals:
            following = next(rest, None)
            if following is None:
                return False
            text = following
        try:
            value = convert(text)
        except ValueError:
            return False
    flags[setting] = value
    return True
