"""Element-wise operations: a rule cached per operands, a ufunc or kernel, and their in-place twins.

What a call does is decided once for each combination of the operands' kinds and layouts and kept
in a plan; a call on operands seen before is a dictionary look-up, the ufunc and some assignments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine import layout as layouts
from engine import tape
from engine.dtypes import DType
from engine.kinds.deriving import Recorder
from engine.kinds.pointwise_inplace import inplace_function
from engine.kinds.pointwise_plan import (
    BOOL_OUT,
    DEFAULT,
    INT_TO_FLOAT,
    NUMBERS,
    Plan,
    Rule,
    make_plan,
    number_array,
    planned,
    taken_over,
)
from engine.kinds.record import make_op, parameters, spoken_name
from engine.kinds.results import finish, result, store_out, tell
from engine.kinds.twins import erasing
from engine.modes import state
from engine.overloads import reworded
from engine.signature import ArgumentError, bind, check_numbers, type_name, wrong
from engine.tensor import Tensor, kind_of, wrap

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.registry import Op

_new = object.__new__


def pointwise(
    *,
    ufunc: str | None = None,
    kernel: Any = None,
    vjp: Any = None,
    promote: Any = DEFAULT,
    takes: str = "bifc",
    stub: str | None = None,
    promoted: tuple[str, ...] | None = None,
    otherwise: Callable[..., tuple[str, tuple[Any, ...]] | None] | None = None,
    refuse: Callable[..., None] | None = None,
    check_number: Callable[[Any, DType], None] | None = None,
    numbers: bool = False,
    number_strides: str | Callable[..., str] = "operand",
    short: Callable[..., dict[Any, Any] | None] | None = None,
    lacks: Callable[..., bool] | None = None,
    refuse_inplace: Callable[..., None] | None = None,
    exact_last: bool = False,
    inplace: bool = True,
    **record: Any,
) -> Callable[[Any], Any]:
    """An element-wise op.

    The leading parameters annotated Tensor or Operand are its operands, the rest are attributes.
    ``ufunc`` names a function of the array module; ``kernel(xp, *arrays, *attributes)`` is for
    everything else. ``promote`` maps the promoted dtype to (compute, result). ``takes`` lists the
    categories accepted: b, i, f, c, and u for the wide unsigned integers; others are refused
    with ``stub``'s name. ``promoted`` names the operands that take part in promotion (all).
    ``otherwise(*values)`` gives the name and values of the op that does a call in this one's
    stead (or None), so that the usual call keeps to the quick path. ``refuse(*operands)`` raises
    for dtypes that do not go together, ``check_number(number, compute dtype)`` for a last
    operand that is a number. ``numbers``: two numbers are accepted as well.
    ``short(*operands)`` may give functions of (array, number) for some numbers, in place of the
    kernel. ``number_strides`` says how numbers count for the result's strides: "operand" as 0-d
    operands, "inner" not at all, "always": PyTorch computes the op with a
    number of its own, "contiguous": none count; or a function of the operands gives one of
    these. ``lacks(*operands)`` holds where PyTorch has no kernel;
    ``refuse_inplace(*operands)`` raises where only the in-place twin refuses.
    ``exact_last``: a last operand that is a number (or 0-d) is not rounded to a low-precision
    dtype first.
    """

    def decorate(body: Any) -> Any:
        def make_rule(op: Op) -> Rule:
            rule = Rule()
            rule.op = op
            rule.name = op.name.rpartition(".")[2]
            rule.ufunc = getattr(np, ufunc) if ufunc else None
            rule.kernel = kernel
            rule.promote = promote
            rule.takes = takes
            rule.stub = (stub or "{}_cpu").format(rule.name)
            ps = parameters(op)
            operands = [p for p in ps if p.kind in ("Tensor", "Operand") and not p.keyword_only]
            rule.count = len(operands)
            rule.promoted = tuple(promoted is None or p.name in promoted for p in operands)
            rule.otherwise = otherwise
            rule.refuse = refuse
            rule.check_number = check_number
            rule.numbers = numbers
            rule.number_strides = number_strides
            rule.short = short
            rule.lacks = lacks
            rule.refuse_inplace = refuse_inplace
            rule.exact_last = exact_last
            rule.attributes = len(ps) - len(operands)
            rule.defaults = tuple(p.default for p in ps[len(operands) :])
            rule.quick = not rule.attributes or (
                otherwise is not None and all(p.kind != "Operand" or not p.optional for p in ps)
            )
            rule.recorder = Recorder(op)
            return rule

        def build(op: Op) -> Any:
            rule = make_rule(op)
            if rule.quick and rule.count == 1:
                return _unary(rule)
            if rule.quick and rule.count == 2:
                return _binary(rule)
            return _general(rule)

        return make_op(
            body,
            "pointwise",
            build,
            (lambda op: inplace_function(make_rule(op))) if inplace else None,
            vjp=vjp,
            inplace=inplace,
            **record,
        )

    return decorate


def smooth(**options: Any) -> Callable[[Any], Any]:
    """A pointwise op of floating-point numbers: integers and booleans become floats first."""
    options.setdefault("promote", INT_TO_FLOAT)
    options.setdefault("takes", "bifcu")
    options.setdefault("stub", "{}_vml_cpu")
    return pointwise(**options)


def comparison(*, erases: bool = False, **options: Any) -> Callable[[Any], Any]:
    """A pointwise op that gives booleans and has no derivative.

    ``erases``: in place it is recorded, as what puts an end to the gradient.
    """
    options.setdefault("promote", BOOL_OUT)
    decorate = pointwise(**options)
    if not erases:
        return decorate

    def enter(body: Any) -> Any:
        op = decorate(body)
        assert op.build_inplace is not None
        op.build_inplace = erasing(op.build_inplace)
        return op

    return enter


def _record(rule: Rule, values: list[Any], y: Tensor) -> None:
    node = rule.recorder.record(values, y)
    if node is not None:
        tape.attach(y, node)


def _as_tensors(rule: Rule, values: list[Any]) -> list[Any]:
    """Two numbers as operands: the first becomes a 0-d tensor, where the op takes numbers."""
    p, value = parameters(rule.op)[0], values[0]
    if not rule.numbers:
        if p.kind != "Operand":
            raise wrong(rule.name, p, 1, "Tensor", value)
        given = ", ".join(type_name(v) for v in values)
        complaint = ArgumentError(
            f"{rule.name}() received an invalid combination of arguments - got ({given}), but "
            "expected one of:",
            p.name,
        )
        raise reworded(complaint, spoken_name(rule.op), tuple(values), {})
    dtype = NUMBERS[value.__class__]()
    return [wrap(np.array(value, dtype.np), kind_of(dtype), layouts.contiguous(())), values[1]]


def _unary(rule: Rule) -> Any:
    plans: dict[Any, Plan] = {}
    get = plans.get
    name = spoken_name(rule.op)
    ps = parameters(rule.op)
    record = rule.recorder.record_first

    def apply(x: Any) -> Any:
        key = (x.kind, x.layout)
        plan = get(key)
        if plan is None:
            plan = plans[key] = make_plan(rule, [x], rule.defaults)
        y: Tensor = _new(Tensor)
        y.array = plan.run(x.array)
        y.kind = plan.kind
        y.layout = plan.layout
        y.offset = 0
        y.base = None
        y.ag = None
        y.origin = 0
        y.memory = None
        y.counter = None
        if state.grad and (x.ag is not None or x.base is not None):
            record((x,), y)
        if state.watch:
            finish(y, plan.run, (x.array,))
        return y

    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and args[0].__class__ is Tensor and not kwargs:
            return apply(args[0])
        out = kwargs.pop("out", None)
        values = bind(name, ps, args, kwargs)
        other = taken_over(rule, values)
        y = apply(values[0]) if other is None else other[0].function(*other[1])
        return y if out is None else store_out(out, y, name, values)

    return call


def operator_function(op: Op) -> Any:
    """The op's function for Python's operators: NotImplemented for operands it does not take."""
    return op.function.apply  # type: ignore[attr-defined]  # set by _binary


def _binary(rule: Rule) -> Any:
    plans: dict[Any, Plan] = {}
    get = plans.get
    name = spoken_name(rule.op)
    ps = parameters(rule.op)
    record = rule.recorder.record_two

    def apply(a: Any, b: Any) -> Any:
        if b.__class__ is Tensor:
            if a.__class__ is not Tensor:
                return with_number(b, a, True)
            key = (a.kind, b.kind, a.layout, b.layout)
            plan = get(key)
            if plan is None:
                plan = plans[key] = make_plan(rule, [a, b], rule.defaults)
            y: Tensor = _new(Tensor)
            y.array = plan.run(a.array, b.array)
            y.kind = plan.kind
            y.layout = plan.layout
            y.offset = 0
            y.base = None
            y.ag = None
            y.origin = 0
            y.memory = None
            y.counter = None
            if state.grad and (
                a.ag is not None or b.ag is not None or a.base is not None or b.base is not None
            ):
                record(a, b, y)
            if state.watch:
                finish(y, plan.run, (a.array, b.array))
            return y
        if a.__class__ is not Tensor:
            return NotImplemented
        return with_number(a, b, False)

    def with_number(x: Tensor, n: Any, reflected: bool) -> Any:
        key = (x.kind, n.__class__, x.layout, reflected, state.default_dtype)
        plan = get(key)
        if plan is None:
            if n.__class__ not in NUMBERS or ps[not reflected].kind != "Operand":
                return NotImplemented
            operands = [n, x] if reflected else [x, n]
            plan = plans[key] = make_plan(rule, operands, rule.defaults)
        number = plan.numbers.get(n)
        if number is None:
            check_numbers(n)
            number = number_array(plan, n)
        y: Tensor = _new(Tensor)
        run = plan.run if plan.short is None else plan.short.get(n, plan.run)
        y.array = run(number, x.array) if reflected else run(x.array, number)
        y.kind = plan.kind
        y.layout = plan.layout
        y.offset = 0
        y.base = None
        y.ag = None
        y.origin = 0
        y.memory = None
        y.counter = None
        if state.grad and (x.ag is not None or x.base is not None):
            if reflected:
                record(n, x, y)
            else:
                record(x, n, y)
        if state.watch:
            finish(y, run, (number, x.array) if reflected else (x.array, number), number)
        return y

    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 2 and not kwargs:
            y = apply(args[0], args[1])
            if y is not NotImplemented:
                return y
        out = kwargs.pop("out", None)
        values = bind(name, ps, args, kwargs)
        other = taken_over(rule, values)
        y = apply(*values[:2]) if other is None else other[0].function(*other[1])
        if y is NotImplemented:
            y = apply(*_as_tensors(rule, values))
        return y if out is None else store_out(out, y, name, values)

    call.apply = apply  # type: ignore[attr-defined]  # what Python's operators call
    return call


def _general(rule: Rule) -> Any:
    plans: dict[Any, Plan] = {}
    name = spoken_name(rule.op)
    ps = parameters(rule.op)
    count = rule.count

    def call(*args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        values = bind(name, ps, args, kwargs)
        y = compute(values)
        return y if out is None else store_out(out, y, name, values)

    def compute(values: list[Any]) -> Tensor:
        other = taken_over(rule, values)
        if other is not None:
            return other[0].function(*other[1])  # type: ignore[no-any-return]
        plan, arrays = planned(rule, plans, values[:count], tuple(values[count:]))
        y = result(plan.run(*arrays), plan.kind, plan.layout)
        if state.recording is not None:
            tell(y, plan, plan.run, values[:count], arrays)
        if state.grad:
            _record(rule, values, y)
        return y

    return call
