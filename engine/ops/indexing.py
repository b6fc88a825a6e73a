"""Square brackets: reading and writing through any mix of indices, and index_put."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine import dtypes, scalars, tape
from engine import layout as layouts
from engine.errors import (
    BroadcastError,
    DtypeError,
    NonzeroOnMetaError,
    TensorIndexError,
    TensorRuntimeError,
    TensorValueError,
)
from engine.kinds import altered, kernel, made
from engine.kinds.deriving import Recorder
from engine.kinds.kernel import change
from engine.kinds.results import cast
from engine.kinds.subscript import plan_of, viewed
from engine.kinds.view import make_view
from engine.modes import state
from engine.registry import method, ops
from engine.signature import ArgumentError
from engine.tensor import Tensor, number, wrap

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.kinds.subscript import Plan
    from engine.layout import Layout
    from engine.parameter_types import Tensors

_MEMO_LIMIT = 256
_MASKS = (dtypes.bool_, dtypes.uint8)
_TYPES = (dtypes.int64, dtypes.int32, *_MASKS)


@method("__getitem__")
def get(x: Tensor, index: Any) -> Tensor:
    """``x[index]``: a view for integers, slices, None and ``...``, else a copy."""
    plan = plan_of(x, index)
    if plan.key is not None and x.ag is None and x.base is None and x.array is not None:
        # The plain case, by itself: nothing to record, numpy's own indexing makes the array.
        return make_view(x, plan.layout, x.offset + plan.move, 0, None, x.array[plan.key])
    y = viewed(x, plan) if plan.steps else x
    if plan.indices:
        return ops["_index"].function(y, tuple(plan.indices))
    return y


@method("__setitem__")
def put(x: Tensor, index: Any, value: Any) -> None:
    """``x[index] = value`` for a tensor or number, broadcast and converted."""
    if not isinstance(value, Tensor):
        if value.__class__ in _DIRECT.get(x.kind.dtype, ()) and -(2**62) < value < 2**62:
            plan = plan_of(x, index)
            if plan.key is not None and _quick(x, plan):
                x.array[plan.key] = value
                x.version.n += 1  # type: ignore[union-attr]
                return
        if not isinstance(value, (bool, int, float, complex)):
            raise ArgumentError(
                f"can't assign a {type(value).__name__} to a torch.{x.dtype.title}Tensor"
            )
        value = _number(x, value)
    if index.__class__ is bool:
        if index:
            _copy_to(x.unsqueeze(0), value)
        return
    plan = plan_of(x, index)
    if not plan.indices:
        plain = value.kind is x.kind and not value.layout.ndim and plan.key is not None
        if plain and not _has_history(value):
            if _quick(x, plan):
                x.array[plan.key] = value.array
                x.version.n += 1  # type: ignore[union-attr]
                return
        _copy_to(viewed(x, plan), value)
        return
    shape = value.layout.shape
    while len(shape) and shape[0] == 1:
        shape = shape[1:]
    y = viewed(x, plan) if plan.steps else x
    _put(y, tuple(plan.indices), value if shape == value.layout.shape else value.view(shape), False)


# Numbers that are stored as they are in these dtypes, as long as they are not huge.
_DIRECT = {
    dtypes.float32: (float, int),
    dtypes.float64: (float, int),
    dtypes.int64: (int,),
}


def _has_history(t: Tensor) -> bool:
    return t.ag is not None or t.base is not None


def _quick(x: Tensor, plan: Plan) -> bool:
    """Whether nothing but storing is to be done: no history, no overlap."""
    return (
        x.array is not None
        and x.base is None
        and not plan.layout.overlaps
        and (x.ag is None or not state.grad)
        and not state.inference
        and x.version is not None
    )


def _number(x: Tensor, value: Any) -> Tensor:
    if value.__class__ is int and not -(2**63) <= value < 2**64:
        raise TensorValueError("Overflow when unpacking long long")
    if x.array is None:
        array = None
    elif x.dtype.low and value.__class__ is not complex:
        # By way of a double and unchecked: what is too large becomes infinite.
        array = cast(np.array(value, np.float64), x.kind)
    else:
        array = scalars.element(value, x.dtype)
    return wrap(array, x.kind, layouts.contiguous(()))


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


class _Place:
    """Where named elements lie: the indexed dimensions, and the result's shape and layout."""

    __slots__ = ("dims", "layout", "shape")

    def __init__(self, dims: list[int], shape: tuple[int, ...], layout: Layout):
        self.dims = dims
        self.shape = shape
        self.layout = layout


class _Target:
    """Index tensors sorted out: their arrays, and the place they name."""

    __slots__ = ("place", "vectors")

    def __init__(self, place: _Place, vectors: list[Any]):
        self.place = place
        self.vectors = vectors


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
    key = ("[index]", *[None if entry is None else entry[1] for entry in found])
    place = x.layout.memo.get(key)
    if place is None:
        place = _place(x.layout, [None if entry is None else entry[1] for entry in found])
        if len(x.layout.memo) < _MEMO_LIMIT:
            x.layout.memo[key] = place
    return _Target(place, [entry[0] for entry in found if entry is not None])


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
        raise NonzeroOnMetaError
    vectors = mask.array.nonzero()
    return [(v, layouts.contiguous(v.shape)) for v in vectors]


def _common_shape(named: list[Layout]) -> tuple[int, ...]:
    common: tuple[int, ...] = named[0].shape if named else ()
    for layout in named[1:]:
        try:
            common = layouts.broadcast_shapes(common, layout.shape)
        except BroadcastError:
            listed = ", ".join(str(list(n.shape)) for n in named)
            raise TensorIndexError(
                "shape mismatch: indexing tensors could not be broadcast together with shapes "
                f"{listed}"
            ) from None
    return common


def _place(x: Layout, found: list[Layout | None]) -> _Place:
    """Where the named elements' dimensions go, and the layout of a result: PyTorch lets its
    element-wise rule choose among the source with strides of zero and the index tensors."""
    if len(found) > x.ndim:
        raise TensorIndexError(
            f"too many indices for tensor of dimension {x.ndim} (got {len(found)})"
        )
    dims = [d for d, entry in enumerate(found) if entry is not None]
    named = [entry for entry in found if entry is not None]
    common = _common_shape(named)
    if 0 not in common and any(x.shape[d] == 0 for d in dims):
        raise TensorIndexError("index is out of bounds for dimension with size 0")
    n = len(common)
    adjacent = not dims or dims == list(range(dims[0], dims[-1] + 1))
    before = list(range(dims[0])) if adjacent and dims else []
    after = [d for d in range(x.ndim) if d not in dims and d not in before]
    shape = (*(x.shape[d] for d in before), *common, *(x.shape[d] for d in after))
    strides = (*(x.strides[d] for d in before), *(0,) * n, *(x.strides[d] for d in after))
    operands = [layouts.layout(shape, strides)]
    for layout in named:
        wide = layouts.expand(layout, common) if layout.shape != common else layout
        operands.append(layouts.view(wide, (*(1,) * len(before), *common, *(1,) * len(after))))
    return _Place(dims, shape, layouts.elementwise(operands, shape))


def _keys(target: _Target) -> Any:
    """The numpy index of the named elements."""
    dims = target.place.dims
    if dims == [0]:
        return target.vectors[0]
    keys: list[Any] = [slice(None)] * (dims[-1] + 1 if dims else 0)
    for d, vector in zip(dims, target.vectors, strict=True):
        keys[d] = vector
    return tuple(keys)


def _check_range(x: Tensor, target: _Target) -> None:
    """Say which index is out of range, after numpy found one."""
    for at, (d, vector) in enumerate(zip(target.place.dims, target.vectors, strict=True)):
        size = x.layout.shape[d]
        if vector.size and (vector.min() < -size or vector.max() >= size):
            bad = vector[(vector < -size) | (vector >= size)].reshape(-1)[0]
            raise TensorIndexError(
                f"index {bad} is out of bounds for dimension {at} with size {size}"
            )


def _is_one_mask(indices: tuple[Tensor | None, ...]) -> bool:
    """Whether a mask is all there is: one value then is filled in, whatever its dtype."""
    named = [i for i in indices if i is not None]
    return len(named) == 1 and named[0].dtype in _MASKS


def _whole_mask(x: Tensor, indices: tuple[Tensor | None, ...]) -> Any:
    """The array of a mask over all of ``x``, if that is all there is."""
    if len(indices) == 1 and x.array is not None:
        mask = indices[0]
        if mask is not None and mask.dtype.is_bool and mask.layout.shape == x.layout.shape:
            return mask.array
    return None


def _index_gradient(g: Tensor, input_shape: Any, indices: Any) -> Tensor:
    return _put(g.new_zeros(input_shape), indices, g, True)


@kernel(
    vjp=_index_gradient,
    function=False,
    method=False,
    out=False,
    node="IndexBackward0",
    example="tensor([1., 2.])[tensor([1, 0])]",
)
def _index(input: Tensor, indices: Any) -> Made:
    """The elements that index tensors name; None keeps a dimension."""
    mask = _whole_mask(input, indices)
    if mask is not None:
        chosen = input.array[mask]
        return made(input.dtype, chosen.shape, lambda xp: chosen)
    target = _target(input, indices)

    def run(xp: Any) -> Any:
        if not target.place.layout.numel:
            return xp.empty(target.place.shape, input.array.dtype)
        try:
            return input.array[_keys(target)]
        except IndexError:
            _check_range(input, target)
            raise

    return made(input.dtype, target.place.layout, run)


def _put_gradient(
    g: Tensor, indices: Any, accumulate: bool, values_shape: Any, needed: tuple[bool, ...]
) -> tuple[Tensor | None, Tensor | None]:
    into = from_values = None
    if needed[0]:
        into = g if accumulate else _put(g.clone(), indices, g.new_zeros(()), False)
    if needed[1]:
        from_values = tape.sum_to(ops["_index"].function(g, indices), values_shape)
    return into, from_values


def _broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    try:
        return layouts.broadcast_shapes(target, shape) == target
    except BroadcastError:
        return False


def _no_fit(values: Tensor, shape: tuple[int, ...]) -> TensorRuntimeError:
    return TensorRuntimeError(
        f"shape mismatch: value tensor of shape {list(values.layout.shape)} cannot be broadcast "
        f"to indexing result of shape {list(shape)}"
    )


@kernel(
    vjp={"input,values": _put_gradient},
    inplace=True,
    overlapping=True,
    out=False,
    example="index_put(zeros(3), (tensor([0, 2]),), tensor(1.))",
)
def index_put(input: Tensor, indices: Tensors, values: Tensor, accumulate: bool = False) -> Made:
    """``input`` with ``values``, broadcast, at the places that the index tensors name.

    With ``accumulate`` they are added, and a place named twice gets both.
    """
    if input.dtype is not values.dtype:
        shape = None if input.array is None else _target(input, indices).place.shape
        if _is_one_mask(indices) and values.layout.numel == 1:
            values = _number(input, number(values))
        else:
            if shape is not None and not _broadcasts(values.layout.shape, shape):
                raise _no_fit(values, shape)
            raise DtypeError(
                "Index put requires the source and destination dtypes match, got "
                f"{input.dtype.title} for the destination and {values.dtype.title} for the source."
            )
    layout = layouts.preserved(input.layout)
    if input.array is None and _is_one_mask(indices) and values.layout.numel == 1:
        return altered(input, lambda xp, array: None, layout)
    mask = _whole_mask(input, indices)
    if mask is not None and not values.layout.ndim and not accumulate:
        return altered(input, lambda xp, array: xp.copyto(array, values.array, where=mask), layout)
    target = _target(input, indices)
    shape = target.place.shape
    fits = _broadcasts(values.layout.shape, shape)
    if not fits and input.array is None:
        raise _no_fit(values, shape)

    def into(xp: Any, array: Any) -> None:
        if not fits:
            raise _no_fit(values, shape)
        if not target.place.layout.numel:
            return
        try:
            if accumulate:
                xp.add.at(array, _keys(target), values.array)
            else:
                array[_keys(target)] = values.array
        except IndexError:
            _check_range(input, target)
            raise

    named = tuple([i for i in indices if i is not None])
    return altered(input, into, layout, (values, *named))


def _put(x: Tensor, indices: tuple[Tensor | None, ...], values: Tensor, accumulate: bool) -> Tensor:
    """``index_put_`` that also takes None for a dimension to keep."""
    op = ops["index_put"]
    recorder = _recorders.get("put")
    if recorder is None:
        recorder = _recorders["put"] = Recorder(op)
    return change(op, recorder, [x, indices, values, accumulate], True)


_recorders: dict[str, Recorder] = {}
