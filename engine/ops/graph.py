"""The recorded graph as programs see it: nodes, their edges, what they kept, their hooks."""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

from engine import tape
from engine.errors import TensorRuntimeError
from engine.exposed import expose
from engine.foreign import exchange
from engine.hooks import HookHandle
from engine.modes import state, warn
from engine.registry import function
from engine.tape import AccumulateGrad, Gradient, Node
from engine.tensor import Tensor, alias

if TYPE_CHECKING:
    from collections.abc import Callable


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
    node.hooks.append((0, hooks, lambda: None))
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
expose(
    HookHandle,
    attributes={"id": lambda handle: handle.id},
    methods={"remove": HookHandle.remove},
)

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
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        tape.bump(t)


class DetectAnomaly:
    """Where a backward pass meets NaN it fails there; used as a context, or set for good."""

    __slots__ = ("before", "check_nan", "mode")

    def __init__(self, mode: bool, check_nan: bool):
        self.mode = mode
        self.check_nan = check_nan
        self.before = state.anomaly

    def __enter__(self) -> None:
        state.anomaly = _anomaly(self.mode, self.check_nan)

    def __exit__(self, *error: object) -> None:
        state.anomaly = self.before


def _anomaly(mode: bool, check_nan: bool) -> Any:
    """What the modes hold: False, "quiet" (no look-out for NaN), or True."""
    return (True if check_nan else "quiet") if mode else False


@function("autograd.detect_anomaly")
def detect_anomaly(check_nan: bool = True) -> DetectAnomaly:
    """A context in which a backward pass that makes NaN fails at the operation that did."""
    warn(
        "Anomaly Detection has been enabled. This mode will increase the runtime and should only "
        "be enabled for debugging."
    )
    return DetectAnomaly(True, check_nan)


@function("autograd.set_detect_anomaly")
def set_detect_anomaly(mode: bool, check_nan: bool = True) -> DetectAnomaly:
    """Set anomaly detection; as a context it is put back at the end."""
    context = DetectAnomaly(mode, check_nan)
    state.anomaly = _anomaly(mode, check_nan)
    return context


@function("is_anomaly_enabled")
def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on."""
    return bool(state.anomaly)


@function("is_anomaly_check_nan_enabled")
def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly detection looks out for NaN."""
    return bool(state.anomaly != "quiet")


@function("utils.checkpoint.checkpoint")
def checkpoint(
    function: Any,
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    determinism_check: str = "default",
    debug: bool = False,
    **kwargs: Any,
) -> Any:
    """``function(*args)``: what PyTorch computes twice to save memory is kept here."""
    if use_reentrant is None:
        warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. "
            "Starting in PyTorch 2.9, calling checkpoint without use_reentrant will raise an "
            "exception. use_reentrant=False is recommended, but if you need to preserve the "
            "current default behavior, you can pass use_reentrant=True. Refer to docs for more "
            "details on the differences between the two variants."
        )
    call: Callable[..., Any] = exchange.function(function)
    return call(*args, **kwargs)
