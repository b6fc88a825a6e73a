"""Shapes under each other, aligned at the right as broadcasting reads them; text only."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def columns_of(shapes: Sequence[Sequence[int]]) -> list[int]:
    """The width of each dimension's column, the shortest shapes missing those on the left."""
    dims = max(map(len, shapes), default=0)
    return [
        max(len(str(shape[dim - dims])) for shape in shapes if dims - dim <= len(shape))
        for dim in range(dims)
    ]


def sizes_text(shape: Sequence[int], columns: Sequence[int]) -> str:
    """A shape with each size in its column; what is left of it is empty."""
    missing = len(columns) - len(shape)
    sizes = ", ".join(
        f"{size:>{width}}" for size, width in zip(shape, columns[missing:], strict=True)
    )
    whole = sum(columns) + 2 * max(len(columns) - 1, 0) + 2
    return f"[{sizes}]".rjust(whole)


def start_of(column: int, columns: Sequence[int]) -> int:
    """Where a column begins within the text of a shape."""
    return 1 + sum(columns[:column]) + 2 * column
