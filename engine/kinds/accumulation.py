"""Products added to a tensor: beta·input + alpha·(a times b), with a plan kept for each layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes, tape
from engine import layout as layouts
from engine.dtypes import compute_dtype
from engine.errors import InplaceError
from engine.kinds.deriving import Recorder
from engine.kinds.record import make_op, parameters, spoken_name
from engine.kinds.results import cast, common_device, result, store_out, tell, write
from engine.modes import state
from engine.signature import bind
from engine.storage import make_room
from engine.tensor import Tensor, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.registry import Op

_PLAN_LIMIT = 4096


def accumulation(*, vjp: Any, **record: Any) -> Callable[[Any], Any]:
    """An op with the parameters (input, a, b, *, beta, alpha).

    ``body(input, a, b)`` refuses what does not go together, looking at dtypes and layouts only,
    and gives (shape, ``multiply(x, y)``) for arrays. ``input`` broadcasts; with beta 0 it is not
    looked at. The in-place twin wants it to have the result's shape.
    """

    def decorate(body: Any) -> Any:
        return make_op(
            body, "accumulation", _build, _build_inplace, vjp=vjp, inplace=True, **record
        )

    return decorate


def scaled_sum(base: Any, beta: Any, product: Any, alpha: Any) -> Any:
    """beta·base + alpha·product for arrays of one dtype; base is not looked at when beta is 0."""
    if alpha != 1:
        product = product * product.dtype.type(alpha)
    if beta == 0:
        return product
    return product + (base if beta == 1 else base * base.dtype.type(beta))


def whole_factors(input: Tensor, beta: Any, alpha: Any) -> tuple[Any, Any]:
    """The factors as the dtype takes them: integers lose their fractions."""
    if input.dtype.category <= dtypes.INT:
        return int(beta), int(alpha)
    return beta, alpha


def _accumulate(op: Op) -> Callable[[Tensor, Tensor, Tensor, Any, Any], Tensor]:
    name = spoken_name(op)
    body = op.body
    plans: dict[Any, Any] = {}

    def make_plan(input: Tensor, a: Tensor, b: Tensor) -> Any:
        device = common_device(name, [input, a, b])
        shape, multiply = body(input, a, b)
        kind = kind_of(input.dtype, device)
        compute = compute_dtype(input.dtype)
        widen = kind_of(compute, device) if compute is not input.dtype else None
        return kind, layouts.contiguous(shape), multiply, widen

    def accumulate(input: Tensor, a: Tensor, b: Tensor, beta: Any, alpha: Any) -> Tensor:
        key = (input.kind, a.kind, b.kind, input.layout, a.layout, b.layout)
        plan = plans.get(key)
        if plan is None:
            plan = make_plan(input, a, b)
            if len(plans) > _PLAN_LIMIT:
                plans.clear()
            plans[key] = plan
        kind, layout, multiply, widen = plan
        if input.array is None or a.array is None or b.array is None:
            return result(None, kind, layout)
        make_room(kind, layout)
        if beta != 1 or alpha != 1:
            beta, alpha = whole_factors(input, beta, alpha)

        def run(base: Any, x: Any, y: Any) -> Any:
            if widen is not None:
                base, x, y = cast(base, widen), cast(x, widen), cast(y, widen)
            if beta != 1 or alpha != 1:
                return scaled_sum(base, beta, multiply(x, y), alpha)
            return multiply(x, y) + base

        arrays = (input.array, a.array, b.array)
        z = result(run(*arrays), kind, layout)
        if state.recording is not None:
            tell(z, (plan, beta, alpha), run, (input, a, b), arrays)
        return z

    return accumulate


def _build(op: Op) -> Any:
    name = spoken_name(op)
    ps = parameters(op)
    accumulate = _accumulate(op)
    record = Recorder(op).record

    def call(*args: Any, **kwargs: Any) -> Any:
        out = None
        if (
            len(args) == 3
            and not kwargs
            and args[0].__class__ is Tensor
            and args[1].__class__ is Tensor
            and args[2].__class__ is Tensor
        ):
            values: Any = (*args, 1, 1)
        else:
            out = kwargs.pop("out", None)
            values = bind(name, ps, args, kwargs)
        y = accumulate(*values)
        if state.grad:
            node = record(values, y)
            if node is not None:
                tape.attach(y, node)
        return y if out is None else store_out(out, y, name)

    return call


def _build_inplace(op: Op) -> Any:
    name = spoken_name(op) + "_"
    ps = parameters(op)
    accumulate = _accumulate(op)
    recorder = Recorder(op)

    def call(*args: Any, **kwargs: Any) -> Any:
        values = bind(name, ps, args, kwargs)
        x: Tensor = values[0]
        recorded = state.grad and any(tape.requires_grad(t) for t in values[:3])
        tape.check_inplace(x, recorded)
        tape.check_overlap(x)
        y = accumulate(*values)
        if y.layout.shape != x.layout.shape:
            raise InplaceError(
                f"Bad in-place call: input tensor size {list(x.layout.shape)} and output tensor "
                f"size {list(y.layout.shape)} should match"
            )
        before = recorder.before_write(values) if recorded else values
        write(x, y)
        tape.bump(x)
        if recorded:
            node = recorder.record(before, x)
            if node is not None:
                tape.rebase(x, node)
        return x

    return call
