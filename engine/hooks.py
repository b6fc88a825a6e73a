"""Hooks that programs put on tensors and nodes: tables of functions, and handles to remove them."""

from __future__ import annotations

from typing import Any

from engine.exposed import expose


class HookHandle:
    """What registering a hook gives: ``remove()`` takes the hook away again."""

    __slots__ = ("hooks", "id")

    made = 0

    def __init__(self, hooks: dict[int, Any], hook: Any):
        self.hooks = hooks
        self.id = HookHandle.made
        HookHandle.made += 1
        hooks[self.id] = hook

    def remove(self) -> None:
        """Take the hook away; doing so twice does nothing."""
        self.hooks.pop(self.id, None)

    def __repr__(self) -> str:
        return f"<torch.utils.hooks.RemovableHandle object at {id(self):#x}>"


def nobody() -> None:
    """Stands for the tensor of hooks that are a node's own; they run after its tensors'."""


expose(
    HookHandle,
    attributes={"id": lambda handle: handle.id},
    methods={"remove": HookHandle.remove},
)
