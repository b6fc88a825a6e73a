"""Norms of vectors, distances, and rows scaled to a norm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine.errors import DtypeError, TensorRuntimeError
from engine.kinds import kernel, made
from engine.kinds.composite import composite
from engine.kinds.reduction import reduced_shape
from engine.kinds.results import cast
from engine.layout import broadcast_shapes, wrap_dim, wrap_dims
from engine.ops.reductions import spread
from engine.registry import F, functions, ops
from engine.summing import squares, total
from engine.tensor import Tensor, kind_of

if TYPE_CHECKING:
    from engine.dtypes import DType
    from engine.kinds import Made
    from engine.parameter_types import Dim, Dims, Scalar

_INF = float("inf")


def _check_dtypes(name: str, given: DType, dtype: DType | None) -> None:
    if given.category < dtypes.FLOAT:
        raise DtypeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {given.title}"
        )
    if dtype is None:
        return
    if dtype.category < dtypes.FLOAT:
        raise DtypeError(
            f"{name}: dtype should be floating point or complex, but got {dtype.title}"
        )
    if given.is_complex != dtype.is_complex:
        wanted = "complex" if given.is_complex else "real"
        raise DtypeError(
            f"{name}: dtype should be {wanted} for {wanted} inputs, but got {dtype.title}"
        )
    if dtypes.promote(given, dtype) is not dtype:
        raise DtypeError(
            f"{name}: the dtype of the input ({given.title}) should be convertible without "
            f"narrowing to the specified dtype ({dtype.title})"
        )


def _written(order: float) -> str:
    return f"{order:g}"


def _check_identity(shape: tuple[int, ...], dim: Any, dims: tuple[int, ...], order: float) -> None:
    """A negative or infinite norm has no value for nothing."""
    if 0 not in shape or not (order < 0 or order == _INF):
        return
    if dim is None or dim == ():
        raise TensorRuntimeError(
            f"linalg.vector_norm cannot compute the {_written(order)} norm on an empty tensor "
            "because the operation does not have an identity"
        )
    for d in dims:
        if shape[d] == 0:
            raise TensorRuntimeError(
                f"linalg.vector_norm cannot compute the {_written(order)} norm on the dimension "
                f"{d}because this dimension is empty and the operation does not have an identity"
            )


def vector_norm_of(xp: Any, x: Any, order: float, axes: Any) -> Any:
    """The norm of an array over ``axes`` (None for all); real for complex input."""
    if order == 2:
        return xp.sqrt(squares(xp, x if x.dtype.kind == "f" else xp.abs(x), axes))
    size = xp.abs(x)
    if order == 1:
        return total(xp, size, axes)
    if order == 0:
        return xp.count_nonzero(size, axis=axes).astype(size.dtype)
    if order in (_INF, -_INF):
        if size.size == 0:
            return xp.add.reduce(size, axis=axes)
        return (xp.maximum if order > 0 else xp.minimum).reduce(size, axis=axes)
    return total(xp, size**order, axes) ** (1.0 / order)


def _norm_gradient(
    g: Tensor, y: Tensor, x: Tensor, ord: Any, dim: Any, keepdim: bool, x_dtype: Any
) -> Any:
    shape = x.layout.shape
    x = x.to(y.dtype) if not x.dtype.is_complex and x.dtype is not y.dtype else x
    g, y = spread(g, shape, dim, keepdim), spread(y, shape, dim, keepdim)
    return norm_gradient(g, y, x, float(ord), dim)


def norm_gradient(g: Tensor, y: Tensor, x: Tensor, order: float, dim: Any) -> Any:
    """The gradient of a norm; ``g`` and ``y`` have the reduced dimensions at size 1."""
    if order == 0:
        return None
    if order == 1:
        return x.sgn() * g
    if order == 2:
        return g * (x / y).masked_fill(y == 0, 0)
    size = x.abs()
    if order in (_INF, -_INF):
        ties = (size == y).logical_or((size != size).logical_and(y != y))
        over = tuple(range(x.ndim)) if dim is None or dim == () else dim
        return x.sgn() * (g / ties.sum(over, keepdim=True)) * ties
    if order < 1:
        scaled = (x.sgn() * size.pow(order - 1)).masked_fill(x == 0, 0)
        return scaled * g * y.pow(1 - order)
    if order < 2:
        return x.sgn() * size.pow(order - 1) * (g / y.pow(order - 1)).masked_fill(y == 0, 0)
    return x * size.pow(order - 2) * (g / y.pow(order - 1)).masked_fill(y == 0, 0)


@kernel(
    name="linalg.vector_norm",
    spaces=("linalg.",),
    method=False,
    vjp={"x": _norm_gradient},
    node="LinalgVectorNormBackward0",
    example="linalg.vector_norm(tensor([3., 4.]))",
)
def vector_norm(
    x: Tensor,
    ord: Scalar = 2,
    dim: Dims | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Made:
    """The norm of the elements taken as vectors: (Σ|x|ᵒʳᵈ)^(1/ord), the maximum for inf,
    the count of non-zeros for 0."""
    _check_dtypes("linalg.vector_norm", x.dtype, dtype)
    shape = x.layout.shape
    order = float(ord)
    dims = tuple(range(x.ndim)) if dim is None or dim == () else wrap_dims(dim, x.ndim)
    _check_identity(shape, dim, dims, order)
    final = dtypes.real_of(dtype or x.dtype)

    def run(xp: Any) -> Any:
        array = cast(x.array, kind_of(dtypes.compute_dtype(dtype or x.dtype), x.device))
        return vector_norm_of(xp, array, order, None if len(dims) >= x.ndim else dims)

    return made(final, reduced_shape(shape, dims, keepdim), run)


@composite(example="norm(tensor([3., 4.]))")
def norm(
    input: Tensor,
    p: Any = "fro",
    dim: Dims | None = None,
    keepdim: bool = False,
    dtype: DType | None = None,
) -> Tensor:
    """The norm of the elements: Euclidean, or by ``p`` a number, "fro" or "nuc"."""
    if isinstance(p, str) and p != "fro":
        y: Tensor = _matrix_norm(input, p, dim, keepdim, dtype)
        return y
    order = 2.0 if p is None or p == "fro" else p
    y = ops["linalg.vector_norm"].function(input, order, dim, keepdim, dtype=dtype)
    return y


def _matrix_norm(input: Tensor, p: str, dim: Any, keepdim: bool, dtype: DType | None) -> Any:
    if p != "nuc":
        raise TensorRuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
    if dim is not None and len(dim) != 2:
        listed = ", ".join(map(str, dim))
        raise TensorRuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {listed}")
    matrix_norm = functions["linalg.matrix_norm"]
    return matrix_norm(input, p, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)


def _distance_gradient(g: Tensor, y: Tensor, input: Tensor, other: Tensor, p: Any) -> Any:
    away = input - other
    grad = norm_gradient(
        g.reshape((1,) * away.ndim), y.reshape((1,) * away.ndim), away, float(p), None
    )
    return grad, -grad


def _check_difference(input: Tensor, other: Tensor) -> None:
    if input.dtype.is_bool and other.dtype.is_bool:
        raise DtypeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` "
            "or `logical_xor()` operator instead."
        )
    if input.dtype.is_bool or other.dtype.is_bool:
        raise DtypeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are "
            "trying to invert a mask, use the `~` or `logical_not()` operator instead."
        )


@kernel(
    vjp={"input,other": _distance_gradient},
    out=False,
    example="dist(tensor([1., 2.]), tensor([4., 6.]))",
)
def dist(input: Tensor, other: Tensor, p: Scalar = 2) -> Made:
    """The ``p``-norm of the difference of two tensors that broadcast."""
    _check_difference(input, other)
    common = dtypes.result_type([input.dtype, other.dtype], [], [])
    broadcast_shapes(input.layout.shape, other.layout.shape)
    if common.category < dtypes.FLOAT:
        raise DtypeError(
            "norm(): input dtype should be either floating point or complex. Got "
            f"{common.title} instead."
        )

    def run(xp: Any) -> Any:
        kind = kind_of(dtypes.compute_dtype(common), input.device)
        away = cast(input.array, kind) - cast(other.array, kind)
        return vector_norm_of(xp, away, float(p), None)

    return made(dtypes.real_of(common), (), run)


def _renorm_gradient(g: Tensor, input: Tensor, p: Any, dim: int, maxnorm: Any) -> Any:
    over = tuple(i for i in range(input.ndim) if i != dim % input.ndim)
    length = ops["linalg.vector_norm"].function(input, p, over, True)
    along = (g * F.conj_physical(input)).real if input.dtype.is_complex else g * input
    along = along.sum(over, True)
    inverse = 1 / (length + 1e-7)
    back = norm_gradient(along, length, input, float(p), over)
    shrunk = maxnorm * inverse * (g - inverse * back)
    return F.where(length > maxnorm, shrunk, g)


@kernel(
    vjp=_renorm_gradient,
    inplace=True,
    example="renorm(tensor([[3., 4.], [0.3, 0.4]]), 2, 0, 1)",
)
def renorm(input: Tensor, p: Scalar, dim: Dim, maxnorm: Scalar) -> Made:
    """The slices along ``dim``, those of a norm above ``maxnorm`` scaled down to it."""
    if float(p) <= 0:
        raise TensorRuntimeError("renorm: non-positive-norm not supported")
    if input.ndim < 2:
        raise TensorRuntimeError(
            f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions"
        )
    if maxnorm < 0:
        raise TensorRuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    d = wrap_dim(dim, input.ndim)
    _check_dtypes("linalg.vector_norm", input.dtype, None)
    axes = tuple(i for i in range(input.ndim) if i != d)

    def run(xp: Any) -> Any:
        x = cast(input.array, kind_of(dtypes.compute_dtype(input.dtype), input.device))
        length = xp.expand_dims(vector_norm_of(xp, x, float(p), axes), axes)
        return x * xp.where(length > maxnorm, maxnorm / (length + 1e-7), 1).astype(length.dtype)

    return made(input.dtype, input.layout.shape, run)
