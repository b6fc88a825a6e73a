"""Linear and bilinear maps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import TensorRuntimeError
from engine.kinds import composite

if TYPE_CHECKING:
    from engine.tensor import Tensor


def _folds(input: Tensor) -> bool:
    """Whether PyTorch makes one matrix of the leading dimensions for addmm."""
    return input.layout.contiguous and input.layout.ndim > 0


@composite(
    name="nn.functional.linear",
    method=False,
    example="nn.functional.linear(tensor([1., 2.]), tensor([[3., 4.]]), tensor([0.5]))",
)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.T + bias``; the last dimension of the input has ``weight``'s columns."""
    if input.layout.ndim == 0 or weight.layout.ndim == 0:
        raise TensorRuntimeError(
            "both arguments to linear need to be at least 1D, but they are "
            f"{input.layout.ndim}D and {weight.layout.ndim}D"
        )
    turned = weight.t()
    if bias is None:
        return input.matmul(turned)
    if weight.layout.ndim == 1:
        raise TensorRuntimeError("mat2 must be a matrix, got 1-D tensor")
    shape = input.layout.shape
    if len(shape) == 2:
        return bias.addmm(input, turned)
    if _folds(input) and bias.layout.ndim == 1:
        count = input.layout.numel // shape[-1] if shape[-1] else 0
        rows = bias.addmm(input.view((count, shape[-1])), turned)
        return rows.view((*shape[:-1], rows.layout.shape[1]))
    return input.matmul(turned).add_(bias)
