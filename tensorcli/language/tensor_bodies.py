"""Pieces of program that do nothing but compute with tensors, told by the form of their text.

Such a piece can be done again from a recording of what it did (`repeating`): its statements are
assignments to names, operators and calls of operations whose effects the engine knows.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from engine.registry import functions, op_of_function, op_of_inplace, op_of_method
from tensorcli.language.compiling import bound_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.registry import Op
    from tensorcli.language.compiling import Context

_KINDS = ("pointwise", "reduction", "contraction", "accumulation", "view")
# Families whose other operations draw no numbers, set no mode and refuse nothing for its values
# (but indices out of their range).
_FAMILIES = frozenset(
    "activation arithmetic classification convolution copying cumulative distances extrema "
    "functional_activation gathering indexing joining linear losses margin_losses masking "
    "normalisation norms padding pooling powers products rearranging reductions scatter shaping "
    "softmax sorting statistics views".split()
)
_REFUSING = ("masked_scatter",)
ATTRIBUTES = ("T", "grad", "mT")
MODES = ("enable_grad", "no_grad")
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.MatMult)
_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
NUMBERS = (int, float, bool, complex, str, type(None), type(Ellipsis))


class Body:
    """What a loop's body reads and calls.

    `read` are the names whose values it takes from outside (or from the turn before), `called`
    the functions, `tests` the conditions under which something else happens in a turn.
    """

    __slots__ = ("called", "context", "managers", "read", "tests")

    def __init__(self, context: Context) -> None:
        self.context = context
        self.read: dict[str, None] = {}
        self.called: list[tuple[str, ...]] = []
        self.managers: list[tuple[str, ...]] = []
        self.tests: list[ast.expr] = []


class _Other(Exception):
    """The body does something else."""


def read_body(node: ast.For, context: Context) -> Body | None:
    """What the loop's body reads and calls, None if it may do more than compute with tensors."""
    if context.watch is not None or context.trace is not None:
        return None
    targets = {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
    body = Body(context)
    reader = _Reader(body, targets)
    try:
        reader.block(node.body, top=True)
        reader.check_tests()
    except _Other:
        return None
    return body


def read_function(
    node: ast.FunctionDef | ast.Lambda, parameters: Iterable[str], context: Context
) -> Body | None:
    """The same for a function that a loop may call."""
    if context.watch is not None or context.trace is not None:
        return None
    body = Body(context)
    reader = _Reader(body, set())
    reader.bound.update(parameters)
    try:
        if isinstance(node, ast.Lambda):
            reader.value(node.body)
        else:
            last = node.body[-1]
            reader.block(node.body[:-1])
            if not isinstance(last, ast.Return) or last.value is None:
                raise _Other
            reader.value(last.value)
        if any(context.hops(name) is not None for name in body.read):
            raise _Other
    except _Other:
        return None
    return body


class _Reader:
    """Goes through a body in the order in which it runs."""

    def __init__(self, body: Body, targets: set[str]) -> None:
        self.body = body
        self.targets = targets
        self.bound: set[str] = set()
        self.stored: set[str] = set()

    def block(self, nodes: Iterable[ast.stmt], *, top: bool = False) -> None:
        for node in nodes:
            if top and isinstance(node, ast.If) and not node.orelse:
                self.body.tests.append(node.test)
                self.stored |= bound_names([node])
            else:
                self.statement(node)

    def check_tests(self) -> None:
        """Conditions must be known before the turn: of loop variables and what no turn changes."""
        for test in self.body.tests:
            for part in ast.walk(test):
                if isinstance(part, ast.Name):
                    if part.id in self.stored:
                        raise _Other
                    if part.id not in self.targets:
                        self.body.read[part.id] = None
                elif (
                    not isinstance(
                        part,
                        (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Constant, ast.expr_context)
                        + (ast.cmpop, ast.boolop, ast.unaryop),
                    )
                    and not (
                        isinstance(part, ast.BinOp)
                        and isinstance(part.op, (ast.Add, ast.Sub, ast.Mod, ast.FloorDiv, ast.Mult))
                    )
                    and not isinstance(part, ast.operator)
                ):
                    raise _Other
        if self.stored & self.targets:
            raise _Other

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            self.assign(node.targets[0], node.value)
        elif isinstance(node, ast.AugAssign):
            self.augmented(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self.value(node.value)
        elif isinstance(node, ast.With):
            for item in node.items:
                self.manager(item)
            self.block(node.body)
        elif isinstance(node, ast.For) and not node.orelse:
            self.inner_loop(node)
        elif not isinstance(node, ast.Pass):
            raise _Other

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.value(value)
            self.bind(target.id)
            return
        if not (
            isinstance(target, ast.Attribute)
            and target.attr == "grad"
            and isinstance(value, ast.Constant)
            and value.value is None
        ):
            raise _Other
        self.value(target.value)

    def augmented(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.name(node.target.id)
            self.stored.add(node.target.id)
        elif isinstance(node.target, ast.Subscript):
            self.value(node.target)
        else:
            raise _Other
        self.operator(node.op)
        self.value(node.value)

    def bind(self, name: str) -> None:
        self.bound.add(name)
        self.stored.add(name)

    def manager(self, item: ast.withitem) -> None:
        call = item.context_expr
        if item.optional_vars is not None or not isinstance(call, ast.Call):
            raise _Other
        if call.args or call.keywords:
            raise _Other
        self.body.managers.append(self.path(call.func))

    def inner_loop(self, node: ast.For) -> None:
        """Its names are bound only if it runs at all: beyond it they count as read."""
        if not isinstance(node.target, ast.Name):
            raise _Other
        self.value(node.iter)
        before = set(self.bound)
        self.bind(node.target.id)
        self.block(node.body)
        self.bound = before

    def name(self, name: str) -> None:
        if name in self.targets:
            raise _Other
        if name not in self.bound:
            self.body.read[name] = None

    def operator(self, op: ast.operator) -> None:
        if not isinstance(op, _OPERATORS):
            raise _Other

    def path(self, node: ast.expr) -> tuple[str, ...]:
        """A dotted name; its first part counts as read."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id in self.bound:
            raise _Other
        self.name(node.id)
        return (node.id, *reversed(parts))

    def value(self, node: ast.expr) -> None:
        if isinstance(node, ast.Name):
            self.name(node.id)
        elif isinstance(node, ast.Constant):
            if type(node.value) not in NUMBERS:
                raise _Other
        elif isinstance(node, ast.BinOp):
            self.operator(node.op)
            self.value(node.left)
            self.value(node.right)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            self.value(node.operand)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            if not isinstance(node.ops[0], _COMPARISONS):
                raise _Other
            self.value(node.left)
            self.value(node.comparators[0])
        elif isinstance(node, (ast.Tuple, ast.List)):
            for part in node.elts:
                self.value(part)
        elif isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES:
            self.value(node.value)
        elif isinstance(node, ast.Subscript):
            self.value(node.value)
            self.value(node.slice)
        elif isinstance(node, ast.Slice):
            for bound in (node.lower, node.upper, node.step):
                if bound is not None:
                    self.value(bound)
        elif isinstance(node, ast.Call):
            self.call(node)
        else:
            raise _Other

    def call(self, node: ast.Call) -> None:
        function = node.func
        root = function
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id not in self.bound:
            self.body.called.append(self.path(function))
        elif isinstance(function, ast.Attribute) and is_method(function.attr):
            self.value(function.value)
        else:
            raise _Other
        for argument in node.args:
            self.value(argument)
        for keyword in node.keywords:
            if keyword.arg is None:
                raise _Other
            self.value(keyword.value)


def is_method(name: str) -> bool:
    """Whether a Tensor method does nothing that a recording does not see."""
    if name in ("backward", "fill_", "zero_"):
        return True
    op = op_of_method(name)
    if op is not None:
        return _is_silent(op)
    op = op_of_inplace(name)
    return op is not None and op.kind in ("pointwise", "kernel") and _is_silent(op)


def _is_silent(op: Op) -> bool:
    if op.data_dependent or op.name in _REFUSING:
        return False
    return op.kind in _KINDS or op.family in _FAMILIES


def is_function(name: str, value: object) -> bool:
    """The same for a function of that name."""
    for key in (name, f"nn.functional.{name}"):
        if functions.get(key) is value:
            op = op_of_function(key)
            return op is not None and _is_silent(op)
    return False
