"""Rows of a table looked up and reduced bag by bag: embedding_bag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine.errors import (
    DtypeError,
    TensorNotImplementedError,
    TensorRuntimeError,
    TensorValueError,
)
from engine.kinds import composite, kernel, made
from engine.kinds.functional import functional
from engine.kinds.native import Native
from engine.kinds.recomputed import array_of, differentiated
from engine.kinds.underived import NODE, underived, unlisted
from engine.ops.embedding import check_indices, embedding_renorm_
from engine.registry import F, ops
from engine.tensor import Tensor

if TYPE_CHECKING:
    from engine.kinds import Made

_SUM, _MEAN, _MAX = 0, 1, 2
_MODES = {"sum": _SUM, "mean": _MEAN, "max": _MAX}


def _starts(offsets: Tensor, count: int, include_last: bool) -> list[int]:
    """Where the bags begin, and where the last one ends."""
    starts = [int(n) for n in offsets.array.tolist()]
    if include_last:
        return starts
    return [*starts, count]


def _bags(
    weight: Tensor,
    per_sample_weights: Tensor | None,
    indices: Tensor,
    offsets: Tensor,
    by_frequency: bool,
    mode: int,
    include_last: bool,
    padding_idx: int,
) -> Tensor:
    """The bags, made of operations that know their derivatives."""
    starts = _starts(offsets, indices.layout.numel, include_last)
    index = indices.to(dtypes.int64)
    width = weight.layout.shape[1]
    rows = ops["embedding"].function(weight, index, -1, by_frequency)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    numbers = index.array
    parts = []
    for start, end in zip(starts, starts[1:], strict=False):
        kept = [i for i in range(start, end) if numbers[i] != padding_idx]
        if not kept:
            parts.append(rows.new_zeros((width,)))
            continue
        bag = rows[F.tensor(kept)]
        if mode == _MAX:
            parts.append(bag.max(0)[0])
        else:
            parts.append(bag.sum(0) if mode == _SUM else bag.mean(0))
    if not parts:
        return rows.new_zeros((0, width))
    return F.stack(parts)


_to_rows = Native(
    "EmbeddingBagBackwardBackward0",
    lambda g, *inputs: differentiated(_bags, g, inputs[:2], (True, False), *inputs[2:])[0],
    unlisted("_embedding_bag_backward"),
)
_to_scales = Native(
    NODE,
    lambda g, *inputs: differentiated(_bags, g, inputs[:2], (False, True), *inputs[2:])[1],
    underived("_embedding_bag_per_sample_weights_backward"),
)


def _gradients(
    g: Any,
    weight: Tensor,
    per_sample_weights: Tensor | None,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool,
    mode: int,
    include_last_offset: bool,
    padding_idx: int,
    needed: tuple[bool, ...],
) -> list[Any]:
    rest = (indices, offsets, scale_grad_by_freq, mode, include_last_offset, padding_idx)
    return [
        # PyTorch does not look at the rows for this: the gradient is not one by them.
        _to_rows(g, weight.detach(), per_sample_weights, *rest) if needed[0] else None,
        _to_scales(g, weight, per_sample_weights, *rest) if needed[1] else None,
    ]


@kernel(
    name="nn.embedding_bag",
    vjp={"weight,per_sample_weights": _gradients},
    function=False,
    method=False,
    out=False,
)
def _embedding_bag_kernel(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: Tensor | None,
    include_last_offset: bool,
    padding_idx: int,
) -> Made:
    """The rows of each bag, reduced."""
    if not weight.dtype.is_floating_point:
        known = "CPUBoolType" if weight.dtype.is_bool else f"torch.{weight.dtype.title}Tensor"
        raise DtypeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: "
            f"Half, BFloat16, Float, Double; but got {known} instead (while checking arguments for "
            "embedding_bag)"
        )
    check_indices(indices, "embedding_bag")
    check_indices(offsets, "embedding_bag", "offsets")
    bags = offsets.layout.numel - (1 if include_last_offset else 0)
    count = indices.layout.numel

    def run(xp: Any) -> Any:
        starts = offsets.array
        if starts.size and starts[0] != 0:
            raise TensorRuntimeError(
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start "
                f"from position 0. However, got {int(starts[0])}"
            )
        if starts.size and starts[-1] > count:
            raise TensorRuntimeError(
                f"offsets[-1] can not be greater than input's length {count} but got offsets[-1] "
                f"of {int(starts[-1])}"
            )
        _check_numbers(indices, weight.layout.shape[0])
        return array_of(
            _bags,
            weight,
            per_sample_weights,
            indices,
            offsets,
            scale_grad_by_freq,
            mode,
            include_last_offset,
            padding_idx,
        )

    return made(weight.dtype, (bags, weight.layout.shape[1]), run)


def _check_numbers(indices: Tensor, rows: int) -> None:
    for place, number in enumerate(indices.array.tolist()):
        if not 0 <= number < rows:
            raise TensorRuntimeError(
                f"Index {place} of input takes value {number} which is not in the valid range "
                f"[0, {rows})"
            )


@composite(
    method=False,
    out=False,
    example="embedding_bag(tensor([[1., 2.], [3., 4.]]), tensor([0, 1]), tensor([0]))",
)
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """The reduced bags, and how their rows fall into them.

    Bag i holds the indices from ``offsets[i]`` to the next offset; ``mode`` is 0, 1 or 2 for sum,
    mean and max.
    """
    if indices.ndim not in (1, 2):
        raise TensorRuntimeError(
            f"input has to be a 1D or 2D Tensor, but got Tensor of dimension {indices.ndim}"
        )
    if weight.ndim != 2:
        raise TensorRuntimeError(
            f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}"
        )
    rows = weight.layout.shape[0]
    padding = -1 if padding_idx is None else padding_idx + (rows if padding_idx < 0 else 0)
    y = ops["nn.embedding_bag"].function(
        weight,
        indices,
        offsets,
        scale_grad_by_freq,
        mode,
        per_sample_weights,
        include_last_offset,
        padding,
    )
    if y.is_meta:
        count = y.layout.shape[0]
        lengths = (0 if mode == _SUM else indices.layout.numel, count, count)
        parts = [F.empty(n, dtype=dtypes.int64, device=y.device) for n in lengths]
        return (y, *parts)
    starts = _starts(offsets, indices.layout.numel, include_last_offset)
    sizes = [end - start for start, end in zip(starts, starts[1:], strict=False)]
    if mode == _SUM:
        bag, sizes = [], [0] * len(sizes)
    else:
        bag = [i for i, n in enumerate(sizes) for _ in range(n)]
    integer = dtypes.int64
    return (
        y,
        F.tensor(bag, dtype=integer),
        F.tensor(sizes, dtype=integer),
        F.zeros(len(sizes), dtype=integer) if mode != _MAX else F.tensor(sizes, dtype=integer),
    )


def _as_bags(input: Any, offsets: Any, per_sample_weights: Any) -> tuple[Any, Any, Any]:
    """A matrix of indices as a line of bags of one length."""
    if input.dim() == 2:
        if offsets is not None:
            shown = "<class 'torch.Tensor'>" if isinstance(offsets, Tensor) else type(offsets)
            raise TensorValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch "
                f"of fixed length sequences. However, found offsets of type {shown}"
            )
        length = input.size(1)
        starts = [i * length for i in range(input.size(0))]
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
        offsets = F.tensor(starts, dtype=input.dtype, device=input.device)
        return input.reshape(-1), offsets, per_sample_weights
    if input.dim() != 1:
        raise TensorValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}"
        )
    if offsets is None:
        raise TensorValueError("offsets has to be a 1D Tensor but got None")
    if offsets.dim() != 1:
        raise TensorValueError("offsets has to be a 1D Tensor")
    return input, offsets, per_sample_weights


@functional(
    name="embedding_bag",
    example="nn.functional.embedding_bag(tensor([[0, 1]]), tensor([[1., 2.], [3., 4.]]))",
)
def _embedding_bag(
    input: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: Any = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: Any = None,
) -> Any:
    """The sum, mean or maximum of the rows looked up, bag by bag.

    A row of a matrix of indices is a bag; a line of indices needs ``offsets`` where bags begin.
    """
    if weight.dtype is dtypes.int64 and input.is_floating_point():
        weight, input = input, weight
    if weight.dim() != 2:
        raise TensorValueError(
            f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}"
        )
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise TensorValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then "
            f"it must have the same shape as the input ({input.shape})"
        )
    input, offsets, per_sample_weights = _as_bags(input, offsets, per_sample_weights)
    if mode not in _MODES:
        raise TensorValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise TensorValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise TensorValueError("max mode does not support sparse weights")
    if max_norm is not None:
        embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise TensorNotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}'). Please open a feature request on GitHub."
        )
    return ops["embedding_bag"].function(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        _MODES[mode],
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )[0]
