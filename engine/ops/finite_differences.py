"""Numerical derivatives of samples: torch.gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import TensorRuntimeError
from engine.kinds import composite
from engine.layout import wrap_dims
from engine.registry import F
from engine.tensor import Tensor

if TYPE_CHECKING:
    from engine.parameter_types import Dims


def _check_length(spacing: list[Any], dim: Any, count: int, ndim: int) -> None:
    if len(spacing) == count:
        return
    if dim is None:
        raise TensorRuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length "
            f"equal to 'self.dim() = {ndim}', since dim argument was not given, but got a list of "
            f"length {len(spacing)}"
        )
    raise TensorRuntimeError(
        "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim "
        f"arguments to have the same length, but got a spacing argument of length {len(spacing)} "
        f"and a dim argument of length {count}."
    )


def _uniform(x: Tensor, dim: int, step: Any, edge_order: int) -> Tensor:
    size = x.layout.shape[dim]

    def at(start: int, length: int = 1) -> Tensor:
        return x.narrow(dim, start, length)

    center = (at(2, size - 2) - at(0, size - 2)) / step
    if edge_order == 1:
        first, last = at(1) - at(0), at(size - 1) - at(size - 2)
        return F.cat((first / step, center / 2, last / step), dim)
    first = -1.5 * at(0) + 2 * at(1) - 0.5 * at(2)
    last = 0.5 * at(size - 3) - 2 * at(size - 2) + 1.5 * at(size - 1)
    return F.cat((first / step, center / 2, last / step), dim)


def _spaced(x: Tensor, dim: int, where: Tensor, edge_order: int) -> Tensor:
    size = x.layout.shape[dim]
    shape = [1] * x.layout.ndim
    shape[dim] = size - 1
    steps = (where.narrow(0, 1, size - 1) - where.narrow(0, 0, size - 1)).reshape(shape)

    def at(start: int, length: int = 1) -> Tensor:
        return x.narrow(dim, start, length)

    def step(start: int, length: int = 1) -> Tensor:
        return steps.narrow(dim, start, length)

    left, right = step(0, size - 2), step(1, size - 2)
    inner = (
        at(0, size - 2) * (-right / (left * (left + right)))
        + at(1, size - 2) * ((right - left) / (left * right))
        + at(2, size - 2) * (left / (right * (left + right)))
    )
    if edge_order == 1:
        first = (at(1) - at(0)) / step(0)
        last = (at(size - 1) - at(size - 2)) / step(size - 2)
    else:
        a, b = step(0), step(1)
        first = (
            at(0) * (-(2 * a + b) / (a * (a + b)))
            + at(1) * ((a + b) / (a * b))
            + at(2) * (-a / (b * (a + b)))
        )
        a, b = step(size - 3), step(size - 2)
        last = (
            at(size - 3) * (b / (a * (a + b)))
            + at(size - 2) * (-(a + b) / (a * b))
            + at(size - 1) * ((a + 2 * b) / (b * (a + b)))
        )
    return F.cat((first, inner, last), dim)


@composite(method=False, out=False, example="gradient(tensor([1., 4., 9., 16.]))")
def gradient(
    input: Tensor, *, spacing: Any = None, dim: Dims | None = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """The slope at each sample, by second-order differences; a tuple with one tensor per ``dim``.

    ``spacing`` is the distance of samples, one per dimension, or tensors of their coordinates.
    """
    ndim = input.layout.ndim
    dims = tuple(range(ndim)) if dim is None else wrap_dims(dim, ndim)
    if input.dtype.name == "uint8":
        raise TensorRuntimeError("torch.gradient does not support uint8 input.")
    if isinstance(spacing, (tuple, list)):
        steps = list(spacing)
        _check_length(steps, dim, len(dims), ndim)
    else:
        steps = [1 if spacing is None else spacing] * len(dims)
    if edge_order not in (1, 2):
        raise TensorRuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    for d in dims:
        if input.layout.shape[d] < edge_order + 1:
            raise TensorRuntimeError(
                "torch.gradient expected each dimension size to be at least edge_order+1"
            )
    for step in steps:
        if isinstance(step, Tensor) and step.layout.ndim != 1:
            raise TensorRuntimeError(
                "torch.gradient expected each element of spacing to have one dimension, but got "
                f"an element with {step.layout.ndim} dimensions!"
            )
    return tuple(
        [
            _spaced(input, d, step, edge_order)
            if isinstance(step, Tensor)
            else _uniform(input, d, step, edge_order)
            for d, step in zip(dims, steps, strict=True)
        ]
    )
