"""Functions of matrices made of products: powers, exponentials, chains, Vandermonde, tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import DtypeError, TensorRuntimeError
from engine.formats import contiguous_format
from engine.kinds import composite, kernel, made, working
from engine.matrices import check_float, check_square
from engine.plain_calls import check_tensors
from engine.registry import F, function, functions

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.parameter_types import Dim, Dims, Tensors
    from engine.tensor import Tensor


def _linalg(name: str) -> Any:
    return functions[f"linalg.{name}"]


def _count(shape: Any) -> int:
    n = 1
    for size in shape:
        n *= size
    return n


@composite(
    name="linalg.matrix_power",
    spaces=("linalg.",),
    method=False,
    example="linalg.matrix_power(tensor([[1., 1.], [0., 1.]]), 5)",
)
def linalg_matrix_power(A: Tensor, n: int) -> Tensor:
    """A square matrix times itself; a negative power is one of the inverse."""
    check_square("linalg.matrix_power", A)
    if n == 0:
        eye = F.eye(A.layout.shape[-1], dtype=A.dtype, device=A.device)
        return A.clone(memory_format=contiguous_format).copy_(eye)
    if n == 1:
        return A.clone()
    base = _linalg("inv")(A) if n < 0 else A
    n = abs(n)
    if n <= 3:
        y = base if n == 1 else base @ base
        return y @ base if n == 3 else y
    result: Any = None
    power: Any = None
    while n:
        power = base if power is None else power @ power
        if n % 2:
            result = power if result is None else result @ power
        n //= 2
    return result


@composite(example="matrix_power(tensor([[1., 1.], [0., 1.]]), 5)")
def matrix_power(input: Tensor, n: int) -> Tensor:
    """A square matrix times itself; a negative power is one of the inverse."""
    return _linalg("matrix_power")(input, n)


# Coefficients of the diagonal Padé approximant of degree 13 (Higham 2005); good for norms
# below 5.37.
_PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0,
    129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0,
    40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
_PADE_NORM = 5.37
_MOST_SQUARINGS = 1023  # the largest double is below 2 to the power of one more


def _exponential(xp: Any, a: Any) -> Any:
    """The exponential by scaling, Padé and squaring, in double precision."""
    x = a.astype("complex128" if a.dtype.kind == "c" else "float64")
    n = x.shape[-1]
    if x.size == 0:
        return x
    sizes = xp.abs(x).sum(axis=-2).max(axis=-1)
    largest = float(sizes.max())
    squarings = 0
    while largest > _PADE_NORM and squarings < _MOST_SQUARINGS:
        largest /= 2
        squarings += 1
    x = x / 2.0**squarings
    b = _PADE
    eye = xp.broadcast_to(xp.eye(n, dtype=x.dtype), x.shape)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    odd = x6 @ (b[13] * x6 + b[11] * x4 + b[9] * x2)
    odd = x @ (odd + b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * eye)
    even = x6 @ (b[12] * x6 + b[10] * x4 + b[8] * x2)
    even = even + b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * eye
    y = xp.linalg.solve(even - odd, even + odd)
    for _ in range(squarings):
        y = y @ y
    return y


def _exponential_gradient(g: Tensor, A: Tensor) -> Tensor:
    """The upper right block of exp([[Aᴴ, g], [0, Aᴴ]])."""
    n = A.layout.shape[-1]
    h = A.mH
    above = F.cat((h, g), -1)
    below = F.cat((F.zeros_like(h), h), -1)
    whole = _linalg("matrix_exp")(F.cat((above, below), -2))
    return whole.narrow(-2, 0, n).narrow(-1, n, n)


@kernel(
    name="linalg.matrix_exp",
    spaces=("linalg.",),
    method=False,
    vjp={"A": _exponential_gradient},
    node="LinalgMatrixExpBackward0",
    out=False,
    example="linalg.matrix_exp(zeros(2, 2))",
)
def linalg_matrix_exp(A: Tensor) -> Made:
    """The exponential of each square matrix (not of its elements)."""
    check_square("linalg.matrix_exp", A)
    check_float("linalg.matrix_exp", A.dtype, low=True)
    return made(A.dtype, A.layout.shape, lambda xp: _exponential(xp, working(A)))


@composite(out=False, example="matrix_exp(zeros(2, 2))")
def matrix_exp(input: Tensor) -> Tensor:
    """The exponential of each square matrix (not of its elements)."""
    return _linalg("matrix_exp")(input)


def _cheapest(tensors: list[Tensor]) -> Tensor:
    """The product in the order that takes the fewest multiplications."""
    if len(tensors) == 2:
        return tensors[0].mm(tensors[1])
    sizes = [t.layout.shape[0] for t in tensors] + [tensors[-1].layout.shape[1]]
    if len(tensors) == 3:
        a, b, c, d = sizes
        first, second, third = tensors
        if a * c * (b + d) > b * d * (a + c):
            return first.mm(second.mm(third))
        return first.mm(second).mm(third)
    n = len(tensors)
    cost = [[0] * n for _ in range(n)]
    cut = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            best = None
            for k in range(i, j):
                c = cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                if best is None or c < best:
                    best, cut[i][j] = c, k
            cost[i][j] = best or 0

    def product(i: int, j: int) -> Tensor:
        if i == j:
            return tensors[i]
        return product(i, cut[i][j]).mm(product(cut[i][j] + 1, j))

    return product(0, n - 1)


def _check_chain(tensors: Tensors) -> None:
    last = len(tensors) - 1
    for at, t in enumerate(tensors):
        if at in (0, last):
            if t.ndim not in (1, 2):
                which = "first" if at == 0 else "last"
                raise TensorRuntimeError(
                    f"multi_dot(): the {which} tensor must be 1D or 2D but got {t.ndim}D"
                )
        elif t.ndim != 2:
            raise TensorRuntimeError(f"multi_dot(): tensor {at} must be 2D but got {t.ndim}D")
    for at, t in enumerate(tensors):
        if t.dtype is not tensors[0].dtype:
            raise DtypeError(
                "multi_dot(): all tensors must have be the same dtype but tensor 0 is "
                f"{tensors[0].dtype.c_type} and tensor {at} {t.dtype.c_type}"
            )


@composite(
    name="linalg.multi_dot",
    spaces=("linalg.",),
    method=False,
    example="linalg.multi_dot([ones(2, 3), ones(3, 4), ones(4, 1)])",
)
def multi_dot(tensors: Tensors) -> Tensor:
    """The product of several matrices in the cheapest order; the first and last may be vectors."""
    if len(tensors) < 2:
        raise TensorRuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    _check_chain(tensors)
    matrices = list(tensors)
    shape: list[int] = []
    if matrices[0].ndim == 1:
        matrices[0] = matrices[0].unsqueeze(0)
    else:
        shape.append(matrices[0].layout.shape[0])
    if matrices[-1].ndim == 1:
        matrices[-1] = matrices[-1].unsqueeze(-1)
    else:
        shape.append(matrices[-1].layout.shape[1])
    for at in range(len(matrices) - 1):
        if matrices[at].layout.shape[1] != matrices[at + 1].layout.shape[0]:
            raise TensorRuntimeError(
                f"multi_dot(): tensors {at} and {at + 1} with shapes "
                f"{list(matrices[at].layout.shape)} and {list(matrices[at + 1].layout.shape)} "
                "cannot be multiplied"
            )
    return _cheapest(matrices).view(tuple(shape))


@function("chain_matmul")
def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of several matrices in the cheapest order; an older name of multi_dot."""
    if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)):
        matrices = tuple(matrices[0])
    if not matrices:
        raise TensorRuntimeError("chain_matmul(): Expected one or more matrices")
    check_tensors(matrices)
    for t in matrices:
        if t.ndim != 2:
            raise TensorRuntimeError(f"Tensor dimension is {t.ndim}, expected 2 instead.")
    if len(matrices) == 1:
        return matrices[0]
    return _linalg("multi_dot")(matrices)


@composite(
    name="linalg.vander",
    spaces=("linalg.",),
    method=False,
    out=False,
    example="linalg.vander(tensor([1., 2., 3.]))",
)
def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers 0 to N-1 of each element along a new last dimension."""
    if x.dtype.is_bool:
        raise DtypeError(
            "linalg.vander supports floating point, complex, and integer tensors, but got Bool"
        )
    if x.ndim == 0:
        x = x.unsqueeze(-1)
    n = x.layout.shape[-1] if N is None else N
    if n <= 1:
        raise TensorRuntimeError("N must be greater than 1.")
    rows = x.unsqueeze(-1).expand((*x.layout.shape, n - 1))
    powers = rows.cumprod(-1)
    return F.cat((powers.new_ones((*x.layout.shape, 1)), powers), -1)


@composite(
    name="linalg.diagonal",
    spaces=("linalg.",),
    method=False,
    view="always",
    out=False,
    example="linalg.diagonal(tensor([[1., 2.], [3., 4.]]))",
)
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: Dim = -2, dim2: Dim = -1) -> Tensor:
    """The diagonals of matrices as a last dimension. A view: no data moves."""
    return A.diagonal(offset, dim1, dim2)


@composite(
    name="linalg.tensorinv",
    spaces=("linalg.",),
    method=False,
    example="linalg.tensorinv(eye(4).reshape(2, 2, 4), 2).shape",
)
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of tensordot: the first ``ind`` dimensions made one, the rest made the other."""
    if ind <= 0:
        raise TensorRuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    shape = tuple(A.layout.shape)
    first, second = shape[:ind], shape[ind:]
    rows, columns = _count(first), _count(second)
    if rows != columns:
        raise TensorRuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {columns} != {rows}"
        )
    return _linalg("inv")(A.reshape((columns, rows))).reshape((*second, *first))


@composite(
    name="linalg.tensorsolve",
    spaces=("linalg.",),
    method=False,
    example="linalg.tensorsolve(eye(4).reshape(2, 2, 4), ones(2, 2))",
)
def tensorsolve(A: Tensor, B: Tensor, dims: Dims | None = None) -> Tensor:
    """X with tensordot(A, X, X.ndim) = B; ``dims`` of A are moved to its end first."""
    if dims is not None:
        ends = tuple(range(A.ndim - len(dims), A.ndim))
        A = A.movedim(tuple(dims), ends)
    shape = tuple(A.layout.shape)
    columns, rows = _count(shape[B.ndim :]), _count(shape[: B.ndim])
    if columns != rows:
        raise TensorRuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {columns} != {rows}"
        )
    flat = _linalg("solve")(A.reshape((columns, columns)), B.flatten())
    return flat.reshape(shape[B.ndim :])
