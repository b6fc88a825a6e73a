"""Whether Enter runs the text or begins a new line, and what a pasted prompt stands for.

Knows Python's grammar, no terminal.
"""

from __future__ import annotations

import ast
import warnings
from codeop import PyCF_ALLOW_INCOMPLETE_INPUT  # type: ignore[attr-defined]  # not in its stubs

_COMPOUND = (
    ast.AsyncFor | ast.AsyncFunctionDef | ast.AsyncWith | ast.ClassDef | ast.For | ast.FunctionDef
) | (ast.If | ast.Match | ast.Try | ast.TryStar | ast.While | ast.With)


def needs_more(text: str) -> bool:
    """Whether the text cannot stand as it is but may become a program by going on.

    As in Python's own prompt a blank line ends a block: after `for …:` and its body there may be
    more of the body, or an else.
    """
    lines = text.split("\n")
    if not text.strip():
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = compile(
                text, "<prompt>", "exec", ast.PyCF_ONLY_AST | PyCF_ALLOW_INCOMPLETE_INPUT
            )
    except SyntaxError as error:
        # 3.11 and 3.12 say "incomplete input", later ones have a class for it.
        return error.msg == "incomplete input" or type(error).__name__ == "_IncompleteInputError"
    except (MemoryError, OverflowError, RecursionError, ValueError):
        return False  # the language says what is wrong
    return bool(tree.body) and isinstance(tree.body[-1], _COMPOUND) and bool(lines[-1].strip())


def indentation(text: str) -> str:
    """The blanks that a new line begins with: those of the last line, four more after a colon."""
    last = text.rstrip(" ").rpartition("\n")[2]
    blanks = last[: len(last) - len(last.lstrip(" "))]
    word = last.split(maxsplit=1)[:1]
    if last.endswith(":"):
        return blanks + "    "
    if word and word[0].rstrip(";") in ("return", "pass", "break", "continue", "raise"):
        return blanks[4:]
    return blanks


def without_prompts(text: str) -> str:
    """A pasted transcript of Python's prompt as the program in it; other text as it is."""
    lines = text.split("\n")
    first = next((line for line in lines if line.strip()), "").lstrip()
    if not first.startswith(">>> "):
        return text
    kept = [
        line.lstrip()[4:]
        for line in lines
        if line.lstrip().startswith((">>> ", "... ")) or line.strip() in (">>>", "...")
    ]
    return "\n".join(kept)


def assigned_names(text: str) -> list[str]:
    """The names that the text's own statements assign to, in order, each once."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(text).body
    except (SyntaxError, MemoryError, OverflowError, RecursionError, ValueError):
        return []
    found: dict[str, None] = {}
    for statement in body:
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
            targets = [statement.target]
        else:
            continue
        found.update((name, None) for target in targets for name in _names_in(target))
    return list(found)


def _names_in(target: ast.expr) -> list[str]:
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, ast.Starred):
        return _names_in(target.value)
    if isinstance(target, ast.Tuple | ast.List):
        return [name for element in target.elts for name in _names_in(element)]
    return []
