"""What a statement's cast, or its arithmetic in a low-precision dtype, lost: the line under it.

The statement is not run again. Its outermost operation is computed once more in float64 from what
its operands are: names, numbers, casts and arithmetic of these, and expressions without effects,
which are evaluated on copies; anything else is left alone, and so is what does not come to the same
value again.
"""

from __future__ import annotations

import ast
import operator

import numpy as np

from engine.dtypes import DType, by_name
from engine.tensor import Tensor
from tensorcli.explain.precision import FORMATS, cast, compare
from tensorcli.explain.summary import doubles
from tensorcli.results import PrecisionResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

MOST_ELEMENTS = 1_000_000
"""Larger tensors are not worth the second pass for a line that nobody asked for."""

MOST_AGAIN = 100_000
"""Elements of the tensors in an expression that is evaluated once more."""

LOW = frozenset({"float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"})

# Methods that cast, and the dtype that those without an argument cast to.
CASTS: dict[str, str | None] = {
    "to": None,
    "type": None,
    "half": "float16",
    "bfloat16": "bfloat16",
    "float": "float32",
    "double": "float64",
}

ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}

# An operand as it is: its elements as float64, and the name of its dtype (None: a number).
Exact = tuple["np.ndarray[Any, Any]", "str | None"]


class _Unknown(Exception):
    """The expression may have effects, or is beyond these few rules."""


def line_under(
    value: Tensor, node: ast.expr, names: Mapping[str, object], line: int
) -> PrecisionResult | None:
    """The loss of a statement with that value, or None where nothing was lost or can be known."""
    dtype = value.dtype.name
    if dtype not in FORMATS or not 0 < value.layout.numel <= MOST_ELEMENTS:
        return None
    rounded = doubles(value)
    if rounded is None:
        return None
    with np.errstate(all="ignore"):
        try:
            exact, source = _outermost(node, dtype, names)
        except _Unknown:
            return None
        if np.shape(exact) != rounded.shape:
            return None
        if isinstance(node, ast.Call) and not _is_same(cast(exact, value.dtype), rounded):
            return None
        row = compare(exact, rounded, dtype)
    if row.exact == row.count:
        return None
    return PrecisionResult(source, (row,), line, asked=False)


def _is_same(a: Any, b: Any) -> bool:
    return bool(np.array_equal(a, b, equal_nan=True))


def _outermost(node: ast.expr, dtype: str, names: Mapping[str, object]) -> tuple[Any, str]:
    """The value of the last operation before it was rounded, and what it was rounded from."""
    if isinstance(node, ast.Call):
        exact, source = _cast_operand(node, names)
        return exact, source
    if isinstance(node, ast.BinOp) and dtype in LOW:
        return _arithmetic(node, names)[0], "exact result"
    raise _Unknown


def _cast_operand(node: ast.Call, names: Mapping[str, object]) -> tuple[Any, str]:
    """What `x.half()`, `x.to(torch.bfloat16)` or `tensor(0.1, dtype=float16)` rounds."""
    if _is_literal_tensor(node):
        return _literal(node.args[0]), "literal"
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in CASTS:
        raise _Unknown
    exact, source = _exact(node.func.value, names)
    if source is None:
        raise _Unknown
    return exact, source


def _is_literal_tensor(node: ast.Call) -> bool:
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return (
        name == "tensor"
        and len(node.args) == 1
        and any(keyword.arg == "dtype" for keyword in node.keywords)
    )


def _literal(node: ast.expr) -> Any:
    try:
        return np.array(ast.literal_eval(node), dtype=np.float64)
    except (ValueError, TypeError, SyntaxError, OverflowError, RecursionError):
        raise _Unknown from None


def _exact(node: ast.expr, names: Mapping[str, object]) -> Exact:
    """An operand: a name's value, a number, or what a cast or arithmetic of these gives."""
    if isinstance(node, ast.Name):
        return _of_value(names.get(node.id))
    if isinstance(node, ast.Constant):
        return _of_value(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        exact, dtype = _exact(node.operand, names)
        return -exact, dtype
    if isinstance(node, ast.BinOp):
        exact, dtype = _arithmetic(node, names)
        return (exact if dtype is None else cast(exact, by_name[dtype])), dtype
    if isinstance(node, ast.Call) and _is_cast(node):
        exact, _ = _cast_operand(node, names)
        target = _target(node, names)
        return cast(exact, by_name[target]), target
    return _of_value(_again(node, names))


def _is_cast(node: ast.Call) -> bool:
    is_method = isinstance(node.func, ast.Attribute) and node.func.attr in CASTS
    return is_method or _is_literal_tensor(node)


def _again(node: ast.expr, names: Mapping[str, object]) -> object:
    """The value of an expression without effects, evaluated on copies of what it names."""
    from tensorcli.explain.trial import evaluated
    from tensorcli.explain.words import is_harmless

    used = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    large = any(
        isinstance(value := names.get(name), Tensor) and value.layout.numel > MOST_AGAIN
        for name in used
    )
    if large or not is_harmless(node, names):
        raise _Unknown
    return evaluated(ast.unparse(node), names)


def _of_value(value: object) -> Exact:
    if isinstance(value, bool | int | float):
        try:
            return np.float64(value), None  # type: ignore[return-value]  # a scalar is an array here
        except OverflowError:
            raise _Unknown from None
    if isinstance(value, Tensor) and not value.dtype.is_complex:
        if value.layout.numel <= MOST_ELEMENTS and value.array is not None:
            return doubles(value), value.dtype.name
    raise _Unknown


def _arithmetic(node: ast.BinOp, names: Mapping[str, object]) -> Exact:
    apply = ARITHMETIC.get(type(node.op))
    if apply is None:
        raise _Unknown
    (a, left), (b, right) = _exact(node.left, names), _exact(node.right, names)
    dtypes = {dtype for dtype in (left, right) if dtype is not None}
    if len(dtypes) > 1:
        raise _Unknown  # promotion is the engine's business
    try:
        return apply(a, b), next(iter(dtypes), None)
    except ValueError:
        raise _Unknown from None


def _target(node: ast.Call, names: Mapping[str, object]) -> str:
    """The dtype that a cast names."""
    wanted: list[ast.expr] = [k.value for k in node.keywords if k.arg == "dtype"]
    if isinstance(node.func, ast.Attribute) and node.func.attr in CASTS:
        fixed = CASTS[node.func.attr]
        if fixed is not None:
            return fixed
        wanted += node.args[:1]
    if len(wanted) != 1:
        raise _Unknown
    return _dtype_name(wanted[0], names)


def _dtype_name(node: ast.expr, names: Mapping[str, object]) -> str:
    """`torch.bfloat16`, `bfloat16`, or a variable that holds a dtype."""
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    value = names.get(name) if isinstance(node, ast.Name) else None
    found = value.name if isinstance(value, DType) else name
    if found not in FORMATS:
        raise _Unknown
    return found
