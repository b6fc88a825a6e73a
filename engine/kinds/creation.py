"""Operations that make tensors out of sizes and numbers.

The body is the rule, as in the general kind; the keywords that all of them share (``out``,
``layout``, ``device``, ``pin_memory``, ``requires_grad``) are bound and honoured here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import device as devices
from engine import dtypes
from engine.errors import AutogradError, DtypeError, TensorNotImplementedError, TensorRuntimeError
from engine.kinds.record import beside_tensors, body_caller, make_op, parameters
from engine.kinds.results import result, store_out, tell
from engine.modes import state
from engine.signature import Parameter, bind
from engine.storage import make_room
from engine.tensor import Autograd, Tensor, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.device import Device
    from engine.dtypes import DType
    from engine.kinds.kernel import Made
    from engine.registry import Op

_OUT = Parameter("out", "Tensor | None", None, True)
_SHARED = (
    Parameter("layout", "StorageLayout | None", None, True),
    Parameter("device", "Device | None", None, True),
    Parameter("pin_memory", "bool | None", False, True),
    Parameter("requires_grad", "bool", False, True),
)


def creation(*, out: bool = True, **record: Any) -> Callable[[Any], Any]:
    """An op whose body gives a Made from sizes and numbers.

    A first parameter named ``input`` is a tensor whose device is the default. A parameter
    ``dtype`` of the body is that of ``out`` where one is given.
    """

    def decorate(body: Any) -> Any:
        return make_op(body, "creation", lambda op: _build(op, out), **record)

    return decorate


def default_device() -> Device:
    """The device of new tensors when none is named."""
    found: Device = state.default_device or devices.cpu
    return found


def target_device(named: Device | None, otherwise: Device | None = None) -> Device:
    """The device to make a tensor on. Raises where this process cannot compute on it."""
    if named is None:
        return otherwise or default_device()
    return devices.require(named)


def check_differentiable(dtype: DType) -> None:
    """Refuse gradients for integers and booleans."""
    if dtype.category < dtypes.FLOAT:
        raise AutogradError(
            "Only Tensors of floating point and complex dtype can require gradients"
        )


def check_options(layout: Any, pin_memory: bool | None) -> None:
    """Refuse what there is none of here: sparse tensors and pinned memory."""
    if layout is not None and layout.name != "strided":
        raise TensorNotImplementedError(f"there are no {layout} tensors here")
    if pin_memory:
        raise TensorRuntimeError(
            "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory "
            "allocator is available on this system."
        )


def leaf(planned: Made, device: Device, requires_grad: bool) -> Tensor:
    """The tensor that was planned, a leaf."""
    if requires_grad:
        check_differentiable(planned.dtype)
    kind = kind_of(planned.dtype, device)
    make_room(kind, planned.layout)
    t = result(None if device is devices.meta else planned.run(kind.xp), kind, planned.layout)
    if requires_grad:
        t.ag = Autograd(True)
    return t


class Shared:
    """The keywords that every creation takes, bound."""

    __slots__ = ("device", "out", "requires_grad")

    def __init__(self, device: Device | None, requires_grad: bool, out: Tensor | None):
        self.device = device
        self.requires_grad = requires_grad
        self.out = out


def bind_creation(
    name: str,
    own: tuple[Parameter, ...],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    takes_out: bool = True,
) -> tuple[list[Any], Shared]:
    """Values for an op's own parameters, and the shared keywords."""
    values = bind(name, (*own, *_SHARED, _OUT) if takes_out else (*own, *_SHARED), args, kwargs)
    count = len(own)
    layout, device, pin_memory, requires_grad = values[count : count + 4]
    if layout is not None or pin_memory:
        check_options(layout, pin_memory)
    out = values[-1] if takes_out else None
    del values[count:]
    return values, Shared(device, requires_grad, out)


def finish_creation(
    name: str, planned: Made, found: DType, shared: Shared, dtype: DType | None
) -> Tensor:
    """The tensor that was planned; ``dtype`` is what the caller named, which ``out`` must have."""
    out = shared.out
    if out is not None and dtype is not None and dtype is not out.dtype:
        raise DtypeError(
            f"dtype {dtype.title} does not match dtype of out parameter ({out.dtype.title})"
        )
    y = leaf(planned, target_device(shared.device), shared.requires_grad)
    return y if out is None else store_out(out, y, name)


def _build(op: Op, takes_out: bool) -> Any:
    name = op.spoken or op.name.rpartition(".")[2]
    own = parameters(op)
    run = body_caller(op)
    at_dtype = next((i for i, p in enumerate(own) if p.name == "dtype"), -1)
    like = bool(own) and own[0].name == "input" and own[0].kind == "Tensor"

    only_method = like and not op.names
    # Of constants: other families draw numbers, or look at more than sizes.
    told = op.family == "creation"

    def call(*args: Any, **kwargs: Any) -> Tensor:
        if only_method:  # its complaints count positions without the tensor
            values, shared = bind_creation(name, own[1:], args[1:], kwargs, takes_out)
            values.insert(0, args[0])
        else:
            values, shared = bind_creation(name, own, args, kwargs, takes_out)
        out = shared.out
        named = values[at_dtype] if at_dtype >= 0 else None
        if out is not None and named is None:
            values[at_dtype] = out.dtype
        planned = run(values)
        if like and shared.device is None:
            shared.device = values[0].device
        y = finish_creation(name, planned, planned.dtype, shared, named)
        if told and state.recording is not None and out is None:
            key = (op.name, beside_tensors(values))
            tell(y, key, lambda: planned.run(y.kind.xp), (), ())
        return y

    return call
