"""Norms of matrices, the norm that chooses by dimensions, and condition numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine.errors import TensorRuntimeError
from engine.kinds import composite
from engine.layout import wrap_dim
from engine.matrices import check_float, check_matrix, check_square
from engine.overloads import no_overload
from engine.registry import functions

if TYPE_CHECKING:
    from engine.dtypes import DType
    from engine.parameter_types import Dims
    from engine.tensor import Tensor

_INF = float("inf")
_ORDERS = (1, -1, 2, -2, _INF, -_INF)


def _linalg(name: str) -> Any:
    return functions[f"linalg.{name}"]


def _written(order: Any) -> str:
    return order if isinstance(order, str) else f"{order:g}"


def _unsupported(order: Any) -> TensorRuntimeError:
    return TensorRuntimeError(f"linalg.matrix_norm: Order {_written(order)} not supported.")


def _of_singular_values(x: Tensor, order: Any, dims: tuple[int, int], keepdim: bool) -> Tensor:
    """Sum, maximum or minimum of the singular values of the matrices in ``dims``."""
    rest = [d for d in range(x.ndim) if d not in dims]
    order_of_dims = (*rest, *dims)
    values = _linalg("svdvals")(x.permute(order_of_dims))
    if order == "nuc":
        y = values.sum((-1,), keepdim)
    elif values.layout.shape[-1] == 0 and order == 2:
        y = values.sum((-1,), keepdim)
    else:
        y = values.amax((-1,), keepdim) if order == 2 else values.amin((-1,), keepdim)
    if not keepdim:
        return y
    back = [0] * x.ndim
    for at, d in enumerate(order_of_dims):
        back[d] = at
    return y.unsqueeze(-1).permute(tuple(back))


_MATRIX_NORM = (
    "(Tensor input, Number ord, tuple of ints dim = {-2,-1}, bool keepdim = False, *, "
    "torch.dtype dtype = None, Tensor out = None)",
    '(Tensor input, str ord = "fro", tuple of ints dim = {-2,-1}, bool keepdim = False, *, '
    "torch.dtype dtype = None, Tensor out = None)",
)
_NORM = (
    "(Tensor input, Number ord = None, tuple of ints dim = None, bool keepdim = False, *, "
    "torch.dtype dtype = None, Tensor out = None)",
    "(Tensor input, str ord, tuple of ints dim = None, bool keepdim = False, *, "
    "torch.dtype dtype = None, Tensor out = None)",
)


@composite(
    name="linalg.matrix_norm",
    spaces=("linalg.",),
    method=False,
    example="linalg.matrix_norm(tensor([[3., 0.], [0., 4.]]), 'nuc')",
)
def matrix_norm(
    input: Tensor,
    ord: Any = "fro",
    dim: Dims = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """The norm of matrices: "fro", "nuc", ±1 and ±inf (sums of columns and rows), ±2 (singular
    values)."""
    if not isinstance(ord, (str, int, float)):
        raise no_overload("linalg_matrix_norm", (input,), {"ord": ord}, _MATRIX_NORM)
    check_matrix("linalg.matrix_norm", input)
    if len(dim) != 2:
        listed = " ".join(map(str, dim))
        raise TensorRuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {listed}")
    if input.dtype.category < dtypes.FLOAT:
        check_float("linalg.matrix_norm", input.dtype)
    a, b = wrap_dim(dim[0], input.ndim), wrap_dim(dim[1], input.ndim)
    if a == b:
        raise TensorRuntimeError(
            f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})"
        )
    if ord == "fro":
        return _linalg("vector_norm")(input, 2, (a, b), keepdim, dtype=dtype)
    if isinstance(ord, str):
        if ord != "nuc":
            raise _unsupported(ord)
    elif ord not in _ORDERS:
        raise _unsupported(ord)
    if isinstance(ord, str) or abs(ord) == 2:
        check_float("linalg.matrix_norm", input.dtype)
        x = input if dtype is None else input.to(dtype)
        return _of_singular_values(x, ord, (a, b), keepdim)
    if abs(ord) == _INF:
        a, b = b, a
    lengths = _linalg("vector_norm")(input, 1, (a,), keepdim, dtype=dtype)
    if not keepdim and b > a:
        b -= 1
    return lengths.amax((b,), keepdim) if ord > 0 else lengths.amin((b,), keepdim)


@composite(
    name="linalg.norm",
    spaces=("linalg.",),
    method=False,
    example="linalg.norm(tensor([3., 4.]))",
)
def norm(
    input: Tensor,
    ord: Any = None,
    dim: Dims | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """The 2-norm of all elements, or with ``ord`` that of a vector or a matrix, by the number of
    dimensions given."""
    if not (ord is None or isinstance(ord, (str, int, float))):
        raise no_overload("linalg_norm", (input,), {"ord": ord}, _NORM)
    if dim is not None and len(dim) not in (1, 2):
        raise TensorRuntimeError(
            f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}"
        )
    if ord is not None and dim is None and input.ndim not in (1, 2):
        raise TensorRuntimeError(
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
            f"{input.ndim}D."
        )
    matrix = isinstance(ord, str) or (
        ord is not None and (len(dim) == 2 if dim is not None else input.ndim == 2)
    )
    if matrix:
        over = (-2, -1) if dim is None else dim
        return _linalg("matrix_norm")(input, ord, over, keepdim, dtype=dtype)
    order = 2 if ord is None else ord
    return _linalg("vector_norm")(input, order, dim, keepdim, dtype=dtype)


@composite(method=False, example="nuclear_norm(tensor([[3., 0.], [0., 4.]]))")
def nuclear_norm(input: Tensor, dim: Dims = (-2, -1), keepdim: bool = False) -> Tensor:
    """The sum of the singular values."""
    return _linalg("matrix_norm")(input, "nuc", dim, keepdim)


@composite(method=False, example="frobenius_norm(tensor([[3., 0.], [0., 4.]]), (0, 1))")
def frobenius_norm(input: Tensor, dim: Dims, keepdim: bool = False) -> Tensor:
    """The square root of the sum of squares over one or two dimensions."""
    return _linalg("vector_norm")(input, 2, dim, keepdim)


@composite(
    name="linalg.cond",
    spaces=("linalg.",),
    method=False,
    example="linalg.cond(tensor([[1., 0.], [0., 4.]]))",
)
def cond(input: Tensor, p: Any = None) -> Tensor:
    """The norm of a matrix times that of its inverse; inf for a singular one."""
    if input.ndim < 2:
        raise TensorRuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p is None or p in (2, -2):
        values = _linalg("svdvals")(input)
        k = values.layout.shape[-1]
        if k == 0:
            return input.new_zeros(input.layout.shape[:-2])
        largest, least = values.narrow(-1, 0, 1), values.narrow(-1, k - 1, 1)
        ratio = least / largest if p == -2 else largest / least
        return ratio.squeeze(-1)
    if p not in ("fro", "nuc") and (isinstance(p, str) or p not in _ORDERS):
        raise TensorRuntimeError(f"linalg.cond got an invalid norm type: {_written(p)}")
    check_square(f"linalg.cond(ord={_written(p)})", input)
    if input.layout.numel == 0:
        return input.new_zeros(input.layout.shape[:-2])
    inverse, info = _linalg("inv_ex")(input)
    inverse = inverse.masked_fill_((info > 0).unsqueeze(-1).unsqueeze(-1), _INF)
    size = _linalg("matrix_norm")(input, p) * _linalg("matrix_norm")(inverse, p)
    return size.nan_to_num(_INF, _INF, -_INF)
