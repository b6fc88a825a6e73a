"""One tensor cut into several views: split, chunk, unbind and their relatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import layout as layouts
from engine.errors import TensorIndexError, TensorRuntimeError
from engine.kinds import composite, multi_view
from engine.layout import wrap_dim
from engine.overloads import no_overload, texts_of
from engine.registry import F, ops
from engine.signature import ArgumentError, type_name
from engine.storage import ask
from engine.tensor import Tensor

if TYPE_CHECKING:
    from engine.layout import Layout
    from engine.parameter_types import Dim, Size

_Parts = list[tuple["Layout", int]]


# A tensor, its layout and its place in a tuple, about.
PIECE_BYTES = 500


def _pieces(input: Layout, d: int, lengths: list[int]) -> _Parts:
    parts = []
    start = 0
    for length in lengths:
        parts.append(layouts.narrow(input, d, start, length))
        start += length
    return parts


def _joined(gs: Any, shape: Any, *arguments: Any) -> Tensor:
    return F.cat(gs, arguments[-1])


def _lengths(size: int, each: int) -> list[int]:
    if size == 0:
        return [0]
    count = (size + each - 1) // each
    ask(count * PIECE_BYTES)
    return [each] * (count - 1) + [size - each * (count - 1)]


@multi_view(vjp=_joined, node="SplitBackward0", name="_split_equal", function=False, method=False)
def _split_equal(input: Layout, split_size: int, dim: Dim = 0) -> _Parts:
    """Pieces of ``split_size``, the last one shorter if need be."""
    if input.ndim == 0:
        raise TensorRuntimeError("split expects at least a 1-dimensional tensor")
    if split_size < 0:
        raise TensorRuntimeError(
            f"split expects split_size be non-negative, but got split_size={split_size}"
        )
    d = wrap_dim(dim, input.ndim)
    size = input.shape[d]
    if split_size == 0 and size:
        raise TensorRuntimeError(
            f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}"
        )
    return _pieces(input, d, _lengths(size, split_size) if split_size else [0])


@multi_view(
    vjp=_joined,
    node="SplitWithSizesBackward0",
    example="split_with_sizes(arange(5), [2, 3])",
)
def split_with_sizes(input: Layout, split_sizes: Size, dim: Dim = 0) -> _Parts:
    """Pieces of the given lengths, which must add up to the size of ``dim``."""
    if input.ndim == 0:
        raise TensorRuntimeError("split expects at least a 1-dimensional tensor")
    d = wrap_dim(dim, input.ndim)
    size = input.shape[d]
    if any(n < 0 for n in split_sizes):
        raise TensorRuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={list(split_sizes)}"
        )
    if sum(split_sizes) != size:
        raise TensorRuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size "
            f"at dimension {dim}), but got split_sizes={list(split_sizes)}"
        )
    return _pieces(input, d, list(split_sizes))


@composite(view="always", out=False, example="split(arange(5), 2)")
def split(tensor: Tensor, split_size_or_sections: Any, dim: Dim = 0) -> Any:
    """Pieces of one size, the last one shorter if need be, or of the sizes in a list."""
    sections = split_size_or_sections
    if isinstance(sections, Tensor) and sections.ndim == 0 and sections.dtype.is_integral:
        sections = int(sections.item())
    if sections.__class__ is int:
        return ops["_split_equal"].function(tensor, sections, dim)
    if not isinstance(sections, (tuple, list)):
        raise ArgumentError(
            "split_with_sizes(): argument 'split_sizes' (position 2) must be tuple of ints, not "
            f"{type_name(sections)}"
        )
    return ops["split_with_sizes"].function(tensor, tuple(sections), dim)


@composite(view="always", out=False, example="chunk(arange(5), 2)")
def chunk(input: Tensor, chunks: int, dim: Dim = 0) -> Any:
    """At most ``chunks`` pieces of one size, the last one shorter if need be."""
    if input.ndim == 0:
        raise TensorRuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise TensorRuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    size = input.layout.shape[wrap_dim(dim, input.ndim)]
    if size == 0:
        ask(chunks * PIECE_BYTES)
        return ops["split_with_sizes"].function(input, (0,) * chunks, dim)
    return ops["_split_equal"].function(input, (size + chunks - 1) // chunks, dim)


@multi_view(
    vjp=lambda gs, shape, dim: F.stack(gs, dim),
    node="UnbindBackward0",
    example="unbind(tensor([[1., 2.], [3., 4.]]))",
)
def unbind(input: Layout, dim: Dim = 0) -> _Parts:
    """The slices of a dimension, one by one."""
    if input.ndim == 0:
        raise TensorIndexError("Dimension specified as 0 but tensor has no dimensions")
    d = wrap_dim(dim, input.ndim)
    ask(input.shape[d] * PIECE_BYTES)
    return [layouts.select(input, d, at) for at in range(input.shape[d])]


def _bounds(size: int, sections: Any) -> list[tuple[int, int]]:
    """(start, length) of the pieces that ``tensor_split`` makes."""
    if sections.__class__ is int:
        ask(sections * PIECE_BYTES)
        least, more = divmod(size, sections)
        return [(at * least + min(at, more), least + (at < more)) for at in range(sections)]
    edges = [0, *sections, size]
    pieces = []
    for at in range(len(edges) - 1):
        start, end, _ = slice(edges[at], edges[at + 1]).indices(size)
        if at == len(edges) - 2:
            end = size
        pieces.append((start, max(end - start, 0)))
    return pieces


def _cut(x: Tensor, sections: Any, dim: int) -> tuple[Tensor, ...]:
    d = wrap_dim(dim, x.ndim)
    return tuple(
        [x.narrow(d, start, length) for start, length in _bounds(x.layout.shape[d], sections)]
    )


@composite(view="always", out=False, example="tensor_split(arange(7), 3)")
def tensor_split(
    input: Tensor,
    indices_or_sections: Any = None,
    dim: Dim = 0,
    *,
    indices: Any = None,
    sections: Any = None,
) -> Any:
    """So many nearly equal pieces, the first ones longer, or pieces cut before given indices."""
    cuts = next((v for v in (indices_or_sections, indices, sections) if v is not None), None)
    if cuts is None:
        raise no_overload("tensor_split", (input,), {}, texts_of("tensor_split"))
    if input.ndim == 0:
        raise TensorRuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )
    if isinstance(cuts, Tensor):
        if not cuts.dtype.is_integral:
            raise TensorRuntimeError(
                "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
                f"{cuts.dtype.title}"
            )
        cuts = cuts.tolist()
    if cuts.__class__ is int and cuts <= 0:
        raise TensorRuntimeError(f"number of sections must be larger than 0, got {cuts}")
    if cuts.__class__ is not int and not isinstance(cuts, (tuple, list)):
        raise ArgumentError(
            "tensor_split(): argument 'indices_or_sections' (position 2) must be int, not "
            f"{type_name(cuts)}"
        )
    return _cut(input, cuts, dim)


def _split_along(x: Tensor, cuts: Any, name: str, least: int, dim: int) -> tuple[Tensor, ...]:
    if x.ndim < least:
        raise TensorRuntimeError(
            f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor "
            f"with {x.ndim} dimensions!"
        )
    if isinstance(cuts, Tensor) and cuts.ndim == 0 and cuts.dtype.is_integral:
        cuts = cuts.item()
    if cuts.__class__ is not int and not isinstance(cuts, (tuple, list)):
        texts = ("(Tensor input, int sections)", "(Tensor input, tuple of ints indices)")
        raise no_overload(name, (x, cuts), {}, texts)
    if cuts.__class__ is int:
        size = x.layout.shape[dim]
        if cuts <= 0 or size % cuts:
            raise TensorRuntimeError(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the "
                f"dimension {size} is not divisible by the split_size {cuts}!"
            )
    return _cut(x, cuts, dim)


@composite(view="always", out=False, example="hsplit(arange(4), 2)")
def hsplit(input: Tensor, indices_or_sections: Any) -> Any:
    """Cut along the second dimension, a vector along its only one."""
    return _split_along(input, indices_or_sections, "hsplit", 1, 0 if input.ndim == 1 else 1)


@composite(view="always", out=False, example="vsplit(zeros(4, 2), 2)")
def vsplit(input: Tensor, indices_or_sections: Any) -> Any:
    """Cut along the first dimension of at least two."""
    return _split_along(input, indices_or_sections, "vsplit", 2, 0)


@composite(view="always", out=False, example="dsplit(zeros(2, 2, 4), 2)")
def dsplit(input: Tensor, indices_or_sections: Any) -> Any:
    """Cut along the third dimension of at least three."""
    return _split_along(input, indices_or_sections, "dsplit", 3, 2)
