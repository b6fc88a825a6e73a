"""Losses of numbers against numbers: squared, absolute, Huber's, and what margins cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine import layout as layouts
from engine.errors import TensorRuntimeError, TensorValueError
from engine.kinds import Made, kernel, working
from engine.kinds.functional import functional
from engine.kinds.native import Native
from engine.kinds.reduction import check_takes
from engine.modes import warn
from engine.registry import F, ops

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.tensor import Tensor

NONE, MEAN, SUM = 0, 1, 2

_REDUCTIONS = {"none": NONE, "mean": MEAN, "elementwise_mean": MEAN, "sum": SUM}
_INTERNAL: dict[str, Any] = {"function": False, "method": False, "out": False}


def reduction_number(reduction: Any, size_average: Any = None, reduce: Any = None) -> int:
    """The reduction's number; the two old flags, where given, decide instead of its name.

    Raises ValueError for a name that is none.
    """
    if size_average is not None or reduce is not None:
        average = True if size_average is None else size_average
        wanted = True if reduce is None else reduce
        name = "none" if not wanted else "mean" if average else "sum"
        warn(
            "size_average and reduce args will be deprecated, please use "
            f"reduction='{name}' instead."
        )
        return _REDUCTIONS[name]
    if reduction == "elementwise_mean":
        warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.")
    found = _REDUCTIONS.get(reduction) if reduction.__class__ is str else None
    if found is None:
        raise TensorValueError(f"{reduction} is not a valid value for reduction")
    return found


def reduced(values: Tensor, reduction: int) -> Tensor:
    """A tensor of losses brought down to one number, if the reduction says so."""
    if reduction == MEAN:
        return values.mean()
    return values.sum() if reduction == SUM else values


def pairwise_loss(
    loss: Callable[[Any, Any, Any], Any], stub: str, reduction: int, *tensors: Tensor
) -> Made:
    """What ``loss(xp, *arrays)`` makes of operands that broadcast, reduced."""
    dimensioned = [t.dtype for t in tensors if t.layout.ndim]
    zero = [t.dtype for t in tensors if not t.layout.ndim]
    common = dtypes.result_type(dimensioned, zero, [])
    shape: tuple[int, ...] = tensors[0].layout.shape
    for t in tensors[1:]:
        shape = layouts.broadcast_shapes(shape, t.layout.shape)
    check_takes("f", stub, common)
    layout = layouts.elementwise([t.layout for t in tensors], shape)

    def run(xp: Any) -> Any:
        values = loss(xp, *[working(t, common) for t in tensors])
        if reduction == NONE:
            return values
        if reduction == SUM:
            return values.sum()
        return values.mean() if values.size else xp.full((), xp.nan, values.dtype)

    return Made(common, layout if reduction == NONE else layouts.contiguous(()), run)


def shared(g: Tensor, reduction: int, layout: Any) -> Tensor:
    """The gradient of each loss, given that of their reduction."""
    return g / layout.numel if reduction == MEAN else g


def _squared_slope(g: Tensor, input: Tensor, target: Tensor, reduction: int) -> Tensor:
    difference = input - target
    return shared(g, reduction, difference.layout) * 2 * difference


def _negated(slope: Any) -> Any:
    """The derivative by ``target`` of a loss of the difference."""
    return lambda g, input, target, reduction: -slope(g, input, target, reduction)


@kernel(
    name="nn.mse_loss",
    vjp={
        "input": Native("MseLossBackwardBackward0", _squared_slope),
        "target": Native("MseLossBackwardBackward0", _negated(_squared_slope)),
    },
    **_INTERNAL,
)
def mse_loss(input: Tensor, target: Tensor, reduction: int = MEAN) -> Made:
    """The squared difference."""

    def loss(xp: Any, a: Any, b: Any) -> Any:
        return xp.square(a - b)

    return pairwise_loss(loss, "mse_cpu", reduction, input, target)


def _direction(difference: Tensor) -> Tensor:
    """Its sign, as constants; NaN stays."""
    fixed = difference.detach()
    return F.where(fixed == fixed, fixed.sign(), fixed)


def _smooth_slope(g: Tensor, input: Tensor, target: Tensor, reduction: int, beta: float) -> Tensor:
    difference = input - target
    slope = F.where(difference.abs() < beta, difference / beta, _direction(difference))
    return shared(g, reduction, difference.layout) * slope


@kernel(
    name="nn.smooth_l1_loss",
    vjp={
        "input": Native("SmoothL1LossBackwardBackward0", _smooth_slope),
        "target": Native(
            "SmoothL1LossBackwardBackward0",
            lambda g, input, target, reduction, beta: (
                -_smooth_slope(g, input, target, reduction, beta)
            ),
        ),
    },
    **_INTERNAL,
)
def smooth_l1_loss(input: Tensor, target: Tensor, reduction: int = MEAN, beta: float = 1.0) -> Made:
    """The absolute difference, rounded off where it is below ``beta``."""

    def loss(xp: Any, a: Any, b: Any) -> Any:
        z = xp.abs(a - b)
        return xp.where(z < beta, 0.5 * z * z / beta, z - 0.5 * beta)

    if beta < 0:
        raise TensorRuntimeError("smooth_l1_loss does not support negative values for beta.")
    return pairwise_loss(loss, "smooth_l1_cpu", reduction, input, target)


def _huber_slope(g: Tensor, input: Tensor, target: Tensor, reduction: int, delta: float) -> Tensor:
    difference = input - target
    # At ``delta`` the slope is the same from both sides, but is taken to have none itself.
    slope = F.where(difference.abs() < delta, difference, _direction(difference) * delta)
    return shared(g, reduction, difference.layout) * slope


@kernel(
    name="nn.huber_loss",
    vjp={
        "input": Native("HuberLossBackwardBackward0", _huber_slope),
        "target": Native(
            "HuberLossBackwardBackward0",
            lambda g, input, target, reduction, delta: (
                -_huber_slope(g, input, target, reduction, delta)
            ),
        ),
    },
    **_INTERNAL,
)
def huber_loss(input: Tensor, target: Tensor, reduction: int = MEAN, delta: float = 1.0) -> Made:
    """Half the squared difference up to ``delta``, from there on a straight line."""

    def loss(xp: Any, a: Any, b: Any) -> Any:
        z = xp.abs(a - b)
        return xp.where(z <= delta, 0.5 * z * z, delta * (z - 0.5 * delta))

    if delta <= 0:
        raise TensorRuntimeError("huber_loss does not support non-positive values for delta.")
    return pairwise_loss(loss, "huber_cpu", reduction, input, target)


def _broadcast(input: Any, target: Any) -> Any:
    """Both operands in one shape; PyTorch warns where they had two."""
    if target.size() != input.size():
        warn(
            f"Using a target size ({target.size()}) that is different to the input size "
            f"({input.size()}). This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size."
        )
        return F.broadcast_tensors(input, target)
    return input, target


def _check_weight(input: Any, weight: Any) -> None:
    if weight.size() != input.size():
        raise TensorValueError("Weights and input must have the same size.")


def _weighted(losses: Any, weight: Any, reduction: Any, mean: Any) -> Any:
    weighted = losses * weight
    if reduction == "none":
        return weighted
    if reduction == "sum":
        return weighted.sum()
    if reduction == "mean":
        return mean(weighted)
    raise TensorValueError(
        f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'."
    )


def named_reduction(reduction: Any, size_average: Any, reduce: Any) -> Any:
    """The reduction's name, from the two old flags where one is given."""
    if size_average is None and reduce is None:
        return reduction
    number = reduction_number(reduction, size_average, reduce)
    return ("none", "mean", "sum")[number]


@functional(name="mse_loss", example="nn.functional.mse_loss(tensor([1., 2.]), tensor([1., 4.]))")
def _mse_loss(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Any:
    """The mean of the squared differences; ``reduction`` may be "sum" or "none"."""
    a, b = _broadcast(input, target)
    reduction = named_reduction(reduction, size_average, reduce)
    if weight is None:
        return ops["nn.mse_loss"].function(a, b, reduction_number(reduction))
    _check_weight(input, weight)
    return _weighted((a - b).pow(2), weight, reduction, lambda w: w.sum() / weight.sum())


def _absolute(input: Any, target: Any, reduction: Any) -> Any:
    number = reduction_number(reduction)
    return reduced((input - target).abs(), number)


@functional(example="nn.functional.l1_loss(tensor([1., 2.]), tensor([1., 4.]))")
def l1_loss(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Any:
    """The mean of the absolute differences; ``reduction`` may be "sum" or "none"."""
    a, b = _broadcast(input, target)
    reduction = named_reduction(reduction, size_average, reduce)
    if weight is None:
        return _absolute(a, b, reduction)
    _check_weight(input, weight)
    return _weighted((a - b).abs(), weight, reduction, lambda w: w.sum() / weight.sum())


@functional(
    name="smooth_l1_loss",
    example="nn.functional.smooth_l1_loss(tensor([1., 2.]), tensor([1., 4.]))",
)
def _smooth_l1_loss(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Any:
    """The absolute difference, rounded off where it is below ``beta``."""
    a, b = _broadcast(input, target)
    reduction = named_reduction(reduction, size_average, reduce)
    if beta == 0.0:
        return _absolute(a, b, reduction)
    return ops["nn.smooth_l1_loss"].function(a, b, reduction_number(reduction), beta)


@functional(
    name="huber_loss", example="nn.functional.huber_loss(tensor([1., 2.]), tensor([1., 4.]))"
)
def _huber_loss(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Any:
    """Half the squared difference up to ``delta``, from there on a straight line."""
    a, b = _broadcast(input, target)
    if weight is None:
        return ops["nn.huber_loss"].function(a, b, reduction_number(reduction), delta)
    _check_weight(input, weight)
    losses = ops["nn.huber_loss"].function(a, b, NONE, delta)
    return _weighted(losses, weight, reduction, lambda w: w.mean())
