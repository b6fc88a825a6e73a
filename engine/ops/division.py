"""Quotients and remainders of every rounding, common divisors and multiples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import TensorRuntimeError
from engine.kinds import INT_TO_FLOAT, pointwise
from engine.kinds.conjugate import conj
from engine.kinds.missing import NODE, no_derivative
from engine.registry import F
from engine.tensor import Tensor

if TYPE_CHECKING:
    from engine.parameter_types import Operand


_ROUNDED = {"floor": "div_floor", "trunc": "div_trunc"}


def _rounded(input: Any, other: Any, rounding_mode: Any) -> Any:
    if rounding_mode is None:
        return None
    if rounding_mode not in _ROUNDED:
        raise TensorRuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
            f"'{rounding_mode}'"
        )
    return _ROUNDED[rounding_mode], (input, other)


@pointwise(
    ufunc="true_divide",
    numbers=True,
    promote=INT_TO_FLOAT,
    takes="bifcu",
    stub="div_true_cpu",
    exact_last=True,
    vjp={
        "input": lambda g, other: g / conj(other),
        "other": lambda g, input, other: -g * conj((input / other) / other),
    },
    otherwise=_rounded,
    aliases=("divide",),
    example="div(tensor([1., 7.]), 2)",
)
def div(input: Operand, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """Quotient, element by element; integers give floats.

    ``rounding_mode`` "floor" or "trunc" rounds down or towards zero and keeps integers integers.
    """


@pointwise(
    ufunc="true_divide",
    numbers=True,
    promote=INT_TO_FLOAT,
    takes="bifcu",
    stub="div_true_cpu",
    exact_last=True,
    node="DivBackward0",
    vjp={
        "input": lambda g, other: g / conj(other),
        "other": lambda g, input, other: -g * conj((input / other) / other),
    },
    example="true_divide(tensor([1, 7]), 2)",
)
def true_divide(input: Operand, other: Operand) -> Tensor:
    """Quotient, element by element; integers give floats."""


def _check_divisor(a: Any, b: Any) -> None:
    """Refuse an integer division by zero with PyTorch's word for it, unless nothing is divided."""
    if a.size and not b.all():
        raise TensorRuntimeError("ZeroDivisionError")


def _floor(xp: Any, a: Any, b: Any) -> Any:
    if b.dtype.kind in "iu":
        _check_divisor(a, b)
    return xp.floor_divide(a, b)


def _trunc(xp: Any, a: Any, b: Any) -> Any:
    if b.dtype.kind not in "iu":
        return xp.trunc(a / b)
    _check_divisor(a, b)
    if b.dtype.kind == "u":
        return a // b
    return (a - xp.fmod(a, b)) // b


_NO_SLOPE = {"input": lambda g: F.zeros_like(g), "other": lambda g: F.zeros_like(g)}


@pointwise(
    kernel=_floor,
    exact_last=True,
    takes="if",
    vjp=_NO_SLOPE,
    node="DivBackward2",
    function=False,
    method=False,
    named_inplace=False,
    example="div(tensor([-7., 7.]), 2, rounding_mode='floor')",
)
def div_floor(input: Operand, other: Operand) -> Tensor:
    """The quotient rounded down."""


@pointwise(
    kernel=_trunc,
    exact_last=True,
    takes="if",
    vjp=_NO_SLOPE,
    node="DivBackward2",
    function=False,
    method=False,
    named_inplace=False,
    example="div(tensor([-7., 7.]), 2, rounding_mode='trunc')",
)
def div_trunc(input: Operand, other: Operand) -> Tensor:
    """The quotient rounded towards zero."""


@pointwise(
    kernel=_floor,
    exact_last=True,
    takes="if",
    stub="div_floor_cpu",
    numbers=True,
    vjp=dict.fromkeys(("input", "other"), no_derivative("floor_divide")),
    node=NODE,
    example="floor_divide(tensor([-7, 7]), 2)",
)
def floor_divide(input: Operand, other: Operand) -> Tensor:
    """The quotient rounded down; integers by zero are refused. It has no derivative."""


def _remainder(xp: Any, a: Any, b: Any) -> Any:
    if b.dtype.kind in "iu":
        _check_divisor(a, b)
        return xp.remainder(a, b)
    rest = xp.fmod(a, b)
    # numpy's remainder gives a zero the divisor's sign, PyTorch's keeps the dividend's.
    wrong = (rest != 0) & ((b < 0) != (rest < 0))
    return xp.where(wrong, rest + b, rest) if wrong.any() else rest


def _remainder_node(input: Any, other: Any) -> str:
    if not isinstance(input, Tensor):
        return NODE
    return "RemainderBackward1" if isinstance(other, Tensor) else "RemainderBackward0"


def _remainder_slope(g: Tensor, input: Any, other: Tensor) -> Tensor:
    if not isinstance(input, Tensor):
        no_derivative("remainder")(g)
    return -g * F.div(input, other, rounding_mode="floor")


@pointwise(
    kernel=_remainder,
    takes="if",
    vjp={"input": lambda g: g, "other": _remainder_slope},
    variant=_remainder_node,
    example="remainder(tensor([-7., 7.]), 3)",
)
def remainder(input: Operand, other: Operand) -> Tensor:
    """What is left of a division rounded down: the sign is the divisor's, as Python's ``%``."""


def _fmod(xp: Any, a: Any, b: Any) -> Any:
    if b.dtype.kind in "iu":
        _check_divisor(a, b)
    return xp.fmod(a, b)


@pointwise(
    kernel=_fmod,
    takes="if",
    vjp={
        "input": lambda g: g,
        "other": lambda g, input, other: -g * F.div(input, other, rounding_mode="trunc"),
    },
    variant=lambda input, other: "FmodBackward1" if isinstance(other, Tensor) else "FmodBackward0",
    example="fmod(tensor([-7., 7.]), 3)",
)
def fmod(input: Tensor, other: Operand) -> Tensor:
    """What is left of a division rounded towards zero: the sign is the dividend's."""


@pointwise(ufunc="gcd", takes="i", example="gcd(tensor([4, 6]), tensor([6, 9]))")
def gcd(input: Tensor, other: Tensor) -> Tensor:
    """Greatest common divisor of integers; gcd(0, 0) is 0."""


@pointwise(ufunc="lcm", takes="i", example="lcm(tensor([4, 6]), tensor([6, 9]))")
def lcm(input: Tensor, other: Tensor) -> Tensor:
    """Least common multiple of integers; 0 where one is 0."""
