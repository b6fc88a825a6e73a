"""Copies with the elements in other places: flip, roll, repeat, triangles, diagonals, grids."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine import layout as layouts
from engine.errors import (
    DimError,
    DtypeNotImplementedError,
    TensorIndexError,
    TensorRuntimeError,
    TensorTypeError,
)
from engine.formats import contiguous_format
from engine.kinds import composite, kernel, made
from engine.layout import wrap_dim
from engine.plain_calls import check_tensor, check_tensors
from engine.registry import F, function, ops
from engine.storage import ask
from engine.tensor import Tensor

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.layout import Layout
    from engine.parameter_types import Dim, Dims, Size, SpreadDims


@kernel(vjp=lambda g, dims: g.flip(dims), out=False, example="flip(tensor([1., 2., 3.]), (0,))")
def flip(input: Tensor, dims: SpreadDims) -> Made:
    """The elements in reverse order along ``dims``; a copy."""
    axes = layouts.wrap_dims(dims, input.ndim) if input.ndim else ()
    return made(input.dtype, layouts.preserved(input.layout), lambda xp: xp.flip(input.array, axes))


@composite(out=False, example="fliplr(tensor([[1., 2.]]))")
def fliplr(input: Tensor) -> Tensor:
    """Reversed along the second dimension."""
    if input.ndim < 2:
        raise TensorRuntimeError("Input must be >= 2-d.")
    return input.flip((1,))


@composite(out=False, example="flipud(tensor([1., 2.]))")
def flipud(input: Tensor) -> Tensor:
    """Reversed along the first dimension."""
    if input.ndim < 1:
        raise TensorRuntimeError("Input must be >= 1-d.")
    return input.flip((0,))


def _roll_gradient(g: Tensor, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Tensor:
    return g.roll(tuple(-s for s in shifts), dims)


@kernel(vjp=_roll_gradient, out=False, example="roll(arange(5), 2)")
def roll(input: Tensor, shifts: Dims, dims: Dims | None = ()) -> Made:
    """The elements moved on by ``shifts``, what falls off coming back at the other end.

    Without ``dims`` the flattened elements are moved.
    """
    if not shifts:
        raise TensorRuntimeError("`shifts` required")
    dims = dims or ()
    if not (len(dims) == 0 and len(shifts) == 1) and len(shifts) != len(dims):
        raise TensorRuntimeError(
            f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}"
        )
    if dims and input.ndim == 0:
        raise TensorIndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    axes = tuple(wrap_dim(d, input.ndim) for d in dims) if dims else None
    moves: Any = shifts if dims else shifts[0]
    return made(
        input.dtype, _rolled(input, shifts, axes), lambda xp: xp.roll(input.array, moves, axes)
    )


def _rolled(input: Tensor, shifts: tuple[int, ...], axes: tuple[int, ...] | None) -> Layout:
    """As if the parts before and after the cut had been joined, dimension by dimension."""
    layout = input.layout
    if layout.numel == 0:
        return layouts.preserved(layout)
    for shift, d in zip(shifts, axes or (), strict=False):
        size = layout.shape[d]
        cut = shift % size if size else 0
        if cut == 0:
            layout = layouts.contiguous(layout.shape)
            continue
        parts = [layouts.narrow(layout, d, 0, n)[0] for n in (cut, size - cut)]
        layout = layouts.joined(parts, layout.shape)
    return layout if axes else layouts.contiguous(layout.shape)


@kernel(
    vjp=lambda g, k, dims: F.rot90(g, -k, dims),
    out=False,
    example="rot90(tensor([[1., 2.], [3., 4.]]))",
)
def rot90(input: Tensor, k: int = 1, dims: Dims = (0, 1)) -> Made:
    """Turned by 90 degrees ``k`` times, from the first of ``dims`` towards the second."""
    if len(dims) != 2:
        raise TensorRuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.ndim < 2:
        raise TensorRuntimeError(f"expected total dims >= 2, but got total dims = {input.ndim}")
    if dims[0] == dims[1] or abs(dims[0] - dims[1]) == input.ndim:
        raise TensorRuntimeError(
            f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        )
    axes = tuple(wrap_dim(d, input.ndim) for d in dims)
    layout = layouts.preserved(input.layout)
    if k % 4 == 0:
        layout = layouts.contiguous(input.layout.shape)
    if k % 2:
        layout = layouts.swap(layout, *axes)
    return made(input.dtype, layout, lambda xp: xp.rot90(input.array, k, axes))


def _repeat_gradient(g: Tensor, input_shape: Any, repeats: tuple[int, ...]) -> Tensor:
    lead = len(repeats) - len(input_shape)
    shape: list[int] = []
    for times, size in zip(repeats, (1,) * lead + input_shape, strict=True):
        shape += [times, size]
    if 0 in repeats:
        return g.new_zeros(input_shape)
    summed = g.reshape(tuple(shape)).sum(tuple(range(0, len(shape), 2))) if shape else g
    return summed.reshape(input_shape)


@kernel(vjp=_repeat_gradient, function=False, out=False, example="tensor([1., 2.]).repeat(2, 2)")
def repeat(input: Tensor, repeats: Size) -> Made:
    """Copies side by side, ``repeats`` of them along each dimension."""
    shape = input.layout.shape
    if len(repeats) < len(shape):
        raise TensorRuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions "
            "of tensor"
        )
    full = (1,) * (len(repeats) - len(shape)) + shape
    result = tuple(n * r for n, r in zip(full, repeats, strict=True))
    if any(n < 0 for n in result):
        bad = next(n for n in result if n < 0)
        raise TensorRuntimeError(
            f"Trying to create tensor with negative dimension {bad}: {list(result)}"
        )
    return made(input.dtype, result, lambda xp: xp.tile(input.array, repeats))


@composite(out=False, example="tile(tensor([1., 2.]), (2,))")
def tile(input: Tensor, dims: Size) -> Tensor:
    """As ``repeat``, missing repetitions counting as one."""
    return input.repeat((1,) * (input.ndim - len(dims)) + tuple(dims))


def _counted(repeats: Tensor, output_size: int | None) -> Any:
    if repeats.ndim > 1:
        raise TensorRuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats.dtype not in (dtypes.int64, dtypes.int32):
        raise DtypeNotImplementedError(
            f"\"repeat_interleave_cpu\" not implemented for '{repeats.dtype.title}'"
        )
    times = repeats.array.reshape(-1)
    if times.size and times.min() < 0:
        raise TensorRuntimeError("repeats can not be negative")
    if output_size is not None and output_size != int(times.sum()):
        raise TensorRuntimeError("allocated size does not match required size")
    return times


@kernel(out=False, function=False, method=False, data_dependent=True)
def _interleaved(repeats: Tensor, output_size: int | None = None) -> Made:
    """Each index as often as ``repeats`` says."""
    times = _counted(repeats, output_size)
    return made(
        repeats.dtype,
        (int(times.sum()),),
        lambda xp: xp.repeat(xp.arange(times.size, dtype=times.dtype), times),
    )


@composite(out=False, example="repeat_interleave(tensor([1., 2.]), 2)")
def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each element (or slice of ``dim``) repeated in its place.

    ``repeats`` is one number or one per slice; alone, as only argument, it gives the indices.
    """
    interleaved = ops["_interleaved"].function
    if repeats is None:
        return interleaved(input, output_size)
    if dim is None:
        input, dim = input.flatten(), 0
    d = wrap_dim(dim, input.ndim)
    if input.ndim == 0:
        raise DimError(1, 0)
    if isinstance(repeats, (tuple, list)):
        repeats = F.tensor(repeats)
    size = input.layout.shape[d]
    if isinstance(repeats, Tensor):
        if repeats.ndim == 1 and repeats.layout.numel not in (1, size):
            raise TensorRuntimeError(
                "repeats must have the same size as input along dim, but got repeats.size(0) = "
                f"{repeats.layout.numel} and input.size({d}) = {size}"
            )
        if repeats.layout.numel == 1:
            repeats = repeats.reshape((1,)).expand((size,))
        return input.index_select(d, interleaved(repeats, output_size))
    if repeats < 0:
        raise TensorRuntimeError("Repeats must be non-negative")
    shape = input.layout.shape
    wide = input.unsqueeze(d + 1).expand((*shape[: d + 1], repeats, *shape[d + 1 :]))
    whole = (*shape[:d], size * repeats, *shape[d + 1 :])
    return wide.clone(memory_format=contiguous_format).view(whole)


def _triangle(name: str) -> Any:
    return lambda g, diagonal: getattr(F, name)(g, diagonal)


def _masked(input: Tensor, diagonal: int, name: str) -> Made:
    if input.ndim < 2:
        raise TensorRuntimeError(f"{name}: input tensor must have at least 2 dimensions")
    rows, columns = input.layout.shape[-2:]

    def run(xp: Any) -> Any:
        kept = xp.tri(rows, columns, diagonal if name == "tril" else diagonal - 1, dtype=bool)
        if name == "triu":
            kept = ~kept
        return xp.where(kept, input.array, xp.zeros((), input.array.dtype))

    return made(input.dtype, input.layout.shape, run)


@kernel(
    same_out="Expected out tensor to have dtype {y.c_type}, but got {out.c_type} instead",
    vjp=_triangle("tril"),
    inplace=True,
    example="tril(tensor([[1., 2.], [3., 4.]]))",
)
def tril(input: Tensor, diagonal: int = 0) -> Made:
    """The lower triangle of matrices, zeros elsewhere; ``diagonal`` counts to the upper right."""
    return _masked(input, diagonal, "tril")


@kernel(
    same_out="Expected out tensor to have dtype {y.c_type}, but got {out.c_type} instead",
    vjp=_triangle("triu"),
    inplace=True,
    example="triu(tensor([[1., 2.], [3., 4.]]))",
)
def triu(input: Tensor, diagonal: int = 0) -> Made:
    """The upper triangle of matrices, zeros elsewhere; ``diagonal`` counts to the upper right."""
    return _masked(input, diagonal, "triu")


@kernel(
    vjp=lambda g, offset, dim1, dim2: g.diagonal(offset, dim1, dim2),
    out=False,
    example="diag_embed(tensor([1., 2.]))",
)
def diag_embed(input: Tensor, offset: int = 0, dim1: Dim = -2, dim2: Dim = -1) -> Made:
    """Matrices with the last dimension along their diagonal, zeros elsewhere."""
    n = input.ndim + 1
    a, b = wrap_dim(dim1, n), wrap_dim(dim2, n)
    if a == b:
        raise TensorRuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    side = input.layout.shape[-1] + abs(offset)
    shape = list(input.layout.shape[:-1])
    for d in sorted((a, b)):
        shape.insert(d, side)

    def run(xp: Any) -> Any:
        whole = xp.zeros(tuple(shape), input.array.dtype)
        rows = xp.arange(input.layout.shape[-1])
        turned = xp.moveaxis(whole, (a, b), (-2, -1))
        turned[..., rows + max(-offset, 0), rows + max(offset, 0)] = input.array
        return whole

    return made(input.dtype, tuple(shape), run)


@composite(example="diag(tensor([1., 2.]))")
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """A vector as the diagonal of a matrix, or the diagonal of a matrix; a copy either way."""
    if input.ndim == 1:
        return input.diag_embed(diagonal)
    if input.ndim == 2:
        return F.diagonal_copy(input, diagonal)
    raise TensorRuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")


@composite(out=False, example="diagflat(tensor([1., 2.]))")
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with the flattened elements along its diagonal."""
    return input.reshape((-1,)).diag_embed(offset)


@function("meshgrid")
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Vectors spread over a grid: each varies along its own dimension.

    ``indexing="xy"`` swaps the first two dimensions.
    """
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    if not tensors:
        raise TensorRuntimeError("meshgrid expects a non-empty TensorList")
    for at, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise TensorTypeError(
                f"expected Tensor as element {at} in argument 0, but got {type(t).__name__}"
            )
        if t.dtype is not tensors[0].dtype:
            raise TensorRuntimeError("meshgrid expects all tensors to have the same dtype")
        if t.ndim > 1:
            raise TensorRuntimeError(
                "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: "
                + _as_printed(t)
            )
    if indexing not in (None, "ij", "xy"):
        raise TensorRuntimeError(
            f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}'
        )
    turned = indexing == "xy" and len(tensors) >= 2
    if turned:
        tensors = (tensors[1], tensors[0], *tensors[2:])
    shape = tuple(t.layout.numel for t in tensors)
    n = len(tensors)
    grids = [
        t.view((1,) * at + (-1,) + (1,) * (n - 1 - at)).expand(shape)
        for at, t in enumerate(tensors)
    ]
    if turned:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def _as_printed(t: Tensor) -> str:
    return repr(t)


@function("cartesian_prod")
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of one element from each vector, as rows."""
    if len(tensors) == 1:
        return tensors[0]
    grids = meshgrid(*tensors, indexing="ij")
    return F.stack([g.flatten() for g in grids], 1)


def _ask_for_choices(n: int, r: int) -> None:
    """Ask for the memory of all choices of ``r`` among ``n`` before they are made."""
    count = 1
    for taken in range(max(min(r, n - r), 0)):
        count = count * (n - taken) // (taken + 1)
        if count > 1 << 50:
            break
    ask(count * (16 * r + 64))


@composite(out=False, method=False, example="combinations(tensor([1, 2, 3]))")
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of ``r`` elements of a vector, in order, as rows."""
    if input.ndim != 1:
        raise TensorRuntimeError(f"Expect a 1D vector, but got shape {list(input.layout.shape)}")
    if r < 0:
        raise TensorRuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return input.new_zeros((0,))
    _ask_for_choices(input.layout.numel + (r - 1 if with_replacement else 0), r)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(range(input.layout.numel), r))
    at = F.tensor(rows, dtype=dtypes.int64, device=input.device).reshape((len(rows), r))
    return F.stack([input.index_select(0, at.select(1, c)) for c in range(r)], 1)


@function("broadcast_tensors")
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors expanded to their common shape."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    check_tensors(tensors)
    shape: tuple[int, ...] = ()
    for t in tensors:
        shape = layouts.broadcast_shapes(shape, t.layout.shape)
    return tuple([t.expand(shape) for t in tensors])


def _at_least(n: int, raise_one: Any) -> None:
    def call(*tensors: Any) -> Any:
        if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
            check_tensors(tensors[0])
            return tuple([raise_one(t) for t in tensors[0]])
        if len(tensors) == 1:
            check_tensor(call.__name__, "input", 1, tensors[0])
            return raise_one(tensors[0])
        check_tensors(tensors)
        return tuple([raise_one(t) for t in tensors])

    call.__name__ = f"atleast_{n}d"
    call.__doc__ = f"The tensors with at least {n} dimension{'s' if n > 1 else ''}, views."
    function(call.__name__)(call)


def _to_2d(t: Tensor) -> Tensor:
    if t.ndim == 0:
        return t.reshape((1, 1))
    return t.unsqueeze(0) if t.ndim == 1 else t


def _to_3d(t: Tensor) -> Tensor:
    if t.ndim == 0:
        return t.reshape((1, 1, 1))
    if t.ndim == 1:
        return t.unsqueeze(0).unsqueeze(-1)
    return t.unsqueeze(-1) if t.ndim == 2 else t


_at_least(1, lambda t: t.reshape((1,)) if t.ndim == 0 else t)
_at_least(2, _to_2d)
_at_least(3, _to_3d)


@composite(function=False, out=False, example="ones(2, 3).sum_to_size(1, 3)")
def sum_to_size(input: Tensor, size: Size) -> Tensor:
    """Summed over what broadcasting from ``size`` would have repeated."""
    shape = input.layout.shape
    fits = len(size) <= len(shape) and all(
        n in (1, m) for n, m in zip(size[::-1], shape[::-1], strict=False)
    )
    if not fits:
        raise TensorRuntimeError(
            f"size {{{list(size)}}} is not expandable to size {{{list(shape)}}}."
        )
    if not size:
        return input.sum()
    if shape == tuple(size):
        return input
    dims, lead = layouts.needs_sum(shape, tuple(size))
    y = input.sum(dims, keepdim=True) if dims else input
    return y.view(size) if lead else y
