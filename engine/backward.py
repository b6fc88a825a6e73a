"""Going backward through the graph: ordering, accumulation, leaves, captured inputs.

A heap over sequence numbers visits nodes in the reverse of their creation, so no recursion and
no count of dependencies is needed: all consumers of a node were made after it.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from engine import layout as layouts
from engine import lazy
from engine.errors import AutogradError, TensorRuntimeError
from engine.modes import state
from engine.tape import FREED, Node, bump, refresh, sum_to
from engine.tensor import Autograd, Tensor, wrap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.layout import Layout
    from engine.tensor import Kind


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
    edges = [(*_target(root), g) for root, g in zip(roots, gradients, strict=True)]
    captures = None if inputs is None else _Captures(roots, inputs)
    return send(edges, retain, create, captures, accumulate)


def run_one(root: Tensor) -> None:
    """As ``run`` for the plain case: one root with one element that is no view."""
    ag = root.ag
    assert ag is not None
    real = root.kind.dtype.is_floating_point and root.array is not None
    start = _one(root) if real and not root.layout.ndim else implicit_gradient(root, None, 0)
    send(((root if ag.node is None else ag.node, ag.nr, start),), False, False, None, True)


def send(
    edges: Any, retain: bool, create: bool, captures: _Captures | None, accumulate: bool
) -> list[Tensor | None]:
    """Go backward from ``edges``, (target, number, gradient) each, in the right gradient mode."""
    old = state.grad
    site = state.site
    state.grad = create
    try:
        leaves = _visit(edges, retain, captures)
        return _finish_leaves(leaves, captures, create, accumulate)
    finally:
        state.grad = old
        state.site = site


def _visit(edges: Any, retain: bool, captures: _Captures | None) -> dict[Tensor, Tensor]:
    """Run the nodes that ``edges`` lead to; what arrived at the leaves."""
    heap: list[int] = []
    pending: dict[int, list[Any]] = {}
    leaves: dict[Tensor, Tensor] = {}
    push, pop = heappush, heappop
    needed = None if captures is None else captures.needed
    observe = _refuse_nan if state.anomaly is True else state.observe
    retain = retain or state.observe is not None
    while True:
        # A chain goes from node to node through ``only``; the heap is for where paths meet.
        only: Any = None
        value: Any = None
        for target, nr, g in edges:
            if target is None or g is None:
                continue
            if target.__class__ is Tensor:
                if g.layout is not target.layout or g.kind is not target.kind:
                    g = fit(g, target.kind, target.layout)
                held = leaves.get(target)
                leaves[target] = g if held is None else held + g
                continue
            if needed is not None and id(target) not in needed:
                continue
            if target.outputs is None:
                if g.layout is not target.layout or g.kind is not target.kind:
                    g = fit(g, target.kind, target.layout)
                if target is only:
                    value = value + g
                    continue
                if only is None and not pending:
                    only, value = target, g
                    continue
            if only is not None:
                pending[-only.sequence] = [only, value]
                push(heap, -only.sequence)
                only = None
            sequence = -target.sequence
            entry = pending.get(sequence)
            if entry is None:
                empty = None if target.outputs is None else [None] * len(target.outputs)
                entry = pending[sequence] = [target, empty]
                push(heap, sequence)
            if target.outputs is None:
                entry[1] = g if entry[1] is None else entry[1] + g
            else:
                g = fit(g, *target.outputs[nr])
                held = entry[1][nr]
                entry[1][nr] = g if held is None else held + g
        if only is not None:
            node, g = only, value
        elif heap:
            node, g = pending.pop(pop(heap))
        else:
            break
        if node.hooks is not None:
            g = _run_hooks(node, g)
        if captures is not None and captures.take(node, g):
            edges = ()
            continue
        state.site = node.site
        try:
            grads = node.gradient.apply(node, g)
            if observe is not None:
                observe(node, g, grads)
            edges = zip(node.next, node.nr, grads)  # noqa: B905 - strict=False costs as much again
        except Exception:
            if captures is None:
                _finish_complete(leaves, [node, *(entry[0] for entry in pending.values())])
            raise
        if node.versions and not retain:
            node.saved, node.versions = FREED, ()
    return leaves


def _refuse_nan(node: Node, g: Any, grads: Sequence[Tensor | None]) -> None:
    """Anomaly detection: fail at the node that made NaN."""
    for at, g in enumerate(grads):
        if g is not None and g.array is not None and bool((g.array != g.array).any()):
            raise AutogradError(
                f"Function '{node.type_name}' returned nan values in its {at}th output."
            )


def _finish_complete(leaves: dict[Tensor, Tensor], waiting: list[Any]) -> None:
    """After a failure: give their gradients to the leaves that no waiting node leads to, as
    PyTorch has done by then."""
    seen = {id(node) for node in waiting}
    open_leaves: set[int] = set()
    while waiting:
        for target in waiting.pop().next:
            if target is None or id(target) in seen:
                continue
            if target.__class__ is Tensor:
                open_leaves.add(id(target))
            else:
                seen.add(id(target))
                waiting.append(target)
    done = {leaf: g for leaf, g in leaves.items() if id(leaf) not in open_leaves}
    _finish_leaves(done, None, False, True)


class _Captures:
    """The gradients asked for by ``inputs``: where they pass by, and what leads there."""

    __slots__ = ("found", "inputs", "needed", "wanted")

    def __init__(self, roots: Sequence[Tensor], inputs: Sequence[Tensor]):
        self.inputs = inputs
        self.found: list[Tensor | None] = [None] * len(inputs)
        self.wanted: dict[tuple[int, int], list[int]] = {}
        for at, t in enumerate(inputs):
            target, nr = _target(t)
            self.wanted.setdefault((id(target), nr), []).append(at)
        self.needed = _leading_to(roots, {key[0] for key in self.wanted})

    def take(self, node: Node, g: Any) -> bool:
        """Keep what is wanted of ``node``; whether nothing wanted lies beyond it."""
        for nr in range(1 if node.outputs is None else len(node.outputs)):
            for at in self.wanted.get((id(node), nr), ()):
                self.found[at] = g if node.outputs is None else g[nr]
        return not any(
            target is not None
            and (
                id(target) in self.needed
                or (target.__class__ is Tensor and (id(target), 0) in self.wanted)
            )
            for target in node.next
        )


def _finish_leaves(
    leaves: dict[Tensor, Tensor], captures: _Captures | None, create: bool, accumulate: bool
) -> list[Tensor | None]:
    for leaf, g in leaves.items():
        ag = leaf.ag
        if ag is not None and ag.hooks:
            g = _apply_hooks(ag.hooks, g)
        if captures is None:
            add_to_leaf(leaf, g, create)
        else:
            for at in captures.wanted.get((id(leaf), 0), ()):
                captures.found[at] = g
    if captures is None:
        return []
    if accumulate:
        for t, g_or_none in zip(captures.inputs, captures.found, strict=True):
            if g_or_none is not None:
                add_to_leaf(t, g_or_none, create)
    return captures.found


def _target(t: Tensor) -> tuple[Any, int]:
    if t.base is not None:
        refresh(t)
    ag = t.ag
    if ag is None or ag.node is None:
        return t, 0
    return ag.node, ag.nr


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


def fit(g: Tensor, kind: Kind, layout: Layout) -> Tensor:
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
        ag.grad = (g.clone() if lazy.is_lazy(g) else g) if create else own(g, leaf)
    elif create:
        ag.grad = held + g
    elif (
        held.kind is g.kind
        and held.layout is g.layout
        and held.layout.plain
        and g.array is not None
    ):
        held.array += g.array
        bump(held)
        if state.recording is not None:
            state.recording.changed(held, "accumulate", _accumulate, (g.array,))
    else:
        held.add_(g)
    if ag.after is not None:
        if state.recording is not None:
            state.recording.fail("a hook was called")
        for hook in list(ag.after.values()):
            hook(leaf)


def _lazily_owned(g: Tensor, leaf: Tensor) -> Tensor:
    """As ``own`` for a gradient that is a lazy view: PyTorch keeps that as it is where its strides
    are the leaf's."""
    change = lazy.CONJUGATED if lazy.has(g.memory, lazy.CONJUGATED) else lazy.NEGATED
    taken = own(g.clone(), leaf)
    wanted = leaf.layout if leaf.layout.dense else layouts.contiguous(g.layout.shape)
    if g.layout is not wanted:
        return taken
    turned = taken.conj_physical() if change is lazy.CONJUGATED else -taken
    return lazy.show(turned, lazy.changed(turned, change))


def _accumulate(array: Any, held: Any) -> None:
    held += array


def own(g: Tensor, leaf: Tensor) -> Tensor:
    """A copy of ``g`` in memory of its own, with the leaf's strides where those are dense; strides
    of size-1 dimensions stay the gradient's, unless it was expanded."""
    layout = leaf.layout
    if lazy.is_lazy(g):
        return _lazily_owned(g, leaf)
    if layout.contiguous or not layout.dense or g.array is None:
        array = None if g.array is None else g.array.copy()
        if state.recording is not None:
            state.recording.copied(g.array, array)
        kept = layout.contiguous and g.layout.contiguous and g.layout.numel
        if kept and 0 not in g.layout.strides:
            return wrap(array, g.kind, g.layout)
        return wrap(array, g.kind, layouts.contiguous(g.layout.shape))
    result: Tensor = g.new_empty_strided(layout.shape, layout.strides)
    result.copy_(g)
    return result


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
            if held is not None:
                part = held + part
            elif not state.grad or lazy.is_lazy(part):
                part = part.clone()
            tensor.ag.grad = part
            tensor.ag.times += 1
    return g


def _apply_hooks(hooks: Any, g: Tensor) -> Tensor:
    if state.recording is not None:
        state.recording.fail("a hook was called")
    for hook in list(hooks.values()):
        changed = hook(g)
        if changed is not None:
            _check_hook(hook, g, changed)
            g = changed
    return g


def _check_hook(hook: Any, g: Tensor, changed: Any) -> None:
    """Refuse what a hook returned unless it can stand for the gradient."""
    if not isinstance(changed, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(changed).__name__}'")
    differs = ""
    if changed.kind is not g.kind:
        types = f"(was torch.{g.dtype.title}Tensor got torch.{changed.dtype.title}Tensor)"
        differs = f"type of value {types}"
    elif changed.layout.shape != g.layout.shape:
        differs = "size of value"
    if differs:
        name = getattr(hook, "name", None) or getattr(hook, "__name__", "<unknown>")
        raise TensorRuntimeError(f"hook '{name}' has changed the {differs}")


def implicit_gradient(root: Tensor, given: Tensor | None, at: int) -> Tensor:
    """The gradient to start from: ``given``, or one for a root with a single element."""
    if given is None:
        if root.layout.numel != 1:
            raise AutogradError("grad can be implicitly created only for scalar outputs")
        if not root.dtype.is_floating_point:
            raise AutogradError(
                "grad can be implicitly created only for real scalar outputs but got "
                f"torch.{root.dtype.name}"
            )
        ones = None if root.array is None else root.kind.xp.ones(root.layout.shape, root.kind.np)
        return wrap(ones, root.kind, layouts.contiguous(root.layout.shape))
    if given.layout.shape != root.layout.shape:
        raise TensorRuntimeError(
            f"Mismatch in shape: grad_output[{at}] has a shape of {given.shape} and "
            f"output[{at}] has a shape of {root.shape}."
        )
    # A leaf keeps no gradient that somebody else holds, and what it copies it resolves.
    straight = lazy.is_lazy(given) and (root.ag is None or root.ag.node is None)
    return given.clone() if straight else given


# A 0-d one of each kind: copying it is quicker than making it. What passes start from is never
# shared, as hooks may change it in place.
_ones: dict[Kind, Any] = {}


def _one(root: Tensor) -> Tensor:
    """The gradient that a pass from a 0-d root of real numbers starts from."""
    held = _ones.get(root.kind)
    if held is None:
        held = _ones[root.kind] = implicit_gradient(root, None, 0).array
    one = wrap(held.copy(), root.kind, root.layout)
    if state.recording is not None:
        state.recording.fresh(held, one.array)
    return one


def check_root(root: Tensor, at: int) -> None:
    """Refuse a root without history."""
    if root.base is not None:
        refresh(root)
    if root.ag is None or not root.ag.requires_grad:
        raise AutogradError(
            f"element {at} of tensors does not require grad and does not have a grad_fn"
        )
