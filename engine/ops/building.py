"""Matrices built from other tensors: block_diag, vander."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine.errors import TensorRuntimeError
from engine.kinds import composite
from engine.kinds.kernel import Made, kernel, made
from engine.kinds.results import cast
from engine.registry import F, function, ops
from engine.signature import ArgumentError, type_name
from engine.tensor import Tensor, kind_of

if TYPE_CHECKING:
    from engine.parameter_types import Tensors


def _blocks(g: Tensor, tensors_shapes: Any) -> list[Tensor]:
    parts = []
    row = column = 0
    for shape in tensors_shapes:
        rows, columns = _as_matrix(shape)
        part = g.narrow(0, row, rows).narrow(1, column, columns)
        for _ in range(2 - len(shape)):
            part = part.select(int(part.ndim == 2 and columns == 1), 0)
        parts.append(part)
        row += rows
        column += columns
    return parts


def _as_matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    if len(shape) == 2:
        return shape[0], shape[1]
    return 1, shape[0] if shape else 1


@kernel(
    vjp={"tensors": lambda g, shapes: _blocks(g, shapes)},
    function=False,
    method=False,
    out=False,
    name="_block_diag",
    node="BlockDiagBackward0",
    example="block_diag(tensor([1.]), ones(2, 2))",
)
def _block_diag(tensors: Tensors, shapes: Any) -> Made:
    found = dtypes.float32
    for at, t in enumerate(tensors):
        found = t.dtype if at == 0 else dtypes.promote(found, t.dtype)
    sizes = [_as_matrix(shape) for shape in shapes]
    whole = (sum(r for r, _ in sizes), sum(c for _, c in sizes))

    def run(xp: Any) -> Any:
        kind = kind_of(found)
        array = xp.zeros(whole, kind.np)
        row = column = 0
        for t, (rows, columns) in zip(tensors, sizes, strict=True):
            block = t.array if t.dtype is found else cast(t.array, kind)
            array[row : row + rows, column : column + columns] = block.reshape(rows, columns)
            row += rows
            column += columns
        return array

    return made(found, whole, run)


@function("block_diag")
def block_diag(*tensors: Any) -> Tensor:
    """A matrix with the given matrices (vectors are rows, numbers 1 x 1) along its diagonal."""
    for at, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise ArgumentError(
                f"expected Tensor as element {at} in argument 0, but got {type_name(t)}", "tensors"
            )
        if t.layout.ndim > 2:
            raise TensorRuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input "
                f"{at} has {t.layout.ndim} dimensions"
            )
    if not tensors:
        empty: Tensor = F.zeros((1, 0))
        return empty
    found: Tensor = ops["_block_diag"].function(tensors, tuple(t.layout.shape for t in tensors))
    return found


@composite(method=False, out=False, example="vander(tensor([1, 2, 3]))")
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """A matrix of the powers of a vector's elements; the highest first unless ``increasing``."""
    if x.layout.ndim != 1:
        raise TensorRuntimeError("x must be a one-dimensional tensor.")
    columns = x.layout.shape[0] if N is None else N
    if columns < 0:
        raise TensorRuntimeError("N must be non-negative.")
    rows = x.layout.shape[0]
    dtype = dtypes.int64 if x.dtype.category <= dtypes.INT else x.dtype
    result = F.empty((rows, columns), dtype=dtype, device=x.device)
    if columns > 0:
        result.select(1, 0).fill_(1)
    if columns > 1:
        rest = result.narrow(1, 1, columns - 1)
        rest.copy_(x.unsqueeze(1).expand(rows, columns - 1))
        rest.copy_(F.cumprod(rest, 1))
    found: Tensor = result if increasing else F.flip(result, (1,))
    return found
