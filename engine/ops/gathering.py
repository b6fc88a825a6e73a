"""Reading chosen elements: by index tensors along a dimension, by masks, by flat position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import indices
from engine.errors import TensorIndexError, TensorRuntimeError
from engine.kinds import kernel, made
from engine.layout import wrap_dim

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.parameter_types import Dim
    from engine.tensor import Tensor


def _index_select_gradient(g: Tensor, input_shape: Any, dim: int, index: Tensor) -> Tensor:
    return g.new_zeros(input_shape).index_add(dim, index, g)


@kernel(vjp=_index_select_gradient, example="index_select(tensor([1., 2., 3.]), 0, tensor([2, 0]))")
def index_select(input: Tensor, dim: Dim, index: Tensor) -> Made:
    """The slices of ``dim`` whose numbers ``index`` (a vector) lists; negative ones are refused."""
    d = wrap_dim(dim, input.ndim)
    if index.ndim > 1:
        raise TensorIndexError("index_select(): Index is supposed to be a vector")
    count = index.layout.numel
    if input.ndim == 0 and count != 1:
        raise TensorRuntimeError(
            f"index_select(): Index to scalar can have only 1 value, got {count} value(s)"
        )
    if index.dtype not in indices.WHOLE:
        raise TensorRuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if input.ndim == 0:
        shape: tuple[int, ...] = ()
    else:
        shape = (*input.layout.shape[:d], count, *input.layout.shape[d + 1 :])

    def run(xp: Any) -> Any:
        at = index.array.reshape(-1)
        size = input.layout.shape[d] if input.ndim else 1
        if count and (at.min() < 0 or at.max() >= size):
            raise TensorIndexError("index out of range in self")
        return input.array if input.ndim == 0 else xp.take(input.array, at, axis=d)

    return made(input.dtype, shape, run)
