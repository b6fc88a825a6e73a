"""Which two dimensions of a layout do not merge into one, as a view of another shape would need.

Integer arithmetic only; knows no tensors.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Gap:
    """Two neighbouring dimensions whose elements no single stride reaches."""

    __slots__ = ("inner", "outer", "size", "stride", "wanted")

    def __init__(self, outer: int, inner: int, stride: int, size: int, inner_stride: int) -> None:
        self.outer = outer
        self.inner = inner
        self.stride = stride
        self.size = size
        self.wanted = size * inner_stride

    @property
    def text(self) -> str:
        """The arithmetic, such as "4 * 3 = 12 is needed, it is 1"."""
        step = self.wanted // self.size if self.size else 0
        return (
            f"dims {self.outer} and {self.inner} cannot be merged: a step of dim {self.outer} "
            f"must be as long as dim {self.inner}, {self.size} * {step} = {self.wanted}, "
            f"and it is {self.stride}"
        )


def gaps(shape: Sequence[int], strides: Sequence[int]) -> list[Gap]:
    """All neighbours that do not merge, from the left; dimensions of size 1 are no matter."""
    dims = [dim for dim, size in enumerate(shape) if size != 1]
    return [
        Gap(outer, inner, strides[outer], shape[inner], strides[inner])
        for outer, inner in zip(dims, dims[1:], strict=False)
        if strides[outer] != shape[inner] * strides[inner]
    ]


def blocking(shape: Sequence[int], strides: Sequence[int], wanted: Sequence[int]) -> Gap | None:
    """The first gap that a shape of the same number of elements would have to merge across.

    A gap may stay where the new shape has a border at the same place too.
    """
    if 0 in shape:
        return None
    borders = set()
    product = 1
    for size in wanted:
        product *= size
        borders.add(product)
    reached = 1
    ends: dict[int, int] = {}
    for dim, size in enumerate(shape):
        reached *= size
        ends[dim] = reached
    return next((gap for gap in gaps(shape, strides) if ends[gap.outer] not in borders), None)


def without_minus_one(wanted: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """A shape with the size that was left open worked out."""
    numel = 1
    for size in shape:
        numel *= size
    known = 1
    for size in wanted:
        known *= size if size != -1 else 1
    return tuple(numel // known if size == -1 and known else size for size in wanted)
