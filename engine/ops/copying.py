"""Copies and fillings: clone, copy_, contiguous, detach, fill_, zero_."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import formats, scalars, tape
from engine.errors import TensorRuntimeError
from engine.kinds import kernel, made
from engine.kinds.composite import composite
from engine.kinds.results import cast, check_memory
from engine.modes import state
from engine.overloads import first_that_binds, no_overload
from engine.registry import function, method, ops
from engine.tensor import Tensor, alias, number

if TYPE_CHECKING:
    from engine.formats import MemoryFormat
    from engine.kinds import Made
    from engine.parameter_types import Operand, Scalar


@kernel(vjp=lambda g: g, out=False, example="clone(tensor([1., 2.]))")
def clone(input: Tensor, *, memory_format: MemoryFormat | None = None) -> Made:
    """A copy of its own memory; dense strides are kept unless a format is named."""
    layout = formats.with_format(input.layout, memory_format)
    return made(input.dtype, layout, lambda xp: xp.array(input.array))


@composite(out=False, example="tensor([1., 2.], requires_grad=True).detach()")
def detach(input: Tensor) -> Tensor:
    """The same memory, unknown to the graph; in-place changes are seen on both sides."""
    return alias(input)


@method("detach_")
@function("detach_")
def detach_(x: Tensor) -> Tensor:
    """Cut the tensor itself out of the graph: it becomes a leaf that requires no gradient."""
    if x.base is not None:
        raise TensorRuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using "
            "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as "
            "True, gradients are views of DDP buckets, and hence detach_() cannot be called on "
            "these gradients. To fix this error, please refer to the Optimizer.zero_grad() "
            "function in torch/optim/optimizer.py as the solution."
        )
    if x.ag is not None:
        x.ag.requires_grad, x.ag.node, x.ag.nr = False, None, 0
    return x


def _copied(g: Tensor, src_dtype: Any) -> Tensor:
    return g


@kernel(
    vjp={"input": lambda g: g.new_zeros(g.layout.shape), "src": _copied},
    function=False,
    method=False,
    inplace=True,
    out=False,
    node="torch::autograd::CopyBackwards",
    name="copy",
    example="zeros(2, 2).copy_(tensor([1, 2]))",
)
def copy(input: Tensor, src: Operand, non_blocking: bool = False) -> Made:
    """The elements of ``src``, broadcast and converted to the tensor's own shape and dtype."""
    if not isinstance(src, Tensor):
        stored = scalars.element(src, input.dtype)
        return made(input.dtype, input.layout, lambda xp: xp.full(input.layout.shape, stored))
    check_memory(input, src)
    shape = _broadcast(input, src)
    return made(
        input.dtype,
        input.layout if shape == input.layout.shape else shape,
        lambda xp: xp.broadcast_to(cast(src.array, input.kind), shape),
    )


def _broadcast(x: Tensor, src: Tensor) -> tuple[int, ...]:
    from engine.layout import broadcast_shapes

    return broadcast_shapes(x.layout.shape, src.layout.shape)


@composite(function=False, out=False, view="sometimes", example="zeros(2, 3).t().contiguous()")
def contiguous(input: Tensor, memory_format: MemoryFormat = formats.contiguous_format) -> Tensor:
    """The tensor itself where it lies in that format already, else a copy that does."""
    kept = memory_format is formats.preserve_format
    if input.layout.contiguous if kept else formats.has_format(input.layout, memory_format):
        return input
    return input.clone(memory_format=memory_format)


@kernel(
    vjp={"input": lambda g: g.new_zeros(g.layout.shape)},
    function=False,
    method=False,
    inplace=True,
    out=False,
    overlapping=True,
    node="FillBackward2",
    name="_fill_number",
    example="zeros(2).fill_(7)",
)
def _fill_number(input: Tensor, value: Scalar) -> Made:
    stored = scalars.element(value, input.dtype)
    return made(input.dtype, input.layout, lambda xp: xp.full(input.layout.shape, stored))


@kernel(
    vjp={"input": lambda g: g.new_zeros(g.layout.shape), "value": lambda g: g.sum()},
    function=False,
    method=False,
    inplace=True,
    out=False,
    node="FillBackward3",
    name="_fill_tensor",
    example="zeros(2).fill_(tensor(7.))",
)
def _fill_tensor(input: Tensor, value: Tensor) -> Made:
    _check_value(value)
    return made(
        input.dtype,
        input.layout,
        lambda xp: xp.broadcast_to(cast(value.array, input.kind), input.layout.shape),
    )


@kernel(
    vjp={"input": lambda g: g.new_zeros(g.layout.shape)},
    function=False,
    method=False,
    node="FillBackward0",
    name="_filled_number",
    example="fill(zeros(2), 7)",
)
def _filled_number(input: Tensor, value: Scalar) -> Made:
    stored = scalars.element(value, input.dtype)
    layout = formats.with_format(input.layout, None)
    return made(input.dtype, layout, lambda xp: xp.full(layout.shape, stored))


@kernel(
    vjp={"input": lambda g: g.new_zeros(g.layout.shape), "value": lambda g: g.sum()},
    function=False,
    method=False,
    node="FillBackward1",
    name="_filled_tensor",
    example="fill(zeros(2), tensor(7.))",
)
def _filled_tensor(input: Tensor, value: Tensor) -> Made:
    _check_value(value)
    layout = formats.with_format(input.layout, None)
    return made(
        input.dtype,
        layout,
        lambda xp: xp.broadcast_to(cast(value.array, input.kind), layout.shape),
    )


def _check_value(value: Tensor) -> None:
    if value.layout.ndim:
        raise TensorRuntimeError(
            "fill_ only supports 0-dimension value tensor but got tensor with "
            f"{value.layout.ndim} dimensions."
        )


_FILL_TEXTS = ("(Tensor value)", "(Number value)")
_FILL_FUNCTION_TEXTS = ("(Tensor input, Tensor value)", "(Tensor input, Number value)")


@function("fill", forms=_FILL_FUNCTION_TEXTS)
def fill(*args: Any, **kwargs: Any) -> Tensor:
    """A tensor like ``input`` of one value, a number or a 0-d tensor (which gets the sum of the
    gradient)."""
    candidates = [ops["_filled_tensor"].function, ops["_filled_number"].function]
    found: Tensor = first_that_binds("fill", candidates, args, kwargs, _FILL_FUNCTION_TEXTS)
    return found


@function("fill_", forms=_FILL_FUNCTION_TEXTS)
@method("fill_")
def fill_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Set every element to one value, a number or a 0-d tensor."""
    if len(args) == 1 and not kwargs and not (state.grad and tape.requires_grad(x)):
        return _filled_in_place(x, args[0])
    if len(args) + len(kwargs) != 1:
        raise no_overload("fill_", args, kwargs, _FILL_TEXTS)
    candidates = [_in_place(name) for name in ("_fill_tensor", "_fill_number")]
    found: Tensor = first_that_binds("fill_", candidates, (x, *args), kwargs, _FILL_FUNCTION_TEXTS)
    return found


def _in_place(name: str) -> Any:
    op = ops[name]
    assert op.build_inplace is not None
    return op.build_inplace(op)


def _filled_in_place(x: Tensor, value: Any) -> Tensor:
    """Without a record: elements that share memory may be filled with a number, too."""
    if isinstance(value, Tensor):
        if tape.requires_grad(value) and state.grad:
            return _in_place("_fill_tensor")(x, value)
        _check_value(value)
        tape.check_overlap(x)
        if value.array is None:
            tape.bump(x)
            return x
        stored = cast(value.array, x.kind)
    elif isinstance(value, (int, float, complex)):
        stored = scalars.element(value, x.dtype)
    else:
        return first_that_binds(
            "fill_", [_in_place("_fill_number")], (x, value), {}, _FILL_FUNCTION_TEXTS
        )
    tape.check_inplace(x, False)
    if x.array is not None:
        x.array[...] = stored
    tape.bump(x)
    if state.recording is not None:
        _tell_filled(x, value, stored)
    return x


def _tell_filled(x: Tensor, value: Any, stored: Any) -> None:
    """Tell whoever records that ``x`` was filled with a number."""
    if isinstance(value, Tensor) or x.array is None:
        state.recording.fail("a tensor was filled with another")
        return

    def fill(array: Any) -> None:
        array[...] = stored

    state.recording.changed(x, ("fill", value.__class__, value), fill, ())


@kernel(
    vjp={"input": lambda g: g.new_zeros(g.layout.shape)},
    function=False,
    method=False,
    inplace=True,
    out=False,
    overlapping=True,
    node="ZeroBackward0",
    name="_zero",
    example="ones(2).zero_()",
)
def _zero(input: Tensor) -> Made:
    return made(input.dtype, input.layout, lambda xp: xp.zeros(input.layout.shape, input.dtype.np))


@function("zero_")
@method("zero_")
def zero_(x: Tensor) -> Tensor:
    """Set every element to zero."""
    if state.grad and tape.requires_grad(x):
        return _in_place("_zero")(x)
    return _filled_in_place(x, 0)


@method("fill_diagonal_")
def fill_diagonal_(x: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Set the main diagonal; ``wrap`` starts again below a tall matrix's last row."""
    if x.layout.ndim < 2:
        raise TensorRuntimeError("dimensions must larger than 1")
    shape = x.layout.shape
    if len(shape) > 2 and len(set(shape)) > 1:
        raise TensorRuntimeError("all dimensions of input must be of equal length")
    if isinstance(fill_value, Tensor):
        fill_value = number(fill_value)
    size = min(shape)
    step = sum(x.layout.strides)
    if size:
        x.as_strided((size,), (step,), x.offset).fill_(fill_value)
    rows, columns = shape[0], shape[1]
    if wrap and len(shape) == 2 and rows > columns + 1:
        start = x.layout.strides[0] * (columns + 1)
        count = (rows * columns - size * (columns + 1) + columns) // (columns + 1)
        if count > 0:
            x.as_strided((count,), (step,), x.offset + start).fill_(fill_value)
    return x
