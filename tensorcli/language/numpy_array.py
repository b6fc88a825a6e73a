"""numpy's ndarray as the language has it: a wrapper that never hands out the array it holds.

The array holds numbers or booleans, no objects and no records. Memory is asked for before numpy
allocates it. numpy's own scalars are values of the language as they are.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorcli.language.limits import meter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NUMBERS = frozenset({int, float, complex, bool})
# Kinds of numpy dtypes that are numbers or booleans.
_NUMERIC = "biufc"
# numpy's own bound on dimensions; nested lists deeper than that are no array.
_MOST_DIMENSIONS = 64


class NDArray:
    """An array of numbers: `array` is numpy's, and shares memory with whoever else holds it."""

    __slots__ = ("__weakref__", "array")

    # numpy's scalars leave an operation with an NDArray to the NDArray.
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]  # arrays change

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __repr__(self) -> str:
        _check_printing(self.array)
        return repr(self.array)

    def __str__(self) -> str:
        _check_printing(self.array)
        return str(self.array)

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[Any]:
        return map(adopt, iter(self.array))

    def __bool__(self) -> bool:
        return bool(self.array)

    def __int__(self) -> int:
        return int(self.array)

    def __float__(self) -> float:
        return float(self.array)

    def __complex__(self) -> complex:
        return complex(self.array)

    def __index__(self) -> int:
        return operator.index(self.array)

    def __contains__(self, item: object) -> bool:
        value = operand(item)
        return value is not NotImplemented and value in self.array

    def __getitem__(self, key: object) -> Any:
        index = index_of(key)
        _check_gather(self.array, index)
        return adopt(self.array[index])

    def __setitem__(self, key: object, value: object) -> None:
        self.array[index_of(key)] = as_array(value)

    def __neg__(self) -> Any:
        return _unary(operator.neg, self.array)

    def __pos__(self) -> Any:
        return _unary(operator.pos, self.array)

    def __abs__(self) -> Any:
        return _unary(operator.abs, self.array)

    def __invert__(self) -> Any:
        return _unary(operator.invert, self.array)

    if TYPE_CHECKING:
        # The operators are set from the table below.
        def __add__(self, other: object) -> Any: ...
        def __sub__(self, other: object) -> Any: ...
        def __mul__(self, other: object) -> Any: ...
        def __matmul__(self, other: object) -> Any: ...


NDArray.__name__ = NDArray.__qualname__ = "ndarray"


def adopt(value: Any) -> Any:
    """A result of numpy's as a value of the language."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in _NUMERIC:
            raise _not_numeric(value.dtype)
        return NDArray(value)
    if isinstance(value, (tuple, list)):
        return type(value)(map(adopt, value)) if type(value) in (tuple, list) else tuple(value)
    return value


def _not_numeric(dtype: object) -> TypeError:
    return TypeError(f"arrays hold numbers and booleans here, not {dtype}")


def as_array(value: Any) -> np.ndarray[Any, Any]:
    """The array of a number, a nested list, an NDArray or a tensor; raises TypeError for others."""
    kind = type(value)
    if kind is NDArray:
        array: np.ndarray[Any, Any] = value.array
        return array
    if isinstance(value, range):
        meter().charge_bytes(8 * len(value))
    return _numeric(np.asarray(_plain(value, 0)))


def array_of(value: Any, dtype: np.dtype[Any] | None = None) -> np.ndarray[Any, Any]:
    """A fresh array, as `np.array` makes one."""
    if type(value) is NDArray:
        value = value.array
        meter().charge_bytes(value.size * max(8, value.itemsize))
        return np.array(value, dtype=dtype)
    return _numeric(np.array(_plain(value, 0), dtype=dtype))


def _numeric(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if array.dtype.kind not in _NUMERIC:
        raise _not_numeric(array.dtype)
    return array


def _plain(value: Any, depth: int) -> Any:
    """The same numbers and lists with every NDArray and tensor replaced by its bare array."""
    kind = type(value)
    if kind in NUMBERS or isinstance(value, np.generic):
        return value
    if kind is NDArray:
        return value.array
    if kind is list or kind is tuple or kind is range:
        meter().charge_steps(len(value) + 1)
        meter().charge_bytes(16 * len(value))
        if kind is range or NUMBERS.issuperset(map(type, value)):
            return value
        if depth >= _MOST_DIMENSIONS:
            raise ValueError(
                "setting an array element with a sequence. The requested array would exceed the"
                f" maximum number of dimension of {_MOST_DIMENSIONS}."
            )
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, tuple):
        return _plain(tuple(value), depth)
    if kind.__module__ == "engine.tensor":
        from engine.registry import methods

        array = methods["numpy"](value)
        return array.array if type(array) is NDArray else array
    raise _not_numeric(kind.__name__)


def operand(value: Any) -> Any:
    """What stands beside an array in an operation; NotImplemented for what is no array."""
    kind = type(value)
    if kind is NDArray:
        return value.array
    if kind in NUMBERS or isinstance(value, np.generic):
        return value
    if kind is list or kind is tuple:
        return as_array(value)
    return NotImplemented


def index_of(key: Any) -> Any:
    """A subscript with its NDArrays, tensors and lists replaced by bare arrays."""
    if type(key) is tuple:
        return tuple(map(index_of, key))
    if key is None or key is ... or isinstance(key, (int, np.integer, np.bool_)):
        return key
    if type(key) is slice:
        return key
    if type(key) in (NDArray, list) or type(key).__module__ == "engine.tensor":
        array = as_array(key)
        # An empty list selects nothing; numpy would make floats of it.
        return array.astype(np.intp) if array.size == 0 and type(key) is list else array
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or"
        " boolean arrays are valid indices"
    )


def _check_gather(array: np.ndarray[Any, Any], index: Any) -> None:
    parts = index if type(index) is tuple else (index,)
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    if not arrays:
        return
    # An upper bound: integer arrays each take one dimension, masks at most what they cover.
    shape = _broadcast([part for part in arrays if part.dtype.kind != "b"])
    masked = sum(part.size for part in arrays if part.dtype.kind == "b")
    taken = sum(max(1, part.ndim) if part.dtype.kind == "b" else 1 for part in arrays)
    rest = math.prod(sorted(array.shape)[taken:])
    meter().charge_bytes((math.prod(shape) + masked) * rest * array.itemsize)


def _broadcast(arrays: list[Any]) -> tuple[int, ...]:
    shape: list[int] = []
    for array in arrays:
        sizes = np.shape(array)
        shape = [1] * (len(sizes) - len(shape)) + shape
        for back in range(1, len(sizes) + 1):
            shape[-back] = sizes[-back] if shape[-back] == 1 else shape[-back]
    return tuple(shape)


def charge_broadcast(*arrays: Any) -> None:
    """Ask for the result of an element-wise operation."""
    item_bytes = max(8, *(getattr(array, "itemsize", 8) for array in arrays))
    meter().charge_bytes(math.prod(_broadcast(list(arrays))) * item_bytes)


def _check_printing(array: np.ndarray[Any, Any]) -> None:
    # numpy shows three elements at each end of a dimension where there are more than a thousand.
    shown = math.prod(min(size, 6) for size in array.shape) if array.size > 1000 else array.size
    meter().charge_steps(shown)
    meter().check_text(12 * shown)


def _unary(function: Callable[[Any], Any], array: np.ndarray[Any, Any]) -> Any:
    charge_broadcast(array)
    with np.errstate(all="ignore"):
        return adopt(function(array))


def _binary(function: Callable[[Any, Any], Any], *, swapped: bool = False) -> Callable[..., Any]:
    def operate(self: NDArray, other: object) -> Any:
        value = operand(other)
        if value is NotImplemented:
            return NotImplemented
        charge_broadcast(self.array, value)
        with np.errstate(all="ignore"):
            if swapped:
                return adopt(function(value, self.array))
            return adopt(function(self.array, value))

    return operate


def _in_place(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def operate(self: NDArray, other: object) -> Any:
        value = operand(other)
        if value is NotImplemented:
            return NotImplemented
        charge_broadcast(self.array, value)
        with np.errstate(all="ignore"):
            function(self.array, value)
        return self

    return operate


def _product(function: Callable[[Any, Any], Any], *, swapped: bool = False) -> Callable[..., Any]:
    def operate(self: NDArray, other: object) -> Any:
        value = operand(other)
        if value is NotImplemented:
            return NotImplemented
        left, right = (value, self.array) if swapped else (self.array, value)
        charge_product(left, right)
        return adopt(function(left, right))

    return operate


def charge_product(left: Any, right: Any) -> None:
    """Ask for the result of a matrix product."""
    rows = math.prod(np.shape(left)[:-1])
    columns = math.prod(np.shape(right)) // max(1, (np.shape(right) or (1,))[0])
    meter().charge_bytes(8 * rows * columns)
    meter().charge_steps(np.size(left) * max(1, columns) // 1024)


def _comparison(function: Callable[[Any, Any], Any], *, otherwise: bool) -> Callable[..., Any]:
    def compare(self: NDArray, other: object) -> Any:
        value = operand(other)
        if value is NotImplemented:
            if type(other).__module__ == "engine.tensor":
                return NotImplemented
            # Nothing else is equal to a number.
            meter().charge_bytes(self.array.size)
            return adopt(np.full(self.array.shape, otherwise))
        charge_broadcast(self.array, value)
        return adopt(function(self.array, value))

    return compare


_OPERATORS = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "divmod": divmod,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
}
_IN_PLACE = {
    "iadd": operator.iadd,
    "isub": operator.isub,
    "imul": operator.imul,
    "itruediv": operator.itruediv,
    "ifloordiv": operator.ifloordiv,
    "imod": operator.imod,
    "ipow": operator.ipow,
    "iand": operator.iand,
    "ior": operator.ior,
    "ixor": operator.ixor,
    "ilshift": operator.ilshift,
    "irshift": operator.irshift,
}
_ORDER = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}

for _name, _function in _OPERATORS.items():
    setattr(NDArray, f"__{_name}__", _binary(_function))
    setattr(NDArray, f"__r{_name}__", _binary(_function, swapped=True))
for _name, _function in _IN_PLACE.items():
    setattr(NDArray, f"__{_name}__", _in_place(_function))
for _name, _function in _ORDER.items():
    setattr(NDArray, f"__{_name}__", _binary(_function))
setattr(NDArray, "__matmul__", _product(operator.matmul))  # noqa: B010  # as its neighbours
setattr(NDArray, "__rmatmul__", _product(operator.matmul, swapped=True))  # noqa: B010
setattr(NDArray, "__eq__", _comparison(operator.eq, otherwise=False))  # noqa: B010
setattr(NDArray, "__ne__", _comparison(operator.ne, otherwise=True))  # noqa: B010
