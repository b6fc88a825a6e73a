"""Writing chosen elements: adding, copying and reducing into places that index tensors name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import indices
from engine.errors import DtypeError, TensorIndexError, TensorRuntimeError
from engine.kinds import altered, kernel
from engine.layout import wrap_dim

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.parameter_types import Dim, Scalar
    from engine.tensor import Tensor


def check_index_add(input: Tensor, d: int, index: Tensor, source: Tensor, name: str) -> None:
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


@kernel(
    vjp={
        "input": lambda g: g,
        "source": lambda g, dim, index, alpha, source_shape: (
            g.index_select(dim, index).expand(source_shape) * alpha
        ),
    },
    inplace=True,
    example="index_add(zeros(3), 0, tensor([0, 0]), tensor([1., 2.]))",
)
def index_add(input: Tensor, dim: Dim, index: Tensor, source: Tensor, *, alpha: Scalar = 1) -> Made:
    """``input`` with ``alpha`` times the slices of ``source`` added at ``index`` along ``dim``.

    An index that comes twice adds twice.
    """
    d = wrap_dim(dim, input.ndim)
    check_index_add(input, d, index, source, "index_add_()")

    def into(xp: Any, array: Any) -> None:
        at = index.array.reshape(-1)
        indices.check_vector(at, input.layout.shape[d] if input.ndim else 1, input.ndim)
        values = source.array
        if alpha != 1:
            values = values * values.dtype.type(alpha)
        if input.ndim == 0:
            xp.add(array, values.reshape(()), out=array)
        else:
            xp.add.at(array, (slice(None),) * d + (at,), values)

    return altered(input, into)
