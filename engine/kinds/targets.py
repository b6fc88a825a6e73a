"""Whether index and source fit a destination, for the families of index_add and scatter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import indices
from engine.errors import DtypeError, TensorIndexError, TensorRuntimeError
from engine.layout import wrap_dim

if TYPE_CHECKING:
    from engine.tensor import Tensor


def check_added(input: Tensor, d: int, index: Tensor, source: Tensor, name: str) -> None:
    """Refuse an index or source that does not fit, in PyTorch's words."""
    count = index.layout.numel
    if index.ndim > 1:
        raise TensorIndexError(
            f"{name}: Index is supposed to be a vector, but got dim: {index.ndim} with type: "
            f"{index.dtype.title} and size: {list(index.layout.shape)}"
        )
    if index.dtype not in indices.WHOLE:
        raise TensorRuntimeError(
            f"{name}: Expected dtype int32/int64 for index but got: {index.dtype.title}"
        )
    if input.dtype is not source.dtype:
        raise DtypeError(
            f"{name}: self ({input.dtype.title}) and source ({source.dtype.title}) must have the "
            "same scalar type"
        )
    a, b = input.layout.shape, source.layout.shape
    along = b[d] if d < len(b) else 1
    if (a[:d] + a[d + 1 :] if a else a) != (b[:d] + b[d + 1 :] if a else b):
        if count != along:
            raise _count_mismatch(name, count, along, d)
        raise TensorRuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified "
            f"dimension. Got self.shape = {list(a)} source.shape = {list(b)}"
        )
    if count != along:
        raise _count_mismatch(name, count, along, d)


def _count_mismatch(name: str, count: int, along: int, d: int) -> TensorRuntimeError:
    return TensorRuntimeError(
        f"{name}: Number of indices ({count}) should be equal to source.size(dim): ({along}), "
        f"for dim: {d}"
    )


def check_scattered(
    input: Tensor, dim: int, index: Tensor, source: Tensor | None, name: str
) -> int:
    """The dimension counted from the front; refuses shapes and dtypes that do not fit."""
    d = wrap_dim(dim, input.ndim)
    if index.layout.numel and index.dtype not in indices.WHOLE:
        raise TensorRuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    if source is not None and source.dtype is not input.dtype:
        raise DtypeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if not index.layout.numel:
        return d
    if max(index.ndim, 1) != max(input.ndim, 1):
        raise TensorRuntimeError(
            "Index tensor must have the same number of dimensions as self tensor"
        )
    if source is not None and max(index.ndim, 1) != max(source.ndim, 1):
        raise TensorRuntimeError(
            "Index tensor must have the same number of dimensions as src tensor"
        )
    wide = index.layout.shape
    own = input.layout.shape
    too_large = any(n > own[at] for at, n in enumerate(wide) if at != d and input.ndim)
    if source is None:
        if too_large:
            raise TensorRuntimeError(
                f"Expected index {list(wide)} to be no larger than self {list(own)} apart from "
                f"dimension {d}"
            )
    elif too_large or any(n > m for n, m in zip(wide, source.layout.shape, strict=False)):
        raise TensorRuntimeError(
            f"Expected index {list(wide)} to be no larger than self {list(own)} apart from "
            f"dimension {d} and to be no larger size than src {list(source.layout.shape)}"
        )
    return d
