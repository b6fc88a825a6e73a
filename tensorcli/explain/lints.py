"""Silent surprises: what a suspicious piece of program did, judged by values; here by shapes.

Each lint gets the place and the values, and answers a hint or None. A hint is silent where the
program says that it is meant: a None in an index, an unsqueeze, a comment.
"""

from __future__ import annotations

import ast

from engine.tensor import Tensor
from tensorcli.explain import surprising_losses as losses
from tensorcli.explain import surprising_numbers as numbers
from tensorcli.explain import surprising_writes as writes
from tensorcli.explain.hints import failure_of, hint_at, quoted, sides

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tensorcli.explain.hints import Hint
    from tensorcli.language.compiling import Context

RESHAPING = frozenset(
    "unsqueeze view reshape expand repeat broadcast_to view_as reshape_as expand_as t transpose "
    "unflatten meshgrid".split()
)


def _is_meant(context: Context, node: ast.AST, depth: int = 0) -> bool:
    """Whether the words of an operand give it its dimension on purpose."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and part.value is None:
            return True
        if isinstance(part, ast.Attribute) and part.attr in (*RESHAPING, "T", "mT", "H", "newaxis"):
            return True
        if isinstance(part, ast.keyword) and part.arg in ("keepdim", "keepdims"):
            return True
    if not isinstance(node, ast.Name) or depth > 3:
        return False
    made = [
        other.value
        for other in ast.walk(ast.parse(context.source.text))
        if isinstance(other, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == node.id for t in other.targets)
    ]
    return any(_is_meant(context, value, depth + 1) for value in made)


def outer(context: Context, node: Any, a: Any, b: Any) -> Hint:
    """(n, 1) with (n,): an n by n table where n elements were meant."""
    left, right = sides(node)
    column, row = (a, b) if a.ndim == 2 else (b, a)
    n = row.shape[0]
    if column.shape != (n, 1) or n < 2:
        return None
    if _is_meant(context, left) or _is_meant(context, right):
        return None
    names = [(left, a), (right, b)]
    shapes = " with ".join(f"{list(t.shape)} of {quoted(context, p)}" for p, t in names)
    failure = failure_of(context, node, *names)
    number = 0 if a is column else 1
    tries = [
        failure.with_parts({number: "{}.squeeze(1)"}),
        failure.with_parts({1 - number: "{}.unsqueeze(1)"}),
    ]
    return hint_at(
        context,
        node,
        "outer-broadcast",
        f"{shapes} gives [{n}, {n}]: every element of one meets every element of the other",
        failure.first(tries),
    )


def python_sum(context: Context, node: ast.Call, value: Any, result: Any) -> Hint:
    """Python's sum of a matrix."""
    if not isinstance(value, Tensor) or value.ndim < 2 or not isinstance(result, Tensor):
        return None
    argument = node.args[0]
    failure = failure_of(context, node, (argument, value))
    inner = "{0}"
    fixes = failure.first([failure.as_written(inner + ".sum()"),
                           failure.as_written(inner + ".sum(0)")])  # fmt: skip
    return hint_at(
        context,
        node,
        "python-sum",
        f"Python's sum() adds up the rows of {quoted(context, argument)}: shape "
        f"{list(result.shape)}, not one number",
        fixes,
    )


def _is_list(index: Any) -> bool:
    return isinstance(index, list) or (isinstance(index, Tensor) and index.ndim > 0)


def between(context: Context, node: ast.Subscript, own: Any, index: Any, result: Any) -> Hint:
    """x[[0, 1], :, [0, 1]]: a slice between two lists sends their dimension to the front."""
    if not isinstance(own, Tensor) or not isinstance(result, Tensor):
        return None
    kinds = ["slice" if isinstance(i, slice) else "list" if _is_list(i) else "" for i in index]
    lists = [at for at, kind in enumerate(kinds) if kind == "list"]
    if len(lists) < 2:
        return None
    if "slice" not in kinds[lists[0] : lists[-1]]:
        return None
    return hint_at(
        context,
        node,
        "index-order",
        f"in {quoted(context, node)} a slice stands between the lists, so their dimension comes "
        f"first: shape {list(result.shape)}",
    )


LINTS: dict[str, Callable[..., Hint]] = {
    "outer": outer,
    "sum": python_sum,
    "between": between,
    "overlap": writes.overlap,
    "copy": writes.copy,
    "repeated": writes.repeated,
    "unused": writes.unused,
    "leaf": writes.leaf,
    "overflow": numbers.overflow,
    "prod": numbers.product,
    "cumprod": lambda *_: None,
    "inverted": numbers.inverted,
    "cast": numbers.cast,
    "arange": numbers.arange,
    "log": numbers.logarithm,
    "running_sum": numbers.running_sum,
    "never_equal": numbers.never_equal,
    "accumulated": writes.accumulated,
    "expanded": writes.expanded,
    "scores": losses.scores,
    "logits": losses.logits,
    "log_probabilities": losses.log_probabilities,
    "paired": losses.paired,
    "nan_differs": losses.nan_differs,
}
