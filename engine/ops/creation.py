"""Making tensors from numbers, lists and sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine import device as devices
from engine import dtypes
from engine import layout as layouts
from engine.errors import AutogradError, TensorRuntimeError, TensorTypeError, TensorValueError
from engine.kinds.results import cast, result
from engine.modes import state
from engine.registry import function, method
from engine.signature import Parameter, bind, parameters_of
from engine.storage import allocate
from engine.tensor import Autograd, Tensor, kind_of

if TYPE_CHECKING:
    from engine.device import Device
    from engine.dtypes import DType
    from engine.layout import Layout


def default_device() -> Device:
    """The device of new tensors when none is named."""
    return state.default_device or devices.cpu


def new_tensor(array: Any, dtype: DType, device: Device, layout: Layout, requires_grad: bool) -> Tensor:
    """A leaf over ``array``. Raises AutogradError for a dtype that cannot require gradients."""
    t = result(None if device is devices.meta else array, kind_of(dtype, device), layout)
    if requires_grad:
        check_differentiable(dtype)
        t.ag = Autograd(True)
    return t


def check_differentiable(dtype: DType) -> None:
    """Refuse gradients for integers and booleans."""
    if dtype.category < dtypes.FLOAT:
        raise AutogradError(
            "Only Tensors of floating point and complex dtype can require gradients"
        )


def check_size(size: tuple[int, ...], name: str) -> tuple[int, ...]:
    """Refuse negative sizes."""
    for n in size:
        if n < 0:
            raise TensorRuntimeError(f"{name}: Dimension size must be non-negative.")
    return size


def filled(size: tuple[int, ...], value: Any, dtype: DType, device: Device, requires_grad: bool) -> Tensor:
    """A contiguous tensor of one value."""
    layout = layouts.contiguous(size)
    array = None
    if device is not devices.meta:
        array = allocate(kind_of(dtype, device), layout)
        if value is not None:
            array[...] = value
    return new_tensor(array, dtype, device, layout, requires_grad)


def _creator(name: str, value: Any) -> None:
    def body(
        size: Size,
        *,
        out: Tensor | None = None,
        dtype: DType | None = None,
        layout: Any = None,
        device: Device | None = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        raise AssertionError("bound, not called")

    parameters = parameters_of(body)

    def call(*args: Any, **kwargs: Any) -> Tensor:
        size, out, dtype, _, device, _, requires_grad, _ = bind(name, parameters, args, kwargs)
        target = devices.require(device) if device is not None else default_device()
        y = filled(check_size(size, name), value, dtype or state.default_dtype, target, requires_grad)
        if out is not None:
            from engine.kinds.results import store_out

            return store_out(out, y, name)
        return y

    call.__name__ = name
    function(name)(call)


_creator("zeros", 0)
_creator("ones", 1)
_creator("empty", None)


def infer(value: Any) -> tuple[tuple[int, ...], DType]:
    """Shape and dtype of nested lists of numbers, as ``torch.tensor`` infers them."""
    raise NotImplementedError


@function("tensor")
def tensor(*args: Any, **kwargs: Any) -> Tensor:
    """A tensor from a number or nested lists of numbers; the data is copied.

    dtype is inferred (float → default dtype, int → int64, bool → bool, complex). Raises
    ValueError for ragged lists.
    """
    data, dtype, device, requires_grad, _ = bind("tensor", _TENSOR, args, kwargs)
    target = devices.require(device) if device is not None else default_device()
    array, found = array_of(data, dtype)
    return new_tensor(array, found, target, layouts.contiguous(array.shape), requires_grad)


def _tensor_signature(
    data: Any,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> None: ...


_TENSOR: tuple[Parameter, ...] = parameters_of(_tensor_signature)


def array_of(data: Any, dtype: DType | None) -> tuple[Any, DType]:
    """An array of its own holding ``data`` (number, nested sequences, tensors), and its dtype."""
    if isinstance(data, Tensor):
        wanted = dtype or data.dtype
        if data.array is None:
            raise TensorRuntimeError("cannot copy the data of a meta tensor")
        return np.array(cast(data.array, kind_of(wanted)), order="C"), wanted
    found = dtype or sequence_dtype(data)
    kind = kind_of(found)
    shape = sequence_shape(data)
    flat = np.array(list(_flatten(data, shape, 0)), _READ_AS[found.category])
    if found.name == "uint64":
        flat = np.array(list(_flatten(data, shape, 0)), np.uint64)
    array = cast(flat, kind) if flat.dtype != kind.np else flat
    return array.reshape(shape), found


_READ_AS = {dtypes.BOOL: np.float64, dtypes.INT: np.int64, dtypes.FLOAT: np.float64, dtypes.COMPLEX: np.complex128}


def sequence_shape(data: Any) -> tuple[int, ...]:
    """The shape told by the first element at each depth."""
    shape = []
    while isinstance(data, (list, tuple)):
        shape.append(len(data))
        if not data:
            break
        data = data[0]
    if isinstance(data, Tensor):
        shape.extend(data.layout.shape)
    return tuple(shape)


def _flatten(data: Any, shape: tuple[int, ...], depth: int) -> Any:
    if depth == len(shape):
        if isinstance(data, Tensor):
            yield data.array.item()
            return
        if isinstance(data, (list, tuple)) or not isinstance(data, (int, float, complex)):
            raise TensorTypeError(f"must be real number, not {type(data).__name__}")
        yield data
        return
    if isinstance(data, Tensor):
        for item in data.array.reshape(-1).tolist():
            yield item
        return
    if not isinstance(data, (list, tuple)):
        raise TensorTypeError(f"not a sequence")
    if len(data) != shape[depth]:
        raise TensorValueError(
            f"expected sequence of length {shape[depth]} at dim {depth} (got {len(data)})"
        )
    for item in data:
        yield from _flatten(item, shape, depth + 1)


def sequence_dtype(data: Any) -> DType:
    """The dtype of nested numbers: the highest category found; floats give the default dtype."""
    found = _highest(data)
    return found if found is not None else state.default_dtype


def _highest(data: Any) -> DType | None:
    kind = data.__class__
    if kind is float:
        return state.default_dtype
    if kind is bool:
        return dtypes.bool_
    if kind is int:
        return dtypes.int64
    if kind is complex:
        return dtypes.complex_of(state.default_dtype)
    if isinstance(data, Tensor):
        return data.dtype
    if isinstance(data, (list, tuple)):
        best: DType | None = None
        for item in data:
            found = _highest(item)
            if found is not None:
                best = found if best is None or best is found else dtypes.promote(best, found)
        return best
    raise TensorRuntimeError(f"Could not infer dtype of {kind.__name__}")


@method("new_zeros")
def new_zeros(x: Tensor, size: Any, **kwargs: Any) -> Tensor:
    """Zeros of the tensor's dtype and device."""
    return filled(tuple(size), 0, x.dtype, x.device, False)


@method("new_ones")
def new_ones(x: Tensor, size: Any, **kwargs: Any) -> Tensor:
    """Ones of the tensor's dtype and device."""
    return filled(tuple(size), 1, x.dtype, x.device, False)


@method("new_empty_strided")
def new_empty_strided(x: Tensor, size: Any, stride: Any) -> Tensor:
    """An uninitialised tensor of that geometry with the tensor's dtype and device."""
    layout = layouts.layout(tuple(size), tuple(stride))
    return new_tensor(allocate(x.kind, layout), x.dtype, x.device, layout, False)
