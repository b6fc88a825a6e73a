"""Products of matrices and vectors: mm, bmm, mv, dot, and matmul which chooses among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import layout as layouts
from engine.errors import MatmulError, TensorIndexError, TensorRuntimeError
from engine.kinds import contraction, view
from engine.kinds.conjugate import conj
from engine.registry import F, ops
from engine.tape import requires_grad

if TYPE_CHECKING:
    from engine.layout import Layout
    from engine.tensor import Tensor


def _product(x: Any, y: Any) -> Any:
    """numpy's dot is several times quicker than its matmul for small matrices."""
    return x.dot(y)


def _batched(x: Any, y: Any) -> Any:
    return x @ y


def _column_major(layout: Layout) -> bool:
    return layout.strides[0] == 1 and layout.strides[1] == layout.shape[0]


def _mm_left(g: Tensor, mat2: Tensor, input_layout: Layout) -> Tensor:
    if _column_major(input_layout):
        return conj(mat2).mm(g.t()).t()
    return g.mm(conj(mat2.t()))


def _mm_right(g: Tensor, input: Tensor, mat2_layout: Layout) -> Tensor:
    if _column_major(mat2_layout):
        return g.t().mm(conj(input)).t()
    return conj(input.t()).mm(g)


@contraction(
    vjp={"input": _mm_left, "mat2": _mm_right},
    stub="addmm_impl_cpu_",
    takes="ifc8",
    example="mm(tensor([[1., 2.]]), tensor([[3.], [4.]]))",
)
def mm(input: Tensor, mat2: Tensor) -> Any:
    """The product of two matrices (n, k) and (k, m)."""
    a, b = input.shape, mat2.shape
    if len(a) != 2:
        raise TensorRuntimeError("self must be a matrix")
    if len(b) != 2:
        raise TensorRuntimeError("mat2 must be a matrix")
    if a[1] != b[0]:
        raise MatmulError(a, b)
    return (a[0], b[1]), _product


@contraction(
    vjp={
        "input": lambda g, mat2: g.bmm(conj(mat2.transpose(1, 2))),
        "mat2": lambda g, input: conj(input.transpose(1, 2)).bmm(g),
    },
    stub="bmm",
    mismatch="expected scalar type {a} but found {b}",
    example="bmm(ones(2, 1, 3), ones(2, 3, 1))",
)
def bmm(input: Tensor, mat2: Tensor) -> Any:
    """The products of two batches of matrices (b, n, k) and (b, k, m); nothing is broadcast."""
    a, b = input.shape, mat2.shape
    if len(a) != 3:
        raise TensorRuntimeError("batch1 must be a 3D tensor")
    if len(b) != 3:
        raise TensorRuntimeError("batch2 must be a 3D tensor")
    if a[0] != b[0] or a[2] != b[1]:
        raise MatmulError(
            a,
            b,
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{a[0]}, {a[2]}] but got: [{b[0]}, {b[1]}].",
        )
    return (a[0], a[1], b[2]), _batched


@contraction(
    vjp={
        "input": lambda g, vec: F.outer(g, conj(vec)),
        "vec": lambda g, input: conj(input.t()).mv(g),
    },
    stub="addmv_impl_cpu",
    mismatch="addmv input tensors must have the same dtype, but got {b}, {a}, and {b}",
    wrong_out="addmv input tensors must have the same dtype, but got {out}, {a}, and {b}",
    example="mv(tensor([[1., 2.], [3., 4.]]), tensor([1., 1.]))",
)
def mv(input: Tensor, vec: Tensor) -> Any:
    """The product of a matrix (n, m) and a vector (m)."""
    a, b = input.shape, vec.shape
    if not a:
        raise TensorIndexError("Dimension specified as 0 but tensor has no dimensions")
    if len(a) != 2 or len(b) != 1:
        raise MatmulError(a, b, f"vector + matrix @ vector expected, got 1, {len(a)}, {len(b)}")
    if a[1] != b[0]:
        raise MatmulError(
            a, b, f"size mismatch, got input ({a[0]}), mat ({a[0]}x{a[1]}), vec ({b[0]})"
        )
    return (a[0],), _product


def _check_vectors(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    if len(a) != 1 or len(b) != 1:
        raise MatmulError(a, b, f"1D tensors expected, but got {len(a)}D and {len(b)}D tensors")
    if a != b:
        raise MatmulError(
            a,
            b,
            f"inconsistent tensor size, expected tensor [{a[0]}] and src [{b[0]}] to have the "
            f"same number of elements, but got {a[0]} and {b[0]} elements respectively",
        )


_DOT_MISMATCH = "dot : expected both vectors to have same dtype, but found {a} and {b}"
_DOT_OUT = "result dtype {out} does not match input dtype {a}"


@contraction(
    vjp={
        "input": lambda g, tensor: g * conj(tensor),
        "tensor": lambda g, input: g * conj(input),
    },
    stub="dot",
    mismatch=_DOT_MISMATCH,
    wrong_out=_DOT_OUT,
    example="dot(tensor([1., 2.]), tensor([3., 4.]))",
)
def dot(input: Tensor, tensor: Tensor) -> Any:
    """The sum of the products of two vectors; nothing is broadcast or conjugated."""
    _check_vectors(input.shape, tensor.shape)
    return (), _product


@contraction(
    vjp={
        "input": lambda g, other: conj(g) * other,
        "other": lambda g, input: g * input,
    },
    stub="dot",
    mismatch=_DOT_MISMATCH,
    wrong_out=_DOT_OUT,
    example="vdot(tensor([1 + 2j]), tensor([1 + 2j]))",
)
def vdot(input: Tensor, other: Tensor) -> Any:
    """The sum of the products of two vectors, the first one conjugated."""
    _check_vectors(input.shape, other.shape)
    return (), lambda x, y: (x.conj() if x.dtype.kind == "c" else x).dot(y)


def _numel(shape: tuple[int, ...]) -> int:
    n = 1
    for size in shape:
        n *= size
    return n


def _unsafe_view(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    y: Tensor = ops["_unsafe_view"].function(x, shape)
    y.base = None
    return y


@view(
    vjp=lambda g: g.unsqueeze(0),
    function=False,
    method=False,
    view="no",
    node="SqueezeBackward4",
    example="tensor([1., 2.], requires_grad=True) @ ones(2, 1)",
)
def _squeeze_row(input: Layout) -> Layout:
    """A matrix of one row as a vector, itself changed."""
    return layouts.squeeze(input, (0,))


def _without_row(x: Tensor) -> Tensor:
    y: Tensor = ops["_squeeze_row"].function(x)
    y.base = None
    return y


def _folds(a: Layout, b: Layout, recorded: bool) -> bool:
    """Whether PyTorch makes one matrix of the batched operand instead of a batch of the other;
    ``recorded``: the other requires grad."""
    turned = b.ndim > a.ndim
    large, small = (b, a) if turned else (a, b)
    if large.ndim < 3 or small.ndim > 2:
        return False
    if recorded:
        return True
    if a.ndim == 2:
        return False
    if large.numel == 0:
        return True
    if turned:
        large = layouts.swap(large, -2, -1)
    shape, strides = large.shape, large.strides
    return all(strides[d] == strides[d + 1] * shape[d + 1] for d in range(large.ndim - 2))


def _fold(a: Tensor, b: Tensor) -> Tensor:
    turned = b.ndim > a.ndim
    large, small = (b.transpose(-2, -1), a) if turned else (a, b)
    if turned and a.ndim == 2:
        small = a.t()
    *lead, inner = large.layout.shape
    flat = large.reshape((_numel(tuple(lead)), inner))
    if small.ndim == 1:
        return _unsafe_view(flat.mv(small), tuple(lead))
    y = _unsafe_view(flat.mm(small), (*lead, small.layout.shape[1]))
    return y.transpose(-2, -1).contiguous() if turned else y


def _batches(a: Tensor, b: Tensor) -> Tensor:
    p, q = a.layout.shape, b.layout.shape
    if len(p) == len(q) == 3 and p[0] != q[0]:
        if p[0] == 1 and requires_grad(a):
            return _composed(a.squeeze(0), b)
        if q[0] == 1 and requires_grad(b):
            return _composed(a, b.squeeze(0))
    n = p[-2] if len(p) > 1 else 1
    m = q[-2] if len(q) > 1 else q[-1]
    last = q[-1] if len(q) > 1 else 1
    batch = layouts.broadcast_shapes(p[:-2], q[:-2])
    count = _numel(batch)
    x = a.expand((*batch, n, p[-1])).reshape((count, n, p[-1]))
    column = b.unsqueeze(1) if len(q) == 1 else b
    y = column.expand((*batch, m, last)).reshape((count, m, last))
    shape = (*batch, *((n,) if len(p) > 1 else ()), *((last,) if len(q) > 1 else ()))
    return _unsafe_view(x.bmm(y), shape)


def _composed(a: Tensor, b: Tensor) -> Tensor:
    """matmul as PyTorch records it: which ops it is made of depends on the dimensions and on
    what requires grad."""
    if a.layout.ndim == 2:
        if b.layout.ndim == 2:
            return a.mm(b)
        if b.ndim == 1:
            return a.mv(b)
    elif a.ndim == 1:
        if b.ndim == 1:
            return a.dot(b)
        if b.ndim == 2:
            return _without_row(a.unsqueeze(0).mm(b))
    if a.ndim == 0 or b.ndim == 0:
        _matmul_plan(a.layout, b.layout)
    small = a if b.ndim > a.ndim else b
    if _folds(a.layout, b.layout, requires_grad(small)):
        return _fold(a, b)
    return _batches(a, b)


def _matmul_plan(a: Layout, b: Layout) -> Any:
    """Shape, kernel and the op that PyTorch takes for these dimensions, whose refusals are ours."""
    p, q = a.shape, b.shape
    if not p or not q:
        raise MatmulError(
            p,
            q,
            f"both arguments to matmul need to be at least 1D, but they are {len(p)}D and "
            f"{len(q)}D",
        )
    if len(p) <= 2 and len(q) <= 2:
        name = "mm" if len(q) == 2 else "mv" if len(p) == 2 else "dot"
        row = layouts.unsqueeze(a, 0) if len(p) < len(q) else a
        shape, run = ops[name].body(row, b)
        return shape[1:] if row is not a else shape, run, name
    if len(q) <= 2:
        name = "mv" if len(q) == 1 else "mm"
        ops[name].body(layouts.contiguous((_numel(p[:-1]), p[-1])), b)
        return (*p[:-1], *q[1:]), _batched, name
    if _folds(a, b, False):
        ops["mv"].body(layouts.contiguous((_numel((*q[:-2], q[-1])), q[-2])), a)
        return (*q[:-2], q[-1]), _batched, "mv"
    batch = layouts.broadcast_shapes(p[:-2], q[:-2])
    count = _numel(batch)
    rows = p[-2] if len(p) > 1 else 1
    ops["bmm"].body(layouts.contiguous((count, rows, p[-1])), layouts.contiguous((count, *q[-2:])))
    return (*batch, *p[-2:-1], q[-1]), _batched, "bmm"


@contraction(
    compose=_composed,
    flat="mm",
    spaces=("", "linalg."),
    example="matmul(tensor([[1., 2.], [3., 4.]]), tensor([1., 1.]))",
)
def matmul(input: Tensor, other: Tensor) -> Any:
    """The matrix product of the last two dimensions, leading ones broadcast.

    A vector on the left is a row, on the right a column; that dimension is gone from the result.
    """
    return _matmul_plan(input, other)  # type: ignore[arg-type]  # the kind gives layouts
