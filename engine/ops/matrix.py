"""Products of matrices and vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import MatmulError
from engine.kinds import contraction
from engine.kinds.conjugate import conj

if TYPE_CHECKING:
    from engine.tensor import Tensor


@contraction(
    vjp={
        "input": lambda g, mat2: g.mm(conj(mat2.t())),
        "mat2": lambda g, input: conj(input.t()).mm(g),
    },
    example="mm(tensor([[1., 2.]]), tensor([[3.], [4.]]))",
)
def mm(input: Tensor, mat2: Tensor) -> Any:
    """The product of two matrices (n, k) and (k, m)."""
    a, b = input.shape, mat2.shape
    if a[1] != b[0]:
        raise MatmulError(a, b)
    return (a[0], b[1]), lambda xp, x, y: x.dot(y)
