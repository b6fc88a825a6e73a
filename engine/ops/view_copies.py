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


def _one_node(x: Tensor, viewed: Any, parts: tuple[Tensor, ...], name: str | None) -> Any:
    """``parts``, which hold what the views show, as results of one node on ``x``."""
    shown = viewed if viewed.__class__ is tuple else (viewed,)
    inner = shown[0].grad_fn if shown else None
    if inner is not None and state.grad and tape.requires_grad(x):
        spelled = name or f"{inner.gradient.name}_copy"
        gradient = _gradients.setdefault(spelled, Gradient(spelled, _through))
        node = make_node(gradient, parts[0], (x,))
        node.outputs = inner.outputs
        node.attributes = inner
        for nr, part in enumerate(parts):
            tape.attach(part, node, nr)
    return parts if viewed.__class__ is tuple else parts[0]


def _copied(x: Tensor, view: str, *args: Any, **kwargs: Any) -> Any:
    """Copies of what the view gives; one node stands for both steps."""
    viewed = _of(view)(x, *args, **kwargs)
    parts = viewed if viewed.__class__ is tuple else (viewed,)
    copies = tuple([p.detach().clone(memory_format=contiguous_format) for p in parts])
    return _one_node(x, viewed, copies, _NODES.get(view))


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
    return input[index]


for _name in _COPIED:
    _enter(_name)


def _unsafe(x: Tensor, viewed: tuple[Tensor, ...], name: str) -> Any:
    """The views as tensors in their own right, which may be changed in place."""
    return _one_node(x, viewed, tuple([v.detach() for v in viewed]), name)


@method("unsafe_chunk")
@function("unsafe_chunk")
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> Any:
    """``chunk`` without the checks of later in-place changes."""
    return _unsafe(input, F.chunk(input, chunks, dim), "UnsafeSplitBackward0")


@method("unsafe_split")
@function("unsafe_split")
def unsafe_split(tensor: Tensor, split_size: int, dim: int = 0) -> Any:
    """``split`` without the checks of later in-place changes."""
    return _unsafe(tensor, F.split(tensor, split_size, dim), "UnsafeSplitBackward0")


@method("unsafe_split_with_sizes")
@function("unsafe_split_with_sizes")
def unsafe_split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> Any:
    """``split_with_sizes`` without the checks of later in-place changes."""
    parts = F.split_with_sizes(input, split_sizes, dim)
    return _unsafe(input, parts, "UnsafeSplitWithSizesBackward0")
