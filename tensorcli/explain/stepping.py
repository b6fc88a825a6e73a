"""Evaluating a program operation by operation, each told to a watcher with its operands.

It walks the syntax tree, and has each operation done by the language itself, on operands that it
evaluated before; a construct that it does not take apart is run as a whole. Meant for explanations,
which are asked for: it takes some ten times as long as running the program.
"""

from __future__ import annotations

import ast
from copy import copy

from tensorcli.language import limits
from tensorcli.language.compiling import Context, expression, statement
from tensorcli.language.functions import Function, bind
from tensorcli.language.namespaces import Namespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Protocol

    from tensorcli.language.source import Source

    class Watcher(Protocol):
        def done(
            self, node: ast.AST, operands: Sequence[Any], apply: Callable[[Sequence[Any]], Any]
        ) -> Any:
            """Do an operation by calling `apply` with its operands; what is answered is its value.

            `apply` may be called on others too, to see what they would give.
            """

        def whole(
            self, node: ast.AST, operands: Sequence[Any], apply: Callable[[Sequence[Any]], Any]
        ) -> Any:
            """The same for a function of the program that is not taken apart: it may have effects,
            so `apply` is called once."""

        def source(self, node: ast.AST, value: Any) -> Any:
            """A value that no operation with operands gave; what is answered is used for it."""


NEXT, BREAK, CONTINUE, RETURN = range(4)


class Stepper:
    """Runs statements and expressions of one source in a dictionary of names."""

    def __init__(
        self,
        source: Source,
        names: dict[Any, Any],
        watcher: Watcher,
        definitions: dict[str, list[ast.stmt]] | None = None,
    ) -> None:
        self.source = source
        self.names = names
        self.watcher = watcher
        self.definitions = {} if definitions is None else definitions
        self.returned: Any = None
        self._context = Context(source)
        self._compiled: dict[int, Any] = {}
        self._alive: list[ast.AST] = []

    # -- expressions

    def value(self, node: ast.expr) -> Any:
        """The value of an expression, its operations told to the watcher."""
        if isinstance(node, ast.IfExp):
            return self.value(node.body if self._truth(node.test) else node.orelse)
        if isinstance(node, ast.NamedExpr) and isinstance(node.target, ast.Name):
            self.names[node.target.id] = value = self.value(node.value)
            return value
        own = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            own = self.names.get(node.func.id)
            body = self.definitions.get(node.func.id)
            if body is not None and type(own) is Function and _is_plain(node, own):
                return self._call(own, body, node)
        parts = self._operands(node)
        if not parts:
            return self.watcher.source(node, self._whole(node))
        values = [self.value(part) for part in parts]
        apply = self._operation(node, parts)
        if isinstance(node, ast.List | ast.Tuple):
            return apply(values)
        if type(own) is Function:
            return self.watcher.whole(node, values, apply)
        return self.watcher.done(node, values, apply)

    def _operands(self, node: ast.expr) -> list[ast.expr]:
        """The parts of an operation that are evaluated before it; none: it is run as a whole."""
        if isinstance(node, ast.BinOp):
            return [node.left, node.right]
        if isinstance(node, ast.UnaryOp):
            return [node.operand]
        if isinstance(node, ast.Compare):
            return [node.left, *node.comparators]
        if isinstance(node, ast.List | ast.Tuple):
            return [] if any(isinstance(n, ast.Starred) for n in node.elts) else list(node.elts)
        if isinstance(node, ast.Subscript):
            return [node.value]
        if isinstance(node, ast.Attribute):
            return [] if self._is_namespace(node.value) else [node.value]
        if isinstance(node, ast.Call):
            if any(isinstance(a, ast.Starred) for a in node.args):
                return []
            if any(k.arg is None for k in node.keywords):
                return []
            function = node.func
            own = isinstance(function, ast.Attribute) and not self._is_namespace(function.value)
            first = [function.value] if own and isinstance(function, ast.Attribute) else []
            return [*first, *node.args, *(k.value for k in node.keywords)]
        return []

    def _is_namespace(self, node: ast.expr) -> bool:
        """Whether this is `torch`, `F` or `torch.linalg`, whose attributes are no operations."""
        if isinstance(node, ast.Attribute):
            return self._is_namespace(node.value)
        if not isinstance(node, ast.Name):
            return False
        if node.id in self.names:
            return isinstance(self.names[node.id], Namespace)
        from tensorcli.language.names import lookup

        return isinstance(lookup(node.id), Namespace)

    def _operation(self, node: ast.expr, parts: list[ast.expr]) -> Callable[[Sequence[Any]], Any]:
        """The operation at a node as a function of its operands."""
        marks = [f" {i}" for i in range(len(parts))]
        run = self._compiled.get(id(node))
        if run is None:
            run = expression(marked(node, parts, marks), self._context)
            self._remember(node, run)
        names = self.names

        def apply(values: Sequence[Any]) -> Any:
            # The operation itself may step into this node again: the names are its own.
            return run({**names, **dict(zip(marks, values, strict=True))})

        return apply

    def _whole(self, node: ast.expr) -> Any:
        run = self._compiled.get(id(node))
        if run is None:
            run = expression(node, self._context)
            self._remember(node, run)
        return run(self.names)

    def _remember(self, node: ast.AST, run: Any) -> None:
        self._compiled[id(node)] = run
        self._alive.append(node)  # an id is a name only as long as its object lives

    def _truth(self, node: ast.expr) -> bool:
        value = self.value(node)
        names = {" v": value}
        test = ast.parse("not not v", mode="eval").body
        assert isinstance(test, ast.UnaryOp)
        assert isinstance(test.operand, ast.UnaryOp)
        inner = test.operand.operand
        assert isinstance(inner, ast.Name)
        inner.id = " v"
        return bool(expression(test, self._context)(names))

    def _call(self, function: Function, body: list[ast.stmt], node: ast.Call) -> Any:
        """A function of the program, its body told too."""
        args = tuple(self.value(a) for a in node.args)
        kwargs = {str(k.arg): self.value(k.value) for k in node.keywords}
        frame: dict[Any, Any] = {}
        bind(function, frame, args, kwargs)
        inner = Stepper(self.source, {**self.names, **frame}, self.watcher, self.definitions)
        inner._compiled, inner._alive = self._compiled, self._alive
        meter = limits.meter()
        meter.enter_call()
        try:
            inner.run(body)
        finally:
            meter.leave_call()
        return inner.returned

    # -- statements

    def run(self, body: Iterable[ast.stmt]) -> int:
        """Run statements; how their block was left."""
        for node in body:
            limits.meter().step()
            left = self._statement(node)
            if left != NEXT:
                return left
        return NEXT

    def _statement(self, node: ast.stmt) -> int:
        if isinstance(node, ast.Expr):
            self.value(node.value)
        elif isinstance(node, ast.Assign):
            self.definitions.update(_defined(node))
            value = self.value(node.value)
            for target in node.targets:
                self._store(target, value)
        elif isinstance(node, ast.AugAssign):
            self._augmented(node)
        elif isinstance(node, ast.Return):
            self.returned = None if node.value is None else self.value(node.value)
            return RETURN
        elif isinstance(node, ast.If):
            return self.run(node.body if self._truth(node.test) else node.orelse)
        elif isinstance(node, ast.For) and not node.orelse:
            return self._for(node)
        elif isinstance(node, ast.While) and not node.orelse:
            return self._while(node)
        elif isinstance(node, ast.Break):
            return BREAK
        elif isinstance(node, ast.Continue):
            return CONTINUE
        else:
            self.definitions.update(_defined(node))
            self._run_whole(node)
        return NEXT

    def _run_whole(self, node: ast.stmt) -> None:
        run = self._compiled.get(id(node))
        if run is None:
            run = statement(node, self._context)
            self._remember(node, run)
        run(self.names)

    def _store(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = value
            return
        mark = ast.copy_location(ast.Name(" v", ast.Load()), target)
        node = ast.copy_location(ast.Assign([target], mark), target)
        self.names[" v"] = value
        try:
            statement(node, self._context)(self.names)
        finally:
            del self.names[" v"]

    def _augmented(self, node: ast.AugAssign) -> None:
        """`x += y`: told as the operation `x + y`, done as it stands."""
        if not isinstance(node.target, ast.Name):
            self._run_whole(node)
            return
        name, right = node.target.id, self.value(node.value)
        left = self.names.get(name)
        known = self._compiled.get(id(node))
        if known is None:
            load = ast.copy_location(ast.Name(name, ast.Load()), node.target)
            changed = copy(node)
            changed.value = ast.copy_location(ast.Name(" v", ast.Load()), node.value)
            binary = ast.copy_location(ast.BinOp(load, node.op, node.value), node)
            self._alive.append(binary)
            plain = self._operation(binary, [load, node.value])
            known = plain, statement(changed, self._context)
            self._remember(node, known)
        plain, in_place = known

        def apply(values: Sequence[Any]) -> Any:
            if values[0] is not left or values[1] is not right:
                return plain(values)
            self.names[" v"] = right
            try:
                in_place(self.names)
            finally:
                del self.names[" v"]
            return self.names[name]

        self.names[name] = self.watcher.done(node, [left, right], apply)

    def _for(self, node: ast.For) -> int:
        iterable = self.value(node.iter)
        items = ast.parse("[i for i in v]", mode="eval").body
        assert isinstance(items, ast.ListComp)
        place = ast.copy_location(ast.Name(" v", ast.Load()), node.iter)
        items.generators[0].iter = place
        for item in expression(items, self._context)({" v": iterable}):
            limits.meter().step()
            self._store(node.target, item)
            left = self.run(node.body)
            if left == BREAK:
                break
            if left == RETURN:
                return RETURN
        return NEXT

    def _while(self, node: ast.While) -> int:
        while self._truth(node.test):
            limits.meter().step()
            left = self.run(node.body)
            if left == BREAK:
                break
            if left == RETURN:
                return RETURN
        return NEXT


def _is_plain(node: ast.Call, function: Function) -> bool:
    """Whether a call and its function are simple enough to be stepped into."""
    starred = any(isinstance(a, ast.Starred) for a in node.args)
    return not (
        starred
        or any(k.arg is None for k in node.keywords)
        or function.contexts
        or function.parent is not function.globals
    )


def marked(node: ast.AST, parts: Sequence[ast.expr], marks: Sequence[str]) -> Any:
    """A copy of an operation with names in the place of its operands."""
    by_id = {id(part): mark for part, mark in zip(parts, marks, strict=True)}

    def replaced(value: Any) -> Any:
        if isinstance(value, list):
            return [replaced(item) for item in value]
        if isinstance(value, ast.AST):
            mark = by_id.get(id(value))
            if mark is not None:
                return ast.copy_location(ast.Name(mark, ast.Load()), value)
            if isinstance(value, ast.keyword) or (
                isinstance(value, ast.Attribute) and id(value.value) in by_id
            ):
                return rebuilt(value)
        return value

    def rebuilt(value: ast.AST) -> Any:
        new = copy(value)
        for field, inner in ast.iter_fields(value):
            setattr(new, field, replaced(inner))
        return new

    return rebuilt(node)


def definitions_in(tree: ast.Module) -> dict[str, list[ast.stmt]]:
    """The bodies of the undecorated functions that a module defines at its top level, by name."""
    return {name: body for node in tree.body for name, body in _defined(node).items()}


def _defined(node: ast.stmt) -> dict[str, list[ast.stmt]]:
    """The body of the function that a statement defines: `def f(x): …` or `f = lambda x: …`."""
    if isinstance(node, ast.FunctionDef) and not node.decorator_list:
        return {node.name: node.body}
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
        result = ast.copy_location(ast.Return(node.value.body), node.value.body)
        return {t.id: [result] for t in node.targets if isinstance(t, ast.Name)}
    return {}
