"""Decompositions of matrices: Cholesky, QR, LU, eigenvalues and singular values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes, matrices
from engine import layout as layouts
from engine.errors import DtypeNotImplementedError, LinAlgError, TensorRuntimeError
from engine.kinds import composite, kernel, made
from engine.matrices import (
    check_float,
    check_kernel,
    check_matrix,
    check_square,
    column_major,
    decomposed,
)
from engine.registry import F, functions
from engine.return_types import named

if TYPE_CHECKING:
    from engine.dtypes import DType
    from engine.kinds import Made
    from engine.tensor import Tensor


def _h(t: Tensor) -> Tensor:
    return t.mH


def _linalg(name: str) -> Any:
    return functions[f"linalg.{name}"]


def _triangle(a: Tensor, b: Tensor, *, upper: bool, left: bool = True) -> Tensor:
    return _linalg("solve_triangular")(a, b, upper=upper, left=left)


def _cholesky_gradient(g: Any, y: Any, upper: bool) -> Tensor:
    if y.__class__ is tuple:
        g, y = g[0], y[0]
    if upper:
        g, y = _h(g), _h(y)
    inner = F.tril(_h(y) @ g)
    inner = 0.5 * (inner + _h(F.tril(inner, -1)))
    inner = _triangle(_h(y), inner, upper=True)
    return _triangle(y, inner, upper=False, left=False)


def _factor(xp: Any, a: Any, upper: bool) -> tuple[Any, Any]:
    """The Cholesky factor of each matrix and the order of its first minor at fault (0: none)."""
    low = a.swapaxes(-1, -2).conj() if upper else a
    lead = low.shape[:-2]
    info = xp.zeros(lead, "int32")
    try:
        y = xp.linalg.cholesky(low)
    except xp.linalg.LinAlgError:
        y = xp.empty_like(low)
        for at in xp.ndindex(lead):
            try:
                y[at] = xp.linalg.cholesky(low[at])
            except xp.linalg.LinAlgError:
                y[at] = xp.tril(low[at])
                info[at] = matrices.first_minor(xp, low[at])
    return (y.swapaxes(-1, -2).conj() if upper else y), info


def _not_positive(name: str, shape: tuple[int, ...], info: Any) -> None:
    for at, minor in enumerate(info.reshape(-1).tolist()):
        if minor:
            raise LinAlgError(
                f"{name}: {matrices.batch_note(shape, at)}The factorization could not be "
                "completed because the input is not positive-definite (the leading minor of "
                f"order {minor} is not positive-definite)."
            )


def _checked_factor(name: str, t: Tensor, upper: bool) -> Made:
    check_square(name, t)
    if name == "cholesky":
        check_kernel("cholesky_cpu", t.dtype)
    check_float(name, t.dtype, stub="cholesky_cpu")

    def run(xp: Any) -> Any:
        y, info = _factor(xp, t.array, upper)
        _not_positive(name, t.layout.shape, info)
        return y

    return made(t.dtype, column_major(tuple(t.layout.shape)), run)


@kernel(
    name="linalg.cholesky",
    spaces=("linalg.",),
    method=False,
    vjp={"A": _cholesky_gradient},
    node="LinalgCholeskyExBackward0",
    example="linalg.cholesky(tensor([[4., 2.], [2., 3.]]))",
    domain="hermitian",
)
def linalg_cholesky(A: Tensor, *, upper: bool = False) -> Made:
    """The lower triangular L with A = L Lᴴ; only the lower triangle of A is looked at."""
    return _checked_factor("linalg.cholesky", A, upper)


@kernel(
    vjp={"input": _cholesky_gradient},
    node="CholeskyBackward0",
    example="cholesky(tensor([[4., 2.], [2., 3.]]))",
    domain="hermitian",
)
def cholesky(input: Tensor, upper: bool = False) -> Made:
    """As linalg.cholesky, the older name."""
    y = _checked_factor("cholesky", input, upper)
    if input.layout.numel == 0:
        y.layout = layouts.contiguous(input.layout.shape)
    return y


@kernel(
    name="linalg.cholesky_ex",
    spaces=("linalg.",),
    method=False,
    fields=("L", "info"),
    vjp={"A": _cholesky_gradient},
    node="LinalgCholeskyExBackward0",
    example="linalg.cholesky_ex(tensor([[4., 2.], [2., 3.]])).info",
    domain="hermitian",
)
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """The Cholesky factor and, instead of an error, the order of the minor at fault."""
    check_square("linalg.cholesky", A)
    check_float("linalg.cholesky", A.dtype, stub="cholesky_cpu")
    shape = A.layout.shape

    def run(xp: Any) -> Any:
        y, info = _factor(xp, A.array, upper)
        if check_errors:
            _not_positive("linalg.cholesky_ex", shape, info)
        return [y, info]

    return made(A.dtype, column_major(shape), run), made(dtypes.int32, shape[:-2], run)


def _symmetric_eigenvalues_gradient(g: Any, y: Any) -> Tensor:
    values, vectors = y
    g_values, g_vectors = g
    if g_vectors is None:
        return (vectors * g_values.unsqueeze(-2)) @ _h(vectors)
    inner = _h(vectors) @ g_vectors
    gaps = values.unsqueeze(-2) - values.unsqueeze(-1)
    eye = F.eye(values.layout.shape[-1], dtype=dtypes.bool_)
    inner = (0.5 * (inner - _h(inner))) / gaps.masked_fill(eye, 1)
    inner = inner.masked_fill(eye, 0)
    if g_values is not None:
        inner = inner + F.diag_embed(g_values).to(inner.dtype)
    return vectors @ inner @ _h(vectors)


def _check_eigen(name: str, stub: str, t: Tensor) -> None:
    check_square(name, t)
    if t.dtype.category < dtypes.FLOAT or t.dtype.low:
        raise DtypeNotImplementedError(f"\"{stub}\" not implemented for '{t.dtype.title}'")


@kernel(
    name="linalg.eigh",
    spaces=("linalg.",),
    method=False,
    fields=("eigenvalues", "eigenvectors"),
    vjp={"input": _symmetric_eigenvalues_gradient},
    node="LinalgEighBackward0",
    example="linalg.eigh(tensor([[2., 1.], [1., 2.]])).eigenvalues",
    domain="hermitian",
)
def eigh(input: Tensor, UPLO: str = "L") -> Any:
    """Eigenvalues, ascending, and orthonormal eigenvectors of a symmetric or Hermitian matrix.

    Only one triangle is looked at. Vectors are unique up to a factor of size 1.
    """
    _check_eigen("linalg.eigh", "linalg_eigh_cpu", input)
    if UPLO.upper() not in ("L", "U"):
        raise TensorRuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    shape = input.layout.shape

    def run(xp: Any) -> Any:
        try:
            return list(xp.linalg.eigh(input.array, UPLO.upper()))
        except xp.linalg.LinAlgError:
            nan = float("nan")
            return [
                xp.full(shape[:-1], nan, input.array.real.dtype),
                xp.full(shape, nan, input.array.dtype),
            ]

    return (
        made(dtypes.real_of(input.dtype), layouts.contiguous(shape[:-1]), run),
        made(input.dtype, column_major(shape), run),
    )


@composite(
    name="linalg.eigvalsh",
    spaces=("linalg.",),
    method=False,
    example="linalg.eigvalsh(tensor([[2., 1.], [1., 2.]]))",
    domain="hermitian",
)
def eigvalsh(input: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of a symmetric or Hermitian matrix, ascending."""
    return _linalg("eigh")(input, UPLO)[0]


def _eigenvalues_gradient(g: Any, y: Any, input_dtype: DType) -> Tensor:
    values, vectors = y
    g_values, g_vectors = g
    h = _h(vectors)
    if g_vectors is None:
        inner = g_values.unsqueeze(-1) * h
        return _linalg("solve")(h, inner)
    inner = h @ g_vectors
    own = F.real(inner.diagonal(0, -2, -1))
    inner = inner - h @ (vectors * own.unsqueeze(-2))
    gaps = F.conj_physical(values.unsqueeze(-2) - values.unsqueeze(-1))
    eye = F.eye(values.layout.shape[-1], dtype=dtypes.bool_)
    inner = (inner / gaps.masked_fill(eye, 1)).masked_fill(eye, 0)
    if g_values is not None:
        inner = inner + F.diag_embed(g_values)
    return _linalg("solve")(h, inner @ h)


@kernel(
    name="linalg.eig",
    spaces=("linalg.",),
    method=False,
    fields=("eigenvalues", "eigenvectors"),
    vjp={"input": _eigenvalues_gradient},
    node="LinalgEigBackward0",
    example="linalg.eig(tensor([[0., 1.], [-1., 0.]])).eigenvalues",
)
def eig(input: Tensor) -> Any:
    """Eigenvalues and eigenvectors of any square matrix, always complex, in no special order."""
    check_square("linalg.eig", input)
    if input.dtype.category < dtypes.FLOAT:
        raise TensorRuntimeError(f"Unknown Complex ScalarType for {input.dtype.title}")
    check_kernel("linalg_eig_out_cpu", input.dtype)
    shape = input.layout.shape
    final = dtypes.complex_of(input.dtype)

    def run(xp: Any) -> Any:
        if not xp.isfinite(input.array).all():
            raise TensorRuntimeError(
                "torch.linalg.eig: input tensor should not contain infs or NaNs."
            )
        return list(xp.linalg.eig(input.array))

    return (
        made(final, layouts.contiguous(shape[:-1]), run),
        made(final, column_major(shape), run),
    )


@composite(
    name="linalg.eigvals",
    spaces=("linalg.",),
    method=False,
    example="linalg.eigvals(tensor([[0., 1.], [-1., 0.]]))",
)
def eigvals(input: Tensor) -> Tensor:
    """The eigenvalues of any square matrix, always complex, in no special order."""
    check_square("linalg.eigvals", input)
    return _linalg("eig")(input)[0]


def _skew(t: Tensor) -> Tensor:
    return t - _h(t)


def _singular_values_gradient(g: Any, y: Any, full_matrices: bool) -> Tensor:
    """U ((skew(Uᴴ gU) / E) S + S (skew(Vᴴ gV) / E) + gS) Vᴴ, with E the gaps of the squares, and
    the parts of gU and gV that lie outside U's and V's span."""
    u, s, vh = y
    gu, gs, gvh = g
    k = s.layout.shape[-1]
    m, n = u.layout.shape[-2], vh.layout.shape[-1]
    if full_matrices:
        u, vh = u.narrow(-1, 0, k), vh.narrow(-2, 0, k)
        gu = None if gu is None else gu.narrow(-1, 0, k)
        gvh = None if gvh is None else gvh.narrow(-2, 0, k)
    if gu is None and gvh is None:
        if m >= n:
            return u @ (gs.unsqueeze(-1) * vh)
        return (u * gs.unsqueeze(-2)) @ vh
    squares = s * s
    eye = F.eye(k, dtype=dtypes.bool_)
    gaps = (squares.unsqueeze(-2) - squares.unsqueeze(-1)).masked_fill(eye, 1)
    inner: Any = None
    turned = None
    if gu is not None:
        turned = _skew(_h(u) @ gu)
        inner = turned / gaps * s.unsqueeze(-2)
        if u.dtype.is_complex and gvh is not None:
            inner = inner.masked_fill(eye, 0)
    if gvh is not None:
        part = s.unsqueeze(-1) * (_skew(vh @ _h(gvh)) / gaps)
        if u.dtype.is_complex:
            part = part.masked_fill(eye, 0)
        inner = part if inner is None else inner + part
    if gs is not None:
        inner = inner + F.diag_embed(gs).to(inner.dtype)
    if u.dtype.is_complex and turned is not None and gvh is not None:
        inner = inner + F.diag_embed(turned.diagonal(0, -2, -1) / (2 * s))
    if m > k and gu is not None:
        outside = gu / s.unsqueeze(-2)
        return (u @ inner + outside - u @ (_h(u) @ outside)) @ vh
    if n > k and gvh is not None:
        outside = gvh / s.unsqueeze(-1)
        return u @ (inner @ vh + outside - (outside @ _h(vh)) @ vh)
    return u @ inner @ vh


@kernel(
    name="linalg.svd",
    spaces=("linalg.",),
    method=False,
    fields=("U", "S", "Vh"),
    vjp={"A": _singular_values_gradient},
    node="LinalgSvdBackward0",
    example="linalg.svd(tensor([[3., 0.], [0., 4.]])).S",
)
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """A = U diag(S) Vh with singular values descending; columns are unique up to a factor of
    size 1. ``full_matrices`` false gives only the columns that S has values for."""
    check_matrix("linalg.svd", A)
    check_float("linalg.svd", A.dtype, stub="linalg_svd_cpu")
    if driver is not None:
        raise TensorRuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with "
            "cuSOLVER backend."
        )
    *lead, m, n = A.layout.shape
    k = min(m, n)

    def run(xp: Any) -> Any:
        return decomposed(xp, A.array, full_matrices)

    return (
        made(A.dtype, column_major((*lead, m, m if full_matrices else k)), run),
        made(dtypes.real_of(A.dtype), (*lead, k), run),
        made(A.dtype, column_major((*lead, n if full_matrices else k, n)), run),
    )


@composite(
    name="linalg.svdvals",
    spaces=("linalg.",),
    method=False,
    example="linalg.svdvals(tensor([[3., 0.], [0., 4.]]))",
)
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values, descending."""
    return _linalg("svd")(A, full_matrices=False, driver=driver)[1]


@composite(name="svd", example="svd(tensor([[3., 0.], [0., 4.]])).S")
def old_svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """Singular values as (U, S, V), V not transposed; ``some`` for the reduced form."""
    if input.ndim < 2:
        raise TensorRuntimeError(
            "linalg.svd: input should have at least 2 dimensions, but has "
            f"{input.ndim} dimensions instead"
        )
    returns = named("svd", ("U", "S", "V"))
    if compute_uv:
        u, s, vh = _linalg("svd")(input, full_matrices=not some)
        return returns((u, s, _h(vh)))
    *lead, m, n = input.layout.shape
    s = _linalg("svdvals")(input)
    return returns((input.new_zeros((*lead, m, m)), s, input.new_zeros((*lead, n, n))))


def _qr_tall(gq: Any, gr: Any, q: Tensor, r: Tensor) -> Tensor:
    inner: Any = None
    if gr is not None:
        inner = gr @ _h(r)
    if gq is not None:
        part = _h(q) @ gq
        inner = -part if inner is None else inner - part
    inner = F.triu(inner)
    both = inner + _h(inner)
    own = F.diag_embed(
        F.real(both.diagonal(0, -2, -1)) if both.dtype.is_complex else both.diagonal(0, -2, -1)
    )
    whole = q @ (both - 0.5 * own)
    if gq is not None:
        whole = whole + gq
    return _triangle(_h(r), whole, upper=False, left=False)


def _qr_gradient(g: Any, y: Any, mode: str) -> Tensor:
    q, r = y
    gq, gr = g
    m, n = q.layout.shape[-2], r.layout.shape[-1]
    if mode == "r":
        raise TensorRuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. "
            "Please use linalg.qr(A, mode='reduced') if you are going to require gradients "
            "through Q."
        )
    if mode == "complete" and m > n:
        raise TensorRuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."
        )
    if m >= n:
        return _qr_tall(gq, gr, q, r)
    left, right = r.narrow(-1, 0, m), r.narrow(-1, m, n - m)
    if gr is None:
        return F.cat((_qr_tall(gq, None, q, left), F.zeros_like(q @ right)), -1)
    g_left, g_right = gr.narrow(-1, 0, m), gr.narrow(-1, m, n - m)
    along = (q @ right) @ _h(g_right)
    first = _qr_tall(along if gq is None else gq + along, g_left, q, left)
    return F.cat((first, q @ g_right), -1)


@kernel(
    name="linalg.qr",
    spaces=("linalg.",),
    method=False,
    fields=("Q", "R"),
    vjp={"A": _qr_gradient},
    node="LinalgQrBackward0",
    example="linalg.qr(tensor([[3., 1.], [4., 2.]])).R",
)
def qr(A: Tensor, mode: str = "reduced") -> Any:
    """A = Q R with orthonormal columns in Q and R upper triangular; mode "reduced", "complete" or
    "r" (Q is left empty)."""
    check_matrix("linalg.qr", A)
    check_float("linalg.qr", A.dtype, stub="geqrf_cpu")
    if mode not in ("reduced", "complete", "r"):
        raise TensorRuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), "
            "'r', or 'complete'"
        )
    *lead, m, n = A.layout.shape
    k = m if mode == "complete" else min(m, n)

    def run(xp: Any) -> Any:
        if mode == "r":
            return [xp.empty((0,), A.array.dtype), xp.linalg.qr(A.array, "r")]
        return list(xp.linalg.qr(A.array, mode))

    q_shape: tuple[int, ...] = (0,) if mode == "r" else (*lead, m, k)
    return (
        made(A.dtype, column_major(q_shape), run),
        made(A.dtype, column_major((*lead, k, n)), run),
    )


@composite(name="qr", example="qr(tensor([[3., 1.], [4., 2.]])).R")
def old_qr(input: Tensor, some: bool = True) -> Any:
    """As linalg.qr, the older name."""
    q, r = _linalg("qr")(input, "reduced" if some else "complete")
    return named("qr", ("Q", "R"))((q, r))
