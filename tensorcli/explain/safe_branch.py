"""Rewrites that keep a NaN from being born, each run before it is offered.

Two are known: a risky operation in a branch that where() does not take gets an input that is safe
there, and log(softmax(x)) becomes log_softmax(x).
"""

from __future__ import annotations

import ast

from engine.tensor import Tensor
from tensorcli.explain import again
from tensorcli.explain.replay import rewritten
from tensorcli.language.source import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorcli.explain.replay import Replay
    from tensorcli.language.forms import Argument

# What a node's operation is called in the text.
RISKY = {
    "Log": ("log",), "Log2": ("log2",), "Log10": ("log10",), "Sqrt": ("sqrt",), "Rsqrt": ("rsqrt",),
    "Reciprocal": ("reciprocal", "/"), "Div": ("/", "div"), "Pow": ("pow", "**"),
    "Asin": ("asin", "arcsin"), "Acos": ("acos", "arccos"), "Exp": ("exp",), "Atanh": ("atanh",),
}  # fmt: skip
MOST_TRIES = 6
MOST_TEXTS = 20


def fix(node_name: str, line: int | None, argument: Argument, replay: Replay) -> str | None:
    """The statement on that line in words that leave the explained value finite; None: none do."""
    for number in range(len(replay.texts) - 1, -1, -1)[:MOST_TEXTS]:
        found = _fix_in(number, node_name, line, argument, replay)
        if found is not None:
            return found
    return None


def _fix_in(
    number: int, node_name: str, line: int | None, argument: Argument, replay: Replay
) -> str | None:
    """The same in one of the session's texts; lines count in each by itself."""
    source = Source(replay.texts[number])
    try:
        tree = ast.parse(source.text)
    except SyntaxError:
        return None
    statement = _statement(tree, line)
    if statement is None:
        return None
    bare = node_name.rstrip("0123456789").removesuffix("Backward")
    tries = [*_safe_inputs(tree, statement, bare, source), *_joined(statement, source)]
    for part, words in tries[:MOST_TRIES]:
        changed = rewritten(source, source.span(part), words)
        if _is_finite(number, changed, argument, replay):
            return _words(changed, statement)
    return None


def _statement(tree: ast.Module, line: int | None) -> ast.stmt | None:
    """The innermost simple statement that stands on a line alone."""
    found = None
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.Expr | ast.Return) and (
            node.lineno == line == node.end_lineno
        ):
            found = node
    return found


def _safe_inputs(
    tree: ast.Module, statement: ast.stmt, bare: str, source: Source
) -> Iterator[tuple[ast.AST, str]]:
    """The input of the risky operation, chosen by the condition of a where()."""
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _name(node) == "where" and len(node.args) == 3
    ]
    # The where() that chooses among the results stands on this line or soon after it.
    line = statement.lineno
    calls.sort(key=lambda node: (node.lineno < line, abs(node.lineno - line)))
    conditions = dict.fromkeys(source.segment(node.args[0]) for node in calls)
    for risky in ast.walk(statement):
        part = _input(risky, RISKY.get(bare, ()))
        if part is None:
            continue
        text = source.segment(part)
        for condition in conditions:
            yield part, f"torch.where({condition}, {text}, 1.0)"
            yield part, f"torch.where({condition}, 1.0, {text})"


def _input(node: ast.AST, names: tuple[str, ...]) -> ast.expr | None:
    """The operand of an operation of one of those names that decides whether it is risky."""
    if isinstance(node, ast.Call) and _name(node) in names:
        function = node.func
        if isinstance(function, ast.Attribute) and not (
            isinstance(function.value, ast.Name) and function.value.id == "torch"
        ):
            return function.value
        return node.args[0] if node.args else None
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Div) and "/" in names:
            return node.right
        if isinstance(node.op, ast.Pow) and "**" in names:
            return node.left
    return None


def _joined(statement: ast.stmt, source: Source) -> Iterator[tuple[ast.AST, str]]:
    """log of softmax as the one operation that does not underflow in between."""
    for node in ast.walk(statement):
        inner = _input(node, ("log",))
        if not isinstance(inner, ast.Call) or _name(inner) != "softmax":
            continue
        text = source.segment(inner)
        function = source.segment(inner.func)
        joined = function.removesuffix("softmax") + "log_softmax"
        yield node, joined + text[len(function) :]


def _name(node: ast.Call) -> str:
    name = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
    return name if isinstance(name, str) else ""


def _is_finite(number: int, changed: str, argument: Argument, replay: Replay) -> bool:
    from tensorcli.explain.provenance import counts

    watcher = again.Upto(replay.texts, argument)
    replay.most = max(replay.most, replay.runs + 1)
    replay.run(watcher, {number: changed})
    value = watcher.value
    return watcher.found and isinstance(value, Tensor) and counts(value) == (0, 0)


def _words(changed: str, statement: ast.stmt) -> str:
    """The statement as it then stands."""
    return changed.split("\n")[statement.lineno - 1].strip()
