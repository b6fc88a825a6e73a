"""In-place twins of element-wise operations."""

from __future__ import annotations

from typing import Any

from engine import dtypes, tape
from engine import layout as layouts
from engine.errors import DtypeNotImplementedError
from engine.kinds.kernel import date_back
from engine.kinds.pointwise_plan import (
    TO_BOOL,
    Plan,
    Rule,
    common_dtype,
    make_plan,
    number_array,
    planned,
    taken_over,
)
from engine.kinds.record import parameters, twin
from engine.kinds.results import check_destination, check_partial_overlap, result, write
from engine.modes import state
from engine.signature import bind, check_numbers
from engine.storage import UNTRACKED, Version
from engine.tensor import Tensor, kind_of

_UNKNOWN: Any = object()


def inplace_function(rule: Rule) -> Any:
    """The callable that changes its first operand."""
    plans: dict[Any, Plan] = {}
    name = rule.name + "_"
    ps = parameters(rule.op)
    count = rule.count
    quick = _quick_inplace(rule)

    def call(*args: Any, **kwargs: Any) -> Any:
        if quick is not None and len(args) == 2 and not kwargs and quick(args[0], args[1]):
            return args[0]
        values = bind(name, ps, args, kwargs)
        other = taken_over(rule, values)
        if other is not None:
            return twin(other[0])(*other[1])
        x = values[0]
        operands, attributes = values[:count], tuple(values[count:])
        recorded = state.grad and any(
            isinstance(v, Tensor) and tape.requires_grad(v) for v in values[:count]
        )
        if rule.refuse_inplace is not None:
            rule.refuse_inplace(*operands)
        keep = rule.recorder if recorded else None
        tape.check_inplace(x, recorded)
        before = values if keep is None else keep.before_write(values)
        tape.check_overlap(x)
        for operand in operands[1:]:
            if isinstance(operand, Tensor):
                check_partial_overlap(x, operand)
        try:
            plan, arrays = planned(rule, plans, operands, attributes)
        except DtypeNotImplementedError:
            _check_before_kernel(rule, operands, recorded)
            raise
        check_destination(x, plan.kind, plan.layout.shape, recorded)
        if plan.ufunc is not None and plan.kind is x.kind and x.array is not None:
            plan.ufunc(*arrays, out=x.array)
        else:
            y = result(plan.run(*arrays), plan.kind, plan.layout)
            write(x, y)
        tape.bump(x)
        if state.recording is not None:
            _tell(plan, x, operands, arrays)
        if keep is None:
            return x
        node = keep.record(before, x)
        if node is not None:
            date_back(node, x)
            tape.rebase(x, node)
        return x

    return call


def _quick_inplace(rule: Rule) -> Any:
    """A function that does the plainest in-place calls and tells whether it did: contiguous
    operands of one dtype and shape, or a number, in memory of their own, nothing recorded."""
    if rule.ufunc is None or rule.count != 2 or not rule.quick or rule.refuse_inplace is not None:
        return None
    plans: dict[Any, Plan | None] = {}
    takes_numbers = parameters(rule.op)[1].kind == "Operand"

    def plan_of(x: Tensor, b: Any) -> Plan | None:
        if not x.layout.plain or x.kind.opaque or x.array is None:
            return None
        if not takes_numbers and not isinstance(b, Tensor):
            return None
        try:
            plan = make_plan(rule, [x, b], ())
        except Exception:  # the long way finds out what is wrong, and says it
            return None
        same = plan.kind is x.kind and plan.layout is x.layout
        return plan if same and plan.ufunc is not None and plan.check is None else None

    def quick(x: Any, b: Any) -> bool:
        if x.__class__ is not Tensor or x.base is not None or x.counter is UNTRACKED:
            return False
        if state.recording is not None:
            return False
        if state.grad and (x.ag is not None or b.__class__ is Tensor and b.ag is not None):
            return False
        if b.__class__ is Tensor:
            if b.kind is not x.kind or b.layout is not x.layout or b.base is not None:
                return False
            if b.memory is not None and b.memory is x.memory and b is not x:
                return False
            key: Any = (x.kind, x.layout)
        else:
            key = (x.kind, x.layout, b.__class__)
        plan = plans.get(key, _UNKNOWN)
        if plan is _UNKNOWN:
            plan = plans[key] = plan_of(x, b)
        if plan is None:
            return False
        if b.__class__ is Tensor:
            plan.ufunc(x.array, b.array, out=x.array)
        else:
            number = plan.numbers.get(b)
            if number is None:
                check_numbers(b)
                number = number_array(plan, b)
            plan.ufunc(x.array, number, out=x.array)
        counter = x.counter
        if counter is None:
            counter = x.counter = Version()
        counter.n += 1
        return True

    return quick


def _tell(plan: Plan, x: Tensor, operands: list[Any], arrays: list[Any]) -> None:
    """Tell whoever records what was stored in ``x``."""
    recording = state.recording
    if plan.kind is not x.kind or x.array is None:
        recording.fail("a result was converted when it was stored")
        return
    run: Any = plan.ufunc
    count = len(arrays)
    if run is None:

        def change(*given: Any) -> None:
            given[-1][...] = plan.run(*given[:count])

        run = change
    recording.numbers(operands, arrays)
    recording.changed(x, plan, run, arrays)


def _check_before_kernel(rule: Rule, operands: list[Any], recorded: bool) -> None:
    """What an in-place call refuses before PyTorch looks for a kernel."""
    x = operands[0]
    shape = x.layout.shape
    for t in operands:
        if isinstance(t, Tensor):
            shape = layouts.broadcast_shapes(shape, t.layout.shape)
    final = common_dtype(rule, operands)
    if rule.promote in TO_BOOL:
        final = dtypes.bool_
    check_destination(x, kind_of(final, x.kind.device), shape, recorded)
