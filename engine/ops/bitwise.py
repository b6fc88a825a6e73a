"""Logic on truth values and on the bits of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.kinds import comparison, pointwise

if TYPE_CHECKING:
    from engine.parameter_types import Operand
    from engine.tensor import Tensor


@pointwise(ufunc="bitwise_and", takes="biu", example="bitwise_and(tensor([6]), 3)")
def bitwise_and(input: Operand, other: Operand) -> Tensor:
    """The bits set in both; of booleans: and."""


@pointwise(ufunc="bitwise_or", takes="biu", example="bitwise_or(tensor([6]), 3)")
def bitwise_or(input: Operand, other: Operand) -> Tensor:
    """The bits set in one or both; of booleans: or."""


@pointwise(ufunc="bitwise_xor", takes="biu", example="bitwise_xor(tensor([6]), 3)")
def bitwise_xor(input: Operand, other: Operand) -> Tensor:
    """The bits set in just one; of booleans: unequal."""


@pointwise(ufunc="invert", takes="bi", example="bitwise_not(tensor([True, False]))")
def bitwise_not(input: Tensor) -> Tensor:
    """Every bit the other way; of booleans: not."""


def _shift(left: bool) -> Any:
    def kernel(xp: Any, a: Any, b: Any) -> Any:
        """Shifts by a negative number or by all bits give what shifting every bit out gives."""
        bits = a.dtype.itemsize * 8
        out = (b < 0) | (b >= bits)
        by = xp.where(out, 0, b).astype(a.dtype)
        if left:
            return xp.where(out, 0, xp.left_shift(a, by)).astype(a.dtype)
        gone = xp.right_shift(a, a.dtype.type(bits - 1)) if a.dtype.kind == "i" else 0
        return xp.where(out, gone, xp.right_shift(a, by)).astype(a.dtype)

    return kernel


@pointwise(
    kernel=_shift(True), takes="i", stub="lshift_cpu", example="bitwise_left_shift(tensor([1]), 3)"
)
def bitwise_left_shift(input: Operand, other: Operand) -> Tensor:
    """The bits moved up by ``other`` places."""


@pointwise(
    kernel=_shift(False),
    takes="i",
    stub="rshift_cpu",
    example="bitwise_right_shift(tensor([8]), 2)",
)
def bitwise_right_shift(input: Operand, other: Operand) -> Tensor:
    """The bits moved down by ``other`` places; the sign is kept."""


@comparison(
    kernel=lambda xp, a, b: xp.logical_and(a, b),
    example="logical_and(tensor([1, 0]), tensor([1, 1]))",
)
def logical_and(input: Tensor, other: Tensor) -> Tensor:
    """Where both are nonzero."""


@comparison(
    kernel=lambda xp, a, b: xp.logical_or(a, b),
    example="logical_or(tensor([1, 0]), tensor([0, 0]))",
)
def logical_or(input: Tensor, other: Tensor) -> Tensor:
    """Where one or both are nonzero."""


@comparison(
    kernel=lambda xp, a, b: xp.logical_xor(a, b),
    example="logical_xor(tensor([1, 0]), tensor([1, 1]))",
)
def logical_xor(input: Tensor, other: Tensor) -> Tensor:
    """Where just one is nonzero."""


@comparison(kernel=lambda xp, a: xp.logical_not(a), example="logical_not(tensor([1, 0]))")
def logical_not(input: Tensor) -> Tensor:
    """Where the element is zero."""
