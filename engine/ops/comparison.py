"""Comparisons, larger and smaller of two, and questions about kinds of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine.dtypes import COMPLEX, FLOAT, INT, DType
from engine.errors import NoDataError, TensorRuntimeError
from engine.kinds import (
    BOOL_OUT,
    COMPARED,
    comparison,
    composite,
    kernel,
    made,
    pointwise,
    working,
)
from engine.plain_calls import check_tensor
from engine.registry import F, function, method, ops
from engine.tensor import Tensor, number

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.parameter_types import Operand


@comparison(
    ufunc="equal", erases=True, promote=COMPARED, takes="bifcu8", example="eq(tensor([1, 2]), 2)"
)
def eq(input: Tensor, other: Operand) -> Tensor:
    """Where the elements are equal; NaN equals nothing."""


@comparison(
    ufunc="not_equal",
    erases=True,
    promote=COMPARED,
    takes="bifcu8",
    aliases=("not_equal",),
    example="ne(tensor([1, 2]), 2)",
)
def ne(input: Tensor, other: Operand) -> Tensor:
    """Where the elements differ; NaN differs from everything."""


@comparison(
    ufunc="less",
    erases=True,
    promote=COMPARED,
    takes="bif",
    aliases=("less",),
    example="lt(tensor([1, 2]), 2)",
)
def lt(input: Tensor, other: Operand) -> Tensor:
    """Where the first is below the second."""


@comparison(
    ufunc="less_equal",
    erases=True,
    promote=COMPARED,
    takes="bif",
    aliases=("less_equal",),
    example="le(tensor([1, 2]), 2)",
)
def le(input: Tensor, other: Operand) -> Tensor:
    """Where the first is not above the second."""


@comparison(
    ufunc="greater",
    erases=True,
    promote=COMPARED,
    takes="bif",
    aliases=("greater",),
    example="gt(tensor([1, 2]), 1)",
)
def gt(input: Tensor, other: Operand) -> Tensor:
    """Where the first is above the second."""


@comparison(
    ufunc="greater_equal",
    erases=True,
    promote=COMPARED,
    takes="bif",
    aliases=("greater_equal",),
    example="ge(tensor([1, 2]), 2)",
)
def ge(input: Tensor, other: Operand) -> Tensor:
    """Where the first is not below the second."""


def _keep(condition: Tensor, g: Tensor) -> Tensor:
    return ops["keep_where"].function(g, condition)


def _ordered(name: str) -> Any:
    def refuse(*operands: Any) -> None:
        if any(isinstance(t, Tensor) and t.dtype.is_complex for t in operands):
            raise TensorRuntimeError(f"{name} not implemented for complex tensors.")

    return refuse


def _winner(g: Tensor, wins: Tensor, ties: Tensor) -> Tensor:
    """The gradient of the operand that was chosen; at a tie each gets half."""
    return F.where(ties, g / 2, _keep(wins, g))


def _choice(larger: bool) -> Any:
    def input_slope(g: Tensor, input: Any, other: Any) -> Tensor:
        loses = input < other if larger else input > other
        return _winner(g, ~loses, input == other)

    def other_slope(g: Tensor, input: Any, other: Any) -> Tensor:
        loses = input > other if larger else input < other
        return _winner(g, ~loses, input == other)

    return {"input": input_slope, "other": other_slope}


@pointwise(
    ufunc="maximum",
    refuse=_ordered("maximum"),
    vjp=_choice(True),
    inplace=False,
    example="maximum(tensor([1., 5.]), tensor([3., 2.]))",
)
def maximum(input: Tensor, other: Tensor) -> Tensor:
    """The larger of two; NaN where one is NaN. At a tie each gets half of the gradient."""


@pointwise(
    ufunc="minimum",
    refuse=_ordered("minimum"),
    vjp=_choice(False),
    inplace=False,
    example="minimum(tensor([1., 5.]), tensor([3., 2.]))",
)
def minimum(input: Tensor, other: Tensor) -> Tensor:
    """The smaller of two; NaN where one is NaN. At a tie each gets half of the gradient."""


@pointwise(
    ufunc="fmax",
    refuse=_ordered("fmax"),
    vjp={
        "input": lambda g, input, other: _keep((input >= other) | other.isnan(), g),
        "other": lambda g, input, other: _keep(~((input >= other) | other.isnan()), g),
    },
    inplace=False,
    example="fmax(tensor([nan, 5.]), tensor([3., nan]))",
)
def fmax(input: Tensor, other: Tensor) -> Tensor:
    """The larger of two; a NaN gives way to a number."""


@pointwise(
    ufunc="fmin",
    refuse=_ordered("fmin"),
    vjp={
        "input": lambda g, input, other: _keep((input <= other) | other.isnan(), g),
        "other": lambda g, input, other: _keep(~((input <= other) | other.isnan()), g),
    },
    inplace=False,
    example="fmin(tensor([nan, 5.]), tensor([3., nan]))",
)
def fmin(input: Tensor, other: Tensor) -> Tensor:
    """The smaller of two; a NaN gives way to a number."""


@comparison(
    kernel=lambda xp, x: x != x, takes="bifcu8", inplace=False, example="isnan(tensor([nan, 1.]))"
)
def isnan(input: Tensor) -> Tensor:
    """Where the element is NaN."""


def _strides_but_of_floats(input: Tensor) -> str:
    return "operand" if input.dtype.is_floating_point else "always"


@comparison(
    kernel=lambda xp, x: xp.isinf(x) if x.dtype.kind in "fc" else xp.zeros(x.shape, bool),
    number_strides=_strides_but_of_floats,
    takes="bifcu8",
    inplace=False,
    example="isinf(tensor([inf, 1.]))",
)
def isinf(input: Tensor) -> Tensor:
    """Where the element is infinite."""


@comparison(
    kernel=lambda xp, x: xp.isfinite(x) if x.dtype.kind in "fc" else xp.ones(x.shape, bool),
    number_strides=_strides_but_of_floats,
    takes="bifcu8",
    inplace=False,
    example="isfinite(tensor([inf, 1., nan]))",
)
def isfinite(input: Tensor) -> Tensor:
    """Where the element is neither infinite nor NaN."""


def _signed_inf(name: str) -> Any:
    def promote(common: DType) -> tuple[DType, DType]:
        if common.category == COMPLEX:
            raise TensorRuntimeError(f"{name} does not support complex inputs.")
        return BOOL_OUT(common)

    return promote


@comparison(
    kernel=lambda xp, x: x == xp.inf,
    promote=_signed_inf("isposinf"),
    inplace=False,
    example="isposinf(tensor([inf, -inf]))",
)
def isposinf(input: Tensor) -> Tensor:
    """Where the element is positive infinity."""


@comparison(
    kernel=lambda xp, x: x == -xp.inf,
    promote=_signed_inf("isneginf"),
    inplace=False,
    example="isneginf(tensor([inf, -inf]))",
)
def isneginf(input: Tensor) -> Tensor:
    """Where the element is negative infinity."""


@comparison(
    kernel=lambda xp, x: x.imag == 0 if x.dtype.kind == "c" else xp.ones(x.shape, bool),
    number_strides="always",
    inplace=False,
    example="isreal(tensor([1+1j, 1+0j]))",
)
def isreal(input: Tensor) -> Tensor:
    """Where the imaginary part is 0."""


def _check_close(input: Tensor, other: Tensor) -> None:
    if input.dtype is not other.dtype:
        raise TensorRuntimeError(f"{input.dtype.title} did not match {other.dtype.title}")


def _close(xp: Any, a: Any, b: Any, rtol: float, atol: float, equal_nan: bool) -> Any:
    if rtol < 0:
        raise TensorRuntimeError(
            f"rtol must be greater than or equal to zero, but got {_short(rtol)}"
        )
    if atol < 0:
        raise TensorRuntimeError(
            f"atol must be greater than or equal to zero, but got {_short(atol)}"
        )
    close = a == b
    if equal_nan:
        close = close | ((a != a) & (b != b))
    if a.dtype.kind in "biu":
        a, b = a.astype("float64"), b.astype("float64")
        if rtol == 0 and atol == 0:
            return close
    allowed = a.real.dtype.type(atol) + xp.absolute(a.real.dtype.type(rtol) * b)
    gap = xp.absolute(a - b)
    return close | (xp.isfinite(gap) & (gap <= allowed))


def _short(value: float) -> str:
    return f"{value:g}"


@comparison(
    kernel=_close,
    refuse=_check_close,
    inplace=False,
    example="isclose(tensor([1., 2.]), tensor([1., 2.1]))",
)
def isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Where ``|input - other| <= atol + rtol * |other|``; two infinities of one sign are close."""


@composite(out=False, data_dependent=True, example="allclose(tensor([1., 2.]), tensor([1., 2.]))")
def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Whether all elements are close (see isclose)."""
    return bool(number(F.isclose(input, other, rtol, atol, equal_nan).all()))


@composite(out=False, data_dependent=True, example="equal(tensor([1, 2]), tensor([1, 2]))")
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and equal elements; NaN is never equal."""
    if input.layout.shape != other.layout.shape:
        return False
    if input.array is None:
        raise NoDataError("equal")
    return bool((F.eq(input, other).array).all())


@composite(out=False, data_dependent=True, example="is_nonzero(tensor([1.]))")
def is_nonzero(input: Tensor) -> bool:
    """Whether the one element is not 0."""
    if input.layout.numel != 1:
        many = "more than one value" if input.layout.numel else "no values"
        raise TensorRuntimeError(f"Boolean value of Tensor with {many} is ambiguous")
    return bool(number(input))


@function("is_same_size")
@method("is_same_size")
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape."""
    check_tensor("is_same_size", "other", 2, other)
    return input.layout.shape == other.layout.shape


def _check_elements(*values: Any) -> None:
    for value in values:
        if isinstance(value, Tensor) and value.dtype.category not in (INT, FLOAT):
            raise TensorRuntimeError(
                f"Unsupported input type encountered for isin(): {value.dtype.title}"
            )


@kernel(method=False, example="isin(tensor([1, 2, 3]), tensor([2, 4]))")
def isin(
    elements: Operand,
    test_elements: Operand,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> Made:
    """Where an element is among ``test_elements``."""
    _check_elements(elements, test_elements)
    shape = elements.layout.shape if isinstance(elements, Tensor) else ()

    def run(xp: Any) -> Any:
        a, b = (
            working(v) if isinstance(v, Tensor) else xp.asarray(v)
            for v in (elements, test_elements)
        )
        return xp.isin(a, b, invert=invert)

    return made(dtypes.bool_, shape, run)
