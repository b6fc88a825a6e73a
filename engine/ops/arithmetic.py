"""Arithmetic on numbers: sums, products, powers, exponentials and logarithms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import DtypeError
from engine.kinds import INT_TO_FLOAT, pointwise
from engine.kinds.conjugate import conj

if TYPE_CHECKING:
    from engine.tensor import Tensor


@pointwise(
    ufunc="multiply",
    stub="mul_cpu",
    vjp={"input": lambda g, other: g * conj(other), "other": lambda g, input: g * conj(input)},
    aliases=("multiply",),
    example="mul(tensor([1., 2.]), tensor([3., 4.]))",
)
def mul(input: Tensor, other: Operand) -> Tensor:
    """Product, element by element."""


@pointwise(ufunc="negative", vjp=lambda g: -g, aliases=("negative",), example="neg(tensor([1., -2.]))")
def neg(input: Tensor) -> Tensor:
    """The elements with the opposite sign."""


@pointwise(ufunc="exp", vjp=lambda g, y: g * conj(y), promote=INT_TO_FLOAT, example="exp(tensor([0., 1.]))", domain=(-10, 10))
def exp(input: Tensor) -> Tensor:
    """e raised to each element."""


@pointwise(ufunc="add", stub="add_stub", vjp={"input": lambda g: g, "other": lambda g: g}, example="add(tensor([1.]), 2)")
def add(input: Tensor, other: Operand) -> Tensor:
    """Sum, element by element."""

