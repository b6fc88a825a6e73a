"""Trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.dtypes import COMPLEX, DType
from engine.errors import TensorRuntimeError
from engine.kinds import INT_TO_FLOAT, pointwise, smooth
from engine.kinds.conjugate import conj
from engine.kinds.native import Native
from engine.modes import state
from engine.registry import F

if TYPE_CHECKING:
    from engine.tensor import Tensor

_PI = 3.141592653589793


@smooth(ufunc="sin", vjp=lambda g, input: g * conj(input.cos()), example="sin(tensor([0., 1.]))")
def sin(input: Tensor) -> Tensor:
    """Sine of an angle in radians."""


@smooth(ufunc="cos", vjp=lambda g, input: g * -conj(input.sin()), example="cos(tensor([0., 1.]))")
def cos(input: Tensor) -> Tensor:
    """Cosine of an angle in radians."""


@smooth(
    ufunc="tan",
    vjp=lambda g, y: g * conj(1 + y.pow(2)),
    example="tan(tensor([0., 1.]))",
    domain=(-1, 1),
)
def tan(input: Tensor) -> Tensor:
    """Tangent of an angle in radians."""


@smooth(
    ufunc="arcsin",
    vjp=lambda g, input: g * conj((1 - input * input).rsqrt()),
    aliases=("arcsin",),
    example="asin(tensor([0., 1.]))",
    domain=(-0.9, 0.9),
)
def asin(input: Tensor) -> Tensor:
    """Inverse sine; NaN outside -1 to 1."""


@smooth(
    ufunc="arccos",
    vjp=lambda g, input: g * -conj((1 - input * input).rsqrt()),
    aliases=("arccos",),
    example="acos(tensor([0., 1.]))",
    domain=(-0.9, 0.9),
)
def acos(input: Tensor) -> Tensor:
    """Inverse cosine; NaN outside -1 to 1."""


@smooth(
    ufunc="arctan",
    vjp=lambda g, input: g / conj(input * input + 1),
    aliases=("arctan",),
    example="atan(tensor([0., 1.]))",
)
def atan(input: Tensor) -> Tensor:
    """Inverse tangent."""


@smooth(ufunc="sinh", vjp=lambda g, input: g * conj(input.cosh()), example="sinh(tensor([0., 1.]))")
def sinh(input: Tensor) -> Tensor:
    """Hyperbolic sine."""


@smooth(ufunc="cosh", vjp=lambda g, input: g * conj(input.sinh()), example="cosh(tensor([0., 1.]))")
def cosh(input: Tensor) -> Tensor:
    """Hyperbolic cosine."""


_tanh_slope = Native("TanhBackwardBackward0", lambda g, y: g * conj(1 - y * y))


@smooth(
    ufunc="tanh",
    vjp=lambda g, y: _tanh_slope(g, y) if state.grad else g * conj(1 - y * y),
    example="tanh(tensor([0., 1.]))",
)
def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent."""


@smooth(
    ufunc="arcsinh",
    vjp=lambda g, input: g * conj((input.pow(2) + 1).rsqrt()),
    aliases=("arcsinh",),
    example="asinh(tensor([0., 1.]))",
    inplace_number=1,
    inplace_derived=False,
)
def asinh(input: Tensor) -> Tensor:
    """Inverse hyperbolic sine."""


def _acosh_slope(g: Tensor, input: Any) -> Tensor:
    if not input.dtype.is_complex:
        return g * (input.pow(2) - 1).rsqrt()
    return g * conj((input - 1).rsqrt() * (input + 1).rsqrt())


@smooth(
    ufunc="arccosh",
    vjp=_acosh_slope,
    aliases=("arccosh",),
    example="acosh(tensor([1., 2.]))",
    domain=(1.1, 5),
    inplace_number=1,
    inplace_derived=False,
)
def acosh(input: Tensor) -> Tensor:
    """Inverse hyperbolic cosine; NaN below 1."""


@smooth(
    ufunc="arctanh",
    vjp=lambda g, input: g * conj(1 / (1 - input.pow(2))),
    aliases=("arctanh",),
    example="atanh(tensor([0., 0.5]))",
    domain=(-0.9, 0.9),
    inplace_number=1,
    inplace_derived=False,
)
def atanh(input: Tensor) -> Tensor:
    """Inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond."""


def _turned(g: Tensor, along: Tensor, input: Tensor, other: Tensor) -> Tensor:
    square = input * input + other * other
    return g * F.where(square == 0, 0, along / square)


@pointwise(
    ufunc="arctan2",
    promote=INT_TO_FLOAT,
    takes="bif",
    vjp={
        "input": lambda g, input, other: _turned(g, other, input, other),
        "other": lambda g, input, other: _turned(g, -input, input, other),
    },
    aliases=("arctan2",),
    example="atan2(tensor([1.]), tensor([-1.]))",
)
def atan2(input: Tensor, other: Tensor) -> Tensor:
    """The angle of the point (``other``, ``input``), from -pi to pi."""


@pointwise(
    ufunc="hypot",
    takes="f",
    vjp={
        "input": lambda g, input, y: g * (input / y),
        "other": lambda g, other, y: g * (other / y),
    },
    example="hypot(tensor([3.]), tensor([4.]))",
)
def hypot(input: Tensor, other: Tensor) -> Tensor:
    """The hypotenuse, sqrt(a² + b²), without overflow."""


def _sinc(xp: Any, x: Any) -> Any:
    angle = x * x.dtype.type(_PI)
    return xp.where(x == 0, 1, xp.sin(angle) / xp.where(x == 0, 1, angle)).astype(x.dtype)


def _sinc_slope(g: Tensor, input: Any) -> Tensor:
    angle = input * _PI
    slope = (angle * angle.cos() - angle.sin()) / (angle * input)
    return g * conj(F.where(angle * input == 0, 0, slope))


@smooth(
    kernel=_sinc,
    takes="bifc",
    stub="sinc_cpu",
    vjp=_sinc_slope,
    spaces=("", "special."),
    example="sinc(tensor([0., 0.5]))",
)
def sinc(input: Tensor) -> Tensor:
    """sin(pi x) / (pi x), 1 at 0."""


def _real_angles(name: str) -> Any:
    def promote(common: DType) -> tuple[DType, DType]:
        if common.category == COMPLEX:
            raise TensorRuntimeError(f"{name} is not supported for complex tensors.")
        return INT_TO_FLOAT(common)

    return promote


@pointwise(
    kernel=lambda xp, x: x * x.dtype.type(_PI / 180),
    promote=_real_angles("deg2rad"),
    number_strides="always",
    vjp=lambda g: g * (_PI / 180),
    example="deg2rad(tensor([180., 90.]))",
)
def deg2rad(input: Tensor) -> Tensor:
    """Degrees as radians."""


@pointwise(
    kernel=lambda xp, x: x * x.dtype.type(180 / _PI),
    promote=_real_angles("rad2deg"),
    number_strides="always",
    vjp=lambda g: g * (180 / _PI),
    example="rad2deg(tensor([3.14159]))",
)
def rad2deg(input: Tensor) -> Tensor:
    """Radians as degrees."""
