"""Going backward through the graph: ordering, accumulation, leaves, captured inputs.

A heap over sequence numbers visits nodes in the reverse of their creation, so no recursion and
no count of dependencies is needed: all consumers of a node were made after it.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

from engine import layout as layouts
from engine.errors import AutogradError, TensorRuntimeError
from engine.modes import state
from engine.tape import Node, refresh, release, sum_to
from engine.tensor import Autograd, Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence


def run(
    roots: Sequence[Tensor],
    gradients: Sequence[Tensor],
    *,
    retain: bool = False,
    create: bool = False,
    inputs: Sequence[Tensor] | None = None,
    accumulate: bool = True,
) -> list[Tensor | None]:
    """Send ``gradients`` back from ``roots``.

    With ``inputs`` only what leads to them runs and their gradients are returned (and added to
    their ``grad`` if ``accumulate``); without, every leaf's ``grad`` is added to.
    """
    old = state.grad
    state.grad = create
    site = state.site
    try:
        return _run(roots, gradients, retain, create, inputs, accumulate)
    finally:
        state.grad = old
        state.site = site


def _run(
    roots: Sequence[Tensor],
    gradients: Sequence[Tensor],
    retain: bool,
    create: bool,
    inputs: Sequence[Tensor] | None,
    accumulate: bool,
) -> list[Tensor | None]:
    buffers: dict[Any, Any] = {}
    heap: list[tuple[int, Any]] = []
    leaves: dict[Any, Tensor] = {}
    push, pop = heapq.heappush, heapq.heappop

    wanted: dict[tuple[int, int], list[int]] = {}
    found: list[Tensor | None] = []
    needed: set[int] | None = None
    if inputs is not None:
        found = [None] * len(inputs)
        for at, t in enumerate(inputs):
            target, nr = _target(t)
            wanted.setdefault((id(target), nr), []).append(at)
        needed = _leading_to(roots, {key[0] for key in wanted})

    def deliver(target: Any, nr: int, g: Tensor) -> None:
        if target.__class__ is Tensor:
            g = _fit(g, target)
            held = leaves.get(target)
            leaves[target] = g if held is None else held + g
            return
        if needed is not None and id(target) not in needed:
            return
        if target.outputs is None:
            if g.layout is not target.layout or g.kind is not target.kind:
                g = _fit(g, target)
            held = buffers.get(target)
            if held is None:
                buffers[target] = g
                push(heap, (-target.sequence, target))
            else:
                buffers[target] = held + g
            return
        held = buffers.get(target)
        if held is None:
            held = buffers[target] = [None] * len(target.outputs)
            push(heap, (-target.sequence, target))
        g = _fit_to(g, *target.outputs[nr])
        held[nr] = g if held[nr] is None else held[nr] + g

    for root, g in zip(roots, gradients, strict=True):
        target, nr = _target(root)
        deliver(target, nr, g)

    while heap:
        node: Node = pop(heap)[1]
        g = buffers.pop(node)
        if node.hooks is not None:
            g = _run_hooks(node, g)
        if wanted:
            for nr in range(1 if node.outputs is None else len(node.outputs)):
                at = wanted.get((id(node), nr))
                if at is not None:
                    for i in at:
                        found[i] = g if node.outputs is None else g[nr]
            if not _continues(node, needed, wanted):
                continue
        state.site = node.site
        grads = node.gradient.apply(node, g)
        for target, nr, grad in zip(node.next, node.nr, grads, strict=False):
            if target is not None and grad is not None:
                deliver(target, nr, grad)
        if not retain:
            release(node)

    for leaf, g in leaves.items():
        if leaf.ag is not None and leaf.ag.hooks:
            g = _apply_hooks(leaf.ag.hooks, g)
        if inputs is not None:
            for i in wanted.get((id(leaf), 0), ()):
                found[i] = g
        if inputs is None:
            add_to_leaf(leaf, g, create)
    if inputs is not None and accumulate:
        for t, captured in zip(inputs, found, strict=True):
            if captured is not None:
                add_to_leaf(t, captured, create)
    return found


def _target(t: Tensor) -> tuple[Any, int]:
    if t.base is not None:
        refresh(t)
    ag = t.ag
    if ag is None or ag.node is None:
        return t, 0
    return ag.node, ag.nr


def _continues(node: Node, needed: set[int] | None, wanted: dict[tuple[int, int], list[int]]) -> bool:
    """Whether anything wanted lies beyond ``node``."""
    if needed is None:
        return True
    return any(
        target is not None
        and (id(target) in needed or (target.__class__ is Tensor and (id(target), 0) in wanted))
        for target in node.next
    )


def _leading_to(roots: Sequence[Tensor], targets: set[int]) -> set[int]:
    """The ids of the nodes from which some target can be reached, found without recursion."""
    leads: dict[int, bool] = {}
    stack: list[tuple[Any, bool]] = [(_target(root)[0], False) for root in roots]
    while stack:
        node, done = stack.pop()
        if node.__class__ is Tensor:
            continue
        key = id(node)
        if not done:
            if key in leads:
                continue
            leads[key] = key in targets
            stack.append((node, True))
            stack.extend((n, False) for n in node.next if n is not None and id(n) not in leads)
        else:
            leads[key] = leads[key] or any(
                n is not None and (id(n) in targets or leads.get(id(n), False)) for n in node.next
            )
    return {key for key, value in leads.items() if value}


def _fit(g: Tensor, target: Any) -> Tensor:
    return _fit_to(g, target.kind, target.layout)


def _fit_to(g: Tensor, kind: Any, layout: Any) -> Tensor:
    """``g`` brought to the shape and dtype that the forward value had there."""
    if g.layout.shape != layout.shape:
        g = sum_to(g, layout.shape)
    if g.kind is not kind:
        if g.kind.dtype.is_complex and not kind.dtype.is_complex:
            g = g.real
        if g.kind is not kind:
            g = g.to(kind.dtype)
    return g


def add_to_leaf(leaf: Tensor, g: Tensor, create: bool) -> None:
    """Add ``g`` to ``leaf.grad``; the first one is stored in a copy laid out as the leaf is."""
    ag = leaf.ag
    if ag is None:
        ag = leaf.ag = Autograd(False)
    ag.times += 1
    held = ag.grad
    if held is None:
        ag.grad = g if create else own(g, leaf)
    elif create:
        ag.grad = held + g
    else:
        held.add_(g)


def own(g: Tensor, leaf: Tensor) -> Tensor:
    """A copy of ``g`` in memory of its own, with the leaf's strides where those are dense."""
    wanted = leaf.layout if leaf.layout.dense else layouts.contiguous(leaf.layout.shape)
    result = g.new_empty_strided(wanted.shape, wanted.strides)
    return result.copy_(g)


def _run_hooks(node: Node, g: Any) -> Any:
    """Hooks on the tensors that this node made; each may replace the gradient."""
    for nr, hooks, keeper in node.hooks:
        part = g if node.outputs is None else g[nr]
        if part is None:
            continue
        part = _apply_hooks(hooks, part)
        if node.outputs is None:
            g = part
        else:
            g[nr] = part
        tensor = keeper()
        if tensor is not None and tensor.ag is not None and tensor.ag.retains:
            held = tensor.ag.grad
            tensor.ag.grad = part if held is None else held + part
            tensor.ag.times += 1
    return g


def _apply_hooks(hooks: Any, g: Tensor) -> Tensor:
    for hook in list(hooks.values()):
        changed = hook(g)
        if changed is not None:
            g = changed
    return g


def implicit_gradient(root: Tensor, given: Tensor | None) -> Tensor:
    """The gradient to start from: ``given``, or one for a root with a single element."""
    if given is None:
        if root.layout.numel != 1:
            raise AutogradError("grad can be implicitly created only for scalar outputs")
        if not root.dtype.is_floating_point:
            raise AutogradError(
                "grad can be implicitly created only for real scalar outputs but got "
                f"torch.{root.dtype.name}"
            )
        return root.new_ones(root.layout.shape)
    if given.layout.shape != root.layout.shape:
        raise TensorRuntimeError(
            f"Mismatch in shape: grad_output[0] has a shape of {given.shape} and output[0] has a "
            f"shape of {root.shape}."
        )
    return given


def check_root(root: Tensor, at: int) -> None:
    """Refuse a root without history."""
    if root.base is not None:
        refresh(root)
    if root.ag is None or not root.ag.requires_grad:
        raise AutogradError(f"element {at} of tensors does not require grad and does not have a grad_fn")
