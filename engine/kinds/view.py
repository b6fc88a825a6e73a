"""Views: operations that only change layout and offset; no data moves.

The body maps a Layout and arguments to a new Layout, or to (Layout, offset move). The derivative
follows from the change of layout unless a shorter one is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine import lazy, tape
from engine.errors import EngineError
from engine.kinds.deriving import Recorder
from engine.kinds.native import Native
from engine.kinds.record import make_op, parameters
from engine.kinds.results import verify
from engine.layout import expand, permute
from engine.modes import state
from engine.signature import bind
from engine.storage import Version
from engine.tape import Gradient, make_node
from engine.tensor import INFERENCE, MULTI_OUTPUT, NO_GRAD, Tensor, wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.layout import Layout
    from engine.registry import Op
    from engine.tape import Node
    from engine.tensor import Kind

_new = object.__new__
_ndarray = np.ndarray
_MEMO_LIMIT = 256


def view(
    *,
    vjp: Any = None,
    inplace: bool = False,
    located: bool = False,
    recorded: bool = True,
    complain: Callable[..., None] | None = None,
    otherwise: Callable[..., Tensor] | None = None,
    view: str = "always",
    **record: Any,
) -> Callable[[Any], Any]:
    """An op whose result shows its input's memory.

    ``body(layout, *arguments)`` gives a Layout or (Layout, offset move). Without ``vjp`` the
    gradient is written into zeros through the same view. ``inplace`` adds the twin that changes
    the tensor's own layout (``t_``, ``squeeze_``). ``located``: the body gets the tensor in
    place of its layout and gives (Layout, offset), (Layout, offset, Kind) or (Layout, offset, Kind,
    Storage), the offset counted from the start of the storage in elements of the result.
    ``complain(x, *arguments)`` may raise a better error than the body, which sees no dtype, has
    raised. ``otherwise(x, *arguments)`` gives the result where the body gives None because no
    view does.
    """

    def decorate(body: Any) -> Any:
        return make_op(
            body,
            "view",
            (lambda op: _build_located(op, recorded))
            if located
            else lambda op: _build(op, complain, otherwise),
            _build_inplace if inplace else None,
            vjp=vjp,
            inplace=inplace,
            view=view,
            **record,
        )

    return decorate


def make_view(
    x: Tensor,
    layout: Layout,
    offset: int,
    origin: int = 0,
    kind: Kind | None = None,
    array: Any = None,
) -> Tensor:
    """A tensor over the memory of ``x``, in another dtype of the same device if ``kind`` says so;
    not recorded. ``array`` is the view's array where that has been made already."""
    y: Tensor = _new(Tensor)
    y.kind = x.kind if kind is None else kind
    y.layout = layout
    y.offset = offset
    storage = x.memory
    y.memory = x.storage if storage is None else storage
    version = x.counter
    if version is None:
        version = x.counter = Version()
    y.counter = version
    y.stamp = version.n
    y.array = y.memory.array(y.kind, layout, offset) if array is None else array
    base = x.base
    y.base = x if base is None else base
    y.ag = None
    if state.grad:
        y.origin = origin or x.origin
    else:
        y.origin = INFERENCE if state.inference else NO_GRAD
    if state.watch:
        _finish(x, y)
    return y


def _finish(x: Tensor, y: Tensor) -> None:
    if state.check:
        verify(y)
    if state.recording is not None:
        state.recording.viewed(x, y, y.offset - x.offset)


def expanded(g: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A number's gradient for every element of ``shape``: ``g.expand(shape)``, by a shorter way
    where nothing is recorded: then nobody asks what it is a view of."""
    if not shape:
        return g
    array = g.array
    if (
        state.grad
        or g.layout.ndim
        or array is None
        or g.kind.opaque
        or array.__class__ is not _ndarray
    ):
        return g.expand(shape)
    memo = g.layout.memo
    known = memo.get(shape)
    if known is None:
        known = memo[shape] = (expand(g.layout, shape), (0,) * len(shape))
    layout, strides = known
    y = wrap(_ndarray(shape, array.dtype, array, 0, strides), g.kind, layout)
    if state.recording is not None:
        state.recording.viewed(g, y, 0)
    return y


def _recorded(
    recorder: Recorder | None, generic: Gradient, x: Tensor, y: Tensor, values: Sequence[Any]
) -> None:
    if recorder is not None:
        node = recorder.record(values, y)
        if node is None:
            return
    else:
        if not tape.requires_grad(x):
            return
        node = make_node(generic, y, (x,))
        node.attributes = (x.layout.shape, tuple(values[1:]))
    tape.attach(y, node)


def _generic_gradient(op: Op) -> Gradient:
    def placed(g: Tensor, shape: tuple[int, ...], arguments: tuple[Any, ...]) -> Tensor:
        whole: Tensor = g.new_zeros(shape)
        op.function(whole, *arguments).copy_(g)
        return whole

    rule = Native(op.node_name.replace("Backward", "BackwardBackward"), placed)

    def apply(node: Node, g: Tensor) -> Sequence[Any]:
        return (rule(g, *node.attributes),)

    return Gradient(op.node_name, apply)


def _planned(
    body: Any, layout: Layout, name: str, arguments: tuple[Any, ...]
) -> tuple[Layout, int]:
    memo = layout.memo
    key = (name, arguments)
    try:
        found = memo.get(key)
    except TypeError:
        found, key = None, None  # type: ignore[assignment]
    if found is None:
        made = body(layout, *arguments)
        found = made if made.__class__ is tuple else (made, 0)
        if key is not None and len(memo) < _MEMO_LIMIT:
            memo[key] = found
    return found


def _check_history(x: Tensor) -> None:
    """Raise what asking for the history of ``x`` raises, before anything else is looked at."""
    if state.grad and x.base is not None:
        tape.edge(x)


def _plain_numbers(args: tuple[Any, ...]) -> bool:
    """Whether equal arguments are the same arguments: 1 and True are equal too."""
    return all(
        a.__class__ is int or (a.__class__ is tuple and all(i.__class__ is int for i in a))
        for a in args
    )


def _build(
    op: Op,
    complain: Callable[..., None] | None,
    otherwise: Callable[..., Tensor] | None,
) -> Any:
    body = op.body
    name = op.spoken or op.name
    ps = parameters(op)
    count = len(ps)
    generic = _generic_gradient(op)
    recorder = Recorder(op) if op.derivatives is not None else None
    base_name = name.rpartition(".")[2]

    def call(*args: Any, **kwargs: Any) -> Any:
        values = bind(base_name, ps, args, kwargs)
        x = values[0]
        arguments = tuple(values[1:])
        return finish(x, *plan(x, arguments), arguments)

    def plan(x: Tensor, arguments: tuple[Any, ...]) -> tuple[Layout, int]:
        try:
            return _planned(body, x.layout, name, arguments)
        except EngineError:
            if complain is not None:
                complain(x, *arguments)
            raise

    def finish(x: Tensor, layout: Layout, move: int, arguments: tuple[Any, ...]) -> Tensor:
        if layout is None:
            assert otherwise is not None
            return otherwise(x, *arguments)
        y = make_view(x, layout, x.offset + move)
        if state.grad and (x.ag is not None or x.base is not None):
            _recorded(recorder, generic, x, y, (x, *arguments))
        return y

    def numbers(*args: Any, **kwargs: Any) -> Any:
        """For calls with plain positional integers, which need no binding the second time."""
        x = args[0] if args else None
        if kwargs or x.__class__ is not Tensor:
            return call(*args, **kwargs)
        key = (quick_name, args[1:])
        try:
            found = x.layout.memo.get(key)
        except TypeError:
            return call(*args)
        if found is None:
            values = bind(base_name, ps, args, kwargs)
            _check_history(x)
            arguments = tuple(values[1:])
            found = (*plan(x, arguments), arguments)
            if _plain_numbers(args[1:]) and len(x.layout.memo) < _MEMO_LIMIT:
                x.layout.memo[key] = found
        return finish(x, *found)

    if count > 1:
        quick_name = f"{name} called"
        return numbers

    def quick(*args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs or args[0].__class__ is not Tensor:
            return call(*args, **kwargs)
        x = args[0]
        old = x.layout
        found = old.memo.get(name)
        if found is None:
            _check_history(x)
            made = body(old)
            layout, move = made if made.__class__ is tuple else (made, 0)
            turned = move == 0 and layout is old.memo.setdefault(
                "T", permute(old, range(old.ndim)[::-1])
            )
            found = old.memo[name] = (layout, move, turned)
        layout, move, turned = found
        array = x.array
        # numpy's own transpose is quicker than a view made from the buffer.
        y = make_view(
            x, layout, x.offset + move, 0, None, array.T if turned and array is not None else None
        )
        if state.grad and (x.ag is not None or x.base is not None):
            _recorded(recorder, generic, x, y, (x,))
        return y

    return quick


def _build_located(op: Op, recorded: bool) -> Any:
    """``recorded`` false: the result shares memory, but autograd does not know it for a view."""
    body = op.body
    ps = parameters(op)
    generic = _generic_gradient(op)
    recorder = Recorder(op) if op.derivatives is not None else None
    name = op.name.rpartition(".")[2]

    def call(*args: Any, **kwargs: Any) -> Any:
        values = bind(name, ps, args, kwargs)
        x = values[0]
        layout, offset, *rest = body(*values)
        y = make_view(x, layout, offset, 0, rest[0] if rest else None)
        if len(rest) == 2:
            lazy.show(y, rest[1])
        if not recorded:
            y.base = None
        elif state.grad and (x.ag is not None or x.base is not None):
            _recorded(recorder, generic, x, y, values)
        return y

    return call


def _build_inplace(op: Op) -> Any:
    name = op.name.rpartition(".")[2]
    ps = parameters(op)

    def call(*args: Any, **kwargs: Any) -> Any:
        values = bind(name + "_", ps, args, kwargs)
        x = values[0]
        tape.check_inplace(x, False)
        y = op.function(*values)
        x.array = y.array
        x.offset = y.offset
        x.layout = y.layout
        tape.bump(x)
        if y.ag is not None and y.ag.node is not None:
            tape.attach(x, y.ag.node)
        return x

    return call


def multi_view(*, node: str, **record: Any) -> Callable[[Any], Any]:
    """An op with several views as results.

    ``body(layout, *arguments)`` gives a list of (Layout, offset move); ``vjp(gs, shape,
    arguments)`` the input's gradient from a list with None for results unused.
    """
    vjp = record.pop("vjp")

    def decorate(body: Any) -> Any:
        return make_op(
            body, "view", lambda op: _build_multi(op, vjp), node=node, view="always", **record
        )

    return decorate


def _build_multi(op: Op, vjp: Any) -> Any:
    name = op.name.rpartition(".")[2]
    ps = parameters(op)

    def apply(node: Node, gs: Any) -> Sequence[Any]:
        shape, arguments, layouts = node.attributes
        like = next(g for g in gs if g is not None)
        full = [
            like.new_zeros(layout.shape) if g is None else g
            for g, layout in zip(gs, layouts, strict=True)
        ]
        return (vjp(full, shape, *arguments),)

    gradient = Gradient(op.node_name, apply)

    def call(*args: Any, **kwargs: Any) -> Any:
        values = bind(name, ps, args, kwargs)
        x = values[0]
        arguments = tuple(values[1:])
        parts = op.body(x.layout, *arguments)
        ys = tuple([make_view(x, layout, x.offset + move, MULTI_OUTPUT) for layout, move in parts])
        if ys and state.grad and tape.requires_grad(x):
            node = make_node(gradient, ys[0], (x,))
            node.outputs = [(y.kind, y.layout) for y in ys]
            node.attributes = (x.layout.shape, arguments, [y.layout for y in ys])
            for nr, y in enumerate(ys):
                tape.attach(y, node, nr)
        return ys

    return call
