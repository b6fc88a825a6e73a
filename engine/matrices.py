"""What decompositions share: layouts, refusals in PyTorch's words, and small numeric routines.

It works on arrays and layouts; it knows no ops and records nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine import layout as layouts
from engine.errors import DtypeError, DtypeNotImplementedError, LinAlgError, TensorRuntimeError

if TYPE_CHECKING:
    from engine.dtypes import DType
    from engine.layout import Layout
    from engine.tensor import Tensor


def column_major(shape: tuple[int, ...]) -> Layout:
    """The layout of LAPACK's results: each matrix of a batch stored column by column."""
    if len(shape) < 2:
        return layouts.contiguous(shape)
    swapped = (*shape[:-2], shape[-1], shape[-2])
    strides = layouts.contiguous_strides(swapped)
    return layouts.layout(shape, (*strides[:-2], strides[-1], strides[-2]))


def check_matrix(name: str, t: Tensor, what: str = "A") -> None:
    """Refuse a tensor of fewer than two dimensions."""
    if t.ndim < 2:
        raise TensorRuntimeError(
            f"{name}: The input tensor {what} must have at least 2 dimensions."
        )


def check_square(name: str, t: Tensor, what: str = "A") -> None:
    """Refuse what is no batch of square matrices."""
    check_matrix(name, t, what)
    m, n = t.layout.shape[-2:]
    if m != n:
        raise TensorRuntimeError(
            f"{name}: {what} must be batches of square matrices, but they are {m} by {n} matrices"
        )


def check_float(name: str, dtype: DType, low: bool = False, stub: str = "") -> None:
    """Refuse integers, and the low-precision types unless ``low``; with ``stub`` these are refused
    by the kernel of that name."""
    if dtype.category < dtypes.FLOAT:
        raise DtypeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {dtype.title}"
        )
    if stub:
        check_kernel(stub, dtype)
    if dtype.low and not low:
        raise DtypeError(f"{name}: Low precision dtypes not supported. Got {dtype.title}")


def check_kernel(stub: str, dtype: DType) -> None:
    """Refuse what LAPACK has no routine for: all but float, double and the complex types."""
    if dtype.category < dtypes.FLOAT or dtype.low:
        raise DtypeNotImplementedError(f"\"{stub}\" not implemented for '{dtype.title}'")


def check_same(name: str, a: Tensor, b: Tensor, first: str = "A", second: str = "B") -> None:
    """Refuse two matrices of different dtypes."""
    if a.dtype is not b.dtype:
        raise DtypeError(
            f"{name}: Expected {first} and {second} to have the same dtype, but found {first} of "
            f"type {a.dtype.title} and {second} of type {b.dtype.title} instead"
        )


_WIDE = {"f": "float64", "d": "float64", "F": "complex128", "D": "complex128"}


def numel(shape: tuple[int, ...]) -> int:
    """The number of elements of that shape."""
    n = 1
    for size in shape:
        n *= size
    return n


def batch_note(shape: tuple[int, ...], at: int) -> str:
    """Where in a batch of matrices the fault lies; nothing for a single matrix."""
    return f"(Batch element {at}): " if len(shape) > 2 else ""


def singular(name: str, shape: tuple[int, ...], at: int, pivot: int) -> LinAlgError:
    """The error for a matrix with a zero pivot (counted from 1)."""
    return LinAlgError(
        f"{name}: {batch_note(shape, at)}The diagonal element {pivot} is zero, the inversion "
        "could not be completed because the input matrix is singular."
    )


def lu(xp: Any, a: Any) -> tuple[Any, Any, Any]:
    """L and U in one array, the row exchanges (from 1) and the first zero pivot (0: none), with
    partial pivoting, for a batch of matrices. BLAS measures a complex number by |re| + |im|."""
    whole = xp.array(a, order="C")
    m, n = whole.shape[-2:]
    k = min(m, n)
    lead = whole.shape[:-2]
    count = numel(lead)
    flat = whole.reshape((count, m, n))
    pivots = xp.zeros((count, k), "int32")
    complex_ = whole.dtype.kind == "c"
    info = xp.zeros((flat.shape[0],), "int32")
    for at, x in enumerate(flat):
        for j in range(k):
            column = x[j:, j]
            if complex_:
                column = xp.abs(column.real) + xp.abs(column.imag)
            p = j + int(xp.argmax(xp.abs(column)))
            pivots[at, j] = p + 1
            if p != j:
                x[[j, p]] = x[[p, j]]
            if x[j, j] == 0:
                if info[at] == 0:
                    info[at] = j + 1
                continue
            x[j + 1 :, j] /= x[j, j]
            x[j + 1 :, j + 1 :] -= xp.multiply.outer(x[j + 1 :, j], x[j, j + 1 :])
    return flat.reshape(whole.shape), pivots.reshape((*lead, k)), info.reshape(lead)


def permutation(xp: Any, pivots: Any, m: int) -> Any:
    """The order of rows that row exchanges lead to, for a batch."""
    lead = pivots.shape[:-1]
    flat = pivots.reshape((numel(lead), pivots.shape[-1]))
    orders = xp.empty((flat.shape[0], m), "int64")
    for at, row in enumerate(flat):
        order = list(range(m))
        for j, p in enumerate(row.tolist()):
            order[j], order[p - 1] = order[p - 1], order[j]
        orders[at] = order
    return orders.reshape((*lead, m))


def substitute(xp: Any, a: Any, b: Any, upper: bool, unit: bool) -> Any:
    """The solution of a triangular system by substitution; batches broadcast. A zero on the
    diagonal gives inf or nan. Each row is worked out in double precision and rounded, so that the
    rows after it make up for its error."""
    n = a.shape[-1]
    lead = xp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = xp.array(xp.broadcast_to(b, (*lead, *b.shape[-2:])))
    wide = a.astype(_WIDE[a.dtype.char])
    for i in range(n - 1, -1, -1) if upper else range(n):
        known = slice(i + 1, n) if upper else slice(0, i)
        row = x[..., i : i + 1, :] - wide[..., i : i + 1, known] @ x[..., known, :]
        x[..., i : i + 1, :] = row if unit else row / wide[..., i : i + 1, i : i + 1]
    return x


def first_minor(xp: Any, a: Any) -> int:
    """The order of the first leading minor that is not positive; 0 if all are."""
    n = a.shape[-1]
    x = xp.zeros(a.shape, a.dtype)
    for j in range(n):
        d = (a[j, j] - (x[j, :j] * x[j, :j].conj()).sum()).real
        if not d > 0:
            return j + 1
        x[j, j] = d**0.5
        x[j + 1 :, j] = (a[j + 1 :, j] - x[j + 1 :, :j] @ x[j, :j].conj()) / x[j, j]
    return 0


def decomposed(xp: Any, a: Any, whole: bool) -> list[Any]:
    """U, S and Vh; nan for matrices with infinite elements, a refusal of nan ones.

    LAPACK sees neither: for some of them it writes complaints to standard output.
    """
    finite = xp.isfinite(a).all(axis=(-2, -1))
    if not finite.all():
        for at in xp.argwhere(xp.isnan(a).any(axis=(-2, -1))):
            which = f"(Batch element {int(at[0])}): " if len(at) else ""
            raise LinAlgError(
                f"linalg.svd: {which}The algorithm failed to converge because the input matrix "
                "contained non-finite values."
            )
        a = xp.where(finite[..., None, None], a, 0)
    try:
        u, s, vh = xp.linalg.svd(a, full_matrices=whole)
    except xp.linalg.LinAlgError:
        *lead, m, n = a.shape
        k = min(m, n)
        u = xp.empty((*lead, m, m if whole else k), a.dtype)
        s = xp.empty((*lead, k), a.real.dtype)
        vh = xp.empty((*lead, n if whole else k, n), a.dtype)
        finite = xp.zeros(tuple(lead), bool)
    if not finite.all():
        for part in (u, s, vh):
            part[~finite] = xp.nan
    return [u, s, vh]
