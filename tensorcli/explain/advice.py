"""Where a running program may surprise silently: the closures that look, put in while compiling.

By its form alone a piece of program is either above suspicion, and left as it is, or looked at when
it runs: an operator for its first operands only, after which it is out of the way. What is looked
for is in lints.py, which is loaded when something has caught the eye.
"""

from __future__ import annotations

import ast

from engine.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tensorcli.diagnostics import Diagnostic
    from tensorcli.language.compiling import Action, Context, Frame, Value

LOOKS = 2
"""How often an operator is looked at; a loop that is right twice is taken to be right."""

MOST_HINTS = 10

SILENCER = "tensorcli: ignore"

CASTS = frozenset({"to", "type", "int", "long", "short", "byte", "char", "type_as"})
LEAVING = frozenset({"to", "half", "float", "double", "bfloat16", "cuda", "cpu", "type"})
REDUCTIONS = frozenset({"prod", "cumprod"})
# Functions of two tensors that are looked at together, and by which lint.
LOSSES = {
    "cross_entropy": "scores",
    "nll_loss": "log_probabilities",
    "binary_cross_entropy_with_logits": "logits",
    **dict.fromkeys(("mse_loss", "l1_loss", "smooth_l1_loss"), "paired"),
    **dict.fromkeys(("allclose", "equal"), "nan_differs"),
}
ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.FloorDiv, ast.Mod)
SHAPED = (ast.Subscript, ast.Call)

# Methods that change nothing and whose result, unused, was meant to be the change.
SETTERS = frozenset(
    "masked_fill masked_scatter index_fill index_add index_copy index_put scatter scatter_add "
    "scatter_reduce index_reduce".split()
)


class Adviser:
    """One run's eye for surprises; `tell` gets each hint once."""

    __slots__ = ("_expands", "interactive", "names", "said", "tell")

    def __init__(
        self, tell: Callable[[Diagnostic], None], names: Mapping[str, object], interactive: bool
    ) -> None:
        self.tell = tell
        self.names = names
        self.interactive = interactive
        self.said: set[tuple[int, str]] = set()
        self._expands: bool | None = None

    def say(self, hint: Diagnostic | None, context: Context) -> None:
        """Tell a hint, unless it was told or its line asks for silence."""
        if hint is None or hint.span is None or len(self.said) >= MOST_HINTS:
            return
        span = hint.span
        lines = range(span.line, span.end_line + 1)
        if any(SILENCER in context.source.line(line) for line in lines):
            return
        key = (span.line, hint.code)
        if key not in self.said:
            self.said.add(key)
            self.tell(hint)

    # -- operators -----------------------------------------------------------------------------

    def operation(
        self, node: ast.AST, context: Context, apply: Any, settle: Callable[[], None]
    ) -> Any:
        if isinstance(node, ast.UnaryOp):
            return self._inversion(node, context, apply, settle)
        if isinstance(node, ast.BinOp | ast.AugAssign):
            if not isinstance(node.op, ARITHMETIC):
                return apply
        elif isinstance(node, ast.Compare) and not isinstance(node.ops[0], ast.Eq | ast.NotEq):
            return apply
        looks = 0

        def watched(a: Any, b: Any) -> Any:
            nonlocal looks
            looks += 1
            if looks >= LOOKS:
                settle()
            before = None
            if a.__class__ is not Tensor and b.__class__ is not Tensor:
                return apply(a, b)
            if node.__class__ is ast.AugAssign:
                if (
                    a.__class__ is Tensor
                    and not a.dtype.is_floating_point
                    and a.layout.numel < 10_000
                ):
                    before = None if a.array is None else a.array.copy()
            result = apply(a, b)
            if node.__class__ is ast.AugAssign and b.__class__ is Tensor:
                if a.__class__ is Tensor and a.storage.root is b.storage.root:
                    self._quietly("overlap", context, node, a, b)
            if a.__class__ is Tensor and b.__class__ is Tensor and a.ndim + b.ndim == 3:
                if a.shape != b.shape and result.ndim == 2:
                    self._quietly("outer", context, node, a, b)
            if node.__class__ is ast.Compare:
                if b.__class__ is float or b.__class__ is Tensor or a.__class__ is float:
                    self._quietly("never_equal", context, node, a, b)
            elif result.__class__ is Tensor and result.dtype.low:
                self._quietly("running_sum", context, node, result)
            elif result.__class__ is Tensor and result.dtype.is_integral:
                self._quietly("overflow", context, node, a if before is None else before, b, result)
            return result

        return watched

    def _inversion(
        self, node: ast.UnaryOp, context: Context, apply: Any, settle: Callable[[], None]
    ) -> Any:
        if not isinstance(node.op, ast.Invert):
            return apply

        def watched(a: Any) -> Any:
            settle()
            if a.__class__ is Tensor and a.dtype.name == "uint8":
                self._quietly("inverted", context, node, a)
            return apply(a)

        return watched

    def _quietly(self, name: str, context: Context, node: ast.AST, *values: Any) -> None:
        """Have a lint look; whatever goes wrong there is no business of the program."""
        from engine import modes
        from tensorcli.explain import lints

        try:
            self.say(lints.LINTS[name](context, node, *values), context)
        except Exception:
            if modes.state.check:
                raise

    # -- calls and elements ----------------------------------------------------------------------

    def call(self, node: ast.Call, context: Context, compiled: Callable[[], Value]) -> Value:
        function = node.func
        if isinstance(function, ast.Attribute):
            name, wanted = function.attr, function.attr in CASTS or function.attr in REDUCTIONS
            parts: list[ast.expr] = [function.value, *node.args]
        elif isinstance(function, ast.Name):
            name, wanted = function.id, function.id == "sum"
            parts = list(node.args)
        else:
            return compiled()
        if name == "log" and (node.args or parts):
            wanted = isinstance((node.args or parts)[0], ast.Call)
            parts = list(node.args) or parts
        if name == "arange" and len(node.args) == 3:
            wanted, parts = True, list(node.args)
        elif name in LOSSES and len(node.args) >= 2:
            name, wanted, parts = LOSSES[name], True, list(node.args[:2])
        if not wanted or len(parts) > 4:
            return compiled()
        return self._captured(name, node, parts, context, compiled)

    def subscript(
        self, node: ast.Subscript, context: Context, compiled: Callable[[], Value]
    ) -> Value:
        index = node.slice
        if not isinstance(index, ast.Tuple) or len(index.elts) < 3:
            return compiled()
        kinds = [isinstance(element, ast.Slice) for element in index.elts]
        first = kinds.index(False) if False in kinds else len(kinds)
        if True not in kinds[first:] or False not in kinds[kinds.index(True, first) :]:
            return compiled()
        return self._captured("between", node, [node.value, index], context, compiled)

    def _captured(
        self,
        name: str,
        node: ast.expr,
        parts: list[ast.expr],
        context: Context,
        compiled: Callable[[], Value],
    ) -> Value:
        """The closure of an expression with an eye on what its parts were the first few times."""
        values, run = capturing(parts, context, compiled)
        looks = 0

        def watched(frame: Frame) -> Any:
            nonlocal looks
            result = run(frame)
            if looks < LOOKS:
                looks += 1
                if len(values) == len(parts):
                    given = [values[id(part)] for part in parts]
                    kind = "cast" if name in CASTS else name
                    self._quietly(kind, context, node, *given, result)
                values.clear()
            return result

        return watched

    # -- statements ------------------------------------------------------------------------------

    def statement(self, node: ast.stmt, context: Context, compiled: Callable[[], Action]) -> Action:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name) and _may_lose_leaf(node, target.id):
                return self._leaf(node, target.id, context, compiled)
            if isinstance(target, ast.Subscript):
                if isinstance(target.value, SHAPED):
                    return self._written(node, target.value, context, compiled)
                if self._may_be_expanded(target.value, context):
                    return self._looked_at("expanded", node, target, context, compiled)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript):
            if isinstance(node.target.value, SHAPED):
                return self._written(node, node.target.value, context, compiled)
            if self._may_be_expanded(node.target.value, context):
                return self._looked_at("expanded", node, node.target, context, compiled)
            if not isinstance(node.target.slice, ast.Slice | ast.Constant):
                return self._looked_at("repeated", node, node.target, context, compiled)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            function = node.value.func
            if isinstance(function, ast.Attribute):
                if function.attr.endswith("_") and isinstance(function.value, SHAPED):
                    return self._written(node, function.value, context, compiled)
                if function.attr == "backward" and context.loops:
                    return self._again(node, context, compiled)
                if self._may_be_lost(function, context):
                    return self._unused(node, node.value, context, compiled)
        return compiled()

    def _leaf(
        self, node: ast.Assign, name: str, context: Context, compiled: Callable[[], Action]
    ) -> Action:
        action = compiled()

        def watched(frame: Frame) -> Any:
            old = frame.get(name)
            signal = action(frame)
            new = frame.get(name)
            if new.__class__ is Tensor and new is not old:
                self._quietly("leaf", context, node, old, new)
            return signal

        return watched

    def _written(
        self, node: ast.stmt, written: ast.expr, context: Context, compiled: Callable[[], Action]
    ) -> Action:
        root = root_of(written)
        if root is None:
            return compiled()
        values, action = capturing([written, root], context, compiled)

        def watched(frame: Frame) -> Any:
            signal = action(frame)
            if len(values) == 2:
                self._quietly("copy", context, node, values[id(written)], values[id(root)])
            values.clear()
            return signal

        return watched

    def _may_be_expanded(self, node: ast.expr, context: Context) -> bool:
        """Whether a name may stand for a view whose elements are one cell."""
        if self._expands is None:
            text = context.source.text
            self._expands = "expand" in text or "broadcast_to" in text
        return self._expands and isinstance(node, ast.Name)

    def _looked_at(
        self,
        lint: str,
        node: ast.stmt,
        target: ast.Subscript,
        context: Context,
        compiled: Callable[[], Action],
    ) -> Action:
        values, action = capturing([target.value, target.slice], context, compiled)
        looks = 0

        def watched(frame: Frame) -> Any:
            nonlocal looks
            signal = action(frame)
            if looks < LOOKS:
                looks += 1
                if len(values) == 2:
                    own, index = values[id(target.value)], values[id(target.slice)]
                    self._quietly(lint, context, node, own, index)
                values.clear()
            return signal

        return watched

    def _again(self, node: ast.Expr, context: Context, compiled: Callable[[], Action]) -> Action:
        action = compiled()
        passes = 0

        def watched(frame: Frame) -> Any:
            nonlocal passes
            passes += 1
            if passes == 2:
                self._quietly("accumulated", context, node)
            return action(frame)

        return watched

    def _may_be_lost(self, function: ast.Attribute, context: Context) -> bool:
        """Whether a lone `x.f()` was probably meant to change x."""
        if self.interactive:
            return False
        if function.attr in SETTERS:
            return True
        owner = function.value
        if isinstance(owner, ast.Attribute) and owner.attr in ("grad", "data"):
            return True
        return bool(context.loops) or context.inside_function

    def _unused(
        self, node: ast.Expr, call: ast.Call, context: Context, compiled: Callable[[], Action]
    ) -> Action:
        assert isinstance(call.func, ast.Attribute)
        owner = call.func.value
        values, action = capturing([owner], context, compiled)
        looked = False

        def watched(frame: Frame) -> Any:
            nonlocal looked
            signal = action(frame)
            if not looked and values:
                looked = True
                self._quietly("unused", context, node, values[id(owner)])
            return signal

        return watched


def capturing(
    parts: list[ast.expr], context: Context, compiled: Callable[[], Any]
) -> tuple[dict[int, Any], Any]:
    """Compile something so that the values of some of its expressions are kept by their nodes."""
    values: dict[int, Any] = {}
    wanted = {id(part) for part in parts}
    outer = context.watch

    def watch(node: ast.expr, value: Value) -> Value:
        if outer is not None:
            value = outer(node, value)
        if id(node) not in wanted:
            return value
        key = id(node)

        def keep(frame: Frame) -> Any:
            result = values[key] = value(frame)
            return result

        return keep

    context.watch = watch
    try:
        return values, compiled()
    finally:
        context.watch = outer


def root_of(node: ast.expr) -> ast.expr | None:
    """The name, or `x.grad`, that a chain of elements and methods begins with."""
    while isinstance(node, SHAPED):
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Attribute):
                return None
            node = node.func.value
        else:
            node = node.value
    return node if isinstance(node, ast.Name | ast.Attribute) else None


def _may_lose_leaf(node: ast.Assign, name: str) -> bool:
    """`x = x.to(…)`, `w = w - lr * w.grad`, `w = randn(3, requires_grad=True) * 0.1`."""
    value = node.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        owner = value.func.value
        if isinstance(owner, ast.Name) and owner.id == name and value.func.attr in LEAVING:
            return True
        return _asks_inside(owner) if isinstance(owner, ast.Call) else False
    if isinstance(value, ast.BinOp):
        if isinstance(value.left, ast.Name) and value.left.id == name:
            return any(isinstance(n, ast.Attribute) and n.attr == "grad" for n in ast.walk(value))
        return _asks_inside(value.left) or _asks_inside(value.right)
    return False


def _asks_inside(node: ast.expr) -> bool:
    """Whether an operand is made with requires_grad=True."""
    if node.__class__ is not ast.Call:
        return False
    return any(k.arg == "requires_grad" for k in node.keywords)
