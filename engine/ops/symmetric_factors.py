"""LDLᴴ factors of symmetric and Hermitian matrices, by LAPACK's own routines in scipy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine import layout as layouts
from engine.errors import DtypeError, TensorRuntimeError
from engine.kinds import kernel, made
from engine.kinds.missing import NODE, no_derivative
from engine.matrices import check_float, check_square, column_major

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.tensor import Tensor


def _routine(array: Any, task: str, hermitian: bool) -> Any:
    """LAPACK's routine for the array's dtype: ssytrf, zhetrs and so on."""
    import scipy.linalg.lapack

    letter = {"f": "s", "d": "d", "F": "c", "D": "z"}[array.dtype.char]
    family = "he" if hermitian and array.dtype.kind == "c" else "sy"
    return getattr(scipy.linalg.lapack, f"{letter}{family}{task}")


def _factored(t: Tensor, hermitian: bool) -> tuple[Made, Made, Made]:
    name = "torch.linalg.ldl_factor_ex"
    check_square(name, t)
    check_float(name, t.dtype, stub="ldl_factor_kernel_cpu")
    shape = tuple(t.layout.shape)

    def run(xp: Any) -> Any:
        factors = xp.array(t.array, order="C")
        pivots = xp.zeros(shape[:-1], "int32")
        info = xp.zeros(shape[:-2], "int32")
        if shape[-1] and t.layout.numel:
            factor = _routine(factors, "trf", hermitian)
            for at in xp.ndindex(shape[:-2]):
                found, pivots[at], info[at] = factor(factors[at], lower=1)
                factors[at] = xp.tril(found)
        return [factors, pivots, info]

    return (
        made(t.dtype, column_major(shape), run),
        made(dtypes.int32, shape[:-1], run),
        made(dtypes.int32, shape[:-2], run),
    )


@kernel(
    name="linalg.ldl_factor",
    vjp=no_derivative("linalg_ldl_factor_ex"),
    node=NODE,
    spaces=("linalg.",),
    method=False,
    fields=("LD", "pivots"),
    example="linalg.ldl_factor(tensor([[2., 1.], [1., 2.]])).LD",
)
def ldl_factor(A: Tensor, *, hermitian: bool = False) -> Any:
    """L and D of A = L D Lᵀ in one matrix with LAPACK's pivots; the lower triangle is read."""
    return _factored(A, hermitian)[:2]


@kernel(
    name="linalg.ldl_factor_ex",
    vjp=no_derivative("linalg_ldl_factor_ex"),
    node=NODE,
    spaces=("linalg.",),
    method=False,
    fields=("LD", "pivots", "info"),
    example="linalg.ldl_factor_ex(tensor([[2., 1.], [1., 2.]])).info",
)
def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> Any:
    """As ldl_factor, with LAPACK's info."""
    return _factored(A, hermitian)


@kernel(
    name="linalg.ldl_solve",
    vjp=dict.fromkeys(("LD", "B"), no_derivative("linalg_ldl_solve")),
    node=NODE,
    spaces=("linalg.",),
    method=False,
    example="linalg.ldl_solve(*linalg.ldl_factor(eye(2)), ones(2, 1))",
)
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Made:
    """X with A X = B from what ldl_factor gives."""
    name = "torch.linalg.ldl_solve"
    check_square(name, LD, "LD")
    if B.ndim < 2:
        raise TensorRuntimeError(
            f"{name}: Expected B to have at least 2 dimensions, but it has {B.ndim} dimensions "
            "instead"
        )
    p, q = tuple(LD.layout.shape), tuple(B.layout.shape)
    if p[-1] != q[-2]:
        raise TensorRuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation AX = B "
            f"({p[-2]}x{p[-1]} and {q[-2]}x{q[-1]})"
        )
    if LD.dtype is not B.dtype:
        raise DtypeError(
            f"{name}: Expected LD and B to have the same dtype, but found LD of type "
            f"{LD.dtype.title} and B of type {B.dtype.title} instead"
        )
    check_float(name, LD.dtype, stub="ldl_solve_kernel_cpu")
    lead = layouts.broadcast_shapes(p[:-2], q[:-2])

    def run(xp: Any) -> Any:
        x = xp.array(xp.broadcast_to(B.array, (*lead, *q[-2:])))
        if not x.size:
            return x
        factors = xp.broadcast_to(LD.array, (*lead, *p[-2:]))
        rows = xp.broadcast_to(pivots.array, (*lead, p[-1]))
        solve = _routine(x, "trs", hermitian)
        for at in xp.ndindex(lead):
            x[at] = solve(factors[at], rows[at], x[at], lower=1)[0]
        return x

    return made(B.dtype, column_major((*lead, *q[-2:])), run)
