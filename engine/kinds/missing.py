"""Derivatives that PyTorch does not have: the node is there, and to go through it is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import tape
from engine.errors import AutogradError, TensorNotImplementedError
from engine.modes import state

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.tensor import Tensor

# The node of what PyTorch has no derivative of at all.
NODE = "torch::autograd::NotImplemented"


def no_derivative(name: str) -> Callable[[Any], Any]:
    """The derivative of an operation that PyTorch never gave one; its node is ``NODE``."""

    def derivative(g: Any) -> Any:
        raise AutogradError(f"derivative for aten::{name} is not implemented")

    return derivative


def unwritten(name: str) -> Callable[[Any], Any]:
    """A derivative that PyTorch's table of derivatives lists as not implemented."""

    def derivative(g: Any) -> Any:
        raise TensorNotImplementedError(f"the derivative for '{name}' is not implemented.")

    return derivative


def refuse_gradients(function: str, **inputs: Tensor | None) -> None:
    """Refuse inputs that require grad where PyTorch has no derivative by them."""
    if not state.grad:
        return
    for name, t in inputs.items():
        if t is not None and tape.requires_grad(t):
            raise AutogradError(
                f"The function '{function}' is not differentiable with respect to argument "
                f"'{name}'. This input cannot have requires_grad True."
            )
