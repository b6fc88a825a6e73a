"""Determinants, inverses, systems of equations and least squares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes, matrices
from engine import layout as layouts
from engine.errors import LinAlgError, TensorRuntimeError
from engine.kinds import composite, kernel, made
from engine.matrices import (
    check_float,
    check_kernel,
    check_matrix,
    check_same,
    check_square,
    column_major,
)
from engine.modes import state
from engine.registry import F, functions
from engine.return_types import named

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.tensor import Tensor


def _h(t: Tensor) -> Tensor:
    return t.mH


def _linalg(name: str) -> Any:
    return functions[f"linalg.{name}"]


def _check_determinant(name: str, t: Tensor) -> None:
    check_square(name, t)
    check_float(name, t.dtype, stub="lu_cpu" if name == "linalg.det" else "")


def _det_gradient(g: Tensor, y: Tensor, A: Tensor) -> Tensor:
    """det·A⁻ᴴ. As in PyTorch a singular matrix gets zeros, unless the gradient is itself recorded:
    then the cofactors."""
    scale = g * (F.conj_physical(y) if y.dtype.is_complex else y)
    if A.layout.numel == 0:
        return F.zeros_like(A)
    if y.array is None or (y.array != 0).all():
        return _scaled_inverse(A, scale)
    if not state.grad:
        safe = F.where(y == 0, 0, scale).unsqueeze(-1).unsqueeze(-1)
        return safe * _h(_linalg("inv_ex")(A)[0]).nan_to_num(0, 0, 0)
    return g.unsqueeze(-1).unsqueeze(-1) * _cofactors(A)


def _scaled_inverse(A: Tensor, scale: Tensor) -> Tensor:
    """A number times A⁻ᴴ for each matrix."""
    n = A.layout.shape[-1]
    scales = scale.unsqueeze(-1).expand((*scale.layout.shape, n))
    return _linalg("solve")(_h(A), F.diag_embed(scales))


def _cofactors(A: Tensor) -> Tensor:
    """The conjugate cofactors by way of singular values, for matrices that have no inverse."""
    u, s, vh = _linalg("svd")(A)
    n = s.layout.shape[-1]
    eye = F.eye(n, dtype=dtypes.bool_)
    others = s.unsqueeze(-2).expand((*s.layout.shape[:-1], n, n)).masked_fill(eye, 1).prod(-1)
    turn = _linalg("det")(u) * _linalg("det")(vh)
    if turn.dtype.is_complex:
        turn = F.conj_physical(turn)
    return turn.unsqueeze(-1).unsqueeze(-1) * ((u * others.unsqueeze(-2)) @ vh)


@kernel(
    name="linalg.det",
    spaces=("linalg.",),
    method=False,
    vjp={"A": _det_gradient},
    node="LinalgDetBackward0",
    example="linalg.det(tensor([[1., 2.], [3., 4.]]))",
)
def linalg_det(A: Tensor) -> Made:
    """The determinant of each square matrix; 1 for an empty one."""
    _check_determinant("linalg.det", A)
    return made(A.dtype, A.layout.shape[:-2], lambda xp: xp.asarray(xp.linalg.det(A.array)))


@composite(out=False, example="det(tensor([[1., 2.], [3., 4.]]))")
def det(input: Tensor) -> Tensor:
    """The determinant of each square matrix."""
    return _linalg("det")(input)


def _slogdet_gradient(g: Any, y: Any, A: Tensor) -> Tensor:
    g_sign, g_log = g
    along = F.zeros_like(y[1]) if g_log is None else g_log
    if A.dtype.is_complex and g_sign is not None:
        turned = F.imag(F.conj_physical(g_sign) * y[0])
        along = F.complex(along, -turned)
    return _scaled_inverse(A, along)


@kernel(
    name="linalg.slogdet",
    spaces=("linalg.",),
    method=False,
    fields=("sign", "logabsdet"),
    vjp={"A": _slogdet_gradient},
    node="LinalgSlogdetBackward0",
    example="linalg.slogdet(tensor([[1., 2.], [3., 4.]]))",
)
def linalg_slogdet(A: Tensor) -> Any:
    """The sign of the determinant and the logarithm of its size (-inf for a singular matrix)."""
    _check_determinant("linalg.slogdet", A)
    shape = A.layout.shape[:-2]

    def run(xp: Any) -> Any:
        return [xp.asarray(part) for part in xp.linalg.slogdet(A.array)]

    return made(A.dtype, shape, run), made(dtypes.real_of(A.dtype), shape, run)


@composite(example="slogdet(tensor([[1., 2.], [3., 4.]]))")
def slogdet(input: Tensor) -> Any:
    """The sign of the determinant and the logarithm of its size."""
    return named("slogdet", ("sign", "logabsdet"))(_linalg("slogdet")(input))


@composite(out=False, example="logdet(tensor([[2., 0.], [0., 3.]]))")
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant; nan where that is negative, -inf where it is 0."""
    _check_determinant("logdet", input)
    sign, size = _linalg("slogdet")(input)
    if input.dtype.is_complex:
        return sign.log() + size
    return F.where(sign == -1.0, float("nan"), size)


def _inverse_gradient(g: Any, y: Any) -> Tensor:
    if y.__class__ is tuple:
        g, y = g[0], y[0]
    h = _h(y)
    return -(h @ (g @ h))


def _inverted(xp: Any, name: str, a: Any, check: bool) -> tuple[Any, Any]:
    """The inverse of each matrix and its first zero pivot (0: none)."""
    lead = a.shape[:-2]
    info = xp.zeros(lead, "int32")
    try:
        return xp.linalg.inv(a), info
    except xp.linalg.LinAlgError:
        pass
    info = matrices.lu(xp, a)[2]
    y = xp.full(a.shape, float("inf"), a.dtype)
    for at, index in enumerate(xp.ndindex(lead)):
        if not info[index]:
            y[index] = xp.linalg.inv(a[index])
        elif check:
            raise matrices.singular(name, a.shape, at, int(info[index]))
    return y, info


@kernel(
    name="linalg.inv",
    spaces=("linalg.",),
    method=False,
    vjp={"A": _inverse_gradient},
    node="LinalgInvExBackward0",
    example="linalg.inv(tensor([[1., 2.], [3., 4.]]))",
)
def inv(A: Tensor) -> Made:
    """The inverse of each square matrix. Raises LinAlgError for a singular one."""
    check_square("linalg.inv", A)
    check_float("linalg.inv", A.dtype)
    return made(
        A.dtype,
        column_major(A.layout.shape),
        lambda xp: _inverted(xp, "linalg.inv", A.array, True)[0],
    )


@composite(example="inverse(tensor([[1., 2.], [3., 4.]]))")
def inverse(input: Tensor) -> Tensor:
    """The inverse of each square matrix. Raises LinAlgError for a singular one."""
    return _linalg("inv")(input)


@kernel(
    name="linalg.inv_ex",
    spaces=("linalg.",),
    method=False,
    fields=("inverse", "info"),
    vjp={"A": _inverse_gradient},
    node="LinalgInvExBackward0",
    example="linalg.inv_ex(tensor([[1., 2.], [3., 4.]])).info",
)
def inv_ex(A: Tensor, *, check_errors: bool = False) -> Any:
    """The inverse and, instead of an error, the number of the first zero pivot."""
    check_square("linalg.inv", A)
    check_float("linalg.inv", A.dtype)
    shape = A.layout.shape

    def run(xp: Any) -> Any:
        return list(_inverted(xp, "linalg.inv_ex", A.array, check_errors))

    return made(A.dtype, column_major(shape), run), made(dtypes.int32, shape[:-2], run)


def _is_vector(a: Tensor, b: Tensor) -> bool:
    return b.ndim == 1 or (a.ndim - 1 == b.ndim and b.layout.shape == a.layout.shape[:-1])


def _check_system(name: str, a: Tensor, b: Tensor, left: bool, vector: bool) -> tuple[int, ...]:
    """The broadcast shape of the solution of A X = B (left) or X A = B."""
    p = a.layout.shape
    q = (*b.layout.shape, 1) if vector else b.layout.shape
    if left and p[-2] != q[-2] or not left and p[-1] != q[-1]:
        equation = "AX = B" if left else "XA = B"
        raise TensorRuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} "
            f"({p[-2]}x{p[-1]} and {q[-2]}x{q[-1]})"
        )
    return (*layouts.broadcast_shapes(p[:-2], q[:-2]), *q[-2:])


def _solve_gradient(
    g: Any, y: Any, A: Tensor, B_shape: Any, left: bool, needed: tuple[bool, ...]
) -> Any:
    if y.__class__ is tuple:
        g, y = g[0], y[0]
    vector = len(B_shape) == 1 or (A.ndim - 1 == len(B_shape) and B_shape == A.layout.shape[:-1])
    g_b = _linalg("solve")(_h(A), g, left=left)
    g_a = None
    if needed[0]:
        outer_g = g_b.unsqueeze(-1) if vector else g_b
        outer_y = y.unsqueeze(-1) if vector else y
        g_a = -(outer_g @ _h(outer_y) if left else _h(outer_y) @ outer_g)
    return g_a, (g_b if needed[1] else None)


def _solved(
    xp: Any, a: Any, b: Any, left: bool, vector: bool, check: str | None
) -> tuple[Any, Any]:
    lead = a.shape[:-2]
    info = xp.zeros(lead, "int32")
    if vector:
        b = b[..., None]
    if not left:
        a, b = a.swapaxes(-1, -2), b.swapaxes(-1, -2)
    try:
        x = xp.linalg.solve(a, b)
    except xp.linalg.LinAlgError:
        info = matrices.lu(xp, a)[2]
        if check:
            at = next((i for i, p in enumerate(info.reshape(-1).tolist()) if p), 0)
            raise LinAlgError(
                f"torch.{check}: {matrices.batch_note(a.shape, at)}The solver failed because the "
                "input matrix is singular."
            ) from None
        x = xp.full(
            (*xp.broadcast_shapes(lead, b.shape[:-2]), *b.shape[-2:]), float("nan"), a.dtype
        )
    if not left:
        x = x.swapaxes(-1, -2)
    return (x[..., 0] if vector else x), info


def _system(name: str, A: Tensor, B: Tensor, left: bool) -> tuple[bool, Any]:
    check_square("linalg.solve", A)
    check_float("linalg.solve", A.dtype, stub="lu_cpu")
    check_same("linalg.solve", A, B)
    vector = _is_vector(A, B)
    if not vector:
        check_matrix("linalg.solve", B, "B")
    if vector and not left and B.ndim == 1:
        _check_system("linalg.solve", A, B, left, True)
    shape = _check_system("linalg.solve", A, B, left, vector)
    if vector:
        shape = shape[:-1]
    return vector, column_major(shape) if left else layouts.contiguous(shape)


@kernel(
    name="linalg.solve",
    spaces=("linalg.",),
    method=False,
    vjp={"A,B": _solve_gradient},
    node="LinalgSolveExBackward0",
    example="linalg.solve(tensor([[2., 0.], [0., 4.]]), tensor([1., 2.]))",
)
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Made:
    """X with A X = B, or X A = B when ``left`` is false. Raises LinAlgError for singular A.

    B of shape (…, n) is taken as vectors where it is 1-d or has just the shape of A without its
    last dimension.
    """
    vector, layout = _system("linalg.solve", A, B, left)
    return made(
        A.dtype,
        layout,
        lambda xp: _solved(xp, A.array, B.array, left, vector, "linalg.solve")[0],
    )


@kernel(
    name="linalg.solve_ex",
    spaces=("linalg.",),
    method=False,
    fields=("result", "info"),
    vjp={"A,B": _solve_gradient},
    node="LinalgSolveExBackward0",
    example="linalg.solve_ex(tensor([[2., 0.], [0., 4.]]), tensor([1., 2.])).info",
)
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """The solution and, instead of an error, the number of the first zero pivot."""
    vector, layout = _system("linalg.solve_ex", A, B, left)

    def run(xp: Any) -> Any:
        check = "linalg.solve_ex" if check_errors else None
        return list(_solved(xp, A.array, B.array, left, vector, check))

    return made(A.dtype, layout, run), made(dtypes.int32, A.layout.shape[:-2], run)


def _triangle_gradient(
    g: Tensor,
    y: Tensor,
    input: Tensor,
    upper: bool,
    left: bool,
    unitriangular: bool,
    needed: tuple[bool, ...],
) -> Any:
    g_b = _linalg("solve_triangular")(
        _h(input), g, upper=not upper, left=left, unitriangular=unitriangular
    )
    g_a = None
    if needed[0]:
        g_a = -(g_b @ _h(y) if left else _h(y) @ g_b)
        shift = int(unitriangular)
        g_a = F.triu(g_a, shift) if upper else F.tril(g_a, -shift)
    return g_a, (g_b if needed[1] else None)


@kernel(
    name="linalg.solve_triangular",
    spaces=("linalg.",),
    method=False,
    vjp={"input,B": _triangle_gradient},
    node="LinalgSolveTriangularBackward0",
    example="linalg.solve_triangular(tensor([[2., 1.], [0., 4.]]), ones(2, 1), upper=True)",
)
def solve_triangular(
    input: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Made:
    """X with A X = B (or X A = B), the input A triangular; its other triangle is not looked at."""
    name = "linalg.solve_triangular"
    check_same(name, input, B)
    check_square(name, input)
    check_matrix(name, B, "B")
    check_kernel("triangular_solve_cpu", input.dtype)
    shape = _check_system(name, input, B, left, False)

    def run(xp: Any) -> Any:
        a, b = input.array, B.array
        if left:
            return matrices.substitute(xp, a, b, upper, unitriangular)
        turned = matrices.substitute(
            xp, a.swapaxes(-1, -2), b.swapaxes(-1, -2), not upper, unitriangular
        )
        return turned.swapaxes(-1, -2)

    return made(input.dtype, column_major(shape), run)
