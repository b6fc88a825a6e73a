"""Sums, products, signs and interpolation of numbers, element by element."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.dtypes import BOOL, COMPLEX, FLOAT, INT, DType, real_of
from engine.errors import TensorNotImplementedError, TensorRuntimeError
from engine.kinds import DEFAULT, composite, pointwise
from engine.kinds.conjugate import conj
from engine.registry import F, ops
from engine.tensor import Tensor

if TYPE_CHECKING:
    from engine.parameter_types import Operand, Scalar

_NEGATION = (
    "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a "
    "mask, use the `~` or `logical_not()` operator instead."
)
_TWO_MASKS = (
    "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
    "`logical_xor()` operator instead."
)
_ONE_MASK = (
    "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to "
    "invert a mask, use the `~` or `logical_not()` operator instead."
)


def _zero(g: Tensor) -> Tensor:
    return F.zeros_like(g)


def is_bool(value: Any) -> bool:
    """Whether an operand is a boolean tensor or number."""
    return value.dtype.is_bool if isinstance(value, Tensor) else value.__class__ is bool


def _check_alpha(alpha: Any, common: DType) -> None:
    if alpha.__class__ is bool and common.category != BOOL:
        raise TensorRuntimeError("Boolean alpha only supported for Boolean results.")
    if alpha.__class__ is float and common.category <= INT:
        raise TensorRuntimeError(
            "For integral input tensors, argument alpha must not be a floating point number."
        )
    if alpha.__class__ is complex and common.category != COMPLEX:
        raise TensorRuntimeError(
            "For non-complex input tensors, argument alpha must not be a complex number."
        )


def _scaled(xp: Any, b: Any, alpha: Any) -> Any:
    dtype = b.dtype
    if dtype.kind == "b":
        return b & bool(alpha)
    _check_alpha(alpha, _CATEGORY_SAMPLES[dtype.kind])
    if dtype.kind in "iu":
        return b * xp.array(int(alpha), "int64").astype(dtype)
    return b * dtype.type(alpha)


def _fused(xp: Any, ufunc: Any, a: Any, b: Any, alpha: Any) -> Any:
    """PyTorch's float32 kernels multiply and add with one rounding; float64 does so here."""
    if b.dtype == "float32" and alpha.__class__ is float:
        number = xp.float32(alpha).astype("float64")
        return ufunc(a.astype("float64"), b.astype("float64") * number).astype("float32")
    return ufunc(a, _scaled(xp, b, alpha))


class _Category:
    def __init__(self, category: int):
        self.category = category


_CATEGORY_SAMPLES: dict[str, Any] = {
    "i": _Category(INT), "u": _Category(INT), "f": _Category(FLOAT), "c": _Category(COMPLEX),
}  # fmt: skip


def _refuse_masks(input: Any, other: Any, alpha: Any = 1) -> None:
    if not is_bool(input) and not is_bool(other):
        return
    raise TensorRuntimeError(_TWO_MASKS if is_bool(input) and is_bool(other) else _ONE_MASK)


def _with_alpha(name: str) -> Any:
    def otherwise(input: Any, other: Any, alpha: Any) -> Any:
        # True and 1.0 equal 1 and are refused for some dtypes.
        return None if alpha.__class__ is int and alpha == 1 else (name, (input, other, alpha))

    return otherwise


@pointwise(
    ufunc="add",
    numbers=True,
    stub="add_stub",
    vjp={"input": lambda g: g, "other": lambda g: g},
    otherwise=_with_alpha("add_scaled"),
    example="add(tensor([1.]), 2)",
)
def add(input: Operand, other: Operand, *, alpha: Scalar = 1) -> Tensor:
    """Sum, element by element; with ``alpha`` the second operand is multiplied by it first.

    Booleans: logical or.
    """


@pointwise(
    kernel=lambda xp, a, b, alpha: _fused(xp, xp.add, a, b, alpha),
    stub="add_stub",
    vjp={"input": lambda g: g, "other": lambda g, alpha: g * conj(alpha)},
    function=False,
    method=False,
    named_inplace=False,
    node="AddBackward0",
    example="add(tensor([1.]), tensor([2.]), alpha=3)",
)
def add_scaled(input: Operand, other: Operand, alpha: Scalar) -> Tensor:
    """``input + alpha * other``."""


@pointwise(
    ufunc="subtract",
    stub="add_stub",
    refuse=_refuse_masks,
    vjp={"input": lambda g: g, "other": lambda g: -g},
    numbers=True,
    otherwise=_with_alpha("sub_scaled"),
    aliases=("subtract",),
    example="sub(tensor([1.]), 2)",
)
def sub(input: Operand, other: Operand, *, alpha: Scalar = 1) -> Tensor:
    """Difference, element by element; with ``alpha`` the second operand is multiplied by it.

    Booleans are refused.
    """


@pointwise(
    kernel=lambda xp, a, b, alpha: _fused(xp, xp.subtract, a, b, alpha),
    stub="add_stub",
    refuse=_refuse_masks,
    vjp={"input": lambda g: g, "other": lambda g, alpha: -g * conj(alpha)},
    function=False,
    method=False,
    named_inplace=False,
    node="SubBackward0",
    example="sub(tensor([1.]), tensor([2.]), alpha=3)",
)
def sub_scaled(input: Operand, other: Operand, alpha: Scalar) -> Tensor:
    """``input - alpha * other``."""


def _rsub_node(other: Any, input: Any, alpha: Any = 1) -> str:
    return "RsubBackward0" if isinstance(other, Tensor) else "RsubBackward1"


@pointwise(
    ufunc="subtract",
    stub="add_stub",
    refuse=_refuse_masks,
    vjp={"other": lambda g: g, "input": lambda g: -g},
    variant=_rsub_node,
    function=False,
    method=False,
    inplace=False,
    example="rsub(tensor([1.]), 2)",
)
def rsub_plain(other: Operand, input: Tensor) -> Tensor:
    """``other - input``: what Python's ``2 - x`` is recorded as."""


@pointwise(
    kernel=lambda xp, a, b, alpha: _fused(xp, xp.subtract, a, b, alpha),
    stub="add_stub",
    refuse=_refuse_masks,
    vjp={"other": lambda g: g, "input": lambda g, alpha: -g * conj(alpha)},
    variant=_rsub_node,
    function=False,
    method=False,
    inplace=False,
    example="rsub(tensor([1.]), tensor([2.]), alpha=3)",
)
def rsub_scaled(other: Operand, input: Tensor, alpha: Scalar) -> Tensor:
    """``other - alpha * input``."""


@composite(method=False, example="rsub(tensor([1.]), 2)")
def rsub(input: Tensor, other: Operand, alpha: Scalar = 1) -> Tensor:
    """``other - alpha * input``."""
    if alpha.__class__ is int and alpha == 1:
        return ops["rsub_plain"].function(other, input)
    return ops["rsub_scaled"].function(other, input, alpha)


@pointwise(
    ufunc="multiply",
    numbers=True,
    stub="mul_cpu",
    exact_last=True,
    takes="bifcu",
    vjp={"input": lambda g, other: g * conj(other), "other": lambda g, input: g * conj(input)},
    aliases=("multiply",),
    example="mul(tensor([1., 2.]), tensor([3., 4.]))",
)
def mul(input: Operand, other: Operand) -> Tensor:
    """Product, element by element. Booleans: logical and."""


def _signed(common: DType) -> tuple[DType, DType]:
    if common.category == BOOL:
        raise TensorRuntimeError(_NEGATION)
    return DEFAULT(common)


@pointwise(
    ufunc="negative",
    promote=_signed,
    vjp=lambda g: -g,
    aliases=("negative",),
    example="neg(tensor([1., -2.]))",
)
def neg(input: Tensor) -> Tensor:
    """The elements with the opposite sign; unsigned integers wrap, booleans are refused."""


def _magnitude(common: DType) -> tuple[DType, DType]:
    if common.category == COMPLEX:
        return common, real_of(common)
    return DEFAULT(common)


def _refuse_complex_abs(input: Tensor) -> None:
    if input.dtype.is_complex:
        raise TensorRuntimeError("In-place abs is not supported for complex tensors.")


@pointwise(
    ufunc="absolute",
    promote=_magnitude,
    takes="ifc8",
    refuse_inplace=_refuse_complex_abs,
    number_strides=lambda input: "always" if input.dtype.is_complex else "operand",
    vjp=lambda g, input: g * input.sgn(),
    aliases=("absolute",),
    example="abs(tensor([-1., 2.]))",
)
def abs(input: Tensor) -> Tensor:
    """Absolute value; of complex numbers the (real) distance from 0. The gradient at 0 is 0."""


def _sign(xp: Any, x: Any) -> Any:
    """-1, 0 or 1; NaN counts as 0, as it is neither above nor below."""
    if x.dtype.kind == "b":
        return xp.array(x)
    if x.dtype.kind == "c":
        size = xp.absolute(x)
        return xp.where(size == 0, 0, x / xp.where(size == 0, 1, size)).astype(x.dtype)
    if x.dtype.kind == "f":
        return xp.subtract(x > 0, x < 0, dtype="int8").astype(x.dtype)
    return xp.sign(x)


def _real_only(common: DType) -> tuple[DType, DType]:
    if common.category == COMPLEX:
        raise TensorNotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use "
            "torch.sgn instead."
        )
    return DEFAULT(common)


@pointwise(kernel=_sign, promote=_real_only, vjp=_zero, example="sign(tensor([-2., 0., 3.]))")
def sign(input: Tensor) -> Tensor:
    """-1, 0 or 1 by the sign of each element; 0 for NaN."""


def _sgn_gradient(g: Tensor, input: Tensor, y: Tensor) -> Tensor:
    if input.kind.dtype.category != COMPLEX:
        return _zero(g)
    size = input.abs()
    slope = ((g / size) - (F.real(g / y) * y / size)) * 1
    return F.where(size == 0, 0, slope)


@pointwise(kernel=_sign, vjp=_sgn_gradient, stub="sign_cpu", example="sgn(tensor([3+4j]))")
def sgn(input: Tensor) -> Tensor:
    """The sign; of a complex number the number divided by its absolute value, 0 at 0."""


def _check_same(input: Tensor, end: Any, weight: Any) -> None:
    for what, value in (("end", end), ("weight", weight)):
        scalar = what == "weight" and isinstance(value, Tensor) and value.ndim == 0
        if isinstance(value, Tensor) and value.dtype is not input.dtype and not scalar:
            raise TensorRuntimeError(
                f"expected dtype {input.dtype.c_type} for `{what}` but got dtype "
                f"{value.dtype.c_type}"
            )


def _lerp(xp: Any, a: Any, b: Any, w: Any) -> Any:
    """From the nearer end, so that both ends come out exactly."""
    w = xp.asarray(w).astype(a.dtype, copy=False)
    step = b - a
    near = xp.absolute(w) < 0.5
    return xp.where(near, a + w * step, b - step * (1 - w))


@pointwise(
    kernel=_lerp,
    takes="fc",
    stub="lerp_kernel_scalar",
    refuse=_check_same,
    promoted=("input", "end"),
    exact_last=True,
    number_strides="inner",
    vjp={
        "input": lambda g, weight: g * conj(1 - weight),
        "end": lambda g, weight: g * conj(weight),
        "weight": lambda g, input, end: g * conj(end - input),
    },
    variant=lambda input, end, weight: (
        "LerpBackward1" if isinstance(weight, Tensor) else "LerpBackward0"
    ),
    example="lerp(tensor([0.]), tensor([10.]), 0.5)",
)
def lerp(input: Tensor, end: Tensor, weight: Operand) -> Tensor:
    """The point at ``weight`` of the way from ``input`` to ``end``."""


def _times(xp: Any, value: Any, array: Any) -> Any:
    if array.dtype.kind in "iu":
        return array * xp.array(int(value), "int64").astype(array.dtype)
    return array * array.dtype.type(value)


@pointwise(
    kernel=lambda xp, a, b, c, value: a + _times(xp, value, b) * c,
    takes="ifc",
    stub="addcmul_cpu_out",
    vjp={
        "input": lambda g: g,
        "tensor1": lambda g, tensor2, value: g * conj(tensor2 * value),
        "tensor2": lambda g, tensor1, value: g * conj(tensor1 * value),
    },
    example="addcmul(tensor([1.]), tensor([2.]), tensor([3.]), value=10)",
)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor:
    """``input + value * tensor1 * tensor2``."""


def _refuse_integer_division(input: Any, tensor1: Any, tensor2: Any) -> None:
    if all(t.dtype.category <= INT for t in (tensor1, tensor2)):
        raise TensorRuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release "
            "addcdiv will perform a true division of tensor1 and tensor2. The historic addcdiv "
            "behavior can be implemented as (input + value * torch.trunc(tensor1 / tensor2))."
            "to(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) for "
            "float inputs. The future addcdiv behavior is just the latter implementation: (input "
            "+ value * tensor1 / tensor2), for all dtypes."
        )


@pointwise(
    kernel=lambda xp, a, b, c, value: a + _times(xp, value, b) / c,
    takes="fc",
    refuse=_refuse_integer_division,
    stub="addcdiv_cpu_out",
    vjp={
        "input": lambda g: g,
        "tensor1": lambda g, tensor2, value: g * conj(value / tensor2),
        "tensor2": lambda g, tensor1, tensor2, value: (
            -g * conj(value * tensor1 / (tensor2 * tensor2))
        ),
    },
    example="addcdiv(tensor([1.]), tensor([6.]), tensor([3.]), value=10)",
)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor:
    """``input + value * tensor1 / tensor2``; two integer tensors are refused."""
