"""Copies with one view of them replaced: select_scatter and the like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import device as devices
from engine import layout as layouts
from engine.errors import TensorRuntimeError
from engine.kinds import kernel, made
from engine.layout import wrap_dim
from engine.registry import F, ops
from engine.storage import allocate
from engine.tensor import kind_of, wrap

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.kinds import Made
    from engine.parameter_types import Dim, Shape
    from engine.tensor import Tensor


def _shape_only(x: Tensor) -> Tensor:
    """A tensor of that geometry without data."""
    layout = layouts.contiguous(x.layout.shape) if x.layout.overlaps else x.layout
    return wrap(None, kind_of(x.dtype, devices.meta), layout)


def _replaced(input: Tensor, src: Tensor, view: Callable[[Tensor], Tensor]) -> Made:
    """``input`` with what ``view`` shows of it replaced by ``src``."""
    part = view(_shape_only(input))
    if part.layout.shape != src.layout.shape:
        raise TensorRuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(src.layout.shape)}, slice size = {list(part.layout.shape)}"
        )

    layout = input.layout
    if layout.overlaps:
        layout = layouts.contiguous(layout.shape)

    def run(xp: Any) -> Any:
        array = allocate(input.kind, layout)
        array[...] = input.array
        view(wrap(array, input.kind, layout)).copy_(src.detach())
        return array

    return made(input.dtype, layout, run)


def _sliced(t: Tensor, dim: int, start: int | None, end: int | None, step: int) -> Tensor:
    index = (slice(None),) * wrap_dim(dim, t.ndim) + (slice(start, end, step),)
    return t[index]


@kernel(
    vjp={
        "input": lambda g, src_shape, dim, index: g.select_scatter(
            g.new_zeros(src_shape), dim, index
        ),
        "src": lambda g, dim, index: g.select(dim, index),
    },
    out=False,
    example="select_scatter(zeros(2, 2), tensor([1., 2.]), 0, 1)",
)
def select_scatter(input: Tensor, src: Tensor, dim: Dim, index: int) -> Made:
    """A copy with one index of a dimension replaced by ``src``."""
    return _replaced(input, src, lambda t: t.select(dim, index))


@kernel(
    vjp={
        "input": lambda g, src_shape, dim, start, end, step: g.slice_scatter(
            g.new_zeros(src_shape), dim, start, end, step
        ),
        "src": lambda g, dim, start, end, step: _sliced(g, dim, start, end, step),
    },
    example="slice_scatter(zeros(3), tensor([1., 2.]), 0, 1)",
)
def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: Dim = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Made:
    """A copy with a slice of a dimension replaced by ``src``."""
    return _replaced(input, src, lambda t: _sliced(t, dim, start, end, step))


@kernel(
    vjp={
        "input": lambda g, src_shape, offset, dim1, dim2: g.diagonal_scatter(
            g.new_zeros(src_shape), offset, dim1, dim2
        ),
        "src": lambda g, offset, dim1, dim2: g.diagonal(offset, dim1, dim2),
    },
    out=False,
    example="diagonal_scatter(zeros(2, 2), tensor([1., 2.]))",
)
def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: Dim = 0, dim2: Dim = 1
) -> Made:
    """A copy with a diagonal replaced by ``src``."""
    return _replaced(input, src, lambda t: t.diagonal(offset, dim1, dim2))


@kernel(
    vjp={
        "input": lambda g, src_shape, size, stride, storage_offset: F.as_strided_scatter(
            g.contiguous(), g.new_zeros(src_shape), size, stride, storage_offset
        ),
        "src": lambda g, size, stride, storage_offset: g.contiguous().as_strided(
            size, stride, storage_offset
        ),
    },
    out=False,
    example="as_strided_scatter(zeros(3), tensor([1., 2.]), (2,), (1,))",
)
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Shape, stride: Shape, storage_offset: int | None = None
) -> Made:
    """A copy with what a geometry shows replaced by ``src``."""
    if input.requires_grad and not input.layout.contiguous:
        raise TensorRuntimeError(
            "as_strided_scatter is currently only supported for contiguous inputs"
        )
    place = None if storage_offset is None else storage_offset - input.offset
    return _replaced(input, src, lambda t: ops["as_strided"].function(t, size, stride, place))
