"""Losses of sequences and of whole layers: ctc_loss, linear_cross_entropy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine.errors import TensorRuntimeError
from engine.kinds import composite, kernel, made
from engine.kinds.functional import functional
from engine.kinds.native import Native
from engine.kinds.recomputed import array_of, differentiated
from engine.kinds.reduction import check_takes
from engine.kinds.underived import NODE, underived
from engine.layout import wrap_dim
from engine.ops.losses import MEAN, NONE, SUM, reduction_number
from engine.registry import F, ops
from engine.tensor import Tensor

if TYPE_CHECKING:
    from engine.kinds import Made


# The logarithm of what cannot be; finite, because differences of infinities are not numbers.
_NEVER = -1e30


def _labels(targets: Tensor, lengths: tuple[int, ...]) -> list[list[int]]:
    """The labels of each sequence: rows of a matrix, or one line cut by the lengths."""
    if targets.layout.ndim == 2:
        rows = targets.array.tolist()
        return [[int(n) for n in row[:k]] for row, k in zip(rows, lengths, strict=True)]
    flat = [int(n) for n in targets.array.tolist()]
    labels = []
    at = 0
    for k in lengths:
        labels.append(flat[at : at + k])
        at += k
    return labels


def _one(log_probs: Tensor, labels: list[int], length: int, blank: int) -> Tensor:
    """Minus the logarithm of the chance of one sequence; ``log_probs`` is (time, classes)."""
    path = [blank]
    for n in labels:
        path += [n, blank]
    states = len(path)
    scores = log_probs.index_select(1, F.tensor(path))
    never = scores.new_full((1,), _NEVER)
    if length == 0:
        return -never[0] if labels else scores.new_zeros(())
    skips = F.tensor(
        [i >= 2 and path[i] != blank and path[i] != path[i - 2] for i in range(states)]
    )
    begins = min(2, states)
    alpha = F.cat([scores[0][:begins], never.expand((states - begins,))])
    for t in range(1, length):
        before = F.cat([never, alpha[:-1]])
        skipped = F.cat([never, never, alpha[:-2]])[:states] if states > 1 else never
        skipped = F.where(skips, skipped, _NEVER)
        alpha = F.logsumexp(F.stack([alpha, before, skipped]), 0) + scores[t]
    return -F.logsumexp(alpha[-2:], 0)


def _sequences(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: tuple[int, ...],
    target_lengths: tuple[int, ...],
    blank: int,
) -> Tensor:
    """The losses of a batch, made of operations that know their derivatives."""
    labels = _labels(targets, target_lengths)
    wide = log_probs.to(dtypes.float64)
    losses = [_one(wide[:, i], labels[i], length, blank) for i, length in enumerate(input_lengths)]
    y = F.stack(losses)
    return F.where(y > -_NEVER / 2, float("inf"), y).to(log_probs.dtype)


def _gradients(
    g: Tensor,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: tuple[int, ...],
    target_lengths: tuple[int, ...],
    blank: int,
    zero_infinity: bool,
) -> Any:
    rest = (targets, input_lengths, target_lengths, blank)
    (found,) = differentiated(_sequences, g, (log_probs,), (True,), *rest)
    # PyTorch's derivative supposes that log_probs come out of log_softmax: minus each row's sum.
    inside = found - log_probs.exp() * found.sum(2, keepdim=True)
    impossible = array_of(_sequences, log_probs, *rest) == float("inf")
    hidden = F.tensor(impossible.tolist()).reshape((1, -1, 1))
    return F.where(hidden, 0.0 if zero_infinity else float("nan"), inside)


@kernel(
    name="nn.ctc_loss",
    node="CtcLossBackward0",
    vjp={"log_probs": Native(NODE, _gradients, underived("_ctc_loss_backward"))},
    function=False,
    method=False,
    out=False,
)
def _ctc_loss_kernel(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int,
    zero_infinity: bool,
) -> Made:
    """The loss of each sequence."""
    check_takes("f", "ctc_loss_cpu", log_probs.dtype)
    time, batch, classes = log_probs.layout.shape
    where = "(while checking arguments for ctc_loss_allocate_outputs)"
    if not 0 <= blank < classes:
        raise TensorRuntimeError("blank must be in label range")
    if len(input_lengths) != batch:
        raise TensorRuntimeError("input_lengths must be of size batch_size")
    if len(target_lengths) != batch:
        raise TensorRuntimeError("target_lengths must be of size batch_size")
    longest = max(target_lengths, default=0)
    if targets.layout.ndim == 2 and targets.layout.shape[1] < longest:
        raise TensorRuntimeError(
            f"Expected tensor to have size at least {longest} at dimension 1, but got size "
            f"{targets.layout.shape[1]} for argument #2 'targets' {where}"
        )
    for n in input_lengths:
        if n > time:
            raise TensorRuntimeError(
                f"Expected input_lengths to have value at most {time}, but got value {n} {where}"
            )

    def run(xp: Any) -> Any:
        losses = array_of(_sequences, log_probs, targets, input_lengths, target_lengths, blank)
        if zero_infinity:
            losses = xp.where(xp.isposinf(losses), losses.dtype.type(0), losses)
        return losses

    return made(log_probs.dtype, (batch,), run)


def _numbers(lengths: Any) -> tuple[int, ...]:
    if isinstance(lengths, Tensor):
        listed = lengths.array.reshape(-1).tolist()
        return tuple([int(n) for n in listed])
    return tuple(lengths)


@composite(
    method=False,
    out=False,
    example="ctc_loss(log_softmax(ones(3, 1, 2), 2), tensor([[1]]), (3,), (1,))",
)
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = NONE,
    zero_infinity: bool = False,
) -> Tensor:
    """Minus the log-likelihood of label sequences that a network may emit with blanks between.

    ``log_probs`` is (time, batch, classes).
    """
    alone = log_probs.layout.ndim == 2
    wrap_dim(1, log_probs.layout.ndim)
    if alone:
        log_probs = log_probs.unsqueeze(1)
    spans, lengths = _numbers(input_lengths), _numbers(target_lengths)
    if targets.layout.ndim == 1 and alone:
        targets = targets.unsqueeze(0)
    y = ops["nn.ctc_loss"].function(log_probs, targets, spans, lengths, blank, zero_infinity)
    if reduction == MEAN:
        y = (y / F.tensor([max(n, 1) for n in lengths], dtype=y.dtype, device=y.device)).mean()
    elif reduction == SUM:
        y = y.sum()
    elif alone:
        y = y.squeeze(0)
    return y


@functional(
    name="ctc_loss",
    example=("nn.functional.ctc_loss(log_softmax(ones(3, 1, 2), 2), tensor([[1]]), (3,), (1,))"),
)
def _ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:
    """Minus the log-likelihood of label sequences that a network may emit with blanks between.

    ``log_probs`` is (time, batch, classes); "mean" divides by the targets' lengths first.
    """
    return ops["ctc_loss"].function(
        log_probs,
        targets,
        input_lengths,
        target_lengths,
        blank,
        reduction_number(reduction),
        zero_infinity,
    )


@functional(example="nn.functional.linear_cross_entropy(ones(1, 2), ones(3, 2), tensor([0]))")
def linear_cross_entropy(
    input: Any,
    linear_weight: Any,
    target: Any,
    *,
    linear_bias: Any = None,
    weight: Any = None,
    reduction: str = "mean",
    ignore_index: Any = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Any:
    """cross_entropy of a linear layer's outputs."""
    number = reduction_number(reduction)
    if input.dim() not in (1, 2):
        raise TensorRuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise TensorRuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}"
        )
    spread = tuple(linear_weight.size())[:-1]
    if linear_bias is not None and tuple(linear_bias.size()) != spread:
        raise TensorRuntimeError(
            f"expected linear_bias shape {spread}, got {tuple(linear_bias.size())}"
        )
    if len(spread) > 1 and input.dim() == 1:
        raise TensorRuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.size())} "
            f"requires batched input, (N, {linear_weight.size(-1)}), got unbatched input with "
            f"shape {tuple(input.size())}"
        )
    flat = linear_weight.reshape(-1, linear_weight.size(-1))
    scores = F.linear(input, flat, None if linear_bias is None else linear_bias.reshape(-1))
    scores = scores.view(*tuple(input.size())[:-1], *spread)
    return ops["nn.cross_entropy_loss"].function(
        scores,
        target,
        weight,
        number,
        -100 if ignore_index is None else ignore_index,
        label_smoothing,
    )
