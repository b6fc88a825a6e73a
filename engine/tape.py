"""The autograd graph: nodes and edges, recording, saved values and their version checks.

An edge is a pair (target, number): the target is a Node, or the leaf Tensor itself. Nodes keep
the kind and layout of their outputs, so that whoever sends a gradient along an edge can bring it
to the shape and dtype expected there; both attributes have the same names on a leaf Tensor.
Knows nothing of particular operations.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from engine import layout as layouts
from engine import lazy
from engine.dtypes import real_of
from engine.errors import (
    AutogradError,
    FreedGraphError,
    InplaceError,
    OverlapError,
    SavedTensorError,
)
from engine.modes import state
from engine.storage import UNTRACKED
from engine.summing import total
from engine.tensor import (
    MULTI_OUTPUT,
    NO_GRAD,
    Autograd,
    Tensor,
    alias,
    from_array,
    wrap,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.layout import Layout
    from engine.storage import Storage
    from engine.tensor import Kind

_new = object.__new__

FREED: Any = ("freed",)


class Gradient:
    """How one kind of node goes backward: its name and ``apply(node, g)`` → gradients by input.

    ``apply`` gets one gradient (single output) or a list with None for outputs unused, and gives
    a sequence with one entry per edge, None where nothing flows.
    """

    __slots__ = ("apply", "name", "saved_names")

    def __init__(
        self,
        name: str,
        apply: Callable[[Node, Any], Sequence[Any]],
        saved_names: tuple[str, ...] = (),
    ):
        self.name = name
        self.apply = apply
        self.saved_names = saved_names

    def keeps_output(self, value: Tensor, node: Node) -> bool:
        """Whether ``value``, one of the node's saved tensors, is its own output."""
        for name, saved in zip(self.saved_names, node.saved, strict=False):
            if saved is value:
                return name == "y"
        return False


class Node:
    """One recorded operation.

    ``next`` and ``nr`` are the edges to its inputs; ``saved`` what backward needs, ``versions``
    the counters of the saved tensors at that time; ``sequence`` orders nodes by creation;
    ``site`` is the place in the program that was running. ``outputs`` lists (kind, layout) when
    there are several, ``kind`` and ``layout`` are those of the first. ``inner`` is set only
    on a node inside a CopySlices node: a weak reference to the node of the view it changed.
    """

    __slots__ = (
        "__weakref__", "attributes", "gradient", "hooks", "inner", "kind", "layout", "next", "nr",
        "outputs", "saved", "sequence", "site", "versions",
    )  # fmt: skip

    gradient: Gradient
    kind: Kind
    layout: Layout
    sequence: int
    site: Any
    next: tuple[Any, ...]
    nr: tuple[int, ...]
    saved: tuple[Any, ...]
    versions: tuple[Any, ...]
    attributes: Any
    outputs: Any
    hooks: Any
    inner: Any

    @property
    def name(self) -> str:
        return self.gradient.name

    @property
    def maker_name(self) -> str:
        """The short name of what made the value this node kept of its own output: inside a
        CopySlices node that of the view's node, as long as that lives."""
        view = getattr(self, "inner", None)
        shown = None if view is None else view()
        return (self if shown is None else shown).short_name

    @property
    def type_name(self) -> str:
        """The name without PyTorch's namespace, as printed tensors show it."""
        return self.gradient.name.rpartition("::")[2]

    @property
    def short_name(self) -> str:
        """The name as messages about values that the node made or kept spell it."""
        bare = self.gradient.name.rstrip("0123456789")
        return bare.removesuffix("Backward")

    def __repr__(self) -> str:
        return f"<{self.type_name} object at {id(self):#x}>"


class AccumulateGrad:
    """The graph's end at a leaf, as ``next_functions`` shows it."""

    __slots__ = ("variable",)

    name = "torch::autograd::AccumulateGrad"
    type_name = "AccumulateGrad"

    def __init__(self, variable: Tensor):
        self.variable = variable

    def __repr__(self) -> str:
        return f"<AccumulateGrad object at {id(self.variable):#x}>"


def requires_grad(t: Tensor) -> bool:
    """Whether operations on ``t`` are recorded; a view also asks its base."""
    ag = t.ag
    if ag is not None and ag.requires_grad:
        return True
    base = t.base
    return base is not None and base.ag is not None and base.ag.requires_grad


def edge(t: Tensor) -> tuple[Any, int]:
    """The edge to ``t``: (None, 0) if it needs no gradient, the leaf itself, or its node.

    Raises as ``refresh``.
    """
    if t.base is not None:
        refresh(t)
    ag = t.ag
    if ag is None or not ag.requires_grad:
        return (t, 0) if t.base is not None and requires_grad(t) else (None, 0)
    return (t, 0) if ag.node is None else (ag.node, ag.nr)


def refresh(t: Tensor) -> None:
    """Give a view the node that follows from its base, if the memory changed since it got one.

    Raises InplaceError for a view whose way of being made does not allow that.
    """
    base = t.base
    ag = t.ag
    if base is None or not (
        (ag is not None and ag.node is not None) or (base.ag is not None and base.ag.requires_grad)
    ):
        return
    version = t.counter
    if version is UNTRACKED or t.stamp == version.n:
        return
    if t.origin:
        raise _forbidden_view(t, "its base or another view of its base has been modified inplace")
    node = view_node(base, t)
    if ag is None:
        t.ag = Autograd(True, node)
    else:
        ag.requires_grad, ag.node, ag.nr = True, node, 0
    t.stamp = version.n


def view_node(base: Tensor, view: Tensor) -> Node:
    """A node that takes ``view``'s geometry out of ``base``, whatever chain of views made it."""
    if _shows_otherwise(base, view):
        return _reached(base, view)
    node = make_node(AS_STRIDED, view, (base,))
    node.attributes = (base.layout, base.offset, view.layout, view.offset)
    return node


def node_of(t: Tensor) -> Node | None:
    """The node that made ``t`` (PyTorch's grad_fn), None for leaves."""
    if t.base is not None:
        refresh(t)
    return None if t.ag is None else t.ag.node


def shown_node(t: Tensor) -> Node | None:
    """The node that made ``t``, for showing it: where a view may not ask its base for it any
    more, the one that it had."""
    try:
        return node_of(t)
    except InplaceError:
        return None if t.ag is None else t.ag.node


def make_node(gradient: Gradient, output: Tensor, inputs: Sequence[Tensor | None]) -> Node:
    """A node of that kind for ``output``, its edges taken from ``inputs`` as they are now."""
    node: Node = _new(Node)
    node.gradient = gradient
    targets: list[Any] = []
    numbers: list[int] = []
    for t in inputs:
        if t is None:
            targets.append(None)
            numbers.append(0)
            continue
        target, nr = edge(t)
        targets.append(target)
        numbers.append(nr)
    node.next = tuple(targets)
    node.nr = tuple(numbers)
    node.kind = output.kind
    node.layout = output.layout
    node.outputs = None
    node.saved = ()
    node.versions = ()
    node.attributes = None
    node.hooks = None
    node.site = state.site
    state.sequence = node.sequence = state.sequence + 1
    return node


def version_of(t: Tensor) -> int:
    """The counter of a tensor that a node keeps. Raises AutogradError for inference tensors."""
    counter = t.counter
    if counter is None:
        return 0
    if counter is UNTRACKED:
        raise AutogradError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created "
            "in inference mode in computation tracked by autograd. To work around this, you can "
            "make a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` "
            "instead of `torch.inference_mode()`."
        )
    return counter.n  # type: ignore[no-any-return]


def output_alias(y: Tensor) -> Tensor:
    """What a node keeps of its own output: the same memory and counter, no edge back."""
    return alias(y)


def unpack(node: Node) -> tuple[Any, ...]:
    """The saved values, checked. Raises FreedGraphError or SavedTensorError."""
    saved = node.saved
    if saved is FREED:
        raise FreedGraphError(node)
    for value, expected in zip(saved, node.versions, strict=False):
        if value.__class__ is Tensor:
            _check_version(node, value, expected)
        elif value.__class__ is tuple and expected.__class__ is tuple:
            for part, one in zip(value, expected, strict=True):
                if part.__class__ is Tensor:
                    _check_version(node, part, one)
    return saved


def _check_version(node: Node, value: Tensor, expected: int) -> None:
    counter = value.counter
    if counter is not None and counter.n != expected:
        raise _modified(node, value, expected)


def versions_of(saved: tuple[Any, ...]) -> tuple[Any, ...]:
    """The counters of the tensors among kept values; nothing where there is no tensor."""
    found = tuple(
        [
            version_of(v)
            if v.__class__ is Tensor
            else tuple([version_of(t) if t.__class__ is Tensor else 0 for t in v])
            if v.__class__ is tuple
            else 0
            for v in saved
        ]
    )
    for value in saved:
        if value.__class__ is Tensor or (
            value.__class__ is tuple and any(t.__class__ is Tensor for t in value)
        ):
            return found
    return ()


def _modified(node: Node, value: Tensor, expected: int) -> SavedTensorError:
    maker = node_of(value)
    nr = value.ag.nr if value.ag is not None else 0
    name = "" if maker is None else maker.short_name
    if maker is None and node.gradient.keeps_output(value, node):
        name = node.maker_name
    origin = f", which is output {nr} of {name}," if name else ""
    version = value.version.n if value.version is not None else 0
    return SavedTensorError(
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [{_type_text(value)} {list(value.layout.shape)}]{origin} "
        f"is at version {version}; expected version {expected} instead. Hint: "
        + (
            "the backtrace further above shows the operation that failed to compute its "
            "gradient. The variable in question was changed in there or anywhere later. Good luck!"
            if state.anomaly
            else "enable anomaly detection to find the operation that failed to compute its "
            "gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False)."
        ),
        node,
        value,
    )


def _type_text(t: Tensor) -> str:
    title = t.kind.dtype.title
    return f"CPU{title}Type" if t.kind.dtype.is_complex else f"torch.{title}Tensor"


def attach(y: Tensor, node: Node, nr: int = 0) -> None:
    """Make ``node`` the maker of ``y``."""
    ag = y.ag
    if ag is None:
        y.ag = Autograd(True, node, nr)
    else:
        ag.requires_grad, ag.node, ag.nr = True, node, nr
    if y.base is not None:
        y.stamp = y.counter.n


# In-place operations


def check_inplace(t: Tensor, recorded: bool) -> None:
    """Refuse a change of ``t`` that autograd cannot follow, before anything is written.

    ``recorded``: one of the operation's other inputs requires grad.
    """
    if not state.grad or not (recorded or requires_grad(t)):
        return
    base = t.base
    if base is not None:
        if t.origin:
            raise _forbidden_view(t, "is being modified inplace")
        if requires_grad(t) and (base.ag is None or base.ag.node is None):
            raise InplaceError(
                "a view of a leaf Variable that requires grad is being used in an in-place "
                "operation."
            )
    # PyTorch looks at the node as it stands: a view that has not been asked for its node since its
    # base got a history still counts as a leaf here.
    if requires_grad(t) and (t.ag is None or t.ag.node is None):
        raise InplaceError(
            "a leaf Variable that requires grad is being used in an in-place operation."
        )


def _forbidden_view(t: Tensor, what: str) -> InplaceError:
    """Why a view that was not made in the ordinary way may not meet an in-place change."""
    if t.origin == MULTI_OUTPUT:
        ag = t.ag
        name = "Unbind" if ag is None or ag.node is None else ag.node.short_name
        return InplaceError(
            f"Output {0 if ag is None else ag.nr} of {name} is a view "
            f"and {what}. This view is the output of a function that returns multiple views. "
            "Such functions do not allow the output views to be modified inplace. You should "
            "replace the inplace operation by an out-of-place one."
        )
    mode, now, block = (
        ("no_grad mode", " with grad mode enabled", "no_grad")
        if t.origin == NO_GRAD
        else ("inference mode", " in normal mode", "inference_mode")
    )
    subject = "A view was"
    if t.ag is not None and t.ag.node is not None:
        subject = f"Output {t.ag.nr} of {t.ag.node.short_name} is a view of a view which was"
    return InplaceError(
        f"{subject} created in {mode} and {what}{now}. Given that this use case is ambiguous and "
        "error-prone, it is forbidden. You can clarify your code by moving both the view and the "
        f"inplace either both inside the {block} block (if you don't want the inplace to be "
        "tracked) or both outside (if you want the inplace to be tracked)."
    )


def check_overlap(t: Tensor) -> None:
    """Refuse a destination in which one memory cell stands for several elements."""
    if t.layout.overlaps:
        raise OverlapError(
            "unsupported operation: more than one element of the written-to tensor refers to a "
            "single memory location. Please clone() the tensor before performing the operation."
        )


def bump(t: Tensor) -> None:
    """Note that the elements of ``t`` changed. Raises for inference tensors outside their mode."""
    version = t.version
    if version is not None:
        version.n += 1
    elif not state.inference:
        raise InplaceError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can "
            "make a clone to get a normal tensor before doing inplace update.See "
            "https://github.com/pytorch/rfcs/pull/17 for more details."
        )


def rebase(t: Tensor, node: Node) -> None:
    """Make ``node`` the maker of ``t`` after an in-place change; a base learns of it through
    a CopySlices node."""
    base = t.base
    if base is None:
        ag = t.ag
        if ag is None:
            t.ag = Autograd(True, node)
        else:
            ag.requires_grad, ag.node, ag.nr = True, node, 0
        return
    slices = make_node(COPY_SLICES, base, (base,))
    slices.next = slices.next + node.next[1:]
    slices.nr = slices.nr + node.nr[1:]
    # The base stands for the view here; keeping the view's old node would only keep it alive.
    node.next = (None, *node.next[1:])
    slices.attributes = (base.layout, base.offset, t.layout, t.offset)
    if _shows_otherwise(base, t):
        slices.gradient = COPY_PARTS
        slices.attributes = (
            base.layout,
            base.offset,
            base.memory,
            lazy.Place(t.kind, t.layout, t.offset, t.memory),
        )
    # The inner node counts as a kept value: PyTorch lets go of it after the first pass.
    slices.saved = (node,)
    slices.versions = (0,)
    if base.ag is None:
        base.ag = Autograd(True, slices)
    else:
        base.ag.requires_grad, base.ag.node, base.ag.nr = True, slices, 0
    refresh(t)
    if t.ag is not None and t.ag.node is not None:
        node.inner = weakref.ref(t.ag.node)


# Makes the view at a place from a tensor that stands for the base, whose memory is told as well.
_reach: Callable[[Tensor, Storage, Any], Tensor] | None = None


def reach_by(reach: Callable[[Tensor, Storage, Any], Tensor]) -> None:
    """Have ``reach`` find again the views that are no mere change of strides."""
    global _reach
    _reach = reach


def _shows_otherwise(base: Tensor, view: Tensor) -> bool:
    """Whether ``view`` is of another dtype than ``base``, or conjugated or negated lazily."""
    return view.kind is not base.kind or view.memory.__class__ is not base.memory.__class__


def _reached(base: Tensor, view: Tensor) -> Node:
    """The last of the nodes that lead from ``base`` to ``view``."""
    assert _reach is not None
    before, state.grad = state.grad, True
    try:
        again = _reach(base, base.memory, view)
    finally:
        state.grad = before
    assert again.ag is not None
    node: Node = again.ag.node
    return node


def _as_strided_backward(node: Node, g: Tensor) -> Sequence[Any]:
    base_layout, base_offset, view_layout, view_offset = node.attributes
    return (strided_gradient(g, base_layout, base_offset, view_layout, view_offset),)


def strided_gradient(
    g: Tensor, base: Layout, base_offset: int, view: Layout, view_offset: int
) -> Tensor:
    """The gradient of a base of layout ``base`` given that of its strided view.

    Memory outside the view gets zeros; a cell that several elements show gets their sum.
    """
    low = min(base_offset, view_offset)
    span = max(base_offset + base.span, view_offset + view.span) - low
    flat = g.new_zeros((span,))
    into = flat.as_strided(view.shape, view.strides, view_offset - low)
    if layouts.may_overlap(view) or not base.contiguous:
        return _scatter_strided(flat, g, base, base_offset - low, view, view_offset - low)
    into.copy_(g)
    return flat.as_strided(base.shape, base.strides, base_offset - low)


def _scatter_strided(
    flat: Tensor, g: Tensor, base: Layout, base_offset: int, view: Layout, view_offset: int
) -> Tensor:
    """As strided_gradient for geometries that may overlap: sums into shared cells, and shares a
    cell's gradient among the base elements that stand for it."""
    cells = from_array(flat.kind.xp.arange(flat.layout.numel))
    place = cells.as_strided(view.shape, view.strides, view_offset)
    summed = flat.index_add(0, place.reshape(-1), g.reshape(-1))
    back = cells.as_strided(base.shape, base.strides, base_offset)
    if base.overlaps:
        ones = g.new_ones((base.numel,), dtype=real_of(g.dtype))
        times = ones.new_zeros(flat.shape).index_add(0, back.reshape(-1), ones)
        summed = summed / times.clamp(min=1)
    gathered: Tensor = summed.index_select(0, back.reshape(-1)).reshape(base.shape)
    return gathered


def _copy_slices_backward(node: Node, g: Tensor) -> Sequence[Any]:
    """PyTorch's CopySlices: run the inner node on the view's part of the base's gradient."""
    base_layout, base_offset, view_layout, view_offset = node.attributes
    result = _whole(g, base_layout, 0)
    part = result.as_strided(view_layout.shape, view_layout.strides, view_offset - base_offset)
    return _replaced(node, result, part)


def _copy_parts_backward(node: Node, g: Tensor) -> Sequence[Any]:
    """As CopySlices for a view that shows the base's elements otherwise."""
    base_layout, base_offset, memory, place = node.attributes
    result = _whole(g, base_layout, base_offset)
    assert _reach is not None
    return _replaced(node, result, _reach(result, memory, place))


def _whole(g: Tensor, layout: Layout, offset: int) -> Tensor:
    """A copy of a base's gradient, laid out as the base is."""
    flat = g.new_zeros((offset + layout.span,))
    result: Tensor = flat.as_strided(layout.shape, layout.strides, offset).copy_(g)
    return result


def _replaced(node: Node, result: Tensor, part: Tensor) -> Sequence[Any]:
    """The gradients of a CopySlices node; those of the view's ``part`` of ``result`` are put in
    its place."""
    (inner,) = unpack(node)
    grads = list(inner.gradient.apply(inner, part.clone()))
    if grads[0] is None:
        part.zero_()
    else:
        part.copy_(sum_to(grads[0], part.layout.shape))
    return [result, *grads[1:]]


def sum_to(g: Tensor, shape: tuple[int, ...]) -> Tensor:
    """``g`` summed over the dimensions by which ``shape`` was broadcast."""
    if g.layout.shape == shape:
        return g
    dims, lead = layouts.needs_sum(g.layout.shape, shape)
    if not state.grad and g.array is not None and not g.kind.dtype.low and dims:
        xp = g.kind.xp
        # numpy keeps the order of dimensions of what it sums.
        summed = xp.asarray(total(xp, g.array, dims).reshape(shape), order="C")
        y = wrap(summed, g.kind, layouts.contiguous(shape))
        if state.recording is not None:
            _tell_sum(y, g, dims)
        return y
    if dims:
        g = g.sum(dims, keepdim=True)
    if lead:
        g = g.view(shape)
    return g


def _tell_sum(y: Tensor, g: Tensor, dims: tuple[int, ...]) -> None:
    """Tell whoever records how ``y`` comes from ``g``."""
    xp, shape = g.kind.xp, y.layout.shape

    def run(array: Any) -> Any:
        return xp.asarray(total(xp, array, dims).reshape(shape), order="C")

    state.recording.computed(y, run, (g.array,), None, ("sum", dims, shape))


AS_STRIDED = Gradient("AsStridedBackward0", _as_strided_backward)
COPY_SLICES = Gradient("torch::autograd::CopySlices", _copy_slices_backward)
COPY_PARTS = Gradient("torch::autograd::CopySlices", _copy_parts_backward)
