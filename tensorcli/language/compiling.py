"""How syntax becomes closures: a table per kind of node, and what is known while compiling.

A construct without an entry in the tables is refused: nothing here passes anything on to Python's
own evaluation.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, NoReturn

from tensorcli.language.source import Source, refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Protocol

    # What a running piece of program sees. At module level it is the dictionary of the user's
    # names itself; a call or a comprehension has a dictionary of its own, with the module's at
    # the key GLOBALS and the enclosing one at PARENT. No name of a program can be an integer.
    Frame = dict[Any, Any]
    Value = Callable[[Frame], Any]
    # A statement answers None, or how its block is left: BREAK, CONTINUE, or (value,) for return.
    Action = Callable[[Frame], Any]
    Store = Callable[[Frame, Any], None]
    # Puts an observer around the closure of each statement, for runs that are watched.
    Trace = Callable[[ast.stmt, Action], Action]
    # The same for the closure of each expression.
    Watch = Callable[[ast.expr, Value], Value]

    class Advice(Protocol):
        """Looks for silent surprises: given a piece of program, it may put itself around it.

        What is not suspicious by its form gets its closure back as it is; `operation` looks at
        the first few operands, then has `settle` called to be out of the way.
        """

        def operation(
            self, node: ast.AST, context: Context, apply: Any, settle: Callable[[], None]
        ) -> Any: ...

        def call(
            self, node: ast.Call, context: Context, compiled: Callable[[], Value]
        ) -> Value: ...

        def subscript(
            self, node: ast.Subscript, context: Context, compiled: Callable[[], Value]
        ) -> Value: ...

        def statement(
            self, node: ast.stmt, context: Context, compiled: Callable[[], Action]
        ) -> Action: ...


GLOBALS = 0
PARENT = 1
BREAK = 1
CONTINUE = 2

MODULE_SCOPE = "module"
FUNCTION_SCOPE = "function"
COMPREHENSION_SCOPE = "comprehension"


class Context:
    """What is known of the place that is being compiled.

    `names` are the names bound in this scope (at module level unknown: they are looked up when
    reached), `outer_names` those that a nonlocal statement gave away. `trace` and `watch` are
    there only where the run is to be watched, and cost nothing otherwise; `advice` looks for
    silent surprises, and is None where nobody wants to hear of them.
    """

    __slots__ = (
        "advice", "kind", "known", "loops", "names", "outer_names", "parent", "qualname", "source",
        "trace", "watch",
    )  # fmt: skip

    def __init__(
        self,
        source: Source,
        kind: str = MODULE_SCOPE,
        parent: Context | None = None,
        names: Iterable[str] = (),
        outer_names: Iterable[str] = (),
        qualname: str = "",
    ) -> None:
        self.source = source
        self.kind = kind
        self.parent = parent
        self.names = frozenset(names)
        self.outer_names = frozenset(outer_names)
        self.qualname = qualname
        # Whether break is meaningful here, and whether any loop of this scope is around.
        self.loops = 0
        # What names mean that the program does not bind, once looked up.
        self.known: dict[str, object] = {} if parent is None else parent.known
        self.advice: Advice | None = None if parent is None else parent.advice
        self.trace: Trace | None = None if parent is None else parent.trace
        self.watch: Watch | None = None if parent is None else parent.watch

    @property
    def at_module_level(self) -> bool:
        return self.kind == MODULE_SCOPE

    @property
    def inside_function(self) -> bool:
        scope: Context | None = self
        while scope is not None:
            if scope.kind == FUNCTION_SCOPE:
                return True
            scope = scope.parent
        return False

    def hops(self, name: str) -> int | None:
        """How many frames up a name lives: 0 is this one, None the module."""
        scope: Context | None = self
        count = 0
        while scope is not None and scope.kind != MODULE_SCOPE:
            if name in scope.names and name not in scope.outer_names:
                return count
            scope = scope.parent
            count += 1
        return None

    def binding_hops(self, name: str) -> int | None:
        """How many frames up a walrus binds: comprehensions have no names but their targets."""
        scope, count = self, 0
        while scope.kind == COMPREHENSION_SCOPE and scope.parent is not None:
            scope = scope.parent
            count += 1
        if scope.kind == MODULE_SCOPE:
            return None
        found = scope.hops(name)
        return None if found is None else count + found


EXPRESSIONS: dict[type, Callable[[Any, Context], Value]] = {}
STATEMENTS: dict[type, Callable[[Any, Context], Action]] = {}


def compiles_expression(*kinds: type) -> Callable[[Any], Any]:
    """Register how a kind of expression becomes a closure."""

    def register(handler: Any) -> Any:
        for kind in kinds:
            EXPRESSIONS[kind] = handler
        return handler

    return register


def compiles_statement(*kinds: type) -> Callable[[Any], Any]:
    """Register how a kind of statement becomes a closure."""

    def register(handler: Any) -> Any:
        for kind in kinds:
            STATEMENTS[kind] = handler
        return handler

    return register


def expression(node: ast.expr, context: Context) -> Value:
    """The closure that computes an expression."""
    handler = EXPRESSIONS.get(type(node))
    if handler is None:
        refuse_construct(node, context)
    value = handler(node, context)
    return value if context.watch is None else context.watch(node, value)


def statement(node: ast.stmt, context: Context) -> Action:
    """The closure that runs a statement."""
    handler = STATEMENTS.get(type(node))
    if handler is None:
        refuse_construct(node, context)
    if context.advice is None:
        action = handler(node, context)
    else:
        action = context.advice.statement(node, context, lambda: handler(node, context))
    return action if context.trace is None else context.trace(node, action)


# Plain name of what the language leaves out, and what to do instead.
LEFT_OUT: dict[str, tuple[str, str]] = {
    "ClassDef": (
        "a class definition",
        "keep parameters in variables and use torch.nn.functional: F.linear(x, weight, bias)",
    ),
    "AsyncFunctionDef": ("an async function", "use def"),
    "AsyncFor": ("an async loop", "use for"),
    "AsyncWith": ("an async with", "use with"),
    "Await": ("await", "call the function directly"),
    "Yield": ("a generator function", "build a list and return it"),
    "YieldFrom": ("a generator function", "build a list and return it"),
    "Global": ("a global statement", "return the value and assign it at the top level"),
    "Match": ("a match statement", "use if and elif"),
    "TryStar": ("an except* clause", "use except"),
    "TypeAlias": ("a type alias", "leave it out: annotations are ignored"),
    "Starred": ("a starred expression here", "stars belong in calls, lists, tuples and targets"),
    "Slice": ("a slice here", "slices belong in square brackets"),
    "TemplateStr": ("a template string", "use an f-string"),
}


def refuse_construct(node: ast.AST, context: Context, kind: str = "") -> NoReturn:
    kind = kind or type(node).__name__
    name, advice = LEFT_OUT.get(kind, (f"the construct {kind}", "write it another way"))
    refuse("construct", f"{name} is not part of the language", context.source.span(node), advice)


def refuse_at(node: ast.AST, context: Context, message: str, *notes: str) -> NoReturn:
    """Refuse what Python's own compiler refuses after parsing."""
    refuse("syntax", message, context.source.span(node), *notes)


def walk_scope(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes that belong to the scope of `nodes`, without the bodies of inner functions."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            stack += [*node.decorator_list, *node.args.defaults]
            stack += [d for d in node.args.kw_defaults if d is not None]
        elif isinstance(node, ast.Lambda):
            stack += [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
        else:
            stack += ast.iter_child_nodes(node)


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def bound_names(body: Iterable[ast.AST]) -> set[str]:
    """The names that statements bind in their own scope."""
    names: set[str] = set()
    hidden: set[int] = set()
    for node in walk_scope(body):
        if isinstance(node, _COMPREHENSIONS):
            # The targets of a comprehension are its own, walruses in it are not.
            for generator in node.generators:
                hidden.update(id(n) for n in ast.walk(generator.target))
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load) and id(node) not in hidden:
                names.add(node.id)
        elif isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ExceptHandler):
            if node.name is not None:
                names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
    return names
