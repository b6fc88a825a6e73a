"""Losses of probabilities: binary cross entropy, Kullback-Leibler, Poisson, Gauss."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine import layout as layouts
from engine.errors import DtypeError, TensorRuntimeError, TensorValueError
from engine.kinds import Made, composite, kernel, working
from engine.kinds.functional import functional
from engine.kinds.native import Native
from engine.kinds.reduction import check_takes
from engine.kinds.results import check_castable
from engine.kinds.underived import refuse_recorded
from engine.modes import warn
from engine.ops.losses import (
    MEAN,
    NONE,
    SUM,
    named_reduction,
    pairwise_loss,
    reduced,
    reduction_number,
    shared,
)
from engine.registry import F, ops
from engine.tensor import kind_of

if TYPE_CHECKING:
    from engine.tensor import Tensor

# PyTorch bounds the logarithms of binary_cross_entropy below by this.
_LOWEST_LOG = -100.0
_LEAST_SPREAD = 1e-12

_INTERNAL: dict[str, Any] = {"function": False, "method": False, "out": False}


def _weighted(g: Tensor, weight: Tensor | None) -> Tensor:
    return g if weight is None else g * weight


def _bce_slope(
    g: Tensor, input: Tensor, target: Tensor, weight: Tensor | None, reduction: int
) -> Tensor:
    spread = ((1 - input) * input).clamp(min=_LEAST_SPREAD)
    each = shared(g, reduction, input.layout) * (input - target) / spread
    return _weighted(each, weight)


def _bce_target_slope(g: Tensor, input: Tensor, weight: Tensor | None, reduction: int) -> Tensor:
    each = shared(g, reduction, input.layout) * ((1 - input).log() - input.log())
    return _weighted(each, weight)


@kernel(
    name="nn.binary_cross_entropy",
    vjp={
        "input": Native("BinaryCrossEntropyBackwardBackward0", _bce_slope),
        "target": _bce_target_slope,
    },
    **_INTERNAL,
)
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = MEAN
) -> Made:
    """The cross entropy of chances and truths."""
    refuse_recorded("binary_cross_entropy", weight=weight)
    check_takes("f", "binary_cross_entropy", input.dtype)
    for t in (target, weight):
        if t is not None and t.dtype is not input.dtype:
            raise DtypeError(f"Found dtype {t.dtype.title} but expected {input.dtype.title}")

    def loss(xp: Any, p: Any, t: Any) -> Any:
        if ((p < 0) | (p > 1)).any():
            raise TensorRuntimeError("all elements of input should be between 0 and 1")
        if ((t < 0) | (t > 1)).any():
            raise TensorRuntimeError("all elements of target should be between 0 and 1")
        low = p.dtype.type(_LOWEST_LOG)
        losses = (t - 1) * xp.maximum(xp.log1p(-p), low) - t * xp.maximum(xp.log(p), low)
        return losses if weight is None else losses * working(weight)

    return pairwise_loss(loss, "binary_cross_entropy", reduction, input, target)


def _with_logits_slope(
    g: Tensor,
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    pos_weight: Tensor | None,
    reduction: int,
) -> Tensor:
    each = _weighted(shared(g, reduction, input.layout), weight)
    if pos_weight is None:
        return (input.sigmoid() - target) * each
    t = pos_weight * target
    return ((t + 1 - target) * input.sigmoid() - t) * each


def _with_logits_target_slope(
    g: Tensor,
    input: Tensor,
    weight: Tensor | None,
    pos_weight: Tensor | None,
    reduction: int,
) -> Tensor:
    each = _weighted(shared(g, reduction, input.layout), weight)
    if pos_weight is None:
        return -input * each
    return (F.logsigmoid(-input) - pos_weight * F.logsigmoid(input)) * each


@kernel(
    name="binary_cross_entropy_with_logits",
    vjp={"input": _with_logits_slope, "target": _with_logits_target_slope},
    method=False,
    out=False,
    example="binary_cross_entropy_with_logits(tensor([0.5]), tensor([1.]))",
)
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = NONE,
) -> Made:
    """The cross entropy of truths and chances that are given by their logits."""
    refuse_recorded("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
    check_takes("f", "log_sigmoid_cpu", input.dtype)
    device = input.kind.device
    common = dtypes.result_type([input.dtype, target.dtype], [], [])
    check_castable(kind_of(common, device), target.kind)
    shape = layouts.broadcast_shapes(input.layout.shape, target.layout.shape)
    if pos_weight is not None:
        layouts.broadcast_shapes(pos_weight.layout.shape, target.layout.shape)
    if weight is not None:
        layouts.broadcast_shapes(shape, weight.layout.shape)
    layout = layouts.elementwise([target.layout], shape)

    def run(xp: Any) -> Any:
        x, t = working(input, common), working(target, common)
        log = xp.minimum(x, x.dtype.type(0)) - xp.log1p(xp.exp(-xp.abs(x)))
        if pos_weight is not None:
            log = log * ((working(pos_weight) - 1) * t + 1)
        losses = (1 - t) * x - log
        if weight is not None:
            losses = losses * working(weight)
        if reduction == NONE:
            return losses
        if reduction == SUM:
            return losses.sum()
        return losses.mean() if losses.size else xp.full((), xp.nan, losses.dtype)

    return Made(target.dtype, layout if reduction == NONE else layouts.contiguous(()), run)


@functional(
    name="binary_cross_entropy",
    example="nn.functional.binary_cross_entropy(tensor([0.25]), tensor([1.]))",
    domain=(0.05, 0.95),
)
def _binary_cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """The cross entropy of chances (0 to 1) and truths, their logarithms bounded at -100."""
    number = reduction_number(reduction, size_average, reduce)
    if target.size() != input.size():
        raise TensorValueError(
            f"Using a target size ({target.size()}) that is different to the input size "
            f"({input.size()}) is deprecated. Please ensure they have the same size."
        )
    if weight is not None:
        weight = weight.expand(F.broadcast_shapes(target.size(), weight.size()))
    return ops["nn.binary_cross_entropy"].function(input, target, weight, number)


@functional(
    name="binary_cross_entropy_with_logits",
    example="nn.functional.binary_cross_entropy_with_logits(tensor([0.5]), tensor([1.]))",
)
def _binary_cross_entropy_with_logits(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Any:
    """binary_cross_entropy of sigmoid, exact for large scores.

    ``pos_weight`` weighs the truths that are 1.
    """
    number = reduction_number(reduction, size_average, reduce)
    if not (target.size() == input.size()):
        raise TensorValueError(
            f"Target size ({target.size()}) must be the same as input size ({input.size()})"
        )
    return ops["binary_cross_entropy_with_logits"].function(
        input, target, weight, pos_weight, number
    )


@composite(method=False, out=False, example="kl_div(tensor([-1., -0.5]), tensor([0.4, 0.6]))")
def kl_div(
    input: Tensor, target: Tensor, reduction: int = NONE, *, log_target: bool = False
) -> Tensor:
    """target * (log(target) - input), element by element, then reduced."""
    if any(t.dtype.category <= dtypes.INT for t in (input, target)):
        raise TensorRuntimeError("kl_div: Integral inputs not supported.")
    if log_target:
        return reduced(target.exp() * (target - input), reduction)
    return reduced(F.xlogy(target, target) - target * input, reduction)


@functional(
    name="kl_div",
    example="nn.functional.kl_div(tensor([[-1., -0.5]]), tensor([[0.4, 0.6]]), reduction='sum')",
)
def _kl_div(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Any:
    """The Kullback-Leibler divergence of ``target`` from the log-probabilities ``input``.

    "batchmean" divides by the size of the batch, as the mathematical definition does.
    """
    old = size_average is not None or reduce is not None
    if not old and reduction == "mean":
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.'mean' will be changed to behave the same as 'batchmean' in the next "
            "major release."
        )
    by_batch = not old and reduction == "batchmean"
    number = SUM if by_batch else reduction_number(reduction, size_average, reduce)
    y = ops["kl_div"].function(input, target, number, log_target=log_target)
    return y / input.size()[0] if reduction == "batchmean" and input.dim() else y


@composite(
    method=False,
    out=False,
    example="poisson_nll_loss(tensor([0.5]), tensor([2.]), True, False, 1e-8, 1)",
)
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Tensor:
    """Minus the log-likelihood of counts under a Poisson distribution."""
    if log_input:
        losses = input.exp() - target * input
    else:
        losses = input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (target * (2 * math.pi)).log()
        losses = losses + stirling.masked_fill(target <= 1, 0)
    return reduced(losses, reduction)


@functional(
    name="poisson_nll_loss",
    example="nn.functional.poisson_nll_loss(tensor([0.5]), tensor([2.]))",
)
def _poisson_nll_loss(
    input: Any,
    target: Any,
    log_input: bool = True,
    full: bool = False,
    size_average: Any = None,
    eps: float = 1e-8,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """Minus the log-likelihood of counts under a Poisson distribution.

    ``full`` adds Stirling's approximation of the factorial's logarithm.
    """
    name = named_reduction(reduction, size_average, reduce)
    if name not in ("none", "mean", "sum"):
        raise TensorValueError(f"{name} is not a valid value for reduction")
    return ops["poisson_nll_loss"].function(
        input, target, log_input, full, eps, reduction_number(name)
    )


@functional(
    data_dependent=True,
    example="nn.functional.gaussian_nll_loss(tensor([0.5]), tensor([2.]), tensor([1.]))",
)
def gaussian_nll_loss(
    input: Any,
    target: Any,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Any:
    """Minus the log-likelihood of targets under normal distributions with variances ``var``."""
    if isinstance(var, float):
        if var < 0:
            raise TensorValueError("var has negative entry/entries")
        var = var * F.ones_like(input)
    elif (var < 0).any().item():
        raise TensorValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif not _shared_once(input.size(), var.size()):
            raise TensorValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise TensorValueError(f"{reduction} is not valid")
    bounded = var.clone()
    bounded.detach().clamp_(min=eps)
    loss = 0.5 * (bounded.log() + (input - target) ** 2 / bounded)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction_number(reduction))


def _shared_once(input: Any, var: Any) -> bool:
    """Whether the variances are shared along just one dimension."""
    if len(input) != len(var):
        return False
    return sum(v for n, v in zip(input, var, strict=True) if n != v) == 1
