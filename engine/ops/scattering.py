"""Writing chosen elements: adding, copying and reducing into places that index tensors name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import indices, scalars
from engine import layout as layouts
from engine.errors import TensorIndexError, TensorRuntimeError
from engine.kinds import altered, composite, kernel
from engine.kinds.record import twin
from engine.kinds.targets import check_added
from engine.layout import wrap_dim
from engine.registry import F, method, ops
from engine.tensor import Tensor, number

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.parameter_types import Dim, Scalar


@kernel(
    same_out="Expected out tensor to have dtype {y.c_type}, but got {out.c_type} instead",
    vjp={
        "input": lambda g: g,
        # PyTorch keeps the source, and so notices when it is changed before the backward pass.
        "source": lambda g, dim, index, alpha, source: (
            g.index_select(dim, index).expand(source.layout.shape) * alpha
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
    check_added(input, d, index, source, "index_add_()")
    factor = None if alpha == 1 else scalars.element(alpha, input.dtype)

    def into(xp: Any, array: Any) -> None:
        at = index.array.reshape(-1)
        indices.check_vector(at, input.layout.shape[d] if input.ndim else 1, input.ndim)
        values = source.array
        if factor is not None:
            values = values * factor
        if input.ndim == 0:
            xp.add(array, values.reshape(()), out=array)
        else:
            wide = input.dtype.low and input.ndim > 1 and factor is None
            indices.accumulate(xp, "add", array, (slice(None),) * d + (at,), values, wide)

    return altered(input, into, None, (index, source))


def _check_vector_index(input: Tensor, d: int, index: Tensor, source: Tensor) -> None:
    if index.ndim > 1:
        raise TensorIndexError(
            f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})"
        )
    count = index.layout.numel
    if source.ndim == 0 and count != 1:
        raise TensorIndexError(
            f"index_copy_(): When source is scalar, index should have one element (got {count})"
        )
    if source.ndim and input.ndim and source.ndim != input.ndim:
        raise TensorIndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality "
            f"must match. Source dimensionality ({source.ndim}), destination dimensionality "
            f"({input.ndim})"
        )
    if index.dtype.name != "int64":
        raise TensorRuntimeError(
            f"index_copy_(): Expected a long tensor for index, but got {index.dtype.title}"
        )
    if input.dtype is not source.dtype:
        raise TensorRuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{input.dtype.title} and (source) {source.dtype.title}"
        )
    a, b = input.layout.shape, source.layout.shape
    if a and b and a[:d] + a[d + 1 :] != b[:d] + b[d + 1 :]:
        raise TensorRuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination "
            f"slice shape: {' '.join(map(str, a[:d] + a[d + 1 :]))} at dimension {d} and source "
            f"slice shape: {' '.join(map(str, b[:d] + b[d + 1 :]))} at dimension 0."
        )
    if source.ndim and count != b[d]:
        raise TensorIndexError(
            f"index_copy_(): Number of indices ({count}) should be equal to source.size(dim) "
            f"({b[d]})"
        )


@kernel(
    same_out="Expected out tensor to have dtype {y.c_type}, but got {out.c_type} instead",
    vjp={
        "input": lambda g, dim, index: g.index_fill(dim, index, 0),
        "source": lambda g, dim, index, source: g.index_select(dim, index).reshape(
            source.layout.shape
        ),
    },
    inplace=True,
    example="index_copy(zeros(3), 0, tensor([2, 0]), tensor([1., 2.]))",
)
def index_copy(input: Tensor, dim: Dim, index: Tensor, source: Tensor) -> Made:
    """``input`` with the slices of ``source`` at ``index`` along ``dim``; of two the last stays."""
    d = wrap_dim(dim, input.ndim)
    _check_vector_index(input, d, index, source)

    def into(xp: Any, array: Any) -> None:
        at = index.array.reshape(-1)
        size = input.layout.shape[d] if input.ndim else 1
        if at.size and (at.min() < 0 or at.max() >= size):
            bad = at[(at < 0) | (at >= size)][0]
            raise TensorIndexError(
                f"index_copy_(): index {bad} is out of bounds for dimension {d} with size {size}"
            )
        if input.ndim == 0:
            array[()] = source.array.reshape(-1)[-1]
        else:
            array[(slice(None),) * d + (at,)] = source.array

    return altered(input, into, None, (index, source))


def _index_filled(input: Tensor, dim: int, index: Tensor, value: Any) -> Made:
    d = wrap_dim(dim, input.ndim)
    if index.dtype.name != "int64":
        raise TensorIndexError("index_fill_(): Expected dtype int64 for index.")
    if index.ndim > 1:
        raise TensorRuntimeError("Index has to be a vector/scalar")
    if value.__class__ is complex and not input.dtype.is_complex:
        raise TensorRuntimeError(
            "index_fill_(): Converting complex Scalar to non-complex type is not supported"
        )
    filling = None if value is None else scalars.element(value, input.dtype)

    def into(xp: Any, array: Any) -> None:
        at = index.array.reshape(-1)
        size = input.layout.shape[d] if input.ndim else 1
        if at.size and (at.min() < -size or at.max() >= size):
            bad = at[(at < -size) | (at >= size)][0]
            raise TensorIndexError(
                f"index {bad} is out of bounds for dimension {d} with size {size}"
            )
        if input.ndim == 0:
            array[()] = filling if at.size else array
        else:
            array[(slice(None),) * d + (at,)] = filling

    return altered(input, into, layouts.preserved(input.layout), (index,))


@kernel(
    vjp=lambda g, dim, index: F.index_fill(g, dim, index, 0),
    inplace=True,
    overlapping=True,
    function=False,
    method=False,
    out=False,
    node="IndexFillBackward0",
)
def _index_fill_number(input: Tensor, dim: Dim, index: Tensor, value: Scalar) -> Made:
    """A number in the slices that ``index`` names."""
    return _index_filled(input, dim, index, value)


@kernel(
    vjp={
        "input": lambda g, dim, index: F.index_fill(g, dim, index, 0),
        "value": lambda g, dim, index: g.index_select(dim, index.unique()).sum(),
    },
    inplace=True,
    overlapping=True,
    function=False,
    method=False,
    out=False,
    node="IndexFillBackward1",
    example="index_fill(zeros(3), 0, tensor([0, 2]), tensor(1.))",
)
def _index_fill_tensor(input: Tensor, dim: Dim, index: Tensor, value: Tensor) -> Made:
    """The one element of ``value`` in the slices that ``index`` names."""
    if value.ndim:
        raise TensorRuntimeError(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{value.ndim} dimension(s)."
        )
    return _index_filled(input, dim, index, None if value.array is None else number(value))


@composite(out=False, example="index_fill(zeros(3), 0, tensor([0, 2]), 1)")
def index_fill(input: Tensor, dim: Dim, index: Tensor, value: Any) -> Tensor:
    """``value``, a number or a tensor of one element, in the slices of ``dim`` at ``index``."""
    form = "_index_fill_tensor" if isinstance(value, Tensor) else "_index_fill_number"
    return ops[form].function(input, dim, index, value)


@method("index_fill_")
def index_fill_(x: Tensor, dim: Dim, index: Tensor, value: Any) -> Tensor:
    """``index_fill`` of the tensor itself."""
    form = "_index_fill_tensor" if isinstance(value, Tensor) else "_index_fill_number"
    return twin(ops[form])(x, dim, index, value)


def _put_values(g: Tensor, index: Tensor, source_shape: Any) -> Tensor:
    return g.take(index).reshape(source_shape)


@kernel(
    vjp={
        "input": lambda g, index, accumulate: (
            g if accumulate else g.put(index, g.new_zeros(index.layout.shape))
        ),
        "source": _put_values,
    },
    inplace=True,
    out=False,
    example="put(zeros(2, 2), tensor([0, 3]), tensor([1., 2.]))",
)
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Made:
    """``input`` with the elements of ``source`` at flat positions, or added to what is there."""
    if index.dtype.name != "int64":
        raise TensorRuntimeError(
            f"put_(): Expected a long tensor for index, but got {index.dtype.title}"
        )
    if input.dtype is not source.dtype:
        raise TensorRuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{input.dtype.title} and source.dtype = {source.dtype.title}"
        )
    if index.layout.numel != source.layout.numel:
        raise TensorIndexError(
            "put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {source.layout.numel}, index.numel() = {index.layout.numel}"
        )

    def into(xp: Any, array: Any) -> None:
        at = index.array.reshape(-1)
        indices.check_flat(at, input.layout.numel)
        if not at.size:
            return
        keys = xp.unravel_index(at % input.layout.numel, array.shape) if array.ndim else ()
        values = source.array.reshape(-1)
        if not array.ndim:
            array[()] = array + values.sum() if accumulate else values[-1]
        elif accumulate:
            xp.add.at(array, keys, values)
        else:
            array[keys] = values

    return altered(input, into, layouts.preserved(input.layout), (index, source))
