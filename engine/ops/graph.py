"""The recorded graph as programs see it: nodes, their edges, what they kept, their hooks."""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

from engine import tape
from engine.errors import TensorRuntimeError
from engine.exposed import TYPES, expose
from engine.foreign import exchange
from engine.hooks import HookHandle, nobody
from engine.registry import attribute, function
from engine.tape import AccumulateGrad, Gradient, Node
from engine.tensor import Tensor, alias

if TYPE_CHECKING:
    pass


def _shown(target: Any) -> Any:
    """The node at the end of an edge; a leaf's is where its gradient is added up."""
    return AccumulateGrad(target) if target.__class__ is Tensor else target


def next_functions(node: Node) -> tuple[tuple[Any, int], ...]:
    """(node, which of its outputs) for each input; (None, 0) where no gradient is needed."""
    return tuple([(_shown(t), nr) for t, nr in zip(node.next, node.nr, strict=True)])


# PyTorch's words for what a node keeps of its first input and of its output.
_SPELLED = {"self": "input", "result": "y"}


def _saved(node: Node, name: str) -> Any:
    """A value that the node kept. Raises FreedGraphError once they were released."""
    kept = dict(zip(node.gradient.saved_names, tape.unpack(node), strict=False))
    bare = name.removeprefix("_saved_")
    spelled = bare if bare in kept else _SPELLED.get(bare, bare)
    if spelled not in kept:
        raise AttributeError(f"'{node.type_name}' object has no attribute '{name}'")
    value = kept[spelled]
    if spelled == "y" and isinstance(value, Tensor):
        value = alias(value)
        tape.attach(value, node)
    return value


class _NodeAttributes(dict[str, Any]):
    """The attributes of every node, and those that tell what this one kept."""

    def get(self, name: str, default: Any = None) -> Any:
        if name.startswith("_saved_"):
            return lambda node: _saved(node, name)
        return dict.get(self, name, default)


_types: dict[str, type] = {}


def type_of_node(node: Any) -> type:
    """The class that PyTorch has for nodes of this name; it makes none here."""
    name = node.type_name
    found = _types.get(name)
    if found is None:
        found = _types[name] = type(name, (), {"__module__": "builtins", "__slots__": ()})
    return found


TYPES[Node] = TYPES[AccumulateGrad] = type_of_node


def _add_hook(node: Node, hook: Any) -> HookHandle:
    """Call ``hook(gradients of the inputs, gradients of the outputs)`` after each pass."""
    call = exchange.function(hook)
    hooks: dict[int, Any] = {}
    inner = node.gradient

    def apply(at: Node, g: Any) -> Any:
        grads = inner.apply(at, g)
        if not hooks:
            return grads
        changed = call(tuple(grads), tuple(g) if isinstance(g, list) else (g,))
        return grads if changed is None else changed

    node.gradient = Gradient(inner.name, apply, inner.saved_names)
    handle = HookHandle(hooks, call)
    return handle


def _add_prehook(node: Node, hook: Any) -> HookHandle:
    """Call ``hook(gradients of the outputs)`` before each pass; it may replace them."""
    call = exchange.function(hook)

    def changed(g: Tensor) -> Any:
        found = call((g,))
        return found[0] if isinstance(found, tuple) else found

    if node.hooks is None:
        node.hooks = []
    hooks: dict[int, Any] = {}
    handle = HookHandle(hooks, changed)
    node.hooks.append((0, hooks, nobody))
    return handle


expose(
    Node,
    attributes=_NodeAttributes(
        next_functions=next_functions,
        metadata=lambda node: {},
        requires_grad=lambda node: True,
        _sequence_nr=lambda node: node.sequence,
    ),
    methods={
        "name": lambda node: node.name,
        "register_hook": _add_hook,
        "register_prehook": _add_prehook,
    },
)
expose(
    AccumulateGrad,
    attributes={
        "variable": lambda node: node.variable,
        "next_functions": lambda node: (),
        "metadata": lambda node: {},
        "requires_grad": lambda node: True,
    },
    methods={"name": lambda node: node.name},
)


@attribute("grad_fn")
def grad_fn(x: Tensor) -> Any:
    """The node that made the tensor, None for a leaf."""
    return tape.node_of(x)


GradientEdge = namedtuple("GradientEdge", ["node", "output_nr", "ownership_token"])


@function("autograd.graph.get_gradient_edge")
def get_gradient_edge(tensor: Tensor) -> Any:
    """(node, which of its outputs) that made the tensor."""
    if not tape.requires_grad(tensor):
        raise TensorRuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require "
            "gradients"
        )
    target, nr = tape.edge(tensor)
    return GradientEdge(_shown(target), nr, None)


@function("autograd.graph.increment_version")
def increment_version(tensor: Any) -> None:
    """Count an in-place change that nobody made."""
    tensors = (tensor,) if isinstance(tensor, Tensor) else tensor
    if not isinstance(tensors, (tuple, list)) or not all(isinstance(t, Tensor) for t in tensors):
        raise TensorRuntimeError("increment_version expect a Iterable[Tensor] as input")
    for t in tensors:
        tape.bump(t)
