"""Plans of element-wise operations: what a call does, decided once for its operands.

A rule is the static part of an op; a plan says for operands of certain kinds and layouts in which
dtype to compute, how the result is laid out and which function computes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine import dtypes
from engine import layout as layouts
from engine.dtypes import DType
from engine.errors import DtypeNotImplementedError
from engine.kinds.deriving import Recorder
from engine.kinds.results import array_strides, cast, common_device, fit
from engine.modes import state
from engine.registry import ops
from engine.signature import check_numbers
from engine.storage import is_big, make_room
from engine.tensor import Kind, Tensor, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.layout import Layout
    from engine.registry import Op

_SCALAR = layouts.contiguous(())

# Operands up to this size are tried out to see how numpy lays out the result.
_TRY_OUT = 1 << 14
NUMBERS: dict[type, Callable[[], DType]] = {
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


TO_BOOL = (BOOL_OUT, COMPARED)


class Rule:
    """The static part of one pointwise op, read from its record on first use."""

    __slots__ = (
        "attributes", "check_number", "count", "defaults", "exact_last", "kernel", "lacks", "name",
        "number_strides", "numbers", "op", "otherwise", "promote", "promoted", "quick",
        "short",
        "recorder", "refuse", "refuse_inplace", "stub", "takes", "ufunc",
    )  # fmt: skip

    attributes: int
    check_number: Callable[[Any, DType], None] | None
    count: int
    defaults: tuple[Any, ...]
    exact_last: bool
    kernel: Any
    lacks: Callable[..., bool] | None
    name: str
    number_strides: Any
    short: Any
    numbers: bool
    op: Op
    otherwise: Callable[..., tuple[str, tuple[Any, ...]] | None] | None
    promote: Callable[[DType], tuple[DType, DType]]
    promoted: tuple[bool, ...]
    quick: bool
    recorder: Recorder
    refuse: Callable[..., None] | None
    refuse_inplace: Callable[..., None] | None
    stub: str
    takes: str
    ufunc: Any

    def keeps_exact(self, at: int, operand: Any) -> bool:
        """Whether the operand at that place goes unrounded into a low-precision computation."""
        return (
            self.exact_last
            and at == self.count - 1
            and (not isinstance(operand, Tensor) or operand.layout.ndim == 0)
        )


class Plan:
    """What to do with operands of certain kinds and layouts."""

    __slots__ = ("check", "compute", "kind", "layout", "narrow", "numbers", "run", "short", "ufunc")

    def __init__(self, run: Any, kind: Kind, layout: Layout, compute: DType):
        self.run = _asking(run, kind, layout) if is_big(kind, layout) else run
        # What may write into a destination by itself; numpy 2.4 negates float32 and int32 wrongly
        # where both ends are strided.
        self.ufunc = run if run.__class__ is np.ufunc and run is not np.negative else None
        self.kind = kind
        self.layout = layout
        self.compute = compute
        self.numbers: dict[Any, Any] = {}
        self.check: Any = None
        self.narrow: Any = None
        # For some numbers as the last operand a shorter way to the same array.
        self.short: dict[Any, Any] | None = None


def _asking(run: Any, kind: Kind, layout: Layout) -> Any:
    def asked(*arrays: Any) -> Any:
        make_room(kind, layout)
        return run(*arrays)

    return asked


def _check_takes(rule: Rule, common: DType) -> None:
    category = "bifc"[common.category]
    wide = common.name in ("uint16", "uint32", "uint64")
    if (
        category not in rule.takes
        or (wide and "u" not in rule.takes)
        or (common.name.startswith("float8") and "8" not in rule.takes)
    ):
        raise DtypeNotImplementedError(f"\"{rule.stub}\" not implemented for '{common.title}'")


def common_dtype(rule: Rule, operands: list[Any]) -> DType:
    """The promoted dtype of the operands that take part in promotion."""
    dimensioned, zero, numbers = [], [], []
    for t, counts in zip(operands, rule.promoted, strict=True):
        if not counts:
            continue
        if not isinstance(t, Tensor):
            check_numbers(t)
            numbers.append(NUMBERS[type(t)]())
        elif t.layout.ndim:
            dimensioned.append(t.dtype)
        else:
            zero.append(t.dtype)
    return dtypes.result_type(dimensioned, zero, numbers)


def make_plan(rule: Rule, operands: list[Any], attributes: tuple[Any, ...]) -> Plan:
    """The plan for ``operands`` (tensors and numbers). Raises what PyTorch raises for them."""
    tensors = [t for t in operands if isinstance(t, Tensor)]
    if rule.refuse is not None:
        rule.refuse(*operands)
    device = common_device(rule.name, tensors)
    common = common_dtype(rule, operands)
    shape: tuple[int, ...] = ()
    for t in tensors:
        shape = layouts.broadcast_shapes(shape, t.layout.shape) if shape else t.layout.shape
    _check_takes(rule, common)
    if rule.lacks is not None and rule.lacks(*operands):
        raise DtypeNotImplementedError(f"\"{rule.stub}\" not implemented for '{common.title}'")
    compute, final = rule.promote(common)
    widened = final if common.category < dtypes.FLOAT <= final.category else common
    layout = layouts.elementwise(_stride_operands(rule, operands, widened), shape)
    kind = kind_of(final, device)
    run = _runner(rule, operands, attributes, common, compute, kind, layout)
    plan = Plan(run, kind, layout, compute)
    numbers = [(at, o) for at, o in enumerate(operands) if not isinstance(o, Tensor)]
    if common.low and not all(rule.keeps_exact(at, o) for at, o in numbers):
        plan.narrow = common.np
    if not isinstance(operands[-1], Tensor):
        plan.check = rule.check_number
        computed = kind.device.type != "meta"
        if rule.short is not None and layout.plain and computed and not is_big(kind, layout):
            plan.short = rule.short(*operands)
    return plan


def _stride_operands(rule: Rule, operands: list[Any], common: DType) -> list[Layout]:
    """The layouts that decide the result's strides; a number counts as a 0-d operand, a tensor of
    another dtype by the copy that PyTorch makes of it in the common one."""
    how = rule.number_strides
    if how.__class__ is not str:
        how = how(*operands)
    if how == "contiguous":
        return [_SCALAR]
    found = []
    for o, counts in zip(operands, rule.promoted, strict=True):
        if isinstance(o, Tensor):
            converted = counts and o.dtype is not common
            found.append(layouts.preserved(o.layout) if converted else o.layout)
        elif how != "inner":
            found.append(_SCALAR)
    if how == "always":
        found.append(_SCALAR)
    return found


def _runner(
    rule: Rule,
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
        _steps(t, common, target)
        if counts and not rule.keeps_exact(at, t)
        else (target,)
        if counts and isinstance(t, Tensor) and t.kind.dtype is not compute
        else ()
        for at, (t, counts) in enumerate(zip(operands, rule.promoted, strict=True))
    ]
    xp = kind.xp
    kernel = rule.kernel
    fn = rule.ufunc if kernel is None else (lambda *arrays: kernel(xp, *arrays, *attributes))
    zero_dim = layout.ndim == 0
    if (
        rule.ufunc is not None
        and not any(converts)
        and (kind.dtype is compute or rule.promote in TO_BOOL)
        and not target.opaque
    ):
        if zero_dim and kind.device.type == "cpu":
            return lambda *arrays: np.asarray(fn(*arrays))
        if layout.plain and _left_alone(fn, operands, layout):
            return fn

    if not any(converts) and layout.plain and kind.device.type == "cpu":
        return _unconverted(fn, kind, layout)

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


def _unconverted(fn: Any, kind: Kind, layout: Layout) -> Any:
    """``fn`` with a short look at whether its result is as wanted already."""
    wanted, shape = kind.np, layout.shape

    def run(*arrays: Any) -> Any:
        value = fn(*arrays)
        if (
            value.__class__ is np.ndarray
            and value.dtype is wanted
            and value.base is None
            and value.shape == shape
            and value.flags.c_contiguous
        ):
            return value
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


def number_array(plan: Plan, value: Any) -> Any:
    """A Python number as a 0-d array of the plan's compute dtype; signed zeros are not cached."""
    if plan.check is not None:
        plan.check(value, plan.kind.dtype)
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


def planned(
    rule: Rule, plans: dict[Any, Plan], operands: list[Any], attributes: tuple[Any, ...]
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
        arrays.append(number_array(plan, o) if held is None else held)
    return plan, arrays


def taken_over(rule: Rule, values: list[Any]) -> tuple[Op, tuple[Any, ...]] | None:
    """The op that does this call in the rule's stead, and its values."""
    if rule.otherwise is None:
        return None
    found = rule.otherwise(*values)
    return None if found is None else (ops[found[0]], found[1])
