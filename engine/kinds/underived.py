"""Operations without a derivative: what going back through them raises.

PyTorch has two ways. An operation that its table of derivatives does not know is recorded all the
same, as a node whose name says so. For an input that the table lists as not implemented yet, the
node has the operation's own name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import tape
from engine.errors import AutogradError, TensorNotImplementedError
from engine.modes import state
from engine.tape import Gradient, make_node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.tensor import Tensor

NODE = "torch::autograd::NotImplemented"


def underived(name: str) -> Any:
    """The derivative of an operation that has none; its node is called ``NODE``."""

    def refuse(g: Any) -> Any:
        raise AutogradError(f"derivative for aten::{name} is not implemented")

    return refuse


def unlisted(name: str) -> Any:
    """The derivative for an input that PyTorch's table of derivatives leaves out."""

    def refuse(g: Any) -> Any:
        raise TensorNotImplementedError(f"the derivative for '{name}' is not implemented.")

    return refuse


def refusing(name: str) -> Gradient:
    """How a node of an operation without a derivative goes backward: not at all."""
    found = _gradients.get(name)
    if found is None:
        refuse = underived(name)
        found = _gradients[name] = Gradient(NODE, lambda node, g: refuse(g))
    return found


def record_underived(name: str, inputs: Sequence[Tensor | None], results: Sequence[Tensor]) -> None:
    """Make ``results`` those of an operation without a derivative, where an input is recorded."""
    if not state.grad or not any(t is not None and tape.requires_grad(t) for t in inputs):
        return
    node = make_node(refusing(name), results[0], inputs)
    if len(results) > 1:
        node.outputs = [(t.kind, t.layout) for t in results]
    for nr, y in enumerate(results):
        tape.attach(y, node, nr)


def refuse_recorded(function: str, **tensors: Tensor | None) -> None:
    """Refuse arguments that PyTorch's table of derivatives does not have, where they require grad:
    ``function`` is the name there."""
    for name, t in tensors.items():
        if t is not None and state.grad and tape.requires_grad(t):
            raise AutogradError(
                f"The function '{function}' is not differentiable with respect to argument "
                f"'{name}'. This input cannot have requires_grad True."
            )


_gradients: dict[str, Gradient] = {}
