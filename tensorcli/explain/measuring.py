"""What each operation of a computation lost, measured while it runs: in float64, then in a dtype.

Three values are compared at each operation: what it gave in the dtype, what float64 gives of just
the same operands (the difference is the operation's own error), and what the run in float64 had
there (the difference is all that was lost until then).
"""

from __future__ import annotations

import ast

import numpy as np

from engine import dtypes, modes
from engine.tensor import Tensor
from tensorcli.explain.causes import ADDITIONS, Cause, backward_cause, cause_of, operation_name
from tensorcli.explain.summary import doubles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from engine.dtypes import DType

MOST_ELEMENTS = 2_000_000
"""Elements of the float64 run that are kept to compare with."""

# Operations that change the dtype and are no arithmetic.
CASTS = frozenset({"half", "float", "double", "bfloat16", "to", "type", "type_as"})

# Operations whose value is another draw each time.
RANDOM = frozenset(
    "rand randn randint randperm rand_like randn_like randint_like normal bernoulli dropout "
    "multinomial poisson uniform_ normal_ bernoulli_ exponential_ alpha_dropout rrelu "
    "dropout1d dropout2d dropout3d feature_alpha_dropout gumbel_softmax".split()
)

# Operations that only look at a tensor.
LOOKS = frozenset("backward item tolist numpy size dim numel retain_grad requires_grad_".split())


class Step:
    """What is known of one operation so far, all of its repetitions together."""

    __slots__ = ("cause", "error", "gradient", "largest", "node", "own", "times")

    def __init__(self, node: ast.AST) -> None:
        self.node = node
        self.times = 0
        self.own = 0.0
        self.error = 0.0
        self.largest = 0.0
        self.gradient: float | None = None
        self.cause: Cause | None = None

    def far(self, rounded: Any, reference: Any) -> None:
        """Note how far a value is from that of the run in float64."""
        error, largest = _distance(rounded, reference)
        self.error, self.largest = max(self.error, error), max(self.largest, largest)

    @property
    def total(self) -> float:
        """The largest error relative to the largest value, over all repetitions: a loop that
        converges to zero has values there that no error is small against."""
        return _ratio(self.error, self.largest)


class Exact:
    """Watches the run in float64: casts are left out, every value is kept to compare with."""

    def __init__(self) -> None:
        self.values: dict[int, list[Any]] = {}
        self.room = MOST_ELEMENTS
        self.retained: dict[int, Tensor] = {}

    def source(self, node: ast.AST, value: Any) -> Any:
        return widened(value, dtypes.float64) if _is_made(node) else value

    def done(
        self, node: ast.AST, operands: Sequence[Any], apply: Callable[[Sequence[Any]], Any]
    ) -> Any:
        value = apply(operands)
        if not has_floats(operands):
            return widened(value, dtypes.float64)
        if operation_name(node) in CASTS and is_float(value):
            value = operands[0].to(dtypes.float64) if is_float(operands[0]) else value
        if is_float(value):
            if value.dtype is not dtypes.float64:
                value = value.to(dtypes.float64)
            kept = doubles(value) if value.layout.numel <= self.room else None
            self.room -= 0 if kept is None else kept.size
            self.values.setdefault(id(node), []).append(kept)
            retain(self.retained, node, value)
        return value

    whole = done


class Low:
    """Watches the run in a dtype: each operation is done once more in float64 beside it."""

    def __init__(self, dtype: DType, exact: Exact) -> None:
        self.dtype = dtype
        self.exact = exact
        self.steps: dict[int, Step] = {}
        self.retained: dict[int, Tensor] = {}

    def source(self, node: ast.AST, value: Any) -> Any:
        if not _is_made(node):
            return value
        return self._converted(node, value)

    def _converted(self, node: ast.AST, value: Any) -> Any:
        """A tensor that the program makes of numbers, in the dtype of the run."""
        if not is_float(value):
            return value
        low = widened(value, self.dtype)
        rounded, exact = doubles(low), doubles(value)
        if exact is not None and not np.array_equal(exact, rounded, equal_nan=True):
            step = self._step(node)
            step.times += 1
            step.own = max(step.own, own_error(rounded, exact))
            step.far(rounded, exact)
            step.cause = cause_of("to", [exact], exact, rounded, None, low.dtype.name, 1)
        return low

    def _step(self, node: ast.AST) -> Step:
        step = self.steps.get(id(node))
        if step is None:
            step = self.steps[id(node)] = Step(node)
        return step

    def done(
        self, node: ast.AST, operands: Sequence[Any], apply: Callable[[Sequence[Any]], Any]
    ) -> Any:
        if not has_floats(operands):
            return self._converted(node, apply(operands))
        name = operation_name(node)
        if name in LOOKS or name in RANDOM:
            return apply(operands)
        exact_operands = [upcast(value) for value in operands]
        value = apply(operands)
        if not is_float(value) or value.dtype.is_complex:
            return value
        step = self._step(node)
        step.times += 1
        retain(self.retained, node, value)
        self._measure(step, name, exact_operands, apply, value)
        return value

    def whole(
        self, node: ast.AST, operands: Sequence[Any], apply: Callable[[Sequence[Any]], Any]
    ) -> Any:
        value = apply(operands)
        if not is_float(value) or value.dtype.is_complex:
            return value
        step = self._step(node)
        step.times += 1
        retain(self.retained, node, value)
        rounded, reference = doubles(value), self._reference(step)
        if reference is not None and reference.shape == rounded.shape:
            step.far(rounded, reference)
            step.own = max(step.own, own_error(rounded, reference))
            step.cause = cause_of("", [], reference, rounded, None, value.dtype.name, 1)
        return value

    def _reference(self, step: Step) -> Any:
        """What the run in float64 had at this operation, in this repetition of it."""
        kept = self.exact.values.get(id(step.node), [])
        return kept[step.times - 1] if step.times <= len(kept) else None

    def _measure(
        self,
        step: Step,
        name: str,
        operands: list[Any],
        apply: Callable[[Sequence[Any]], Any],
        value: Tensor,
    ) -> None:
        rounded = doubles(value)
        if rounded is None:
            return
        reference = self._reference(step)
        if reference is not None and reference.shape == rounded.shape:
            step.far(rounded, reference)
        else:
            reference = None
        exact = rounded if name in CASTS else _in_double(operands, apply)
        if name in CASTS:
            source = doubles(operands[0]) if is_float(operands[0]) else None
            exact = source if source is not None else rounded
        if exact is None or exact.shape != rounded.shape:
            return
        step.own = max(step.own, own_error(rounded, exact))
        parts = [p for p in map(_array, operands) if p is not None]
        found = cause_of(name, parts, exact, rounded, reference, value.dtype.name, step.times)
        if found is not None and (step.cause is None or found.weight >= step.cause.weight):
            step.cause = found

    def compare_gradients(self) -> None:
        """After both passes: how far the gradient of each operation's value is off."""
        for key, value in self.retained.items():
            exact = self.exact.retained.get(key)
            if exact is None or exact.grad is None or value.grad is None:
                continue
            wanted, got = doubles(exact.grad), doubles(value.grad)
            if wanted.shape != got.shape:
                continue
            step = self.steps[key]
            step.gradient = total_error(got, wanted)
            cause = backward_cause(wanted, got, value.grad.dtype.name)
            if cause is not None and (step.cause is None or cause.weight >= step.cause.weight):
                step.cause = cause


def retain(kept: dict[int, Tensor], node: ast.AST, value: Any) -> None:
    """Keep the latest value of an operation, so that its gradient can be looked at."""
    in_place = isinstance(node, ast.AugAssign) or operation_name(node).endswith("_")
    if not in_place and value.requires_grad and not value.is_leaf:
        value.retain_grad()
        kept[id(node)] = value


def _in_double(operands: list[Any], apply: Callable[[Sequence[Any]], Any]) -> Any:
    """The operation on its operands in float64; None where it cannot be done on them."""
    grad = modes.state.grad
    modes.state.grad = False
    try:
        value = apply(operands)
    except Exception:
        return None
    finally:
        modes.state.grad = grad
    return doubles(value) if is_float(value) else None


def _array(value: Any) -> Any:
    if isinstance(value, Tensor):
        return None if value.dtype.is_complex else doubles(value)
    return np.float64(value) if isinstance(value, int | float) else None


def _is_made(node: ast.AST) -> bool:
    """Whether a value that came without operands was made here, and is no variable."""
    return isinstance(node, ast.Call)


def is_float(value: object) -> bool:
    return isinstance(value, Tensor) and value.dtype.is_floating_point


def has_floats(operands: Sequence[Any]) -> bool:
    return any(
        has_floats(value) if isinstance(value, list | tuple) else is_float(value)
        for value in operands
    )


def upcast(value: Any) -> Any:
    """A copy in float64, outside of any graph."""
    if isinstance(value, Tensor):
        detached = value.detach()
        return detached.to(dtypes.float64) if is_float(value) else detached.clone()
    if type(value) in (list, tuple):
        return type(value)([upcast(item) for item in value])
    return value


def widened(value: Any, dtype: DType) -> Any:
    """A value that starts a computation, in the dtype of the run; leaves stay leaves."""
    if not is_float(value) or value.dtype is dtype:
        return value
    new = value.detach().to(dtype)
    if value.requires_grad and value.is_leaf:
        new.requires_grad_()
    return new


def total_error(rounded: Any, exact: Any) -> float:
    """The largest difference, relative to the largest value; inf where one is not finite."""
    return _ratio(*_distance(rounded, exact))


def _ratio(error: float, largest: float) -> float:
    return error / largest if largest else (0.0 if error == 0.0 else float("inf"))


def _distance(rounded: Any, exact: Any) -> tuple[float, float]:
    """The largest difference and the largest value, of what is finite in float64."""
    finite = np.isfinite(exact)
    if not finite.any():
        return 0.0, 0.0
    largest = float(np.abs(exact[finite]).max())
    if not np.isfinite(rounded[finite]).all():
        return float("inf"), largest
    return float(np.abs(rounded[finite] - exact[finite]).max()), largest


def own_error(rounded: Any, exact: Any) -> float:
    """The largest relative error of one element."""
    finite = np.isfinite(exact) & (exact != 0)
    if not finite.any():
        return 0.0
    if not np.isfinite(rounded[finite]).all():
        return float("inf")
    return float((np.abs(rounded[finite] - exact[finite]) / np.abs(exact[finite])).max())


MANY = 8
"""From this many repetitions on, additions that each round are one accumulation."""


def told(step: Step) -> tuple[str, str]:
    """The cause of a step and the reason in words."""
    if step.cause is None:
        return "exact", ""
    name, reason = step.cause.name, step.cause.reason
    if name == "rounding" and step.times >= MANY and operation_name(step.node) in ADDITIONS:
        return "accumulation", f"{step.times} additions, each rounded: at the worst {reason}"
    return name, reason
