"""Sign bits, steps and neighbouring numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.dtypes import COMPLEX, DType
from engine.errors import TensorNotImplementedError, TensorRuntimeError
from engine.kinds import BOOL_OUT, INT_TO_FLOAT, comparison, pointwise
from engine.kinds.missing import NODE, no_derivative
from engine.registry import F, function, method
from engine.tensor import Tensor

if TYPE_CHECKING:
    from engine.parameter_types import Operand


def _sign_bits(common: DType) -> tuple[DType, DType]:
    if common.category == COMPLEX:
        raise TensorNotImplementedError("signbit is not implemented for complex tensors.")
    return BOOL_OUT(common)


@comparison(
    kernel=lambda xp, x: xp.signbit(x) if x.dtype.kind == "f" else x < 0,
    promote=_sign_bits,
    inplace=False,
    example="signbit(tensor([-0., 1.]))",
)
def signbit(input: Tensor) -> Tensor:
    """Where the sign bit is set: negative numbers and -0."""


def _copied_slope(g: Tensor, input: Tensor, y: Tensor) -> Tensor:
    ratio = y / input
    return g * F.where(input == 0, 0, ratio)


@pointwise(
    kernel=lambda xp, a, b: xp.copysign(a, b),
    promote=INT_TO_FLOAT,
    takes="bif",
    vjp={"input": _copied_slope, "other": lambda g, other: F.zeros_like(other)},
    variant=lambda input, other: (
        "CopysignBackward0" if isinstance(other, Tensor) else "CopysignBackward1"
    ),
    example="copysign(tensor([1., 2.]), -1)",
)
def copysign(input: Tensor, other: Operand) -> Tensor:
    """The size of ``input`` with the sign of ``other``; the gradient at 0 is 0."""


def _check_steps(input: Tensor, values: Tensor) -> None:
    if input.dtype.is_complex or values.dtype.is_complex:
        raise TensorRuntimeError("heaviside is not yet implemented for complex tensors.")
    if input.dtype is not values.dtype:
        raise TensorRuntimeError(
            "heaviside is not yet implemented for tensors with different dtypes."
        )


@pointwise(
    kernel=lambda xp, x, v: xp.where(x == 0, v, (x > 0).astype(x.dtype)),
    refuse=_check_steps,
    vjp=dict.fromkeys(("input", "values"), no_derivative("heaviside")),
    node=NODE,
    example="heaviside(tensor([-1., 0., 1.]), tensor(0.5))",
)
def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """0 below 0, 1 above, ``values`` at 0; it has no derivative."""


@pointwise(
    kernel=lambda xp, a, b: xp.nextafter(a, b),
    promote=lambda common: (common, common),
    takes="f",
    vjp={
        "input": lambda g, input, other: F.where(input == other, 0, g),
        "other": lambda g: F.zeros_like(g),
    },
    example="nextafter(tensor([1.]), tensor([2.]))",
)
def nextafter(input: Tensor, other: Tensor) -> Tensor:
    """The next number of the dtype from ``input`` in the direction of ``other``."""


@method("positive")
@function("positive")
def positive(input: Tensor) -> Tensor:
    """The tensor itself (Python's ``+x``); booleans are refused."""
    if input.dtype.is_bool:
        raise TensorRuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input
