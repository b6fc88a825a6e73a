"""Parameters of operations and the binding of arguments to them, with PyTorch's complaints.

A parameter's kind is its annotation's text: ``Tensor``, ``Operand`` (tensor or number),
``Scalar``, ``Dim``, ``Dims``, ``Size`` (may be spread over several arguments), ``int``,
``float``, ``bool``, ``str``, ``DType``, ``Tensors``; ``| None`` makes None acceptable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine.device import Device, device
from engine.dtypes import DType
from engine.errors import TensorOverflowError, TensorTypeError, TensorValueError
from engine.formats import MemoryFormat, StorageLayout
from engine.tensor import Tensor, number

if TYPE_CHECKING:
    from collections.abc import Callable

REQUIRED: Any = object()

# numpy's spellings, which PyTorch accepts in place of its own.
_ALIASES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "x1": "input", "x2": "other"}


_TENSORS = ("Tensor", "Layout", "Operand", "Any")


class Parameter:
    """One parameter of an operation."""

    __slots__ = ("convert", "default", "keyword_only", "kind", "name", "optional", "spread")

    def __init__(self, name: str, annotation: str, default: Any, keyword_only: bool):
        kind = annotation.removesuffix(" | None")
        self.name = name
        self.kind = kind
        self.optional = kind is not annotation and kind != annotation
        self.default = default
        self.keyword_only = keyword_only
        self.spread = kind in ("Size", "SpreadDims")
        self.convert = _CONVERTERS.get(kind)


class ArgumentError(TensorTypeError):
    """Arguments that do not fit an operation's parameters.

    ``parameter`` is the one concerned, where there is one. ``as_method`` is the sentence where the
    call was a method's, which counts arguments without the tensor; empty where it is the same.
    """

    code = "argument"

    def __init__(self, message: str, parameter: str | None = None, as_method: str = ""):
        self.parameter = parameter
        self.as_method = as_method
        super().__init__(message)


def _unchanged(error: ArgumentError, *call: Any) -> ArgumentError:
    return error


_reworded: Callable[..., ArgumentError] = _unchanged


def use_rewording(reworded: Callable[..., ArgumentError]) -> None:
    """Have complaints of ``bind`` go through ``reworded(error, name, args, kwargs)``."""
    global _reworded
    _reworded = reworded


def parameters_of(body: Callable[..., Any]) -> tuple[Parameter, ...]:
    """The parameters of a function, from its code object (``inspect`` costs an import)."""
    code = body.__code__
    positional = code.co_varnames[: code.co_argcount]
    keyword = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    defaults = body.__defaults__ or ()
    keyword_defaults = body.__kwdefaults__ or {}
    notes = body.__annotations__
    first = len(positional) - len(defaults)
    return tuple(
        [
            Parameter(
                n, notes.get(n, "Any"), defaults[i - first] if i >= first else REQUIRED, False
            )
            for i, n in enumerate(positional)
        ]
        + [
            Parameter(n, notes.get(n, "Any"), keyword_defaults.get(n, REQUIRED), True)
            for n in keyword
        ]
    )


def bind(
    name: str, parameters: tuple[Parameter, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[Any]:
    """Values for ``parameters``, converted; raises ArgumentError with PyTorch's sentence."""
    try:
        positional = [p for p in parameters if not p.keyword_only]
        if len(args) > len(positional) or (
            args and positional and positional[-1].spread and len(args) == len(positional)
        ):
            args = _gather_spread(name, parameters, positional, args)
        values: list[Any] = []
        used = 0
        for at, p in enumerate(parameters):
            if not p.keyword_only and at < len(args):
                if kwargs and p.name in kwargs:
                    raise ArgumentError(
                        f"{name}() got multiple values for argument '{p.name}'", p.name
                    )
                value, position = args[at], at + 1
            else:
                position = 0
                value = kwargs.get(p.name, REQUIRED) if kwargs else REQUIRED
                if value is REQUIRED and kwargs:
                    value = _by_alias(p.name, kwargs)
                if value is REQUIRED:
                    if p.default is REQUIRED:
                        raise _missing(name, parameters, at, len(args), kwargs)
                    values.append(p.default)
                    continue
                used += 1
            if value is None and p.optional:
                values.append(None)
                continue
            if p.convert is not None:
                value = p.convert(value, name, p, position)
            values.append(value)
        if used != len(kwargs):
            known = {p.name for p in parameters}
            given = {p.name for p in positional[: len(args)]}.union(kwargs)
            for key in kwargs:
                if key not in known and (_ALIASES.get(key) not in known or _ALIASES[key] in given):
                    raise ArgumentError(
                        f"{name}() got an unexpected keyword argument '{key}'",
                        key,
                        f"TensorBase.{name}() takes no keyword arguments"
                        if len(parameters) == 1
                        else "",
                    )
        return values
    except ArgumentError as error:
        if not parameters or parameters[0].keyword_only or parameters[0].kind not in _TENSORS:
            error.as_method = ""  # the tensor was not among these arguments
        raise _reworded(error, name, args, kwargs) from None


def _gather_spread(
    name: str,
    parameters: tuple[Parameter, ...],
    positional: list[Parameter],
    args: tuple[Any, ...],
) -> tuple[Any, ...]:
    last = len(positional) - 1
    if positional and positional[-1].spread:
        head, tail = args[:last], args[last:]
        if len(tail) == 1 and not _is_int(tail[0]):
            return args
        return (*head, tail)
    least = sum(p.default is REQUIRED for p in positional)
    most, given = len(positional), len(args)
    if len(parameters) == 1:
        method = f"TensorBase.{name}() takes no arguments ({given - 1} given)"
    else:
        method = f"{name}() {_takes(max(least - 1, 0), most - 1, given - 1)}"
    raise ArgumentError(f"{name}() {_takes(least, most, given)}", None, method)


def _takes(least: int, most: int, given: int) -> str:
    takes = f"{most} positional argument{'s' if most != 1 else ''}"
    if least != most:
        takes = f"from {least} to {most} positional arguments"
    return f"takes {takes} but {given} {'was' if given == 1 else 'were'} given"


def _by_alias(name: str, kwargs: dict[str, Any]) -> Any:
    for alias, canonical in _ALIASES.items():
        if canonical == name and alias in kwargs:
            return kwargs[alias]
    return REQUIRED


def _missing(
    name: str, parameters: tuple[Parameter, ...], at: int, given: int, kwargs: dict[str, Any]
) -> ArgumentError:
    names = [
        p.name
        for i, p in enumerate(parameters)
        if i >= given and p.default is REQUIRED and p.name not in kwargs
    ]
    listed = ", ".join(f'"{n}"' for n in names)
    return ArgumentError(
        f"{name}() missing {len(names)} required positional argument"
        f"{'s' if len(names) == 1 else ''}: {listed}",  # PyTorch's plural is the wrong way round
        parameters[at].name,
    )


def type_name(value: Any) -> str:
    """The type of an argument as PyTorch's messages spell it."""
    return type(value).__name__


def wrong(name: str, p: Parameter, position: int, wanted: str, value: Any) -> ArgumentError:
    """The sentence for an argument of the wrong type."""
    return _at_position(name, p, position, f"must be {wanted}, not {type_name(value)}")


def _at_position(name: str, p: Parameter, position: int, complaint: str) -> ArgumentError:
    start = f"{name}(): argument '{p.name}'"
    where = f" (position {position})" if position else ""
    return ArgumentError(
        f"{start}{where} {complaint}",
        p.name,
        f"{start} (position {position - 1}) {complaint}" if position > 1 else "",
    )


def _is_int(value: Any) -> bool:
    if value.__class__ is int:
        return True
    return (
        isinstance(value, Tensor)
        and value.layout.ndim == 0
        and value.dtype.category <= dtypes.INT
        and value.array is not None
    )


def _tensor(value: Any, name: str, p: Parameter, position: int) -> Any:
    if isinstance(value, Tensor):
        return value
    raise wrong(name, p, position, "Tensor", value)


def _operand(value: Any, name: str, p: Parameter, position: int) -> Any:
    if isinstance(value, (Tensor, int, float, complex)):
        return value
    raise wrong(name, p, position, "Tensor", value)


def _scalar(value: Any, name: str, p: Parameter, position: int) -> Any:
    if isinstance(value, (int, float, complex)):
        return value
    if isinstance(value, Tensor) and value.layout.ndim == 0:
        return number(value)
    raise wrong(name, p, position, "Number", value)


# What PyTorch's integers hold.
_LEAST, _MOST = -(2**63), 2**63 - 1
_TOO_LONG = "Overflow when unpacking long long"


def _int(value: Any, name: str, p: Parameter, position: int) -> Any:
    if value.__class__ is int:
        if _LEAST <= value <= _MOST:
            return value
        raise TensorValueError(_TOO_LONG)
    if _is_int(value):
        return int(number(value))
    raise wrong(name, p, position, "int", value)


def _float(value: Any, name: str, p: Parameter, position: int) -> Any:
    if value.__class__ in (float, int, bool):
        return float(value)
    if isinstance(value, Tensor) and value.layout.numel == 1 and not value.dtype.is_complex:
        return float(number(value))
    raise wrong(name, p, position, "float", value)


def _bool(value: Any, name: str, p: Parameter, position: int) -> Any:
    if value.__class__ is bool:
        return value
    raise wrong(name, p, position, "bool", value)


def _str(value: Any, name: str, p: Parameter, position: int) -> Any:
    if value.__class__ is str:
        return value
    raise wrong(name, p, position, "str", value)


def _dims(value: Any, name: str, p: Parameter, position: int) -> Any:
    if value.__class__ is int and _LEAST <= value <= _MOST:
        return (value,)
    if value.__class__ is int:
        raise TensorValueError(_TOO_LONG)
    return _size(value, name, p, position)


def _size(value: Any, name: str, p: Parameter, position: int) -> Any:
    if isinstance(value, (tuple, list)):
        for at, item in enumerate(value):
            if item.__class__ is not int or not _LEAST <= item <= _MOST:
                return _converted_ints(value, at, name, p, position)
        return tuple(value)
    if _is_int(value) and p.kind != "Shape" and position:
        return _converted_ints((value,), 0, name, p, position)
    raise wrong(name, p, position, "tuple of ints", value)


def _converted_ints(value: Any, at: int, name: str, p: Parameter, position: int) -> tuple[int, ...]:
    ints = []
    for i, item in enumerate(value):
        if not _is_int(item):
            if i == 0:
                raise _at_position(
                    name,
                    p,
                    position,
                    f"must be tuple of ints, but found element of type {type_name(item)} at "
                    f"pos {i}",
                )
            raise ArgumentError(
                f"{name}(): argument '{p.name}' failed to unpack the object at pos {i + 1} with "
                f'error "type must be tuple of ints,but got {type_name(item)}"',
                p.name,
            )
        ints.append(item if item.__class__ is int else int(number(item)))
        if not _LEAST <= ints[-1] <= _MOST:
            raise ArgumentError(
                f"{name}(): argument '{p.name}' failed to unpack the object at pos {i + 1} with "
                f'error "{_TOO_LONG}"',
                p.name,
            )
    return tuple(ints)


_PYTHON_DTYPES: dict[Any, DType] = {float: dtypes.float64, int: dtypes.int64, bool: dtypes.bool_}


def _dtype(value: Any, name: str, p: Parameter, position: int) -> Any:
    if isinstance(value, DType):
        return value
    found = _PYTHON_DTYPES.get(value) if isinstance(value, type) else None
    if found is not None:
        return found
    if value is complex:
        return dtypes.complex128
    raise wrong(name, p, position, "torch.dtype", value)


def _device(value: Any, name: str, p: Parameter, position: int) -> Any:
    if isinstance(value, (Device, str)) or value.__class__ is int:
        return device(value)
    raise wrong(name, p, position, "torch.device", value)


def _memory_format(value: Any, name: str, p: Parameter, position: int) -> Any:
    if isinstance(value, MemoryFormat):
        return value
    raise wrong(name, p, position, "torch.memory_format", value)


def _storage_layout(value: Any, name: str, p: Parameter, position: int) -> Any:
    if isinstance(value, StorageLayout):
        return value
    raise wrong(name, p, position, "torch.layout", value)


def _generator(value: Any, name: str, p: Parameter, position: int) -> Any:
    from engine.random.source import Generator

    if isinstance(value, Generator):
        return value
    raise wrong(name, p, position, "torch.Generator", value)


def _tensors(value: Any, name: str, p: Parameter, position: int) -> Any:
    if isinstance(value, (tuple, list)):
        for at, item in enumerate(value):
            if not isinstance(item, Tensor):
                raise ArgumentError(
                    f"expected Tensor as element {at} in argument {max(position - 1, 0)}, "
                    f"but got {type_name(item)}",
                    p.name,
                )
        return tuple(value)
    raise wrong(name, p, position, "tuple of Tensors", value)


_CONVERTERS: dict[str, Callable[[Any, str, Parameter, int], Any]] = {
    "Tensor": _tensor,
    "Layout": _tensor,
    "Operand": _operand,
    "Scalar": _scalar,
    "Dim": _int,
    "int": _int,
    "float": _float,
    "bool": _bool,
    "str": _str,
    "Dims": _dims,
    "SpreadDims": _size,
    "Size": _size,
    "Shape": _size,
    "DType": _dtype,
    "Device": _device,
    "MemoryFormat": _memory_format,
    "StorageLayout": _storage_layout,
    "Generator": _generator,
    "Tensors": _tensors,
}


def check_numbers(value: Any) -> None:
    """Refuse a Python integer that no 64-bit integer holds, as PyTorch does."""
    if value.__class__ is int and not -(2**63) <= value < 2**64:
        raise TensorOverflowError(
            "int too big to convert" if value > 0 else "can't convert negative int to unsigned"
        )
