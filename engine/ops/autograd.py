"""What users call of autograd: backward, grad, and the flags, gradients and hooks of tensors."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from engine import backward as passes
from engine import tape
from engine.errors import AutogradError, EngineError, TensorRuntimeError, TensorTypeError
from engine.foreign import exchange
from engine.hooks import HookHandle, nobody
from engine.kinds.creation import check_differentiable
from engine.modes import warn
from engine.registry import F, attribute, function, method
from engine.signature import bind, parameters_of, type_name
from engine.storage import UNTRACKED, Version
from engine.tensor import Autograd, Tensor, alias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def _backward(
    tensor: Tensor,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None: ...


_BACKWARD = parameters_of(_backward)


@method("backward")
def backward(*args: Any, **kwargs: Any) -> None:
    """Send gradients back from this tensor and add them to the leaves' ``grad``.

    ``gradient`` may be left out for a tensor with one element. The kept values are released
    unless ``retain_graph`` (by default ``create_graph``) says otherwise; ``inputs`` restricts the
    leaves that get a gradient.
    """
    if len(args) == 1 and not kwargs:
        tensor = args[0]
        ag = tensor.ag
        if ag is not None and ag.requires_grad and tensor.layout.numel == 1 and tensor.base is None:
            passes.run_one(tensor)
            return
    tensor, gradient, retain_graph, create_graph, inputs = bind("backward", _BACKWARD, args, kwargs)
    _run_backward([tensor], _per_root(gradient, 1), retain_graph, create_graph, inputs)


@function("autograd.backward")
def backward_of_several(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Send gradients back from several tensors at once."""
    roots = _sequence(tensors)
    _run_backward(roots, _per_root(grad_tensors, len(roots)), retain_graph, create_graph, inputs)


class NoTensorError(EngineError, AssertionError):
    """PyTorch asserts that what backward starts from is a tensor."""

    code = "argument"

    def __init__(self) -> None:
        super().__init__("Expected output to be a torch.Tensor")


def _sequence(value: Any) -> list[Any]:
    return [value] if isinstance(value, Tensor) else list(value)


def _per_root(gradients: Any, count: int) -> list[Tensor | None]:
    if gradients is None:
        return [None] * count
    return _sequence(gradients)


def _run_backward(
    roots: Sequence[Tensor],
    gradients: Sequence[Tensor | None],
    retain_graph: bool | None,
    create_graph: bool,
    inputs: Any,
) -> None:
    wanted = None if inputs is None else _sequence(inputs)
    if wanted is not None and not wanted:
        raise TensorRuntimeError("`inputs` argument to `backward()` cannot be empty.")
    start = _starting_gradients(roots, gradients)
    if create_graph:
        warn(
            "Using backward() with create_graph=True will create a reference cycle between the "
            "parameter and its gradient which can cause a memory leak. We recommend using "
            "autograd.grad when creating the graph to avoid this. If you have to use this "
            "function, make sure to reset the .grad fields of your parameters to None after use "
            "to break the cycle and avoid the leak."
        )
    for t in wanted or ():
        if not tape.requires_grad(t):
            raise AutogradError("can't retain_grad on Tensor that has requires_grad=False")
    retain = create_graph if retain_graph is None else retain_graph
    passes.run(roots, start, retain=retain, create=create_graph, inputs=wanted)


def _starting_gradients(
    roots: Sequence[Tensor], gradients: Sequence[Tensor | None]
) -> list[Tensor]:
    """One gradient per root, made or checked; all of them before the roots' own state is."""
    if len(roots) > len(gradients):
        raise TensorRuntimeError(f"got {len(roots)} tensors and {len(gradients)} gradients")
    for given in gradients:
        if given is not None and not isinstance(given, Tensor):
            raise TensorTypeError(
                f"gradients can be either Tensors or None, but got {type_name(given)}"
            )
    start = []
    for at, (root, given) in enumerate(zip(roots, gradients, strict=False)):
        if not isinstance(root, Tensor):
            raise NoTensorError
        if given is None and tape.requires_grad(root) or given is not None:
            start.append(passes.implicit_gradient(root, given, at))
    for at, root in enumerate(roots):
        passes.check_root(root, at)
    return start


def _grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> None: ...


_GRAD = parameters_of(_grad)


@function("autograd.grad", forms=(_GRAD,))
def grad_of(*args: Any, **kwargs: Any) -> tuple[Tensor | None, ...]:
    """The gradients of ``outputs`` for each of ``inputs``, without touching ``grad``.

    Raises AutogradError for an input that the outputs do not depend on unless ``allow_unused``;
    ``materialize_grads`` gives zeros for it.
    """
    outputs, inputs, given, retain, create, _, unused, batched, materialize = bind(
        "grad", _GRAD, args, kwargs
    )
    roots, wanted = _sequence(outputs), _sequence(inputs)
    if not wanted:
        raise TensorRuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if materialize and unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    for t in wanted:
        if not tape.requires_grad(t):
            raise AutogradError("One of the differentiated Tensors does not require grad")
    if batched:
        return _batched(roots, wanted, _per_root(given, len(roots)), create, unused, materialize)
    start = _starting_gradients(roots, _per_root(given, len(roots)))
    retain = create if retain is None else retain
    found = passes.run(roots, start, retain=retain, create=create, inputs=wanted, accumulate=False)
    return _checked(found, wanted, bool(unused), materialize, create)


def _checked(
    found: Sequence[Tensor | None],
    wanted: Sequence[Tensor],
    unused: bool,
    materialize: bool,
    create: bool,
) -> tuple[Tensor | None, ...]:
    """The gradients found, those missing refused or made zeros."""
    for at, g in enumerate(found):
        if g is None and not unused and not materialize:
            raise AutogradError(
                f"The differentiated Tensor at index {at} appears to not have been used in the "
                "graph. Set allow_unused=True if this is the desired behavior."
            )
    if not materialize:
        return tuple(found)
    return tuple(
        F.zeros_like(t, requires_grad=create) if g is None else g
        for t, g in zip(wanted, found, strict=True)
    )


def _batched(
    roots: list[Tensor],
    wanted: list[Tensor],
    given: list[Tensor | None],
    create: bool,
    unused: bool | None,
    materialize: bool,
) -> tuple[Tensor | None, ...]:
    """``is_grads_batched``: one pass per index of the gradients' first dimension, stacked."""
    count = next(g.layout.shape[0] for g in given if g is not None)
    rows = []
    for i in range(count):
        start = [None if g is None else g.select(0, i) for g in given]
        found = passes.run(
            roots,
            _starting_gradients(roots, start),
            retain=True,
            create=create,
            inputs=wanted,
            accumulate=False,
        )
        rows.append(_checked(found, wanted, bool(unused), materialize, create))
    return tuple(
        None if parts[0] is None else F.stack(list(parts)) for parts in zip(*rows, strict=True)
    )


@method("requires_grad_")
def requires_grad_(x: Tensor, requires_grad: bool = True) -> Tensor:
    """Set ``requires_grad`` on a leaf."""
    if requires_grad is True and not (x.dtype.is_floating_point or x.dtype.is_complex):
        # The setter's sentence speaks of complex tensors as well; torch 2.13 has both.
        raise AutogradError("only Tensors of floating point dtype can require gradients")
    _set_requires_grad(x, requires_grad)
    return x


def _set_requires_grad(x: Tensor, value: Any) -> None:
    if value.__class__ is not bool:
        raise TensorRuntimeError("requires_grad must be a bool")
    if tape.node_of(x) is not None:
        if value:
            return
        raise AutogradError(
            "you can only change requires_grad flags of leaf variables. If you want to use a "
            "computed variable in a subgraph that doesn't require differentiation use "
            "var_no_grad = var.detach()."
        )
    if value:
        check_leaf_dtype(x)
        if x.version is None and not tape.requires_grad(x):
            from engine.modes import state

            if not state.inference:
                raise AutogradError(
                    "Setting requires_grad=True on inference tensor outside InferenceMode is not "
                    "allowed."
                )
    if x.ag is None:
        x.ag = Autograd(value)
    else:
        x.ag.requires_grad = value


def check_leaf_dtype(x: Tensor) -> None:
    """Refuse gradients of integers, in the words of the flag's setter."""
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        raise AutogradError(
            "only Tensors of floating point and complex dtype can require gradients"
        )
    check_differentiable(x.dtype)


@attribute("requires_grad", _set_requires_grad)
def requires_grad(x: Tensor) -> bool:
    """Whether operations on the tensor are recorded."""
    return tape.requires_grad(x)


@attribute("is_leaf")
def is_leaf(x: Tensor) -> bool:
    """Whether no recorded operation made the tensor."""
    return tape.node_of(x) is None


@attribute("output_nr")
def output_nr(x: Tensor) -> int:
    """Which of its node's outputs the tensor is."""
    return 0 if tape.node_of(x) is None or x.ag is None else x.ag.nr


def _set_grad(x: Tensor, value: Tensor | None) -> None:
    if value is not None:
        _check_grad(x, value)
    if x.ag is None:
        x.ag = Autograd(False)
    x.ag.grad = value
    x.ag.times = 0


def _check_grad(x: Tensor, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise TensorTypeError(
            f"assigned grad expected to be a Tensor or None but got grad of type {type_name(value)}"
        )
    if value is x:
        raise TensorRuntimeError("can't assign Variable as its own grad")
    if value.dtype is not x.dtype:
        raise TensorRuntimeError(
            f"attempting to assign a gradient with dtype '{value.dtype.cpp}' to a tensor with "
            f"grad_dtype '{x.dtype.title}'. The gradient must match the tensor's grad_dtype "
            "(defaults to the tensor's dtype). You can set the tensor's grad_dtype attribute with "
            "a specific dtype, or None to allow any dtype. Set grad_dtype with caution. Diverging "
            "the dtypes of a tensor and its gradient may break downstream systems that assume "
            "they match."
        )
    if value.device is not x.device:
        raise TensorRuntimeError(
            f"attempting to assign a gradient with device type '{value.device.type}' to a tensor "
            f"with device type '{x.device.type}'. Please ensure that the gradient and the tensor "
            "are on the same device"
        )
    if value.layout.shape != x.layout.shape:
        raise TensorRuntimeError(
            f"attempting to assign a gradient of size '{list(value.layout.shape)}' to a tensor of "
            f"size '{list(x.layout.shape)}'. Please ensure that the gradient and the tensor are "
            "the same size"
        )


def _delete_grad(x: Tensor) -> None:
    _set_grad(x, None)


@attribute("grad", _set_grad)
def grad(x: Tensor) -> Tensor | None:
    """The gradient that backward passes have added up, None before the first.

    Asked of a tensor that is no leaf and does not retain it, it is always None: PyTorch warns.
    """
    ag = x.ag
    if ag is None:
        return None
    if ag.grad is None and ag.node is not None and not ag.retains:
        warn(
            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its "
            ".grad attribute won't be populated during autograd.backward(). If you indeed want "
            "the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the "
            "non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access "
            "the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more "
            "informations."
        )
    return ag.grad


@attribute("grad_dtype")
def grad_dtype(x: Tensor) -> Any:
    """The dtype that ``grad`` must have."""
    return x.dtype


@function("autograd.Variable")
def variable(data: Tensor, requires_grad: bool = False, volatile: bool = False) -> Tensor:
    """The tensor's elements as a leaf: what Variable was before tensors had gradients."""
    x: Tensor = alias(data)
    if requires_grad:
        _set_requires_grad(x, True)
    return x


@method("retain_grad")
def retain_grad(x: Tensor) -> None:
    """Keep the gradient of a tensor that is no leaf in its ``grad``."""
    if not tape.requires_grad(x):
        raise AutogradError("can't retain_grad on Tensor that has requires_grad=False")
    node = tape.node_of(x)
    if node is None or x.ag is None:
        return
    if not x.ag.retains:
        x.ag.retains = True
        _hooks_of(x)


@attribute("retains_grad")
def retains_grad(x: Tensor) -> bool:
    """Whether a tensor that is no leaf keeps its gradient."""
    return x.ag is not None and x.ag.retains and x.ag.node is not None


@method("register_hook")
def register_hook(x: Tensor, hook: Callable[[Tensor], Tensor | None]) -> HookHandle:
    """Call ``hook`` with the tensor's gradient in each backward pass; what it returns, if
    anything, takes the gradient's place."""
    if not tape.requires_grad(x):
        raise AutogradError("cannot register a hook on a tensor that doesn't require gradient")
    return HookHandle(_hooks_of(x), exchange.function(hook))


def _hooks_of(x: Tensor) -> dict[int, Any]:
    """The table of hooks of ``x``: its node's for a computed tensor, its own for a leaf."""
    node = tape.node_of(x)
    ag = x.ag
    assert ag is not None
    if node is None:
        if ag.hooks is None:
            ag.hooks = {}
        return ag.hooks
    if node.hooks is None:
        node.hooks = []
    for nr, hooks, keeper in node.hooks:
        if nr == ag.nr and keeper() is x:
            return hooks
    hooks = {}
    at = next((i for i, held in enumerate(node.hooks) if held[2] is nobody), len(node.hooks))
    node.hooks.insert(at, (ag.nr, hooks, weakref.ref(x)))
    return hooks


@method("register_post_accumulate_grad_hook")
def register_post_accumulate_grad_hook(x: Tensor, hook: Callable[[Tensor], None]) -> HookHandle:
    """Call ``hook`` with the leaf after its gradient was added to."""
    if tape.node_of(x) is not None:
        raise AutogradError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    if not tape.requires_grad(x) or x.ag is None:
        raise AutogradError("cannot register a hook on a tensor that doesn't require gradient")
    if x.ag.after is None:
        x.ag.after = {}
    return HookHandle(x.ag.after, exchange.function(hook))


def _set_data(x: Tensor, value: Tensor) -> None:
    if not isinstance(value, Tensor):
        raise TensorTypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
    if x.dtype is not value.dtype and tape.requires_grad(x):
        check_differentiable(value.dtype)
    x.kind, x.layout, x.offset = value.kind, value.layout, value.offset
    x.memory = value.storage
    x.array = value.array


@attribute("data", _set_data)
def data(x: Tensor) -> Tensor:
    """The same memory with a version counter of its own: a write through it goes unnoticed."""
    y = alias(x)
    if y.counter is not UNTRACKED:
        y.counter = Version()
    return y


@attribute("_version")
def version(x: Tensor) -> int:
    """How often the memory was changed in place. Raises for an inference tensor."""
    counter = x.version
    if counter is None:
        raise TensorRuntimeError("Inference tensors do not track version counter.")
    return counter.n


@attribute("_base")
def base(x: Tensor) -> Tensor | None:
    """The tensor that this one is a view of, None if it is no view."""
    return x.base


@method("_is_view")
def is_view(x: Tensor) -> bool:
    """Whether the tensor shows another one's memory."""
    return x.base is not None


@function("is_inference")
@method("is_inference")
def is_inference(x: Tensor) -> bool:
    """Whether the tensor was made in inference mode."""
    return x.version is None
