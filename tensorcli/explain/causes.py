"""How an operation's error arose: absorption, cancellation, overflow, underflow, accumulation.

Judged from arrays of float64: the operands, the exact result, and the rounded one.
"""

from __future__ import annotations

import ast

import numpy as np

from tensorcli.explain.precision import FORMATS, spacing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class Cause:
    """The word for a cause, the reason with the numbers of the worst element, and its weight."""

    __slots__ = ("name", "reason", "weight")

    def __init__(self, name: str, reason: str, weight: float) -> None:
        self.name = name
        self.reason = reason
        self.weight = weight


ADDITIONS = frozenset({"Add", "Sub", "add", "sub", "subtract", "add_", "sub_", "rsub"})
SUMS = frozenset(
    "sum mean matmul MatMult mm bmm mv dot inner einsum linear addmm baddbmm conv1d conv2d conv3d "
    "cumsum prod cumprod norm var std logsumexp nansum nanmean tensordot vdot mse_loss l1_loss "
    "cross_entropy nll_loss layer_norm softmax log_softmax".split()
)
CONVERSIONS = frozenset({"to", "half", "bfloat16", "float", "double", "type", "tensor"})


def operation_name(node: ast.AST) -> str:
    """`Add` of `a + b`, `sum` of `x.sum()` and `torch.sum(x)`."""
    if isinstance(node, ast.Call):
        function = node.func
        return str(getattr(function, "attr", None) or getattr(function, "id", ""))
    if isinstance(node, ast.BinOp | ast.AugAssign | ast.UnaryOp):
        return type(node.op).__name__
    return type(node).__name__


def cause_of(
    name: str,
    operands: Sequence[Any],
    exact: Any,
    rounded: Any,
    reference: Any,
    dtype: str,
    times: int,
) -> Cause | None:
    """The gravest cause, or None where the result is exact.

    `reference`: the run in float64 at this place, None where it is not known. `times`: how often
    this operation was done so far.
    """
    if dtype not in FORMATS:
        return None
    return (
        _overflow(exact, rounded, dtype)
        or _underflow(exact, rounded, dtype)
        or (
            _cancellation(operands, exact, rounded, reference, dtype) if name in ADDITIONS else None
        )
        or (_absorption(operands, exact, rounded, dtype, times) if name in ADDITIONS else None)
        or _accumulation(name, operands, exact, rounded, dtype)
        or _rounding(name, exact, rounded, dtype)
    )


def backward_cause(exact: Any, rounded: Any, dtype: str) -> Cause | None:
    """A gradient that left the dtype's range, above or below."""
    found = _overflow(exact, rounded, dtype) or _underflow(exact, rounded, dtype)
    if found is None:
        return None
    return Cause(found.name, f"backward: {found.reason}", found.weight)


def _short(value: float) -> str:
    return f"{value:.6g}"


def _worst(score: Any) -> int:
    return int(np.argmax(score))


def _overflow(exact: Any, rounded: Any, dtype: str) -> Cause | None:
    over = np.isfinite(exact) & ~np.isfinite(rounded)
    count = int(over.sum())
    if not count:
        return None
    value = float(np.ravel(exact)[_worst(np.ravel(over))])
    what = "NaN" if np.isnan(np.ravel(rounded)[_worst(np.ravel(over))]) else "inf"
    largest = FORMATS[dtype][2]
    reason = (
        f"{_short(value)} is beyond the largest {dtype}, {_short(largest)}: "
        f"{_of(count, exact)} {what}"
    )
    if abs(value) <= largest:
        reason = f"{_short(value)} fits {dtype}, but a value on the way to it did not"
    return Cause("overflow", reason, 1e9)


def _underflow(exact: Any, rounded: Any, dtype: str) -> Cause | None:
    mantissa, lowest, _ = FORMATS[dtype]
    under = (exact != 0) & (rounded == 0) & (np.abs(exact) < 2.0**lowest)
    count = int(under.sum())
    if not count:
        return None
    flat, where = np.ravel(exact), np.ravel(under)
    value = float(flat[_worst(np.where(where, np.abs(flat), -1.0))])
    smallest = 2.0 ** (lowest - mantissa)
    reason = (
        f"{_short(value)} is nearer to 0 than to the smallest {dtype}, {_short(smallest)}: "
        f"{_of(count, exact)} 0"
    )
    return Cause("underflow", reason, 1e8)


def _of(count: int, array: Any) -> str:
    size = int(np.size(array))
    return "it became" if size == 1 else f"{count} of {size} became"


def _pair(operands: Sequence[Any], shape: Any) -> tuple[Any, Any] | None:
    if len(operands) < 2:
        return None
    try:
        a = np.broadcast_to(operands[0], shape)
        b = np.broadcast_to(operands[1], shape)
    except ValueError:
        return None
    return np.ravel(a), np.ravel(b)


def _cancellation(
    operands: Sequence[Any], exact: Any, rounded: Any, reference: Any, dtype: str
) -> Cause | None:
    """A difference far smaller than what it was taken of: their rounding errors remain."""
    pair = _pair(operands, exact.shape)
    if pair is None or reference is None:
        return None
    a, b = pair
    larger = np.maximum(np.abs(a), np.abs(b))
    wanted, got = np.ravel(reference), np.ravel(rounded)
    error = np.abs(got - wanted)
    eps = 2.0 ** -FORMATS[dtype][0]
    known = np.isfinite(error) & np.isfinite(larger) & (larger > 0)
    left = known & (np.abs(np.ravel(exact)) <= larger / 8)
    left &= error > np.maximum(np.abs(wanted), np.abs(got)) * 2 * eps
    if not left.any():
        return None
    relative = np.where(left, error / np.where(wanted == 0, larger, np.abs(wanted)), -1.0)
    i = _worst(relative)
    gap = float(spacing(larger[i], dtype))
    reason = (
        f"values of about {_short(float(larger[i]))}, {_short(gap)} apart in {dtype}, leave "
        f"{_short(float(got[i]))} where it is {_short(float(wanted[i]))}: "
        "what was rounded away before is now most of it"
        if relative[i] >= 0.5
        else f"values of about {_short(float(larger[i]))}, {_short(gap)} apart in {dtype}, leave "
        f"{_short(float(got[i]))} where it is {_short(float(wanted[i]))}, "
        f"{100 * float(relative[i]):.3g} % off"
    )
    return Cause("cancellation", reason, 1e6 * min(float(relative[i]), 1.0))


def _absorption(
    operands: Sequence[Any], exact: Any, rounded: Any, dtype: str, times: int
) -> Cause | None:
    """A sum that is one of its operands: the other is less than half of the spacing there."""
    pair = _pair(operands, exact.shape)
    if pair is None:
        return None
    a, b = pair
    got = np.abs(np.ravel(rounded))
    lost_b = (got == np.abs(a)) & (b != 0) & (a != 0) & (np.ravel(exact) != np.ravel(rounded))
    lost_a = (got == np.abs(b)) & (b != 0) & (a != 0) & (np.ravel(exact) != np.ravel(rounded))
    lost = lost_a | lost_b
    count = int(lost.sum())
    if not count:
        return None
    small = np.where(lost_b, np.abs(b), np.abs(a))
    i = _worst(np.where(lost, small, -1.0))
    kept, gone = (a[i], b[i]) if lost_b[i] else (b[i], a[i])
    gap = float(spacing(np.abs(kept), dtype))
    many = f", {count} of {got.size} elements" if got.size > 1 else ""
    repeated = f", in repetition {times}" if times > 1 else ""
    reason = (
        f"{dtype} {_short(float(kept))} and {_short(float(gone))}: the spacing at "
        f"{_short(float(abs(kept)))} is {_short(gap)}, so {_short(float(gone))} is lost"
        f"{many}{repeated}"
    )
    return Cause("absorption", reason, 1e3 * float(abs(gone) / max(abs(kept), 1e-300)) + 1.0)


def _accumulation(
    name: str, operands: Sequence[Any], exact: Any, rounded: Any, dtype: str
) -> Cause | None:
    """A sum of many: more than the one rounding at its end."""
    if name not in SUMS or not operands:
        return None
    error = np.abs(rounded - exact)
    gap = spacing(np.abs(exact), dtype)
    flat = np.ravel(np.where(np.isfinite(error), error / gap, 0.0))
    if not flat.size or flat.max() <= 0.5000001:
        return None
    i = _worst(flat)
    terms = max(1, int(np.size(operands[0])) // max(1, int(np.size(exact))))
    reason = (
        f"{terms} values each: {_short(float(np.ravel(rounded)[i]))} where their sum in float64 "
        f"gives {_short(float(np.ravel(exact)[i]))}, {_short(float(flat[i]))} spacings off"
    )
    return Cause("accumulation", reason, 10.0 * float(flat[i]))


def _rounding(name: str, exact: Any, rounded: Any, dtype: str) -> Cause | None:
    flat_exact, flat = np.ravel(exact), np.ravel(rounded)
    wrong = np.isfinite(flat_exact) & (flat_exact != flat)
    if not wrong.any():
        return None
    safe = np.where(flat_exact == 0, 1.0, np.abs(flat_exact))
    relative = np.where(wrong, np.abs(flat - flat_exact) / safe, -1.0)
    i = _worst(relative)
    value, near = float(flat_exact[i]), float(flat[i])
    verb = "is stored as" if name in CONVERSIONS else "becomes"
    reason = f"{value:.9g} {verb} {near:.9g}"
    return Cause("rounding", reason, float(relative[i]))
