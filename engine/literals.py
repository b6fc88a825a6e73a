"""Nested lists of numbers into arrays, as ``torch.tensor`` reads them; records nothing.

Sizes are told by the first element at each depth, the dtype by all elements; then every element
is converted, and what does not fit is refused with PyTorch's sentence.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine import dtypes, foreign, scalars
from engine.dtypes import DType
from engine.errors import TensorRuntimeError, TensorTypeError, TensorValueError
from engine.modes import state
from engine.scalars import NumberOverflowError
from engine.tensor import Tensor

_DEEPEST = 128
_SEQUENCES = (list, tuple, range)
_REAL = frozenset((int, float, bool))
_NUMBERS = frozenset((int, float, bool, complex))


def array_of(data: Any, dtype: DType | None) -> tuple[Any, DType]:
    """An array of its own that holds ``data`` (a number, nested sequences, a numpy array), and
    its dtype: ``dtype``, or what the elements tell."""
    if data.__class__ in _NUMBERS:
        found = dtype or _of_kinds({data.__class__})
        return _converted([data], found).reshape(()), found
    if isinstance(data, (str, bytes)):
        raise TensorTypeError(f"new(): invalid data type '{type(data).__name__}'")
    array = foreign.array_of(data)
    if array is not None:
        return _of_array(array, dtype)
    shape = _shape(data)
    if len(shape) > 64:  # numpy has no more; PyTorch makes it and then refuses to reduce it
        raise TensorRuntimeError("only tensors with up to 64 dims are supported")
    leaves = _leaves(data, shape)
    if leaves is None:
        raise _irregular(data, shape, dtype)
    found = dtype or _dtype(leaves)
    return _converted(leaves, found).reshape(shape), found


def _of_array(array: Any, dtype: DType | None) -> tuple[Any, DType]:
    own = foreign.dtype_of(array)
    foreign.check_geometry(array)
    found = dtype or own
    if found is own:
        return np.array(array, order="C"), found
    from engine.kinds.results import cast
    from engine.tensor import kind_of

    return np.array(cast(array, kind_of(found)), order="C"), found


def _is_sequence(data: Any) -> bool:
    return isinstance(data, _SEQUENCES) or (
        data.__class__ in foreign.arrays and foreign.arrays[data.__class__](data).ndim > 0
    )


def _items(data: Any) -> Any:
    """The elements of a sequence; those of an array are numpy's scalars or arrays."""
    return data if isinstance(data, _SEQUENCES) else foreign.array_of(data)


def _shape(data: Any) -> tuple[int, ...]:
    shape: list[int] = []
    while _is_sequence(data):
        items = _items(data)
        shape.append(len(items))
        if len(shape) > _DEEPEST:
            raise TensorValueError(f"too many dimensions '{type(data).__name__}'")
        if not len(items):
            return tuple(shape)
        data = items[0]
    if isinstance(data, (str, bytes)):
        raise TensorValueError(f"too many dimensions '{type(data).__name__}'")
    return tuple(shape)


def _leaves(data: Any, shape: tuple[int, ...]) -> list[Any] | None:
    """The elements in order, None where the nesting is not that of ``shape``."""
    level = [data]
    for size in shape:
        below: list[Any] = []
        for row in level:
            if not _is_sequence(row) or len(_items(row)) != size:
                return None
            below.extend(_items(row))
        level = below
    if _REAL.issuperset(map(type, level)):
        return level
    return None if any(map(_is_sequence, level)) else level


def _irregular(data: Any, shape: tuple[int, ...], dtype: DType | None) -> Exception:
    """What PyTorch says to lists that are not of one shape."""
    found = dtype or _dtype(list(_all_leaves(data)))
    level = [data]
    for dim, size in enumerate(shape):
        below: list[Any] = []
        for row in level:
            if not _is_sequence(row):
                return TensorTypeError("not a sequence")
            items = _items(row)
            if len(items) != size:
                return TensorValueError(
                    f"expected sequence of length {size} at dim {dim} (got {len(items)})"
                )
            below.extend(items)
        level = below
    deeper = next(row for row in level if _is_sequence(row))
    return _not_a_number(deeper, found)


def _all_leaves(data: Any) -> Any:
    stack = [data]
    while stack:
        item = stack.pop()
        if _is_sequence(item):
            stack.extend(list(_items(item))[::-1])
        else:
            yield item


def _dtype(leaves: list[Any]) -> DType:
    kinds = set(map(type, leaves))
    if _NUMBERS.issuperset(kinds):
        return _of_kinds(kinds)
    best: DType | None = None
    for leaf in leaves:
        found = _leaf_dtype(leaf)
        best = found if best is None else dtypes.promote(best, found)
    return best or state.default_dtype


def _of_kinds(kinds: set[type]) -> DType:
    if complex in kinds:
        return dtypes.complex_of(state.default_dtype)
    if float in kinds or not kinds:
        return state.default_dtype
    return dtypes.int64 if int in kinds else dtypes.bool_


def _leaf_dtype(leaf: Any) -> DType:
    if leaf.__class__ in _NUMBERS:
        return _of_kinds({leaf.__class__})
    if isinstance(leaf, Tensor):
        return leaf.dtype
    if isinstance(leaf, np.generic):
        return foreign.dtype_of(leaf)
    array = foreign.array_of(leaf)
    if array is not None:
        return foreign.dtype_of(array)
    if isinstance(leaf, (str, bytes)):
        raise TensorTypeError(f"new(): invalid data type '{type(leaf).__name__}'")
    from engine.signature import type_name

    raise TensorRuntimeError(f"Could not infer dtype of {type_name(leaf)}")


def _converted(leaves: list[Any], dtype: DType) -> Any:
    kinds = set(map(type, leaves))
    if not _NUMBERS.issuperset(kinds):
        leaves = [_number(leaf, dtype) for leaf in leaves]
        kinds = set(map(type, leaves))
    if complex in kinds and not dtype.is_complex:
        raise _not_a_number(1j, dtype)
    if dtype.is_bool:
        return np.array([leaf != 0 for leaf in leaves], bool)
    if dtype.is_integral:
        return _integers(leaves, kinds, dtype)
    try:
        wide = np.array(leaves, np.complex128 if dtype.is_complex else np.float64)
    except OverflowError:
        raise NumberOverflowError("int too large to convert to float") from None
    with np.errstate(over="ignore"):
        if dtype.low:
            wide = wide.astype(np.float32)
        return _saturated(wide, dtype).astype(dtype.np)


def _saturated(values: Any, dtype: DType) -> Any:
    if dtype.name != "float8_e4m3fn":
        return values
    return np.clip(values, -448.0, 448.0)  # e4m3fn has no infinity; PyTorch stays at its largest


def _integers(leaves: list[Any], kinds: set[type], dtype: DType) -> Any:
    if dtype.name == "uint64":
        if float in kinds:
            raise TensorTypeError("an integer is required")
        for leaf in leaves:
            if leaf < 0:
                raise NumberOverflowError("can't convert negative int to unsigned")
            scalars.check_width(leaf)
        return np.array(leaves, np.uint64)
    if float in kinds:
        return np.array([_integer(leaf, dtype) for leaf in leaves], np.int64).astype(dtype.np)
    try:
        wide = np.array(leaves, np.int64)
    except OverflowError:
        raise TensorValueError("Overflow when unpacking long long") from None
    if dtype is dtypes.int64:
        return wide
    for bound in (int(wide.min()), int(wide.max())) if wide.size else ():
        _integer(bound, dtype)
    return wide.astype(dtype.np)


def _integer(value: Any, dtype: DType) -> int:
    if scalars.overflows(value, dtype):
        raise TensorRuntimeError(f"value cannot be converted to type {dtype.name} without overflow")
    return int(value)


def _number(leaf: Any, dtype: DType) -> Any:
    """The Python number that an element of a list stands for."""
    if leaf.__class__ in _NUMBERS:
        return leaf
    if isinstance(leaf, Tensor):
        many = leaf.layout.numel != 1
        if dtype.is_integral and (many or leaf.dtype.category > dtypes.INT):
            raise TensorTypeError(
                "only integer tensors of a single element can be converted to an index"
            )
        if many:
            raise TensorValueError("only one element tensors can be converted to Python scalars")
        value = leaf.array.item()
        return float(value) if leaf.kind.opaque else value
    if isinstance(leaf, np.generic):
        return leaf.item()
    array = foreign.array_of(leaf)
    if array is not None and array.ndim == 0:
        return array.item()
    raise _not_a_number(leaf, dtype)


def _not_a_number(leaf: Any, dtype: DType) -> TensorTypeError:
    name = type(leaf).__name__
    if dtype.category <= dtypes.INT:
        return TensorTypeError(f"'{name}' object cannot be interpreted as an integer")
    return TensorTypeError(f"must be real number, not {name}")
