"""Powers, roots, reciprocals, and numbers taken apart into mantissa and exponent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes, scalars
from engine import layout as layouts
from engine.dtypes import BOOL, INT, DType
from engine.errors import DtypeNotImplementedError, TensorRuntimeError
from engine.kinds import (
    DEFAULT,
    INT_TO_FLOAT,
    STEPWISE,
    composite,
    kernel,
    made,
    pointwise,
    smooth,
    working,
)
from engine.kinds.conjugate import conj
from engine.modes import state
from engine.registry import F, method
from engine.tensor import Tensor

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.parameter_types import Operand


_LN2 = 0.6931471805599453


def _check_exponent(value: Any, compute: DType) -> None:
    if compute.category == INT and value < 0:
        raise TensorRuntimeError("Integers to negative integer powers are not allowed.")
    if compute.category == INT or compute.low:
        scalars.check_fits(value, compute)


# Exponents that PyTorch works out without a call of pow, so that 2 is exact and quick.
_SHORT: dict[complex, Any] = {
    0.5: lambda xp, a: xp.sqrt(a),
    2: lambda xp, a: a * a,
    3: lambda xp, a: a * a * a,
    -0.5: lambda xp, a: a.dtype.type(1) / xp.sqrt(a),
    -1: lambda xp, a: a.dtype.type(1) / a,
    -2: lambda xp, a: a.dtype.type(1) / (a * a),
}


def _pow(xp: Any, a: Any, b: Any) -> Any:
    kind = b.dtype.kind
    if b.ndim == 0 and kind not in "iub" and a.ndim:
        short = _SHORT.get(complex(b.item()))
        if short is not None:
            return short(xp, a)
    if kind == "i":
        return _integer_power(xp, a, b)
    if kind == "b":
        return a | ~b
    return xp.power(a, b)


def _integer_power(xp: Any, a: Any, b: Any) -> Any:
    if b.min(initial=0) >= 0:
        return xp.power(a, b)
    value = xp.power(a, xp.maximum(b, 0))
    inverse = xp.where(a == 1, 1, xp.where(a == -1, 1 - 2 * (b & 1), 0)).astype(a.dtype)
    return xp.where(b < 0, inverse, value)


def _pow_node(input: Any, exponent: Any) -> str:
    if not isinstance(exponent, Tensor):
        return "PowBackward0"
    return "PowBackward1" if isinstance(input, Tensor) else "PowBackward2"


def _base_slope(g: Tensor, input: Tensor, exponent: Any) -> Tensor:
    if not isinstance(exponent, Tensor):
        if exponent == 0:
            return F.zeros_like(g)
        if exponent == 2 and not state.grad:
            return g * conj(input * exponent)
        return g * conj(exponent * input.pow(exponent - 1))
    return F.where(exponent == 0, 0, g * conj(exponent * input.pow(exponent - 1)))


def _exponent_slope(g: Tensor, input: Any, exponent: Tensor, y: Tensor) -> Tensor:
    if not isinstance(input, Tensor):
        if input == 0:
            at_zero = exponent >= 0 if not exponent.dtype.is_complex else F.real(exponent) >= 0
            return g * F.where(at_zero, 0, conj(y * float("-inf")))
        base = F.tensor(input, dtype=y.dtype)
        return g * conj(y * base.log())
    input = input.to(y.dtype)
    positive = F.real(exponent) >= 0 if exponent.dtype.is_complex else exponent >= 0
    return g * F.where((input == 0) & positive, 0, conj(y * input.log()))


def _is_mask(value: Any) -> bool:
    return value.dtype.is_bool if isinstance(value, Tensor) else value.__class__ is bool


def _power_strides(input: Any, exponent: Any) -> str:
    return "inner" if isinstance(input, Tensor) else "contiguous"


def _short_power(input: Any, exponent: Any) -> dict[Any, Any] | None:
    """Squares of what needs no conversion: one product, however small the tensor."""
    if not isinstance(input, Tensor) or not input.layout.plain:
        return None
    if input.dtype.name not in ("float32", "float64"):
        return None
    return {2: lambda a, two: a * a}


def _power_dtypes(common: DType) -> tuple[DType, DType]:
    """In bfloat16 PyTorch rounds the squares of which it makes short powers, in float16 not."""
    return (common, common) if common is dtypes.bfloat16 else DEFAULT(common)


@pointwise(
    kernel=_pow,
    promote=_power_dtypes,
    stub="pow",
    vjp={"input": _base_slope, "exponent": _exponent_slope},
    variant=_pow_node,
    check_number=_check_exponent,
    lacks=lambda input, exponent: (
        isinstance(exponent, Tensor) and all(_is_mask(t) for t in (input, exponent))
    ),
    number_strides=_power_strides,
    short=_short_power,
    example="pow(tensor([1., 2., 3.]), 2)",
)
def pow(input: Operand, exponent: Operand) -> Tensor:
    """``input`` to the power of ``exponent``; 0 to the 0 is 1.

    An integer to a negative number is refused; to a negative integer tensor it is 1, -1 or 0.
    """


def _float_power_dtype(*values: Any) -> DType:
    wide = any(
        v.dtype.is_complex if isinstance(v, Tensor) else v.__class__ is complex for v in values
    )
    return dtypes.complex128 if wide else dtypes.float64


@method("float_power_")
def float_power_(input: Tensor, exponent: Any) -> Tensor:
    """``float_power`` into the tensor itself, which must be of the result's dtype already."""
    dtype = _float_power_dtype(input, exponent)
    if input.dtype is not dtype:
        raise TensorRuntimeError(
            f"the base given to float_power_ has dtype {input.dtype.title} but the operation's "
            f"result requires dtype {dtype.title}"
        )
    power = exponent.to(dtype) if isinstance(exponent, Tensor) else _number(exponent, dtype)
    return input.pow_(power)


@composite(inplace=False, example="float_power(tensor([1, 2]), 2)")
def float_power(input: Operand, exponent: Operand) -> Tensor:
    """As ``pow``, worked out in float64 (complex128 for complex numbers)."""
    dtype = _float_power_dtype(input, exponent)
    base = input.to(dtype) if isinstance(input, Tensor) else _number(input, dtype)
    power = exponent.to(dtype) if isinstance(exponent, Tensor) else _number(exponent, dtype)
    return F.pow(base, power)


def _number(value: Any, dtype: DType) -> Any:
    return complex(value) if dtype.is_complex else float(value)


def _squared(common: DType) -> tuple[DType, DType]:
    return DEFAULT(dtypes.int64 if common.category == BOOL else common)


@pointwise(
    kernel=lambda xp, a: a * a,
    promote=_squared,
    stub="pow",
    vjp=lambda g, input: _base_slope(g, input, 2),
    node="PowBackward0",
    example="square(tensor([1., -3.]))",
)
def square(input: Tensor) -> Tensor:
    """Each element times itself; booleans become integers."""


@smooth(
    ufunc="sqrt",
    vjp=lambda g, y: g / conj(2 * y),
    example="sqrt(tensor([4., 9.]))",
    domain=(0.1, 10),
)
def sqrt(input: Tensor) -> Tensor:
    """Square root; NaN for negative numbers."""


@smooth(
    kernel=lambda xp, a: a.dtype.type(1) / xp.sqrt(a),
    promote=STEPWISE,
    vjp=lambda g, y: g * conj(-0.5 * y.pow(3)),
    stub="rsqrt_cpu",
    example="rsqrt(tensor([4., 0.25]))",
    domain=(0.1, 10),
)
def rsqrt(input: Tensor) -> Tensor:
    """1 divided by the square root."""


@smooth(
    kernel=lambda xp, a: 1 / a,
    vjp=lambda g, y: -g * conj(y * y),
    stub="reciprocal_cpu",
    example="reciprocal(tensor([4., 0.5]))",
    domain=(0.1, 10),
)
def reciprocal(input: Tensor) -> Tensor:
    """1 divided by each element; integers give floats."""


def _only_floats(name: str, x: Tensor) -> None:
    if not x.dtype.is_floating_point:
        raise TensorRuntimeError(f"torch.{name}() only supports floating-point dtypes")


@kernel(
    fields=("mantissa", "exponent"),
    vjp={"input": lambda g, y: g[0] / (2.0 ** y[1])},
    example="frexp(tensor([9.]))",
)
def frexp(input: Tensor) -> tuple[Made, Made]:
    """Each number as mantissa (0.5 to 1) and a power of two: (mantissa, int32 exponent)."""
    _only_floats("frexp", input)

    def run(xp: Any) -> Any:
        return xp.frexp(working(input))

    layout = layouts.preserved(input.layout)
    return made(input.dtype, layout, run), made(dtypes.int32, layout, run)


def _two_to(xp: Any, other: Tensor) -> Any:
    """2 to the power of ``other``, rounded to its own dtype."""
    exponent = working(other)
    power = xp.exp2(exponent if other.dtype.category > INT else exponent.astype("float32"))
    return power if other.dtype.category <= INT else power.astype(other.kind.np).astype(power.dtype)


@kernel(
    vjp={
        "input": lambda g, other: g * conj(F.pow(2.0, other)),
        "other": lambda g, y: g * conj(y * _LN2),
    },
    inplace=True,
    example="ldexp(tensor([1.]), tensor([3]))",
)
def ldexp(input: Tensor, other: Tensor) -> Made:
    """``input`` times two to the power of ``other``; an integer power is never rounded."""
    shape = layouts.broadcast_shapes(input.layout.shape, other.layout.shape)
    if other.dtype.is_bool and input.dtype.is_floating_point:
        raise DtypeNotImplementedError("\"ldexp_cpu_exp\" not implemented for 'Bool'")
    tensors = (input, other)
    common = dtypes.result_type(
        [t.dtype for t in tensors if t.ndim], [t.dtype for t in tensors if not t.ndim], ()
    )
    compute, final = INT_TO_FLOAT(common)

    def run(xp: Any) -> Any:
        x = working(input, compute)
        if other.dtype.category == INT and input.dtype.is_floating_point:
            return xp.ldexp(x, xp.clip(other.array, -5000, 5000).astype("int32"))
        return x * _two_to(xp, other)

    return made(final, layouts.elementwise([t.layout for t in tensors], shape), run)
