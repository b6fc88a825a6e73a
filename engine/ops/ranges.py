"""Evenly spaced numbers, unit matrices and the positions of triangles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from engine import dtypes, scalars
from engine import layout as layouts
from engine.dtypes import DType
from engine.errors import (
    DtypeNotImplementedError,
    TensorRuntimeError,
    TensorTypeError,
    TensorValueError,
)
from engine.kinds.creation import bind_creation, creation, finish_creation
from engine.kinds.kernel import Made, made
from engine.kinds.sizes import check_sizes
from engine.modes import state, warn
from engine.overloads import no_overload
from engine.registry import function
from engine.signature import Parameter, parameters_of
from engine.tensor import Tensor

if TYPE_CHECKING:
    from engine.parameter_types import Operand, Scalar

_OPTIONS = (
    "torch.dtype dtype = None, torch.layout layout = None, torch.device device = None, bool "
    "pin_memory = False, bool requires_grad = False)"
)


def _to(end: Scalar, *, dtype: DType | None = None) -> None: ...


def _from_to(
    start: Scalar, end: Scalar, step: Scalar = 1, *, dtype: DType | None = None
) -> None: ...


_TO: tuple[Parameter, ...] = parameters_of(_to)
_FROM_TO: tuple[Parameter, ...] = parameters_of(_from_to)
_ARANGE_TEXTS = (
    f"(Number end, *, Tensor out = None, {_OPTIONS}",
    f"(Number start, Number end, *, {_OPTIONS}",
    f"(Number start, Number end, Number step = 1, *, Tensor out = None, {_OPTIONS}",
)


@function("arange", forms=_ARANGE_TEXTS)
def arange(*args: Any, **kwargs: Any) -> Tensor:
    """Numbers from ``start`` (0) up to ``end``, not included, in steps of ``step`` (1).

    Integers give int64, any float the default dtype. Raises RuntimeError for a step of zero or
    one that leads away from ``end``.
    """
    single = len(args) == 1 and "end" not in kwargs or not args and "start" not in kwargs
    if single and ("step" in kwargs or not args and "end" not in kwargs) or len(args) > 3:
        raise no_overload("arange", args, kwargs, _ARANGE_TEXTS)
    values, shared = bind_creation("arange", _TO if single else _FROM_TO, args, kwargs)
    start, end, step, dtype = (0, values[0], 1, values[1]) if single else values
    out = shared.out
    found = dtype or (out.dtype if out is not None else _range_dtype(start, end, step))
    return finish_creation("arange", _arange(start, end, step, found), found, shared, dtype)


def _range_dtype(*numbers: Any) -> DType:
    if any(n.__class__ in (float, complex) for n in numbers):
        return state.default_dtype
    return dtypes.int64


def _arange(start: Any, end: Any, step: Any, dtype: DType) -> Made:
    if dtype.is_complex or dtype.is_bool:
        raise DtypeNotImplementedError(f"\"arange_cpu\" not implemented for '{dtype.title}'")
    if dtype is dtypes.int64:
        # For this dtype alone PyTorch cuts the bounds before it counts.
        if step and not _cut(step):
            raise TensorValueError("step must be nonzero")
        start, end, step = (_cut(n) for n in (start, end, step))
    count = _count("arange", start, end, step, dtype)
    if dtype.is_integral:
        first, by = int(start), int(step)
        if by == 0:
            raise TensorValueError("step must be nonzero")
        return made(dtype, (count,), lambda xp: _integers(xp, first, by, count).astype(dtype.np))

    def run(xp: Any) -> Any:
        values = xp.arange(count, dtype=np.float64)
        values *= float(step)
        values += float(start)
        return values.astype(np.float32).astype(dtype.np) if dtype.low else values

    check_sizes((count,), dtype)
    return made(dtype, (count,), run)


def _cut(number: Any) -> Any:
    finite = number.__class__ is float and abs(number) < math.inf
    return int(number) if finite else number


def _integers(xp: Any, first: int, by: int, count: int) -> Any:
    values = xp.arange(count, dtype=np.int64)
    if by != 1:
        values *= by
    if first:
        values += first
    return values


def _count(name: str, start: Any, end: Any, step: Any, dtype: DType) -> int:
    """How many numbers: of those below ``end`` (arange) or up to it (range)."""
    numbers = [start, end, step]
    for n in numbers:
        scalars.check_width(n)
        if n.__class__ is complex:
            scalars.element(n, dtypes.float64)
        if dtype is dtypes.int64 and n.__class__ is not float:
            scalars.element(n, dtypes.int64)
    if not (step > 0 or step < 0):
        raise TensorRuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise TensorRuntimeError(f"unsupported range: {start:g} -> {end:g}")
    if (step > 0 and end < start) or (step < 0 and end > start):
        raise TensorRuntimeError("upper bound and lower bound inconsistent with step sign")
    whole = not any(n.__class__ is float for n in numbers)
    if name == "range":
        count = (int(end) - int(start)) // int(step) + 1 if whole else _floor(start, end, step)
    elif whole:
        count = -((int(start) - int(end)) // int(step))
    else:
        count = math.ceil((float(end) - float(start)) / float(step))
    if count >= 2**63:
        raise TensorRuntimeError("invalid size, possible overflow?")
    check_sizes((count,), dtype)
    return count


def _floor(start: Any, end: Any, step: Any) -> int:
    return math.floor((float(end) - float(start)) / float(step)) + 1


@creation(name="range", method=False, example="torch.range(0, 3)")
def range_(start: Scalar, end: Scalar, step: Scalar = 1, *, dtype: DType | None = None) -> Made:
    """Numbers from ``start`` up to ``end``, which is included; deprecated in favour of arange."""
    warn(
        "torch.range is deprecated and will be removed in a future release because its behavior "
        "is inconsistent with Python's range builtin. Instead, use torch.arange, which produces "
        "values in [start, end)."
    )
    found = dtype or state.default_dtype
    count = _count("range", start, end, step, found)
    if found.is_integral:
        first, by = int(start), int(step)
        return made(found, (count,), lambda xp: _integers(xp, first, by, count).astype(found.np))
    return made(
        found,
        (count,),
        lambda xp: xp.arange(count, dtype=np.float64) * float(step) + float(start),
    )


def _spaced(start: Operand, end: Operand, steps: int, *, dtype: DType | None = None) -> None: ...


def _log_spaced(
    start: Operand, end: Operand, steps: int, base: float = 10.0, *, dtype: DType | None = None
) -> None: ...


_SPACED: tuple[Parameter, ...] = parameters_of(_spaced)
_LOG_SPACED: tuple[Parameter, ...] = parameters_of(_log_spaced)


def _spaced_texts(more: str) -> tuple[str, ...]:
    pairs = (
        "Tensor start, Tensor end",
        "Number start, Tensor end",
        "Tensor start, Number end",
        "Number start, Number end",
    )
    return tuple(f"({pair}, int steps,{more} *, Tensor out = None, {_OPTIONS}" for pair in pairs)


_SPACED_TEXTS = _spaced_texts("")
_LOG_SPACED_TEXTS = _spaced_texts(" float base = 10.0,")


@function("linspace", forms=_SPACED_TEXTS)
def linspace(*args: Any, **kwargs: Any) -> Tensor:
    """``steps`` evenly spaced numbers from ``start`` to ``end``, both included."""
    try:
        (start, end, steps, dtype), shared = bind_creation("linspace", _SPACED, args, kwargs)
    except TensorTypeError:
        raise no_overload("linspace", args, kwargs, _SPACED_TEXTS) from None
    planned = _spaced_plan("linspace", start, end, steps, dtype, shared.out, None)
    return finish_creation("linspace", planned, planned.dtype, shared, dtype)


@function("logspace", forms=_LOG_SPACED_TEXTS)
def logspace(*args: Any, **kwargs: Any) -> Tensor:
    """``base`` raised to ``steps`` evenly spaced numbers from ``start`` to ``end``."""
    try:
        (start, end, steps, base, dtype), shared = bind_creation(
            "logspace", _LOG_SPACED, args, kwargs
        )
    except TensorTypeError:
        raise no_overload("logspace", args, kwargs, _LOG_SPACED_TEXTS) from None
    planned = _spaced_plan("logspace", start, end, steps, dtype, shared.out, base)
    return finish_creation("logspace", planned, planned.dtype, shared, dtype)


def _spaced_plan(
    name: str, start: Any, end: Any, steps: int, dtype: DType | None, out: Any, base: Any
) -> Made:
    _check_ends(name, start, end)
    ends = [v.array.item() if isinstance(v, Tensor) else v for v in (start, end)]
    if steps < 0:
        raise TensorRuntimeError("number of steps must be non-negative")
    found = dtype or (out.dtype if out is not None else None)
    if any(v.__class__ is complex for v in ends):
        inferred = dtypes.complex_of(state.default_dtype)
        if found is not None and not found.is_complex:
            raise TensorRuntimeError(
                f"torch.{name}(): inferred dtype {inferred.cpp} can't be safely cast to passed "
                f"dtype {found.title}"
            )
        found = found or inferred
    found = found or state.default_dtype
    if found.is_bool:
        raise DtypeNotImplementedError(f"\"{name}_cpu\" not implemented for 'Bool'")
    check_sizes((steps,), found)
    return made(found, (steps,), lambda xp: _spread(xp, ends, steps, found, base))


def _check_ends(name: str, start: Any, end: Any) -> None:
    given = [
        f"{label} with {v.layout.ndim} dimension(s)"
        for label, v in (("start", start), ("end", end))
        if isinstance(v, Tensor)
    ]
    if any(isinstance(v, Tensor) and v.layout.ndim for v in (start, end)):
        raise TensorRuntimeError(
            f"{name} only supports 0-dimensional start and end tensors, but got "
            f"{' and '.join(given)}."
        )


_WIDER = {
    "float32": np.float64,
    "float64": np.longdouble,
    "complex64": np.complex128,
    "complex128": np.clongdouble,
}


def _spread(xp: Any, ends: list[Any], steps: int, dtype: DType, base: Any) -> Any:
    """Counted from the nearer end, so that both ends are exact."""
    compute = np.dtype(np.float64) if dtype.is_integral else dtypes.compute_dtype(dtype).np
    kept = [scalars.element(v, dtype).astype(compute) for v in ends]
    first, last = kept[0].reshape(()), kept[1].reshape(())
    if steps == 1:
        values = xp.array([first], compute)
    else:
        step = (last - first) / compute.type(max(steps - 1, 1))
        if dtype.low:
            step = step.astype(dtype.np).astype(compute)
        index = xp.arange(steps)
        # PyTorch rounds product and sum as one: in a wider dtype the product is exact, or nearly.
        wide = np.dtype(_WIDER.get(dtype.name, compute))
        first, last, step = first.astype(wide), last.astype(wide), step.astype(wide)
        low = first + step * index.astype(wide)
        high = last - step * (steps - 1 - index).astype(wide)
        values = xp.where(index < steps // 2, low, high).astype(compute)
    if base is not None:
        values = xp.power(compute.type(base), values)
    if dtype.is_integral:
        return xp.trunc(values).astype(np.int64).astype(dtype.np)
    return values


def _square(n: int, *, dtype: DType | None = None) -> None: ...


def _rectangle(n: int, m: int, *, dtype: DType | None = None) -> None: ...


_SQUARE: tuple[Parameter, ...] = parameters_of(_square)
_RECTANGLE: tuple[Parameter, ...] = parameters_of(_rectangle)
_EYE_TEXTS = (
    f"(int n, *, Tensor out = None, {_OPTIONS}",
    f"(int n, int m, *, Tensor out = None, {_OPTIONS}",
)


@function("eye", forms=_EYE_TEXTS)
def eye(*args: Any, **kwargs: Any) -> Tensor:
    """Ones on the main diagonal, zeros elsewhere; ``n`` rows, ``m`` columns (as many)."""
    wide = len(args) > 1 or "m" in kwargs
    if not args and "n" not in kwargs or len(args) > 2:
        raise no_overload("eye", args, kwargs, _EYE_TEXTS)
    values, shared = bind_creation("eye", _RECTANGLE if wide else _SQUARE, args, kwargs)
    n, m, dtype = values if wide else (values[0], values[0], values[1])
    if n < 0:
        raise TensorRuntimeError(f"n must be greater or equal to 0, got {n}")
    if m < 0:
        raise TensorRuntimeError(f"m must be greater or equal to 0, got {m}")
    out = shared.out
    found = dtype or (out.dtype if out is not None else state.default_dtype)
    layout = check_sizes((n, m), found)

    def run(xp: Any) -> Any:
        array = xp.zeros(layout.shape, found.np)
        array.reshape(-1)[: min(n, m) * m : m + 1] = 1
        return array

    return finish_creation("eye", made(found, layout, run), found, shared, dtype)


@creation(method=False, out=False, example="tril_indices(3, 3)")
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: DType | None = None) -> Made:
    """Rows and columns of the elements on and below a diagonal, as a (2, n) tensor."""
    return _triangle("tril_indices", row, col, dtype, lambda i, j: j - i <= offset)


@creation(method=False, out=False, example="triu_indices(3, 3)")
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: DType | None = None) -> Made:
    """Rows and columns of the elements on and above a diagonal, as a (2, n) tensor."""
    return _triangle("triu_indices", row, col, dtype, lambda i, j: j - i >= offset)


def _triangle(name: str, row: int, col: int, dtype: DType | None, inside: Any) -> Made:
    if row < 0:
        raise TensorRuntimeError(f"row must be non-negative, got{row}")
    if col < 0:
        raise TensorRuntimeError(f"col must be non-negative, got{col}")
    found = dtype or dtypes.int64
    if found not in (dtypes.int64, dtypes.int32):
        raise DtypeNotImplementedError(f"\"{name}\" not implemented for '{found.title}'")
    rows, columns = np.nonzero(inside(np.arange(row)[:, None], np.arange(col)[None, :]))
    layout = layouts.contiguous((2, len(rows)))
    return made(found, layout, lambda xp: xp.asarray(np.stack([rows, columns])))
