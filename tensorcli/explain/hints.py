"""What a hint at a surprise is made of: a place, its words, and tries on copies of its values."""

from __future__ import annotations

import ast

from tensorcli.diagnostics import Diagnostic
from tensorcli.explain.elements import PURE
from tensorcli.explain.shapes import short
from tensorcli.explain.trial import Failure
from tensorcli.language.errors import Where

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tensorcli.explain.trial import Fix
    from tensorcli.language.compiling import Context

    Hint = Diagnostic | None


def hint_at(
    context: Context, node: ast.AST, code: str, message: str, fixes: Iterable[Fix] = ()
) -> Diagnostic:
    return Diagnostic(code, "hint", message, context.source.span(node), fixes=list(fixes))


def quoted(context: Context, node: ast.AST) -> str:
    return f"`{short(context.source.segment(node))}`"


def failure_of(context: Context, node: ast.AST, *pairs: tuple[ast.AST, object]) -> Failure:
    return Failure(Where(context.source, node, pairs), names_around(context))


def sides(node: Any) -> tuple[ast.AST, ast.AST]:
    if isinstance(node, ast.BinOp):
        return node.left, node.right
    if isinstance(node, ast.AugAssign):
        return node.target, node.value
    return node.left, node.comparators[0]


def names_around(context: Context) -> Mapping[str, object]:
    """The names of the program that is running."""
    names: Mapping[str, object] = getattr(context.advice, "names", {})
    return names


def is_pure(node: ast.AST) -> bool:
    return all(isinstance(n, PURE) for n in ast.walk(node))
