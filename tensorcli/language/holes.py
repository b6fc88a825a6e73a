"""Question marks where an operand stands: `zeros(3, 4) @ ?` asks which shapes fit.

Python's grammar has no such thing, so they are made names before it reads the text, of one
character, so that all places stay what they are. An expression statement with holes becomes a call
of the special form that answers.
"""

from __future__ import annotations

import ast

FORM = "?"
"""The special form's name, which no program can write."""

Places = set[tuple[int, int]]


def parse(text: str) -> ast.Module | None:
    """The tree of a text with holes; None where it is no program with them either."""
    named, places = _with_names(text)
    if not places:
        return None
    try:
        tree = ast.parse(named)
    except SyntaxError:
        return None
    _enclose(tree, places)
    strays = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id == "_" and _place(node) in places
    ]
    for stray in strays:
        line = text.split("\n")[stray.lineno - 1]
        column = len(line.encode()[: stray.col_offset].decode()) + 1
        message = "a question mark stands for an operand of an expression on a line of its own"
        raise SyntaxError(message, (None, stray.lineno, column, line, stray.lineno, column + 1))
    held = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id.startswith("?")]
    return tree if sum(n.id != FORM for n in held) == len(places) else None


def _with_names(text: str) -> tuple[str, Places]:
    """The text with underscores for its holes, and their places (line, column in bytes).

    Question marks in strings and comments are none.
    """
    result: list[str] = []
    places: Places = set()
    quote, position, line, column = "", 0, 1, 0
    while position < len(text):
        character = text[position]
        taken = 1
        if quote:
            if character == "\\":
                taken = 2
            elif text.startswith(quote, position):
                taken, quote = len(quote), ""
            elif character == "\n" and len(quote) == 1:
                quote = ""
        elif character == "#":
            end = text.find("\n", position)
            taken = (len(text) if end < 0 else end) - position
        elif character in "'\"":
            quote = character * 3 if text.startswith(character * 3, position) else character
            taken = len(quote)
        elif character == "?":
            places.add((line, column))
        piece = text[position : position + taken]
        result.append("_" if piece == "?" and not quote else piece)
        for one in piece:
            line, column = (line + 1, 0) if one == "\n" else (line, column + len(one.encode()))
        position += taken
    return "".join(result), places


def _enclose(tree: ast.Module, places: Places) -> None:
    """Make each expression statement with holes a call of the form."""
    for statement in ast.walk(tree):
        if not isinstance(statement, ast.Expr):
            continue
        found = [
            node
            for node in ast.walk(statement)
            if isinstance(node, ast.Name) and node.id == "_" and _place(node) in places
        ]
        for number, name in enumerate(sorted(found, key=_place), 1):
            name.id = f"?{number}"
        if found:
            value = statement.value
            function = ast.copy_location(ast.Name(FORM, ast.Load()), value)
            statement.value = ast.copy_location(ast.Call(function, [value], []), value)


def _place(node: ast.Name) -> tuple[int, int]:
    return node.lineno, node.col_offset


def names_in(node: ast.AST) -> list[str]:
    """The names of the holes in an expression, in their order."""
    found = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id.startswith("?")}
    return sorted(found - {FORM}, key=lambda name: int(name[1:]))
