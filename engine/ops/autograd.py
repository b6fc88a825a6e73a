"""What users call of autograd: backward, grad, flags and hooks of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import backward as engine_backward
from engine import tape
from engine.errors import AutogradError
from engine.kinds.creation import check_differentiable
from engine.registry import attribute, method
from engine.tensor import Autograd, Tensor


@method("backward")
def backward(
    x: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Send gradients back from this tensor and add them to the leaves' ``grad``."""
    engine_backward.check_root(x, 0)
    g = engine_backward.implicit_gradient(x, gradient)
    retain = create_graph if retain_graph is None else retain_graph
    engine_backward.run([x], [g], retain=retain, create=create_graph)


@method("requires_grad_")
def requires_grad_(x: Tensor, requires_grad: bool = True) -> Tensor:
    """Set ``requires_grad`` on a leaf."""
    _set_requires_grad(x, requires_grad)
    return x


def _set_requires_grad(x: Tensor, value: bool) -> None:
    if x.ag is not None and x.ag.node is not None:
        if not value:
            raise AutogradError(
                "you can only change requires_grad flags of leaf variables. If you want to use a "
                "computed variable in a subgraph that doesn't require differentiation use "
                "var_no_grad = var.detach()."
            )
        return
    if value:
        check_differentiable(x.dtype)
    if x.ag is None:
        x.ag = Autograd(value)
    else:
        x.ag.requires_grad = value


@attribute("requires_grad", _set_requires_grad)
def requires_grad(x: Tensor) -> bool:
    """Whether operations on the tensor are recorded."""
    return tape.requires_grad(x)


@attribute("grad_fn")
def grad_fn(x: Tensor) -> Any:
    """The node that made the tensor, None for a leaf."""
    return tape.node_of(x)


@attribute("is_leaf")
def is_leaf(x: Tensor) -> bool:
    """Whether no recorded operation made the tensor."""
    return tape.node_of(x) is None


def _set_grad(x: Tensor, value: Tensor | None) -> None:
    if x.ag is None:
        x.ag = Autograd(False)
    x.ag.grad = value


@attribute("grad", _set_grad)
def grad(x: Tensor) -> Tensor | None:
    """The gradient that backward passes have added up, None before the first."""
    return None if x.ag is None else x.ag.grad
