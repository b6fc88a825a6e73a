"""Singular values of matrices of nearly low rank, from random projections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import TensorValueError
from engine.modes import state
from engine.registry import F, function

if TYPE_CHECKING:
    from engine.tensor import Tensor


def _basis(a: Tensor, q: int, niter: int) -> Tensor:
    """Orthonormal columns that span most of what ``a`` maps to (Halko et al., algorithm 4.4)."""
    kept = a.dtype.is_floating_point or a.dtype.is_complex
    dtype = a.dtype if kept else state.default_dtype
    drawn = F.randn((a.shape[-1], q), dtype=dtype, device=a.device)
    found = _orthonormal(a.matmul(drawn))
    for _ in range(niter):
        found = _orthonormal(a.mH.matmul(found))
        found = _orthonormal(a.matmul(found))
    return found


def _orthonormal(x: Tensor) -> Tensor:
    return F.qr(x)[0]


def _decomposed(a: Tensor, q: int, niter: int) -> tuple[Tensor, Tensor, Tensor]:
    wide = a.shape[-2] < a.shape[-1]
    if wide:
        a = a.mH
    basis = _basis(a, q, niter)
    u, s, v = F.svd(basis.mH.matmul(a))
    u = basis.matmul(u)
    return (v, s, u) if wide else (u, s, v)


@function("svd_lowrank")
def svd_lowrank(A: Any, q: Any = 6, niter: Any = 2, M: Any = None) -> tuple[Tensor, Tensor, Tensor]:
    """U, S, V of the first ``q`` singular values of ``A - M``, from ``niter`` subspace steps."""
    if M is not None:
        A = A - M.broadcast_to(A.shape)
    return _decomposed(A, 6 if q is None else q, niter)


@function("pca_lowrank")
def pca_lowrank(
    A: Any, q: Any = None, center: Any = True, niter: Any = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """U, S, V of the columns of ``A``, by default each less its mean: V has the directions."""
    least = min(A.shape[-2:])
    if q is None:
        q = min(6, least)
    elif not 0 <= q <= least:
        raise TensorValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)={least}"
        )
    if niter < 0:
        raise TensorValueError(f"niter(={niter}) must be non-negative integer")
    return _decomposed(A - A.mean((-2,), keepdim=True) if center else A, q, niter)
