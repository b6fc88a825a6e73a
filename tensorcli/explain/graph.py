"""graph(y): the operations that were recorded for a tensor, what they keep, and the leaves."""

from __future__ import annotations

from engine.tape import FREED
from engine.tensor import Tensor
from tensorcli.explain.names import named_tensors
from tensorcli.findings import GraphDocument, GraphNode, GraphResult, Kept

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

MOST_ROWS = 200
"""More is no picture any longer."""

FORMATS = ("dot", "mermaid", "svg", "html")

# How the engine's derivatives call what they keep, and what it is for the user.
ROLES = {"y": "result", "input": "input", "other": "other"}


def explain(tensor: Tensor, names: Mapping[str, object], line: int | None) -> GraphResult:
    """The graph as rows, in the order in which it is drawn: an operation, then its inputs.

    Raises TypeError for a tensor without a history.
    """
    rows, omitted = _rows(tensor, names)
    return GraphResult(line, rows, omitted, _kept_bytes(tensor))


def document(
    tensor: Tensor, names: Mapping[str, object], format: object, line: int | None
) -> GraphDocument:
    """The graph for another program to draw. Raises ValueError for a format that is none."""
    if format not in FORMATS:
        known = ", ".join(map(repr, FORMATS))
        raise ValueError(f"graph() draws {known}, not {format!r}")
    rows, omitted = _rows(tensor, names)
    return GraphDocument(line, str(format), rows, omitted)


def _rows(tensor: Tensor, names: Mapping[str, object]) -> tuple[tuple[GraphNode, ...], bool]:
    root: Any = tensor.grad_fn if tensor.grad_fn is not None else tensor
    if root is tensor and not tensor.requires_grad:
        raise TypeError("graph() draws what was recorded, and nothing was: no gradient is required")
    known = Names(names)
    rows: list[GraphNode] = []
    numbers: dict[int, int] = {id(root): 0}
    shown: set[int] = set()
    # A stack rather than recursion: graphs are as deep as programs are long.
    todo: list[tuple[int, Any]] = [(0, root)]
    while todo and len(rows) < MOST_ROWS:
        depth, node = todo.pop()
        repeated = id(node) in shown
        shown.add(id(node))
        number = numbers[id(node)]
        if isinstance(node, Tensor):
            rows.append(_leaf(depth, number, node, known, repeated))
            continue
        inputs = [target for target in node.next if target is not None]
        for target in inputs:
            numbers.setdefault(id(target), len(numbers))
        rows.append(
            GraphNode(
                depth=depth,
                number=number,
                operation=node.type_name,
                shape=node.layout.shape,
                dtype=node.kind.dtype.name,
                name=known.of_node(node),
                line=line_of(node),
                saved=() if repeated else tuple(_kept(node, known)),
                freed=node.saved is FREED,
                repeated=repeated,
                inputs=tuple(numbers[id(target)] for target in inputs),
            )
        )
        if not repeated:
            todo += [(depth + 1, target) for target in reversed(inputs)]
    return tuple(rows), bool(todo)


def _leaf(depth: int, number: int, leaf: Tensor, known: Names, repeated: bool) -> GraphNode:
    return GraphNode(
        depth=depth,
        number=number,
        operation="leaf",
        shape=leaf.layout.shape,
        dtype=leaf.dtype.name,
        name=known.of(leaf),
        line=None,
        saved=(),
        freed=False,
        repeated=repeated,
        inputs=(),
    )


def line_of(node: Any) -> int | None:
    """The line of the program that recorded a node."""
    return node.site if isinstance(node.site, int) else None


def _kept(node: Any, known: Names) -> Iterator[Kept]:
    """The tensors that a node keeps for its derivative."""
    if node.saved is FREED:
        return
    for role, value in zip(node.gradient.saved_names, node.saved, strict=False):
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Tensor):
                name = known.of_node(node) if role == "y" else known.of(part)
                size = part.layout.numel * part.dtype.itemsize
                word = ROLES.get(role, role)
                yield Kept(word, part.layout.shape, part.dtype.name, size, name)


def _kept_bytes(tensor: Tensor) -> int:
    """The memory that the graph holds on to, shared memory counted once."""
    seen: set[int] = set()
    memories: dict[int, int] = {}
    todo: list[Any] = [tensor.grad_fn]
    while todo:
        node = todo.pop()
        if node is None or isinstance(node, Tensor) or id(node) in seen:
            continue
        seen.add(id(node))
        todo += node.next
        if node.saved is FREED:
            continue
        for value in node.saved:
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, Tensor):
                    memories[id(part.storage.root)] = part.storage.nbytes
    return sum(memories.values())


class Names:
    """Which variable holds a tensor, the value of a node, or the same elements of one memory."""

    def __init__(self, names: Mapping[str, object]) -> None:
        self.tensors: list[Tensor] = []
        self.by_id: dict[int, str] = {}
        self.by_node: dict[int, str] = {}
        self.by_place: dict[tuple[int, int, Any], str] = {}
        for name, tensor in named_tensors(names):
            self.tensors.append(tensor)
            self.by_id.setdefault(id(tensor), name)
            if tensor.ag is not None and tensor.ag.node is not None:
                self.by_node.setdefault(id(tensor.ag.node), name)
            self.by_place.setdefault(_place(tensor), name)

    def of(self, tensor: Tensor) -> str | None:
        return self.by_id.get(id(tensor)) or self.by_place.get(_place(tensor))

    def of_node(self, node: Any) -> str | None:
        return self.by_node.get(id(node))


def _place(tensor: Tensor) -> tuple[int, int, Any]:
    return id(tensor.storage), tensor.offset, tensor.layout
