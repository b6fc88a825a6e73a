"""The methods and attributes of Python's own values: one entry each, its cost asked first.

What is not here does not exist for a program: no special method, nothing that leads from a value
to its class, its code or its module. Each method is called with the object as first argument.
"""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING

from tensorcli.language.builtins_table import key_parts, set_of, sort, update_dict
from tensorcli.language.costs import (
    check_search,
    dict_items,
    dict_keys,
    dict_values,
    list_of,
    metered,
)
from tensorcli.language.limits import meter
from tensorcli.language.nesting import check_key
from tensorcli.language.text_format import format_map, format_text
from tensorcli.language.value_text import function_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _check_width(text: str, width: Any) -> None:
    if isinstance(width, int) and width > len(text):
        meter().check_text(width)
        meter().charge_bytes(width)


def _center(text: str, *args: Any) -> str:
    _check_width(text, args[0] if args else 0)
    return text.center(*args)


def _ljust(text: str, *args: Any) -> str:
    _check_width(text, args[0] if args else 0)
    return text.ljust(*args)


def _rjust(text: str, *args: Any) -> str:
    _check_width(text, args[0] if args else 0)
    return text.rjust(*args)


def _zfill(text: str, *args: Any) -> str:
    _check_width(text, args[0] if args else 0)
    return text.zfill(*args)


def _expandtabs(text: str, *args: Any, **kwargs: Any) -> str:
    size = args[0] if args else kwargs.get("tabsize", 8)
    if isinstance(size, int):
        _check_width(text, len(text) + text.count("\t") * size)
    return text.expandtabs(*args, **kwargs)


def _join(text: str, *args: Any) -> str:
    if len(args) != 1 or not hasattr(type(args[0]), "__iter__"):
        return text.join(*args)
    items = list_of(args[0])
    length = sum(len(item) for item in items if isinstance(item, str))
    meter().check_text(length + len(text) * len(items))
    return text.join(items)


def _replace(text: str, *args: Any, **kwargs: Any) -> str:
    if len(args) >= 2 and isinstance(args[0], str) and isinstance(args[1], str):
        growth = len(args[1]) - len(args[0])
        if growth > 0:
            times = text.count(args[0])
            if len(args) > 2 and isinstance(args[2], int) and args[2] >= 0:
                times = min(times, args[2])
            _check_width(text, len(text) + times * growth)
    return text.replace(*args, **kwargs)


# A list of one-letter texts takes a pointer and at most a small object for each letter.
_PIECE_BYTES = 64


def _split(text: str, *args: Any, **kwargs: Any) -> list[str]:
    meter().charge_bytes(_PIECE_BYTES * len(text))
    return text.split(*args, **kwargs)


def _rsplit(text: str, *args: Any, **kwargs: Any) -> list[str]:
    meter().charge_bytes(_PIECE_BYTES * len(text))
    return text.rsplit(*args, **kwargs)


def _splitlines(text: str, *args: Any, **kwargs: Any) -> list[str]:
    meter().charge_bytes(_PIECE_BYTES * len(text))
    return text.splitlines(*args, **kwargs)


def _extend(items: list[Any], *args: Any) -> None:
    # Python's own call complains about a wrong number of arguments.
    items.extend(*map(list_of, args))


def _list_copy(items: list[Any], *args: Any) -> list[Any]:
    return items.copy(*args) if args else list_of(items)


def _index(items: Any, *args: Any) -> int:
    check_search(args[0] if args else None, len(items))
    found: int = items.index(*args)
    return found


def _count(items: Any, *args: Any) -> int:
    check_search(args[0] if args else None, len(items))
    count: int = items.count(*args)
    return count


def _remove(items: list[Any], *args: Any) -> None:
    check_search(args[0] if args else None, len(items))
    items.remove(*args)


def _range_index(numbers: range, *args: Any) -> int:
    # Python asks every element in turn for anything but an int.
    if len(args) != 1 or type(args[0]) in (int, bool):
        return numbers.index(*args)
    for position, number in enumerate(metered(iter(numbers))):
        if number == args[0]:
            return position
    raise ValueError("sequence.index(x): x not in sequence")


def _range_count(numbers: range, *args: Any) -> int:
    if len(args) != 1 or type(args[0]) in (int, bool):
        return numbers.count(*args)
    return sum(1 for number in metered(iter(numbers)) if number == args[0])


def _keyed(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method whose first argument is hashed."""

    def keyed(container: Any, *args: Any, **kwargs: Any) -> Any:
        if args:
            check_key(args[0])
        return method(container, *args, **kwargs)

    keyed.__name__ = method.__name__
    return keyed


def _update(target: dict[Any, Any], /, *args: Any, **kwargs: Any) -> None:
    if len(args) == 1:
        update_dict(target, args[0])
        args = ()
    target.update(*args, **kwargs)


def _dict_copy(source: dict[Any, Any], *args: Any) -> dict[Any, Any]:
    meter().charge_bytes(104 * len(source))
    return source.copy(*args)


_HASHED = frozenset({set, frozenset, dict})


def _with_sets(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of sets whose arguments may be any iterables."""

    def combined(own: Any, *others: Any) -> Any:
        sets = [other if type(other) in _HASHED else set_of(other) for other in others]
        meter().charge_bytes(72 * (len(own) + sum(map(len, sets))))
        meter().charge_steps(len(own) + sum(map(len, sets)))
        return method(own, *sets)

    combined.__name__ = method.__name__
    return combined


def _set_update(own: set[Any], *others: Any) -> None:
    for other in others:
        for part in key_parts(other):
            own.update(part)


_SET_READS = {
    "copy": set.copy,
    "difference": _with_sets(set.difference),
    "intersection": _with_sets(set.intersection),
    "isdisjoint": _with_sets(set.isdisjoint),
    "issubset": _with_sets(set.issubset),
    "issuperset": _with_sets(set.issuperset),
    "symmetric_difference": _with_sets(set.symmetric_difference),
    "union": _with_sets(set.union),
}

METHODS: dict[type, dict[str, Callable[..., Any]]] = {
    str: {
        "capitalize": str.capitalize,
        "casefold": str.casefold,
        "center": _center,
        "count": str.count,
        "endswith": str.endswith,
        "expandtabs": _expandtabs,
        "find": str.find,
        "format": format_text,
        "format_map": format_map,
        "index": str.index,
        "isalnum": str.isalnum,
        "isalpha": str.isalpha,
        "isascii": str.isascii,
        "isdecimal": str.isdecimal,
        "isdigit": str.isdigit,
        "isidentifier": str.isidentifier,
        "islower": str.islower,
        "isnumeric": str.isnumeric,
        "isprintable": str.isprintable,
        "isspace": str.isspace,
        "istitle": str.istitle,
        "isupper": str.isupper,
        "join": _join,
        "ljust": _ljust,
        "lower": str.lower,
        "lstrip": str.lstrip,
        "partition": str.partition,
        "removeprefix": str.removeprefix,
        "removesuffix": str.removesuffix,
        "replace": _replace,
        "rfind": str.rfind,
        "rindex": str.rindex,
        "rjust": _rjust,
        "rpartition": str.rpartition,
        "rsplit": _rsplit,
        "rstrip": str.rstrip,
        "split": _split,
        "splitlines": _splitlines,
        "startswith": str.startswith,
        "strip": str.strip,
        "swapcase": str.swapcase,
        "title": str.title,
        "upper": str.upper,
        "zfill": _zfill,
    },
    list: {
        "append": list.append,
        "clear": list.clear,
        "copy": _list_copy,
        "count": _count,
        "extend": _extend,
        "index": _index,
        "insert": list.insert,
        "pop": list.pop,
        "remove": _remove,
        "reverse": list.reverse,
        "sort": sort,
    },
    tuple: {"count": _count, "index": _index},
    dict: {
        "clear": dict.clear,
        "copy": _dict_copy,
        "get": _keyed(dict.get),
        "items": dict.items,
        "keys": dict.keys,
        "pop": _keyed(dict.pop),
        "popitem": dict.popitem,
        "setdefault": _keyed(dict.setdefault),
        "update": _update,
        "values": dict.values,
    },
    set: {
        **_SET_READS,
        "add": _keyed(set.add),
        "clear": set.clear,
        "difference_update": _with_sets(set.difference_update),
        "discard": _keyed(set.discard),
        "intersection_update": _with_sets(set.intersection_update),
        "pop": set.pop,
        "remove": _keyed(set.remove),
        "symmetric_difference_update": _with_sets(set.symmetric_difference_update),
        "update": _set_update,
    },
    frozenset: {
        "copy": frozenset.copy,
        "difference": _with_sets(frozenset.difference),
        "intersection": _with_sets(frozenset.intersection),
        "isdisjoint": _with_sets(frozenset.isdisjoint),
        "issubset": _with_sets(frozenset.issubset),
        "issuperset": _with_sets(frozenset.issuperset),
        "symmetric_difference": _with_sets(frozenset.symmetric_difference),
        "union": _with_sets(frozenset.union),
    },
    int: {
        "as_integer_ratio": int.as_integer_ratio,
        "bit_count": int.bit_count,
        "bit_length": int.bit_length,
        "conjugate": int.conjugate,
    },
    float: {
        "as_integer_ratio": float.as_integer_ratio,
        "conjugate": float.conjugate,
        "hex": float.hex,
        "is_integer": float.is_integer,
    },
    complex: {"conjugate": complex.conjugate},
    range: {"count": _range_count, "index": _range_index},
    slice: {"indices": slice.indices},
    dict_keys: {"isdisjoint": lambda own, *others: set(own).isdisjoint(*map(set_of, others))},
    dict_items: {},
    dict_values: {},
}

_REAL_AND_IMAGINARY: dict[str, Callable[[Any], Any]] = {
    "real": lambda number: number.real,
    "imag": lambda number: number.imag,
}
_BOUNDS: dict[str, Callable[[Any], Any]] = {
    "start": lambda bounds: bounds.start,
    "stop": lambda bounds: bounds.stop,
    "step": lambda bounds: bounds.step,
}

ATTRIBUTES: dict[type, dict[str, Callable[[Any], Any]]] = {
    int: {
        **_REAL_AND_IMAGINARY,
        "numerator": lambda number: number.numerator,
        "denominator": lambda number: number.denominator,
    },
    float: _REAL_AND_IMAGINARY,
    complex: _REAL_AND_IMAGINARY,
    range: _BOUNDS,
    slice: _BOUNDS,
    type: {"__name__": lambda kind: kind.__name__.rpartition(".")[2]},
    FunctionType: {"__name__": function_name},
    BuiltinFunctionType: {"__name__": function_name},
    BaseException: {"args": lambda error: error.args},
    StopIteration: {"value": lambda error: error.value},
    OSError: {
        "errno": lambda error: error.errno,
        "filename": lambda error: error.filename,
        "strerror": lambda error: error.strerror,
    },
}
