"""Choosing by conditions: where, nonzero, and reading and writing through boolean masks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes, scalars
from engine import layout as layouts
from engine.errors import (
    BroadcastError,
    DtypeError,
    NoDataError,
    NonzeroOnMetaError,
    TensorRuntimeError,
)
from engine.kinds import altered, composite, kernel, made, pointwise
from engine.kinds.record import twin
from engine.overloads import no_overload, texts_of
from engine.registry import F, method, ops
from engine.tensor import Tensor, number

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.layout import Layout
    from engine.parameter_types import Operand, Scalar


@pointwise(
    kernel=lambda xp, condition, a, b: xp.where(condition != 0, a, b),
    vjp={
        "input": lambda g, condition: F.where(condition, g, 0),
        "other": lambda g, condition: F.where(condition, 0, g),
    },
    takes="bifcu8",
    promoted=("input", "other"),
    inplace=False,
    function=False,
    method=False,
    node="WhereBackward0",
)
def _where(condition: Tensor, input: Operand, other: Operand) -> Tensor:
    """``input`` where the condition holds, else ``other``."""


_WHERE_METHOD = ("(Tensor condition, Tensor other)", "(Tensor condition, Number other)")


def _choose(condition: Any, input: Any, other: Any, out: Any) -> Any:
    if condition.dtype not in (dtypes.bool_, dtypes.uint8):
        raise DtypeError(
            "where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{condition.dtype.title}"
        )
    return ops["_where"].function(condition, input, other, **({} if out is None else {"out": out}))


@composite(
    method=False,
    out=False,
    example="where(tensor([True, False]), tensor([1., 2.]), 0.)",
)
def where(condition: Any, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """``input`` where ``condition`` holds, else ``other``; broadcast and promoted.

    With the condition alone, its true positions as a tuple of index vectors.
    """
    numbers = (Tensor, bool, int, float, complex)
    if isinstance(condition, Tensor) and input is None and other is None:
        return F.nonzero(condition, as_tuple=True)
    if not isinstance(condition, Tensor) or not all(isinstance(v, numbers) for v in (input, other)):
        given = (condition,) if input is None else (condition, input)
        whole = given if other is None else (*given, other)
        raise no_overload("where", whole, {}, texts_of("where"))
    return _choose(condition, input, other, out)


@method("where")
def where_method(x: Tensor, *args: Any, **kwargs: Any) -> Any:
    """The tensor where ``condition`` holds, else ``other``."""
    named = {"condition": 0, "other": 1}
    if len(args) + len(kwargs) != 2 or any(named.get(k, -1) < len(args) for k in kwargs):
        raise no_overload("where", args, kwargs, _WHERE_METHOD)
    condition, other = (*args, *(kwargs[k] for k in named if k in kwargs))
    if not isinstance(condition, Tensor) or not isinstance(other, (Tensor, int, float, complex)):
        raise no_overload("where", args, kwargs, _WHERE_METHOD)
    return _choose(condition, x, other, None)


def _positions(input: Tensor) -> list[Any]:
    if input.array is None:
        raise NonzeroOnMetaError
    array = input.array if input.ndim else input.array.reshape(1)
    return list((array != 0).nonzero())


def _as_columns(input: Tensor) -> Made:
    found = _positions(input)
    n, d = len(found[0]), input.ndim
    layout = layouts.layout((n, d), (1, n) if d else (1, 1 if n else 0))

    def run(xp: Any) -> Any:
        if d == 0:
            return xp.zeros((n, 0), "int64")
        return xp.stack(found, axis=1)

    return made(dtypes.int64, layout, run)


@kernel(
    same_out="nonzero: Expected out tensor to have scalar type {y.title} but got scalar type"
    "{out.title}",
    function=False,
    method=False,
    data_dependent=True,
    name="_nonzero",
)
def _nonzero(input: Tensor) -> Made:
    """The positions of the elements that are not zero, as rows."""
    return _as_columns(input)


@composite(data_dependent=True, out=False, example="nonzero(tensor([0., 1., 2.]))")
def nonzero(input: Tensor, *, as_tuple: bool = False, out: Tensor | None = None) -> Any:
    """The positions of the elements that are not zero: as rows, or as one vector per dimension."""
    if not as_tuple:
        return ops["_nonzero"].function(input, **({} if out is None else {"out": out}))
    if input.ndim == 0:
        input = input.reshape((1,))
    return F.unbind(ops["_nonzero"].function(input), 1)


@composite(data_dependent=True, out=False, example="argwhere(tensor([0., 1., 2.]))")
def argwhere(input: Tensor) -> Tensor:
    """The positions of the elements that are not zero, as rows."""
    return ops["_nonzero"].function(input)


@kernel(example="nonzero_static(tensor([0, 1]), size=2)")
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Made:
    """The first ``size`` positions that are not zero, padded with ``fill_value``."""

    def run(xp: Any) -> Any:
        rows = xp.full((size, input.ndim), fill_value, "int64")
        found = xp.stack(_positions(input), axis=1)[:size, : input.ndim]
        rows[: len(found)] = found
        return rows

    return made(dtypes.int64, (size, input.ndim), run)


def _masked_select_gradient(g: Tensor, input_shape: Any, mask: Tensor) -> Tensor:
    shape = layouts.broadcast_shapes(input_shape, mask.layout.shape)
    return g.new_zeros(shape).masked_scatter(mask, g)


@kernel(
    same_out="masked_select(): self and result must have the same scalar type",
    vjp=_masked_select_gradient,
    data_dependent=True,
    example="masked_select(tensor([1., 2.]), tensor([True, False]))",
)
def masked_select(input: Tensor, mask: Tensor) -> Made:
    """The elements where the mask holds, in a vector."""
    if not mask.dtype.is_bool:
        raise TensorRuntimeError("masked_select: expected BoolTensor for mask")
    if mask.layout.shape == input.layout.shape:
        shape = mask.layout.shape
    else:
        shape = layouts.broadcast_shapes(mask.layout.shape, input.layout.shape)
    if input.array is None:
        raise NoDataError("masked_select")
    xp = input.kind.xp
    chosen = xp.broadcast_to(input.array, shape)[xp.broadcast_to(mask.array, shape)]
    return made(input.dtype, chosen.shape, lambda _: chosen)


def _filled(input: Tensor, mask: Tensor, value: Any) -> Made:
    if not mask.dtype.is_bool:
        raise TensorRuntimeError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype.c_type}"
        )
    shape = layouts.broadcast_shapes(mask.layout.shape, input.layout.shape)
    if shape == input.layout.shape:
        return altered(
            input, lambda xp, array: xp.copyto(array, value, where=_wide(xp, mask, shape))
        )
    return made(
        input.dtype,
        shape,
        lambda xp: xp.where(_wide(xp, mask, shape), value, input.array),
    )


def _wide(xp: Any, mask: Tensor, shape: tuple[int, ...]) -> Any:
    return xp.broadcast_to(mask.array, shape)


def _kept(g: Tensor, mask: Tensor) -> Tensor:
    return F.masked_fill(g, mask, 0)


def _fill_sum(g: Tensor, mask: Tensor) -> Tensor:
    return F.where(mask, g, 0).sum()


@kernel(
    vjp=_kept,
    inplace=True,
    overlapping=True,
    function=False,
    method=False,
    out=False,
    node="MaskedFillBackward0",
    spoken="masked_fill",
)
def _masked_fill_number(input: Tensor, mask: Tensor, value: Scalar) -> Made:
    """A number where the mask holds."""
    return _filled(input, mask, scalars.element(value, input.dtype))


@kernel(
    vjp={"input": _kept, "value": _fill_sum},
    inplace=True,
    overlapping=True,
    function=False,
    method=False,
    out=False,
    node="MaskedFillBackward1",
    spoken="masked_fill",
    example="masked_fill(tensor([1., 2.]), tensor([True, False]), tensor(0.))",
)
def _masked_fill_tensor(input: Tensor, mask: Tensor, value: Tensor) -> Made:
    """The one element of ``value`` where the mask holds."""
    if value.ndim:
        raise TensorRuntimeError(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{value.ndim} dimension(s)."
        )
    if value.array is None:
        return _filled(input, mask, None)
    return _filled(input, mask, scalars.element(number(value), input.dtype))


@composite(out=False, example="masked_fill(tensor([1., 2.]), tensor([True, False]), 0)")
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """``value``, a number or a tensor of one element, where the mask holds."""
    form = "_masked_fill_tensor" if isinstance(value, Tensor) else "_masked_fill_number"
    return ops[form].function(input, mask, value)


@method("masked_fill_")
def masked_fill_(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    """``masked_fill`` of the tensor itself."""
    form = "_masked_fill_tensor" if isinstance(value, Tensor) else "_masked_fill_number"
    return twin(ops[form])(x, mask, value)


def _scattered_source(g: Tensor, mask: Tensor, source_layout: Layout) -> Tensor:
    chosen = F.masked_select(g, mask)
    whole = g.new_zeros((source_layout.numel,))
    count = min(chosen.layout.numel, source_layout.numel)
    return F.cat([chosen[:count], whole[count:]]).reshape(source_layout.shape)


@kernel(
    vjp={"input": _kept, "source": _scattered_source},
    inplace=True,
    out=False,
    example="masked_scatter(zeros(3), tensor([True, False, True]), tensor([1., 2.]))",
)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Made:
    """The elements of ``source``, one after another, where the mask holds."""
    if input.dtype is not source.dtype:
        raise TensorRuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got"
            f"{input.dtype.title} and {source.dtype.title}"
        )
    if not mask.dtype.is_bool:
        raise TensorRuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype "
            f"{mask.dtype.title}"
        )
    try:
        shape = layouts.broadcast_shapes(input.layout.shape, mask.layout.shape)
    except BroadcastError:
        shape = layouts.broadcast_shapes(mask.layout.shape, input.layout.shape)

    def into(xp: Any, array: Any) -> None:
        wide = _wide(xp, mask, shape)
        count = int(wide.sum())
        if count > source.layout.numel:
            raise TensorRuntimeError("Number of elements of source < number of ones in mask")
        array[wide] = source.array.reshape(-1)[:count]

    if shape == input.layout.shape:
        return altered(input, into)

    def run(xp: Any) -> Any:
        array = xp.array(xp.broadcast_to(input.array, shape))
        into(xp, array)
        return array

    return made(input.dtype, shape, run)
