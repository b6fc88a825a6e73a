"""Products of two tensors: the rule looks at layouts only, so that its plan can be kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import layout as layouts
from engine import tape
from engine.autocasting import LOWER, run_low
from engine.dtypes import compute_dtype
from engine.errors import DtypeError, DtypeNotImplementedError
from engine.kinds.deriving import Recorder
from engine.kinds.record import make_op, parameters
from engine.kinds.results import cast, common_device, finish, is_ready, result, store_out
from engine.modes import state
from engine.registry import ops
from engine.signature import bind
from engine.storage import is_big, make_room
from engine.tensor import Tensor, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.dtypes import DType
    from engine.registry import Op

_PLAN_LIMIT = 4096
_new = object.__new__
_WRONG_OUT = "Expected out tensor to have dtype {a_type}, but got {out_type} instead"


def contraction(
    *,
    vjp: Any = None,
    compose: Callable[[Tensor, Tensor], Tensor] | None = None,
    flat: str | None = None,
    mismatch: str = "expected m1 and m2 to have the same dtype, but got: {a_type} != {b_type}",
    wrong_out: str = _WRONG_OUT,
    stub: str = "",
    takes: str = "ifc",
    **record: Any,
) -> Callable[[Any], Any]:
    """An op of two tensors of one dtype.

    ``body(a, b)`` maps two Layouts to (shape, ``run(x, y)``); the result is contiguous. A third
    part names the contraction whose sentences a refusal takes, where that is another. With
    ``compose`` the op has no node of its own: a call to be recorded is made of other ops by
    that function, of two matrices by the node of the op ``flat``. ``mismatch`` and ``wrong_out``
    are PyTorch's sentences for two dtypes and for that of ``out``, with the names a, b, out and
    the C++ types a_type, b_type, out_type to fill in. ``takes`` lists the categories accepted (8:
    float8 too); others are refused with ``stub``'s name unless there is nothing to multiply.
    """

    def decorate(body: Any) -> Any:
        _rules[record.get("name") or body.__name__] = _Rule(mismatch, wrong_out, stub, takes)
        return make_op(
            body,
            "contraction",
            lambda op: _build(op, compose, flat),
            vjp=vjp,
            **record,
        )

    return decorate


class _Rule:
    """What one contraction refuses, and how."""

    __slots__ = ("mismatch", "stub", "takes", "wrong_out")

    def __init__(self, mismatch: str, wrong_out: str, stub: str, takes: str):
        self.mismatch = mismatch
        self.wrong_out = wrong_out
        self.stub = stub
        self.takes = takes


_rules: dict[str, _Rule] = {}


def _filled(sentence: str, **dtypes: DType) -> str:
    names = {key: dtype.title for key, dtype in dtypes.items()}
    types = {f"{key}_type": d.c_type for key, d in dtypes.items()}
    return sentence.format(**names, **types)


def _check_takes(rule: _Rule, dtype: DType) -> None:
    if dtype.name.startswith("float8"):
        known = "8" in rule.takes
    else:
        known = "bifc"[dtype.category] in rule.takes and dtype.name not in (
            "uint16", "uint32", "uint64",
        )  # fmt: skip
    if rule.stub and not known:
        raise DtypeNotImplementedError(f"\"{rule.stub}\" not implemented for '{dtype.title}'")


def _build(op: Op, compose: Any, flat: str | None) -> Any:
    name = op.name.rpartition(".")[2]
    ps = parameters(op)
    body = op.body
    record_two = Recorder(op).record_two
    record_flat: Any = None
    plans: dict[Any, Any] = {}

    def make_plan(a: Tensor, b: Tensor) -> Any:
        device = common_device(name, [a, b])
        shape, run, *another = body(a.layout, b.layout)
        rule = _rules[another[0] if another else op.name]
        if a.dtype is not b.dtype:
            raise DtypeError(_filled(rule.mismatch, a=a.dtype, b=b.dtype))
        if a.layout.numel and b.layout.numel:
            _check_takes(rule, a.dtype)
        kind = kind_of(a.dtype, device)
        compute = compute_dtype(a.dtype)
        widen = kind_of(compute, device) if compute is not a.dtype else None
        return [kind, layouts.contiguous(shape), run, widen, rule, None]

    low = op.name in LOWER

    def apply(a: Tensor, b: Tensor) -> Tensor:
        if low and state.autocast is not None:
            return run_low(apply, a, b)  # type: ignore[no-any-return]  # this function again
        if state.grad and (
            a.ag is not None or b.ag is not None or a.base is not None or b.base is not None
        ):
            if compose is None:
                z = multiply(a, b)
                record_two(a, b, z)
                return z
            if a.layout.ndim == 2 and b.layout.ndim == 2 and flat is not None:
                z = multiply(a, b)
                nonlocal record_flat
                if record_flat is None:
                    record_flat = ops[flat].function.record_two  # type: ignore[attr-defined]
                record_flat(a, b, z)
                return z
            if tape.requires_grad(a) or tape.requires_grad(b):
                return compose(a, b)  # type: ignore[no-any-return]
        return multiply(a, b)

    def multiply(a: Tensor, b: Tensor) -> Tensor:
        key = (a.kind, b.kind, a.layout, b.layout)
        plan = plans.get(key)
        if plan is None:
            plan = make_plan(a, b)
            if len(plans) > _PLAN_LIMIT:
                plans.clear()
            plans[key] = plan
        kind, layout, run, widen, _, ready = plan
        x, y = a.array, b.array
        if ready:
            z: Tensor = _new(Tensor)
            z.array = run(x, y)
            z.kind = kind
            z.layout = layout
            z.offset = 0
            z.base = None
            z.ag = None
            z.origin = 0
            z.memory = None
            z.counter = None
            if state.watch:
                finish(z, run, (x, y))
            return z
        if x is None or y is None:
            return result(None, kind, layout)
        make_room(kind, layout)
        if widen is not None:
            x, y = cast(x, widen), cast(y, widen)
        array = run(x, y)
        if ready is None:
            # The same layouts give an array of the same make: it is looked at once.
            plan[5] = widen is None and not is_big(kind, layout) and is_ready(array, kind, layout)
        return result(array, kind, layout)

    def call(*args: Any, **kwargs: Any) -> Any:
        if (
            len(args) == 2
            and not kwargs
            and args[0].__class__ is Tensor
            and args[1].__class__ is Tensor
        ):
            return apply(args[0], args[1])
        out = kwargs.pop("out", None)
        a, b = bind(name, ps, args, kwargs)
        if out is None:
            return apply(a, b)
        z = multiply(a, b)
        if isinstance(out, Tensor) and out.dtype is not z.dtype:
            rule = plans[a.kind, b.kind, a.layout, b.layout][4]
            raise DtypeError(_filled(rule.wrong_out, a=a.dtype, b=b.dtype, out=out.dtype))
        if tape.requires_grad(a) or tape.requires_grad(b):
            z = apply(a, b)
        return store_out(out, z, name)

    call.record_two = record_two  # type: ignore[attr-defined]  # for the op that stands for this
    call.apply = apply  # type: ignore[attr-defined]  # what the operator calls
    return call
