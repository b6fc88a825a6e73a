"""Rounding, clamping and mending of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine.dtypes import BOOL, COMPLEX, FLOAT, DType, complex64, promote
from engine.errors import (
    DtypeError,
    DtypeNotImplementedError,
    TensorNotImplementedError,
    TensorRuntimeError,
    TensorTypeError,
)
from engine.kinds import DEFAULT, pointwise
from engine.modes import state
from engine.registry import F, ops
from engine.tensor import Tensor

if TYPE_CHECKING:
    from engine.parameter_types import Operand


def _zero(g: Tensor) -> Tensor:
    return F.zeros_like(g)


def _real(name: str) -> Any:
    def promote(common: DType) -> tuple[DType, DType]:
        if common.category == COMPLEX:
            raise TensorNotImplementedError(f"{name} is not supported for complex inputs")
        return DEFAULT(common)

    return promote


def _whole(xp: Any, x: Any, round_: Any) -> Any:
    return round_(x) if x.dtype.kind == "f" else xp.array(x)


@pointwise(
    kernel=lambda xp, x: _whole(xp, x, xp.floor),
    promote=_real("floor"),
    takes="ifcu",
    stub="floor_vml_cpu",
    vjp=_zero,
    example="floor(tensor([-1.5, 1.5]))",
)
def floor(input: Tensor) -> Tensor:
    """Rounded down; integers stay as they are."""


@pointwise(
    kernel=lambda xp, x: _whole(xp, x, xp.ceil),
    promote=_real("ceil"),
    takes="ifcu",
    stub="ceil_vml_cpu",
    vjp=_zero,
    example="ceil(tensor([-1.5, 1.5]))",
)
def ceil(input: Tensor) -> Tensor:
    """Rounded up; integers stay as they are."""


@pointwise(
    kernel=lambda xp, x: _whole(xp, x, xp.trunc),
    promote=_real("trunc"),
    takes="ifcu",
    stub="trunc_vml_cpu",
    vjp=_zero,
    aliases=("fix",),
    example="trunc(tensor([-1.5, 1.5]))",
)
def trunc(input: Tensor) -> Tensor:
    """Rounded towards zero; integers stay as they are."""


@pointwise(
    kernel=lambda xp, x: x - xp.trunc(x),
    takes="f",
    vjp=lambda g: g,
    example="frac(tensor([-1.5, 1.25]))",
)
def frac(input: Tensor) -> Tensor:
    """What is behind the decimal point, with the number's sign."""


def _to_decimals(input: Any, decimals: Any) -> Any:
    return None if decimals == 0 else ("round_decimals", (input, decimals))


@pointwise(
    kernel=lambda xp, x, decimals: _whole(xp, x, xp.rint),
    takes="ifu",
    stub="round_vml_cpu",
    vjp=_zero,
    otherwise=_to_decimals,
    spaces=("", "special."),
    example="round(tensor([0.5, 1.5, 2.5]))",
)
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Rounded to the nearest whole number, halves to the even one.

    ``decimals`` keeps so many digits behind the point, or rounds before it where negative.
    """


def _round_decimals(xp: Any, x: Any, decimals: int) -> Any:
    scale = x.dtype.type(10.0 ** np.abs(decimals))
    return xp.rint(x * scale) / scale if decimals > 0 else xp.rint(x / scale) * scale


@pointwise(
    kernel=_round_decimals,
    takes="f",
    stub="round_cpu",
    vjp=_zero,
    node="RoundBackward1",
    function=False,
    method=False,
    named_inplace=False,
    example="round(tensor([1.234]), decimals=2)",
)
def round_decimals(input: Tensor, decimals: int) -> Tensor:
    """Rounded to ``decimals`` digits behind the point."""


def _bounded(common: DType) -> tuple[DType, DType]:
    if common.category == COMPLEX:
        raise TensorNotImplementedError("clamp is not supported for complex types")
    return DEFAULT(common)


# A negative bound of an unsigned type wraps.
_INT_RANGE = {
    "uint8": (-255, 255), "int8": (-128, 127), "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
}  # fmt: skip
_C_NAMES = {"uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int"}


def _check_bound(value: Any, compute: DType) -> None:
    bounds = _INT_RANGE.get(compute.name)
    if bounds is not None and not bounds[0] <= value <= bounds[1]:
        raise TensorRuntimeError(
            f"value cannot be converted to type {_C_NAMES[compute.name]} without overflow"
        )


_TYPE_NAMES = {
    "bool": "bool",
    "uint8": "unsigned char",
    "int8": "signed char",
    "int16": "short int",
    "int32": "int",
    "int64": "long int",
}


def _refuse_into(input: Tensor, *bounds: Any) -> None:
    """Refuse to store float results among integers, in the words of PyTorch's clamp."""
    kinds = {type(b) for b in bounds}
    found = COMPLEX if complex in kinds else FLOAT if float in kinds else BOOL
    if found > input.dtype.category and input.dtype.name in _TYPE_NAMES:
        common = state.default_dtype if found == FLOAT else complex64
        raise DtypeError(
            f"result type {common.title} can't be cast to the desired output type "
            f"{_TYPE_NAMES[input.dtype.name]}"
        )


def _one_bound(input: Any, min: Any, max: Any) -> Any:
    if min is None and max is None:
        raise TensorRuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if max is None:
        return "clamp_low", (input, min)
    if min is None:
        return "clamp_high", (input, max)
    wide = [isinstance(bound, Tensor) and bound.ndim > 0 for bound in (min, max)]
    if any(wide) and not (isinstance(min, Tensor) and isinstance(max, Tensor)):
        given = ", ".join(type(bound).__name__ for bound in (input, min, max))
        raise TensorTypeError(
            f"clamp() received an invalid combination of arguments - got ({given}), but expected "
            "one of:"
        )
    return None


def _check_bounds(name: str) -> Any:
    """Masks are refused with the name of the kernel that lacks them."""

    def refuse(input: Any, *bounds: Any) -> None:
        if name != "clamp" and isinstance(bounds[0], Tensor):
            common = promote(input.dtype, bounds[0].dtype)
            if common.is_complex:
                kernel = "maximum_cpu" if name == "clamp_min" else "minimum_cpu"
                raise DtypeNotImplementedError(f"\"{kernel}\" not implemented for '{common.title}'")
        kinds = [b.dtype.is_bool if isinstance(b, Tensor) else b.__class__ is bool for b in bounds]
        if input.dtype.is_bool and all(kinds):
            scalar = not any(isinstance(b, Tensor) for b in bounds)
            if scalar or len(bounds) == 2:
                stub = f"{name}_scalar_cpu" if scalar else f"{name}_cpu"
                raise TensorNotImplementedError(f"\"{stub}\" not implemented for 'Bool'")

    return refuse


def _clamp_node(input: Any, *bounds: Any) -> str:
    tensors = all(isinstance(bound, Tensor) for bound in bounds)
    return "ClampBackward0" if tensors else "ClampBackward1"


def _bound_node(name: str) -> Any:
    def variant(input: Any, bound: Any) -> str:
        return f"{name}Backward1" if isinstance(bound, Tensor) else f"{name}Backward0"

    return variant


def _keep(condition: Tensor, g: Tensor) -> Tensor:
    return ops["keep_where"].function(g, condition)


@pointwise(
    kernel=lambda xp, g, condition: xp.where(condition, g, g.dtype.type(0)),
    promoted=("g",),
    vjp={"g": lambda g, condition: _keep(condition, g)},
    function=False,
    method=False,
    inplace=False,
    node="WhereBackward0",
    example="where(tensor([True]), tensor([1.]), 0)",
)
def keep_where(g: Tensor, condition: Tensor) -> Tensor:
    """``g`` where the condition holds, else 0: the gradient of what chooses."""


# From here on numpy's clip, which takes longer to start, is several times as fast as maximum.
_LONG = 1 << 13


def _between(xp: Any, x: Any, low: Any, high: Any) -> Any:
    if x.size > _LONG:
        return xp.clip(x, low, high)
    return xp.minimum(xp.maximum(x, low), high)


# What all forms of clamping have in common, and those with one bound.
_CLAMPING: dict[str, Any] = {
    "promote": _bounded,
    "number_strides": "inner",
    "check_number": _check_bound,
    "refuse_inplace": _refuse_into,
}
_RAISING: dict[str, Any] = _CLAMPING | {
    "ufunc": "maximum",
    "stub": "clamp_min_scalar_cpu",
    "vjp": {
        "input": lambda g, input, min: _keep(input >= min, g),
        "min": lambda g, input, min: _keep(input < min, g),
    },
}
_LOWERING: dict[str, Any] = _CLAMPING | {
    "ufunc": "minimum",
    "stub": "clamp_max_scalar_cpu",
    "vjp": {
        "input": lambda g, input, max: _keep(input <= max, g),
        "max": lambda g, input, max: _keep(input > max, g),
    },
}


@pointwise(
    **_CLAMPING,
    kernel=_between,
    stub="clamp_scalar_cpu",
    refuse=_check_bounds("clamp"),
    vjp={
        "input": lambda g, input, min, max: _keep((input >= min) & (input <= max), g),
        "min": lambda g, input, min, max: _keep((input < min) & (max > min), g),
        "max": lambda g, input, min, max: _keep((input > max) | (max < min), g),
    },
    variant=_clamp_node,
    otherwise=_one_bound,
    aliases=("clip",),
    example="clamp(tensor([-1., 0.5, 2.]), 0, 1)",
)
def clamp(input: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """Every element kept between ``min`` and ``max`` (numbers or tensors); NaN stays NaN.

    Where min is above max, max wins. The gradient at the bounds themselves is 1.
    """


@pointwise(
    **_RAISING,
    refuse=_check_bounds("clamp"),
    variant=_clamp_node,
    function=False,
    method=False,
    named_inplace=False,
    example="clamp(tensor([-1., 2.]), 0)",
)
def clamp_low(input: Tensor, min: Operand) -> Tensor:
    """``clamp`` with a lower bound only."""


@pointwise(
    **_LOWERING,
    refuse=_check_bounds("clamp"),
    variant=_clamp_node,
    function=False,
    method=False,
    named_inplace=False,
    example="clamp(tensor([-1., 2.]), max=0)",
)
def clamp_high(input: Tensor, max: Operand) -> Tensor:
    """``clamp`` with an upper bound only."""


@pointwise(
    **_RAISING,
    refuse=_check_bounds("clamp_min"),
    variant=_bound_node("ClampMin"),
    example="clamp_min(tensor([-1., 2.]), 0)",
)
def clamp_min(input: Tensor, min: Operand) -> Tensor:
    """No element below ``min``."""


@pointwise(
    **_LOWERING,
    refuse=_check_bounds("clamp_max"),
    variant=_bound_node("ClampMax"),
    example="clamp_max(tensor([-1., 2.]), 0)",
)
def clamp_max(input: Tensor, max: Operand) -> Tensor:
    """No element above ``max``."""


def _rectify(xp: Any, x: Any) -> Any:
    zero = x.dtype.type(0)
    if x.size > _LONG and x.dtype.kind == "f":
        return xp.clip(x, zero, x.dtype.type(xp.inf))
    return xp.maximum(x, zero)


def _rectified(common: DType) -> tuple[DType, DType]:
    if common.category == BOOL:
        raise TensorRuntimeError("Boolean inputs not supported for relu")
    return _bounded(common)


@pointwise(
    kernel=_rectify,
    promote=_rectified,
    stub="clamp_min_scalar_cpu",
    vjp=lambda g, y: ops["threshold_gradient"].function(g, y),
    example="relu(tensor([-1., 2.]))",
)
def relu(input: Tensor) -> Tensor:
    """The element where it is above 0, else 0; NaN stays NaN. The gradient at 0 is 0."""


@pointwise(
    kernel=lambda xp, g, at: xp.where(at <= 0, g.dtype.type(0), g),
    vjp={"g": lambda g, at: ops["threshold_gradient"].function(g, at), "at": _zero},
    function=False,
    method=False,
    inplace=False,
    node="ThresholdBackwardBackward0",
    example="relu(tensor([-1., 2.]))",
)
def threshold_gradient(g: Tensor, at: Tensor) -> Tensor:
    """``g`` where ``at`` is not at or below 0: the gradient of relu."""


# numpy's finfo knows nothing of bfloat16.
_LARGEST = {"bfloat16": 3.3895313892515355e38}


def _mend(xp: Any, x: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    if x.dtype.kind in "biu":
        return xp.array(x)
    if x.dtype.kind == "c":
        y = xp.empty(x.shape, x.dtype)
        y.real = _mend(xp, x.real, nan, posinf, neginf)
        y.imag = _mend(xp, x.imag, nan, posinf, neginf)
        return y
    largest = _LARGEST.get(x.dtype.name) or float(xp.finfo(x.dtype).max)
    number = x.dtype.type
    high = number(largest if posinf is None else posinf)
    low = number(-largest if neginf is None else neginf)
    y = xp.where(xp.isnan(x), number(nan or 0), x)
    return xp.where(x == number(xp.inf), high, xp.where(x == number(-xp.inf), low, y))


@pointwise(
    kernel=_mend,
    promote=lambda common: (common, common),
    stub="nan_to_num",
    number_strides="always",
    vjp=lambda g, input: _keep(~(input.isnan() | input.isinf()), g),
    example="nan_to_num(tensor([nan, inf, 1.]))",
)
def nan_to_num(
    input: Tensor,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor:
    """NaN replaced by ``nan`` (0), infinities by the dtype's largest and smallest numbers."""
