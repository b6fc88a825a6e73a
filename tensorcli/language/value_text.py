"""Values as Python writes them: the texts of print, str and repr; calls no repr of nested values.

Lists may be cyclic, or nested a million deep, or share parts so that their text would never end:
containers are written with a stack of our own, and the text limit is looked at on the way.
"""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING

from tensorcli.language.costs import dict_items, dict_keys, dict_values
from tensorcli.language.limits import meter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

_SIMPLE = frozenset({int, float, bool, complex, str, type(None), type(...), type(NotImplemented)})

# What separates element i from the one before it: _SEPARATORS[...][i % 2].
_COMMAS = (", ", ", ")
_PAIRS = (", ", ": ")


def _pairs_in_turn(value: dict[object, object]) -> Iterator[object]:
    for key, item in value.items():
        yield key
        yield item


# Container -> (opening, closing, text if empty, text inside itself, separators, its elements).
_Shape = tuple[str, str, str, str, tuple[str, str], "Callable[[Any], Iterable[object]]"]
_SHAPES: dict[type, _Shape] = {
    list: ("[", "]", "[]", "[...]", _COMMAS, iter),
    tuple: ("(", ")", "()", "(...)", _COMMAS, iter),
    dict: ("{", "}", "{}", "{...}", _PAIRS, _pairs_in_turn),
    set: ("{", "}", "set()", "set(...)", _COMMAS, iter),
    frozenset: ("frozenset({", "})", "frozenset()", "frozenset(...)", _COMMAS, iter),
    dict_keys: ("dict_keys([", "])", "dict_keys([])", "...", _COMMAS, iter),
    dict_values: ("dict_values([", "])", "dict_values([])", "...", _COMMAS, iter),
    dict_items: ("dict_items([", "])", "dict_items([])", "...", _COMMAS, iter),
    slice: ("slice(", ")", "", "...", _COMMAS, lambda s: (s.start, s.stop, s.step)),
}

# Types whose own text is ours to give: whatever they hold was made by the engine or by this
# package, and their text calls nothing of the program.
_TRUSTED = frozenset({"engine", "tensorcli", "numpy", "ml_dtypes"})

# The module of tensors, whose text is made by the engine's printing.
_TENSORS = "engine.tensor"

# How a type is written where Python's name for it would tell of our own packages.
TYPE_NAMES: dict[str, str] = {
    "engine.tensor.Tensor": "torch.Tensor",
    "engine.ops.parameters.Parameter": "torch.nn.parameter.Parameter",
    "engine.layout.Size": "torch.Size",
    "engine.dtypes.DType": "torch.dtype",
    "engine.device.Device": "torch.device",
    "engine.formats.MemoryFormat": "torch.memory_format",
    "engine.formats.StorageLayout": "torch.layout",
    "engine.numeric_limits.FloatLimits": "torch.finfo",
    "engine.numeric_limits.IntegerLimits": "torch.iinfo",
    "engine.random.source.Generator": "torch._C.Generator",
    "engine.ops.optimisers.SGD": "torch.optim.sgd.SGD",
    "engine.ops.optimisers.Adam": "torch.optim.adam.Adam",
    "engine.ops.optimisers.AdamW": "torch.optim.adamw.AdamW",
    "engine.ops.optimisers.RMSprop": "torch.optim.rmsprop.RMSprop",
    "engine.ops.optimisers.Adagrad": "torch.optim.adagrad.Adagrad",
    "engine.ops.rarer_optimisers.Adadelta": "torch.optim.adadelta.Adadelta",
    "engine.ops.rarer_optimisers.Adamax": "torch.optim.adamax.Adamax",
    "engine.ops.rarer_optimisers.NAdam": "torch.optim.nadam.NAdam",
    "engine.ops.rarer_optimisers.RAdam": "torch.optim.radam.RAdam",
    "tensorcli.language.numpy_array.ndarray": "numpy.ndarray",
}


def text_of(value: object) -> str:
    """`str(value)`."""
    kind = type(value)
    if kind is str or kind in _SIMPLE or kind is range:
        return str(value)
    if isinstance(value, BaseException):
        return _error_text(value)
    if kind in _SHAPES or isinstance(value, type) or not _is_trusted(kind):
        return repr_of(value)
    if kind.__module__ == _TENSORS:
        return _tensor_text(value)
    return str(value)


def repr_of(value: object) -> str:
    """`repr(value)`."""
    if type(value) in _SIMPLE:
        return repr(value)
    shape = _shape_of(value)
    return _opaque_text(value) if shape is None else _container_text(value, shape)


def print_text(args: tuple[object, ...], sep: object = " ", end: object = "\n") -> str:
    """The text that `print(*args, sep=sep, end=end)` writes."""
    for name, given in (("sep", sep), ("end", end)):
        if given is not None and not isinstance(given, str):
            raise TypeError(f"{name} must be None or a string, not {type(given).__name__}")
    between = " " if sep is None else str(sep)
    after = "\n" if end is None else str(end)
    parts = [text_of(value) for value in args]
    meter().check_text(sum(map(len, parts)) + len(between) * len(parts) + len(after))
    return between.join(parts) + after


def type_text(kind: type) -> str:
    """The text of a type, as `print(type(x))` shows it."""
    return f"<class '{type_name(kind)}'>"


def type_name(kind: type) -> str:
    """The dotted name of a type as the program knows it."""
    module = kind.__module__
    full = f"{module}.{kind.__qualname__}"
    if full in TYPE_NAMES:
        return TYPE_NAMES[full]
    if module == "builtins" or module.startswith(("engine.", "tensorcli.")):
        return kind.__name__
    return full


def function_name(function: Callable[..., object]) -> str:
    """The name of a table's function; those that clash with Python's own end in an underscore."""
    return function.__name__.rstrip("_")


def _tensor_text(tensor: Any) -> str:
    from engine.printing import tensor_text

    return tensor_text(tensor)


def _is_trusted(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in _TRUSTED


def _opaque_text(value: object) -> str:
    if isinstance(value, type):
        return type_text(value)
    kind = type(value)
    if kind is range or _is_trusted(kind):
        text = _tensor_text(value) if kind.__module__ == _TENSORS else repr(value)
        meter().check_text(len(text))
        return text
    if isinstance(value, (FunctionType, BuiltinFunctionType)):
        return f"<built-in function {function_name(value)}>"
    # No address: it is of no use to a program, and would differ from run to run.
    return f"<{kind.__name__} object>"


def _error_text(error: BaseException) -> str:
    while _is_plain(error) and len(error.args) == 1:
        inner = error.args[0]
        if type(error) is KeyError:
            return repr_of(inner)
        if not isinstance(inner, BaseException):
            return text_of(inner)
        meter().step()
        error = inner
    if not _is_plain(error):
        return str(error)
    return repr_of(error.args) if error.args else ""


def _is_plain(error: BaseException) -> bool:
    """Whether the text of an error is that of its arguments, and these come from the program."""
    return type(error).__module__ == "builtins" and not isinstance(
        error, (OSError, UnicodeError, SyntaxError)
    )


def _shape_of(value: object) -> _Shape | None:
    if isinstance(value, BaseException) and _is_plain(value):
        name = type(value).__name__
        return (f"{name}(", ")", f"{name}()", "...", _COMMAS, lambda error: error.args)
    return _SHAPES.get(type(value))


class _Open:
    """A container that is being written: what is left of it, and how it ends."""

    __slots__ = ("close", "count", "identity", "rest", "separators")

    def __init__(self, value: object, shape: _Shape) -> None:
        self.rest = iter(shape[5](value))
        self.separators = shape[4]
        self.close = ",)" if type(value) is tuple and len(value) == 1 else shape[1]
        self.count = 0
        self.identity = id(value)


def _container_text(value: object, shape: _Shape) -> str:
    if _is_empty(value):
        return shape[2]
    pieces = [shape[0]]
    length = 0
    opened = [_Open(value, shape)]
    active = {id(value)}
    watch = meter()
    done = object()
    while opened:
        frame = opened[-1]
        item = next(frame.rest, done)
        if item is done:
            pieces.append(frame.close)
            active.discard(frame.identity)
            opened.pop()
            continue
        if frame.count:
            pieces.append(frame.separators[frame.count & 1])
        frame.count += 1
        inner = None if type(item) in _SIMPLE else _shape_of(item)
        if inner is None:
            text = repr(item) if type(item) in _SIMPLE else _opaque_text(item)
        elif id(item) in active:
            text = inner[3]
        elif _is_empty(item):
            text = inner[2]
        else:
            text = inner[0]
            opened.append(_Open(item, inner))
            active.add(id(item))
        pieces.append(text)
        length += len(text) + 2
        watch.step()
        watch.check_text(length)
    return "".join(pieces)


def _is_empty(value: object) -> bool:
    if isinstance(value, BaseException):
        return not value.args
    return type(value) is not slice and not value
