"""broadcast(a, b…): how shapes are matched, and in which dimension they do not."""

from __future__ import annotations

from engine.errors import BroadcastError
from engine.layout import broadcast_shapes
from tensorcli.results import BroadcastResult, ShapeRow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def explain(shapes: Sequence[tuple[str, tuple[int, ...]]], line: int | None) -> BroadcastResult:
    """The shapes, each with its expression, and what they broadcast to."""
    rows = tuple(ShapeRow(text, shape) for text, shape in shapes)
    width = max(len(shape) for _, shape in shapes)
    result: tuple[int, ...] = ()
    for _, shape in shapes:
        try:
            result = broadcast_shapes(result, shape)
        except BroadcastError as error:
            # The dimension counts in what has been joined so far, which may be shorter.
            so_far = max(len(result), len(shape))
            return BroadcastResult(rows, None, error.dim + width - so_far, line)
    return BroadcastResult(rows, result, None, line)
