"""Derivatives taken by running other operations again: for ops that are one node of PyTorch's
graph and many operations here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.modes import state
from engine.registry import functions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.tensor import Tensor


def array_of(compute: Callable[..., Tensor], *values: Any) -> Any:
    """The array of ``compute(*values)``, nothing recorded."""
    before = state.grad
    state.grad = False
    try:
        return compute(*values).array
    finally:
        state.grad = before


def differentiated(
    compute: Callable[..., Tensor],
    g: Tensor,
    inputs: Sequence[Any],
    needed: Sequence[bool],
    *rest: Any,
) -> list[Any]:
    """The gradients of ``compute(*inputs, *rest)`` for the inputs that need one, else None.

    They can be derived in turn where that is being recorded.
    """
    before = state.grad
    state.grad = True
    try:
        leaves = [
            x.detach().requires_grad_(True) if n and not before else x
            for x, n in zip(inputs, needed, strict=True)
        ]
        y = compute(*leaves, *rest)
        wanted = [x for x, n in zip(leaves, needed, strict=True) if n]
        found = iter(
            functions["autograd.grad"]([y], wanted, [g], create_graph=before, allow_unused=True)
        )
    finally:
        state.grad = before
    return [next(found) if n else None for n in needed]
