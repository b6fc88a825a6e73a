"""The call around a name that does not exist, tried with a name that does.

The arguments were not evaluated when the name failed, so that trying the call evaluates them: only
where that can be done without the program noticing, on copies of its variables.
"""

from __future__ import annotations

import ast
import math

from engine.registry import functions
from engine.tensor import Tensor
from tensorcli.explain.trial import MOST_ELEMENTS, UNFIT, Failure, Fix, copied, rerun
from tensorcli.language.functions import Function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# What an argument may consist of: nothing that prints, waits, binds or writes.
_QUIET = (
    ast.Name, ast.Constant, ast.Attribute, ast.Call, ast.Subscript, ast.Slice, ast.Tuple, ast.List,
    ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Starred, ast.keyword, ast.expr_context,
    ast.operator, ast.unaryop, ast.cmpop, ast.boolop,
)  # fmt: skip
_LOUD = ("print", "input", "load", "save", "backward", "next")


def renamed(failure: Failure, name: str) -> Fix | None:
    """The name in its place, with the arguments of the call that it was to be called with."""
    node = failure.node
    template = f"{{0}}.{name}" if isinstance(node, ast.Attribute) else name
    call = _call_of(failure)
    if call is None or not _quiet(failure, call):
        return failure.as_written(template)
    arguments = failure.source.segment(call)[len(failure.source.segment(node)) :]
    shown = failure.as_written(template)
    if shown is None:
        return None
    scope: dict[str, object] = {
        part.id: copied(failure.names[part.id])
        for part in ast.walk(call)
        if isinstance(part, ast.Name) and part.id in failure.names
    }
    owner = failure.parts[0].value if failure.parts else None
    function = template.format("_owner")
    generator = functions["get_rng_state"]()
    try:
        scope["_owner"] = copied(owner)
        rerun(f"_result = {function}{arguments}", scope)
    except NameError:  # a name of a function's own: nothing is known of the arguments
        return shown
    except UNFIT:
        return None
    finally:
        functions["set_rng_state"](generator)
    result = scope["_result"]
    return Fix(shown.expr + arguments, result.layout.shape if isinstance(result, Tensor) else None)


def _call_of(failure: Failure) -> ast.Call | None:
    """The call whose function stands at the place that failed."""
    wanted = failure.source.span(failure.node)
    try:
        tree = ast.parse(failure.source.text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and failure.source.span(node.func) == wanted:
            alike = failure.source.segment(node).startswith(failure.source.segment(node.func))
            return node if alike else None
    return None


def _quiet(failure: Failure, call: ast.Call) -> bool:
    """Whether evaluating the arguments has no effect, and costs next to nothing."""
    given = [*call.args, *call.keywords]
    parts = [part for argument in given for part in ast.walk(argument)]
    numbers = [abs(n) for n in _integers(parts) if n]
    if not all(isinstance(part, _QUIET) for part in parts) or math.prod(numbers) > MOST_ELEMENTS:
        return False
    for part in parts:
        if isinstance(part, ast.Call):
            called = str(getattr(part.func, "attr", None) or getattr(part.func, "id", "_"))
            if called.endswith("_") or called in _LOUD:
                return False
            if isinstance(failure.names.get(called), Function):
                return False
        elif isinstance(part, ast.Name):
            value = failure.names.get(part.id)
            if isinstance(value, Tensor) and value.numel() > MOST_ELEMENTS:
                return False
    return True


def _integers(parts: list[ast.AST]) -> Iterator[int]:
    for part in parts:
        if isinstance(part, ast.Constant) and type(part.value) is int:
            yield part.value
