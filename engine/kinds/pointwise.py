"""Element-wise operations: a rule cached per operands, a ufunc or kernel, and their in-place twins.

What a call does is decided once for each combination of the operands' kinds and layouts and kept
in a plan; a call on operands seen before is a dictionary look-up, the ufunc and five assignments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine import dtypes, tape
from engine import layout as layouts
from engine.dtypes import DType
from engine.errors import DtypeNotImplementedError
from engine.kinds.deriving import Recorder
from engine.kinds.record import make_op, parameters
from engine.kinds.results import (
    array_strides,
    cast,
    check_destination,
    check_partial_overlap,
    common_device,
    finish,
    fit,
    result,
    store_out,
    write,
)
from engine.modes import state
from engine.registry import methods, ops
from engine.signature import ArgumentError, bind, check_numbers, type_name, wrong
from engine.storage import UNTRACKED, Version, is_big, make_room
from engine.tensor import Kind, Tensor, kind_of, wrap

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.layout import Layout
    from engine.registry import Op

_new = object.__new__
_UNKNOWN: Any = object()
_SCALAR = layouts.contiguous(())

# Operands up to this size are tried out to see how numpy lays out the result.
_TRY_OUT = 1 << 14
_NUMBERS: dict[type, Callable[[], DType]] = {
    bool: lambda: dtypes.bool_,
    int: lambda: dtypes.int64,
    float: lambda: state.default_dtype,
    complex: lambda: dtypes.complex_of(state.default_dtype),
}


def DEFAULT(common: DType) -> tuple[DType, DType]:
    """Compute in the promoted dtype (float32 for the low-precision ones), give the promoted."""
    return (dtypes.float32 if common.low else common), common


def INT_TO_FLOAT(common: DType) -> tuple[DType, DType]:
    """As DEFAULT, integers and booleans going to the default dtype first."""
    if common.category <= dtypes.INT:
        common = state.default_dtype
    return (dtypes.float32 if common.low else common), common


def STEPWISE(common: DType) -> tuple[DType, DType]:
    """As INT_TO_FLOAT, but in a low-precision dtype itself: each step of the kernel rounds."""
    if common.category <= dtypes.INT:
        common = state.default_dtype
    return common, common


def BOOL_OUT(common: DType) -> tuple[DType, DType]:
    """Compare in the promoted dtype, give booleans."""
    return (dtypes.float32 if common.low else common), dtypes.bool_


def COMPARED(common: DType) -> tuple[DType, DType]:
    """Compare in the promoted dtype itself, give booleans."""
    return common, dtypes.bool_


_TO_BOOL = (BOOL_OUT, COMPARED)


class _Rule:
    """The static part of one pointwise op, read from its record on first use."""

    __slots__ = (
        "attributes", "check_number", "count", "defaults", "exact_last", "kernel", "lacks", "name",
        "number_strides", "numbers", "op", "otherwise", "promote", "promoted", "quick",
        "recorder", "refuse", "refuse_inplace", "stub", "takes", "ufunc",
    )  # fmt: skip

    op: Op
    kernel: Any
    ufunc: Any
    count: int
    exact_last: bool
    recorder: Recorder

    def keeps_exact(self, at: int, operand: Any) -> bool:
        """Whether the operand at that place goes unrounded into a low-precision computation."""
        return (
            self.exact_last
            and at == self.count - 1
            and (not isinstance(operand, Tensor) or operand.layout.ndim == 0)
        )


class Plan:
    """What to do with operands of certain kinds and layouts."""

    __slots__ = ("check", "compute", "kind", "layout", "narrow", "numbers", "run", "ufunc")

    def __init__(self, run: Any, kind: Kind, layout: Layout, compute: DType):
        self.run = _asking(run, kind, layout) if is_big(kind, layout) else run
        # What may write into a destination by itself.
        self.ufunc = run if run.__class__ is np.ufunc else None
        self.kind = kind
        self.layout = layout
        self.compute = compute
        self.numbers: dict[Any, Any] = {}
        self.check: Any = None
        self.narrow: Any = None


def _asking(run: Any, kind: Kind, layout: Layout) -> Any:
    def asked(*arrays: Any) -> Any:
        make_room(kind, layout)
        return run(*arrays)

    return asked


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
    ``number_strides`` says how numbers count for the result's strides: "operand" as 0-d
    operands, "inner" not at all, "always": PyTorch computes the op with a
    number of its own, "contiguous": none count; or a function of the operands gives one of
    these. ``lacks(*operands)`` holds where PyTorch has no kernel;
    ``refuse_inplace(x)`` raises for a destination that the in-place twin refuses.
    ``exact_last``: a last operand that is a number (or 0-d) is not rounded to a low-precision
    dtype first.
    """

    def decorate(body: Any) -> Any:
        def make_rule(op: Op) -> _Rule:
            rule = _Rule()
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
            (lambda op: _inplace(make_rule(op))) if inplace else None,
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


def comparison(**options: Any) -> Callable[[Any], Any]:
    """A pointwise op that gives booleans and has no derivative."""
    options.setdefault("promote", BOOL_OUT)
    return pointwise(**options)


def _check_takes(rule: _Rule, common: DType) -> None:
    category = "bifc"[common.category]
    wide = common.name in ("uint16", "uint32", "uint64")
    if (
        category not in rule.takes
        or (wide and "u" not in rule.takes)
        or (common.name.startswith("float8") and "8" not in rule.takes)
    ):
        raise DtypeNotImplementedError(f'"{rule.stub}" not implemented for \'{common.title}\'')


def _common(rule: _Rule, operands: list[Any]) -> DType:
    """The promoted dtype of the operands that take part in promotion."""
    dimensioned, zero, numbers = [], [], []
    for t, counts in zip(operands, rule.promoted, strict=True):
        if not counts:
            continue
        if not isinstance(t, Tensor):
            check_numbers(t)
            numbers.append(_NUMBERS[type(t)]())
        elif t.layout.ndim:
            dimensioned.append(t.dtype)
        else:
            zero.append(t.dtype)
    return dtypes.result_type(dimensioned, zero, numbers)


def make_plan(rule: _Rule, operands: list[Any], attributes: tuple[Any, ...]) -> Plan:
    """The plan for ``operands`` (tensors and numbers). Raises what PyTorch raises for them."""
    tensors = [t for t in operands if isinstance(t, Tensor)]
    if rule.refuse is not None:
        rule.refuse(*operands)
    device = common_device(rule.name, tensors)
    common = _common(rule, operands)
    shape: tuple[int, ...] = ()
    for t in tensors:
        shape = layouts.broadcast_shapes(shape, t.layout.shape) if shape else t.layout.shape
    _check_takes(rule, common)
    if rule.lacks is not None and rule.lacks(*operands):
        raise DtypeNotImplementedError(f'"{rule.stub}" not implemented for \'{common.title}\'')
    compute, final = rule.promote(common)
    layout = layouts.elementwise(_stride_operands(rule, operands), shape)
    kind = kind_of(final, device)
    run = _runner(rule, operands, attributes, common, compute, kind, layout)
    plan = Plan(run, kind, layout, compute)
    if common.low and not rule.keeps_exact(len(operands) - 1, operands[-1]):
        plan.narrow = common.np
    if not isinstance(operands[-1], Tensor):
        plan.check = rule.check_number
    return plan


def _stride_operands(rule: _Rule, operands: list[Any]) -> list[Layout]:
    """The layouts that decide the result's strides; a number counts as a 0-d operand."""
    how = rule.number_strides
    if how.__class__ is not str:
        how = how(*operands)
    if how == "contiguous":
        return [_SCALAR]
    found = []
    for o in operands:
        if isinstance(o, Tensor):
            found.append(o.layout)
        elif how != "inner":
            found.append(_SCALAR)
    if how == "always":
        found.append(_SCALAR)
    return found


def _runner(
    rule: _Rule,
    operands: list[Any],
    attributes: tuple[Any, ...],
    common: DType,
    compute: DType,
    kind: Kind,
    layout: Layout,
) -> Any:
    """A function from the operands' arrays to the result's array."""
    if kind.device.type == "meta":
        return lambda *arrays: None
    target = kind_of(compute, kind.device)
    converts = [
        _steps(t, common, target) if counts and not rule.keeps_exact(at, t) else
        (target,) if counts and isinstance(t, Tensor) and t.kind.dtype is not compute else ()
        for at, (t, counts) in enumerate(zip(operands, rule.promoted, strict=True))
    ]
    xp = kind.xp
    kernel = rule.kernel
    fn = rule.ufunc if kernel is None else (lambda *arrays: kernel(xp, *arrays, *attributes))
    zero_dim = layout.ndim == 0
    if (
        rule.ufunc is not None
        and not any(converts)
        and (kind.dtype is compute or rule.promote in _TO_BOOL)
        and not target.opaque
    ):
        if zero_dim and kind.device.type == "cpu":
            return lambda *arrays: np.asarray(fn(*arrays))
        if layout.plain and _left_alone(fn, operands, layout):
            return fn

    def run(*arrays: Any) -> Any:
        ready = list(arrays)
        for at, steps in enumerate(converts):
            for step in steps:
                ready[at] = cast(ready[at], step)
        value = fn(*ready)
        if zero_dim and value.__class__ is not np.ndarray:
            value = np.asarray(value)
        return fit(value, kind, layout)

    return run


def _steps(t: Any, common: DType, target: Kind) -> tuple[Kind, ...]:
    """The kinds an operand is cast to before the kernel: PyTorch rounds operands of other dtypes
    to a low-precision common dtype first, and computes in float32 then."""
    if not isinstance(t, Tensor):
        return ()
    if common.low and t.kind.dtype is not common:
        narrow = kind_of(common, target.device)
        return (narrow,) if narrow is target else (narrow, target)
    return () if t.kind.dtype is target.dtype else (target,)


def _left_alone(fn: Any, operands: list[Any], layout: Layout) -> bool:
    """Whether numpy by itself lays the result out as ``layout``: clear for operands that are
    contiguous, tried out for small others."""
    if all(not isinstance(t, Tensor) or t.layout.plain or t.layout.ndim == 0 for t in operands):
        return True
    if layout.numel > _TRY_OUT:
        return False
    value = fn(*[t.array if isinstance(t, Tensor) else np.zeros((), np.int8) for t in operands])
    return array_strides(value) == layout.strides


def _number_array(plan: Plan, value: Any) -> Any:
    """A Python number as a 0-d array of the plan's compute dtype; signed zeros are not cached."""
    if plan.check is not None:
        plan.check(value, plan.compute)
    xp = plan.kind.xp
    dtype = plan.compute.np
    if value.__class__ is int and plan.compute.category == dtypes.INT:
        array = xp.array(value, "int64" if value < 2**63 else "uint64").astype(dtype)
    else:
        array = xp.array(value, dtype)
    if plan.narrow is not None:
        array = array.astype(plan.narrow).astype(dtype)
    signless = value != 0 or value.__class__ is int
    if signless and value == value and len(plan.numbers) < 1024:
        plan.numbers[value] = array
    return array


def _record(rule: _Rule, values: list[Any], y: Tensor) -> None:
    node = rule.recorder.record(values, y)
    if node is not None:
        tape.attach(y, node)


def _taken_over(rule: _Rule, values: list[Any]) -> tuple[Op, tuple[Any, ...]] | None:
    """The op that does this call in the rule's stead, and its values."""
    if rule.otherwise is None:
        return None
    found = rule.otherwise(*values)
    return None if found is None else (ops[found[0]], found[1])


def _as_tensors(rule: _Rule, values: list[Any]) -> list[Any]:
    """Two numbers as operands: the first becomes a 0-d tensor, where the op takes numbers."""
    p, value = parameters(rule.op)[0], values[0]
    if not rule.numbers:
        if p.kind != "Operand":
            raise wrong(rule.name, p, 1, "Tensor", value)
        given = ", ".join(type_name(v) for v in values)
        raise ArgumentError(
            f"{rule.name}() received an invalid combination of arguments - got ({given}), but "
            "expected one of:",
            p.name,
        )
    dtype = _NUMBERS[value.__class__]()
    return [wrap(np.array(value, dtype.np), kind_of(dtype), layouts.contiguous(())), values[1]]


def _unary(rule: _Rule) -> Any:
    plans: dict[Any, Plan] = {}
    get = plans.get
    name = rule.name
    ps = parameters(rule.op)
    record = rule.recorder.record_one

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
            record(x, y)
        if state.watch:
            finish(y)
        return y

    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and args[0].__class__ is Tensor and not kwargs:
            return apply(args[0])
        out = kwargs.pop("out", None)
        values = bind(name, ps, args, kwargs)
        other = _taken_over(rule, values)
        y = apply(values[0]) if other is None else other[0].function(*other[1])
        return y if out is None else store_out(out, y, name)

    return call


def operator_function(op: Op) -> Any:
    """The op's function for Python's operators: NotImplemented for operands it does not take."""
    return op.function.apply  # type: ignore[attr-defined]  # set by _binary


def _binary(rule: _Rule) -> Any:
    plans: dict[Any, Plan] = {}
    get = plans.get
    name = rule.name
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
                finish(y)
            return y
        if a.__class__ is not Tensor:
            return NotImplemented
        return with_number(a, b, False)

    def with_number(x: Tensor, n: Any, reflected: bool) -> Any:
        key = (x.kind, n.__class__, x.layout, reflected, state.default_dtype)
        plan = get(key)
        if plan is None:
            if n.__class__ not in _NUMBERS or ps[not reflected].kind != "Operand":
                return NotImplemented
            operands = [n, x] if reflected else [x, n]
            plan = plans[key] = make_plan(rule, operands, rule.defaults)
        number = plan.numbers.get(n)
        if number is None:
            check_numbers(n)
            number = _number_array(plan, n)
        y: Tensor = _new(Tensor)
        y.array = plan.run(number, x.array) if reflected else plan.run(x.array, number)
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
            finish(y)
        return y

    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 2 and not kwargs:
            y = apply(args[0], args[1])
            if y is not NotImplemented:
                return y
        out = kwargs.pop("out", None)
        values = bind(name, ps, args, kwargs)
        other = _taken_over(rule, values)
        y = apply(*values[:2]) if other is None else other[0].function(*other[1])
        if y is NotImplemented:
            y = apply(*_as_tensors(rule, values))
        return y if out is None else store_out(out, y, name)

    call.apply = apply  # type: ignore[attr-defined]  # what Python's operators call
    return call


def _general(rule: _Rule) -> Any:
    plans: dict[Any, Plan] = {}
    name = rule.name
    ps = parameters(rule.op)
    count = rule.count

    def call(*args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        values = bind(name, ps, args, kwargs)
        y = compute(values)
        return y if out is None else store_out(out, y, name)

    def compute(values: list[Any]) -> Tensor:
        other = _taken_over(rule, values)
        if other is not None:
            return other[0].function(*other[1])  # type: ignore[no-any-return]
        plan, arrays = planned(rule, plans, values[:count], tuple(values[count:]))
        y = result(plan.run(*arrays), plan.kind, plan.layout)
        if state.grad:
            _record(rule, values, y)
        return y

    return call


def planned(
    rule: _Rule, plans: dict[Any, Plan], operands: list[Any], attributes: tuple[Any, ...]
) -> tuple[Plan, list[Any]]:
    """The plan for these operands and the arrays to run it on."""
    key = (
        tuple(
            [(o.kind, o.layout) if isinstance(o, Tensor) else (o.__class__, None) for o in operands]
        ),
        tuple([(a.__class__, a) for a in attributes]),
        state.default_dtype,
    )
    plan = plans.get(key)
    if plan is None:
        plan = make_plan(rule, operands, attributes)
        if len(plans) < 4096 and not any(a.__class__ is float and a == 0 for a in attributes):
            plans[key] = plan
    arrays = []
    for o in operands:
        if isinstance(o, Tensor):
            arrays.append(o.array)
            continue
        held = plan.numbers.get(o) if o.__class__ in (float, int) else None
        arrays.append(_number_array(plan, o) if held is None else held)
    return plan, arrays


def _inplace(rule: _Rule) -> Any:
    plans: dict[Any, Plan] = {}
    name = rule.name + "_"
    ps = parameters(rule.op)
    count = rule.count
    quick = _quick_inplace(rule)

    def call(*args: Any, **kwargs: Any) -> Any:
        if quick is not None and len(args) == 2 and not kwargs and quick(args[0], args[1]):
            return args[0]
        values = bind(name, ps, args, kwargs)
        other = _taken_over(rule, values)
        if other is not None:
            return methods[f"{other[0].name}_"](*other[1])
        x = values[0]
        operands, attributes = values[:count], tuple(values[count:])
        recorded = state.grad and any(
            isinstance(v, Tensor) and tape.requires_grad(v) for v in values[:count]
        )
        if rule.refuse_inplace is not None:
            rule.refuse_inplace(x)
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
        if keep is None:
            tape.bump(x)
            return x
        tape.bump(x)
        node = keep.record(before, x)
        if node is not None:
            tape.rebase(x, node)
        return x

    return call


def _quick_inplace(rule: _Rule) -> Any:
    """A function that does the plainest in-place calls and tells whether it did: contiguous
    operands of one dtype and shape, or a number, in memory of their own, nothing recorded."""
    if rule.ufunc is None or rule.count != 2 or not rule.quick or rule.refuse_inplace is not None:
        return None
    plans: dict[Any, Plan | None] = {}

    def plan_of(x: Tensor, b: Any) -> Plan | None:
        if not x.layout.plain or x.kind.opaque or x.array is None:
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
                number = _number_array(plan, b)
            plan.ufunc(x.array, number, out=x.array)
        counter = x.counter
        if counter is None:
            counter = x.counter = Version()
        counter.n += 1
        return True

    return quick


def _check_before_kernel(rule: _Rule, operands: list[Any], recorded: bool) -> None:
    """What an in-place call refuses before PyTorch looks for a kernel."""
    x = operands[0]
    shape = x.layout.shape
    for t in operands:
        if isinstance(t, Tensor):
            shape = layouts.broadcast_shapes(shape, t.layout.shape)
    final = _common(rule, operands)
    if rule.promote in _TO_BOOL:
        final = dtypes.bool_
    check_destination(x, kind_of(final, x.kind.device), shape, recorded)
