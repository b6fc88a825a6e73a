"""Exponentials, logarithms and the functions made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.kinds import INT_TO_FLOAT, STEPWISE, pointwise, smooth
from engine.kinds.conjugate import conj
from engine.kinds.native import Native
from engine.modes import state
from engine.registry import F, ops
from engine.tensor import Tensor

if TYPE_CHECKING:
    from engine.parameter_types import Operand

_LN2 = 0.6931471805599453
_LN10 = 2.302585092994046


@smooth(
    ufunc="exp", vjp=lambda g, y: g * conj(y), example="exp(tensor([0., 1.]))", domain=(-10, 10)
)
def exp(input: Tensor) -> Tensor:
    """e raised to each element."""


@smooth(
    ufunc="exp2",
    vjp=lambda g, y: g * conj(y) * _LN2,
    spaces=("", "special."),
    example="exp2(tensor([0., 3.]))",
    domain=(-10, 10),
)
def exp2(input: Tensor) -> Tensor:
    """2 raised to each element."""


@smooth(
    ufunc="expm1",
    vjp=lambda g, y: g * (conj(y) + 1),
    spaces=("", "special."),
    example="expm1(tensor([0., 1e-8]))",
    domain=(-10, 10),
)
def expm1(input: Tensor) -> Tensor:
    """e raised to each element, minus 1, exact near 0."""


@smooth(
    ufunc="log",
    vjp=lambda g, input: g / conj(input),
    example="log(tensor([1., 2.]))",
    domain=(0.1, 10),
)
def log(input: Tensor) -> Tensor:
    """Natural logarithm; -inf at 0, NaN below."""


@smooth(
    ufunc="log2",
    vjp=lambda g, input: g / (conj(input) * _LN2),
    example="log2(tensor([1., 8.]))",
    domain=(0.1, 10),
)
def log2(input: Tensor) -> Tensor:
    """Logarithm to base 2."""


@smooth(
    ufunc="log10",
    vjp=lambda g, input: g / (conj(input) * _LN10),
    example="log10(tensor([1., 100.]))",
    domain=(0.1, 10),
)
def log10(input: Tensor) -> Tensor:
    """Logarithm to base 10."""


def _log1p(xp: Any, x: Any) -> Any:
    """numpy's, but that a NaN in one part makes both NaN."""
    y = xp.log1p(x)
    return xp.where(xp.isnan(x), y * xp.nan, y) if x.dtype.kind == "c" else y


@smooth(
    kernel=_log1p,
    vjp=lambda g, input: g / conj(input + 1),
    spaces=("", "special."),
    example="log1p(tensor([0., 1e-8]))",
    domain=(-0.9, 10),
)
def log1p(input: Tensor) -> Tensor:
    """Natural logarithm of 1 plus each element, exact near 0."""


def _sigmoid(xp: Any, x: Any) -> Any:
    if not x.ndim:
        return 1 / (1 + xp.exp(-x))
    y = xp.negative(x)
    xp.exp(y, out=y)
    y += 1
    return xp.reciprocal(y, out=y)


_sigmoid_slope = Native("SigmoidBackwardBackward0", lambda g, y: g * (1 - conj(y)) * conj(y))


@smooth(
    kernel=_sigmoid,
    vjp=lambda g, y: _sigmoid_slope(g, y) if state.grad else g * (1 - conj(y)) * conj(y),
    stub="sigmoid_cpu",
    example="sigmoid(tensor([-1., 0., 1.]))",
)
def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x)): from 0 to 1."""


@smooth(
    kernel=_sigmoid,
    vjp=lambda g, y: _sigmoid_slope(g, y) if state.grad else g * (1 - conj(y)) * conj(y),
    stub="sigmoid_cpu",
    name="special.expit",
    node="SigmoidBackward0",
    method=False,
    inplace=False,
    example="special.expit(tensor([-1., 0., 1.]))",
)
def expit(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x)): from 0 to 1."""


def _logit(xp: Any, x: Any, eps: float | None) -> Any:
    if eps is not None:
        low, high = x.dtype.type(eps), x.dtype.type(1 - eps)
        x = xp.where(x < low, low, xp.where(x > high, high, x))
    return xp.log(x / (1 - x))


def _logit_slope(g: Tensor, input: Tensor, eps: float | None) -> Tensor:
    slope = g / ((input + 0.0) * (1.0 - input))  # never by -0
    if eps is None:
        return F.where((input >= 0) & (input <= 1), slope, float("nan"))
    return F.where((input >= eps) & (input <= 1 - eps), slope, 0)


@pointwise(
    kernel=_logit,
    promote=STEPWISE,
    takes="bif",
    vjp=_logit_slope,
    spaces=("", "special."),
    example="logit(tensor([0.25, 0.5]))",
    domain=(0.1, 0.9),
)
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), the inverse of sigmoid; ``eps`` keeps x between eps and 1 - eps."""


def _logaddexp(xp: Any, a: Any, b: Any) -> Any:
    if a.dtype.kind == "c":
        return _complex_logaddexp(xp, a, b)
    return xp.logaddexp(a, b)


def _complex_logaddexp(xp: Any, a: Any, b: Any) -> Any:
    swap = a.real < b.real
    high, low = xp.where(swap, b, a), xp.where(swap, a, b)
    return xp.where(xp.isinf(a) & (a == b), a, high + xp.log1p(xp.exp(low - high)))


@pointwise(
    kernel=_logaddexp,
    takes="fc",
    inplace=False,
    vjp={
        "input": lambda g, input, other: g / conj(1 + (other - input).exp()),
        "other": lambda g, input, other: g / conj(1 + (input - other).exp()),
    },
    example="logaddexp(tensor([-100., 1.]), tensor([-100., 2.]))",
)
def logaddexp(input: Tensor, other: Tensor) -> Tensor:
    """log(exp(a) + exp(b)) without overflow."""


@pointwise(
    ufunc="logaddexp2",
    takes="f",
    inplace=False,
    vjp={
        "input": lambda g, input, other: g / conj(1 + F.pow(2.0, other - input)),
        "other": lambda g, input, other: g / conj(1 + F.pow(2.0, input - other)),
    },
    example="logaddexp2(tensor([-100., 1.]), tensor([-100., 2.]))",
)
def logaddexp2(input: Tensor, other: Tensor) -> Tensor:
    """log2(2**a + 2**b) without overflow."""


def _xlogy_node(input: Any, other: Any) -> str:
    if not isinstance(other, Tensor):
        return "XlogyBackward2"
    return "XlogyBackward0" if isinstance(input, Tensor) else "XlogyBackward1"


def _xlogy(xp: Any, a: Any, b: Any) -> Any:
    return xp.where(xp.isnan(b), b, xp.where(a == 0, xp.zeros_like(a), a * xp.log(b)))


def _log_where(name: str, least: float) -> Any:
    """The gradient of the first factor: 0 where it is 0 and the logarithm is not finite."""

    def slope(g: Tensor, input: Any, other: Any) -> Tensor:
        value = ops[name].function(g, other)
        if not isinstance(other, Tensor):
            finite = other > least
            return value if finite else F.where(input == 0, 0, value)
        return F.where((input == 0) & (other <= least), 0, value)

    return slope


@pointwise(
    kernel=_xlogy,
    promote=STEPWISE,
    takes="bif",
    vjp={"input": _log_where("xlogy", 0), "other": lambda g, input, other: g * input / other},
    variant=_xlogy_node,
    spaces=("", "special."),
    example="xlogy(tensor([0., 2.]), tensor([0., 3.]))",
)
def xlogy(input: Operand, other: Operand) -> Tensor:
    """``input * log(other)``: 0 where input is 0, NaN where other is NaN."""


def _xlog1py_node(input: Any, other: Any) -> str:
    return _xlogy_node(input, other).replace("Xlogy", "SpecialXlog1Py")


@pointwise(
    kernel=lambda xp, a, b: xp.where(
        xp.isnan(b), b, xp.where(a == 0, xp.zeros_like(a), a * xp.log1p(b))
    ),
    promote=INT_TO_FLOAT,
    takes="bif",
    stub="xlog1py_cpu",
    vjp={
        "input": _log_where("special.xlog1py", -1),
        "other": lambda g, input, other: g * input / (other + 1),
    },
    variant=_xlog1py_node,
    name="special.xlog1py",
    method=False,
    inplace=False,
    example="special.xlog1py(tensor([0., 2.]), tensor([-1., 3.]))",
)
def xlog1py(input: Operand, other: Operand) -> Tensor:
    """``input * log1p(other)``: 0 where input is 0, NaN where other is NaN."""


def _entr(xp: Any, x: Any) -> Any:
    return xp.where(
        xp.isnan(x), x, xp.where(x > 0, -x * xp.log(x), xp.where(x == 0, 0, -xp.inf))
    ).astype(x.dtype)


@smooth(
    kernel=_entr,
    promote=STEPWISE,
    takes="bif",
    stub="entr_cpu",
    vjp=lambda g, input: g * (-input.log() - 1),
    name="special.entr",
    node="SpecialEntrBackward0",
    method=False,
    inplace=False,
    example="special.entr(tensor([0., 0.5, 1.]))",
    domain=(0.1, 1),
)
def entr(input: Tensor) -> Tensor:
    """-x log(x): 0 at 0, -inf below."""
