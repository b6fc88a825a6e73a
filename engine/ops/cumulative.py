"""Running sums, products and extremes along a dimension, and differences between neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine import dtypes
from engine.errors import TensorIndexError, TensorRuntimeError
from engine.kinds import kernel, made, working
from engine.kinds.composite import composite, overloaded
from engine.kinds.conjugate import conj
from engine.kinds.reduction import TO_INT64, check_takes
from engine.kinds.results import cast
from engine.kinds.twins import by_number
from engine.layout import wrap_dim
from engine.registry import F
from engine.summing import running
from engine.tensor import kind_of

if TYPE_CHECKING:
    from engine.dtypes import DType
    from engine.kinds import Made
    from engine.parameter_types import Dim, Scalar
    from engine.tensor import Tensor

# PyTorch carries the running value in the wider type.
_CARRY = {"f": "float64", "F": "complex128"}


def _running(input: Tensor, dim: int, dtype: DType | None, ufunc: str, stub: str) -> Made:
    d = wrap_dim(dim, input.ndim)
    final = dtype or TO_INT64(input.dtype)
    check_takes("ifcu", stub, final)

    def run(xp: Any) -> Any:
        x = cast(input.array, kind_of(dtypes.compute_dtype(final), input.device))
        if not x.ndim:
            return x
        if ufunc == "add":
            return running(xp, x, d)
        carry = _CARRY.get(x.dtype.char)
        return getattr(xp, ufunc).accumulate(x, axis=d, dtype=carry)

    return made(final, input.layout.shape, run)


def _sum_gradient(g: Tensor, dim: int) -> Any:
    if g.layout.numel <= 1 or g.layout.shape[dim] == 1:
        return g
    return g.flip(dim).cumsum(dim).flip(dim)


@kernel(vjp=_sum_gradient, inplace=True, example="cumsum(tensor([1., 2., 3.]), 0)")
def cumsum(input: Tensor, dim: Dim, *, dtype: DType | None = None) -> Made:
    """Running sums along ``dim``; integers and booleans add up in int64.

    The running value is carried in float64 for float32.
    """
    return _running(input, dim, dtype, "add", "cumsum_out_cpu")


def _product_gradient(g: Tensor, y: Tensor, input: Tensor, dim: int) -> Any:
    if input.layout.numel <= 1 or input.layout.shape[dim] == 1:
        return g
    if not F.any(input == 0).item():
        return _sum_gradient(g * conj(y), dim) / conj(input)
    return _product_gradient_at_zeros(g, input, dim)


def _product_gradient_at_zeros(g: Tensor, input: Tensor, dim: int) -> Any:
    """Element by element from the end: what follows an element is g + next × what follows next."""
    n = input.layout.shape[dim]
    one = F.ones_like(input.select(dim, 0))
    before = [one]
    for i in range(n - 1):
        before.append(before[-1] * input.select(dim, i))
    behind = g.select(dim, n - 1)
    parts = [behind * conj(before[n - 1])]
    for i in range(n - 2, -1, -1):
        behind = g.select(dim, i) + conj(input.select(dim, i + 1)) * behind
        parts.append(behind * conj(before[i]))
    return F.stack(tuple(parts[::-1]), dim)


@kernel(vjp=_product_gradient, inplace=True, example="cumprod(tensor([1., 2., 3.]), 0)")
def cumprod(input: Tensor, dim: Dim, *, dtype: DType | None = None) -> Made:
    """Running products along ``dim``; the gradient is right where elements are 0, too."""
    return _running(input, dim, dtype, "multiply", "cumprod_out_cpu")


def _log_running(xp: Any, x: Any, axis: int) -> Any:
    if x.dtype.kind != "c":
        return xp.logaddexp.accumulate(x, axis=axis, dtype="float64")
    x = xp.moveaxis(x.astype("complex128"), axis, 0)
    y = xp.empty_like(x)
    for i in range(len(x)):
        if i == 0:
            y[0] = x[0]
            continue
        first_larger = y[i - 1].real >= x[i].real
        high = xp.where(first_larger, y[i - 1], x[i])
        low = xp.where(first_larger, x[i], y[i - 1])
        equal_inf = xp.isinf(low.real) & (low.real == high.real)
        away = xp.where(equal_inf, 0, low - high)
        endless = xp.where(low.real < 0, low, xp.log(xp.exp(low) + xp.exp(high)))
        y[i] = xp.where(equal_inf, endless, xp.log1p(xp.exp(away)) + high)
    return xp.moveaxis(y, 0, axis)


def _log_gradient(g: Tensor, y: Tensor, input: Tensor, dim: int) -> Any:
    if input.layout.numel == 0:
        return g

    def backwards(t: Tensor) -> Any:
        return t.flip(dim).logcumsumexp(dim).flip(dim)

    if input.dtype.is_complex:
        return conj((backwards(conj(g).log() - y) + input).exp())
    least = float(np.finfo(input.dtype.np).min) if not input.dtype.low else -60000.0
    size = g.abs().log()
    up = (backwards(F.where(g > 0, size, least) - y) + input).exp()
    down = (backwards(F.where(g < 0, size, least) - y) + input).exp()
    return up - down


@kernel(vjp=_log_gradient, example="logcumsumexp(tensor([1., 2., 3.]), 0)")
def logcumsumexp(input: Tensor, dim: Dim) -> Made:
    """Running logarithms of sums of exponentials along ``dim``."""
    d = wrap_dim(dim, input.ndim)
    check_takes("fc", "logcumsumexp_out_cpu", input.dtype)

    def run(xp: Any) -> Any:
        x = working(input)
        return _log_running(xp, x, d) if x.ndim and x.size else x

    return made(input.dtype, input.layout.shape, run)


def _picked_gradient(g: Any, y: Any, input_shape: Any, dim: int) -> Any:
    if not input_shape:
        return g[0]
    return g[0].new_zeros(input_shape).scatter_add(dim, y[1], g[0])


def _running_extreme(input: Tensor, dim: int, name: str) -> tuple[Made, ...]:
    d = wrap_dim(dim, input.ndim)
    if input.ndim and input.layout.numel:
        check_takes("bif", f"cum{name}_cpu", input.dtype)
    shape = input.layout.shape

    def run(xp: Any) -> Any:
        x = working(input)
        if not x.ndim or x.size == 0:
            return [x, xp.zeros(shape, "int64")]
        y = getattr(xp, f"{name}imum").accumulate(x, axis=d)
        count = xp.arange(shape[d]).reshape((-1,) + (1,) * (x.ndim - 1 - d))
        places = xp.where((x == y) | (x != x), count, 0)
        return [y, xp.maximum.accumulate(places, axis=d)]

    return made(input.dtype, shape, run), made(dtypes.int64, shape, run)


@kernel(
    vjp=_picked_gradient, fields=("values", "indices"), example="cummax(tensor([1., 3., 2.]), 0)"
)
def cummax(input: Tensor, dim: Dim) -> tuple[Made, ...]:
    """The largest element so far and its place (the latest of equals); nan stays."""
    return _running_extreme(input, dim, "max")


@kernel(
    vjp=_picked_gradient, fields=("values", "indices"), example="cummin(tensor([3., 1., 2.]), 0)"
)
def cummin(input: Tensor, dim: Dim) -> tuple[Made, ...]:
    """The smallest element so far and its place (the latest of equals); nan stays."""
    return _running_extreme(input, dim, "min")


def _copy(x: Any) -> Tensor:
    y: Tensor = F.zeros_like(x).copy_(x)
    return y


@composite(example="diff(tensor([1., 4., 9.]))")
def diff(
    input: Tensor,
    n: int = 1,
    dim: Dim = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Differences between neighbours along ``dim``, ``n`` times over; exclusive or for booleans."""
    if input.ndim == 0:
        raise TensorRuntimeError("diff expects input to be at least one-dimensional")
    d = wrap_dim(dim, input.ndim)
    if n < 0:
        raise TensorRuntimeError(f"order must be non-negative but got {n}")
    parts = [input]
    for t, first in ((prepend, True), (append, False)):
        if t is not None:
            _check_joined(input, t, d)
            parts.insert(0 if first else len(parts), t)
    if n == 0:
        return _copy(input)
    x: Tensor = F.cat(tuple(parts), d) if len(parts) > 1 else input
    for _ in range(min(n, x.layout.shape[d])):
        rest = x.layout.shape[d] - 1
        later, earlier = x.narrow(d, 1, rest), x.narrow(d, 0, rest)
        x = F.logical_xor(later, earlier) if x.dtype.is_bool else later - earlier
    return x


def _check_joined(input: Tensor, t: Tensor, d: int) -> None:
    if t.ndim != input.ndim:
        raise TensorRuntimeError("diff expects prepend or append to be the same dimension as input")
    for i, (size, other) in enumerate(zip(input.layout.shape, t.layout.shape, strict=True)):
        if i != d and size != other:
            raise TensorRuntimeError(
                "diff expects the shape of tensor to prepend or append to match that of input "
                f"except along the differencing dimension; input.size({i}) = {size}, but got "
                f"tensor.size({i}) = {other}"
            )


def _areas(y: Tensor, x: Any, dim: int, name: str) -> tuple[Any, int]:
    """Twice the areas between neighbours, and the dimension counted from the front."""
    running = name != "trapezoid"
    if y.ndim == 0 and not running:
        raise TensorIndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    d = wrap_dim(dim, y.ndim)
    size = y.layout.shape[d] if y.ndim else 1
    if size == 0 and not running:
        return None, d
    if y.dtype.is_bool:
        raise TensorRuntimeError(
            f"{name}: received a bool input for `y`, but bool is not supported"
        )
    if y.ndim == 0:
        raise TensorIndexError("slice() cannot be applied to a 0-dim tensor.")
    rest = max(size - 1, 0)
    pair = y.narrow(d, size - rest, rest) + y.narrow(d, 0, rest)
    if not hasattr(x, "layout"):
        return pair, d
    if x.dtype.is_bool:
        raise TensorRuntimeError(
            f"{name}: received a bool input for `x`, but bool is not supported"
        )
    if x.ndim == 0:
        raise TensorRuntimeError(f"{name}: There must be one `x` value for each sample point")
    if x.ndim == 1:
        if x.layout.shape[0] != y.layout.shape[d]:
            raise TensorRuntimeError(f"{name}: There must be one `x` value for each sample point")
        steps = x.diff().reshape((-1,) + (1,) * (y.ndim - 1 - d))
        return pair * steps, d
    shaped = x if x.ndim >= y.ndim else x.reshape((1,) * (y.ndim - x.ndim) + tuple(x.shape))
    return pair * shaped.diff(1, d), d


@composite(name="_x.trapezoid", function=False, method=False)
def _trapezoid_at(y: Tensor, x: Tensor, *, dim: Dim = -1) -> Any:
    pair, d = _areas(y, x, dim, "trapezoid")
    if pair is None:
        return _nothing(y, d)
    return by_number(pair.sum(d) / 2.0)


@composite(name="_dx.trapezoid", function=False, method=False)
def _trapezoid_even(y: Tensor, *, dx: Scalar = 1, dim: Dim = -1) -> Any:
    pair, d = _areas(y, None, dim, "trapezoid")
    if pair is None:
        return _nothing(y, d)
    ends = by_number((y.select(d, 0) + y.select(d, -1)) * 0.5)
    return by_number((y.sum(d) - ends) * dx)


def _nothing(y: Tensor, d: int) -> Any:
    shape = y.layout.shape
    return y.new_zeros(shape[:d] + shape[d + 1 :])


@composite(name="_x.cumulative_trapezoid", function=False, method=False)
def _running_trapezoid_at(y: Tensor, x: Tensor, *, dim: Dim = -1) -> Any:
    pair, d = _areas(y, x, dim, "cumulative_trapezoid")
    return by_number(pair.cumsum(d) / 2.0)


@composite(name="_dx.cumulative_trapezoid", function=False, method=False)
def _running_trapezoid_even(y: Tensor, *, dx: Scalar = 1, dim: Dim = -1) -> Any:
    pair, d = _areas(y, None, dim, "cumulative_trapezoid")
    return by_number(pair * (dx / 2.0)).cumsum(d)


@overloaded(
    ("_dx.trapezoid", "(Tensor y, *, Number dx = 1, int dim = -1)"),
    ("_x.trapezoid", "(Tensor y, Tensor x, *, int dim = -1)"),
    aliases=("trapz",),
    method=False,
    example="trapezoid(tensor([1., 2., 4.]))",
)
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Scalar = 1, dim: Dim = -1) -> Tensor:
    """The area under points by the trapezoidal rule, spaced by ``dx`` or at ``x``."""
    raise AssertionError("bound, not called")


@overloaded(
    ("_dx.cumulative_trapezoid", "(Tensor y, *, Number dx = 1, int dim = -1)"),
    ("_x.cumulative_trapezoid", "(Tensor y, Tensor x, *, int dim = -1)"),
    method=False,
    example="cumulative_trapezoid(tensor([1., 2., 4.]))",
)
def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: Scalar = 1, dim: Dim = -1
) -> Tensor:
    """Running areas under points by the trapezoidal rule."""
    raise AssertionError("bound, not called")
