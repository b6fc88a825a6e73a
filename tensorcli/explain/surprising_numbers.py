"""Surprises in numbers: integers that went round, casts that cut, sums that stand still, NaN."""

from __future__ import annotations

import ast
import math

import numpy as np

from engine.tensor import Tensor
from tensorcli.explain.hints import failure_of, hint_at, is_pure, names_around, quoted, sides
from tensorcli.explain.precision import FORMATS
from tensorcli.explain.trial import MOST_ELEMENTS, rerun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tensorcli.explain.hints import Hint
    from tensorcli.explain.trial import Fix
    from tensorcli.language.compiling import Context


def overflow(context: Context, node: Any, a: Any, b: Any, result: Any) -> Hint:
    """Integers that went round."""
    if result.array is None or not 0 < result.layout.numel <= MOST_ELEMENTS:
        return None
    operator = node.op if isinstance(node, ast.BinOp | ast.AugAssign) else None
    exact = _in_doubles(operator, a, b)
    if exact is None:
        return None
    got = np.asarray(result.array, dtype=np.float64)
    bits = 8 * result.dtype.itemsize
    if exact.shape != got.shape:
        return None
    off = np.abs(exact - got) > 2.0 ** (bits - 1)
    if not off.any():
        return None
    at = int(np.flatnonzero(off.reshape(-1))[0])
    true, shown = exact.reshape(-1)[at], result.array.reshape(-1)[at]
    low = 0 if not result.dtype.signed else -(2 ** (bits - 1))
    high = 2**bits - 1 if not result.dtype.signed else 2 ** (bits - 1) - 1
    wider = "int64" if bits < 64 else "float64"
    left, right = sides(node)
    number = left if isinstance(a, Tensor) or isinstance(node, ast.AugAssign) else right
    fixes: list[Fix] = []
    if isinstance(node, ast.BinOp) and bits < 64:
        failure = failure_of(context, node, (left, a), (right, b))
        fixes = failure.first([failure.with_parts({0 if number is left else 1: "{}.long()"})])
    return hint_at(
        context,
        node,
        "overflow",
        f"{quoted(context, node)} goes beyond {result.dtype.name} ({low} to {high}): "
        f"{true:.0f} became {shown}; {quoted(context, number)} in {wider} would hold it",
        fixes,
    )


def _in_doubles(operator: Any, a: Any, b: Any) -> Any:
    apply: dict[type, Callable[[Any, Any], Any]] = {
        ast.Add: np.add,
        ast.Sub: np.subtract,
        ast.Mult: np.multiply,
        ast.Pow: np.power,
    }
    compute = apply.get(type(operator))
    if compute is None:
        return None
    values = []
    for value in (a, b):
        array = value.array if isinstance(value, Tensor) else value
        if array is None or isinstance(value, float | complex):
            return None
        values.append(np.asarray(array, dtype=np.float64))
    return compute(*values)


def product(context: Context, node: ast.Call, own: Any, *rest: Any) -> Hint:
    """x.prod() of integers beyond int64."""
    result = rest[-1]
    if len(rest) != 1 or not isinstance(own, Tensor) or not isinstance(result, Tensor):
        return None
    if not own.dtype.is_integral or own.array is None or own.layout.numel > 1000:
        return None
    if result.ndim or node.keywords:
        return None
    exact = math.prod(own.array.reshape(-1).tolist())
    if exact == int(result.item()):
        return None
    return hint_at(
        context,
        node,
        "overflow",
        f"{quoted(context, node)} goes beyond {result.dtype.name}: {exact} became {result.item()}; "
        "in float64 it keeps its size",
    )


def inverted(context: Context, node: ast.UnaryOp, value: Any) -> Hint:
    """~ of a uint8 mask."""
    if value.array is None or not 0 < value.layout.numel <= MOST_ELEMENTS:
        return None
    if int(value.array.max()) > 1:
        return None
    failure = failure_of(context, node, (node.operand, value))
    return hint_at(
        context,
        node,
        "inverted-bits",
        f"~ inverts the bits of {quoted(context, node.operand)}, which is uint8: 1 becomes 254; "
        "a mask is bool",
        failure.first([failure.with_parts({0: "{}.bool()"})]),
    )


def cast(context: Context, node: ast.Call, own: Any, *rest: Any) -> Hint:
    """A cast to integers of what they cannot hold, or of 54.9999… that was meant to be 55."""
    result = rest[-1]
    if not isinstance(own, Tensor) or not isinstance(result, Tensor):
        return None
    if not (result.dtype.is_integral and not own.dtype.is_complex and not own.dtype.is_bool):
        return None
    if own.array is None or not 0 < own.layout.numel <= MOST_ELEMENTS:
        return None
    words = quoted(context, getattr(node.func, "value", node))
    into = result.dtype.name
    values = np.asarray(own.array).astype(np.float64).reshape(-1)
    finite = values[np.isfinite(values)]
    bits = 8 * result.dtype.itemsize
    low, high = (
        (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if result.dtype.signed else (0.0, 2.0**bits)
    )
    failure = failure_of(context, node, (getattr(node.func, "value", node), own))
    if finite.size < values.size:
        message = f"{words} holds NaN or infinities, and {into} has no such values"
        fixes: list[Fix] = failure.first([failure.with_parts({0: "{}.nan_to_num()"})])
        return hint_at(context, node, "cast", message, fixes)
    whole = np.trunc(finite)
    out = finite[(whole < low) | (whole >= high)]
    if out.size:
        message = f"{words} holds {out[0]:g}, beyond {into}: it wraps around, or worse"
        limits = f"{low:.0f}, {high - 1:.0f}"
        tries = [failure.with_parts({0: f"{{}}.clamp({limits})"})] if bits < 32 else []
        return hint_at(context, node, "cast", message, failure.first(tries))
    if own.dtype.is_integral:
        return None
    near = np.rint(finite)
    cut = (near != whole) & (np.abs(finite - near) <= 1e-5 * np.maximum(np.abs(near), 1.0))
    if cut.any():
        at = int(np.flatnonzero(cut)[0])
        message = (
            f"{words} holds {_repr(finite[at], own)}, and the cast cuts the fraction off: "
            f"{whole[at]:.0f}, not {near[at]:.0f}"
        )
        return hint_at(
            context, node, "cast", message, failure.first([failure.with_parts({0: "{}.round()"})])
        )
    if own.requires_grad and _comes_back(context, node):
        message = (
            f"{quoted(context, node)} has no gradient, integers have no slope: what is computed "
            "from it counts as a constant"
        )
        return hint_at(context, node, "cast", message)
    return None


def _repr(value: float, own: Any) -> str:
    return f"{value:.9g}" if own.dtype.itemsize <= 4 else repr(float(value))


def _comes_back(context: Context, node: ast.Call) -> bool:
    """Whether the integers are made floating-point again further on, as one who meant to round."""
    backs = {"float", "double", "half", "to", "type_as"}
    names = set()
    tree = ast.parse(context.source.text)
    span = context.source.span(node)
    for part in ast.walk(tree):
        if isinstance(part, ast.Assign) and context.source.span(part.value) == span:
            names |= {t.id for t in part.targets if isinstance(t, ast.Name)}
    for part in ast.walk(tree):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            owner = part.func.value
            if part.func.attr in backs and (
                (isinstance(owner, ast.Name) and owner.id in names)
                or context.source.span(owner) == span
            ):
                return True
    return False


def arange(context: Context, node: ast.Call, start: Any, end: Any, step: Any, result: Any) -> Hint:
    """arange with a fractional step whose last element is the end, but for rounding."""
    if not all(type(v) in (int, float) for v in (start, end, step)) or type(step) is int:
        return None
    if not isinstance(result, Tensor) or not step or result.layout.numel < 2:
        return None
    last = start + (result.layout.numel - 1) * step
    if abs(last - end) > 1e-6 * abs(step):
        return None
    from tensorcli.explain.trial import Fix

    count = round((end - start) / step)
    own = context.source.segment(node.func)
    words = f"{own.removesuffix('arange')}linspace({start}, {end}, {count + 1})"
    scope: dict[str, object] = {}
    fixes = []
    try:
        rerun(f"_result = {words}", scope)
        made: Any = scope["_result"]
        fixes = [Fix(words, tuple(made.shape))]
    except Exception:
        fixes = []
    return hint_at(
        context,
        node,
        "arange-end",
        f"{quoted(context, node)} has {result.layout.numel} elements: the end is left out, but "
        f"rounding let {last:.9g} in. linspace, or arange({count}) times the step, counts safely",
        fixes,
    )


# What a logarithm of something is better computed as: log of a softmax underflows to -inf.
TOGETHER = {"softmax": "log_softmax", "sigmoid": "logsigmoid"}


def logarithm(context: Context, node: ast.Call, own: Any, *rest: Any) -> Hint:
    """log(softmax(x)) where the softmax is 0."""
    result = rest[-1]
    function: Any = node.func
    inner: Any = function.value if len(rest) == 1 and not node.args else node.args[:1] or None
    inner = inner[0] if isinstance(inner, list) else inner
    if not isinstance(inner, ast.Call) or not isinstance(result, Tensor) or result.array is None:
        return None
    name = getattr(inner.func, "attr", None) or getattr(inner.func, "id", "")
    if name not in TOGETHER or np.isfinite(result.array).all():
        return None
    whole, called = context.source.segment(inner), context.source.segment(inner.func)
    together = TOGETHER[name]
    words = called[: len(called) - len(name)] + together + whole[len(called) :]
    if together == "logsigmoid":
        owner = getattr(inner.func, "value", None)
        if inner.args or owner is None:
            return None
        words = f"torch.nn.functional.logsigmoid({context.source.segment(owner)})"
    fixes = []
    if all(is_pure(n) for n in ast.walk(inner) if n is not inner and n is not inner.func):
        from tensorcli.explain.trial import Fix

        scope = {**names_around(context)}
        try:
            rerun(f"_result = {words}", scope)
            made: Any = scope["_result"]
            fixes = [Fix(words, tuple(made.shape))]
        except Exception:
            fixes = []
    return hint_at(
        context,
        node,
        "log-of-small",
        f"{name}() underflows to 0 in {quoted(context, node)}, and the log of 0 is -inf: "
        f"{together}() computes both at once",
        fixes,
    )


def running_sum(context: Context, node: Any, result: Any) -> Hint:
    """s += x in bfloat16 or float16: it stops growing."""
    if not _is_running_sum(context, node):
        return None
    steps = 2 ** (FORMATS[result.dtype.name][0] + 1)
    return hint_at(
        context,
        node,
        "low-precision-sum",
        f"{quoted(context, node)} adds up in {result.dtype.name}, in steps that grow with the "
        f"sum: once it is {steps} times what is added, it stands still. Add up in float32",
    )


def _is_running_sum(context: Context, node: Any) -> bool:
    """`s = s + x` or `s += x` in a loop."""
    tree = ast.parse(context.source.text)
    span = context.source.span(node)
    for loop in ast.walk(tree):
        if not isinstance(loop, ast.For | ast.While):
            continue
        for part in ast.walk(loop):
            if isinstance(part, ast.AugAssign) and isinstance(part.op, ast.Add):
                if context.source.span(part) == span and isinstance(part.target, ast.Name):
                    return True
            if isinstance(part, ast.Assign) and isinstance(part.value, ast.BinOp):
                first = part.targets[0]
                sides = (part.value.left, part.value.right)
                same = isinstance(first, ast.Name) and any(
                    isinstance(side, ast.Name) and side.id == first.id for side in sides
                )
                if same and context.source.span(part.value) == span:
                    return isinstance(part.value.op, ast.Add)
    return False


def never_equal(context: Context, node: ast.Compare, a: Any, b: Any) -> Hint:
    """x == nan."""
    left, right = sides(node)
    is_not = isinstance(node.ops[0], ast.NotEq)
    for own, other, words in ((b, left, right), (a, right, left)):
        number = own.item() if isinstance(own, Tensor) and own.layout.numel == 1 else own
        if isinstance(number, float) and number != number:
            value = a if own is b else b
            failure = failure_of(context, node, (other, value))
            template = "~{0}.isnan()" if is_not else "{0}.isnan()"
            return hint_at(
                context,
                node,
                "nan-equality",
                f"{quoted(context, words)} is NaN, which equals nothing, itself included: "
                f"{quoted(context, node)} is {'always' if is_not else 'never'} true",
                failure.first([failure.as_written(template)]),
            )
    return None
