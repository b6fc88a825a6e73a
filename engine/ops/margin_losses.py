"""Losses that ask for a margin between what is right and what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine import layout as layouts
from engine.errors import DtypeError, TensorRuntimeError, TensorValueError
from engine.foreign import exchange
from engine.kinds import Made, composite, kernel, made, working
from engine.kinds.functional import functional
from engine.kinds.native import Native
from engine.kinds.reduction import check_takes
from engine.kinds.results import check_castable
from engine.kinds.underived import NODE, refuse_recorded, underived
from engine.ops.losses import (
    MEAN,
    NONE,
    SUM,
    reduced,
    reduction_number,
    shared,
)
from engine.registry import F, ops
from engine.tensor import kind_of

if TYPE_CHECKING:
    from engine.tensor import Tensor

_INTERNAL: dict[str, Any] = {"function": False, "method": False, "out": False}


@composite(
    method=False,
    out=False,
    example="margin_ranking_loss(tensor([1.]), tensor([2.]), tensor([1.]))",
)
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = NONE
) -> Tensor:
    """max(0, -target * (input1 - input2) + margin)."""
    return reduced((-target * (input1 - input2) + margin).clamp_min(0), reduction)


@functional(
    name="margin_ranking_loss",
    example="nn.functional.margin_ranking_loss(tensor([1.]), tensor([2.]), tensor([1.]))",
)
def _margin_ranking_loss(
    input1: Any,
    input2: Any,
    target: Any,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """max(0, -target * (input1 - input2) + margin): the target 1 wants the first one larger."""
    number = reduction_number(reduction, size_average, reduce)
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise TensorRuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return ops["margin_ranking_loss"].function(input1, input2, target, margin, number)


@composite(
    method=False,
    out=False,
    example="hinge_embedding_loss(tensor([0.5]), tensor([-1.]))",
)
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = NONE
) -> Tensor:
    """The input where the target is 1, max(0, margin - input) where it is -1."""
    zeros = F.zeros_like(input)
    far = F.where(target != 1, (margin - input).clamp_min(0), zeros)
    near = F.where(target != -1, input, zeros)
    return reduced(far + near, reduction)


@functional(
    name="hinge_embedding_loss",
    example="nn.functional.hinge_embedding_loss(tensor([0.5]), tensor([-1.]))",
)
def _hinge_embedding_loss(
    input: Any,
    target: Any,
    margin: float = 1.0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """The input where the target is 1, max(0, margin - input) where it is -1."""
    number = reduction_number(reduction, size_average, reduce)
    return ops["hinge_embedding_loss"].function(input, target, margin, number)


def _soft_slope(g: Tensor, input: Tensor, target: Tensor, reduction: int) -> Tensor:
    each = shared(g, reduction, input.layout)
    grown = (-target * input).exp()
    return -target * grown / (1 + grown) * each


@kernel(name="nn.soft_margin_loss", vjp={"input": _soft_slope}, **_INTERNAL)
def soft_margin_loss(input: Tensor, target: Tensor, reduction: int = MEAN) -> Made:
    """log(1 + exp(-target * input))."""
    refuse_recorded("soft_margin_loss", target=target)
    common = dtypes.result_type([input.dtype, target.dtype], [], [])
    if not common.is_floating_point and not common.is_complex:
        check_castable(kind_of(dtypes.float32), input.kind)
    shape = layouts.broadcast_shapes(input.layout.shape, target.layout.shape)
    layout = layouts.elementwise([input.layout, target.layout], shape)

    def run(xp: Any) -> Any:
        x, t = working(input, common), working(target, common)
        grown = xp.exp(-t * x)
        if common.low:
            # PyTorch keeps this step in the dtype itself, where it may overflow.
            grown = grown.astype(common.np).astype(grown.dtype)
        losses = xp.log1p(grown)
        if reduction == NONE:
            return losses
        return losses.sum() if reduction == SUM else losses.mean()

    return Made(input.dtype, layout if reduction == NONE else layouts.contiguous(()), run)


@functional(
    name="soft_margin_loss",
    example="nn.functional.soft_margin_loss(tensor([0.5]), tensor([1.]))",
)
def _soft_margin_loss(
    input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Any:
    """log(1 + exp(-target * input)) for targets 1 and -1."""
    number = reduction_number(reduction, size_average, reduce)
    return ops["nn.soft_margin_loss"].function(input, target, number)


@functional(
    example="nn.functional.multilabel_soft_margin_loss(tensor([[0.5, 1.]]), tensor([[1., 0.]]))"
)
def multilabel_soft_margin_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """The cross entropy of sigmoid, averaged over the classes (the last dimension)."""
    number = reduction_number(reduction, size_average, reduce)
    losses = -(target * F.logsigmoid(input) + (1 - target) * F.logsigmoid(-input))
    if weight is not None:
        losses = losses * weight
    classes = input.size(-1)
    return reduced(losses.sum(dim=input.dim() - 1) / classes, number)


def _rows(input: Tensor) -> tuple[int, int]:
    shape = input.layout.shape
    if len(shape) < 2:
        return 1, (shape[0] if shape else 1)
    return shape[0], shape[1]


def _check_vectors(input: Tensor) -> None:
    shape = input.layout.shape
    if len(shape) > 2 or 0 in shape[len(shape) - 1 :]:
        raise TensorRuntimeError(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
            f"{list(shape)}"
        )


def _margin_slope(
    g: Tensor,
    input: Tensor,
    target: Tensor,
    p: Any,
    margin: Any,
    weight: Tensor | None,
    reduction: int,
) -> Tensor:
    rows, classes = _rows(input)
    x = input.reshape((rows, classes))
    index = target.reshape((rows, 1))
    lacking = (margin - x.gather(1, index) + x).scatter(1, index, 0.0)
    slope = F.where(lacking > 0, lacking * 2 if p == 2 else F.ones_like(lacking), 0.0)
    if weight is not None:
        slope = slope * weight[index]
    slope = slope.scatter(1, index, 0.0)
    slope = slope - F.zeros_like(slope).scatter(1, index, slope.sum(1, keepdim=True))
    each = slope / classes
    if reduction == MEAN:
        each = each / rows
    spread = g.reshape((rows, 1)) if reduction == NONE else g
    return (each * spread).reshape(input.layout.shape)


@kernel(
    name="nn.multi_margin_loss",
    vjp={"input": Native(NODE, _margin_slope, underived("multi_margin_loss_backward"))},
    **_INTERNAL,
)
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: int = MEAN,
) -> Made:
    """How much the other classes lack of being ``margin`` below the right one."""
    refuse_recorded("multi_margin_loss", weight=weight)
    _check_vectors(input)
    rows, classes = _rows(input)
    count = target.layout.numel
    if target.layout.ndim > 1 or count != rows:
        raise TensorRuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of "
            f"input samples (batch size). Expected target size [{rows}], but got "
            f"{list(target.layout.shape)}. Input has shape {list(input.layout.shape)}."
        )
    if weight is not None and weight.layout.numel != classes:
        raise TensorRuntimeError(
            f"inconsistent weight size, expected {classes} but got {list(weight.layout.shape)}"
        )
    check_takes("f", "multi_margin_loss_cpu_kernel", input.dtype)
    if target.dtype is not dtypes.int64:
        raise DtypeError(f"expected scalar type Long but found {target.dtype.title}")
    out = () if reduction != NONE or target.layout.ndim == 0 else (rows,)

    def run(xp: Any) -> Any:
        x = working(input).reshape((rows, classes))
        index = target.array.reshape((rows, 1))
        if ((index < 0) | (index >= classes)).any():
            raise TensorRuntimeError("target out of range")
        z = xp.maximum(margin - xp.take_along_axis(x, index, 1) + x, x.dtype.type(0))
        z = z * z if p == 2 else z
        if weight is not None:
            z = z * working(weight)[index]
        xp.put_along_axis(z, index, 0, 1)
        losses = z.sum(axis=1) / classes
        if reduction == NONE:
            return losses.reshape(out)
        return losses.sum() if reduction == SUM else losses.mean()

    return made(input.dtype, out, run)


@functional(
    name="multi_margin_loss",
    example="nn.functional.multi_margin_loss(tensor([[0.5, 1.]]), tensor([1]))",
)
def _multi_margin_loss(
    input: Any,
    target: Any,
    p: int = 1,
    margin: float = 1.0,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """How much the other classes lack of being ``margin`` below the right one, to the power p."""
    number = reduction_number(reduction, size_average, reduce)
    if p not in (1, 2):
        raise TensorValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise TensorValueError("weight must be one-dimensional")
    return ops["nn.multi_margin_loss"].function(input, target, p, margin, weight, number)


def _times_listed(target: Tensor) -> Tensor:
    """How often each row lists each class before its first -1."""
    rows, classes = _rows(target)
    listed = target.reshape((rows, classes))
    counts = ((listed < 0).to(dtypes.int64).cumsum(1) == 0).to(dtypes.int64)
    zeros = F.zeros(rows, classes, dtype=dtypes.int64)
    return zeros.scatter_add(1, F.where(counts > 0, listed, 0), counts)


def _multilabel_slope(g: Tensor, input: Tensor, target: Tensor, reduction: int) -> Tensor:
    rows, classes = _rows(input)
    x = input.reshape((rows, classes))
    times = _times_listed(target)
    pairs = times.unsqueeze(2) * (times == 0).to(dtypes.int64).unsqueeze(1)
    on = (1 - x.unsqueeze(2) + x.unsqueeze(1) > 0).to(x.dtype) * pairs
    slope = (on.sum(1) - on.sum(2)) / classes
    if reduction == MEAN:
        slope = slope / rows
    spread = g.reshape((rows, 1)) if reduction == NONE else g
    return (slope * spread).reshape(input.layout.shape)


@kernel(
    name="nn.multilabel_margin_loss",
    vjp={"input": Native(NODE, _multilabel_slope, underived("multilabel_margin_loss_backward"))},
    **_INTERNAL,
)
def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: int = MEAN) -> Made:
    """How much each class not listed lacks of being 1 below each one listed."""
    _check_vectors(input)
    rows, classes = _rows(input)
    if target.layout.shape != input.layout.shape:
        raise TensorRuntimeError(
            f"inconsistent target size: {list(target.layout.shape)} for input of size: "
            f"{list(input.layout.shape)}"
        )
    check_takes("f", "multilabel_margin_loss_forward_out_frame", input.dtype)
    if target.dtype is not dtypes.int64:
        raise DtypeError(f"expected scalar type Long but found {target.dtype.title}")
    alone = reduction != NONE or input.layout.ndim < 2
    out = () if alone else (rows,)

    def run(xp: Any) -> Any:
        x = working(input).reshape((rows, classes))
        listed = target.array.reshape((rows, classes))
        if (listed < -1).any() or (listed >= classes).any():
            raise TensorRuntimeError("argument #2 'target' is out of range")
        times = xp.zeros((rows, classes), x.dtype)
        for row in range(rows):
            for c in listed[row]:
                if c < 0:
                    break
                times[row, c] += 1
        z = xp.maximum(1 - x[:, :, None] + x[:, None, :], x.dtype.type(0))
        z = z * (times[:, :, None] * (times == 0)[:, None, :])
        losses = z.sum(axis=(1, 2)) / classes
        if reduction == NONE:
            return losses.reshape(out)
        return losses.sum() if reduction == SUM else losses.mean()

    return made(input.dtype, out, run)


@functional(
    name="multilabel_margin_loss",
    example="nn.functional.multilabel_margin_loss(tensor([[0.5, 1.]]), tensor([[1, -1]]))",
)
def _multilabel_margin_loss(
    input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Any:
    """How much each class not listed lacks of being 1 below each one listed before a -1."""
    number = reduction_number(reduction, size_average, reduce)
    return ops["nn.multilabel_margin_loss"].function(input, target, number)


@functional(
    example="nn.functional.triplet_margin_with_distance_loss(ones(1, 2), ones(1, 2), zeros(1, 2))"
)
def triplet_margin_with_distance_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    *,
    distance_function: Any = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Any:
    """triplet_margin_loss with a distance of one's own (pairwise_distance by default)."""
    if reduction not in ("none", "mean", "sum"):
        raise TensorValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise TensorValueError(f"margin must be greater than 0, got {margin}")
    distance = (
        F.pairwise_distance if distance_function is None else exchange.function(distance_function)
    )
    sizes = [t.dim() for t in (anchor, positive, negative)]
    if len(set(sizes)) > 1:
        raise TensorRuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {sizes[0]}D, positive {sizes[1]}D, and negative "
            f"{sizes[2]}D inputs"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = F.minimum(far, distance(positive, negative))
    return reduced((margin + near - far).clamp_min(0), reduction_number(reduction))
