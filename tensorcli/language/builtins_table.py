"""Python's built-in functions as the language has them: one entry each, its cost asked first.

Types are Python's own type objects, so that isinstance and `dtype=float` mean what they mean; what
calling one does is in GUARDED_CALLS. Functions take and raise what Python's take and raise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import public_class
from engine.exposed import TYPES
from tensorcli.language import costs
from tensorcli.language.costs import bounded, list_of
from tensorcli.language.functions import callable_for, not_callable
from tensorcli.language.limits import meter, reached
from tensorcli.language.nesting import check_key, check_nested
from tensorcli.language.operators import guard_power
from tensorcli.language.text_format import convert, format_value
from tensorcli.language.value_text import repr_of, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

# The errors that a program can name, raise and catch.
EXCEPTIONS: tuple[type[Exception], ...] = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    Exception,
    FileNotFoundError,
    FloatingPointError,
    IndexError,
    KeyError,
    LookupError,
    MemoryError,
    NameError,
    NotImplementedError,
    OSError,
    OverflowError,
    RecursionError,
    RuntimeError,
    StopIteration,
    TypeError,
    UnboundLocalError,
    UserWarning,
    ValueError,
    Warning,
    ZeroDivisionError,
)

# Each of map, filter, zip and enumerate in another's arms is one more level of C stack, with no
# check of Python's: a million of them would end the process.
DEEPEST_ITERATOR = 16


class _Map(map):  # type: ignore[type-arg]  # generic only for type checkers
    __slots__ = ("depth",)
    depth: int


class _Filter(filter):  # type: ignore[type-arg]  # generic only for type checkers
    __slots__ = ("depth",)
    depth: int


class _Zip(zip):  # type: ignore[type-arg]  # generic only for type checkers
    __slots__ = ("depth",)
    depth: int


class _Enumerate(enumerate):  # type: ignore[type-arg]  # generic only for type checkers
    __slots__ = ("depth",)
    depth: int


_LAZY: dict[type, str] = {_Map: "map", _Filter: "filter", _Zip: "zip", _Enumerate: "enumerate"}
for _lazy, _name in _LAZY.items():
    _lazy.__name__ = _lazy.__qualname__ = _name


def callable_of(value: Any) -> Callable[..., Any]:
    """What calling `value` runs; raises TypeError, as the call would, where it is no function."""
    function = callable_for(value)
    if function is None:
        raise not_callable(value)
    return function


def _nested(iterator: Any, sources: Iterable[object]) -> Any:
    depth = 1 + max((s.depth for s in sources if type(s) in _LAZY), default=0)  # type: ignore[attr-defined]  # lazy ones have it
    if depth > DEEPEST_ITERATOR:
        reached("depth", f"iterators nested more than {DEEPEST_ITERATOR} deep")
    iterator.depth = depth
    return iterator


def map_(*args: Any, **kwargs: Any) -> Any:
    if len(args) < 2 or kwargs:
        return map(*args, **kwargs)
    return _nested(_Map(callable_of(args[0]), *args[1:]), args[1:])


def filter_(*args: Any, **kwargs: Any) -> Any:
    if len(args) != 2 or kwargs:
        return filter(*args, **kwargs)
    test = None if args[0] is None else callable_of(args[0])
    # One step of a filter may look at any number of items.
    return _nested(_Filter(test, costs.metered(iter(args[1]))), args[1:])


def zip_(*args: Any, **kwargs: Any) -> Any:
    return _nested(_Zip(*args, **kwargs), args)


def enumerate_(*args: Any, **kwargs: Any) -> Any:
    sources = args[:1] or tuple(kwargs.values())
    if not sources:
        return enumerate(*args)
    return _nested(_Enumerate(*args, **kwargs), sources)


def iter_(*args: Any, **kwargs: Any) -> Any:
    if len(args) == 2 and not kwargs and callable_for(args[0]) is not None:
        return iter(callable_of(args[0]), args[1])
    return iter(*args, **kwargs)


def list_(*args: Any, **kwargs: Any) -> list[Any]:
    return list(*args, **kwargs) if kwargs or len(args) != 1 else list_of(args[0])


def tuple_(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
    if kwargs or len(args) != 1:
        return tuple(*args, **kwargs)
    return args[0] if type(args[0]) is tuple else tuple(list_of(args[0]))


def set_(*args: Any, **kwargs: Any) -> set[Any]:
    return set(*args, **kwargs) if kwargs or len(args) != 1 else set_of(args[0])


def frozenset_(*args: Any, **kwargs: Any) -> frozenset[Any]:
    if kwargs or len(args) != 1:
        return frozenset(*args, **kwargs)
    return args[0] if type(args[0]) is frozenset else frozenset(set_of(args[0]))


def set_of(iterable: Any) -> set[Any]:
    """`set(iterable)`, a part at a time: keys of one hash cost more the more there are."""
    result: set[Any] = set()
    for part in key_parts(iterable):
        result.update(part)
    return result


def key_parts(iterable: Any) -> Iterator[list[Any]]:
    """The items as short lists fit for keys: memory asked for, hashes charged, clock looked at."""
    items = list_of(iterable, item_bytes=72)
    for start in range(0, len(items), 1024):
        part = items[start : start + 1024]
        costs.check_keys(part)
        meter().check_time()
        yield part


def dict_(*args: Any, **kwargs: Any) -> dict[Any, Any]:
    if len(args) != 1:
        return dict(*args, **kwargs)
    result: dict[Any, Any] = {}
    update_dict(result, args[0])
    result.update(kwargs)
    return result


def update_dict(target: dict[Any, Any], source: Any) -> None:
    """`target.update(source)` for a dict or an iterable of pairs."""
    if type(source) is dict:
        meter().charge_bytes(104 * len(source))
        meter().charge_steps(len(source))
        target.update(source)
        return
    done = 0
    for part in key_parts(source):
        for item in part:
            # Python would make a list of anything it can iterate, however long.
            pair = item if type(item) in (list, tuple, str) else _short_list(item, done)
            if len(pair) != 2:
                raise ValueError(
                    f"dictionary update sequence element #{done} has length {len(pair)};"
                    " 2 is required"
                )
            check_key(pair[0])
            target[pair[0]] = pair[1]
            done += 1


def _short_list(item: Any, index: int) -> list[Any]:
    try:
        return list_of(item)
    except TypeError:
        raise TypeError(
            f"cannot convert dictionary update sequence element #{index} to a sequence"
        ) from None


def int_(*args: Any, **kwargs: Any) -> int:
    if args and type(args[0]) is str:
        base = args[1] if len(args) > 1 else kwargs.get("base", 10)
        bits = base.bit_length() if type(base) is int else 4
        # A base of 0 is told by the text's own prefix.
        meter().check_integer_bits(len(args[0]) * (bits or 4))
    return int(*args, **kwargs)


def str_(*args: Any, **kwargs: Any) -> str:
    if len(args) == 1 and not kwargs:
        return text_of(args[0])
    if not args and list(kwargs) == ["object"]:
        return text_of(kwargs["object"])
    return str(*args, **kwargs)


def type_(*args: Any, **kwargs: Any) -> type:
    if len(args) == 3:
        raise TypeError("type() makes no classes here: it takes 1 argument")
    if len(args) != 1 or kwargs:
        raise TypeError("type() takes 1 argument")
    kind = type(args[0])
    if issubclass(kind, BaseException):
        return public_class(args[0])
    return TYPES[kind](args[0]) if kind in TYPES else kind


def sum_(*args: Any, **kwargs: Any) -> Any:
    if not args:
        return sum(*args, **kwargs)
    start = args[1] if len(args) > 1 else kwargs.get("start", 0)
    return own(sum(_summands(args[0], start), *args[1:], **kwargs))


def _summands(iterable: Any, start: Any) -> Iterator[Any]:
    watch = meter()
    length = len(start) if isinstance(start, (list, tuple)) else 0
    for item in iterable:
        watch.step()
        if isinstance(item, (list, tuple)):
            # Each sum of lists is a new list, as long as all so far.
            length += len(item)
            watch.charge_bytes(8 * length)
            watch.charge_steps(length // 16)
        yield item


def min_(*args: Any, **kwargs: Any) -> Any:
    return min(*_candidates(args), **with_key(kwargs))


def max_(*args: Any, **kwargs: Any) -> Any:
    return max(*_candidates(args), **with_key(kwargs))


def _candidates(args: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(args) == 1:
        return (_measured(bounded(args[0])),)
    for value in args:
        check_nested(value)
    return args


def _measured(iterable: Iterable[Any]) -> Iterator[Any]:
    for item in iterable:
        check_nested(item)
        yield item


def with_key(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of sorted, min and max, with a `key` that charges what comparing will cost."""
    if kwargs.get("key") is None:
        return dict(kwargs)
    key = callable_of(kwargs["key"])

    def measured_key(value: Any) -> Any:
        result = key(value)
        check_nested(result)
        return result

    return {**kwargs, "key": measured_key}


def sorted_(*args: Any, **kwargs: Any) -> list[Any]:
    if len(args) != 1:
        return sorted(*args, **kwargs)
    items = list_of(args[0])
    sort(items, **kwargs)
    return items


def sort(items: list[Any], *args: Any, **kwargs: Any) -> None:
    """`items.sort(...)`."""
    if kwargs.get("key") is None:
        costs.check_order(items)
    items.sort(*args, **with_key(kwargs))


def any_(*args: Any, **kwargs: Any) -> bool:
    return any(*map(bounded, args), **kwargs)


def all_(*args: Any, **kwargs: Any) -> bool:
    return all(*map(bounded, args), **kwargs)


def round_(*args: Any, **kwargs: Any) -> Any:
    digits = args[1] if len(args) > 1 else kwargs.get("ndigits")
    if type(digits) is int and digits < 0 and args and isinstance(args[0], int):
        guard_power(10, -digits)
    return round(*args, **kwargs)


def pow_(*args: Any, **kwargs: Any) -> Any:
    given = {**dict(zip(("base", "exp", "mod"), args, strict=False)), **kwargs}
    if given.get("mod") is None:
        guard_power(given.get("base"), given.get("exp"))
    else:
        costs.check_modular_power(given.get("exp"), given["mod"])
    return own(pow(*args, **kwargs))


def divmod_(*args: Any, **kwargs: Any) -> Any:
    if len(args) == 2:
        costs.check_division(*args)
    return divmod(*args, **kwargs)  # type: ignore[misc]  # Python words the complaint


def repr_(*args: Any, **kwargs: Any) -> str:
    return repr(*args, **kwargs) if kwargs or len(args) != 1 else repr_of(args[0])


def ascii_(*args: Any, **kwargs: Any) -> str:
    return ascii(*args, **kwargs) if kwargs or len(args) != 1 else convert(args[0], "a")


def format_(*args: Any, **kwargs: Any) -> str:
    if len(args) == 2 and type(args[1]) is not str:
        raise TypeError(f"format() argument 2 must be str, not {type(args[1]).__name__}")
    if kwargs or len(args) not in (1, 2):
        return format(*args, **kwargs)
    return format_value(*args)


def isinstance_(*args: Any, **kwargs: Any) -> bool:
    if len(args) == 2:
        check_nested(args[1])
    return isinstance(*args, **kwargs)


def issubclass_(*args: Any, **kwargs: Any) -> bool:
    if len(args) == 2:
        check_nested(args[1])
    return issubclass(*args, **kwargs)


def attribute_functions(
    attribute: Callable[[Any, str], Any],
) -> dict[str, Callable[..., Any]]:
    """getattr and hasattr, which see what `attribute`, the language's own look-up, sees."""

    def getattr_(*args: Any) -> Any:
        if len(args) not in (2, 3) or type(args[1]) is not str:
            return getattr(*_attribute_arguments(args))
        try:
            return attribute(args[0], args[1])
        except AttributeError:
            if len(args) == 2:
                raise
            return args[2]

    def hasattr_(*args: Any) -> bool:
        if len(args) != 2 or type(args[1]) is not str:
            return hasattr(*_attribute_arguments(args))
        try:
            attribute(args[0], args[1])
        except AttributeError:
            return False
        return True

    return {"getattr": getattr_, "hasattr": hasattr_}


def _attribute_arguments(args: tuple[Any, ...]) -> Any:
    # Python words the complaint about wrong arguments; of the program's values it sees none.
    return tuple(None if i == 0 else a for i, a in enumerate(args))


# Type of an array or value that must not go around bare -> what wraps it.
WRAPPERS: dict[type, Callable[[Any], Any]] = {}


def own(value: Any) -> Any:
    """The value as the language holds it: numpy's scalars make bare arrays of lists."""
    wrap = WRAPPERS.get(type(value))
    return value if wrap is None else wrap(value)


# Type object -> what calling it runs.
GUARDED_CALLS: dict[Any, Callable[..., Any]] = {
    int: int_,
    float: float,
    bool: bool,
    complex: complex,
    str: str_,
    list: list_,
    tuple: tuple_,
    dict: dict_,
    set: set_,
    frozenset: frozenset_,
    range: range,
    slice: slice,
    enumerate: enumerate_,
    zip: zip_,
    map: map_,
    filter: filter_,
    reversed: reversed,
    type: type_,
    **{error: error for error in EXCEPTIONS},
}

BUILTINS: dict[str, object] = {
    "abs": abs,
    "all": all_,
    "any": any_,
    "ascii": ascii_,
    "bin": bin,
    "bool": bool,
    "callable": callable,
    "chr": chr,
    "complex": complex,
    "dict": dict,
    "divmod": divmod_,
    "enumerate": enumerate,
    "filter": filter,
    "float": float,
    "format": format_,
    "frozenset": frozenset,
    "hex": hex,
    "int": int,
    "isinstance": isinstance_,
    "issubclass": issubclass_,
    "iter": iter_,
    "len": len,
    "list": list,
    "map": map,
    "max": max_,
    "min": min_,
    "next": next,
    "oct": oct,
    "ord": ord,
    "pow": pow_,
    "range": range,
    "repr": repr_,
    "reversed": reversed,
    "round": round_,
    "set": set,
    "slice": slice,
    "sorted": sorted_,
    "str": str,
    "sum": sum_,
    "tuple": tuple,
    "type": type,
    "zip": zip,
    "Ellipsis": ...,
    "NotImplemented": NotImplemented,
    **{error.__name__: error for error in EXCEPTIONS},
}

# Built-in functions of Python that the language has not -> what to do instead.
ABSENT: dict[str, str] = {
    "__import__": "import torch, numpy and math with an import statement",
    "breakpoint": "print what you want to see",
    "bytearray": "use a list, or a tensor of dtype uint8",
    "bytes": "use a list, or a tensor of dtype uint8",
    "classmethod": "there are no classes; write a function",
    "compile": "write the code itself",
    "delattr": "write `del x.name`",
    "dir": "the prompt completes names after a dot",
    "eval": "write the expression itself",
    "exec": "write the code itself",
    "exit": "leave the prompt with Ctrl-D or :quit",
    "globals": "name the variable",
    "hash": "use the value itself as a key",
    "help": "type `:help` at the prompt, or `tensorcli ops NAME` in the shell",
    "id": "compare with `is`, or use x.data_ptr()",
    "input": "give values as arguments or in files",
    "locals": "name the variable",
    "memoryview": "slices of a tensor are views already",
    "object": "use None as a mark",
    "open": "use load() and save()",
    "property": "there are no classes; write a function",
    "quit": "leave the prompt with Ctrl-D or :quit",
    "setattr": "write `x.name = value`",
    "staticmethod": "there are no classes; write a function",
    "super": "there are no classes; write a function",
    "vars": "name the variable",
}
