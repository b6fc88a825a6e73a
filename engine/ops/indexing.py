"""Square brackets: reading and writing through any mix of indices, and index_put."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes, scalars, tape
from engine import layout as layouts
from engine.errors import (
    BroadcastError,
    DtypeError,
    TensorIndexError,
    TensorRuntimeError,
    TensorValueError,
)
from engine.kinds import altered, kernel, made
from engine.kinds.deriving import Recorder
from engine.kinds.kernel import change
from engine.kinds.subscript import plan_of, viewed
from engine.modes import state
from engine.registry import method, ops
from engine.signature import ArgumentError
from engine.tensor import Tensor, number, wrap

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.kinds.subscript import Plan
    from engine.layout import Layout
    from engine.parameter_types import Tensors

_MASKS = (dtypes.bool_, dtypes.uint8)
_TYPES = (dtypes.int64, dtypes.int32, *_MASKS)


@method("__getitem__")
def get(x: Tensor, index: Any) -> Tensor:
    """``x[index]``: a view for integers, slices, None and ``...``, else a copy."""
    plan = plan_of(x, index)
    y = viewed(x, plan) if plan.steps else x
    if plan.indices:
        return ops["_index"].function(y, tuple(plan.indices))  # type: ignore[no-any-return]
    return y


@method("__setitem__")
def put(x: Tensor, index: Any, value: Any) -> None:
    """``x[index] = value`` for a tensor or number, broadcast and converted."""
    if not isinstance(value, Tensor):
        if not isinstance(value, (bool, int, float, complex)):
            raise ArgumentError(
                f"can't assign a {type(value).__name__} to a torch.{x.dtype.title}Tensor"
            )
        value = _number(x, value)
    plan = plan_of(x, index)
    if not plan.indices:
        if _quick(x, plan, value):
            x.array[plan.key] = value.array
            x.version.n += 1  # type: ignore[union-attr]
            return
        _copy_to(viewed(x, plan), value)
        return
    shape = value.layout.shape
    while len(shape) and shape[0] == 1:
        shape = shape[1:]
    y = viewed(x, plan) if plan.steps else x
    if y is x and state.grad and x.ag is not None and x.ag.requires_grad and x.ag.node is None:
        y = x.view(x.layout.shape)
    _put(y, tuple(plan.indices), value if shape == value.layout.shape else value.view(shape), False)


def _number(x: Tensor, value: Any) -> Tensor:
    if value.__class__ is int and not -(2**63) <= value < 2**64:
        raise TensorValueError("Overflow when unpacking long long")
    array = None if x.array is None else scalars.element(value, x.dtype)
    return wrap(array, x.kind, layouts.contiguous(()))


def _quick(x: Tensor, plan: Plan, value: Tensor) -> bool:
    """Whether nothing but storing is to be done: no history, no overlap, no conversion."""
    return (
        value.kind is x.kind
        and value.layout.ndim == 0
        and x.array is not None
        and x.base is None
        and not plan.layout.overlaps
        and (not state.grad or (x.ag is None and value.ag is None and value.base is None))
        and not state.inference
        and x.version is not None
    )


def _copy_to(destination: Tensor, value: Tensor) -> None:
    wanted = destination.layout.shape
    shape = value.layout.shape
    if shape and shape != wanted:
        while len(shape) and shape[0] == 1:
            shape = shape[1:]
        if shape != value.layout.shape:
            value = value.view(shape)
        value = value.expand(wanted)
    destination.copy_(value)


class _Target:
    """Index tensors sorted out: arrays by dimension, and the shape of what they name."""

    __slots__ = ("dims", "layout", "masks", "shape", "vectors")

    dims: list[int]
    layout: Layout
    shape: tuple[int, ...]
    vectors: list[Any]


def _target(x: Tensor, indices: tuple[Tensor | None, ...]) -> _Target:
    """What ``indices`` name in ``x``. Raises PyTorch's IndexError for those that do not fit."""
    found: list[tuple[Any, Layout] | None] = []
    for at, index in enumerate(indices):
        if index is None:
            found.append(None)
        elif index.dtype not in _TYPES:
            raise TensorIndexError(
                "tensors used as indices must be long, int, byte or bool tensors"
            )
        elif index.dtype in _MASKS:
            found.extend(_mask(x, index, at, len(found)))
        else:
            found.append((index.array, index.layout))
    if len(found) > x.ndim:
        raise TensorIndexError(
            f"too many indices for tensor of dimension {x.ndim} (got {len(found)})"
        )
    target = _Target()
    target.dims = [d for d, entry in enumerate(found) if entry is not None]
    named = [entry for entry in found if entry is not None]
    shapes = [layout.shape for _, layout in named]
    common: tuple[int, ...] = shapes[0] if shapes else ()
    for shape in shapes[1:]:
        try:
            common = layouts.broadcast_shapes(common, shape)
        except BroadcastError:
            listed = ", ".join(str(list(s)) for s in shapes)
            raise TensorIndexError(
                "shape mismatch: indexing tensors could not be broadcast together with shapes "
                f"{listed}"
            ) from None
    target.vectors = [array for array, _ in named]
    sizes = [x.layout.shape[d] for d in target.dims]
    if 0 in sizes and 0 not in common:
        raise TensorIndexError("index is out of bounds for dimension with size 0")
    _place(x.layout, target, common, [layout for _, layout in named])
    return target


def _mask(x: Tensor, mask: Tensor, at: int, first: int) -> list[tuple[Any, Layout]]:
    """A mask as vectors of positions, one per dimension of it."""
    for d in range(mask.ndim):
        if first + d >= x.ndim:
            raise TensorIndexError(f"too many indices for tensor of dimension {x.ndim}")
        if mask.layout.shape[d] != x.layout.shape[first + d]:
            raise TensorIndexError(
                f"The shape of the mask {list(mask.layout.shape)} at index {d} does not match "
                f"the shape of the indexed tensor {list(x.layout.shape)} at index {first + d}"
            )
    if mask.array is None:
        raise TensorRuntimeError(
            "Tensor.nonzero() cannot be called on meta tensors: its shape depends on values"
        )
    vectors = mask.array.nonzero()
    return [(v, layouts.contiguous(v.shape)) for v in vectors]


def _place(x: Layout, target: _Target, common: tuple[int, ...], named: list[Layout]) -> None:
    """Where the named elements' dimensions go, and the layout of a result: PyTorch lets its
    element-wise rule choose among the source with strides of zero and the index tensors."""
    dims = target.dims
    n = len(common)
    adjacent = not dims or dims == list(range(dims[0], dims[-1] + 1))
    before = list(range(dims[0])) if adjacent and dims else []
    after = [d for d in range(x.ndim) if d not in dims and d not in before]
    shape = (*(x.shape[d] for d in before), *common, *(x.shape[d] for d in after))
    strides = (*(x.strides[d] for d in before), *(0,) * n, *(x.strides[d] for d in after))
    target.shape = shape
    operands = [layouts.layout(shape, strides)]
    for layout in named:
        wide = layouts.expand(layout, common) if layout.shape != common else layout
        operands.append(
            layouts.layout(
                (*(1,) * len(before), *common, *(1,) * len(after)),
                (*(1,) * len(before), *wide.strides, *(1,) * len(after)),
            )
        )
    target.layout = layouts.elementwise(operands, shape)


def _keys(x: Tensor, target: _Target) -> tuple[Any, ...]:
    """The numpy index of the named elements. Raises for values out of range."""
    keys: list[Any] = [slice(None)] * x.ndim
    for at, (d, vector) in enumerate(zip(target.dims, target.vectors, strict=True)):
        size = x.layout.shape[d]
        if vector.size and (vector.min() < -size or vector.max() >= size):
            bad = vector[(vector < -size) | (vector >= size)].reshape(-1)[0]
            raise TensorIndexError(
                f"index {bad} is out of bounds for dimension {at} with size {size}"
            )
        keys[d] = vector
    return tuple(keys)


def _index_gradient(g: Tensor, input_shape: Any, indices: Any) -> Tensor:
    return _put(g.new_zeros(input_shape), indices, g, True)


@kernel(
    vjp=_index_gradient,
    function=False,
    method=False,
    out=False,
    node="IndexBackward0",
)
def _index(input: Tensor, indices: Any) -> Made:
    """The elements that index tensors name; None keeps a dimension."""
    target = _target(input, indices)
    return made(input.dtype, target.layout, lambda xp: input.array[_keys(input, target)])


def _put_gradient(
    g: Tensor, indices: Any, accumulate: bool, values_shape: Any, needed: tuple[bool, ...]
) -> tuple[Tensor | None, Tensor | None]:
    into = from_values = None
    if needed[0]:
        into = g if accumulate else _put(g.clone(), indices, g.new_zeros(()), False)
    if needed[1]:
        from_values = tape.sum_to(ops["_index"].function(g, indices), values_shape)
    return into, from_values


@kernel(
    vjp={"input,values": _put_gradient},
    inplace=True,
    out=False,
    example="index_put(zeros(3), (tensor([0, 2]),), tensor(1.))",
)
def index_put(input: Tensor, indices: Tensors, values: Tensor, accumulate: bool = False) -> Made:
    """``input`` with ``values``, broadcast, at the places that the index tensors name.

    With ``accumulate`` they are added, and a place named twice gets both.
    """
    if input.dtype is not values.dtype:
        only_mask = [i for i in indices if i is not None]
        if len(only_mask) == 1 and only_mask[0].dtype in _MASKS and values.layout.numel == 1:
            values = _number(input, number(values))
        else:
            raise DtypeError(
                "Index put requires the source and destination dtypes match, got "
                f"{input.dtype.title} for the destination and {values.dtype.title} for the source."
            )
    target = _target(input, indices)
    try:
        fits = layouts.broadcast_shapes(target.shape, values.layout.shape) == target.shape
    except BroadcastError:
        fits = False
    if not fits:
        raise TensorRuntimeError(
            f"shape mismatch: value tensor of shape {list(values.layout.shape)} cannot be "
            f"broadcast to indexing result of shape {list(target.shape)}"
        )

    def into(xp: Any, array: Any) -> None:
        keys = _keys(input, target)
        if accumulate:
            xp.add.at(array, keys, values.array)
        else:
            array[keys] = values.array

    return altered(input, into, layouts.preserved(input.layout))


def _put(x: Tensor, indices: tuple[Tensor | None, ...], values: Tensor, accumulate: bool) -> Tensor:
    """``index_put_`` that also takes None for a dimension to keep."""
    op = ops["index_put"]
    recorder = _recorders.get("put")
    if recorder is None:
        recorder = _recorders["put"] = Recorder(op)
    return change(op, recorder, [x, indices, values, accumulate])


_recorders: dict[str, Recorder] = {}
