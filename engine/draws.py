"""The generator in use, and flat draws put where PyTorch's kernels would put them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import layout as layouts
from engine.random import Generator, dropout_mask

if TYPE_CHECKING:
    from engine.dtypes import DType
    from engine.layout import Layout

default = Generator(None)


def chosen(generator: Generator | None) -> Generator:
    """``generator``, or the one of the whole process."""
    return default if generator is None else generator


def arranged(flat: Any, layout: Layout) -> Any:
    """Draws in the order of an element-wise kernel: along memory where the layout is dense, else
    along the dimensions by stride."""
    if layout.contiguous:
        return flat.reshape(layout.shape)
    order = layouts.iteration_order([layout.strides], layout.shape)[::-1]
    array = flat.reshape([layout.shape[d] for d in order])
    back = [0] * len(order)
    for place, dim in enumerate(order):
        back[dim] = place
    return array.transpose(back)


def dropout(layout: Layout, p: float, dtype: DType, generator: Generator | None = None) -> Any:
    """What dropout multiplies a tensor of that layout by: 0, or 1 / (1 - p); for 0 < p < 1."""
    flat = dropout_mask(chosen(generator), layout.numel, p, dtype.name)
    return arranged(flat, layout)
