"""Products added to something (addmm and its kin), outer and inner products, traces, crosses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine import layout as layouts
from engine.errors import (
    DtypeError,
    DtypeNotImplementedError,
    MatmulError,
    TensorRuntimeError,
)
from engine.kinds import composite, kernel, made, working
from engine.kinds.accumulation import accumulation, scaled_sum
from engine.kinds.conjugate import conj
from engine.layout import wrap_dim
from engine.registry import F, ops
from engine.signature import ArgumentError, type_name

if TYPE_CHECKING:
    from engine.dtypes import DType
    from engine.kinds import Made
    from engine.parameter_types import Dim, Scalar
    from engine.tensor import Tensor


def _dot(x: Any, y: Any) -> Any:
    return x.dot(y)


def _times(g: Tensor, factor: Any) -> Tensor:
    return g if factor == 1 else g * conj(factor)


def _check_fits(input: Tensor, shape: tuple[int, ...]) -> None:
    if input.layout.shape != shape:
        input.expand(shape)


def _check_stub(dtype: DType, stub: str) -> None:
    if dtype.is_bool or dtype.name in ("uint16", "uint32", "uint64"):
        raise DtypeNotImplementedError(f"\"{stub}\" not implemented for '{dtype.title}'")


def _check_same(name: str, first: Tensor, a: Tensor, b: Tensor) -> None:
    if a.dtype is not b.dtype:
        raise DtypeError(
            f"mat1 and mat2 must have the same dtype, but got {a.dtype.title} and {b.dtype.title}"
        )
    if first.dtype is not b.dtype:
        raise DtypeError(
            f"self and mat2 must have the same dtype, but got {first.dtype.title} and "
            f"{b.dtype.title}"
        )
    _check_stub(first.dtype, name)


def _check_two_dim(name: str, t: Tensor) -> None:
    if t.ndim != 2:
        raise TensorRuntimeError(f"{name} must be a matrix, got {t.ndim}-D tensor")


def _column_major(layout: Any) -> bool:
    return layout.strides[0] == 1 and layout.strides[1] == layout.shape[0]


def _addmm_left(g: Tensor, mat2: Tensor, mat1_layout: Any, alpha: Any) -> Tensor:
    if _column_major(mat1_layout):
        return _times(conj(mat2).mm(g.t()).t(), alpha)
    return _times(g.mm(conj(mat2.t())), alpha)


def _addmm_right(g: Tensor, mat1: Tensor, mat2_layout: Any, alpha: Any) -> Tensor:
    if _column_major(mat2_layout):
        return _times(g.t().mm(conj(mat1)).t(), alpha)
    return _times(conj(mat1.t()).mm(g), alpha)


@accumulation(
    vjp={
        "input": lambda g, beta: _times(g, beta),
        "mat1": _addmm_left,
        "mat2": _addmm_right,
    },
    example="addmm(tensor([1., 2.]), tensor([[1., 2.]]), ones(2, 2))",
)
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) -> Any:
    """beta·input + alpha·(mat1 @ mat2); with beta 0 input is not looked at, nan or not."""
    _check_two_dim("mat1", mat1)
    _check_two_dim("mat2", mat2)
    a, b = mat1.layout.shape, mat2.layout.shape
    if a[1] != b[0]:
        raise MatmulError(a, b)
    shape = (a[0], b[1])
    _check_fits(input, shape)
    _check_same("addmm_impl_cpu_", input, mat1, mat2)
    return shape, _dot


@accumulation(
    vjp={
        "input": lambda g, beta: _times(g, beta),
        "mat": lambda g, vec, alpha: _times(F.outer(g, conj(vec)), alpha),
        "vec": lambda g, mat, alpha: _times(conj(mat.t()).mv(g), alpha),
    },
    example="addmv(tensor([1., 2.]), ones(2, 2), tensor([1., 2.]))",
)
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) -> Any:
    """beta·input + alpha·(mat @ vec)."""
    a, b = mat.layout.shape, vec.layout.shape
    if mat.ndim != 2 or vec.ndim != 1 or input.ndim > 1:
        raise MatmulError(
            a, b, f"vector + matrix @ vector expected, got {input.ndim}, {mat.ndim}, {vec.ndim}"
        )
    n = input.layout.numel
    if a[1] != b[0] or (input.ndim == 1 and n not in (1, a[0])):
        raise MatmulError(
            a, b, f"size mismatch, got input ({n}), mat ({a[0]}x{a[1]}), vec ({b[0]})"
        )
    if not input.dtype is mat.dtype is vec.dtype:
        raise DtypeError(
            "addmv input tensors must have the same dtype, but got "
            f"{input.dtype.title}, {mat.dtype.title}, and {vec.dtype.title}"
        )
    _check_stub(input.dtype, "addmv_impl_cpu")
    return (a[0],), _dot


def _check_batches(batch1: Tensor, batch2: Tensor) -> None:
    for t, dims in ((batch1, (0, 1)), (batch2, (2,))):
        for d in dims:
            wrap_dim(d, t.ndim)
    if batch1.ndim != 3:
        raise TensorRuntimeError("batch1 must be a 3D tensor")
    if batch2.ndim != 3:
        raise TensorRuntimeError("batch2 must be a 3D tensor")


def _addbmm_gradient(
    g: Tensor, batch1: Tensor, batch2: Tensor, alpha: Any, needed: tuple[bool, ...]
) -> Any:
    whole = g.unsqueeze(0).expand((batch1.layout.shape[0], *g.layout.shape))
    return (
        _times(whole.bmm(conj(batch2.transpose(1, 2))), alpha) if needed[0] else None,
        _times(conj(batch1.transpose(1, 2)).bmm(whole), alpha) if needed[1] else None,
    )


@accumulation(
    vjp={"input": lambda g, beta: _times(g, beta), "batch1,batch2": _addbmm_gradient},
    example="addbmm(zeros(2, 2), ones(3, 2, 2), ones(3, 2, 2))",
)
def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Any:
    """beta·input + alpha·(the sum of the products of two batches of matrices)."""
    _check_batches(batch1, batch2)
    a, b = batch1.layout.shape, batch2.layout.shape
    shape = (a[1], b[2])
    _check_fits(input, shape)
    if a[0] != b[0]:
        raise TensorRuntimeError(
            f"batch1 and batch2 must have same number of batches, got {a[0]} and {b[0]}"
        )
    if a[2] != b[1]:
        raise MatmulError(
            a, b, f"Incompatible matrix sizes for bmm ({a[1]}x{a[2]} and {b[1]}x{b[2]})"
        )
    _check_same("addmm_impl_cpu_", input, batch1, batch2)

    rows, inside = a[1], a[0] * a[2]

    def multiply(x: Any, y: Any) -> Any:
        return x.swapaxes(0, 1).reshape((rows, inside)).dot(y.reshape((inside, b[2])))

    return shape, multiply


@accumulation(
    vjp={
        "input": lambda g, beta: _times(g, beta),
        "batch1": lambda g, batch2, alpha: _times(g.bmm(conj(batch2.transpose(1, 2))), alpha),
        "batch2": lambda g, batch1, alpha: _times(conj(batch1.transpose(1, 2)).bmm(g), alpha),
    },
    example="baddbmm(zeros(2), ones(1, 2, 2), ones(1, 2, 2))",
)
def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Any:
    """beta·input + alpha·(the products of two batches of matrices)."""
    for t, dims in ((batch1, (0, 1)), (batch2, (2,))):
        for d in dims:
            wrap_dim(d, t.ndim)
    if batch1.ndim == 3 == batch2.ndim:
        rows, columns = batch1.layout.shape[1], batch2.layout.shape[2]
        _check_fits(input, (batch1.layout.shape[0], rows, columns))
    shape, multiply = ops["bmm"].body(batch1, batch2)
    if not input.dtype is batch1.dtype is batch2.dtype:
        raise DtypeError(
            f"Input dtypes must be the same, got: input {input.dtype.c_type}, batch1: "
            f"{batch1.dtype.c_type}, batch2: {batch2.dtype.c_type}"
        )
    _check_stub(input.dtype, "baddbmm")
    return shape, multiply


def _check_whole(dtype: DType, **factors: Any) -> None:
    for name, value in factors.items():
        if dtype.category <= dtypes.INT and not isinstance(value, int):
            raise TensorRuntimeError(
                f"For integral input tensors, argument {name} must not be a floating point number."
            )


@kernel(
    vjp={
        "input": lambda g, beta: _times(g, beta),
        "vec1": lambda g, vec2, alpha: _times(g.mv(conj(vec2)), alpha),
        "vec2": lambda g, vec1, alpha: _times(g.t().mv(conj(vec1)), alpha),
    },
    inplace=True,
    example="addr(zeros(2, 2), tensor([1., 2.]), tensor([3., 4.]))",
)
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1) -> Made:
    """beta·input + alpha·(the outer product of two vectors); dtypes are promoted."""
    for name, t in (("vec1", vec1), ("vec2", vec2)):
        if t.ndim != 1:
            raise TensorRuntimeError(f"addr: Expected 1-D argument {name}, but got {t.ndim}-D")
    shape = (vec1.layout.numel, vec2.layout.numel)
    _check_fits(input, shape)
    tensors = (input, vec1, vec2)
    common = dtypes.result_type(
        [t.dtype for t in tensors if t.ndim], [t.dtype for t in tensors if not t.ndim], []
    )
    _check_whole(common, beta=beta, alpha=alpha)
    layout = layouts.contiguous(shape)
    if input.layout.shape == shape:
        row = layouts.expand(vec2.layout, shape)
        column = layouts.expand(layouts.unsqueeze(vec1.layout, 1), shape)
        layout = layouts.elementwise([input.layout, column, row], shape)

    def run(xp: Any) -> Any:
        x, y = working(vec1, common), working(vec2, common)
        product = xp.multiply.outer(x, y)
        if common.is_bool:
            product = product & bool(alpha)
            return product if not beta else product | input.array
        return scaled_sum(working(input, common), beta, product, alpha)

    return made(common, layout, run)


@composite(aliases=("ger",), example="outer(tensor([1., 2.]), tensor([3., 4.]))")
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Each element of one vector times each of another; dtypes are promoted."""
    if input.ndim != 1:
        raise TensorRuntimeError(f"outer: Expected 1-D argument self, but got {input.ndim}-D")
    if vec2.ndim != 1:
        raise TensorRuntimeError(f"outer: Expected 1-D argument vec2, but got {vec2.ndim}-D")
    return input.reshape((input.layout.numel, 1)) * vec2


@composite(example="inner(tensor([1., 2.]), tensor([3., 4.]))")
def inner(input: Tensor, other: Tensor) -> Tensor:
    """The sum of products over the last dimension of both; a number multiplies."""
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    if input.dtype is not other.dtype:
        raise DtypeError("both inputs should have same dtype")
    a, b = input.layout.shape, other.layout.shape
    if a[-1] != b[-1]:
        raise TensorRuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(a)} and {list(b)}"
        )
    return contract(input, other, (input.ndim - 1,), (other.ndim - 1,))


def _count(shape: Any) -> int:
    n = 1
    for size in shape:
        n *= size
    return n


def contract(a: Tensor, b: Tensor, dims_a: tuple[int, ...], dims_b: tuple[int, ...]) -> Tensor:
    """The sum of products over dimensions of one paired with dimensions of the other."""
    p, q = a.layout.shape, b.layout.shape
    for i, j in zip(dims_a, dims_b, strict=True):
        if p[i] != q[j]:
            if p[i] == 1:
                b = b.sum((j,), keepdim=True, dtype=b.dtype)
            elif q[j] == 1:
                a = a.sum((i,), keepdim=True, dtype=a.dtype)
    p, q = a.layout.shape, b.layout.shape
    rest_a = [d for d in range(a.ndim) if d not in dims_a]
    rest_b = [d for d in range(b.ndim) if d not in dims_b]
    inside = _count(p[d] for d in dims_a)
    shape = (*(p[d] for d in rest_a), *(q[d] for d in rest_b))
    x, y = a.permute((*rest_a, *dims_a)), b.permute((*dims_b, *rest_b))
    rows, columns = _count(p[d] for d in rest_a), _count(q[d] for d in rest_b)
    if not rest_a and not rest_b:
        return x.reshape((inside,)).dot(y.reshape((inside,))).reshape(())
    if rows == 1 and columns == 1:
        return (x.squeeze() * y.squeeze()).sum(dtype=a.dtype).reshape(shape)
    return x.reshape((rows, inside)).mm(y.reshape((inside, columns))).reshape(shape)


def _pairs(dims: Any, a: Tensor, b: Tensor) -> tuple[Any, Any]:
    if hasattr(dims, "layout"):
        if dims.layout.numel > 1:
            dims = tuple(dims.tolist())
        else:
            dims = int(dims.item())
    if dims.__class__ is int:
        if dims < 0:
            raise TensorRuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.ndim, b.ndim):
            raise TensorRuntimeError(
                f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}"
            )
        return tuple(range(-dims, 0)), tuple(range(dims))
    if not isinstance(dims, (tuple, list)) or len(dims) != 2:
        raise TensorRuntimeError(
            "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] "
            f"containing two lists, but got dims={dims}"
        )
    first, second = dims
    for at, (name, value) in enumerate((("dims_self", first), ("dims_other", second))):
        if not isinstance(value, (tuple, list)):
            raise ArgumentError(
                f"tensordot(): argument '{name}' (position {at + 3}) must be tuple of ints, not "
                f"{type_name(value)}",
                "dims",
            )
    return tuple(first), tuple(second)


@composite(method=False, example="tensordot(ones(2, 3), ones(3, 4), dims=1)")
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """The sum of products over the last ``dims`` dimensions of one and the first of the other, or
    over two lists of dimensions."""
    first, second = _pairs(dims, a, b)
    if len(first) != len(second):
        raise TensorRuntimeError("both dimension lists should have same length")
    if a.dtype is not b.dtype:
        raise DtypeError("both inputs should have same dtype")
    p, q = a.layout.shape, b.layout.shape
    for i, j in zip(first, second, strict=True):
        m, n = p[wrap_dim(i, a.ndim)], q[wrap_dim(j, b.ndim)]
        if m != n and 1 not in (m, n):
            raise TensorRuntimeError(
                f"contracted dimensions need to match, but first has size {m} in dim {i} and "
                f"second has size {n} in dim {j}"
            )
    return contract(a, b, layouts.wrap_dims(first, a.ndim), layouts.wrap_dims(second, b.ndim))


def _fresh_view(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    y: Tensor = ops["_unsafe_view"].function(x, shape)
    y.base = None
    return y


@composite(example="kron(tensor([1., 2.]), ones(2))")
def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product: each element of one times the whole of the other."""
    n = max(input.ndim, other.ndim)
    p = (1,) * (n - input.ndim) + tuple(input.layout.shape)
    q = (1,) * (n - other.ndim) + tuple(other.layout.shape)
    left = tuple(k for size in p for k in (size, 1))
    right = tuple(k for size in q for k in (1, size))
    y = _fresh_view(input, left) * _fresh_view(other, right)
    return _fresh_view(y, tuple(m * k for m, k in zip(p, q, strict=True)))


def _trace_gradient(g: Tensor, input_shape: tuple[int, ...]) -> Tensor:
    rows, columns = input_shape
    flat = g.new_zeros((rows * columns,))
    step = columns + 1
    count = min(rows, columns)
    if count:
        at = F.arange(0, (count - 1) * step + 1, step)
        flat = flat.index_fill(0, at, g)
    return flat.view((rows, columns))


@kernel(vjp=_trace_gradient, out=False, example="trace(tensor([[1., 2.], [3., 4.]]))")
def trace(input: Tensor) -> Made:
    """The sum of the diagonal of a matrix; integers add up in int64."""
    if input.ndim != 2:
        raise TensorRuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    _check_stub(input.dtype, "trace")
    final = dtypes.int64 if input.dtype.category <= dtypes.INT else input.dtype
    return made(
        final,
        (),
        lambda xp: xp.asarray(working(input).diagonal().sum(dtype=working(input, final).dtype)),
    )


def _cross_arrays(xp: Any, a: Any, b: Any, dim: int) -> Any:
    at = dim - max(a.ndim, b.ndim)
    x0, x1, x2 = (xp.take(a, i, axis=at) for i in range(3))
    y0, y1, y2 = (xp.take(b, i, axis=at) for i in range(3))
    return xp.stack([x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0], axis=at)


def _cross_again(a: Tensor, b: Tensor, dim: int) -> Tensor:
    return ops["linalg.cross"].function(a, b, dim=dim)


@kernel(
    name="linalg.cross",
    spaces=("linalg.",),
    method=False,
    vjp={
        "input": lambda g, other, dim: _cross_again(conj(other), g, dim),
        "other": lambda g, input, dim: _cross_again(g, conj(input), dim),
    },
    node="LinalgCrossBackward0",
    example="linalg.cross(tensor([1., 0., 0.]), tensor([0., 1., 0.]))",
)
def linalg_cross(input: Tensor, other: Tensor, *, dim: Dim = -1) -> Made:
    """The cross product of vectors of three elements along ``dim``; the rest broadcasts."""
    if input.ndim != other.ndim:
        raise TensorRuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    p, q = input.layout.shape, other.layout.shape
    d = wrap_dim(dim, input.ndim)
    m, n = (p[d], q[d]) if p else (1, 1)
    if m != 3 or n != 3:
        raise TensorRuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {m} and {n}"
        )
    shape = layouts.broadcast_shapes(p, q)
    if input.dtype is not other.dtype:
        raise DtypeError(f"expected scalar type {input.dtype.title} but found {other.dtype.title}")
    _check_stub(input.dtype, "cross")
    # Low precision is rounded after each step.
    return made(input.dtype, shape, lambda xp: _cross_arrays(xp, input.array, other.array, d))


def _cross_dim(input: Tensor, other: Tensor, dim: int | None) -> int:
    if dim is not None:
        return dim
    if input.ndim != other.ndim:
        raise TensorRuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    for d, size in enumerate(input.layout.shape):
        if size == 3:
            return d
    raise TensorRuntimeError("no dimension of size 3 in input")


@composite(example="cross(tensor([1., 0., 0.]), tensor([0., 1., 0.]))")
def cross(input: Tensor, other: Tensor, dim: Dim | None = None) -> Tensor:
    """The cross product along ``dim``, or along the first dimension of size 3."""
    found = _cross_dim(input, other, dim)
    return ops["linalg.cross"].function(input, other, dim=found)


@composite(
    name="linalg.vecdot",
    spaces=("linalg.",),
    method=False,
    example="linalg.vecdot(tensor([1., 2.]), tensor([3., 4.]))",
)
def vecdot(x: Tensor, y: Tensor, *, dim: Dim = -1) -> Tensor:
    """The sum of products along ``dim``, the first factor conjugated."""
    if x.dtype.category < dtypes.FLOAT:
        raise DtypeError(
            "linalg.vecdot: Expected a floating point or complex tensor as input. Got "
            f"{x.dtype.title}"
        )
    if x.dtype is not y.dtype:
        raise DtypeError(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
            f"{x.dtype.title} and y of type {y.dtype.title} instead"
        )
    if x.ndim == 1 and y.ndim == 1 and x.layout.shape == y.layout.shape:
        return x.vdot(y)
    first = F.conj(x) if x.dtype.is_complex else x
    return (first * y).sum((dim,))
