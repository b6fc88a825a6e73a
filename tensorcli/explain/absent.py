"""Why a tensor's .grad is None, in words of the program."""

from __future__ import annotations

import ast

from engine.tensor import Tensor
from tensorcli.explain.names import named_tensors
from tensorcli.explain.severed import CUTS, Search
from tensorcli.language.running import now
from tensorcli.language.source import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Program:
    """The text that is running, with the names that it has bound."""

    def __init__(self, names: Mapping[str, object]) -> None:
        replay = None if now.replay is None else now.replay()
        self.source = Source("" if replay is None else replay.texts[-1])
        self.alone = replay is not None and len(replay.texts) == 1
        self.names = dict(names)

    def assignment(self, name: str, line: int | None = None) -> ast.Assign | None:
        """The last plain assignment of a name (on that line)."""
        try:
            tree = ast.parse(self.source.text)
        except (SyntaxError, ValueError, RecursionError):
            return None
        found = None
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and (line is None or node.lineno == line):
                targets = [part for target in node.targets for part in ast.walk(target)]
                if any(isinstance(part, ast.Name) and part.id == name for part in targets) and (
                    found is None or node.lineno >= found.lineno
                ):
                    found = node
        return found


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
        cleared = "zero_grad" in program.source.text or ".grad = None" in program.source.text
        since = "since it was put back to None" if cleared else "yet"
        return f"no backward() has run {since}"
    cut = _cut_between(text, program)
    return f"no backward() has come here: nothing that one started from was computed from it{cut}"


def _computed(text: str, node: Any, program: Program) -> str:
    """A result rather than a leaf: of an operation, of a cast, of a rebinding."""
    line = node.site if isinstance(node.site, int) and program.alone else None
    where = "" if line is None else f" on line {line}"
    made = None if line is None else program.assignment(text, line)
    if made is not None and any(
        isinstance(part, ast.Name) and part.id == text for part in ast.walk(made.value)
    ):
        words = " ".join(program.source.segment(made).split())
        return (
            f"`{words}`{where} made `{text}` the name of a result: the leaf is the tensor that it "
            "named before. Convert first, and call requires_grad_() on what comes out"
        )
    name = node.type_name.rstrip("0123456789").removesuffix("Backward")
    return (
        f"it is no leaf: {name}{where} computed it, and gradients stay only at leaves. "
        f"{text}.retain_grad() before backward() keeps it"
    )


class _Place:
    """What the search for cuts looks at."""

    def __init__(self, program: Program) -> None:
        self.source = program.source
        self.names = program.names


def _unrecorded(text: str, tensor: Tensor, program: Program) -> str:
    if not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
        return f"{tensor.dtype.name} numbers have no slope: only floating-point tensors do"
    try:
        node = ast.parse(text, mode="eval").body
        search: Any = Search(_Place(program))  # type: ignore[arg-type]  # all that it looks at
        cut = search.cut(node, (len(program.source.lines) + 1, 0))
    except (SyntaxError, ValueError, RecursionError):
        cut = None
    if cut is not None:
        where = f" on line {cut.line}" if program.alone else ""
        return f"it requires none: in `{cut.words}`{where} {CUTS[cut.kind]}"
    return f"it requires none: make it with requires_grad=True, or call {text}.requires_grad_()"


def _cut_between(text: str, program: Program) -> str:
    """A detach or the like that stands right behind the leaf's name in the text."""
    try:
        tree = ast.parse(program.source.text)
    except (SyntaxError, ValueError, RecursionError):
        return ""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in CUTS and node.attr != "float()":
            owner = node.value
            if isinstance(owner, ast.Name) and owner.id == text:
                words = f"{text}.{node.attr}"
                return f" (`{words}` on line {node.lineno}: {CUTS[node.attr]})"
    return ""
