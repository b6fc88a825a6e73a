"""Derivatives that are one operation in PyTorch: differentiated again, they show one node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import backward, tape
from engine.modes import state
from engine.registry import F
from engine.tape import Gradient, Node
from engine.tensor import Tensor, alias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Native:
    """A derivative that records itself as one node of that name when gradients are recorded.

    The node's inputs are all tensors that the derivative takes; those it does not depend on get
    zeros, as PyTorch's hand-written second derivatives give them. It goes backward by working
    the derivative out again, recorded step by step, so that any further derivative is right;
    ``refusal`` stands in for that where PyTorch has no second derivative and raises what it says.
    """

    __slots__ = ("__code__", "gradient", "rule")

    def __init__(
        self,
        name: str,
        rule: Callable[..., Any],
        refusal: Callable[[Any], Any] | None = None,
    ):
        self.rule = rule
        self.gradient = Gradient(name, self._apply if refusal is None else _refusing(refusal))
        self.__code__ = rule.__code__  # parameter names are read there

    def __call__(self, *values: Any) -> Any:
        if not state.grad:
            return self.rule(*values)
        tensors = [v for v in values if v.__class__ is Tensor]
        state.grad = False
        try:
            result = self.rule(*values)
        finally:
            state.grad = True
        if not any(tape.requires_grad(t) for t in tensors):
            return result
        if result.__class__ is Tensor:
            return self._recorded([result], tensors, values)[0]
        return self._recorded(result, tensors, values)

    def _recorded(
        self, parts: Sequence[Any], tensors: list[Tensor], values: tuple[Any, ...]
    ) -> list[Any]:
        """``parts`` as the outputs of one node; None where the derivative gave none."""
        parts = [
            alias(t)
            if t is not None and (t.base is not None or any(t is v for v in tensors))
            else t
            for t in parts
        ]
        present = [t for t in parts if t is not None]
        if not present:
            return parts
        node = tape.make_node(self.gradient, present[0], tensors)
        if len(parts) > 1:
            shown = [present[0] if t is None else t for t in parts]
            node.outputs = [(t.kind, t.layout) for t in shown]
        node.saved = values
        node.versions = tuple([tape.version_of(v) if v.__class__ is Tensor else 0 for v in values])
        for nr, t in enumerate(parts):
            if t is not None:
                tape.attach(t, node, nr)
        return parts

    def _apply(self, node: Node, g: Any) -> list[Tensor | None]:
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
        pairs = [(result, g)] if result.__class__ is Tensor else zip(result, g, strict=True)
        roots = [
            (t, part)
            for t, part in pairs
            if t is not None and part is not None and tape.requires_grad(t)
        ]
        found: list[Tensor | None] = [None] * len(wanted)
        if roots:
            found = backward.run(
                [t for t, _ in roots],
                [part for _, part in roots],
                retain=True,
                create=create,
                inputs=wanted,
                accumulate=False,
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


def _refusing(refusal: Callable[[Any], Any]) -> Callable[[Node, Any], Any]:
    return lambda node, g: refusal(g)
