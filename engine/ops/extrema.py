"""Largest and smallest elements, their places, and both together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine.errors import DtypeError, TensorIndexError, TensorRuntimeError
from engine.kinds import kernel, made, reduction, working
from engine.kinds.composite import overloaded
from engine.kinds.reduction import check_not_empty, check_takes, reduced_shape
from engine.layout import wrap_dim
from engine.ops.reductions import spread
from engine.registry import F

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.dtypes import DType
    from engine.kinds import Made
    from engine.layout import Layout
    from engine.parameter_types import Dim, Dims
    from engine.tensor import Tensor


_SAME_OUT = (
    "Expected the dtype for input and out to match, but got {wanted} for input's dtype and {given} "
    "for out's dtype."
)


def _shared_evenly(g: Tensor, y: Tensor, input: Tensor, dim: Any, keepdim: bool) -> Any:
    """The gradient of an extremum, shared among the elements that tie for it."""
    shape = input.layout.shape
    ties = input == spread(y, shape, dim, keepdim)
    over = tuple(range(len(shape))) if dim is None else dim
    return spread(g, shape, dim, keepdim) * ties / ties.sum(over, keepdim=True)


def _extreme(ufunc: str) -> Callable[[Any, Any, Any], Any]:
    def run(xp: Any, x: Any, axes: Any) -> Any:
        if x.size == 0:
            shape = [n for d, n in enumerate(x.shape) if axes is not None and d not in axes]
            return xp.zeros(shape, x.dtype)
        return getattr(xp, ufunc).reduce(x, axis=axes)

    return run


@reduction(
    kernel=_extreme("maximum"),
    takes="bif",
    stub="max_values_cpu",
    empty=False,
    out_dtype=_SAME_OUT,
    vjp=_shared_evenly,
    example="amax(tensor([[1., 4.], [3., 2.]]), 1)",
)
def amax(input: Tensor, dim: Dims | None = None, keepdim: bool = False) -> Tensor:
    """The largest element over ``dim``; nan wins. The gradient is shared among equals."""


@reduction(
    kernel=_extreme("minimum"),
    takes="bif",
    stub="min_values_cpu",
    empty=False,
    out_dtype=_SAME_OUT,
    vjp=_shared_evenly,
    example="amin(tensor([[1., 4.], [3., 2.]]), 1)",
)
def amin(input: Tensor, dim: Dims | None = None, keepdim: bool = False) -> Tensor:
    """The smallest element over ``dim``; nan wins. The gradient is shared among equals."""


def _both_shared(g: Any, y: Any, input: Tensor, dim: Any, keepdim: bool) -> Any:
    dims = None if dim is None else (dim,)
    parts = [
        _shared_evenly(part, extreme, input, dims, keepdim)
        for part, extreme in zip(g, y, strict=True)
        if part is not None
    ]
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


@kernel(vjp=_both_shared, fields=("min", "max"), example="aminmax(tensor([3., 1., 2.]))")
def aminmax(input: Tensor, *, dim: Dim | None = None, keepdim: bool = False) -> tuple[Made, ...]:
    """The smallest and the largest element, over one dimension or everything."""
    d = None if dim is None else wrap_dim(dim, input.ndim)
    if d is None:
        if input.layout.numel == 0:
            raise TensorRuntimeError(
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has "
                "no identity."
            )
    elif input.ndim and input.layout.shape[d] == 0:
        raise TensorIndexError(f"aminmax: Expected reduction dim {d} to have non-zero size.")
    check_takes("bif", "aminmax_cpu", input.dtype)
    dims = tuple(range(input.ndim)) if d is None else (d,)
    shape = reduced_shape(input.layout.shape, dims, keepdim)
    axis = None if d is None or not input.ndim else d
    return (
        made(input.dtype, shape, lambda xp: xp.min(input.array, axis=axis)),
        made(input.dtype, shape, lambda xp: xp.max(input.array, axis=axis)),
    )


def _check_no_place(name: str) -> Callable[[DType, DType | None], None]:
    def check(given: DType, dtype: DType | None) -> None:
        if given.is_complex or given.is_bool:
            kind = "complex" if given.is_complex else "bool"
            raise DtypeError(f"{name}(): does not support {kind} input")

    return check


def _check_some(name: str, layout: Layout, dims: tuple[int, ...] | None) -> None:
    if dims is None and layout.numel == 0:
        raise TensorIndexError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
        )
    check_not_empty(name, layout, dims)


def _place(name: str) -> Callable[[Any, Any, Any], Any]:
    def run(xp: Any, x: Any, axes: Any) -> Any:
        if x.size == 0:
            return xp.zeros([n for d, n in enumerate(x.shape) if d not in axes], "int64")
        return getattr(x, name)(axis=None if axes is None else axes[0])

    return run


@reduction(
    kernel=_place("argmax"),
    gives=lambda dtype: dtypes.int64,
    convert=False,
    takes="if",
    refuse=_check_no_place("argmax"),
    empty=_check_some,
    out_dtype="Expected out tensor to have dtype long int, but got {cpp} instead",
    example="argmax(tensor([[1., 4.], [3., 2.]]), 1)",
)
def argmax(input: Tensor, dim: Dim | None = None, keepdim: bool = False) -> Tensor:
    """The place of the largest element (the first one of equals, the first nan).

    Without ``dim`` it counts in the flattened tensor.
    """


@reduction(
    kernel=_place("argmin"),
    gives=lambda dtype: dtypes.int64,
    convert=False,
    takes="if",
    refuse=_check_no_place("argmin"),
    empty=_check_some,
    out_dtype="Expected out tensor to have dtype long int, but got {cpp} instead",
    example="argmin(tensor([[1., 4.], [3., 2.]]), 1)",
)
def argmin(input: Tensor, dim: Dim | None = None, keepdim: bool = False) -> Tensor:
    """The place of the smallest element (the first one of equals, the first nan).

    Without ``dim`` it counts in the flattened tensor.
    """


def gradient_to_ties(g: Tensor, y: Tensor, input: Tensor) -> Any:
    """The gradient of one value picked from a whole tensor, shared among the elements equal to
    it; a nan shares among the nans."""
    ties: Any = input == y
    nan = y != y
    ties = F.where(nan, input != input, ties)
    return F.where(ties, g / ties.sum(), F.zeros((), dtype=g.dtype))


def gradient_to_picked(g: Any, y: Any, input_shape: Any, dim: int, keepdim: bool) -> Any:
    """The gradient of values picked along a dimension, put where their indices say."""
    values, places = g[0], y[1]
    if not input_shape:
        return values
    d = dim % len(input_shape)
    if not keepdim:
        values, places = values.unsqueeze(d), places.unsqueeze(d)
    return values.new_zeros(input_shape).scatter(d, places, values)


# Up to this many elements finding the place is quicker than numpy's reduction.
_FEW = 4096


def _whole(name: str) -> None:
    """The overload of max or min that takes the tensor alone."""

    def kernel_of_all(xp: Any, x: Any, axes: Any) -> Any:
        if x.size > _FEW:
            return getattr(xp, f"{name}imum").reduce(x, axis=None)
        flat = x.reshape(-1)
        return flat[flat.argmax() if name == "max" else flat.argmin()]

    @reduction(
        kernel=kernel_of_all,
        name=f"_all.{name}",
        takes="bif",
        stub=f"{name}_all",
        empty=False,
        vjp=lambda g, y, input: gradient_to_ties(g, y, input),
        node=f"{name.title()}Backward1",
        function=False,
        method=False,
    )
    def whole(input: Tensor) -> Tensor: ...


def _along(name: str) -> None:
    """The overload of max or min that picks along a dimension."""

    @kernel(
        name=f"_dim.{name}",
        vjp=gradient_to_picked,
        fields=("values", "indices"),
        function=False,
        method=False,
    )
    def along(input: Tensor, dim: Dim, keepdim: bool = False) -> tuple[Made, ...]:
        d = wrap_dim(dim, input.ndim)
        check_not_empty(name, input.layout, (d,))
        if input.dtype.is_complex:
            raise DtypeError(f"{name}(): does not support complex input")
        check_takes("bif", f"{name}_cpu", input.dtype)
        shape = reduced_shape(input.layout.shape, (d,), keepdim)

        def run(xp: Any) -> Any:
            x = input.array
            if not x.ndim or x.size == 0:
                return [x.reshape(shape), xp.zeros(shape, "int64")]
            y = working(input)
            at = y.argmax(axis=d) if name == "max" else y.argmin(axis=d)
            best = getattr(xp, f"{name}imum").reduce(y, axis=d)
            return [best, at]

        return made(input.dtype, shape, run), made(dtypes.int64, shape, run)


for _name in ("max", "min"):
    _whole(_name)
    _along(_name)

_FORMS = (
    "(Tensor input, *, Tensor out = None)",
    "(Tensor input, Tensor other, *, Tensor out = None)",
    "(Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None)",
)


@overloaded(
    ("_all.max", _FORMS[0]),
    ("maximum", _FORMS[1]),
    ("_dim.max", _FORMS[2]),
    example="max(tensor([[1., 4.], [3., 2.]]), 1)",
)
def max(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The largest element; with ``dim`` the largest ones and their places, with another tensor
    the larger of each pair.

    nan wins. Without ``dim`` the gradient is shared among equals, with it the first gets it all.
    """


@overloaded(
    ("_all.min", _FORMS[0]),
    ("minimum", _FORMS[1]),
    ("_dim.min", _FORMS[2]),
    example="min(tensor([[1., 4.], [3., 2.]]), 1)",
)
def min(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The smallest element; with ``dim`` the smallest ones and their places, with another tensor
    the smaller of each pair.

    nan wins. Without ``dim`` the gradient is shared among equals, with it the first gets it all.
    """
