"""What index tensors may be: dtypes and bounds, refused in PyTorch's words; knows no op."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine.errors import TensorIndexError, TensorRuntimeError

if TYPE_CHECKING:
    from engine.tensor import Tensor

WHOLE = (dtypes.int64, dtypes.int32)


def within(at: Any, size: int) -> bool:
    """Whether all values lie from 0 to size-1; read as unsigned, negative ones are too large."""
    return at.size == 0 or bool(at.view(_UNSIGNED[at.dtype.itemsize]).max() < size)


_UNSIGNED = {4: "uint32", 8: "uint64"}


def check_vector(at: Any, size: int, ndim: int) -> None:
    """Refuse values outside 0 to size-1, as the ops that take a vector of indices do."""
    if within(at, size):
        return
    if ndim <= 1:
        raise TensorIndexError("index out of range in self")
    bad = at[(at < 0) | (at >= size)].reshape(-1)[0]
    raise TensorRuntimeError(f"index {bad} is out of bounds for dimension 0 with size {size}")


def grid(xp: Any, at: Any, d: int, size: int) -> tuple[Any, ...]:
    """The numpy index that reads ``at`` along dimension ``d`` and every place along the others."""
    if not within(at, size):
        bad = at[(at < 0) | (at >= size)].reshape(-1)[0]
        raise TensorRuntimeError(f"index {bad} is out of bounds for dimension {d} with size {size}")
    if at.ndim == 1:
        return (at,)
    keys = _grids.get(at.shape)
    if keys is None:
        keys = tuple(xp.ogrid[tuple([slice(n) for n in at.shape])])
        if at.size < _LARGE and len(_grids) < _LARGE:
            _grids[at.shape] = keys
    return (*keys[:d], at, *keys[d + 1 :])


# Grids of shapes seen; those of large tensors are not worth their memory.
_grids: dict[tuple[int, ...], Any] = {}
_LARGE = 1024


def check_flat(at: Any, numel: int) -> None:
    """Refuse flat positions outside -numel to numel-1."""
    if at.size and (at.min() < -numel or at.max() >= numel):
        bad = at[(at < -numel) | (at >= numel)].reshape(-1)[0]
        raise TensorIndexError(
            f"out of range: tried to access index {bad} on a tensor of {numel} elements."
        )


def check_whole(g: Tensor, shape: tuple[int, ...], node: str) -> Tensor:
    """``g`` itself; PyTorch has no gradient for a source of which the index covers a part only."""
    if g.layout.shape != shape:
        raise TensorRuntimeError(
            f"Function {node} returned an invalid gradient at index 1 - got "
            f"{list(g.layout.shape)} but expected shape compatible with {list(shape)}"
        )
    return g


def accumulate(xp: Any, name: str, array: Any, keys: Any, values: Any, wide: bool) -> None:
    """Apply a ufunc at ``keys``, one value after another; ``wide``: in float32, rounded once."""
    at = getattr(xp, name).at
    if not wide:
        at(array, keys, values)
        return
    whole = array.astype("float32")
    at(whole, keys, values.astype("float32"))
    array[...] = whole.astype(array.dtype)
