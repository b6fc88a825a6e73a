"""precision(expr, dtype): a whole computation in a dtype and in float64, and what each step lost.

Three values are compared at each operation: what it gave in the dtype, what float64 gives of just
the same operands (the difference is the operation's own error), and what the run in float64 had
there (the difference is all that was lost until then).
"""

from __future__ import annotations

import ast

import numpy as np

from engine import dtypes, modes
from engine.registry import functions
from engine.tensor import Tensor
from tensorcli.explain.causes import ADDITIONS, Cause, backward_cause, cause_of, operation_name
from tensorcli.explain.precision import FORMATS, cast, compare
from tensorcli.explain.stepping import Stepper, definitions_in
from tensorcli.explain.summary import doubles
from tensorcli.language.running import Silence, now
from tensorcli.value_results import PrecisionRun, PrecisionRunResult, RoundingStep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from engine.dtypes import DType
    from tensorcli.language.source import Source
    from tensorcli.results import PrecisionRow

MOST_ELEMENTS = 2_000_000
"""Elements of the float64 run that are kept to compare with."""

NARROWER = ("float32", "float16", "bfloat16")
"""The dtypes that arithmetic exists for, and that a computation is tried in."""

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

    __slots__ = ("cause", "gradient", "node", "own", "times", "total")

    def __init__(self, node: ast.AST) -> None:
        self.node = node
        self.times = 0
        self.own = 0.0
        self.total = 0.0
        self.gradient: float | None = None
        self.cause: Cause | None = None


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
            step.total = max(step.total, total_error(rounded, exact))
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
        kept = self.exact.values.get(id(step.node), [])
        reference = kept[step.times - 1] if step.times <= len(kept) else None
        if reference is not None and reference.shape == rounded.shape:
            step.total = max(step.total, total_error(rounded, reference))
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
    finite = np.isfinite(exact)
    if not finite.any():
        return 0.0
    if not np.isfinite(rounded[finite]).all():
        return float("inf")
    largest = float(np.abs(exact[finite]).max())
    error = float(np.abs(rounded[finite] - exact[finite]).max())
    return error / largest if largest else (0.0 if error == 0.0 else float("inf"))


def own_error(rounded: Any, exact: Any) -> float:
    """The largest relative error of one element."""
    finite = np.isfinite(exact) & (exact != 0)
    if not finite.any():
        return 0.0
    if not np.isfinite(rounded[finite]).all():
        return float("inf")
    return float((np.abs(rounded[finite] - exact[finite]) / np.abs(exact[finite])).max())


def definitions(source: Source) -> dict[str, ast.FunctionDef]:
    """The functions of the text that is running."""
    try:
        return definitions_in(ast.parse(source.text))
    except SyntaxError:
        return {}


# -- runs ------------------------------------------------------------------------------------


class Computation:
    """What is computed: statements, then an expression, in a scope of names."""

    __slots__ = ("body", "definitions", "expression", "names", "source")

    def __init__(
        self,
        source: Source,
        body: Sequence[ast.stmt],
        expression: ast.expr,
        names: Mapping[str, object],
        definitions: Mapping[str, ast.FunctionDef],
    ) -> None:
        self.source = source
        self.body = body
        self.expression = expression
        self.names = names
        self.definitions = definitions


class Outcome:
    """A run's value, and the gradients of its leaves by name."""

    __slots__ = ("gradients", "value")

    def __init__(self, value: Any, gradients: dict[str, Any]) -> None:
        self.value = value
        self.gradients = gradients


def explain(computation: Computation, wanted: Sequence[DType]) -> PrecisionRunResult | None:
    """The computation in each dtype; None where there is no operation on floating-point tensors."""
    with np.errstate(all="ignore"):
        state = functions["get_rng_state"]()
        exact = Exact()
        reference = _run(computation, dtypes.float64, exact, state)
        if not exact.values:
            return None
        names = [d.name for d in wanted] or list(NARROWER)
        runs = tuple(_compared(computation, name, exact, reference, state) for name in names)
        text = computation.source.segment(computation.expression)
        return PrecisionRunResult(" ".join(text.split()), runs)


def _run(computation: Computation, dtype: DType, watcher: Any, state: Any) -> Outcome:
    """One run, unheard, the generator as before it, on copies of the variables."""
    memo: dict[int, Any] = {}
    names = {name: _copied(value, dtype, memo) for name, value in computation.names.items()}
    kept = {name: getattr(modes.state, name) for name in type(modes.state).__slots__}
    listener = now.listener
    modes.state.warn, now.listener = None, Silence()
    functions["set_rng_state"](state)
    try:
        stepper = Stepper(computation.source, names, watcher, dict(computation.definitions))
        stepper.run(computation.body)
        value = stepper.value(computation.expression)
        return Outcome(value, _gradients(value, stepper.names))
    finally:
        functions["set_rng_state"](state)
        now.listener = listener
        for name, setting in kept.items():
            setattr(modes.state, name, setting)


def _copied(value: Any, dtype: DType, memo: dict[int, Any]) -> Any:
    """A variable for a run: floating-point tensors in its dtype, other tensors as copies."""
    if isinstance(value, Tensor):
        found = memo.get(id(value))
        if found is None:
            found = value.detach().clone()
            if is_float(value):
                found = found.to(dtype)
                if value.requires_grad:
                    found.requires_grad_()
            memo[id(value)] = found
        return found
    if type(value) in (list, tuple):
        return type(value)([_copied(item, dtype, memo) for item in value])
    if type(value) is dict:
        return {key: _copied(item, dtype, memo) for key, item in value.items()}
    return value


def _gradients(value: Any, names: Mapping[str, object]) -> dict[str, Any]:
    """The gradients of the named leaves: those that the program made, else those of the sum."""
    from tensorcli.explain.names import named_tensors

    leaves = {
        name: tensor
        for name, tensor in named_tensors({k: v for k, v in names.items() if isinstance(k, str)})
        if tensor.requires_grad and tensor.is_leaf and is_float(tensor)
    }
    if is_float(value) and value.requires_grad and not value.is_leaf:
        if not any(tensor.grad is not None for tensor in leaves.values()):
            try:
                value.sum().backward()
            except RuntimeError:  # the program has been through the graph already
                return {}
    return {
        name: doubles(tensor.grad) for name, tensor in leaves.items() if tensor.grad is not None
    }


def _compared(
    computation: Computation, name: str, exact: Exact, reference: Outcome, state: Any
) -> PrecisionRun:
    dtype = dtypes.by_name[name]
    if name not in FORMATS:
        raise TypeError(f"precision() compares floating-point dtypes, not {name}")
    low = Low(dtype, exact)
    try:
        outcome = _run(computation, dtype, low, state)
    except Exception as error:
        return PrecisionRun(name, str(error), None, None, None, (), _steps(computation, low))
    low.compare_gradients()
    result = _row(outcome.value, reference.value, name)
    gradients = tuple(
        (leaf, compare(reference.gradients[leaf], value, name))
        for leaf, value in outcome.gradients.items()
        if leaf in reference.gradients and reference.gradients[leaf].shape == value.shape
    )
    return PrecisionRun(
        name,
        None,
        result,
        _number(outcome.value),
        _number(reference.value),
        gradients,
        (*_conversions(computation, dtype), *_steps(computation, low)),
    )


def _row(value: Any, exact: Any, name: str) -> PrecisionRow | None:
    if not (is_float(value) and is_float(exact)):
        return None
    values, wanted = doubles(value), doubles(exact)
    if values is None or wanted is None or values.shape != wanted.shape:
        return None
    return compare(wanted, values, value.dtype.name)


def _number(value: Any) -> float | None:
    if is_float(value) and value.layout.numel == 1 and value.array is not None:
        return float(doubles(value).reshape(()))
    return None


def _conversions(computation: Computation, dtype: DType) -> list[RoundingStep]:
    """What the variables of the expression lost when they were cast."""
    found = []
    used: dict[str, ast.AST] = {}
    for root in (*computation.body, computation.expression):
        for node in ast.walk(root):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                used.setdefault(node.id, node)
    for name, node in used.items():
        value = computation.names.get(name)
        if not isinstance(value, Tensor) or not is_float(value) or value.array is None:
            continue
        exact = doubles(value)
        rounded = cast(exact, dtype)
        own = own_error(rounded, exact)
        if own:
            place = computation.source.span(node)
            worst = cause_of("to", [exact], exact, rounded, None, dtype.name, 1)
            reason = "" if worst is None else worst.reason
            cause = "rounding" if worst is None else worst.name
            total = total_error(rounded, exact)
            found.append(
                RoundingStep(name, place.line, place.column, 1, own, total, None, cause, reason)
            )
    return found


def _steps(computation: Computation, low: Low) -> tuple[RoundingStep, ...]:
    source = computation.source
    rows = []
    for step in low.steps.values():
        place = source.span(step.node)
        cause, reason = _told(step)
        text = " ".join(source.segment(step.node).split())
        rows.append(
            RoundingStep(
                text=text,
                line=place.line,
                column=place.column,
                times=step.times,
                own=step.own,
                total=step.total,
                gradient=step.gradient,
                cause=cause,
                reason=reason,
            )
        )
    return tuple(rows)


MANY = 8
"""From this many repetitions on, additions that each round are one accumulation."""


def _told(step: Step) -> tuple[str, str]:
    """The cause of a step and the reason in words."""
    if step.cause is None:
        return "exact", ""
    name, reason = step.cause.name, step.cause.reason
    if name == "rounding" and step.times >= MANY and operation_name(step.node) in ADDITIONS:
        return "accumulation", f"{step.times} additions, each rounded: at the worst {reason}"
    return name, reason
