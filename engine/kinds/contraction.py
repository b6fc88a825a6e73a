"""Products of two tensors: the rule looks at layouts only, so that its plan can be kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import layout as layouts
from engine import tape
from engine.dtypes import compute_dtype
from engine.errors import DtypeError
from engine.kinds.deriving import Recorder
from engine.kinds.record import make_op, parameters
from engine.kinds.results import cast, common_device, result, store_out
from engine.modes import state
from engine.signature import bind
from engine.tensor import Tensor, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.registry import Op


def contraction(*, vjp: Any, mismatch: str = "expected m1 and m2 to have the same dtype, but got: {} != {}", **record: Any) -> Callable[[Any], Any]:
    """An op of two tensors of one dtype.

    ``body(a, b)`` maps two Layouts to (shape, ``run(xp, x, y)``); the result is contiguous.
    ``mismatch`` is PyTorch's sentence for two dtypes, filled with their C++ names.
    """

    def decorate(body: Any) -> Any:
        return make_op(body, "contraction", lambda op: _build(op, mismatch), vjp=vjp, **record)

    return decorate


def _build(op: Op, mismatch: str) -> Any:
    name = op.name.rpartition(".")[2]
    ps = parameters(op)
    body = op.body
    recorder = Recorder(op)
    plans: dict[Any, Any] = {}

    def make_plan(a: Tensor, b: Tensor) -> Any:
        device = common_device(name, [a, b])
        if a.dtype is not b.dtype:
            raise DtypeError(mismatch.format(a.dtype.cpp, b.dtype.cpp))
        shape, run = body(a.layout, b.layout)
        kind = kind_of(a.dtype, device)
        compute = compute_dtype(a.dtype)
        widen = kind_of(compute, device) if compute is not a.dtype else None
        return kind, layouts.contiguous(shape), run, widen, kind.xp

    def call(*args: Any, **kwargs: Any) -> Any:
        out = None
        if kwargs or len(args) != 2 or args[0].__class__ is not Tensor or args[1].__class__ is not Tensor:
            out = kwargs.pop("out", None)
            args = tuple(bind(name, ps, args, kwargs))
        a, b = args
        key = (a.kind, b.kind, a.layout, b.layout)
        plan = plans.get(key)
        if plan is None:
            plan = plans[key] = make_plan(a, b)
        kind, layout, run, widen, xp = plan
        x, y = a.array, b.array
        if x is None:
            z = result(None, kind, layout)
        else:
            if widen is not None:
                x, y = cast(x, widen), cast(y, widen)
            z = result(run(xp, x, y), kind, layout)
        if state.grad and (
            a.ag is not None or b.ag is not None or a.base is not None or b.base is not None
        ):
            node = recorder.record(args, z)
            if node is not None:
                tape.attach(z, node)
        return z if out is None else store_out(out, z, name)

    return call
