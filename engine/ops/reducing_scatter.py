"""Reductions into places: scatter_reduce and index_reduce, with sum, prod, mean, amax and amin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes, indices
from engine.errors import DtypeNotImplementedError, TensorRuntimeError
from engine.kinds import altered, kernel
from engine.kinds.targets import check_added, check_scattered
from engine.layout import wrap_dim
from engine.registry import F

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.dtypes import DType
    from engine.kinds import Made
    from engine.parameter_types import Dim
    from engine.tensor import Tensor

_UFUNCS = {
    "sum": "add",
    "mean": "add",
    "prod": "multiply",
    "amax": "maximum",
    "amin": "minimum",
}


def _identity(reduce: str, dtype: DType, xp: Any) -> Any:
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    low = reduce == "amax"
    if dtype.is_floating_point:
        return -xp.inf if low else xp.inf
    if dtype.is_bool:
        return not low
    limits = xp.iinfo(dtype.np)
    return limits.min if low else limits.max


def _reduced(
    xp: Any,
    array: Any,
    keys: Any,
    values: Any,
    reduce: str,
    include: bool,
    dtype: DType,
    wide: tuple[bool, bool],
) -> None:
    """Reduce ``values`` into ``array`` at ``keys``, with what is there or without it.

    ``wide`` says of values and of their count whether float32 is used on the way.
    """
    if not include:
        array[keys] = xp.array(_identity(reduce, dtype, xp)).astype(array.dtype)
    indices.accumulate(xp, _UFUNCS[reduce], array, keys, values, wide[0])
    if reduce == "mean":
        counted = dtype if dtype.low else dtypes.int64
        times = xp.full(array.shape, 1 if include else 0, counted.np)
        indices.accumulate(xp, "add", times, keys, xp.ones((), counted.np), wide[1])
        times = xp.maximum(times, times.dtype.type(1))
        if dtype.category == dtypes.INT:
            array[...] = array // times
        elif dtype.low:
            array[...] = (array.astype("float32") / times.astype("float32")).astype(array.dtype)
        else:
            array[...] = (array / times).astype(array.dtype)


def _refuse(dtype: DType, reduce: str) -> None:
    """Refuse dtypes that have no mean or no order."""
    order = reduce in ("amax", "amin")
    if (dtype.is_bool and reduce == "mean") or (dtype.is_complex and order):
        raise DtypeNotImplementedError(
            f"\"scatter_gather_tensor_cpu_reduce_{reduce}\" not implemented for '{dtype.title}'"
        )


class _Moves:
    """How elements travel between ``input`` and the source: reading, adding and filling."""

    __slots__ = ("add", "fill", "read", "reduce")

    def __init__(
        self,
        read: Callable[[Tensor], Tensor],
        add: Callable[[Tensor, Tensor], Tensor],
        fill: Callable[[Tensor], Tensor],
        reduce: Callable[[Tensor, Tensor], Tensor],
    ):
        self.read = read
        self.add = add
        self.fill = fill
        self.reduce = reduce


def _gradients(
    g: Tensor, input: Tensor, source: Tensor, y: Tensor, reduce: str, include: bool, moves: _Moves
) -> tuple[Tensor, Tensor]:
    """The gradients of input and source (the part of it that was read)."""
    if reduce == "sum":
        into, back = g, moves.read(g)
    elif reduce == "mean":
        start = g.new_ones(g.layout.shape) if include else g.new_zeros(g.layout.shape)
        times = moves.add(start, g.new_ones(source.layout.shape))
        shared = g / F.masked_fill(times, F.eq(times, 0), 1)
        into, back = shared, moves.read(shared)
    elif reduce == "prod":
        into, back = _product_gradients(g, input, source, y, moves)
    else:
        mine = F.eq(input, y).to(g.dtype)
        theirs = F.eq(source, moves.read(y)).to(g.dtype)
        shared = g / moves.add(mine, theirs)
        into, back = mine * shared, theirs * moves.read(shared)
    if not include:
        into = moves.fill(into)
    return into, back


def _product_gradients(
    g: Tensor, input: Tensor, source: Tensor, y: Tensor, moves: _Moves
) -> tuple[Tensor, Tensor]:
    """Of a product: the product of the others, with care for factors of zero."""
    whole = F.masked_fill(input, F.eq(input, 0), 1)
    into = g * moves.reduce(whole, source) / whole
    zero = F.eq(source, 0)
    zeros = moves.read(moves.add(input.new_zeros(input.layout.shape), zero.to(input.dtype)))
    single = F.logical_and(zero, F.eq(zeros, 1))
    others = moves.reduce(input, F.masked_fill(source, single, 1))
    back = F.where(
        single,
        moves.read(g * others),
        moves.read(g * y) / F.masked_fill(source, zero, 1),
    )
    return into, back


def _scatter_gradients(
    g: Tensor,
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    include_self: bool,
    y: Tensor,
) -> tuple[Tensor, Tensor]:
    moves = _Moves(
        lambda t: t.gather(dim, index),
        lambda t, s: t.scatter_add(dim, index, s),
        lambda t: t.scatter(dim, index, 0),
        lambda t, s: t.scatter_reduce(dim, index, s, reduce, include_self=include_self),
    )
    into, back = _gradients(g, input, src, y, reduce, include_self, moves)
    return into, indices.check_whole(back, src.layout.shape, "ScatterReduceBackward0")


@kernel(
    same_out="Expected out tensor to have dtype {y.c_type}, but got {out.c_type} instead",
    vjp={"input,src": _scatter_gradients},
    inplace=True,
    example="scatter_reduce(zeros(3), 0, tensor([0, 0]), tensor([1., 2.]), 'sum')",
)
def scatter_reduce(
    input: Tensor, dim: Dim, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Made:
    """Elements of ``src`` reduced into the places that ``index`` names along ``dim``.

    ``reduce`` is sum, prod, mean, amax or amin; without ``include_self`` what was there before
    does not count.
    """
    d = check_scattered(input, dim, index, src, "scatter")
    if reduce not in _UFUNCS:
        raise TensorRuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )

    _refuse(input.dtype, reduce)

    def into(xp: Any, array: Any) -> None:
        if not index.layout.numel:
            return
        wide = array if array.ndim else array.reshape(1)
        at = index.array if index.ndim else index.array.reshape(1)
        values = src.array if src.ndim else src.array.reshape(1)
        values = values[tuple([slice(n) for n in at.shape])]
        keys = indices.grid(xp, at, d, wide.shape[d])
        low = input.dtype.low
        _reduced(xp, wide, keys, values, reduce, include_self, input.dtype, (low, low))

    return altered(input, into, None, (index, src))


def _index_gradients(
    g: Tensor,
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    include_self: bool,
    y: Tensor,
) -> tuple[Tensor, Tensor]:
    moves = _Moves(
        lambda t: t.index_select(dim, index),
        lambda t, s: t.index_add(dim, index, s),
        lambda t: F.index_fill(t, dim, index, 0),
        lambda t, s: t.index_reduce(dim, index, s, reduce, include_self=include_self),
    )
    return _gradients(g, input, source, y, reduce, include_self, moves)


@kernel(
    same_out="Expected out tensor to have dtype {y.c_type}, but got {out.c_type} instead",
    vjp={"input,source": _index_gradients},
    inplace=True,
    example="index_reduce(zeros(2), 0, tensor([0, 0]), tensor([1., 2.]), 'amax')",
)
def index_reduce(
    input: Tensor,
    dim: Dim,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Made:
    """Slices of ``source`` reduced into those of ``input`` that ``index`` names along ``dim``.

    ``reduce`` is prod, mean, amax or amin.
    """
    d = wrap_dim(dim, input.ndim)
    if reduce not in _UFUNCS or reduce == "sum":
        raise TensorRuntimeError(
            "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got "
            f"{reduce}."
        )
    check_added(input, d, index, source, "index_reduce_()")
    if input.dtype.is_bool or input.dtype.is_complex:
        raise DtypeNotImplementedError(f"\"index_func_\" not implemented for '{input.dtype.title}'")

    def into(xp: Any, array: Any) -> None:
        at = index.array.reshape(-1)
        if not at.size:
            return
        wide = array if array.ndim else array.reshape(1)
        indices.check_vector(at, wide.shape[d], 1)
        values = source.array if source.ndim else source.array.reshape(1)
        keys = (slice(None),) * d + (at,)
        counted = input.dtype.low and input.ndim > 1
        _reduced(xp, wide, keys, values, reduce, include_self, input.dtype, (False, counted))

    return altered(input, into, None, (index, source))
