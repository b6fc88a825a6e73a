"""grads(): the leaves of a session that have a name, with their values and gradients."""

from __future__ import annotations

from tensorcli.explain.names import named_tensors
from tensorcli.explain.summary import summary
from tensorcli.results import GradientRow, GradientsResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.tensor import Tensor


def explain(
    names: Mapping[str, object], line: int | None, *, asked: bool = True
) -> GradientsResult:
    """One row for each named leaf that requires a gradient, and each tensor that retains one."""
    seen: set[int] = set()
    rows: list[GradientRow] = []
    for name, tensor in named_tensors(names):
        if id(tensor) not in seen and _is_listed(tensor):
            seen.add(id(tensor))
            rows.append(_row(name, tensor, names))
    return GradientsResult(tuple(rows), line, asked)


def _is_listed(tensor: Tensor) -> bool:
    ag = tensor.ag
    return ag is not None and ag.requires_grad and (ag.node is None or ag.retains)


def _row(name: str, tensor: Tensor, names: Mapping[str, object]) -> GradientRow:
    ag = tensor.ag
    assert ag is not None
    reason = None
    if ag.grad is None:
        from tensorcli.explain import absent

        reason = absent.reason(name, tensor, names)
    return GradientRow(
        name,
        tensor.layout.shape,
        tensor.dtype.name,
        summary(tensor),
        None if ag.grad is None else summary(ag.grad),
        ag.times or None,
        reason,
    )
