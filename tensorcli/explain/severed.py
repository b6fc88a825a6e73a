"""backward() of what was not recorded: where the way back to the leaves was cut.

The program's text is read backwards from the tensor, through the assignments of its names; what is
looked at of the run is only whether a named tensor requires a gradient.
"""

from __future__ import annotations

import ast
import copy

from engine.tensor import Tensor
from tensorcli.explain.replay import rewritten
from tensorcli.explain.rewrites import first_that_runs
from tensorcli.explain.shapes import Reason, named, short
from tensorcli.language.source import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from tensorcli.explain.replay import Replay
    from tensorcli.explain.rewrites import Rewrite
    from tensorcli.explain.trial import Failure, Fix

    Line = tuple[int, int]  # where a statement begins: its line, and how far in

# What the calls that end a graph do, in words.
CUTS = {
    "detach": "detach() ends the graph",
    "detach_": "detach_() ends the graph",
    "argmax": "argmax() gives positions, which have no slope",
    "argmin": "argmin() gives positions, which have no slope",
    "argsort": "argsort() gives positions, which have no slope",
    "long": "a cast to integers has no slope",
    "int": "a cast to integers has no slope",
    "short": "a cast to integers has no slope",
    "bool": "a cast to bool has no slope",
    "item": "item() gives a Python number, which remembers nothing",
    "tolist": "tolist() gives Python numbers, which remember nothing",
    "numpy": "numpy() leaves the graph",
    "float()": "float() gives a Python number, which remembers nothing",
    "tensor": "tensor() copies values into a new leaf",
    "data": ".data is outside the graph",
    "bincount": "counting has no slope",
    "one_hot": "one_hot() gives integers, which have no slope",
    "compare": "a comparison gives truth values, which have no slope",
    "grad": "autograd.grad() records nothing of its own work without create_graph=True",
    "no_grad": "nothing is recorded inside no_grad()",
    "inference_mode": "nothing is recorded inside inference_mode()",
}
MODES = ("no_grad", "inference_mode")
MOST_DEPTH = 30


class Cut:
    """Where the graph ends: the expression, its line, and what it does (a key of CUTS).

    The line counts in all that the session has run, as Search reads it.
    """

    __slots__ = ("kind", "line", "node", "words")

    def __init__(self, kind: str, words: str, line: int, node: ast.AST) -> None:
        self.kind = kind
        self.words = words
        self.line = line
        self.node = node


def _start(node: Any) -> Line:
    return node.lineno, node.col_offset


class Search:
    """All that a session has run as one text, its names, and where the last input begins."""

    def __init__(self, earlier: Sequence[str], text: str, names: Mapping[str, object]) -> None:
        before = "".join(f"{one.rstrip()}\n" for one in earlier)
        self.before = before.count("\n")
        self.text = before + text
        self.tree = ast.parse(self.text)
        self.names = names
        self.depth = 0

    def shifted(self, node: ast.AST) -> ast.AST:
        """A node of the last input as one of the whole text."""
        return ast.increment_lineno(copy.deepcopy(node), self.before)

    def where(self, cut: Cut) -> str:
        """The line of a cut in words."""
        if cut.line > self.before:
            return f" on line {cut.line - self.before}"
        return " in an earlier input"

    def cut(self, node: ast.AST, line: Line) -> Cut | None:
        """The first place, going back from an expression, where a path to a leaf ends."""
        self.depth += 1
        if self.depth > 300:
            return None
        if isinstance(node, ast.Name):
            return self._of_name(node.id, line)
        kind = _kind(node) or self._silent_function(node)
        if kind is not None and self.is_live(node, line):
            words = short(ast.get_source_segment(self.text, node) or "")
            return Cut(kind, words, getattr(node, "lineno", line[0]), node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr | ast.keyword):
                found = self.cut(child, line)
                if found is not None:
                    return found
        return None

    def _silent_function(self, node: ast.AST) -> str | None:
        """The mode of a function of the program that records nothing: @no_grad() above it."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            return None
        for other in self.tree.body:
            if isinstance(other, ast.FunctionDef) and other.name == node.func.id:
                words = " ".join(ast.unparse(d) for d in other.decorator_list)
                return next((mode for mode in MODES if mode in words), None)
        return None

    def _of_name(self, name: str, line: Line) -> Cut | None:
        value = self.names.get(name)
        if isinstance(value, Tensor) and value.requires_grad:
            return None
        made = self._assignment(name, line)
        if made is None:
            return None
        statement, inside = made
        if inside is not None and self.is_live(statement.value, _start(statement)):
            words = short(ast.get_source_segment(self.text, statement) or "")
            return Cut(inside, words, statement.lineno, statement)
        return self.cut(statement.value, _start(statement))

    def _assignment(self, name: str, line: Line) -> tuple[Any, str | None] | None:
        """The last assignment of a name above a line, and the mode that it stands in."""
        found: tuple[Any, str | None] | None = None

        def walk(nodes: list[Any], mode: str | None) -> None:
            nonlocal found
            for node in nodes:
                if isinstance(node, ast.With):
                    words = "".join(ast.unparse(item.context_expr) for item in node.items)
                    inner = next((m for m in MODES if m in words), mode)
                    walk(node.body, None if "enable_grad" in words else inner)
                elif (
                    isinstance(node, ast.Assign | ast.AnnAssign)
                    and (node.lineno, node.col_offset) < line
                ):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    if node.value is not None and any(
                        isinstance(part, ast.Name) and part.id == name
                        for target in targets
                        for part in ast.walk(target)
                    ):
                        found = (node, mode)
                elif isinstance(node, ast.For | ast.While | ast.If | ast.Try):
                    walk([*node.body, *node.orelse], mode)

        walk(self.tree.body, None)
        return found

    def is_live(self, node: ast.AST, line: Line) -> bool:
        """Whether something inside an expression requires a gradient."""
        self.depth += 1
        if self.depth > 300:
            return False
        for part in ast.walk(node):
            if isinstance(part, ast.keyword) and part.arg == "requires_grad":
                return True
            if isinstance(part, ast.Name):
                value = self.names.get(part.id)
                if isinstance(value, Tensor) and value.requires_grad:
                    return True
                made = self._assignment(part.id, line)
                if made is not None and self.is_live(made[0].value, _start(made[0])):
                    return True
        return False


def _kind(node: ast.AST) -> str | None:
    """The key in CUTS of an expression that ends a graph."""
    if isinstance(node, ast.Compare):
        return "compare"
    if isinstance(node, ast.Attribute) and node.attr == "data":
        return "data"
    if not isinstance(node, ast.Call):
        return None
    function = node.func
    if isinstance(function, ast.Name):
        if function.id in ("float", "int", "bool"):
            return "float()"
        return function.id if function.id in CUTS else None
    if not isinstance(function, ast.Attribute):
        return None
    if function.attr == "grad":
        kept = any(k.arg == "create_graph" for k in node.keywords) or len(node.args) > 4
        return None if kept else "grad"
    if function.attr in ("to", "type"):
        words = " ".join(map(ast.unparse, [*node.args, *(k.value for k in node.keywords)]))
        return "long" if "int" in words or "long" in words or "bool" in words else None
    return function.attr if function.attr in CUTS else None


def explain(failure: Failure, exc: Any, replay: Replay | None) -> Reason:
    """Why there is nothing to go back through, and where it was lost."""
    if not failure.tensors:
        return Reason()
    number = failure.tensors[0][0]
    earlier = [] if replay is None else replay.texts[:-1]
    search = Search(earlier, failure.source.text, failure.names)
    part = failure.parts[number]
    line = (part.span.line + search.before, part.span.column - 1)
    node = search.shifted(part.node)
    cut = search.cut(node, line)
    subject = named(failure, number)
    if cut is not None:
        own_line = cut.line == part.span.line + search.before
        place = f"`{cut.words}`" + ("" if own_line else search.where(cut))
        note = f"{subject} does not remember how it was made: in {place} {CUTS[cut.kind]}"
        return Reason(
            [note], first_that_runs(_reconnected(search, cut, replay), replay, whole=True)
        )
    if search.is_live(node, line):
        note = f"{subject} does not depend on a tensor that requires grad: its derivative is 0"
        return Reason([note])
    note = f"nothing that {subject} was made from requires grad"
    return Reason([note], failure.first(_leaves(failure, number), most=1))


def _reconnected(search: Search, cut: Cut, replay: Replay | None) -> Iterator[Rewrite]:
    """The statement with the cut, without what cuts it."""
    if replay is None or cut.line <= search.before:
        return
    source = Source(replay.texts[-1])
    node: Any = ast.increment_lineno(copy.deepcopy(cut.node), -search.before)
    span = source.span(node)
    statement: Any = next(
        (n for n in ast.walk(ast.parse(source.text)) if isinstance(n, ast.Assign | ast.Expr)
         and (n.lineno, n.col_offset) <= (node.lineno, node.col_offset)
         and (n.end_lineno, n.end_col_offset) >= (node.end_lineno, node.end_col_offset)),
        None,
    )  # fmt: skip
    words = _uncut(source, cut.kind, node)
    if statement is None or words is None:
        return
    text = rewritten(source, span, words)
    whole, longer = source.span(statement), len(text) - len(source.text)
    end = sum(len(line) + 1 for line in source.lines[: whole.end_line - 1]) + whole.end_column - 1
    start = sum(len(line) + 1 for line in source.lines[: whole.line - 1]) + whole.column - 1
    yield f"{text[start : end + longer]}  # line {span.line}", text, len(replay.texts) - 1


def _uncut(source: Source, kind: str, node: Any) -> str | None:
    """The expression that a cut is made to, or the same keeping its graph."""
    if kind in ("detach", "data"):
        method: Any = node.func if isinstance(node, ast.Call) else node
        return source.segment(method.value)
    if kind == "grad":
        return f"{source.segment(node)[:-1]}, create_graph=True)"
    if kind != "tensor" or len(node.args) != 1:
        return None
    inner: Any = node.args[0]
    while isinstance(inner, ast.Call) and getattr(inner.func, "attr", "") in ("item", "detach"):
        function: Any = inner.func
        inner = function.value
    text = source.segment(inner)
    if isinstance(inner, ast.List | ast.Tuple):
        return f"{source.segment(node.func).removesuffix('tensor')}stack({text})"
    return text if isinstance(inner, ast.Name | ast.Call) else f"({text})"


def _leaves(failure: Failure, number: int) -> Iterator[Fix | None]:
    """requires_grad_() for the names that the failing expression is made of."""
    node = failure.parts[number].node
    names = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    for part in names:
        value = failure.names.get(part.id)
        if isinstance(value, Tensor) and value.dtype.is_floating_point:
            yield failure.prepared(part.id, f"{part.id}.requires_grad_(); ")
