"""Batch and group normalisation together with the statistics that they used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine.kinds import composite
from engine.registry import F

if TYPE_CHECKING:
    from engine.tensor import Tensor


def _wide(t: Tensor) -> Tensor:
    x = t.detach()
    return x.to(dtypes.float32) if x.dtype.low else x


@composite(
    method=False,
    out=False,
    example="native_batch_norm(tensor([[1.], [3.]]), None, None, None, None, True, 0.1, 1e-5)",
)
def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    """batch_norm with the means and inverse deviations of the batch, empty if not training."""
    y = F.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)
    x = _wide(input)
    if not training:
        return y, input.new_empty((0,)), input.new_empty((0,))
    dims = (0, *range(2, input.layout.ndim))
    mean, inverse = x.mean(dims), (x.var(dims, correction=0) + eps).rsqrt()
    given = [t.dtype for t in (weight, bias, running_mean, running_var) if t is not None]
    kept = given[0] if given else input.dtype
    return y, mean.to(kept), inverse.to(kept)


@composite(
    method=False,
    out=False,
    example="native_group_norm(arange(8.).view(1, 4, 2), None, None, 1, 4, 2, 2, 1e-5)",
)
def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> Any:
    """group_norm with the means and inverse deviations of the groups."""
    y = F.group_norm(input, group, weight, bias, eps, True)
    x = input.to(dtypes.float32) if input.dtype.low else input
    grouped = x.reshape((N, group, C // group * HxW))
    mean, inverse = grouped.mean(2), (grouped.var(2, correction=0) + eps).rsqrt()
    kept = input.dtype if weight is None else weight.dtype
    return y, mean.to(kept), inverse.to(kept)
