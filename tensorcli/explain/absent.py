"""Why a tensor's .grad is None, in words of the program."""

from __future__ import annotations

import ast

from engine.tensor import Tensor
from tensorcli.explain.names import named_tensors
from tensorcli.explain.severed import CUTS, Search
from tensorcli.explain.shapes import short
from tensorcli.language.running import now
from tensorcli.language.source import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Program:
    """All that the session has run as one text, with the names that it has bound."""

    def __init__(self, names: Mapping[str, object]) -> None:
        replay = None if now.replay is None else now.replay()
        texts = [""] if replay is None else replay.texts
        self.names = dict(names)
        try:
            self.search = Search(texts[:-1], texts[-1], self.names)
        except (SyntaxError, ValueError, RecursionError):
            self.search = Search([], "", self.names)
        self.source = Source(self.search.text)

    def assignment(self, name: str) -> ast.Assign | None:
        """The last plain assignment of a name."""
        found = None
        for node in ast.walk(self.search.tree):
            if isinstance(node, ast.Assign):
                targets = [part for target in node.targets for part in ast.walk(target)]
                if any(isinstance(part, ast.Name) and part.id == name for part in targets) and (
                    found is None or node.lineno >= found.lineno
                ):
                    found = node
        return found

    def where(self, line: int) -> str:
        """A line in words."""
        if line > self.search.before:
            return f" on line {line - self.search.before}"
        return " in an earlier input"

    def has(self, *words: str) -> bool:
        return any(word in self.source.text for word in words)


def reason(text: str, tensor: Tensor, names: Mapping[str, object]) -> str:
    """Why `text`, which is that tensor, has no gradient."""
    ag = tensor.ag
    program = Program(names)
    if ag is not None and ag.requires_grad and ag.node is not None:
        return _computed(text, ag.node, program)
    if not tensor.requires_grad:
        return _unrecorded(text, tensor, program)
    if ag is not None and ag.times:
        times = "once" if ag.times == 1 else f"{ag.times} times"
        return f"backward() reached it {times}, then it was put back to None, as zero_grad() does"
    others = [
        name
        for name, other in named_tensors(names)
        if other is not tensor and other.ag is not None and other.ag.times
    ]
    if not others:
        if program.has("zero_grad", ".grad = None"):
            return "it was put back to None, and no backward() has run since"
        if program.has("autograd.grad("):
            return (
                "no backward() has run: autograd.grad() gives its gradients back and leaves .grad "
                "as it is"
            )
        return "no backward() has run yet"
    cut = _cut_between(text, program)
    return f"no backward() has come here: nothing that one started from was computed from it{cut}"


def _computed(text: str, node: Any, program: Program) -> str:
    """A result rather than a leaf: of an operation, of a cast, of a rebinding."""
    name = node.type_name.rstrip("0123456789").removesuffix("Backward")
    kept = f"{text}.retain_grad() before backward() keeps it"
    made = program.assignment(text)
    if made is None:
        return f"it is no leaf: {name} computed it, and gradients stay only at leaves. {kept}"
    words, where = short(program.source.segment(made)), program.where(made.lineno)
    if any(isinstance(part, ast.Name) and part.id == text for part in ast.walk(made.value)):
        return (
            f"`{words}`{where} made `{text}` the name of a result: the leaf is the tensor that it "
            "named before. Convert first, and call requires_grad_() on what comes out"
        )
    if _makes_leaf(made.value):
        return (
            f"`{words}`{where} computes it from the leaf that requires_grad=True made, which has "
            f"no name: make the values first, then {text}.requires_grad_()"
        )
    return (
        f"it is no leaf: {name} computed it in `{words}`{where}, and gradients stay only at "
        f"leaves. {kept}"
    )


def _makes_leaf(node: ast.expr) -> bool:
    """Whether a leaf is made inside of a larger expression."""
    inner = [n for n in ast.walk(node) if n is not node]
    return any(
        isinstance(n, ast.Call) and any(k.arg == "requires_grad" for k in n.keywords) for n in inner
    )


def _unrecorded(text: str, tensor: Tensor, program: Program) -> str:
    if not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
        return f"{tensor.dtype.name} numbers have no slope: only floating-point tensors do"
    try:
        node = ast.parse(text, mode="eval").body
        cut = program.search.cut(node, (len(program.source.lines) + 1, 0))
    except (SyntaxError, ValueError, RecursionError):
        cut = None
    if cut is not None:
        return f"it requires none: in `{cut.words}`{program.where(cut.line)} {CUTS[cut.kind]}"
    return f"it requires none: make it with requires_grad=True, or call {text}.requires_grad_()"


def _cut_between(text: str, program: Program) -> str:
    """A detach or the like that stands right behind the leaf's name in the text."""
    for node in ast.walk(program.search.tree):
        if isinstance(node, ast.Attribute) and node.attr in CUTS and node.attr != "grad":
            owner = node.value
            if isinstance(owner, ast.Name) and owner.id == text:
                words = f"{text}.{node.attr}"
                return f" (`{words}`{program.where(node.lineno)}: {CUTS[node.attr]})"
    return ""
