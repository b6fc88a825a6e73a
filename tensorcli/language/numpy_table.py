"""The numpy module as programs see it: a small table of functions, one line each with its cost.

An entry names the parameters it takes, and every argument is converted by its parameter's name:
arrays come as numbers, nested lists, NDArrays or tensors, everything else as plain numbers. What a
function gives is wrapped again. Nothing here makes arrays of objects or text.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from engine import foreign
from tensorcli.language.attributes import ATTRIBUTES, METHODS
from tensorcli.language.builtins_table import WRAPPERS
from tensorcli.language.functions import GUARDED_CALLS
from tensorcli.language.limits import meter
from tensorcli.language.namespaces import Namespace
from tensorcli.language.numpy_array import (
    NDArray,
    adopt,
    array_of,
    as_array,
    charge_broadcast,
    charge_product,
)
from tensorcli.language.text_format import FORMATTERS

if TYPE_CHECKING:
    from collections.abc import Callable

    Cost = Callable[[dict[str, Any]], None]

__all__ = ["NUMPY", "adopt", "as_dtype"]

_SCALARS: dict[str, type[np.generic]] = {
    name: getattr(np, name)
    for name in (
        "bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64"
        " complex128 intp uintp"
    ).split()
}
_DTYPE_NAMES = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64"
    " complex128 int float complex half single double f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 c8 c16 ?"
    " b h i l q B H I L Q e f d F D intp uint".split()
)


def as_dtype(value: Any) -> Any:
    """The numpy dtype that a program means; raises TypeError for all that is no number's."""
    if value is None:
        return None
    if isinstance(value, np.dtype):
        return np.dtype(value)
    if isinstance(value, str):
        if value.lstrip("<=|>") in _DTYPE_NAMES:
            return np.dtype(value)
        raise TypeError(f"data type {value!r} not understood")
    if value in (bool, int, float, complex):
        return np.dtype(value)
    if isinstance(value, type) and issubclass(value, (np.number, np.bool_)):
        return np.dtype(value)
    raise TypeError(f"Cannot interpret {type(value).__name__!r} object as a data type")


def _arrays(value: Any) -> list[np.ndarray[Any, Any]]:
    items = list(value) if isinstance(value, (list, tuple, NDArray)) else [value]
    return [as_array(item) for item in items]


def _integers(value: Any) -> Any:
    """A size, an axis or several of them; None where numpy takes it."""
    if value is None or isinstance(value, (int, np.integer)):
        return value
    if isinstance(value, (tuple, list)):
        return tuple(int(item.__index__()) for item in value)
    if hasattr(type(value), "__index__"):
        return value.__index__()
    raise TypeError(f"'{type(value).__name__}' object cannot be interpreted as an integer")


def _number(value: Any) -> Any:
    if type(value) is NDArray:
        return value.array
    if value is None or isinstance(value, (int, float, complex, np.generic)):
        return value
    if hasattr(type(value), "__float__"):
        return float(value)
    raise TypeError(f"a number is needed, not {type(value).__name__}")


def _word(value: Any) -> str:
    if type(value) is not str or len(value) > 20:
        raise TypeError(f"a short text is needed, not {type(value).__name__}")
    return value


# Parameter name -> how its argument is converted.
_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("a", "b", "x", "y", "condition", "indices", "weights"), as_array),
    **dict.fromkeys(("arrays",), _arrays),
    **dict.fromkeys(
        "shape axis axes axis1 axis2 offset N M k num reps repeats shift decimals ddof newshape n"
        " source destination".split(),
        _integers,
    ),
    "dtype": as_dtype,
    **dict.fromkeys("start stop step fill_value min max rtol atol nan".split(), _number),
    **dict.fromkeys("keepdims endpoint equal_nan descending".split(), bool),
    **dict.fromkeys(("indexing", "ord"), lambda v: v if v is None else _number_or_word(v)),
}


def _number_or_word(value: Any) -> Any:
    return _word(value) if isinstance(value, str) else _number(value)


def _count(shape: Any) -> int:
    return math.prod(shape) if isinstance(shape, tuple) else int(shape)


def _bytes(count: int) -> None:
    meter().charge_bytes(max(0, count))


def _item_bytes(given: dict[str, Any]) -> int:
    dtype = given.get("dtype")
    return 8 if dtype is None else int(dtype.itemsize)


def _no_cost(given: dict[str, Any]) -> None:
    """A view, or a number."""


def _reads(given: dict[str, Any]) -> None:
    """As much memory as the arguments have."""
    for value in given.values():
        for array in value if isinstance(value, list) else [value]:
            if isinstance(array, np.ndarray):
                _bytes(array.size * max(8, array.itemsize, _item_bytes(given)))


def _elements(given: dict[str, Any]) -> None:
    charge_broadcast(*(value for value in given.values() if isinstance(value, np.ndarray)))


def _shaped(given: dict[str, Any]) -> None:
    _bytes(_count(given.get("shape", 0)) * _item_bytes(given))


def _range_cost(given: dict[str, Any]) -> None:
    start, stop, step = given.get("start", 0), given.get("stop"), given.get("step", 1)
    if stop is None:
        start, stop = 0, start
    if step:
        length = (stop - start) / step
        if length > 0 and math.isfinite(length):
            _bytes(int(length) * max(8, _item_bytes(given)))


def _spaced(given: dict[str, Any]) -> None:
    _bytes(int(given.get("num", 50)) * 8 * max(np.size(given["start"]), np.size(given["stop"])))


def _square(given: dict[str, Any]) -> None:
    rows = given.get("N", given.get("n", 1))
    _bytes(int(rows) * int(given.get("M") or rows) * _item_bytes(given))


def _product_cost(given: dict[str, Any]) -> None:
    charge_product(given["a"], given["b"])


def _outer_cost(given: dict[str, Any]) -> None:
    _bytes(given["a"].size * given["b"].size * 16)


def _tiled(given: dict[str, Any]) -> None:
    _bytes(given["a"].nbytes * max(1, _count(given["reps"])))


def _repeated(given: dict[str, Any]) -> None:
    repeats = given["repeats"]
    most = max(repeats, default=0) if isinstance(repeats, tuple) else int(repeats)
    _bytes(given["a"].nbytes * most)


def _taken(given: dict[str, Any]) -> None:
    array = given["a"]
    _bytes(given["indices"].size * array.nbytes // max(1, min(array.shape, default=1)))


def _meshed(given: dict[str, Any]) -> None:
    arrays = given["arrays"]
    _bytes(8 * len(arrays) * math.prod(array.size for array in arrays))


def _diagonal_cost(given: dict[str, Any]) -> None:
    array = given["a"]
    if array.ndim < 2:
        _bytes((array.size + abs(given.get("k", 0))) ** 2 * array.itemsize)


def _guarded(
    name: str, function: Callable[..., Any], parameters: str, cost: Cost
) -> Callable[..., Any]:
    """The function of one entry."""
    names = parameters.split()
    spread = names[0] == "*arrays"

    def run(*args: Any, **kwargs: Any) -> Any:
        if spread:
            args = (list(args),)
        if len(args) > len(names):
            raise TypeError(f"{name}() takes at most {len(names)} arguments ({len(args)} given)")
        given: dict[str, Any] = {}
        positional = []
        for parameter, value in zip(names, args, strict=False):
            plain = parameter.lstrip("*")
            given[plain] = _CONVERSIONS[plain](value)
            positional.append(given[plain])
        keywords = {}
        for parameter, value in kwargs.items():
            if parameter not in names:
                raise TypeError(f"{name}() got an unexpected keyword argument '{parameter}'")
            if parameter in given:
                raise TypeError(f"{name}() got multiple values for argument '{parameter}'")
            given[parameter] = keywords[parameter] = _CONVERSIONS[parameter](value)
        if given:
            cost(given)
        if spread:
            positional = positional[0]
        with np.errstate(all="ignore"):
            return adopt(function(*positional, **keywords))

    run.__name__ = run.__qualname__ = name
    return run


_ELEMENTWISE_ONE = (
    "absolute arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil conjugate cos cosh deg2rad"
    " degrees exp exp2 expm1 fabs floor invert isfinite isinf isnan log log10 log1p log2"
    " logical_not negative positive rad2deg radians reciprocal rint sign signbit sin sinh sqrt"
    " square tan tanh trunc real imag iscomplex isreal"
)
_ELEMENTWISE_TWO = (
    "add arctan2 bitwise_and bitwise_or bitwise_xor copysign divide equal floor_divide fmax fmin"
    " fmod gcd greater greater_equal heaviside hypot lcm less less_equal logaddexp logical_and"
    " logical_or logical_xor maximum minimum mod multiply nextafter not_equal power remainder"
    " subtract true_divide"
)

# name -> (parameters, cost); the function is numpy's of that name.
_ENTRIES: dict[str, tuple[str, Cost]] = {
    **dict.fromkeys(_ELEMENTWISE_ONE.split(), ("x", _elements)),
    **dict.fromkeys(_ELEMENTWISE_TWO.split(), ("a b", _elements)),
    "abs": ("x", _elements),
    "all": ("a axis", _reads),
    "allclose": ("a b rtol atol equal_nan", _elements),
    "amax": ("a axis", _reads),
    "amin": ("a axis", _reads),
    "any": ("a axis", _reads),
    "arange": ("start stop step dtype", _range_cost),
    "argmax": ("a axis", _reads),
    "argmin": ("a axis", _reads),
    "argsort": ("a axis", _reads),
    "argwhere": ("a", _reads),
    "array_equal": ("a b equal_nan", _elements),
    "around": ("a decimals", _elements),
    "asarray": ("a dtype", _reads),
    "ascontiguousarray": ("a dtype", _reads),
    "atleast_1d": ("a", _no_cost),
    "atleast_2d": ("a", _no_cost),
    "average": ("a axis weights", _reads),
    "broadcast_to": ("a shape", _no_cost),
    "clip": ("a min max", _elements),
    "column_stack": ("arrays", _reads),
    "concatenate": ("arrays axis", _reads),
    "copy": ("a", _reads),
    "count_nonzero": ("a axis", _reads),
    "cross": ("a b", _elements),
    "cumprod": ("a axis dtype", _reads),
    "cumsum": ("a axis dtype", _reads),
    "diag": ("a k", _diagonal_cost),
    "diagonal": ("a offset axis1 axis2", _no_cost),
    "diff": ("a n axis", _reads),
    "dot": ("a b", _product_cost),
    "empty": ("shape dtype", _shaped),
    "empty_like": ("a dtype", _reads),
    "expand_dims": ("a axis", _no_cost),
    "eye": ("N M k dtype", _square),
    "flip": ("a axis", _no_cost),
    "full": ("shape fill_value dtype", _shaped),
    "full_like": ("a fill_value dtype", _reads),
    "hstack": ("arrays", _reads),
    "identity": ("n dtype", _square),
    "inner": ("a b", _outer_cost),
    "isclose": ("a b rtol atol equal_nan", _elements),
    "linspace": ("start stop num endpoint", _spaced),
    "logspace": ("start stop num endpoint", _spaced),
    "matmul": ("a b", _product_cost),
    "max": ("a axis", _reads),
    "mean": ("a axis dtype", _reads),
    "median": ("a axis", _reads),
    "meshgrid": ("*arrays indexing", _meshed),
    "min": ("a axis", _reads),
    "moveaxis": ("a source destination", _no_cost),
    "ndim": ("a", _no_cost),
    "nonzero": ("a", _reads),
    "ones": ("shape dtype", _shaped),
    "ones_like": ("a dtype", _reads),
    "outer": ("a b", _outer_cost),
    "prod": ("a axis dtype", _reads),
    "ravel": ("a", _reads),
    "repeat": ("a repeats axis", _repeated),
    "reshape": ("a shape", _reads),
    "roll": ("a shift axis", _reads),
    "round": ("a decimals", _elements),
    "searchsorted": ("a x", _elements),
    "shape": ("a", _no_cost),
    "size": ("a axis", _no_cost),
    "sort": ("a axis", _reads),
    "split": ("a indices axis", _no_cost),
    "squeeze": ("a axis", _no_cost),
    "stack": ("arrays axis", _reads),
    "std": ("a axis dtype ddof", _reads),
    "sum": ("a axis dtype", _reads),
    "swapaxes": ("a axis1 axis2", _no_cost),
    "take": ("a indices axis", _taken),
    "tile": ("a reps", _tiled),
    "trace": ("a offset axis1 axis2", _reads),
    "transpose": ("a axes", _no_cost),
    "tril": ("a k", _reads),
    "triu": ("a k", _reads),
    "unique": ("a", _reads),
    "var": ("a axis dtype ddof", _reads),
    "vstack": ("arrays", _reads),
    "where": ("condition x y", _elements),
    "zeros": ("shape dtype", _shaped),
    "zeros_like": ("a dtype", _reads),
}
# numpy's own keyword for these is not the parameter's name above.
_KEEPDIMS = frozenset(
    "all amax amin any argmax argmin max mean median min prod std sum var".split()
)

_LINALG_ENTRIES: dict[str, tuple[str, Cost]] = {
    "det": ("a", _reads),
    "inv": ("a", _reads),
    "matrix_rank": ("a", _reads),
    "norm": ("x ord axis keepdims", _reads),
    "solve": ("a b", _reads),
}


def _array(object: Any, dtype: Any = None, *, copy: bool = True) -> NDArray:
    return NDArray(array_of(object, as_dtype(dtype)))


def _functions(module: Any, entries: dict[str, tuple[str, Cost]]) -> dict[str, object]:
    return {
        name: _guarded(
            name,
            getattr(module, name),
            f"{parameters} keepdims" if name in _KEEPDIMS else parameters,
            cost,
        )
        for name, (parameters, cost) in entries.items()
    }


_array.__name__ = _array.__qualname__ = "array"

NUMPY: dict[str, object] = {
    **_functions(np, _ENTRIES),
    **_SCALARS,
    "array": _array,
    "bool": np.bool_,
    "double": np.float64,
    "single": np.float32,
    "half": np.float16,
    "dtype": as_dtype,
    "e": math.e,
    "euler_gamma": np.euler_gamma,
    "inf": math.inf,
    "linalg": Namespace("numpy.linalg", _functions(np.linalg, _LINALG_ENTRIES)),
    "nan": math.nan,
    "ndarray": NDArray,
    "newaxis": None,
    "pi": math.pi,
    "integer": np.integer,
    "floating": np.floating,
    "number": np.number,
    "generic": np.generic,
}


def _method(name: str) -> Callable[..., Any]:
    function: Any = NUMPY[name]
    return lambda array, *args, **kwargs: function(array, *args, **kwargs)


def _as_shape(sizes: tuple[Any, ...]) -> Any:
    return _integers(sizes[0] if len(sizes) == 1 else sizes)


def _astype(array: Any, dtype: Any) -> Any:
    wanted = as_dtype(dtype)
    bare = as_array(array)
    _bytes(bare.size * (8 if wanted is None else wanted.itemsize))
    with np.errstate(all="ignore"):
        return adopt(bare.astype(wanted) if isinstance(array, NDArray) else array.astype(wanted))


def _tolist(array: Any) -> Any:
    bare = as_array(array)
    _bytes(40 * bare.size)
    meter().charge_steps(bare.size)
    return bare.tolist()


def _item(array: Any, *index: Any) -> Any:
    return as_array(array).item(*map(_integers, index))


def _fill(array: NDArray, value: Any) -> None:
    array.array.fill(_number(value))


def _sort_in_place(array: NDArray, axis: Any = -1) -> None:
    array.array.sort(axis=_integers(axis))


def _reshape(array: NDArray, *sizes: Any) -> Any:
    _bytes(array.array.nbytes)
    return adopt(array.array.reshape(_as_shape(sizes)))


def _transpose(array: NDArray, *axes: Any) -> Any:
    return adopt(array.array.transpose(*([_as_shape(axes)] if axes else [])))


def _flatten(array: NDArray) -> Any:
    _bytes(array.array.nbytes)
    return adopt(array.array.flatten())


_REDUCTIONS = (
    "all any argmax argmin argsort clip copy cumprod cumsum diagonal dot max mean min nonzero prod"
    " ravel repeat round squeeze std sum swapaxes take trace var"
)
_SHARED: dict[str, Callable[..., Any]] = {"astype": _astype, "item": _item, "tolist": _tolist}

METHODS[NDArray] = {
    **{name: _method(name) for name in _REDUCTIONS.split()},
    **_SHARED,
    "conj": _method("conjugate"),
    "fill": _fill,
    "flatten": _flatten,
    "reshape": _reshape,
    "sort": _sort_in_place,
    "transpose": _transpose,
}
METHODS[np.generic] = {
    **{name: _method(name) for name in "all any max mean min prod round std sum var".split()},
    **_SHARED,
}
METHODS[np.dtype] = {}


def _getters(names: str, bare: Callable[[Any], Any]) -> dict[str, Callable[[Any], Any]]:
    def getter(name: str) -> Callable[[Any], Any]:
        return lambda value: adopt(getattr(bare(value), name))

    return {name: getter(name) for name in names.split()}


_PROPERTIES = "T dtype imag itemsize nbytes ndim real shape size strides"
ATTRIBUTES[NDArray] = _getters(_PROPERTIES, as_array)
ATTRIBUTES[np.generic] = _getters(_PROPERTIES, lambda scalar: scalar)
ATTRIBUTES[np.dtype] = {
    "itemsize": lambda dtype: dtype.itemsize,
    "kind": lambda dtype: dtype.kind,
    "name": lambda dtype: dtype.name,
    "type": lambda dtype: dtype.type,
}


def _scalar_maker(kind: type[np.generic]) -> Callable[..., Any]:
    def make(value: Any = 0) -> Any:
        # As in numpy, a list makes an array; a text is no number here.
        if isinstance(value, (int, float, complex, np.generic)):
            return kind(value)
        return adopt(as_array(value).astype(kind)[()])

    return make


GUARDED_CALLS.update({kind: _scalar_maker(kind) for kind in _SCALARS.values()})
WRAPPERS[np.ndarray] = adopt
foreign.arrays[NDArray] = lambda array: array.array


def _format_array(array: NDArray, spec: str) -> str:
    if array.array.ndim == 0:
        return format(array.array.item(), spec)
    if spec:
        raise TypeError("unsupported format string passed to numpy.ndarray.__format__")
    return str(array)


FORMATTERS[NDArray] = _format_array
FORMATTERS.update(dict.fromkeys(_SCALARS.values(), format))
