"""Searching in sorted sequences, and counting what falls between their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine import dtypes
from engine.errors import TensorRuntimeError
from engine.kinds import kernel, made
from engine.kinds.kernel import working
from engine.kinds.reduction import check_takes
from engine.kinds.results import cast
from engine.modes import state
from engine.tensor import Tensor, kind_of

if TYPE_CHECKING:
    from engine.dtypes import DType
    from engine.kinds import Made
    from engine.parameter_types import Operand


def _search(xp: Any, rows: Any, values: Any, right: bool) -> Any:
    """Insertion places of ``values`` (rows, m) in ``rows`` (rows, n), by PyTorch's bisection:
    a nan goes behind everything, and what is not sorted is searched all the same."""
    low = xp.zeros(values.shape, "int64")
    high = xp.full(values.shape, rows.shape[1], "int64")
    for _ in range(int(rows.shape[1]).bit_length()):
        middle = (low + high) >> 1
        there = xp.take_along_axis(rows, xp.minimum(middle, rows.shape[1] - 1), axis=1)
        up = ~(there > values) if right else ~(there >= values)
        up &= low < high
        low, high = xp.where(up, middle + 1, low), xp.where(up | (low >= high), high, middle)
    return low


def _common(boundaries: Tensor, values: Any) -> DType:
    if not isinstance(values, Tensor):
        number = dtypes.int64 if values.__class__ in (int, bool) else state.default_dtype
        return dtypes.result_type([boundaries.dtype], [], [number])
    return dtypes.promote(boundaries.dtype, values.dtype)


def _as_array(value: Any, dtype: DType) -> Any:
    kind = kind_of(dtypes.compute_dtype(dtype))
    if not isinstance(value, Tensor):
        return np.asarray(value, kind.np)
    array = working(value)
    return array if array.dtype == kind.np else cast(array, kind)


def _places(
    boundaries: Tensor, values: Any, out_int32: bool, right: bool, sorter: Tensor | None
) -> Made:
    common = _common(boundaries, values)
    shape = values.layout.shape if isinstance(values, Tensor) else ()
    if 0 not in shape:
        check_takes("if", "searchsorted_out_cpu", common)

    def run(xp: Any) -> Any:
        sequence, wanted = _as_array(boundaries, common), _as_array(values, common)
        if sorter is not None:
            sequence = xp.take_along_axis(sequence, sorter.array, axis=-1)
        n = sequence.shape[-1]
        if n == 0 or wanted.size == 0:
            return xp.zeros(shape, "int64")
        if sequence.ndim == 1:
            return _search(xp, sequence.reshape(1, -1), wanted.reshape(1, -1), right)
        return _search(xp, sequence.reshape(-1, n), wanted.reshape(-1, wanted.shape[-1]), right)

    return made(dtypes.int32 if out_int32 else dtypes.int64, shape, run)


@kernel(example="searchsorted(tensor([1, 3, 5]), tensor([2, 3]))", method=False)
def searchsorted(
    sorted_sequence: Tensor,
    input: Operand,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Made:
    """Where values would go in sorted rows to keep them sorted: before equals, or behind them."""
    if side is not None and side not in ("left", "right"):
        raise TensorRuntimeError(
            f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}"
        )
    if side == "left" and right:
        raise TensorRuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left "
            "while right was True"
        )
    _check_search(sorted_sequence, input, sorter)
    return _places(sorted_sequence, input, out_int32, right or side == "right", sorter)


def _check_search(boundaries: Tensor, values: Any, sorter: Tensor | None) -> None:
    shape = boundaries.layout.shape
    if boundaries.ndim == 0:
        raise TensorRuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 "
            "dimension"
        )
    tensor = isinstance(values, Tensor)
    if boundaries.ndim > 1 and (not tensor or values.ndim == 0):
        numel = values.layout.numel if tensor else 1
        raise TensorRuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor "
            f"dimension is 1, but we got boundaries tensor dim({boundaries.ndim}) and input "
            f"value's dim(0) numel({numel})"
        )
    if boundaries.ndim > 1 and shape[:-1] != values.layout.shape[:-1]:
        raise TensorRuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
            "dimensions of boundaries tensor and input value tensor must match, but we got "
            f"boundaries tensor {list(shape)} and input value tensor {list(values.layout.shape)}"
        )
    if sorter is None:
        return
    if sorter.layout.shape != shape:
        raise TensorRuntimeError(
            "torch.searchsorted(): boundary and sorter must have the same size, but got boundary "
            f"tensor {list(shape)}and got sorter tensor {list(sorter.layout.shape)}"
        )
    if sorter.dtype is not dtypes.int64:
        raise TensorRuntimeError(
            "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype "
            f"{sorter.dtype.title}"
        )
    at = sorter.array
    if at is not None and at.size and (at.min() < 0 or at.max() >= shape[-1]):
        raise TensorRuntimeError("torch.searchsorted(): sorter index out of range")


@kernel(example="bucketize(tensor([2, 3]), tensor([1, 3, 5]))", method=False)
def bucketize(
    input: Operand, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Made:
    """The bucket of each value between sorted boundaries; ``right`` puts equals behind."""
    if boundaries.ndim != 1:
        raise TensorRuntimeError(
            f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})"
        )
    return _places(boundaries, input, out_int32, right, None)
