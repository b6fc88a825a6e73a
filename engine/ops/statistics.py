"""Spread and order statistics: variances, medians, quantiles, modes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine.errors import DtypeError
from engine.kinds import kernel, made, working
from engine.kinds.reduction import reduced_shape
from engine.layout import wrap_dims
from engine.modes import warn
from engine.ops.reductions import average, reduced_count, spread
from engine.overloads import no_overload
from engine.registry import F
from engine.signature import ArgumentError
from engine.summing import squares, total

if TYPE_CHECKING:
    from engine.dtypes import DType
    from engine.kinds import Made
    from engine.parameter_types import Scalar
    from engine.tensor import Tensor

_INF = float("inf")
_FORMS = (
    "(Tensor input, tuple of ints dim, bool unbiased = True, bool keepdim = False, *, "
    "Tensor out = None)",
    "(Tensor input, tuple of ints dim = None, *, Number correction = None, bool keepdim = False, "
    "Tensor out = None)",
    "(Tensor input, bool unbiased = True)",
)


def _dims(input: Tensor, dim: Any, name: str) -> tuple[int, ...]:
    if dim is None or dim == () or dim == []:
        return tuple(range(input.ndim))
    if dim.__class__ is int:
        return wrap_dims((dim,), input.ndim)
    if not isinstance(dim, (tuple, list)):
        raise ArgumentError(
            f"{name}(): argument 'dim' must be tuple of ints, not {type(dim).__name__}", "dim"
        )
    return wrap_dims(dim, input.ndim)


def _given_dims(dim: Any) -> Any:
    """``dim`` as a derivative takes it: None for everything, else a number or a tuple."""
    if dim.__class__ is bool or dim is None or dim == () or dim == []:
        return None
    return tuple(dim) if dim.__class__ is list else dim


def _correction(dim: Any, unbiased: Any, correction: Any) -> Any:
    """How much is taken off the count; ``std(x, False)`` means unbiased, not dim."""
    if dim.__class__ is bool:
        unbiased = dim
    if correction is not None:
        return correction
    return 0 if unbiased is False else 1


class _Moments:
    """What one call computes: dims, count and correction, and the arrays on demand."""

    __slots__ = ("axes", "correction", "dims", "dtype", "input", "n", "shape")

    def __init__(
        self, name: str, input: Tensor, dim: Any, unbiased: Any, keepdim: bool, correction: Any
    ):
        if input.dtype.category <= dtypes.INT:
            which = "std and var" if name in ("std", "var") else name
            raise DtypeError(f"{which} only support floating point and complex dtypes")
        if correction is not None and unbiased is not None:
            raise no_overload(
                name, (input,), {"unbiased": unbiased, "correction": correction}, _FORMS
            )
        self.input = input
        self.correction = _correction(dim, unbiased, correction)
        self.dims = _dims(input, None if dim.__class__ is bool else dim, name)
        self.shape = reduced_shape(input.layout.shape, self.dims, keepdim)
        self.n = reduced_count(input.layout.shape, self.dims) if input.ndim else 1
        self.dtype: DType = dtypes.real_of(input.dtype)
        if self.n - self.correction <= 0:
            warn(
                f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than "
                "the reduction factor (input numel divided by output numel)."
            )

    def run(self, xp: Any) -> tuple[Any, Any]:
        """The variance and the mean."""
        x = working(self.input)
        axes = None if len(self.dims) >= self.input.ndim else self.dims
        mean = average(xp, x, axes)
        kept = xp.reshape(mean, reduced_shape(x.shape, self.dims, True))
        if x.dtype.kind == "c":
            away = x - kept
            summed = total(xp, away.real**2 + away.imag**2, axes)
        else:
            summed = squares(xp, x, axes, kept)
        if axes is not None and mean.size > 1 and x.dtype.kind == "f":
            # PyTorch's running mean of equal numbers is that number, and their variance 0.
            rounding = xp.square(xp.abs(mean) * xp.finfo(x.dtype).eps)
            if x.size and (summed <= 4 * self.n * rounding).any():
                first = x[tuple([slice(0, 1) if d in axes else slice(None) for d in range(x.ndim)])]
                equal = (x == first).all(axis=axes)
                summed = xp.where(equal, summed.dtype.type(0), summed)
                mean = xp.where(equal, first.reshape(mean.shape), mean)
        left = self.n - self.correction
        return summed / xp.asarray(left if left > 0 else 0, summed.dtype), mean


def _variance_gradient(
    g: Tensor, input: Tensor, dim: Any, unbiased: Any, keepdim: bool, correction: Any
) -> Any:
    shape = input.layout.shape
    dims = _given_dims(dim)
    left = reduced_count(shape, dims) - _correction(dim, unbiased, correction)
    over = tuple(range(len(shape))) if dims is None else dims
    away = input - input.mean(over, keepdim=True) if shape else input - input
    g = spread(g, shape, dims, keepdim)
    return g * (2.0 / left if left else _INF) * away


def _deviation_gradient(
    g: Tensor, y: Tensor, input: Tensor, dim: Any, unbiased: Any, keepdim: bool, correction: Any
) -> Any:
    half = F.where(y == 0, F.zeros((), dtype=y.dtype), g / (y * 2))
    return _variance_gradient(half, input, dim, unbiased, keepdim, correction)


@kernel(vjp=_variance_gradient, example="var(tensor([1., 2., 4.]))")
def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Scalar | None = None,
) -> Made:
    """The variance, divided by the count less ``correction`` (1); real for complex input.

    nan where the count is not above the correction. The sum of squares is taken about the mean.
    """
    m = _Moments("var", input, dim, unbiased, keepdim, correction)
    return made(m.dtype, m.shape, lambda xp: m.run(xp)[0])


@kernel(vjp=_deviation_gradient, example="std(tensor([1., 2., 4.]))")
def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Scalar | None = None,
) -> Made:
    """The standard deviation: the square root of ``var``. Its gradient is 0 where it is 0."""
    m = _Moments("std", input, dim, unbiased, keepdim, correction)
    return made(m.dtype, m.shape, lambda xp: xp.sqrt(m.run(xp)[0]))


def _mean_part(
    g: Tensor, input: Tensor, dim: Any, unbiased: Any, keepdim: bool, correction: Any
) -> Any:
    shape = input.layout.shape
    dims = _given_dims(dim)
    return (spread(g, shape, dims, keepdim) / reduced_count(shape, dims)).expand(shape)


def _var_mean_gradient(
    g: Any, input: Tensor, dim: Any, unbiased: Any, keepdim: bool, correction: Any
) -> Any:
    rest = (input, dim, unbiased, keepdim, correction)
    parts = [] if g[0] is None else [_variance_gradient(g[0], *rest)]
    if g[1] is not None:
        parts.append(_mean_part(g[1], *rest))
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


def _std_mean_gradient(
    g: Any, y: Any, input: Tensor, dim: Any, unbiased: Any, keepdim: bool, correction: Any
) -> Any:
    half = (
        None
        if g[0] is None
        else F.where(y[0] == 0, F.zeros((), dtype=y[0].dtype), g[0] / (y[0] * 2))
    )
    return _var_mean_gradient([half, g[1]], input, dim, unbiased, keepdim, correction)


@kernel(vjp=_var_mean_gradient, method=False, example="var_mean(tensor([1., 2., 4.]))")
def var_mean(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Scalar | None = None,
) -> tuple[Made, ...]:
    """The variance and the mean, as two tensors."""
    m = _Moments("var_mean", input, dim, unbiased, keepdim, correction)
    run = m.run
    return made(m.dtype, m.shape, run), made(input.dtype, m.shape, run)


@kernel(vjp=_std_mean_gradient, method=False, example="std_mean(tensor([1., 2., 4.]))")
def std_mean(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Scalar | None = None,
) -> tuple[Made, ...]:
    """The standard deviation and the mean, as two tensors."""
    m = _Moments("std_mean", input, dim, unbiased, keepdim, correction)

    def run(xp: Any) -> Any:
        variance, mean = m.run(xp)
        return [xp.sqrt(variance), mean]

    return made(m.dtype, m.shape, run), made(input.dtype, m.shape, run)
