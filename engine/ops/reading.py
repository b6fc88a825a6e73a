"""Tensors from numbers, nested lists and arrays: tensor, as_tensor, asarray, from_numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine import device as devices
from engine import dtypes, foreign, literals
from engine import layout as layouts
from engine.errors import TensorTypeError, TensorValueError
from engine.kinds.creation import check_differentiable, check_options, default_device, target_device
from engine.kinds.results import finish, result
from engine.modes import state, warn
from engine.overloads import no_overload
from engine.registry import function, method
from engine.signature import Parameter, bind, parameters_of, type_name
from engine.storage import Storage
from engine.tensor import Autograd, Tensor, kind_of, wrap

if TYPE_CHECKING:
    from engine.device import Device
    from engine.dtypes import DType

_REQUIRES_GRAD = Parameter("requires_grad", "bool", False, True)
_PIN_MEMORY = Parameter("pin_memory", "bool | None", False, True)


def _signature(data: Any, *, dtype: DType | None = None, device: Device | None = None) -> None: ...


_AS_TENSOR: tuple[Parameter, ...] = parameters_of(_signature)
_TENSOR = (*_AS_TENSOR, _REQUIRES_GRAD, _PIN_MEMORY)


def _leaf(array: Any, dtype: DType, device: Device, requires_grad: bool) -> Tensor:
    if requires_grad:
        check_differentiable(dtype)
    if device is devices.meta:
        layout, array = layouts.contiguous(array.shape), None
    else:
        layout = layouts.contiguous(array.shape)
    t = result(array, kind_of(dtype, device), layout)
    if requires_grad:
        t.ag = Autograd(True)
    return t


@function("tensor", forms=(_TENSOR,))
def tensor(*args: Any, **kwargs: Any) -> Tensor:
    """A tensor from a number or nested lists of numbers; the data is copied.

    The dtype is inferred (floats give the default dtype, integers int64, booleans bool, complex
    numbers the default's complex dtype). Raises ValueError for ragged lists.
    """
    if len(args) == 1 and not kwargs and not isinstance(args[0], Tensor):
        array, found = literals.array_of(args[0], None)
        return _leaf(array, found, default_device(), False)
    data, dtype, device, requires_grad, pin_memory = bind("tensor", _TENSOR, args, kwargs)
    if pin_memory:
        check_options(None, pin_memory)
    if isinstance(data, Tensor):
        warn(
            "To copy construct from a tensor, it is recommended to use "
            "sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than "
            "torch.tensor(sourceTensor)."
        )
    return _read(data, dtype, device, requires_grad)


def _read(
    data: Any, dtype: DType | None, device: Device | None, requires_grad: bool = False
) -> Tensor:
    if isinstance(data, Tensor):
        target = target_device(device, data.device)
        y = data.detach().to(target, dtype or data.dtype, copy=True)
        if requires_grad:
            check_differentiable(y.dtype)
            y.ag = Autograd(True)
        return y
    array, found = literals.array_of(data, dtype)
    return _leaf(array, found, target_device(device), requires_grad)


@function("as_tensor", forms=(_AS_TENSOR,))
def as_tensor(*args: Any, **kwargs: Any) -> Tensor:
    """A tensor of ``data``: a tensor itself or an array's own memory where nothing must change,
    else a copy."""
    data, dtype, device = bind("as_tensor", _AS_TENSOR, args, kwargs)
    if isinstance(data, Tensor):
        return data.to(target_device(device, data.device), dtype or data.dtype)
    array = foreign.array_of(data)
    if array is not None and (device is None or device is devices.cpu):
        shared = shown(array)
        return shared if dtype is None or dtype is shared.dtype else shared.to(dtype)
    return _read(data, dtype, device)


@function("from_numpy", forms=("(np.ndarray ndarray)",))
def from_numpy(*args: Any) -> Tensor:
    """A tensor over the memory of a numpy array: changes are seen on both sides."""
    if len(args) != 1:
        raise TensorTypeError(f"from_numpy() takes exactly one argument ({len(args)} given)")
    array = foreign.array_of(args[0])
    if array is None:
        kind = type(args[0])
        named = f"{kind.__module__}.{kind.__name__}" if kind.__module__ == "numpy" else None
        raise TensorTypeError(f"expected np.ndarray (got {named or type_name(args[0])})")
    return shown(array)


def shown(array: Any) -> Tensor:
    """A tensor over a numpy array's memory. Raises for geometries that no tensor has."""
    dtype = foreign.dtype_of(array)
    foreign.check_geometry(array)
    if not array.flags.writeable:
        warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable "
            "tensors. This means writing to this tensor will result in undefined behavior. You "
            "may want to copy the array to protect its data or make it writable before "
            "converting it to a tensor. This type of warning will be suppressed for the rest of "
            "this program."
        )
    strides = tuple([s // array.itemsize for s in array.strides])
    return over_memory(array, dtype, layouts.layout(array.shape, strides))


def over_memory(array: Any, dtype: DType, layout: layouts.Layout) -> Tensor:
    """A tensor whose storage is just the memory that ``array`` shows."""
    t = wrap(array, kind_of(dtype), layout)
    t.memory = Storage(_buffer(array), layout.span * dtype.itemsize, t.kind.device)
    return finish(t) if state.watch else t


def _buffer(array: Any) -> Any:
    """A one-dimensional array of bytes or elements from the array's first element on."""
    if array.flags.c_contiguous:
        return array if array.ndim else array.reshape(1)
    if array.size == 0:
        return array.reshape(-1)
    span = 1 + sum(
        (n - 1) * (s // array.itemsize) for n, s in zip(array.shape, array.strides, strict=True)
    )
    return np.lib.stride_tricks.as_strided(array, (span,), (array.itemsize,))


def _asarray_signature(
    obj: Any,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> None: ...


_ASARRAY: tuple[Parameter, ...] = parameters_of(_asarray_signature)


@function("asarray", forms=(_ASARRAY,))
def asarray(*args: Any, **kwargs: Any) -> Tensor:
    """A tensor of ``obj`` that shares memory where it can; ``copy`` forces or forbids a copy."""
    obj, dtype, device, copy, requires_grad = bind("asarray", _ASARRAY, args, kwargs)
    own = obj if isinstance(obj, Tensor) else None
    array = foreign.array_of(obj)
    if array is not None:
        own = shown(array)
    elif isinstance(obj, bytes):
        own = frombuffer(obj, dtype=dtype or state.default_dtype)
    if own is None:
        if copy is False:
            raise TensorValueError("can't alias arbitrary sequence into a tensor.")
        return _read(obj, dtype, device, requires_grad)
    wanted = dtype or own.dtype
    if copy is False and wanted is not own.dtype:
        raise TensorValueError(
            f"can't alias tensor with dtype '{own.dtype.title}' into dtype '{wanted.title}'."
        )
    y = own.to(target_device(device, own.device), wanted, copy=bool(copy))
    if not requires_grad and y.requires_grad:
        return y.detach() if "requires_grad" in kwargs else y
    if requires_grad and not y.requires_grad:
        y = y.detach() if y is obj else y
        check_differentiable(y.dtype)
        y.ag = Autograd(True)
    return y


def _frombuffer_signature(
    buffer: Any,
    *,
    dtype: DType,
    count: int = -1,
    offset: int = 0,
    requires_grad: bool = False,
) -> None: ...


_FROMBUFFER: tuple[Parameter, ...] = parameters_of(_frombuffer_signature)


@function("frombuffer", forms=(_FROMBUFFER,))
def frombuffer(*args: Any, **kwargs: Any) -> Tensor:
    """A 1-d tensor over the memory of a buffer, read as elements of ``dtype``."""
    buffer, dtype, count, offset, requires_grad = bind("frombuffer", _FROMBUFFER, args, kwargs)
    array = foreign.array_of(buffer)
    source = buffer if array is None else array
    if not isinstance(source, (bytes, bytearray, np.ndarray)):
        raise TensorValueError("object does not implement Python buffer protocol.")
    nbytes = source.nbytes if isinstance(source, np.ndarray) else len(source)
    size = dtype.itemsize
    if not 0 < nbytes:
        raise TensorValueError(f"both buffer length ({nbytes}) and count ({count}) must not be 0")
    if not 0 <= offset < nbytes:
        raise TensorValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length "
            f"({nbytes} bytes) minus 1"
        )
    if count > 0 and offset + count * size > nbytes:
        raise TensorValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) "
            f"must not be greater than actual buffer length ({nbytes} bytes)"
        )
    if count < 0 and (nbytes - offset) % size:
        raise TensorValueError(
            f"buffer length ({nbytes - offset} bytes) after offset ({offset} bytes) must be a "
            f"multiple of element size ({size})"
        )
    n = (nbytes - offset) // size if count < 0 else count
    if isinstance(source, np.ndarray):
        flat = source.reshape(-1).view(np.uint8)[offset : offset + n * size].view(dtype.np)
    else:
        flat = np.frombuffer(source, np.uint8)[offset : offset + n * size].view(dtype.np)
        if isinstance(source, bytes):
            flat = flat.copy()
    t = over_memory(flat, dtype, layouts.contiguous((n,)))
    if requires_grad:
        check_differentiable(dtype)
        t.ag = Autograd(True)
    return t


@method("new_tensor")
def new_tensor(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """A copy of numbers, lists or a tensor in this tensor's dtype and on its device."""
    data, dtype, device, requires_grad, pin_memory = bind("new_tensor", _TENSOR, args, kwargs)
    if isinstance(data, Tensor):
        warn(
            "To copy construct from a tensor, it is recommended to use "
            "sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than "
            "tensor.new_tensor(sourceTensor)."
        )
    return _read(data, dtype or x.dtype, device or x.device, requires_grad)


_LEGACY_TEXTS = (
    "(*, torch.device device = None)",
    "(torch.Storage storage)",
    "(Tensor other)",
    "(tuple of ints size, *, torch.device device = None)",
    "(object data, *, torch.device device = None)",
)


def legacy(dtype: DType, args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Tensor:
    """PyTorch's old constructors: sizes as separate integers give uninitialised elements, one
    sequence its numbers."""
    device = kwargs.pop("device", None)
    if kwargs or (len(args) > 1 and isinstance(args[0], Tensor)):
        given = kwargs if device is None else {"device": device, **kwargs}
        raise no_overload("new", args, given, _LEGACY_TEXTS)
    sizes = args[0] if len(args) == 1 and isinstance(args[0], layouts.Size) else args
    if all(n.__class__ is int for n in sizes):
        shape = tuple(sizes) if sizes or args else (0,)
        from engine.registry import F

        return F.empty(shape, dtype=dtype)
    data = args[0]
    if data.__class__ is int:
        at = next(i for i, n in enumerate(args) if n.__class__ is not int)
        raise TensorTypeError(
            f"new(): argument 'size' failed to unpack the object at pos {at + 1} with error "
            f'"type must be tuple of ints,but got {type_name(args[at])}"'
        )
    if isinstance(data, Tensor):
        if name != "Tensor" and data.dtype is not dtype:
            raise TensorTypeError(_wrong_options(dtype, data.dtype))
        return data.detach()
    if isinstance(data, (str, bytes)):
        raise TensorTypeError(f"new(): invalid data type '{type(data).__name__}'")
    if not isinstance(data, (list, tuple, range)) and foreign.array_of(data) is None:
        raise TensorTypeError(f"new(): data must be a sequence (got {type_name(data)})")
    return _read(data, dtype, None)


def _wrong_options(wanted: DType, given: DType) -> str:
    shared = (
        "device=cpu, layout=Strided, requires_grad=false (default), pinned_memory=false "
        "(default), memory_format=(nullopt))"
    )
    return (
        f"expected TensorOptions(dtype={wanted.c_type}, {shared} (got "
        f"TensorOptions(dtype={given.c_type}, {shared})"
    )


class TensorType:
    """One of the old constructors by dtype: torch.FloatTensor and its kin."""

    __slots__ = ("dtype", "name")

    type_name = "type"

    def __init__(self, name: str, dtype: DType | None):
        self.name = name
        self.dtype = dtype

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        return legacy(self.dtype or state.default_dtype, args, kwargs, self.name)

    def __repr__(self) -> str:
        return f"<class 'torch.{self.name}'>"


TENSOR_TYPES: dict[str, TensorType] = {
    f"{title}Tensor": TensorType(f"{title}Tensor", dtype)
    for title, dtype in (
        ("Float", dtypes.float32),
        ("Double", dtypes.float64),
        ("Half", dtypes.float16),
        ("BFloat16", dtypes.bfloat16),
        ("Byte", dtypes.uint8),
        ("Char", dtypes.int8),
        ("Short", dtypes.int16),
        ("Int", dtypes.int32),
        ("Long", dtypes.int64),
        ("Bool", dtypes.bool_),
    )
}

for _name, _type in TENSOR_TYPES.items():
    function(_name, forms=_LEGACY_TEXTS)(_type)


@method("new")
def new(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The old constructor in this tensor's dtype."""
    return legacy(x.dtype, args, kwargs, "new")
