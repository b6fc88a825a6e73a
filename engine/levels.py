"""Differentiation inside differentiation: leaves made for one transform, and what is beyond it.

A transform such as ``func.grad`` makes leaves of its own to differentiate by. Their level tells
whether a graph leads to anything that somebody else may want to differentiate: a leaf of the
user's, or one of a transform that is still running.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import tape
from engine.modes import state
from engine.tensor import Autograd, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable


class Level:
    """One run of a transform; recording is on inside, whatever the mode outside."""

    __slots__ = ("grad", "running")

    def __enter__(self) -> Level:
        self.running = True
        self.grad = state.grad
        state.grad = True
        return self

    def __exit__(self, *error: object) -> None:
        self.running = False
        state.grad = self.grad


class LevelLeaf(Autograd):
    """What autograd knows of a leaf that a transform made."""

    __slots__ = ("level",)

    level: Level


def own(x: Tensor, level: Level) -> Tensor:
    """``x`` as something to differentiate by at this level; what made it stays connected."""
    if tape.requires_grad(x) and state.grad:
        view: Tensor = x.view_as(x)
        return view
    leaf: Tensor = x.detach().requires_grad_()
    leaf.ag = LevelLeaf(True)
    leaf.ag.level = level
    return leaf


def leads_out(tensors: Iterable[Tensor], level: Level) -> bool:
    """Whether somebody else may want gradients through the graphs of ``tensors``."""
    stack: list[Any] = []
    seen: set[int] = set()
    for t in tensors:
        if not tape.requires_grad(t):
            continue
        target, _ = tape.edge(t)
        stack.append(target)
    while stack:
        target = stack.pop()
        if target is None or id(target) in seen:
            continue
        seen.add(id(target))
        if target.__class__ is Tensor:
            ag = target.ag
            if not isinstance(ag, LevelLeaf) or (ag.level.running and ag.level is not level):
                return True
        else:
            stack.extend(target.next)
    return False


def cut(value: Any, level: Level) -> Any:
    """A tensor as those outside see it: without history unless its graph leads out."""
    if not isinstance(value, Tensor) or not tape.requires_grad(value):
        return value
    return value if leads_out((value,), level) else value.detach()
