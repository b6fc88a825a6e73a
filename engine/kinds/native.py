"""Derivatives that are one operation in PyTorch: differentiated again, they show one node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import backward, tape
from engine.modes import state
from engine.registry import F
from engine.tape import Gradient, Node
from engine.tensor import Tensor, alias

if TYPE_CHECKING:
    from collections.abc import Callable


class Native:
    """A derivative that records itself as one node of that name when gradients are recorded.

    The node's inputs are all tensors that the derivative takes; those it does not depend on get
    zeros, as PyTorch's hand-written second derivatives give them. It goes backward by working
    the derivative out again, recorded step by step, so that any further derivative is right.
    """

    __slots__ = ("__code__", "gradient", "rule")

    def __init__(self, name: str, rule: Callable[..., Any]):
        self.rule = rule
        self.gradient = Gradient(name, self._apply)
        self.__code__ = rule.__code__  # parameter names are read there

    def __call__(self, *values: Any) -> Any:
        if not state.grad:
            return self.rule(*values)
        tensors = [v for v in values if v.__class__ is Tensor]
        if not any(tape.requires_grad(t) for t in tensors):
            return self.rule(*values)
        state.grad = False
        try:
            result = self.rule(*values)
        finally:
            state.grad = True
        if result.base is not None or any(result is t for t in tensors):
            result = alias(result)
        node = tape.make_node(self.gradient, result, tensors)
        node.saved = values
        node.versions = tuple([tape.version_of(v) if v.__class__ is Tensor else 0 for v in values])
        tape.attach(result, node)
        return result

    def _apply(self, node: Node, g: Tensor) -> list[Tensor | None]:
        saved = tape.unpack(node)
        create = state.grad
        state.grad = True
        try:
            # Views, so that what one input owes to another is not counted here.
            values = [
                v.view_as(v) if v.__class__ is Tensor and tape.requires_grad(v) else v
                for v in saved
            ]
            result = self.rule(*values)
        finally:
            state.grad = create
        tensors = [v for v in values if v.__class__ is Tensor]
        wanted = [t for t in tensors if tape.requires_grad(t)]
        found: list[Tensor | None] = [None] * len(wanted)
        if tape.requires_grad(result):
            found = backward.run(
                [result], [g], retain=True, create=create, inputs=wanted, accumulate=False
            )
        by_tensor = {id(t): part for t, part in zip(wanted, found, strict=True)}
        return [
            None
            if id(t) not in by_tensor
            else F.zeros_like(t)
            if by_tensor[id(t)] is None
            else by_tensor[id(t)]
            for t in tensors
        ]
