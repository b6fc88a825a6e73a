"""Reductions: sums, means and their kin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.kinds import reduction
from engine.kinds.reduction import TO_INT64

if TYPE_CHECKING:
    from engine.dtypes import DType
    from engine.tensor import Tensor


def _expand_back(g: Tensor, shape: tuple[int, ...], dim: Any, keepdim: bool) -> Tensor:
    """A gradient of a reduction spread over the dimensions that were reduced."""
    if not shape:
        return g
    if not keepdim and dim is not None and dim != () and g.layout.ndim != len(shape):
        dims = sorted(d % len(shape) for d in dim)
        for d in dims:
            g = g.unsqueeze(d)
    return g.expand(shape)


def _sum(xp: Any, x: Any, axes: Any) -> Any:
    return xp.add.reduce(x, axis=axes)


@reduction(
    kernel=_sum,
    gives=TO_INT64,
    vjp=lambda g, input_shape, dim, keepdim: _expand_back(g, input_shape, dim, keepdim),
    example="sum(tensor([[1., 2.], [3., 4.]]), 0)",
)
def sum(input: Tensor, dim: Dims | None = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The sum over ``dim``, or over everything."""
