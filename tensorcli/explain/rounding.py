"""precision(expr, dtype): a whole computation in a dtype and in float64, and what each step lost.

Runs are made on copies of the variables, unheard, and leave the generator and the modes as they
were; measuring.py watches them.
"""

from __future__ import annotations

import ast
import re

import numpy as np

from engine import dtypes, modes
from engine.registry import functions
from engine.tensor import Tensor
from tensorcli.explain.causes import cause_of
from tensorcli.explain.measuring import Exact, Low, is_float, own_error, told, total_error
from tensorcli.explain.precision import FORMATS, cast, compare
from tensorcli.explain.stepping import Stepper, definitions_in
from tensorcli.explain.summary import doubles
from tensorcli.language.functions import Function
from tensorcli.language.running import Silence, now
from tensorcli.value_results import PrecisionRun, PrecisionRunResult, RoundingStep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from engine.dtypes import DType
    from tensorcli.language.source import Source
    from tensorcli.results import PrecisionRow

NARROWER = ("float32", "float16", "bfloat16")
"""The dtypes that arithmetic exists for, and that a computation is tried in."""


def definitions(source: Source) -> dict[str, list[ast.stmt]]:
    """The functions of the text that is running."""
    try:
        return definitions_in(ast.parse(source.text))
    except SyntaxError:
        return {}


class Computation:
    """What is computed: statements, then an expression, in a scope of names."""

    __slots__ = ("body", "definitions", "expression", "names", "source")

    def __init__(
        self,
        source: Source,
        body: Sequence[ast.stmt],
        expression: ast.expr,
        names: Mapping[str, object],
        definitions: Mapping[str, list[ast.stmt]],
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
    names: dict[Any, Any] = {}
    for name, value in computation.names.items():
        if not remembers(value):
            names[name] = _copied(value, dtype, memo)
    for name, value in names.items():
        if type(value) is Function and value.parent is value.globals:
            names[name] = _moved(value, names)
    kept = {name: getattr(modes.state, name) for name in type(modes.state).__slots__}
    listener = now.listener
    modes.state.warn, now.listener = None, Silence()
    functions["set_rng_state"](state)
    try:
        stepper = Stepper(computation.source, names, watcher, dict(computation.definitions))
        stepper.run(computation.body)
        value = stepper.value(computation.expression)
        return Outcome(value, _gradients(value, stepper.names))
    except NameError as error:
        left_out = [name for name, value in computation.names.items() if remembers(value)]
        for name in left_out:
            if f"'{name}'" in str(error):
                raise TypeError(
                    f"precision() runs a computation on copies, and '{name}' cannot be copied"
                ) from None
        raise
    finally:
        functions["set_rng_state"](state)
        now.listener = listener
        for name, setting in kept.items():
            setattr(modes.state, name, setting)


def remembers(value: object) -> bool:
    """Whether using a value changes it, and what it refers to, so that a rerun would be noticed."""
    kind = type(value)
    return hasattr(kind, "__next__") or kind.__module__.startswith(("engine.op", "engine.random"))


def _moved(function: Function, names: dict[Any, Any]) -> Function:
    """A function that sees the copies in place of the variables."""
    moved = Function(
        function.name,
        function.qualname,
        function.parameters,
        function.run,
        names,
        names,
        function.defaults,
        function.keyword_defaults,
    )
    moved.contexts = function.contexts
    return moved


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
    for name, node in _used(computation).items():
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
                RoundingStep(
                    name, name, place.line, place.column, 1, own, total, None, cause, reason
                )
            )
    return found


def _used(computation: Computation) -> dict[str, ast.AST]:
    """Where each name is first read, by the computation or a function of it."""
    used: dict[str, ast.AST] = {}
    todo: list[ast.AST] = [*computation.body, computation.expression]
    while todo:
        for node in ast.walk(todo.pop(0)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                if node.id not in used:
                    todo += computation.definitions.get(node.id, [])
                used.setdefault(node.id, node)
    return used


def _steps(computation: Computation, low: Low) -> tuple[RoundingStep, ...]:
    source = computation.source
    rows = []
    for step in low.steps.values():
        place = source.span(step.node)
        cause, reason = told(step)
        text = " ".join(source.segment(step.node).split())
        rows.append(
            RoundingStep(
                text=text,
                short=_short(source, step.node),
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


def _short(source: Source, node: ast.AST) -> str:
    """The operation itself, with what it is done to left out: `….sum(0)`, `softmax(…, dim=-1)`."""
    text = source.segment(node)
    for part in _parts(node):
        is_number = isinstance(part, ast.UnaryOp) and isinstance(part.operand, ast.Constant)
        kinds = (ast.BinOp, ast.Call, ast.Subscript, ast.UnaryOp, ast.List)
        if isinstance(part, kinds) and not is_number:
            text = text.replace(source.segment(part), "…", 1)
    text = re.sub(r"(?<![\w\])])\(…\)", "…", text)
    return " ".join(text.split())


def _parts(node: ast.AST) -> list[ast.AST]:
    """The operands of an operation; those of a method begin with its object."""
    parts = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Call):
        inner = node.func.value if isinstance(node.func, ast.Attribute) else node.func
        parts = [inner, *node.args, *(k.value for k in node.keywords)]
    if isinstance(node, ast.Subscript):
        parts = [node.value]
    return parts
