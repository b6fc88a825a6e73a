"""explain_backward(y): a backward pass told step by step; the leaves keep their gradients."""

from __future__ import annotations

import numpy as np

from engine import backward, layout
from engine.errors import FreedGraphError
from engine.modes import state
from engine.tape import FREED
from engine.tensor import Tensor
from tensorcli.explain.graph import Names, line_of
from tensorcli.explain.rules import rule
from tensorcli.explain.summary import summary
from tensorcli.findings import BackwardInput, BackwardResult, BackwardStep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MOST_STEPS = 200


def explain(
    tensor: Tensor,
    text: str,
    names: Mapping[str, object],
    source: Any,
    line: int | None,
    *,
    rerun: bool,
) -> BackwardResult:
    """Go backward from a tensor (from the sum of its elements) and note what happens.

    `source` is the text that the nodes' lines belong to, or None. Raises FreedGraphError where a
    pass has freed what the nodes kept.
    """
    if not tensor.requires_grad:
        raise TypeError("explain_backward() follows what was recorded, and nothing was")
    observer = _Observer(Names(names), source)
    leaves, nodes = _reached(tensor)
    observer.arrivals = _arrivals(nodes)
    for node in nodes:
        if node.saved is FREED and node.gradient.saved_names:
            raise FreedGraphError(node)
    gradients = _pass(tensor, leaves, observer)
    ends = tuple(
        _sent(observer.known.of(leaf) or "a leaf", g, leaf)
        for leaf, g in zip(leaves, gradients, strict=True)
        if g is not None
    )
    root = text if tensor.layout.numel == 1 else f"{text}.sum()"
    kept = observer.steps[:MOST_STEPS]
    return BackwardResult(line, root, tuple(kept), len(observer.steps) - len(kept), ends, rerun)


def _pass(tensor: Tensor, leaves: list[Tensor], observer: _Observer) -> list[Tensor | None]:
    """The gradients at the leaves, without adding to those that are there."""
    start = backward.own(tensor.detach().new_ones(tensor.layout.shape), tensor)
    outer, state.observe = state.observe, observer
    retained = [(t.ag, t.ag.grad, t.ag.times) for t in observer.retained if t.ag is not None]
    try:
        return backward.run([tensor], [start], retain=True, inputs=leaves, accumulate=False)
    finally:
        state.observe = outer
        for ag, grad, times in retained:
            ag.grad, ag.times = grad, times


def _reached(tensor: Tensor) -> tuple[list[Tensor], list[Any]]:
    """The leaves and the nodes that a pass comes to."""
    leaves: list[Tensor] = []
    nodes: list[Any] = []
    seen: set[int] = set()
    todo: list[Any] = [tensor if tensor.grad_fn is None else tensor.grad_fn]
    while todo:
        target = todo.pop()
        if target is None or id(target) in seen:
            continue
        seen.add(id(target))
        if isinstance(target, Tensor):
            leaves.append(target)
        else:
            nodes.append(target)
            todo += reversed(target.next)
    return leaves, nodes


def _arrivals(nodes: list[Any]) -> dict[int, int]:
    """How many gradients meet at each node and leaf."""
    counts: dict[int, int] = {}
    for node in nodes:
        for target in node.next:
            if target is not None:
                counts[id(target)] = counts.get(id(target), 0) + 1
    return counts


class _Observer:
    """Notes each node that the pass goes through."""

    def __init__(self, known: Names, source: Any) -> None:
        self.known = known
        self.source = source
        self.steps: list[BackwardStep] = []
        self.arrivals: dict[int, int] = {}
        self.retained = [t for t in known.tensors if t.ag is not None and t.ag.retains]

    def __call__(self, node: Any, g: Any, gradients: Any) -> None:
        if len(self.steps) > MOST_STEPS:
            self.steps.append(self.steps[-1])
            return
        first = next((part for part in g if part is not None), None) if isinstance(g, list) else g
        line = line_of(node)
        outgoing = tuple(
            self._input(target, gradient)
            for target, gradient in zip(node.next, gradients, strict=False)
            if target is not None and gradient is not None
        )
        self.steps.append(
            BackwardStep(
                operation=node.type_name,
                line=line,
                code=None if line is None or self.source is None else self._code(line),
                rule=rule(node.type_name),
                incoming=None if first is None else first.layout.shape,
                incoming_value=None if first is None else brief(first),
                arrivals=self.arrivals.get(id(node), 0),
                outgoing=outgoing,
            )
        )

    def _code(self, line: int) -> str | None:
        return self.source.line(line).partition("#")[0].strip() or None

    def _input(self, target: Any, gradient: Tensor) -> BackwardInput:
        if isinstance(target, Tensor):
            return _sent(self.known.of(target) or "a leaf", gradient, target)
        name = self.known.of_node(target)
        return _sent(name or target.type_name, gradient, target)


def _sent(to: str, gradient: Tensor, target: Any) -> BackwardInput:
    """A gradient on its way: what it becomes at the input's shape and dtype."""
    shape = target.layout.shape
    summed: tuple[int, ...] = ()
    before = gradient.layout.shape
    cast = None
    if isinstance(target, Tensor) or target.outputs is None:
        if before != shape:
            summed = layout.needs_sum(before, shape)[0]
        if gradient.kind is not target.kind:
            cast = target.kind.dtype.name
        gradient = backward.fit(gradient, target.kind, target.layout)
    return BackwardInput(
        to, gradient.layout.shape, summed, before if summed else None, cast, brief(gradient)
    )


def brief(tensor: Tensor) -> str | None:
    """A tensor's values in a few words: all of a small one, else their range."""
    if tensor.array is None:
        return None
    if tensor.layout.numel <= 6 and tensor.layout.ndim <= 2 and not tensor.dtype.is_complex:
        return _listed(np.asarray(tensor.array).astype(np.float64).tolist())
    found = summary(tensor)
    flags = [f"{name}!" for name, n in (("NaN", found.nan), ("Inf", found.inf)) if n]
    if found.minimum is None or found.maximum is None:
        return " ".join(flags) or "no elements"
    if found.minimum == found.maximum:
        return " ".join([f"all {found.minimum:.4g}", *flags])
    return " ".join([f"{found.minimum:.4g} .. {found.maximum:.4g}", *flags])


def _listed(values: Any) -> str:
    if isinstance(values, list):
        return "[" + ", ".join(_listed(value) for value in values) + "]"
    return f"{values:.4g}"
