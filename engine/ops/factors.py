"""LU factors and what is solved with them, older solvers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes, matrices
from engine import layout as layouts
from engine.errors import TensorRuntimeError
from engine.kinds import composite, kernel, made
from engine.matrices import (
    check_float,
    check_kernel,
    check_matrix,
    check_same,
    check_square,
    column_major,
)
from engine.registry import F, function, functions, method
from engine.return_types import named

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.tensor import Tensor


def _linalg(name: str) -> Any:
    return functions[f"linalg.{name}"]


def _triangle(a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unit: bool = False) -> Any:
    return _linalg("solve_triangular")(a, b, upper=upper, left=left, unitriangular=unit)


def _lower(t: Tensor, k: int) -> Tensor:
    """The first k columns as a unit lower triangle."""
    eye = F.eye(t.layout.shape[-2], k, dtype=t.dtype)
    return F.tril(t.narrow(-1, 0, k), -1) + eye


def _upper(t: Tensor, k: int) -> Tensor:
    return F.triu(t.narrow(-2, 0, k))


def _factors_gradient(g_low: Any, g_up: Any, p: Tensor, low: Tensor, up: Tensor) -> Tensor:
    """The gradient of A = P L U: in the square part P L⁻ᴴ (tril(Lᴴ gL, -1) + triu(gU Uᴴ)) U⁻ᴴ,
    and what rows or columns beyond it add."""
    m, n = low.layout.shape[-2], up.layout.shape[-1]
    k = min(m, n)
    h_up = up.narrow(-1, 0, k).mH
    h_low = low.narrow(-2, 0, k).mH
    inner: Any = 0
    beyond: Any = None
    if m > n and g_low is not None:
        below = g_low.narrow(-2, k, m - k)
        beyond = _triangle(h_up, below, upper=False, left=False)
        part = F.tril(h_low @ g_low.narrow(-2, 0, k), -1)
        inner = part - F.triu(low.narrow(-2, k, m - k).mH @ below)
    elif g_low is not None:
        inner = F.tril(h_low @ g_low, -1)
    if g_up is not None:
        inner = inner + F.triu(g_up.narrow(-1, 0, k) @ h_up)
        if n > m:
            right = g_up.narrow(-1, k, n - k)
            inner = inner - F.tril(right @ up.narrow(-1, k, n - k).mH, -1)
            beyond = _triangle(h_low, right, upper=True, unit=True)
    square = _triangle(h_low, inner, upper=True, unit=True)
    square = _triangle(h_up, square, upper=False, left=False)
    if m > n:
        if beyond is None:
            beyond = square.new_zeros((*square.layout.shape[:-2], m - k, n))
        square = F.cat((square, beyond), -2)
    elif n > m:
        if beyond is None:
            beyond = square.new_zeros((*square.layout.shape[:-2], m, n - k))
        square = F.cat((square, beyond), -1)
    return p @ square


def _permuted(pivots: Tensor, m: int, like: Tensor) -> Tensor:
    """The permutation matrix P of A = P L U, with no history."""
    return functions["lu_unpack"](like.detach(), pivots, unpack_data=False)[0]


def _packed_gradient(g: Any, y: Any) -> Tensor:
    factors, pivots = y[0], y[1]
    g = g[0]
    m, n = factors.layout.shape[-2:]
    k = min(m, n)
    p = _permuted(pivots, m, factors)
    g_low = F.tril(g.narrow(-1, 0, k), -1)
    g_up = F.triu(g.narrow(-2, 0, k))
    return _factors_gradient(g_low, g_up, p, _lower(factors, k), _upper(factors, k))


def _check_lu(name: str, t: Tensor, pivot: bool) -> None:
    if t.ndim < 2:
        raise TensorRuntimeError(
            f"{name}: Expected tensor with 2 or more dimensions. Got size: "
            f"{list(t.layout.shape)} instead"
        )
    check_kernel("lu_cpu", t.dtype)
    if not pivot:
        raise TensorRuntimeError(
            "linalg.lu_factor: LU without pivoting is not implemented on the CPU"
        )


def _packed(t: Tensor, check: bool, name: str) -> tuple[Made, Made, Made]:
    shape = t.layout.shape
    k = min(shape[-2:])

    def run(xp: Any) -> Any:
        packed, pivots, info = matrices.lu(xp, t.array)
        for at, fault in enumerate(info.reshape(-1).tolist() if check else ()):
            if fault:
                raise TensorRuntimeError(
                    f"torch.{name}: {matrices.batch_note(tuple(shape), at)}U[{fault},{fault}] is "
                    "zero and using it on lu_solve would result in a division by zero. If you "
                    "still want to perform the factorization, consider calling linalg.lu(A, "
                    "pivot) or linalg.lu_factor_ex(A, pivot)"
                )
        return [packed, pivots, info]

    return (
        made(t.dtype, column_major(tuple(shape)), run),
        made(dtypes.int32, (*shape[:-2], k), run),
        made(dtypes.int32, tuple(shape[:-2]), run),
    )


@kernel(
    name="linalg.lu_factor",
    spaces=("linalg.",),
    method=False,
    fields=("LU", "pivots"),
    vjp={"A": _packed_gradient},
    node="LinalgLuFactorExBackward0",
    example="linalg.lu_factor(tensor([[1., 2.], [3., 4.]])).LU",
)
def lu_factor(A: Tensor, *, pivot: bool = True) -> Any:
    """L and U in one matrix, and the row exchanges, counted from 1."""
    _check_lu("torch.lu_factor", A, pivot)
    return _packed(A, True, "linalg.lu_factor")[:2]


@kernel(
    name="linalg.lu_factor_ex",
    spaces=("linalg.",),
    method=False,
    fields=("LU", "pivots", "info"),
    vjp={"A": _packed_gradient},
    node="LinalgLuFactorExBackward0",
    example="linalg.lu_factor_ex(tensor([[1., 2.], [3., 4.]])).info",
)
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """As lu_factor, with the number of the first zero pivot instead of an error."""
    _check_lu("torch.lu_factor", A, pivot)
    return _packed(A, check_errors, "linalg.lu_factor_ex")


@method("lu")
def lu_method(A: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """As torch.lu, always a plain tuple."""
    return tuple(lu_info(A, pivot, get_infos))


@function("lu")
def lu_info(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """LU and the row exchanges, with the first zero pivots if ``get_infos``."""
    packed, pivots, info = _linalg("lu_factor_ex")(A, pivot=pivot)
    if get_infos:
        return named("_lu_with_info", ("LU", "pivots", "info"))((packed, pivots, info))
    return packed, pivots


def _lu_gradient(g: Any, y: Any) -> Tensor:
    return _factors_gradient(g[1], g[2], y[0], y[1], y[2])


def _unpacked(xp: Any, packed: Any, pivots: Any, k: int) -> list[Any]:
    m, n = packed.shape[-2:]
    order = matrices.permutation(xp, pivots, m)
    eye = xp.eye(m, dtype=packed.dtype)
    p = eye[order].swapaxes(-1, -2)
    low = xp.tril(packed[..., :, :k], -1)
    low[..., range(k), range(k)] = 1
    return [p, low, xp.triu(packed[..., :k, :])]


@kernel(
    name="linalg.lu",
    spaces=("linalg.",),
    method=False,
    fields=("P", "L", "U"),
    constant=(0,),
    vjp={"A": _lu_gradient},
    node="LinalgLuBackward0",
    example="linalg.lu(tensor([[1., 2.], [3., 4.]])).U",
)
def lu(A: Tensor, *, pivot: bool = True) -> Any:
    """A = P L U with a permutation, a unit lower and an upper triangle."""
    _check_lu("torch.lu_factor", A, pivot)
    *lead, m, n = A.layout.shape
    k = min(m, n)

    def run(xp: Any) -> Any:
        packed, pivots, _ = matrices.lu(xp, A.array)
        return _unpacked(xp, packed, pivots, k)

    return tuple(
        made(A.dtype, shape, run) for shape in ((*lead, m, m), (*lead, m, k), (*lead, k, n))
    )


def _unpack_gradient(g: Any, LU_data_shape: Any) -> Tensor:
    m, n = LU_data_shape[-2:]
    k = min(m, n)
    _, low, up = g
    like = low if low is not None else up
    y = like.new_zeros(LU_data_shape)
    if low is not None:
        part = F.tril(low, -1)
        if n > k:
            part = F.cat((part, part.new_zeros((*part.layout.shape[:-1], n - k))), -1)
        y = y + part
    if up is not None:
        part = F.triu(up)
        if m > k:
            part = F.cat((part, part.new_zeros((*part.layout.shape[:-2], m - k, n))), -2)
        y = y + part
    return y


@kernel(
    method=False,
    fields=("P", "L", "U"),
    constant=(0,),
    vjp={"LU_data": _unpack_gradient},
    node="LuUnpackBackward0",
    example="lu_unpack(*linalg.lu_factor(tensor([[1., 2.], [3., 4.]]))).U",
)
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> Any:
    """P, L and U from what lu_factor gives; parts not asked for are empty."""
    if unpack_pivots and LU_pivots.dtype is not dtypes.int32:
        raise TensorRuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 "
            "dtype.\nNote: this function is intended to be used with the output produced by "
            "torch.linalg.lu_factor"
        )
    if LU_data.ndim < 2:
        raise TensorRuntimeError(
            "torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: "
            f"{list(LU_data.layout.shape)} instead"
        )
    *lead, m, n = LU_data.layout.shape
    k = min(m, n)

    def run(xp: Any) -> Any:
        p, low, up = _unpacked(xp, LU_data.array, LU_pivots.array, k)
        none = xp.zeros((0,), LU_data.array.dtype)
        return [p if unpack_pivots else none, *((low, up) if unpack_data else (none, none))]

    empty: tuple[int, ...] = (0,)
    return (
        made(LU_data.dtype, (*lead, m, m) if unpack_pivots else empty, run),
        made(LU_data.dtype, (*lead, m, k) if unpack_data else empty, run),
        made(LU_data.dtype, (*lead, k, n) if unpack_data else empty, run),
    )


def _with_factors(xp: Any, packed: Any, pivots: Any, b: Any, adjoint: bool) -> Any:
    """The solution of A X = B, or Aᴴ X = B, from LU factors."""
    order = matrices.permutation(xp, pivots, packed.shape[-1])
    lead = xp.broadcast_shapes(packed.shape[:-2], b.shape[:-2])
    b = xp.broadcast_to(b, (*lead, *b.shape[-2:]))
    rows = xp.broadcast_to(order, (*lead, order.shape[-1]))[..., None]
    if not adjoint:
        x = matrices.substitute(xp, packed, xp.take_along_axis(b, rows, -2), False, True)
        return matrices.substitute(xp, packed, x, True, False)
    h = packed.swapaxes(-1, -2).conj()
    x = matrices.substitute(xp, h, b, False, False)
    x = matrices.substitute(xp, h, x, True, True)
    y = xp.empty_like(x)
    xp.put_along_axis(y, xp.broadcast_to(rows, x.shape), x, -2)
    return y


def _lu_solve_gradient(
    g: Tensor,
    y: Tensor,
    LU: Tensor,
    pivots: Tensor,
    left: bool,
    adjoint: bool,
    needed: tuple[bool, ...],
) -> Any:
    g_b = _linalg("lu_solve")(LU, pivots, g, left=left, adjoint=not adjoint)
    if not needed[0]:
        return None, g_b
    if adjoint:
        g_a = -(y @ g_b.mH if left else g_b.mH @ y)
    else:
        g_a = -(g_b @ y.mH if left else y.mH @ g_b)
    n = LU.layout.shape[-1]
    turned = _permuted(pivots, n, LU).mH @ g_a
    low, up = _lower(LU, n), _upper(LU, n)
    g_lu = F.tril(turned @ up.mH, -1) + F.triu(low.mH @ turned)
    return g_lu, g_b if needed[1] else None


def _solve_shape(LU: Tensor, B: Tensor, left: bool) -> tuple[int, ...]:
    name = "linalg.lu_solve"
    check_same(name, LU, B, "LU")
    check_square(name, LU, "LU")
    check_matrix(name, B, "B")
    check_float(f"torch.{name}", LU.dtype, stub=f"{name}_cpu")
    p, q = LU.layout.shape, B.layout.shape
    if p[-1] != (q[-2] if left else q[-1]):
        raise TensorRuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation "
            f"{'AX = B' if left else 'XA = B'} ({p[-2]}x{p[-1]} and {q[-2]}x{q[-1]})"
        )
    return (*layouts.broadcast_shapes(tuple(p[:-2]), tuple(q[:-2])), *q[-2:])


@kernel(
    name="linalg.lu_solve",
    spaces=("linalg.",),
    method=False,
    vjp={"LU,B": _lu_solve_gradient},
    node="LinalgLuSolveBackward0",
    example="linalg.lu_solve(*linalg.lu_factor(eye(2)), ones(2, 1))",
)
def linalg_lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Made:
    """X with A X = B (or X A = B, or with the adjoint of A) from the factors of A."""
    shape = _solve_shape(LU, B, left)

    def run(xp: Any) -> Any:
        if left:
            return _with_factors(xp, LU.array, pivots.array, B.array, adjoint)
        b = B.array.swapaxes(-1, -2).conj()
        x = _with_factors(xp, LU.array, pivots.array, b, not adjoint)
        return x.swapaxes(-1, -2).conj()

    return made(LU.dtype, column_major(shape) if left else layouts.contiguous(shape), run)


@composite(example="lu_solve(ones(2, 1), *linalg.lu_factor(eye(2)))")
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """As linalg.lu_solve with the right-hand side first, the older form."""
    return _linalg("lu_solve")(LU_data, LU_pivots, input)


def _cholesky_inverse_gradient(g: Tensor, y: Tensor, input: Tensor, upper: bool) -> Tensor:
    both = g + g.mH
    if upper:
        return -(input @ (y @ both @ y))
    return -((y @ both @ y) @ input)


@kernel(
    vjp={"input": _cholesky_inverse_gradient},
    example="cholesky_inverse(tensor([[2., 0.], [1., 3.]]))",
    domain="lower",
)
def cholesky_inverse(input: Tensor, upper: bool = False) -> Made:
    """The inverse of L Lᴴ (or Uᴴ U) from its Cholesky factor."""
    check_square("cholesky_inverse", input)
    check_kernel("cholesky_inverse_out_cpu", input.dtype)

    def run(xp: Any) -> Any:
        a = input.array.swapaxes(-1, -2).conj() if upper else input.array
        eye = xp.eye(a.shape[-1], dtype=a.dtype)
        inverse = matrices.substitute(xp, a, xp.broadcast_to(eye, a.shape), False, False)
        return inverse.swapaxes(-1, -2).conj() @ inverse

    return made(input.dtype, column_major(tuple(input.layout.shape)), run)


def _cholesky_solve_gradient(
    g: Tensor, y: Tensor, input2: Tensor, upper: bool, needed: tuple[bool, ...]
) -> Any:
    g_b = g.cholesky_solve(input2, upper)
    if not needed[1]:
        return g_b, None
    both = g_b @ y.mH
    both = both + both.mH
    return (g_b if needed[0] else None), -(input2 @ both) if upper else -(both @ input2)


@kernel(
    vjp={"input,input2": _cholesky_solve_gradient},
    example="cholesky_solve(ones(2, 1), tensor([[2., 0.], [1., 3.]]))",
    domain={"input2": "lower"},
)
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Made:
    """X with L Lᴴ X = B (or Uᴴ U X = B) from the Cholesky factor."""
    for what, t in (("b", input), ("u", input2)):
        if t.ndim < 2:
            raise TensorRuntimeError(
                f"{what} should have at least 2 dimensions, but has {t.ndim} dimensions instead"
            )
    p, q = input2.layout.shape, input.layout.shape
    if p[-1] != p[-2]:
        raise TensorRuntimeError(
            f"A must be batches of square matrices, but they are {p[-2]} by {p[-1]} matrices"
        )
    if p[-1] != q[-2]:
        raise TensorRuntimeError(
            f"Incompatible matrix sizes for cholesky_solve: each A matrix is {p[-1]} by {p[-1]} "
            f"but each b matrix is {q[-2]} by {q[-1]}"
        )
    check_kernel("cholesky_solve_cpu", input.dtype)
    shape = (*layouts.broadcast_shapes(tuple(p[:-2]), tuple(q[:-2])), *q[-2:])

    def run(xp: Any) -> Any:
        a = input2.array.swapaxes(-1, -2).conj() if upper else input2.array
        x = matrices.substitute(xp, a, input.array, False, False)
        return matrices.substitute(xp, a.swapaxes(-1, -2).conj(), x, True, False)

    return made(input.dtype, column_major(shape), run)


def _triangular_gradient(
    g: Any,
    y: Any,
    A: Tensor,
    upper: bool,
    transpose: bool,
    unitriangular: bool,
    needed: tuple[bool, ...],
) -> Any:
    x, gx, g_clone = y[0], g[0], g[1]
    g_a: Any = None
    g_b: Any = None
    if gx is not None:
        conjugate = F.conj_physical(A) if A.dtype.is_complex else A
        g_b = functions["triangular_solve"](gx, conjugate, upper, not transpose, unitriangular)[0]
        if needed[1]:
            g_a = -(F.conj_physical(x) @ g_b.mT if transpose else g_b @ x.mH)
            shift = int(unitriangular)
            g_a = F.triu(g_a, shift) if upper else F.tril(g_a, -shift)
    if g_clone is not None and needed[1]:
        g_a = g_clone if g_a is None else g_a + g_clone
    return (g_b if needed[0] else None), g_a


@kernel(
    fields=("solution", "cloned_coefficient"),
    vjp={"input,A": _triangular_gradient},
    example="triangular_solve(ones(2, 1), tensor([[2., 1.], [0., 4.]])).solution",
)
def triangular_solve(
    input: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> Any:
    """X with A X = B for triangular A, and a copy of A; an older form of solve_triangular."""
    for what, t in (("b", input), ("A", A)):
        if t.ndim < 2:
            raise TensorRuntimeError(
                f"torch.triangular_solve: Expected {what} to have at least 2 dimensions, but it "
                f"has {t.ndim} dimensions instead"
            )
    p, q = A.layout.shape, input.layout.shape
    if p[-1] != p[-2]:
        raise TensorRuntimeError(
            f"A must be batches of square matrices, but they are {p[-2]} by {p[-1]} matrices"
        )
    if p[-1] != q[-2]:
        raise TensorRuntimeError(
            f"Incompatible matrix sizes for triangular_solve: each A matrix is {p[-1]} by {p[-1]} "
            f"but each b matrix is {q[-2]} by {q[-1]}"
        )
    check_kernel("triangular_solve_cpu", input.dtype)
    lead = layouts.broadcast_shapes(tuple(p[:-2]), tuple(q[:-2]))

    def run(xp: Any) -> Any:
        a = A.array.swapaxes(-1, -2) if transpose else A.array
        x = matrices.substitute(xp, a, input.array, upper != transpose, unitriangular)
        return [x, xp.broadcast_to(A.array, (*lead, *p[-2:]))]

    return (
        made(input.dtype, column_major((*lead, *q[-2:])), run),
        made(input.dtype, column_major((*lead, *p[-2:])), run),
    )
