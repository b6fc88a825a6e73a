"""graph(y): the operations that were recorded for a tensor, and the leaves at their ends."""

from __future__ import annotations

from engine.tensor import Tensor
from tensorcli.explain.names import name_of
from tensorcli.results import GraphResult, GraphRow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MOST_ROWS = 200
"""More is no picture any longer."""


def explain(tensor: Tensor, names: Mapping[str, object], line: int | None) -> GraphResult:
    """The graph as rows, in the order in which it is drawn: an operation, then its inputs.

    Raises TypeError for a tensor without a history.
    """
    root: Any = tensor.grad_fn if tensor.grad_fn is not None else tensor
    if root is tensor and not tensor.requires_grad:
        raise TypeError("graph() draws what was recorded, and nothing was: no gradient is required")
    rows: list[GraphRow] = []
    seen: set[int] = set()
    # A stack rather than recursion: graphs are as deep as programs are long.
    todo: list[tuple[int, Any]] = [(0, root)]
    while todo and len(rows) < MOST_ROWS:
        depth, node = todo.pop()
        if isinstance(node, Tensor):
            name = name_of(node, names)
            rows.append(GraphRow(depth, "leaf", node.layout.shape, name, None, False))
            continue
        repeated = id(node) in seen
        seen.add(id(node))
        layout = getattr(node, "layout", None)
        shape = None if layout is None else layout.shape
        site = node.site if isinstance(node.site, int) else None
        rows.append(GraphRow(depth, node.type_name, shape, None, site, repeated))
        if not repeated:
            inputs = [target for target in node.next if target is not None]
            todo += [(depth + 1, target) for target in reversed(inputs)]
    return GraphResult(tuple(rows), bool(todo), line)
