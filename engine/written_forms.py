"""Call forms as PyTorch's complaints spell them, read as data: parameters, and names alone.

A form is a text such as ``(Tensor input, int dim = 0, *, Tensor out = None)``. The same text is
what an error lists, what a reference shows and, where an operation says so, what arguments are
bound to.
"""

from __future__ import annotations

from ast import literal_eval
from functools import cache
from typing import NamedTuple

from engine.signature import REQUIRED, Parameter

# PyTorch's words for types → the kinds of parameters. A lone integer is no tuple of ints here.
_KINDS = {
    "Number": "Scalar",
    "torch.dtype": "DType",
    "tuple of Tensors": "Tensors",
    "tuple of ints": "Shape",
}


class Piece(NamedTuple):
    """One parameter of a form: the words for its type, its name, the text of its default."""

    type: str
    name: str
    default: str | None


def pieces(form: str) -> list[Piece]:
    """The parameters of a form in order; the star before keywords is one named ``*``."""
    found = []
    for text in filter(None, form[1:-1].split(", ")):
        typed, given, default = text.partition(" = ")
        words, _, name = typed.rpartition(" ")
        found.append(Piece(words, name, default if given else None))
    return found


@cache
def parameters_in(form: str) -> tuple[Parameter, ...]:
    """The parameters to bind arguments to."""
    found: list[Parameter] = []
    keyword_only = False
    for piece in pieces(form):
        if piece.name == "*":
            keyword_only = True
            continue
        kind = _KINDS.get(piece.type, piece.type)
        default = REQUIRED if piece.default is None else literal_eval(piece.default)
        optional = " | None" if default is None else ""
        found.append(Parameter(piece.name, kind + optional, default, keyword_only))
    return tuple(found)


def names_in(form: str) -> str:
    """The form in Python's words: names and defaults, no types."""
    return ", ".join(
        piece.name if piece.default is None else f"{piece.name}={piece.default}"
        for piece in pieces(form)
    )
