"""What stands between square brackets: from an index to views and index tensors.

Integers, slices, None and ``...`` become view steps, all else index tensors by dimension. Plans
of indices without tensors are kept with the layout that they were made for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes, tape
from engine import layout as layouts
from engine.errors import (
    DimError,
    IndexRangeError,
    TensorIndexError,
    TensorTypeError,
    TensorValueError,
)
from engine.kinds.native import Native
from engine.kinds.view import make_view
from engine.modes import state
from engine.registry import F
from engine.tape import Gradient, Node, make_node
from engine.tensor import Tensor, number, wrap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.layout import Layout

_MEMO_LIMIT = 256
_BYTES = (dtypes.bool_, dtypes.uint8)


class Step:
    """One view: the layout it gives, how far the offset moves, and the gradient's node.

    ``key`` is the same step as a numpy index.
    """

    __slots__ = ("before", "gradient", "key", "layout", "move")

    def __init__(self, gradient: Gradient, before: Layout, layout: Layout, move: int, key: Any):
        self.gradient = gradient
        self.before = before
        self.layout = layout
        self.move = move
        self.key = key


class Plan:
    """An index in full: the view that its steps give together, and the index tensors after it.

    ``key`` is all of it as a numpy index, where there are no index tensors.
    """

    __slots__ = ("indices", "key", "layout", "move", "steps")

    def __init__(self, layout: Layout):
        self.layout = layout
        self.move = 0
        self.steps: list[Step] = []
        self.indices: list[Tensor | None] = []
        self.key: Any = None

    def step(self, gradient: Gradient, layout: Layout, move: int, key: Any) -> None:
        self.steps.append(Step(gradient, self.layout, layout, move, key))
        self.layout = layout
        self.move += move


def _placed(g: Tensor, shape: tuple[int, ...], key: Any) -> Tensor:
    """``g`` where ``key`` says in zeros of ``shape``."""
    whole = g.new_zeros(shape)
    whole[key].copy_(g)
    return whole


def _stepping(name: str) -> Gradient:
    """The node of that name: the gradient of a part of a tensor."""
    placed = Native(f"{name}BackwardBackward0", _placed)

    def apply(node: Node, g: Tensor) -> Sequence[Any]:
        shape, key = node.attributes
        if state.grad or g.array is None:
            return (placed(g, shape, key),)
        kind = g.kind

        def spread(part: Any) -> Any:
            array = kind.xp.zeros(shape, kind.np)
            array[key] = part
            return array

        whole = wrap(spread(g.array), kind, layouts.contiguous(shape))
        if state.recording is not None:
            state.recording.computed(whole, spread, (g.array,), None, ("spread", kind, shape, key))
        return (whole,)

    return Gradient(f"{name}Backward0", apply)


def _same_backward(node: Node, g: Tensor) -> Sequence[Any]:
    return (g.reshape(node.attributes[0]),)


SELECT = _stepping("Select")
SLICE = _stepping("Slice")
UNSQUEEZE = Gradient("UnsqueezeBackward0", _same_backward)
ALIAS = Gradient("AliasBackward0", _same_backward)

_INDEX_TYPES = (int, slice, type(None), type(Ellipsis))


def _cache_key(index: Any) -> Any:
    """A key that stands for an index of plain numbers, None if it holds anything else."""
    kind = index.__class__
    if kind is int:
        return (index,)
    if kind is tuple:
        parts = []
        for item in index:
            if item.__class__ is int or item is None:
                parts.append(item)
                continue
            part = _cache_key(item) if item.__class__ is not tuple else None
            if part is None:
                return None
            parts.append(part)
        return tuple(parts)
    if kind is slice:
        return _slice_key(index)
    if index is Ellipsis:
        return Ellipsis
    return None


def _slice_key(index: slice) -> Any:
    start, stop, step = index.start, index.stop, index.step
    if (
        (start.__class__ is int or start is None)
        and (stop.__class__ is int or stop is None)
        and (step is None or step.__class__ is int)
    ):
        return slice, start, stop, step
    return None


def plan_of(x: Tensor, index: Any) -> Plan:
    """The plan for ``x[index]``. Raises what PyTorch raises for an index that does not fit."""
    memo = x.layout.indexed
    if memo is None:
        memo = x.layout.indexed = {}
    if index.__class__ is slice:
        key = _slice_key(index)
    else:
        key = (None,) if index is None else _cache_key(index)
    if key is None:
        return _make(x, index)
    found = memo.get(key)
    if found is None:
        found = _make(x, index)
        if len(memo) < _MEMO_LIMIT:
            memo[key] = found
    return found


def _make(x: Tensor, index: Any) -> Plan:
    layout = x.layout
    plan = Plan(layout)
    if index.__class__ is int:
        if layout.ndim == 0:
            if index:
                raise IndexRangeError(index, 0, 0)
            raise TensorIndexError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
            )
        _select(plan, 0, index, 0)
    elif index.__class__ is slice:
        if layout.ndim == 0:
            if state.grad and x.base is not None:
                tape.edge(x)  # a history that cannot be told comes first
            raise TensorIndexError("slice() cannot be applied to a 0-dim tensor.")
        _slice(plan, 0, index, True)
    else:
        items = _items(index)
        _walk(plan, items)
    if not plan.steps and not plan.indices:
        plan.step(ALIAS, plan.layout, 0, ())
    if not plan.indices:
        plan.key = _numpy_key(index)
    return plan


def _numpy_key(index: Any) -> Any:
    items = index if index.__class__ is tuple else tuple(_items(index))
    if sum(item is Ellipsis for item in items) > 1:
        return None
    return tuple([_plain_item(item) for item in items]) + (
        () if any(item is Ellipsis for item in items) else (Ellipsis,)
    )


def _plain_item(item: Any) -> Any:
    if isinstance(item, Tensor):
        return int(number(item))
    if item.__class__ is slice:
        return slice(*[_bound(b) for b in (item.start, item.stop, item.step)])
    return item


def _items(index: Any) -> Sequence[Any]:
    if index.__class__ is tuple:
        return index
    if index.__class__ is list and len(index) < 32 and _holds_more_than_numbers(index):
        return tuple(index)
    return (index,)


def _holds_more_than_numbers(index: list[Any]) -> bool:
    """PyTorch reads a list with lists, slices, tensors, None or ``...`` in it as a tuple."""
    return any(
        isinstance(item, (list, tuple, slice, Tensor)) or item is None or item is Ellipsis
        for item in index
    )


def _specified(item: Any) -> int:
    if isinstance(item, Tensor):
        return item.layout.ndim if item.dtype in _BYTES else 1
    if item is None or item is Ellipsis or item.__class__ is bool:
        return 0
    return 1


def _walk(plan: Plan, items: Sequence[Any]) -> None:
    ready = [_as_tensor(i) if i.__class__ in (list, tuple, range) else i for i in items]
    ndim = plan.layout.ndim
    specified = sum(map(_specified, ready))
    for item in ready:
        _check_type(item)
    if specified > ndim:
        raise TensorIndexError(f"too many indices for tensor of dimension {ndim}")
    d = covered = 0
    for real, item in enumerate(ready):
        if item.__class__ is int:
            _select(plan, d, item, real)
        elif item.__class__ is slice:
            _slice(plan, d, item, False)
            d += 1
        elif item is Ellipsis:
            d += ndim - specified
        elif item is None:
            _unsqueeze(plan, d)
            d += 1
        elif item.__class__ is bool:
            _unsqueeze(plan, d)
            _record(plan, d - covered, _flag(item))
            d += 1
        elif item.layout.ndim == 0 and item.dtype.category <= dtypes.INT:
            if item.dtype in _BYTES:
                _unsqueeze(plan, d)
                _record(plan, d - covered, _flag(bool(number(item))))
                d += 1
            else:
                _select(plan, d, int(number(item)), real)
        else:
            # A mask is one index for all the dimensions that it stands for.
            _record(plan, d - covered, item)
            width = max(_specified(item), 1)
            d += width
            covered += width - 1


def _check_type(item: Any) -> None:
    if item.__class__ in (int, slice, bool) or item is None or item is Ellipsis:
        return
    if isinstance(item, Tensor):
        return
    if item.__class__ is str:
        raise TensorTypeError("new(): invalid data type 'str'")
    raise TensorIndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are "
        f"valid indices (got {type(item).__name__})"
    )


def _as_tensor(item: Any) -> Tensor:
    first = item
    around: set[int] = set()
    while isinstance(first, (list, tuple)) and first:
        around.add(id(first))
        first = first[0]
        if id(first) in around:
            raise TensorTypeError("new(): self-referential lists are incompatible")
        if len(around) > layouts.MOST_DIMS:
            raise TensorValueError(f"too many dimensions '{first.__class__.__name__}'")
    if isinstance(first, (list, tuple)):
        return F.tensor(item, dtype=dtypes.int64)  # type: ignore[no-any-return]
    if first.__class__ is str:
        raise TensorTypeError("new(): invalid data type 'str'")
    made: Tensor = F.tensor(item)
    return made if made.dtype is dtypes.bool_ else made.to(dtypes.int64)


def _flag(value: bool) -> Tensor:
    return F.zeros((1 if value else 0,), dtype=dtypes.int64)  # type: ignore[no-any-return]


def _record(plan: Plan, d: int, index: Tensor) -> None:
    plan.indices.extend([None] * (d - len(plan.indices)))
    plan.indices.append(index)


def _select(plan: Plan, d: int, index: int, real: int) -> None:
    if d >= plan.layout.ndim:
        raise DimError(d, plan.layout.ndim)
    size = plan.layout.shape[d]
    if not -size <= index < size:
        raise IndexRangeError(index, real, size)
    layout, move = layouts.select(plan.layout, d, index % size)
    plan.step(SELECT, layout, move, (slice(None),) * d + (index % size,))


def _unsqueeze(plan: Plan, d: int) -> None:
    plan.step(UNSQUEEZE, layouts.unsqueeze(plan.layout, d), 0, None)


def _bound(value: Any) -> Any:
    if value is None or value.__class__ is int:
        return value
    if isinstance(value, Tensor) and value.layout.numel == 1 and value.dtype.category <= dtypes.INT:
        return int(number(value))
    if value.__class__ is bool:
        return int(value)
    raise TensorTypeError("slice indices must be integers or None or have an __index__ method")


def _slice(plan: Plan, d: int, item: slice, always: bool) -> None:
    start, stop, step = _bound(item.start), _bound(item.stop), _bound(item.step)
    if step is None:
        step = 1
    if step == 0:
        raise TensorValueError("slice step cannot be zero")
    if step < 0:
        raise TensorValueError("step must be greater than zero")
    if d >= plan.layout.ndim:
        raise DimError(d, plan.layout.ndim)
    size = plan.layout.shape[d]
    first, last, _ = slice(start, stop).indices(size)
    if not always and not start and last == size and step == 1:
        return
    last = max(first, last)
    length = (last - first + step - 1) // step
    layout, move = layouts.narrow(plan.layout, d, first, length, step)
    plan.step(SLICE, layout, move, (slice(None),) * d + (slice(first, last, step),))


def viewed(x: Tensor, plan: Plan) -> Tensor:
    """The view that the plan's steps make of ``x``, recorded step by step."""
    if state.grad and (x.ag is not None or x.base is not None) and tape.requires_grad(x):
        y = x
        for step in plan.steps:
            part = make_view(y, step.layout, y.offset + step.move)
            node = make_node(step.gradient, part, (y,))
            node.attributes = (step.before.shape, step.key)
            tape.attach(part, node)
            y = part
        return y
    array = x.array
    if array is not None and plan.key is not None:
        array = array[plan.key]
    else:
        array = None
    return make_view(x, plan.layout, x.offset + plan.move, 0, None, array)
