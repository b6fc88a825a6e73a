"""Similarities and distances of vectors, and the losses made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import DtypeError, TensorRuntimeError, TensorValueError
from engine.kinds import composite, kernel, made
from engine.kinds.functional import functional
from engine.layout import broadcast_shapes
from engine.ops.losses import NONE, reduced, reduction_number
from engine.registry import F, ops

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.parameter_types import Dim
    from engine.tensor import Tensor


@functional(example="nn.functional.normalize(tensor([[3., 4.]]))")
def normalize(input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None) -> Any:
    """Divided by the p-norm along ``dim``, which is taken to be at least ``eps``."""
    norm = input.norm(p, dim, keepdim=True)
    if out is None:
        return input / norm.clamp_min(eps).expand_as(input)
    return F.div(input, norm.clamp_min_(eps).expand_as(input), out=out)


@composite(
    spaces=("", "nn.functional."),
    method=False,
    out=False,
    example="cosine_similarity(tensor([[3., 4.]]), tensor([[4., 3.]]))",
)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: Dim = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along ``dim``; norms are taken to be at least eps."""
    common = F.result_type(x1, x2)
    if not common.is_floating_point:
        raise DtypeError(
            f"expected common dtype to be floating point, yet common dtype is {common.title}"
        )
    shape = broadcast_shapes(x1.layout.shape, x2.layout.shape)
    a = (x1 if x1.dtype is common else x1.to(common)).expand(shape)
    b = (x2 if x2.dtype is common else x2.to(common)).expand(shape)
    if x1.layout.shape == shape:
        a = x1 if x1.dtype is common else x1.to(common)
    if x2.layout.shape == shape:
        b = x2 if x2.dtype is common else x2.to(common)
    return ((a / _bounded(a, dim, eps)) * (b / _bounded(b, dim, eps))).sum(dim)


def _bounded(x: Tensor, dim: int, eps: float) -> Tensor:
    """The norm along ``dim``, kept above ``eps`` without a gradient of its own for that."""
    norm = ops["linalg.vector_norm"].function(x, 2, dim, True).clone()
    norm.detach().clamp_min_(eps)
    return norm


def _norm_slope(g: Tensor, input: Tensor, y: Tensor, p: float, dim: int, keepdim: bool) -> Tensor:
    if not keepdim:
        g, y = g.unsqueeze(dim), y.unsqueeze(dim)
    if p == 0:
        return F.zeros_like(input)
    if p == 1:
        return input.sign() * g
    if p == float("inf"):
        top = input.abs() == y
        return input.sign() * top * (g / top.sum(dim, keepdim=True))
    if p == 2:
        return input * (g / y).masked_fill(y == 0, 0)
    share = (g / y.pow(p - 1)).masked_fill(y == 0, 0)
    if p < 2:
        return input.sign() * input.abs().pow(p - 1).masked_fill(input == 0, 0) * share
    return input * input.abs().pow(p - 2) * share


@kernel(name="nn.norm", node="NormBackward1", vjp=_norm_slope, function=False, method=False)
def _norm(input: Tensor, p: float, dim: Dim, keepdim: bool) -> Made:
    """The p-norm along a dimension as PyTorch's own code takes it."""
    y = ops["linalg.vector_norm"].function(input.detach(), p, dim, keepdim)
    return made(y.dtype, y.layout, lambda xp: y.array)


@composite(
    spaces=("", "nn.functional."),
    method=False,
    out=False,
    example="pairwise_distance(tensor([[1., 2.]]), tensor([[4., 6.]]))",
)
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norm of the difference along the last dimension, to which ``eps`` is added."""
    last = max(x1.layout.ndim, x2.layout.ndim) - 1
    return ops["nn.norm"].function((x1 - x2) + eps, p, last, keepdim)


@composite(
    method=False,
    out=False,
    example="cosine_embedding_loss(tensor([3., 4.]), tensor([4., 3.]), tensor(1.))",
)
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = NONE
) -> Tensor:
    """1 - cosine where the target is 1, max(0, cosine - margin) where it is -1."""
    ndim = target.layout.ndim
    if ndim not in (0, 1):
        raise TensorRuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if ndim == 1:
        if input1.layout.ndim != 2:
            raise TensorRuntimeError(
                "1D target tensor expects 2D input tensors, but found inputs with sizes "
                f"{list(input1.layout.shape)} and {list(input2.layout.shape)}."
            )
    elif input1.layout.ndim != 1:
        raise TensorRuntimeError(
            "0D target tensor expects 1D input tensors, but found inputs with sizes "
            f"{list(input1.layout.shape)} and {list(input2.layout.shape)}."
        )
    least = 1e-12
    product = (input1 * input2).sum(ndim)
    first = (input1 * input1).sum(ndim) + least
    second = (input2 * input2).sum(ndim) + least
    cosine = product / (first * second).sqrt()
    zeros = F.zeros_like(cosine)
    alike = F.where(target == 1, F.ones_like(cosine) - cosine, zeros)
    apart = F.where(target == -1, (cosine - margin).clamp_min(0), zeros)
    return reduced(alike + apart, reduction)


@functional(
    name="cosine_embedding_loss",
    example="nn.functional.cosine_embedding_loss(ones(1, 2), ones(1, 2), tensor([1.]))",
)
def _cosine_embedding_loss(
    input1: Any,
    input2: Any,
    target: Any,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """1 - cosine where the target is 1, max(0, cosine - margin) where it is -1."""
    number = reduction_number(reduction, size_average, reduce)
    return ops["cosine_embedding_loss"].function(input1, input2, target, margin, number)


@composite(
    method=False,
    out=False,
    example="triplet_margin_loss(ones(1, 2), ones(1, 2), zeros(1, 2))",
)
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = NONE,
) -> Tensor:
    """How far the negative is from being ``margin`` farther from the anchor than the positive."""
    sizes = [t.layout.ndim for t in (anchor, positive, negative)]
    if len(set(sizes)) > 1:
        raise TensorRuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {sizes[0]}D, positive {sizes[1]}D, and negative "
            f"{sizes[2]}D inputs"
        )
    near = F.pairwise_distance(anchor, positive, p, eps)
    far = F.pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = F.minimum(far, F.pairwise_distance(positive, negative, p, eps))
    return reduced((near + margin - far).clamp_min(0), reduction)


@functional(
    name="triplet_margin_loss",
    example="nn.functional.triplet_margin_loss(ones(1, 2), ones(1, 2), zeros(1, 2))",
)
def _triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """How far the negative is from being ``margin`` farther from the anchor than the positive.

    ``swap`` measures the negative from the positive where that is nearer.
    """
    number = reduction_number(reduction, size_average, reduce)
    if margin <= 0:
        raise TensorValueError(f"margin must be greater than 0, got {margin}")
    return ops["triplet_margin_loss"].function(
        anchor, positive, negative, margin, p, eps, swap, number
    )
