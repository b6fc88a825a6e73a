"""Reductions over runs of elements that lengths or offsets tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import TensorRuntimeError
from engine.kinds import kernel, made
from engine.kinds.native import Native
from engine.kinds.recomputed import array_of, differentiated
from engine.kinds.reduction import check_takes
from engine.kinds.underived import NODE, underived
from engine.registry import F, function, ops

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.parameter_types import Dim, Scalar
    from engine.tensor import Tensor

_EMPTY = {"sum": 0.0, "mean": float("nan"), "prod": 1.0, "max": -float("inf"), "min": float("inf")}


def _reduced(part: Tensor, reduce: str, initial: Any) -> Tensor:
    """One run along dimension 0, beginning with ``initial``."""
    count = part.layout.shape[0]
    if not count:
        value = _EMPTY[reduce] if initial is None else initial
        return part.new_full(part.layout.shape[1:], value)
    if reduce in ("max", "min"):
        y = part.amax(0) if reduce == "max" else part.amin(0)
        if initial is None:
            return y
        return y.clamp_min(initial) if reduce == "max" else y.clamp_max(initial)
    if reduce == "prod":
        y = part.prod(0)
        return y if initial is None else y * initial
    y = part.sum(0)
    if initial is not None:
        y = y + initial
    return y / count if reduce == "mean" else y


def _runs(data: Tensor, bounds: Any, axis: int, reduce: str, initial: Any) -> Tensor:
    shape = data.layout.shape
    rows = data.reshape((-1, *shape[axis:]))
    found = [
        F.stack(
            [_reduced(rows[at][a:b], reduce, initial) for a, b in zip(row, row[1:], strict=False)]
        )
        for at, row in enumerate(bounds)
    ]
    return F.stack(found).reshape((*shape[:axis], len(bounds[0]) - 1, *shape[axis + 1 :]))


def _slope(
    g: Tensor, data: Tensor, offsets: Tensor, axis: int, reduce: str, initial: Any
) -> Tensor | None:
    if not g.layout.numel:
        return F.zeros_like(data)
    return differentiated(_runs, g, (data,), (True,), _rows(offsets), axis, reduce, initial)[0]


@kernel(
    name="_segment_reduce",
    vjp=Native(NODE, _slope, underived("_segment_reduce_backward")),
    function=False,
    method=False,
    out=False,
    node="SegmentReduceBackward0",
    example="segment_reduce(tensor([1., 2., 3.]), 'sum', lengths=tensor([1, 2]), unsafe=True)",
)
def runs_reduced(
    data: Tensor, offsets: Tensor, axis: int, reduce: str, initial: Scalar | None
) -> Made:
    """The reductions between neighbouring offsets along the last dimension of those."""
    check_takes("f", "_segment_reduce_cpu", data.dtype)
    shape = data.layout.shape
    count = offsets.layout.shape[-1] - 1
    whole = (*shape[:axis], count, *shape[axis + 1 :])

    def run(xp: Any) -> Any:
        if not count or 0 in whole:
            return xp.zeros(whole, data.kind.np)
        return array_of(_runs, data, _rows(offsets), axis, reduce, initial)

    return made(data.dtype, whole, run)


def _rows(offsets: Tensor) -> Any:
    return offsets.reshape((-1, offsets.layout.shape[-1])).tolist()


def _offsets(data: Tensor, lengths: Tensor, axis: int, unsafe: bool) -> Tensor:
    ends = lengths.cumsum(-1)
    if not unsafe and lengths.layout.numel and lengths.array is not None:
        if bool((lengths < 0).any()):
            raise TensorRuntimeError("lengths contains negative value!")
        if bool((ends[..., -1] != data.layout.shape[axis]).any()):
            raise TensorRuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to "
                "data.size(lengths.dim()-1) when !unsafe."
            )
    return F.cat([ends.new_zeros((*ends.layout.shape[:-1], 1)), ends], -1)


@function("segment_reduce")
def segment_reduce(
    data: Any,
    reduce: Any,
    *,
    lengths: Any = None,
    indices: Any = None,
    offsets: Any = None,
    axis: Dim = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Any:
    """The sum, mean, max, min or prod of runs along ``axis``, told by lengths or by offsets.

    An empty run gives ``initial``, or else the identity (NaN for the mean).
    """
    spelled = {"amax": "max", "amin": "min"}.get(reduce, reduce)
    if spelled not in _EMPTY:
        raise TensorRuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    told, name = (lengths, "lengths") if lengths is not None else (offsets, "offsets")
    if told is None:
        raise TensorRuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if axis != told.ndim - 1:
        raise TensorRuntimeError(
            f"segment_reduce(): Expected axis to be the last dimension of {name} but got {axis}."
        )
    if lengths is not None:
        told = _offsets(data, lengths, axis, unsafe)
    return ops["_segment_reduce"].function(data, told, axis, spelled, initial)
