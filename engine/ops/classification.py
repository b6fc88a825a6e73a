"""Losses of scores against classes: nll_loss and cross_entropy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine.errors import DtypeError, TensorIndexError, TensorRuntimeError, TensorValueError
from engine.kinds import INT_TO_FLOAT, composite, kernel, made, pointwise, working
from engine.kinds.functional import functional
from engine.kinds.missing import refuse_gradients
from engine.kinds.native import Native
from engine.kinds.reduction import check_takes
from engine.ops.losses import MEAN, NONE, SUM, named_reduction, reduction_number
from engine.registry import F, ops

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.parameter_types import Scalar
    from engine.tensor import Tensor

_INTERNAL: dict[str, Any] = {"function": False, "method": False, "out": False}


def _check_target(target: Tensor) -> None:
    if target.dtype not in (dtypes.int64, dtypes.uint8):
        raise DtypeError(f"expected target dtype to be Long or Byte, but got {target.dtype.title}")


def _chosen(xp: Any, target: Tensor, classes: int, ignore_index: int) -> tuple[Any, Any]:
    """The classes with a valid one in place of those ignored, and where they are not ignored."""
    wanted = target.array.astype("int64")
    counts = wanted != ignore_index
    wrong = counts & ((wanted < 0) | (wanted >= classes))
    if wrong.any():
        raise TensorIndexError(f"Target {int(wanted[wrong].flat[0])} is out of bounds.")
    return xp.where(counts, wanted, 0), counts


def _nll(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> Made:
    """Minus the scores of the right classes, along dimension 1 (0 of a vector)."""
    axis = 1 if input.layout.ndim > 1 else 0
    shape = input.layout.shape
    alone = axis == 0

    def run(xp: Any) -> Any:
        index, counts = _chosen(xp, target, shape[axis], ignore_index)
        if alone:
            index, counts = index.reshape(()), counts.reshape(())
        scores = working(input)
        picked = xp.take_along_axis(scores, xp.expand_dims(index, axis), axis)
        weights = counts.astype(scores.dtype)
        if weight is not None:
            weights = weights * working(weight, input.dtype)[index]
        losses = xp.where(counts, -xp.squeeze(picked, axis) * weights, scores.dtype.type(0))
        if reduction == NONE:
            return losses
        return losses.sum() if reduction == SUM else losses.sum() / weights.sum()

    out: tuple[int, ...] = ()
    if reduction == NONE and not alone:
        out = (*shape[:1], *shape[2:])
    return made(input.dtype, out, run)


def _nll_slope(
    g: Tensor,
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
) -> Tensor:
    input_shape, input_dtype = input.layout.shape, input.dtype
    axis = 1 if len(input_shape) > 1 else 0
    index = target.to(dtypes.int64)
    if axis == 0:
        index = index.reshape(())
    counts = index != ignore_index
    index = F.where(counts, index, 0)
    weights = counts.to(input_dtype)
    if weight is not None:
        weights = weights * weight[index]
    if reduction == MEAN:
        g = g / weights.sum()
    part = (-g * weights).unsqueeze(axis)
    return g.new_zeros(input_shape).scatter(axis, index.unsqueeze(axis), part)


@pointwise(
    name="nn.divided",
    kernel=lambda xp, x, divisor: x / x.dtype.type(divisor),
    node="DivBackward1",
    promote=INT_TO_FLOAT,
    vjp=lambda g, divisor: g / divisor,
    function=False,
    method=False,
    inplace=False,
    example="nn.functional.cross_entropy(tensor([[1., 2.]]), tensor([[0.5, 0.5]]))",
)
def _divided(input: Tensor, divisor: Scalar) -> Tensor:
    """Division by a number as PyTorch's own code does it."""


def _check_weight(weight: Tensor | None, input: Tensor, classes: int) -> None:
    if weight is not None and (weight.layout.ndim != 1 or weight.layout.numel != classes):
        raise TensorRuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but "
            f"got weight tensor of shape: {list(weight.layout.shape)}"
        )


def _check_weight_dtype(weight: Tensor | None, input: Tensor) -> None:
    if weight is not None and weight.dtype is not input.dtype:
        raise DtypeError(f"expected scalar type {input.dtype.title} but found {weight.dtype.title}")


@kernel(
    name="nn.nll_loss", vjp={"input": Native("NllLossBackwardBackward0", _nll_slope)}, **_INTERNAL
)
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = MEAN,
    ignore_index: int = -100,
) -> Made:
    """Minus the score of the right class, for one or many rows of scores."""
    refuse_gradients("nll_loss_forward", weight=weight)
    if target.layout.ndim > 1:
        raise TensorRuntimeError("0D or 1D target tensor expected, multi-target not supported")
    classes = input.layout.shape[-1]
    _check_weight(weight, input, classes)
    check_takes("f", "nll_loss_out_frame", input.dtype)
    _check_target(target)
    _check_weight_dtype(weight, input)
    return _nll(input, target, weight, reduction, ignore_index)


@kernel(
    name="nn.nll_loss2d",
    node="NllLoss2DBackward0",
    vjp={"input": Native("NllLoss2DBackwardBackward0", _nll_slope)},
    example="nn.functional.nll_loss(zeros(1, 2, 1, 1), tensor([[[0]]]))",
    **_INTERNAL,
)
def nll_loss2d(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = MEAN,
    ignore_index: int = -100,
) -> Made:
    """Minus the score of the right class at each place of a batch of pictures."""
    refuse_gradients("nll_loss2d_forward", weight=weight)
    if target.layout.ndim != 3:
        raise TensorRuntimeError(
            "only batches of spatial targets supported (3D tensors) but got targets of "
            f"dimension: {target.layout.ndim}"
        )
    shape, places = input.layout.shape, target.layout.shape
    if (shape[0], *shape[2:]) != places:
        raise TensorRuntimeError(
            f"size mismatch (got input: {list(shape)} , target: {list(places)}"
        )
    if weight is not None and weight.layout.numel != shape[1]:
        raise TensorRuntimeError("weight tensor should be defined either for all or no classes")
    check_takes("f", "nll_loss2d_forward_out_frame", input.dtype)
    _check_target(target)
    _check_weight_dtype(weight, input)
    return _nll(input, target, weight, reduction, ignore_index)


@composite(name="nn.nll_loss_nd", function=False, method=False, out=False)
def nll_loss_nd(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = MEAN,
    ignore_index: int = -100,
) -> Tensor:
    """nll_loss of scores of any number of dimensions, classes along dimension 1."""
    shape, places = input.layout.shape, target.layout.shape
    ndim = len(shape)
    if ndim < 1:
        raise TensorValueError(f"Expected 1 or more dimensions (got {ndim})")
    if ndim != 1 and shape[0] != (places[0] if places else shape[0]):
        raise TensorValueError(
            f"Expected input batch_size ({shape[0]}) to match target batch_size ({places[0]})."
        )
    rest = (weight, reduction, ignore_index)
    if ndim <= 2:
        if ndim == 1 and places and places[0] != 1:
            raise TensorValueError(
                f"For 1D input, 1D target must have size 1, but got target size: {places[0]}"
            )
        return ops["nn.nll_loss"].function(input, target, *rest)
    if ndim == 4:
        return ops["nn.nll_loss2d"].function(input, target, *rest)
    wanted = (shape[0], *shape[2:])
    if places != wanted:
        raise TensorRuntimeError(f"Expected target size {list(wanted)}, got {list(places)}")
    numel = input.layout.numel
    flat = (shape[0], shape[1], 1, -1) if numel else (shape[0], shape[1], 0, 0)
    spots = (shape[0], 1, -1) if numel else (shape[0], 0, 0)
    scores, classes = input.contiguous().view(flat), target.contiguous().view(spots)
    loss = ops["nn.nll_loss2d"].function(scores, classes, *rest)
    return loss.view(wanted) if reduction == NONE else loss


def _smoothed(
    scores: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    smoothing: float,
) -> Tensor:
    """The loss against the right class mixed with that against all classes alike."""
    ndim = scores.layout.ndim
    axis = 1 if ndim > 1 else 0
    classes = scores.layout.shape[axis]
    exact = ops["nn.nll_loss_nd"].function(scores, target, weight, reduction, ignore_index)
    if weight is not None:
        spread = [1] * ndim
        spread[axis] = classes
        even = -(scores * weight.view(tuple(spread))).sum(axis)
    else:
        even = -scores.sum(axis)
    ignored = target == ignore_index
    even = even.masked_fill(ignored, 0.0)
    if reduction == SUM:
        even = even.sum()
    elif reduction == MEAN:
        if weight is not None:
            index = F.where(ignored, 0, target).flatten()
            even = even.sum() / weight.gather(0, index).masked_fill(ignored.flatten(), 0.0).sum()
        else:
            even = even.sum() / (~ignored).sum()
    share = smoothing / classes
    return exact * (1 - smoothing) + even * share


def _against_chances(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    smoothing: float,
) -> Tensor:
    """The loss where the target is a chance for each class."""
    ndim = input.layout.ndim
    if ndim == 0:
        raise TensorIndexError("Dimension specified as 1 but tensor has no dimensions")
    axis = 0 if ndim < 2 else 1
    classes = input.layout.shape[axis]
    if not target.dtype.is_floating_point:
        raise DtypeError(
            "Expected floating point type for target with class probabilities, got "
            f"{target.dtype.title}"
        )
    _check_weight(weight, input, classes)
    scores = input.log_softmax(axis)
    if smoothing > 0:
        target = target * (1 - smoothing) + smoothing / classes
    losses = scores * target
    if weight is not None:
        spread = [1] * ndim
        spread[axis] = classes
        losses = losses * weight.view(tuple(spread))
    if reduction == NONE:
        return -losses.sum(axis)
    total = -losses.sum()
    if reduction == SUM:
        return total
    rows = input.layout.numel // classes if classes else 0
    return ops["nn.divided"].function(total, rows)


@composite(name="nn.cross_entropy_loss", function=False, method=False, out=False)
def cross_entropy_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = MEAN,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy between scores and classes, or chances of classes."""
    if input.layout.shape == target.layout.shape:
        if not target.dtype.is_floating_point:
            raise DtypeError(
                "Expected floating point type for target with class probabilities, got "
                f"{target.dtype.title}"
            )
        if ignore_index >= 0:
            raise TensorRuntimeError("ignore_index is not supported for floating point target")
        return _against_chances(input, target, weight, reduction, label_smoothing)
    axis = 1 if input.layout.ndim > 1 else 0
    if label_smoothing > 0.0:
        if label_smoothing > 1.0:
            raise TensorRuntimeError(
                f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}"
            )
        classes = input.layout.shape[axis] if input.layout.ndim else 1
        _check_weight(weight, input, classes)
        scores = input.log_softmax(axis)
        return _smoothed(scores, target, weight, reduction, ignore_index, label_smoothing)
    return ops["nn.nll_loss_nd"].function(
        input.log_softmax(axis), target, weight, reduction, ignore_index
    )


@functional(
    name="nll_loss",
    example="nn.functional.nll_loss(tensor([[-0.1, -2.3]]), tensor([0]))",
)
def _nll_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """Minus the log-probability of the right class, averaged with the classes' weights.

    Rows whose class is ``ignore_index`` do not count; if no row counts the mean is NaN.
    """
    number = reduction_number(named_reduction(reduction, size_average, reduce))
    return ops["nn.nll_loss_nd"].function(input, target, weight, number, ignore_index)


@functional(example="nn.functional.cross_entropy(tensor([[1., 2.]]), tensor([0]))")
def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """nll_loss of log_softmax: classes along dimension 1, or 0 of a vector of scores.

    A target of the input's shape holds a probability for each class instead of class numbers.
    """
    number = reduction_number(named_reduction(reduction, size_average, reduce))
    return ops["nn.cross_entropy_loss"].function(
        input, target, weight, number, ignore_index, label_smoothing
    )
