"""Reductions over dimensions: sums, products, means, counts and their kin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine.errors import DtypeError
from engine.kinds import reduction
from engine.kinds.composite import composite
from engine.kinds.conjugate import conj
from engine.kinds.reduction import TO_BOOL, TO_FLOAT, TO_INT64, check_takes
from engine.kinds.view import expanded
from engine.modes import state
from engine.registry import F, ops
from engine.summing import small_average, small_total, total

if TYPE_CHECKING:
    from engine.dtypes import DType
    from engine.parameter_types import Dim, Dims
    from engine.tensor import Tensor


def spread(g: Tensor, shape: tuple[int, ...], dim: Any, keepdim: bool) -> Any:
    """A reduction's output or gradient with the reduced dimensions back in place, of size 1."""
    if keepdim or not shape:
        return g
    if dim is None or dim == ():
        return g.reshape((1,) * len(shape))
    for d in sorted(d % len(shape) for d in (dim if isinstance(dim, tuple) else (dim,))):
        g = g.unsqueeze(d)
    return g


def _expand_back(g: Tensor, shape: tuple[int, ...], dim: Any, keepdim: bool) -> Any:
    if g.layout.ndim:
        g = spread(g, shape, dim, keepdim)
    return g.expand(shape) if shape else g


def reduced_count(shape: tuple[int, ...], dim: Any) -> int:
    """How many elements go into one element of the result."""
    n = 1
    if dim is None or dim == ():
        for size in shape:
            n *= size
        return n
    for d in dim if isinstance(dim, tuple) else (dim,):
        n *= shape[d] if shape else 1
    return n


def average(xp: Any, x: Any, axes: Any) -> Any:
    """The mean over ``axes``; nan where there is nothing."""
    y = total(xp, x, axes)
    n = x.size if axes is None else reduced_count(x.shape, axes)
    return y / (n if n else xp.asarray(0, x.dtype))


@reduction(
    kernel=total,
    small=small_total,
    gives=TO_INT64,
    vjp={
        "SumBackward0": lambda g, input_shape: expanded(g, input_shape),
        "SumBackward1": lambda g, input_shape, dim, keepdim: _expand_back(
            g, input_shape, dim, keepdim
        ),
    },
    variant=lambda input, dim, *_: "SumBackward0" if dim is None else "SumBackward1",
    overloads=(
        "(Tensor input, *, torch.dtype dtype = None)",
        "(Tensor input, tuple of ints dim, bool keepdim = False, *, torch.dtype dtype = None, "
        "Tensor out = None)",
    ),
    example="sum(tensor([[1., 2.], [3., 4.]]), 0)",
)
def sum(
    input: Tensor, dim: Dims | None = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The sum over ``dim``, or over everything.

    Integers and booleans add up in int64; low precision is summed in float32.
    """


def _check_mean(given: DType, dtype: DType | None) -> None:
    which, used = ("Input", given) if dtype is None else ("Optional", dtype)
    if used.category <= dtypes.INT:
        raise DtypeError(
            f"mean(): could not infer output dtype. {which} dtype must be either a floating "
            f"point or complex dtype. Got: {used.title}"
        )


def _mean_gradient(g: Tensor, input_shape: tuple[int, ...], dim: Any, keepdim: bool) -> Tensor:
    whole = _expand_back(g, input_shape, dim, keepdim)
    count = reduced_count(input_shape, dim)
    if state.grad:
        shared: Tensor = ops["nn.divided"].function(whole, count)
        return shared
    return whole / count


@reduction(
    kernel=average,
    small=small_average,
    refuse=_check_mean,
    stub="sum_cpu",
    vjp=_mean_gradient,
    variant=lambda input, dim, *_: "MeanBackward0" if dim is None else "MeanBackward1",
    overloads=(
        "(Tensor input, *, torch.dtype dtype = None, Tensor out = None)",
        "(Tensor input, tuple of ints dim, bool keepdim = False, *, torch.dtype dtype = None, "
        "Tensor out = None)",
    ),
    example="mean(tensor([[1., 2.], [3., 4.]]), 0)",
)
def mean(
    input: Tensor, dim: Dims | None = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The mean over ``dim``, or over everything; nan where there is nothing.

    Integers need ``dtype`` of a floating point type.
    """


def exclusive_product(x: Tensor, dim: int) -> Any:
    """For each element the product of all others along ``dim``; exact where elements are 0."""
    n = x.layout.shape[dim]
    if n == 1:
        return F.ones_like(x)
    first = F.ones_like(x.narrow(dim, 0, 1))
    before = F.cat((first, x.narrow(dim, 0, n - 1)), dim).cumprod(dim)
    behind = x.narrow(dim, 1, n - 1).flip(dim)
    after = F.cat((first, behind), dim).cumprod(dim).flip(dim)
    return before * after


def _prod_gradient(g: Tensor, y: Tensor, input: Tensor, dim: Any, keepdim: bool) -> Any:
    if input.ndim == 0:
        return g
    if input.layout.numel == 0:
        others = input
    elif dim is None:
        others = exclusive_product(input.reshape(-1), 0).reshape(input.layout.shape)
    else:
        others = exclusive_product(input, dim % input.ndim)
    return spread(g, input.layout.shape, dim, keepdim) * conj(others)


@reduction(
    kernel=lambda xp, x, axes: xp.multiply.reduce(x, axis=axes),
    gives=TO_INT64,
    stub="prod_cpu",
    vjp=_prod_gradient,
    variant=lambda input, dim, *_: "ProdBackward0" if dim is None else "ProdBackward1",
    overloads=(
        "(Tensor input, *, torch.dtype dtype = None)",
        "(Tensor input, int dim, bool keepdim = False, *, torch.dtype dtype = None, "
        "Tensor out = None)",
    ),
    example="prod(tensor([[1., 2.], [3., 4.]]), 1)",
)
def prod(
    input: Tensor, dim: Dim | None = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The product over one dimension, or of everything; 1 of nothing."""


@reduction(
    kernel=lambda xp, x, axes: xp.all(x, axis=axes),
    gives=TO_BOOL,
    convert=False,
    no_dims="none",
    takes="bifcu8",
    overloads=(
        "(Tensor input, *, Tensor out = None)",
        "(Tensor input, tuple of ints dim = None, bool keepdim = False, *, Tensor out = None)",
        "(Tensor input, int dim, bool keepdim = False, *, Tensor out = None)",
    ),
    keepdim_alone=True,
    out_dtype="all only supports bool tensor for result, got: {given}",
    example="all(tensor([[True, False], [True, True]]), 1)",
)
def all(input: Tensor, dim: Dims | None = None, keepdim: bool = False) -> Tensor:
    """Whether every element is true (not zero); true of nothing, uint8 for uint8."""


@reduction(
    kernel=lambda xp, x, axes: xp.any(x, axis=axes),
    gives=TO_BOOL,
    convert=False,
    no_dims="none",
    takes="bifcu8",
    overloads=(
        "(Tensor input, *, Tensor out = None)",
        "(Tensor input, tuple of ints dim = None, bool keepdim = False, *, Tensor out = None)",
        "(Tensor input, int dim, bool keepdim = False, *, Tensor out = None)",
    ),
    keepdim_alone=True,
    out_dtype="any only supports bool tensor for result, got: {given}",
    example="any(tensor([[True, False], [False, False]]), 1)",
)
def any(input: Tensor, dim: Dims | None = None, keepdim: bool = False) -> Tensor:
    """Whether some element is true (not zero, nan included); uint8 for uint8."""


def _check_nansum(given: DType, dtype: DType | None) -> None:
    if given.is_complex:
        raise DtypeError("nansum on CPU does not support complex inputs")


def _without_nan(xp: Any, x: Any) -> Any:
    return x if x.dtype.kind in "biu" else xp.where(x == x, x, x.dtype.type(0))


@reduction(
    kernel=total,
    prepare=_without_nan,
    gives=TO_INT64,
    refuse=_check_nansum,
    vjp=lambda g, input, dim, keepdim: (
        _expand_back(g, input.layout.shape, dim, keepdim).to(input.dtype)
        * input.isnan().logical_not()
    ),
    example="nansum(tensor([1., nan, 3.]))",
)
def nansum(
    input: Tensor, dim: Dims | None = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The sum with nan counted as 0."""


@composite(example="nanmean(tensor([1., nan, 3.]))")
def nanmean(
    input: Tensor, dim: Dims | None = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The mean of what is not nan; nan where nothing is left."""
    if input.dtype.category <= dtypes.INT:
        raise DtypeError(
            "nanmean(): expected input to have floating point or complex dtype but got "
            f"{input.dtype.title}"
        )
    count = input.detach().isnan().logical_not().sum(dim, keepdim)
    y: Tensor = input.nansum(dim, keepdim, dtype=dtype) / count
    return y


def _bits(xp: Any, x: Any) -> Any:
    """What is hashed of elements: floats as the bits of doubles, integers as 64 bits."""
    if x.dtype.kind in "biu":
        return x.astype("int64").view("uint64")
    return x.astype("float64").view("uint64")


def _xor(xp: Any, x: Any, axes: Any, mode: int) -> Any:
    return xp.bitwise_xor.reduce(x, axis=axes)


def _check_hash(given: DType, dtype: DType | None) -> None:
    check_takes("bif", "xor_sum_cpu", given)


@reduction(
    kernel=_xor,
    prepare=_bits,
    gives=lambda dtype: dtypes.uint64,
    refuse=_check_hash,
    empty=False,
    example="hash_tensor(tensor([1, 2, 4]))",
)
def hash_tensor(
    input: Tensor, dim: Dims | None = None, keepdim: bool = False, *, mode: int = 0
) -> Tensor:
    """The exclusive or of all elements' bits, as uint64."""


@reduction(
    kernel=lambda xp, x, axes: xp.count_nonzero(x, axis=axes),
    gives=lambda dtype: dtypes.int64,
    convert=False,
    takes="bifc",
    stub="nonzero_count_cpu",
    example="count_nonzero(tensor([[0, 1], [2, 3]]), 1)",
)
def count_nonzero(input: Tensor, dim: Dims | None = None) -> Tensor:
    """The number of elements that are not zero."""


def _log_sum(xp: Any, x: Any, axes: Any) -> Any:
    if x.size == 0:
        return xp.log(xp.add.reduce(x, axis=axes))
    top = xp.max(x.real, axis=axes, keepdims=True)
    top = xp.where(xp.isinf(top), x.real.dtype.type(0), top)
    summed = xp.log(total(xp, xp.exp(x - top), axes))
    return summed + xp.squeeze(top, axis=axes)


def _log_sum_gradient(g: Tensor, y: Tensor, input: Tensor, dim: Any, keepdim: bool) -> Any:
    shape = input.layout.shape
    share = (input - spread(y, shape, dim, keepdim)).exp()
    return spread(g, shape, dim, keepdim) * conj(share)


@reduction(
    kernel=_log_sum,
    no_dims="kept",
    gives=TO_FLOAT,
    vjp=_log_sum_gradient,
    spaces=("", "special."),
    example="logsumexp(tensor([[1., 2.], [3., 4.]]), 1)",
)
def logsumexp(input: Tensor, dim: Dims, keepdim: bool = False) -> Tensor:
    """The logarithm of the sum of exponentials, without overflow; -inf of nothing."""
