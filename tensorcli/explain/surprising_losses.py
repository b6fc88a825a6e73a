"""Surprises in losses and comparisons: scores that are none, pairs that do not meet, NaN."""

from __future__ import annotations

import ast

import numpy as np

from engine.tape import shown_node
from engine.tensor import Tensor
from tensorcli.explain.hints import failure_of, hint_at, quoted
from tensorcli.explain.trial import MOST_ELEMENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tensorcli.explain.hints import Hint
    from tensorcli.language.compiling import Context

CLOSE = 1e-4
"""How far from 1 the sum of probabilities may be, float16 included."""


def _matrix(value: Any) -> Any:
    """The elements of a small matrix of floats; None for anything else."""
    if not isinstance(value, Tensor) or value.array is None or value.ndim != 2:
        return None
    if not value.dtype.is_floating_point or not 0 < value.layout.numel <= MOST_ELEMENTS:
        return None
    return np.asarray(value.array).astype(np.float64)


def _are_shares(array: Any, dim: int) -> bool:
    """Whether the rows (or columns) are probabilities: of several classes, adding up to 1."""
    if array.shape[dim] < 2 or array.min() < 0 or not np.isfinite(array).all():
        return False
    return bool((np.abs(array.sum(dim) - 1) < CLOSE).all())


def scores(context: Context, node: ast.Call, own: Any, target: Any, result: Any) -> Hint:
    """cross_entropy of what softmax() has been done to already."""
    array = _matrix(own)
    if array is None or not _are_shares(array, 1):
        return None
    failure = failure_of(context, node, (node.args[0], own), (node.args[1], target))
    return hint_at(
        context,
        node,
        "softmax-twice",
        f"{quoted(context, node.args[0])} holds probabilities, and cross_entropy() takes raw "
        "scores: it does log_softmax() itself",
        failure.first([failure.with_parts({0: "{}.log()"}, function="nll_loss")]),
    )


def logits(context: Context, node: ast.Call, own: Any, target: Any, result: Any) -> Hint:
    """binary_cross_entropy_with_logits of what sigmoid() has been done to already."""
    if not isinstance(own, Tensor):
        return None
    made = shown_node(own)
    first = node.args[0]
    called = str(getattr(getattr(first, "func", None), "attr", ""))
    by_sigmoid = made is not None and made.type_name.startswith("Sigmoid")
    if not by_sigmoid and called != "sigmoid":
        return None
    failure = failure_of(context, node, (first, own), (node.args[1], target))
    return hint_at(
        context,
        node,
        "sigmoid-twice",
        f"{quoted(context, first)} comes from sigmoid(), and binary_cross_entropy_with_logits() "
        "takes raw scores: it does sigmoid() itself",
        failure.first([failure.with_parts({}, function="binary_cross_entropy")]),
    )


def log_probabilities(context: Context, node: ast.Call, own: Any, target: Any, result: Any) -> Hint:
    """nll_loss of raw scores, of probabilities, or of a softmax over the wrong dimension."""
    array = _matrix(own)
    if array is None or _are_shares(np.exp(array), 1):
        return None
    failure = failure_of(context, node, (node.args[0], own), (node.args[1], target))
    words = quoted(context, node.args[0])
    if _are_shares(array, 1):
        what, change = "probabilities", {0: "{}.log()"}
    elif _are_shares(np.exp(array), 0) or _are_shares(array, 0):
        return hint_at(
            context,
            node,
            "softmax-dim",
            f"the probabilities in {words} add up to 1 along dim 0, and classes are dim 1: softmax "
            "was taken over the wrong dim",
        )
    elif (array > 0).any():
        what, change = "raw scores", {0: "{}.log_softmax(1)"}
    else:
        return None
    return hint_at(
        context,
        node,
        "log-probabilities",
        f"{words} holds {what}, and nll_loss() takes log-probabilities",
        failure.first([failure.with_parts(change)]),
    )


def paired(context: Context, node: ast.Call, own: Any, target: Any, result: Any) -> Hint:
    """mse_loss of (n, 1) with (n,)."""
    if not isinstance(own, Tensor) or not isinstance(target, Tensor):
        return None
    if own.layout.numel != target.layout.numel or own.shape == target.shape:
        return None
    wide = tuple(np.broadcast_shapes(tuple(own.shape), tuple(target.shape)))
    if int(np.prod(wide)) <= own.layout.numel:
        return None
    failure = failure_of(context, node, (node.args[0], own), (node.args[1], target))
    other = context.source.segment(node.args[1])
    return hint_at(
        context,
        node,
        "outer-broadcast",
        f"{list(own.shape)} of {quoted(context, node.args[0])} with {list(target.shape)} of "
        f"{quoted(context, node.args[1])} gives {list(wide)}: every element of one meets every "
        "element of the other",
        failure.first([failure.with_parts({0: f"{{}}.view_as({other})"})]),
    )


def nan_differs(context: Context, node: ast.Call, a: Any, b: Any, result: Any) -> Hint:
    """equal() and allclose() that are False for nothing but NaN."""
    if result is not False or not isinstance(a, Tensor) or not isinstance(b, Tensor):
        return None
    if a.shape != b.shape or a.array is None or b.array is None or a.dtype is not b.dtype:
        return None
    if not a.dtype.is_floating_point or not 0 < a.layout.numel <= MOST_ELEMENTS:
        return None
    x, y = (np.asarray(t.array).astype(np.float64) for t in (a, b))
    both = np.isnan(x) & np.isnan(y)
    if not both.any() or not np.array_equal(x[~both], y[~both]):
        return None
    failure = failure_of(context, node, (node.args[0], a), (node.args[1], b))
    return hint_at(
        context,
        node,
        "nan-equality",
        f"only NaN stands between {quoted(context, node.args[0])} and "
        f"{quoted(context, node.args[1])}: NaN equals nothing, itself included",
        failure.first([failure.with_parts({}, function="allclose", keyword="equal_nan=True")]),
    )
