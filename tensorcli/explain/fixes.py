"""Repairs of a failed expression that were tried: on tensors without data, so trying costs nothing.

A fix changes one operand of the operation that failed; what does not work is never suggested.
"""

from __future__ import annotations

import ast
import operator
from functools import partial

from engine.registry import functions
from engine.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from engine.dtypes import DType
    from tensorcli.language.errors import Operand, Where

    Change = tuple[str, Callable[[Any], Any]]

MOST = 3
"""Fixes shown for one mistake; more would be a list to choose from, not an answer."""

# What an attempt may raise: it does not work, or this build lacks an operation.
UNFIT = (RuntimeError, TypeError, ValueError, LookupError, AttributeError)

OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
}


class Fix:
    """An expression that was tried in place of the one that failed, and the shape it gives."""

    __slots__ = ("expr", "shape")

    def __init__(self, expr: str, shape: tuple[int, ...] | None) -> None:
        self.expr = expr
        self.shape = shape

    def __repr__(self) -> str:
        return f"Fix({self.expr!r}, {self.shape!r})"


def of_shapes(where: Where, operands: list[Operand]) -> list[Fix]:
    """Operands that need another dimension, or their dimensions swapped."""
    node = where.node
    is_product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
    return _of_operation(where, operands, _swaps if is_product else _broadcast_changes)


def of_dtypes(where: Where, operands: list[Operand]) -> list[Fix]:
    """The operand of the narrower dtype, cast to the wider one."""
    return _of_operation(where, operands, _casts)


def _casts(value: Any, other: Any) -> Iterator[Change]:
    if value.dtype is not other.dtype and other.dtype.itemsize >= value.dtype.itemsize:
        yield f"{{}}.to(torch.{other.dtype.name})", partial(_cast, other.dtype)


def _cast(dtype: DType, x: Any) -> Any:
    return x.to(dtype)


def _swaps(value: Any, other: Any) -> Iterator[Change]:
    if value.layout.ndim == 2:
        yield "{}.t()", lambda x: x.t()
    elif value.layout.ndim > 2:
        yield "{}.mT", lambda x: x.transpose(-2, -1)


def _broadcast_changes(value: Any, other: Any) -> Iterator[Change]:
    """A dimension where the smaller operand lacks one; else the last two dimensions swapped."""
    ndim = value.layout.ndim
    if 0 < ndim < other.layout.ndim:
        for dim in range(1, ndim + 1):
            yield f"{{}}.unsqueeze({dim})", partial(_unsqueezed, dim)
    elif ndim == other.layout.ndim:
        yield from _swaps(value, other)
        yield "{}.unsqueeze(1)", partial(_unsqueezed, 1)


def _unsqueezed(dim: int, x: Any) -> Any:
    return x.unsqueeze(dim)


def of_view(where: Where, operands: list[Operand]) -> list[Fix]:
    """`x.view(…)` as `x.reshape(…)`, which copies where it must."""
    node = where.node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return []
    tensor = without_data(operands[0].value) if operands else None
    if node.func.attr != "view" or node.keywords or tensor is None:
        return []
    sizes = [operand.value for operand in where.operands[1:]]
    try:
        shape = tensor.reshape(*sizes).layout.shape
    except UNFIT:
        return []
    text = where.source.segment(node)
    name_ends = len(where.source.segment(node.func))
    return [Fix(text[: name_ends - len("view")] + "reshape" + text[name_ends:], shape)]


def _of_operation(
    where: Where, operands: list[Operand], changes: Callable[[Any, Any], Iterator[Change]]
) -> list[Fix]:
    node = where.node
    if not isinstance(node, ast.BinOp) or len(operands) != 2:
        return []
    apply = OPERATORS.get(type(node.op))
    tensors = [without_data(operand.value) for operand in operands]
    if apply is None or any(tensor is None for tensor in tensors):
        return []
    found: list[Fix] = []
    for index in (1, 0):  # the right operand first: it is what was just written
        for text, change in changes(tensors[index], tensors[1 - index]):
            shape = _tried(apply, tensors, index, change)
            if shape is not None:
                found.append(Fix(_rewritten(where, operands, index, text), shape))
    return found[:MOST]


def without_data(value: object) -> Any:
    """A tensor of the same dtype, shape and strides on the meta device; None if there is none."""
    if not isinstance(value, Tensor):
        return None
    try:
        return functions["empty_strided"](
            value.layout.shape, value.layout.strides, dtype=value.dtype, device="meta"
        )
    except UNFIT:
        return None


def _tried(
    apply: Callable[[Any, Any], Any], tensors: list[Any], index: int, change: Callable[[Any], Any]
) -> tuple[int, ...] | None:
    """The shape of the result with one operand changed; None where that fails too."""
    changed = list(tensors)
    try:
        changed[index] = change(changed[index])
        shape: tuple[int, ...] = apply(*changed).layout.shape
    except UNFIT:
        return None
    return shape


def _rewritten(where: Where, operands: list[Operand], index: int, text: str) -> str:
    """The expression that failed with one operand wrapped in the change."""
    node = where.node
    assert isinstance(node, ast.BinOp)
    operand = operands[index]
    inner = node.left if index == 0 else node.right
    wrapped = text.format(operand.text if _binds_tightly(inner) else f"({operand.text})")
    whole = where.source.segment(node)
    span = where.span
    if span.line != span.end_line:
        return wrapped
    start = operand.span.column - span.column
    stop = operand.span.end_column - span.column
    start, stop = _with_parentheses(whole, start, stop)
    return whole[:start] + wrapped + whole[stop:]


def _binds_tightly(node: ast.AST) -> bool:
    return isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.List)


def _with_parentheses(text: str, start: int, stop: int) -> tuple[int, int]:
    """Take in the parentheses right around a stretch of text, which the tree does not know."""
    while start > 0 and text[start - 1] == "(" and text[stop : stop + 1] == ")":
        start, stop = start - 1, stop + 1
    return start, stop
