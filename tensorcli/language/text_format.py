"""The formatting of f-strings, of `.format` and of `%`: never looks inside a value by its names.

Python's own formatter does the work on numbers and texts, once width and precision have been
checked; other values are written as `str` would, and tensors format their only element.
"""

from __future__ import annotations

# What `string.Formatter` is made of, without the regular expressions that module compiles.
from _string import (  # type: ignore[import-not-found]  # typeshed has no stub of it
    formatter_field_name_split,
    formatter_parser,
)
from typing import TYPE_CHECKING

from tensorcli.language.limits import meter
from tensorcli.language.value_text import repr_of, text_of, type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

_PLAIN = frozenset({int, float, complex, bool, str})

# Types with a formatting of their own, beside tensors.
FORMATTERS: dict[type, Callable[[Any, str], str]] = {}

_CONVERSIONS: dict[str, Callable[[object], str]] = {
    "s": text_of,
    "r": repr_of,
    "a": lambda value: _ascii(repr_of(value)),
}


def format_value(value: Any, spec: str = "") -> str:
    """`format(value, spec)`."""
    kind = type(value)
    if spec:
        check_spec(spec)
    if kind in _PLAIN:
        return format(value, spec)
    if kind.__module__ == "engine.tensor":
        from engine.printing import format_tensor_value

        text: str = format_tensor_value(value, spec)
        return text
    if kind in FORMATTERS:
        return FORMATTERS[kind](value, spec)
    if not spec:
        return text_of(value)
    name = type_name(kind)
    raise TypeError(f"unsupported format string passed to {name}.__format__")


def check_spec(spec: str) -> None:
    """Refuse a width or precision beyond the text limit before anything is formatted."""
    digits = ""
    for character in spec + " ":
        # Python takes every Unicode decimal here.
        if character.isdecimal():
            digits += character
        elif digits:
            # Python itself refuses what has more digits than a size.
            if len(digits) < 20:
                meter().check_text(int(digits))
                meter().charge_bytes(int(digits))
            digits = ""


def convert(value: object, conversion: str) -> str:
    """What `!r`, `!s` and `!a` make of a value."""
    try:
        return _CONVERSIONS[conversion](value)
    except KeyError:
        raise ValueError(f"Unknown conversion specifier {conversion}") from None


def format_text(template: str, /, *args: object, **kwargs: object) -> str:
    """`template.format(*args, **kwargs)`."""
    return _Fields(args, kwargs).fill(template, 2)


def format_map(template: str, mapping: Mapping[str, object]) -> str:
    """`template.format_map(mapping)`."""
    if type(mapping) is not dict:
        raise TypeError(f"format_map() argument must be a dict, not {type(mapping).__name__}")
    return _Fields(None, mapping).fill(template, 2)


class _Fields:
    """The arguments of one `.format`, and how its fields have been numbered so far."""

    __slots__ = ("args", "kwargs", "manual", "next_index")

    def __init__(self, args: tuple[object, ...] | None, kwargs: Mapping[str, object]) -> None:
        self.args = args
        self.kwargs = kwargs
        self.next_index = 0
        self.manual = False

    def fill(self, template: str, depth: int) -> str:
        if depth < 1:
            raise ValueError("Max string recursion exceeded")
        pieces: list[str] = []
        length = 0
        for literal, field, spec, conversion in formatter_parser(template):
            pieces.append(literal)
            if field is not None:
                value = self.value(field)
                if conversion is not None:
                    value = convert(value, conversion)
                if "{" in spec or "}" in spec:
                    spec = self.fill(spec, depth - 1)
                pieces.append(format_value(value, spec))
                length += len(pieces[-1])
            length += len(literal)
            meter().check_text(length)
            meter().step()
        return "".join(pieces)

    def value(self, field: str) -> object:
        first, rest = formatter_field_name_split(field)
        if any(True for _ in rest):
            raise ValueError(
                f"a field of .format may not reach into a value: {field!r}; write an f-string"
            )
        if first == "":
            self._number(manual=False)
            first = self.next_index
            self.next_index += 1
        elif isinstance(first, int):
            self._number(manual=True)
        if not isinstance(first, int):
            return self.kwargs[first]
        if self.args is None:
            raise ValueError("Format string contains positional fields")
        if first >= len(self.args):
            raise IndexError(f"Replacement index {first} out of range for positional args tuple")
        return self.args[first]

    def _number(self, *, manual: bool) -> None:
        if manual and self.next_index:
            raise ValueError(
                "cannot switch from automatic field numbering to manual field specification"
            )
        if not manual and self.manual:
            raise ValueError(
                "cannot switch from manual field specification to automatic field numbering"
            )
        self.manual = manual


def percent_format(template: str, values: object) -> str:
    """`template % values`."""
    directives = _Directives(template, values)
    pieces: list[str] = []
    length = 0
    start = 0
    while (at := template.find("%", start)) >= 0:
        pieces.append(template[start:at])
        text, start = directives.written(at + 1)
        pieces.append(text)
        length += len(text)
        meter().check_text(length)
        meter().step()
    directives.finish()
    pieces.append(template[start:])
    return "".join(pieces)


class _Directives:
    """The values of one `%`, and how many of them have been used."""

    __slots__ = ("is_mapping", "mapping", "template", "used", "values")

    def __init__(self, template: str, values: Any) -> None:
        self.template = template
        self.mapping = values
        self.used = 0
        self.values = values if type(values) is tuple else (values,)
        # As Python decides it: whatever can be indexed need not be used up.
        self.is_mapping = not isinstance(values, (tuple, str)) and hasattr(
            type(values), "__getitem__"
        )

    def next_value(self) -> object:
        if self.used >= len(self.values):
            raise TypeError("not enough arguments for format string")
        self.used += 1
        return self.values[self.used - 1]

    def finish(self) -> None:
        if self.used < len(self.values) and not self.is_mapping:
            raise TypeError("not all arguments converted during string formatting")

    def written(self, at: int) -> tuple[str, int]:
        """The text of the directive that starts at `at`, and where the template goes on."""
        template = self.template
        if self._character(at) == "%":
            return "%", at + 1
        at = self._key(at)
        start = at
        while self._character(at) in "-+ #0":
            at += 1
        flags = template[start:at]
        width, at = self._size(at, "width")
        precision = ""
        if self._character(at) == ".":
            digits, at = self._size(at + 1, "precision")
            # "%.*d" with a negative precision means none at all, here written as zero.
            precision = "." + ("0" if digits.startswith("-") else digits)
        if self._character(at) in "hlL":
            at += 1
        kind = self._character(at)
        value = self.next_value()
        if kind not in "diouxXeEfFgGcrsa":
            raise ValueError(
                f"unsupported format character {kind!r} (0x{ord(kind):x}) at index {at}"
            )
        if kind in _CONVERSIONS:
            value, kind = _CONVERSIONS[kind](value), "s"
        directive = f"%{flags}{width}{precision}{kind}"
        return directive % (value,), at + 1

    def _character(self, at: int) -> str:
        if at >= len(self.template):
            raise ValueError("incomplete format")
        return self.template[at]

    def _key(self, at: int) -> int:
        """Make the value of a key in parentheses the next one."""
        if self._character(at) != "(":
            return at
        if not self.is_mapping:
            raise TypeError("format requires a mapping")
        depth = 1
        start = at + 1
        while depth:
            at += 1
            if at >= len(self.template):
                raise ValueError("incomplete format key")
            depth += {"(": 1, ")": -1}.get(self.template[at], 0)
        self.values = (self.mapping[self.template[start:at]],)
        self.used = 0
        return at + 1

    def _size(self, at: int, name: str) -> tuple[str, int]:
        if self._character(at) == "*":
            given = self.next_value()
            if not isinstance(given, int):
                raise TypeError("* wants int")
            meter().check_text(abs(given))
            meter().charge_bytes(abs(given))
            return str(int(given)), at + 1
        start = at
        while self._character(at) in "0123456789":
            at += 1
        digits = self.template[start:at]
        if len(digits) > 18:
            raise ValueError(f"{name} too big")
        if digits:
            meter().check_text(int(digits))
            meter().charge_bytes(int(digits))
        return digits, at


def _ascii(text: str) -> str:
    if text.isascii():
        return text
    meter().check_text(10 * len(text))
    return text.encode("ascii", "backslashreplace").decode("ascii")
