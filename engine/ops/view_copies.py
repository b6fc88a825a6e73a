"""Views that are copied at once: ``permute_copy`` and the like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import tape
from engine.errors import TensorRuntimeError
from engine.formats import contiguous_format
from engine.kinds.results import store_out
from engine.modes import state
from engine.registry import F, function, method, methods, ops
from engine.tape import Gradient, Node, make_node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.tensor import Tensor

_COPIED = (
    "alias", "as_strided", "detach", "diagonal", "expand", "narrow", "permute", "select", "slice",
    "split", "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unfold", "unsqueeze",
    "view", "view_as_complex", "view_as_real",
)  # fmt: skip


_NODES = {"narrow": "NarrowCopyBackward0"}


def _through(node: Node, g: Any) -> Sequence[Any]:
    """The gradient of a copied view: that of the view, whose node was put aside."""
    inner: Node = node.attributes
    return inner.gradient.apply(inner, g)


def _copied(x: Tensor, view: str, *args: Any, **kwargs: Any) -> Any:
    """Copies of what the view gives; one node stands for both steps."""
    viewed = _of(view)(x, *args, **kwargs)
    parts = viewed if viewed.__class__ is tuple else (viewed,)
    copies = tuple([p.detach().clone(memory_format=contiguous_format) for p in parts])
    inner = parts[0].grad_fn if parts else None
    if inner is not None and state.grad and tape.requires_grad(x):
        name = _NODES.get(view, f"{inner.gradient.name}_copy")
        gradient = _gradients.setdefault(name, Gradient(name, _through))
        node = make_node(gradient, copies[0], (x,))
        node.outputs = inner.outputs
        node.attributes = inner
        for nr, copy in enumerate(copies):
            tape.attach(copy, node, nr)
    return copies if viewed.__class__ is tuple else copies[0]


_gradients: dict[str, Gradient] = {}


def _enter(view: str) -> None:
    def call(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        copies = _copied(input, view, *args, **kwargs)
        if out is None:
            return copies
        if copies.__class__ is tuple:
            for o, c in zip(out, copies, strict=True):
                store_out(o, c, f"{view}_copy")
            return None
        return store_out(out, copies, f"{view}_copy")

    call.__name__ = f"{view}_copy"
    call.__doc__ = f"A copy of what ``{view}`` shows."
    function(call.__name__)(call)
    if view == "narrow":
        method(call.__name__)(call)


def _of(view: str) -> Any:
    if view == "alias":
        return ops["alias"].function
    if view == "slice":
        return _slice
    return methods[view] if view in methods else getattr(F, view)


def _slice(
    input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    if step <= 0:
        raise TensorRuntimeError("slice step must be positive")
    size = input.layout.shape[dim]
    first, last, _ = slice(start, end).indices(size)
    index = (slice(None),) * (dim % input.ndim) + (slice(first, max(first, last), step),)
    return input[index]  # type: ignore[index, no-any-return]


for _name in _COPIED:
    _enter(_name)
