"""Attributes and methods by tables keyed by type: no Python attribute is ever read by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.exposed import ATTRIBUTES as ATTRIBUTES
from engine.exposed import METHODS as METHODS
from engine.exposed import SETTERS as SETTERS
from tensorcli.language.errors import add_hint
from tensorcli.language.namespaces import Namespace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

# METHODS, ATTRIBUTES and SETTERS: type -> name -> function of the object (and, for methods, the
# arguments). The engine enters its own types as their modules are loaded.
_NONE: Mapping[str, Any] = {}

# Type -> what puts a complaint about a method's arguments in the words of methods: called with the
# TypeError, the method's name, its function and the number of positional arguments.
COMPLAINTS: dict[type, Callable[[TypeError, str, Any, int], None]] = {}

# Type -> what PyTorch calls the class behind it that has the attributes.
OWNERS: dict[type, str] = {}


class Method:
    """A method taken from its object without a call: `f = x.add`."""

    __slots__ = ("function", "name", "object")

    def __init__(self, object: object, name: str, function: Callable[..., Any]) -> None:
        self.object = object
        self.name = name
        self.function = function

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self.function(self.object, *args, **kwargs)

    def __repr__(self) -> str:
        return f"<method '{self.name}' of '{type_name(self.object)}' object>"


Method.__name__ = "builtin_function_or_method"


def type_name(value: object) -> str:
    """What error messages call the type of a value."""
    return "module" if type(value) is Namespace else type(value).__name__


def inherited(table: dict[type, Mapping[str, Any]], kind: type) -> Mapping[str, Any]:
    """The entries of a type, with those of the types it derives from; kept for the next time.

    The result is a copy only if more than one type of the line has entries.
    """
    found = table.get(kind)
    if found is not None:
        return found
    line = [table[base] for base in kind.__mro__ if base in table]
    merged: Mapping[str, Any] = _NONE
    if len(line) == 1:
        merged = line[0]
    elif line:
        merged = {name: value for entries in reversed(line) for name, value in entries.items()}
    if table is ATTRIBUTES and issubclass(kind, tuple):
        merged = {**merged, **_fields(kind)}
    table[kind] = merged
    return merged


def _fields(kind: type) -> dict[str, Callable[[Any], Any]]:
    """Getters of a named tuple's fields."""

    def getter(index: int) -> Callable[[Any], Any]:
        return lambda value: value[index]

    names: Iterable[str] = getattr(kind, "_fields", ())
    return {name: getter(index) for index, name in enumerate(names)}


def attribute(value: object, name: str) -> Any:
    """`value.name`, by the tables; raises AttributeError with Python's text."""
    kind = type(value)
    if kind is Namespace:
        try:
            return value.table[name]  # type: ignore[attr-defined]  # type() narrows no object
        except KeyError:
            raise _missing(value, name) from None
    getter = inherited(ATTRIBUTES, kind).get(name)
    if getter is not None:
        return getter(value)
    function = inherited(METHODS, kind).get(name)
    if function is not None:
        return Method(value, name, function)
    raise _missing(value, name)


def has_attribute(value: object, name: str) -> bool:
    """Whether the tables know `value.name`; a getter that refuses counts as absent."""
    try:
        attribute(value, name)
    except AttributeError:
        return False
    return True


def set_attribute(value: object, name: str, new: object) -> None:
    """`value.name = new`, by the tables."""
    setter = inherited(SETTERS, type(value)).get(name)
    if setter is not None:
        setter(value, new)
        return
    if attribute_names(value, name):
        owner = OWNERS.get(type(value)) or type_name(value)
        raise AttributeError(f"attribute '{name}' of '{owner}' objects is not writable")
    raise _missing(value, name)


def attribute_names(value: object, only: str | None = None) -> list[str]:
    """The names that `value.` may be followed by; `only` asks for one of them."""
    if isinstance(value, Namespace):
        tables: tuple[Mapping[str, Any], ...] = (value.table,)
    else:
        tables = (inherited(ATTRIBUTES, type(value)), inherited(METHODS, type(value)))
    if only is not None:
        return [only] if any(only in table for table in tables) else []
    return sorted({name for table in tables for name in names_in(table)})


def names_in(table: Mapping[str, Any]) -> Iterable[str]:
    """All names of a table; those of the engine make their entries on demand and list them so."""
    every: Callable[[], Iterable[str]] | None = getattr(table, "names", None)
    return table if every is None else every()


def _missing(value: object, name: str) -> AttributeError:
    if isinstance(value, Namespace):
        exc = AttributeError(f"module '{value.name}' has no attribute '{name}'")
    elif isinstance(value, type):
        exc = AttributeError(f"type object '{value.__name__}' has no attribute '{name}'")
    else:
        exc = AttributeError(f"'{type_name(value)}' object has no attribute '{name}'")
    hint_near(exc, name, lambda: attribute_names(value))
    return exc


def hint_near(exc: BaseException, name: str, candidates: Callable[[], Iterable[str]]) -> None:
    """Leave the near names on the exception, to be sought only if somebody looks.

    A program may catch a thousand such errors, and a search takes milliseconds.
    """
    add_hint(exc, NearNames(name, candidates))


# What other libraries call it.
ELSEWHERE = {
    "array": "tensor", "asarray": "as_tensor", "astype": "to", "cast": "to", "copy": "clone",
    "expand_dims": "unsqueeze", "reduce_sum": "sum", "reduce_mean": "mean", "reduce_max": "amax",
    "power": "pow", "length": "numel", "cumulative_sum": "cumsum", "uniform": "rand",
    "iteritems": "items", "push": "append", "negate": "neg", "matrix_multiply": "matmul",
    "identity": "eye", "mod": "remainder", "invert": "bitwise_not", "random_normal": "randn",
    "to_numpy": "numpy",
}  # fmt: skip


class NearNames:
    """The hint "did you mean": a text that is worked out when it is read."""

    __slots__ = ("candidates", "name")

    def __init__(self, name: str, candidates: Callable[[], Iterable[str]]) -> None:
        self.name = name
        self.candidates = candidates

    def near(self) -> list[str]:
        from difflib import get_close_matches

        candidates = set(self.candidates())
        known = [ELSEWHERE[self.name]] if ELSEWHERE.get(self.name) in candidates else []
        if known:
            return known
        return get_close_matches(self.name, candidates, n=3, cutoff=0.75)

    def __str__(self) -> str:
        near = self.near()
        return f"did you mean {' or '.join(near)}?" if near else ""
