"""Views that are copied at once: ``permute_copy`` and the like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import tape
from engine.errors import TensorRuntimeError
from engine.formats import contiguous_format
from engine.kinds.results import store_out
from engine.kinds.underived import record_underived
from engine.modes import state
from engine.overloads import no_overload
from engine.registry import F, function, method, methods, ops
from engine.signature import ArgumentError, bind
from engine.tape import Gradient, Node, make_node
from engine.tensor import Tensor
from engine.written_forms import parameters_in

if TYPE_CHECKING:
    from collections.abc import Sequence


# What each takes, in PyTorch's words; all but the ones with several results give ``out`` a tensor.
_FORMS: dict[str, tuple[str, ...]] = {
    "alias": ("(Tensor input, *, Tensor out = None)",),
    "as_strided": (
        "(Tensor input, tuple of ints size, tuple of ints stride, int storage_offset = None, *, "
        "Tensor out = None)",
    ),
    "detach": ("(Tensor input, *, Tensor out = None)",),
    "diagonal": (
        "(Tensor input, int offset = 0, int dim1 = 0, int dim2 = 1, *, Tensor out = None)",
    ),
    "expand": ("(Tensor input, tuple of ints size, *, bool implicit = False, Tensor out = None)",),
    "narrow": ("(Tensor input, int dim, int start, int length, *, Tensor out = None)",),
    "permute": ("(Tensor input, tuple of ints dims, *, Tensor out = None)",),
    "select": ("(Tensor input, int dim, int index, *, Tensor out = None)",),
    "slice": (
        "(Tensor input, int dim = 0, int start = None, int end = None, int step = 1, *, Tensor "
        "out = None)",
    ),
    "split": ("(Tensor input, int split_size, int dim = 0, *, tuple of Tensors out = None)",),
    "split_with_sizes": (
        "(Tensor input, tuple of ints split_sizes, int dim = 0, *, tuple of Tensors out = None)",
    ),
    "squeeze": (
        "(Tensor input, *, Tensor out = None)",
        "(Tensor input, int dim, *, Tensor out = None)",
        "(Tensor input, tuple of ints dim, *, Tensor out = None)",
    ),
    "t": ("(Tensor input, *, Tensor out = None)",),
    "transpose": ("(Tensor input, int dim0, int dim1, *, Tensor out = None)",),
    "unbind": ("(Tensor input, int dim = 0, *, tuple of Tensors out = None)",),
    "unfold": ("(Tensor input, int dimension, int size, int step, *, Tensor out = None)",),
    "unsqueeze": ("(Tensor input, int dim, *, Tensor out = None)",),
    "view": (
        "(Tensor input, torch.dtype dtype, *, Tensor out = None)",
        "(Tensor input, tuple of ints size, *, Tensor out = None)",
    ),
    "view_as_complex": ("(Tensor input, *, Tensor out = None)",),
    "view_as_real": ("(Tensor input, *, Tensor out = None)",),
}


_NODES = {"narrow": "NarrowCopyBackward0"}
# PyTorch derives these for real numbers only.
_REAL = ("select", "slice", "view_as_complex")
# How complaints about the number of destinations call the operation.
_OUT_NAMES = {
    "split": "split_copy_Tensor_out()",
    "split_with_sizes": "split_with_sizes_copy_out",
    "unbind": "unbind_copy_int_out",
}


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


def _store(out: Tensor, copy: Tensor, name: str) -> None:
    if isinstance(out, Tensor) and out.dtype is not copy.dtype:
        raise TensorRuntimeError(
            f"Expected out tensor to have dtype {copy.dtype.c_type}, but got "
            f"{out.dtype.c_type} instead"
        )
    store_out(out, copy, name)


def _copied(x: Tensor, view: str, *args: Any) -> Any:
    """Copies of what the view gives; one node stands for both steps."""
    viewed = _of(view)(x, *args)
    if view in _REAL and viewed.dtype.is_complex and state.grad and tape.requires_grad(x):
        raise TensorRuntimeError(
            f"{view}_copy does not support automatic differentiation for outputs with complex "
            "dtype."
        )
    parts = viewed if viewed.__class__ is tuple else (viewed,)
    copies = tuple([p.detach().clone(memory_format=contiguous_format) for p in parts])
    if view == "detach":
        record_underived("detach_copy", (x,), copies)
        return copies[0]
    return _one_node(x, viewed, copies, _NODES.get(view))


_gradients: dict[str, Gradient] = {}


def _bound(name: str, forms: tuple[str, ...], args: Any, kwargs: Any) -> list[Any]:
    """The arguments in the order of the first form that takes them; ``out`` is the last."""
    for form in forms:
        try:
            return bind(name, parameters_in(form), args, kwargs)
        except ArgumentError:
            if len(forms) == 1:
                raise
    raise no_overload(name, args, kwargs, forms)


def _enter(view: str) -> None:
    name = f"{view}_copy"
    forms = _FORMS[view]

    def call(*args: Any, **kwargs: Any) -> Any:
        input, *values, out = _bound(name, forms, args, kwargs)
        if out is None:
            return _copied(input, view, *values)
        copies = _copied(input.detach(), view, *values)
        several = copies.__class__ is tuple
        if several and len(out) != len(copies):
            raise TensorRuntimeError(
                f"{_OUT_NAMES[view]} expected an out= argument of size {len(copies)}, got size "
                f"{len(out)}"
            )
        outs, parts = (out, copies) if several else ((out,), (copies,))
        for o, c in zip(outs, parts, strict=True):
            _store(o, c, name)
        record_underived(name, (input,), outs)
        return None if several else out

    call.__name__ = name
    call.__doc__ = f"A copy of what ``{view}`` shows."
    function(name, forms=forms)(call)
    if view == "narrow":
        method(name)(call)


def _expand(input: Tensor, size: tuple[int, ...], implicit: bool) -> Tensor:
    return input.expand(size)


def _of(view: str) -> Any:
    if view == "expand":
        return _expand
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


for _name in _FORMS:
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
