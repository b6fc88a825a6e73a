"""What index tensors may be: dtypes and bounds, refused in PyTorch's words; knows no op."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine.errors import TensorIndexError, TensorRuntimeError

if TYPE_CHECKING:
    from engine.tensor import Tensor

WHOLE = (dtypes.int64, dtypes.int32)


def check_vector(at: Any, size: int, ndim: int) -> None:
    """Refuse values outside 0 to size-1, as the ops that take a vector of indices do."""
    if at.size == 0 or (at.min() >= 0 and at.max() < size):
        return
    if ndim <= 1:
        raise TensorIndexError("index out of range in self")
    bad = at[(at < 0) | (at >= size)].reshape(-1)[0]
    raise TensorRuntimeError(f"index {bad} is out of bounds for dimension 0 with size {size}")


def grid(xp: Any, at: Any, d: int, size: int) -> tuple[Any, ...]:
    """The numpy index that reads ``at`` along dimension ``d`` and every place along the others."""
    if at.size and (at.min() < 0 or at.max() >= size):
        bad = at[(at < 0) | (at >= size)].reshape(-1)[0]
        raise TensorRuntimeError(f"index {bad} is out of bounds for dimension {d} with size {size}")
    keys = list(xp.ogrid[tuple([slice(n) for n in at.shape])])
    keys[d] = at
    return tuple(keys)


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
