"""Other dtypes and devices: to, type, float, long …, and questions about dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import device as devices
from engine import dtypes, formats, tape
from engine.device import Device
from engine.dtypes import DType
from engine.errors import DeviceError, TensorRuntimeError, TensorTypeError, TensorValueError
from engine.kinds import kernel, made
from engine.kinds.composite import composite
from engine.kinds.kernel import Made
from engine.kinds.results import cast, result
from engine.modes import state
from engine.overloads import no_overload
from engine.registry import F, attribute, function, method, ops
from engine.scalars import number_dtype
from engine.signature import ArgumentError, Parameter, bind, parameters_of, type_name
from engine.tensor import Tensor, kind_of

if TYPE_CHECKING:
    from engine.formats import MemoryFormat, StorageLayout


def _cast_back(g: Tensor, input_dtype: DType) -> Tensor:
    """The gradient in the input's dtype: of complex numbers a view of the real parts."""
    if g.dtype.is_complex and not input_dtype.is_complex:
        g = F.real(g)
    return g.to(input_dtype)


@kernel(
    vjp=_cast_back,
    function=False,
    method=False,
    out=False,
    node="ToCopyBackward0",
    name="_to_copy",
)
def _to_copy(input: Tensor, dtype: DType, memory_format: MemoryFormat | None = None) -> Made:
    layout = formats.with_format(input.layout, memory_format)
    return made(dtype, layout, lambda xp: converted(input, dtype))


def converted(x: Tensor, dtype: DType) -> Any:
    """The elements in another dtype, in an array of its own."""
    if dtype is x.dtype:
        return x.array.copy()
    array = cast(x.array, kind_of(dtype, x.device))
    return array if array is not x.array else array.copy()


def _by_device(
    device: Device | None = None,
    dtype: DType | None = None,
    non_blocking: bool = False,
    copy: bool = False,
    *,
    memory_format: MemoryFormat | None = None,
) -> None: ...


def _by_dtype(
    dtype: DType,
    non_blocking: bool = False,
    copy: bool = False,
    *,
    memory_format: MemoryFormat | None = None,
) -> None: ...


def _by_tensor(
    tensor: Tensor,
    non_blocking: bool = False,
    copy: bool = False,
    *,
    memory_format: MemoryFormat | None = None,
) -> None: ...


_DEVICE_FORM: tuple[Parameter, ...] = parameters_of(_by_device)
_DTYPE_FORM: tuple[Parameter, ...] = parameters_of(_by_dtype)
_TENSOR_FORM: tuple[Parameter, ...] = parameters_of(_by_tensor)

_TO_TEXTS = (
    "(torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy "
    "= False, *, torch.memory_format memory_format = None)",
    "(torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format "
    "memory_format = None)",
    "(Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format "
    "memory_format = None)",
)


@method("to")
def to(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor in another dtype, on another device or both; itself where nothing changes."""
    if len(args) == 1 and not kwargs and args[0].__class__ is DType:
        return moved(x, args[0], x.kind.device)
    first = args[0] if args else None
    try:
        if isinstance(first, DType) or (isinstance(first, type) and first in _PYTHON_TYPES):
            dtype, _, copy, memory_format = bind("to", _DTYPE_FORM, args, kwargs)
            device = x.kind.device
        elif isinstance(first, Tensor) or "tensor" in kwargs:
            other, _, copy, memory_format = bind("to", _TENSOR_FORM, args, kwargs)
            dtype, device = other.dtype, other.device
        else:
            named, dtype, _, copy, memory_format = bind("to", _DEVICE_FORM, args, kwargs)
            device = devices.require(named) if named is not None else x.kind.device
    except TensorTypeError:
        raise no_overload("to", args, kwargs, _TO_TEXTS) from None
    return moved(x, dtype or x.dtype, device, copy, memory_format)


_PYTHON_TYPES = (float, int, bool, complex)


def moved(
    x: Tensor,
    dtype: DType,
    device: Device,
    copy: bool = False,
    memory_format: MemoryFormat | None = None,
) -> Tensor:
    """``x`` as ``dtype`` on ``device``: itself unless something changes or a copy is asked for."""
    if device is not x.kind.device and not (device.type == "cpu" and x.kind.device.type == "cpu"):
        return _transferred(x, dtype, device)
    if (
        dtype is x.dtype
        and not copy
        and (
            memory_format is None
            or memory_format is formats.preserve_format
            or formats.has_format(x.layout, memory_format)
        )
    ):
        return x
    found: Tensor = ops["_to_copy"].function(x, dtype, memory_format)
    return found


def _transferred(x: Tensor, dtype: DType, device: Device) -> Tensor:
    if x.kind.device is devices.meta:
        raise NotImplementedMeta("Cannot copy out of meta tensor; no data!")
    if device is devices.meta:
        y = result(None, kind_of(dtype, device), formats.with_format(x.layout, None))
        if tape.requires_grad(x) and state.grad and dtype.category >= dtypes.FLOAT:
            node = tape.make_node(tape.Gradient("ToCopyBackward0", _nothing), y, (x,))
            tape.attach(y, node)
        return y
    raise DeviceError(f"copies between {x.kind.device} and {device} are not supported yet")


def _nothing(node: Any, g: Any) -> tuple[None]:
    return (None,)


class NotImplementedMeta(TensorRuntimeError, NotImplementedError):
    """PyTorch raises NotImplementedError where a meta tensor's data is asked for."""

    code = "meta"


def _converter(name: str, dtype: DType) -> None:
    def body(*, memory_format: MemoryFormat | None = None) -> None: ...

    parameters = parameters_of(body)

    def convert(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if not args and not kwargs:
            return moved(x, dtype, x.kind.device)
        (memory_format,) = bind(name, parameters, args, kwargs)
        return moved(x, dtype, x.kind.device, False, memory_format)

    convert.__name__ = name
    convert.__doc__ = f"The tensor as {dtype}; itself where it is that already."
    method(name)(convert)


for _name, _dtype in (
    ("float", dtypes.float32),
    ("double", dtypes.float64),
    ("half", dtypes.float16),
    ("bfloat16", dtypes.bfloat16),
    ("bool", dtypes.bool_),
    ("byte", dtypes.uint8),
    ("char", dtypes.int8),
    ("short", dtypes.int16),
    ("int", dtypes.int32),
    ("long", dtypes.int64),
    ("cfloat", dtypes.complex64),
    ("cdouble", dtypes.complex128),
):
    _converter(_name, _dtype)


@method("cpu")
def cpu(x: Tensor, *, memory_format: Any = None) -> Tensor:
    """The tensor in the main memory; itself where it is there already."""
    return moved(x, x.dtype, devices.cpu, False, memory_format)


@method("cuda")
def cuda(x: Tensor, device: Any = None, non_blocking: bool = False, **kwargs: Any) -> Tensor:
    """The tensor on a cuda device."""
    if device is not None and not isinstance(device, (str, int, devices.Device)):
        raise ArgumentError(
            f"cuda(): argument 'device' (position 1) must be torch.device, not {type_name(device)}"
        )
    named = devices.device(device if device is not None else "cuda")
    return moved(x, x.dtype, devices.require(named))


@composite(function=False, out=False, example="tensor([1.5]).type_as(tensor([1]))")
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype of ``other``."""
    return moved(input, other.dtype, other.device)


def _type_text(dtype: DType) -> str:
    return f"torch.{dtype.title}Tensor"


_BY_TYPE_TEXT = {_type_text(d): d for d in dtypes.by_name.values()}


@method("type")
def type_(x: Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    """The tensor's type as text, or the tensor converted to a dtype or such a type."""
    if dtype is None:
        place = "" if x.device.type == "cpu" else f"{x.device.type}."
        return f"torch.{place}{x.dtype.title}Tensor"
    if isinstance(dtype, DType):
        return moved(x, dtype, x.device)
    named = getattr(dtype, "type_name", None)
    text = repr(dtype)[8:-2] if named == "type" else dtype
    if isinstance(text, type):
        text = text.__name__
    if not isinstance(text, str):
        raise TensorTypeError("dtype must be a type, str, or dtype object")
    found = _BY_TYPE_TEXT.get(text)
    if found is None:
        raise TensorValueError(f"invalid type: '{text}'")
    return moved(x, found, x.device)


# Questions


@attribute("layout")
def layout(x: Tensor) -> StorageLayout:
    """torch.strided: there are no sparse tensors here."""
    return formats.strided


@attribute("dtype")
def dtype(x: Tensor) -> DType:
    """The type of the elements."""
    return x.kind.dtype


@attribute("device")
def device(x: Tensor) -> Device:
    """Where the elements are."""
    return x.kind.device


@attribute("itemsize")
def itemsize(x: Tensor) -> int:
    """Bytes of one element."""
    return x.kind.dtype.itemsize


@attribute("nbytes")
def nbytes(x: Tensor) -> int:
    """Bytes of all elements."""
    return x.layout.numel * x.kind.dtype.itemsize


@method("element_size")
def element_size(x: Tensor) -> int:
    """Bytes of one element."""
    return x.kind.dtype.itemsize


def _flag(name: str, of_tensor: Any) -> None:
    attribute(name)(of_tensor)


for _name, _kind in (("is_cpu", "cpu"), ("is_cuda", "cuda"), ("is_meta", "meta")):
    _flag(_name, lambda x, _kind=_kind: x.kind.device.type == _kind)
for _name in (
    "is_sparse", "is_sparse_csr", "is_quantized", "is_mkldnn", "is_mps", "is_xla", "is_xpu",
    "is_ipu", "is_vulkan", "is_maia", "is_mtia", "is_nested",
):  # fmt: skip
    _flag(_name, lambda x: False)


@composite(out=False, example="is_floating_point(tensor(1.))")
def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating-point one."""
    return input.dtype.is_floating_point


@composite(out=False, example="is_complex(tensor(1.))")
def is_complex(input: Tensor) -> bool:
    """Whether the dtype is complex."""
    return input.dtype.is_complex


@composite(out=False, example="is_signed(tensor(1.))")
def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers."""
    return input.dtype.signed


@composite(out=False, example="get_device(tensor(1.))")
def get_device(input: Tensor) -> int:
    """The number of the device, -1 for the main memory and for meta."""
    return input.device.index or 0 if input.device.type == "cuda" else -1


@function("is_tensor")
def is_tensor(obj: object) -> bool:
    """Whether a value is a tensor."""
    return isinstance(obj, Tensor)


@function("is_storage")
def is_storage(obj: object) -> bool:
    """Whether a value is a storage; there are none to get hold of here."""
    return False


@composite(method=False, out=False, example="promote_types(int32, float16)")
def promote_types(type1: DType, type2: DType) -> DType:
    """The dtype of an operation on tensors of both dtypes."""
    return dtypes.promote(type1, type2)


def _can_cast_signature(from_: DType, to: DType) -> None: ...


_CAN_CAST: tuple[Parameter, ...] = parameters_of(_can_cast_signature)


@function("can_cast", forms=(_CAN_CAST,))
def can_cast(*args: Any, **kwargs: Any) -> bool:
    """Whether a result of the first dtype may be stored in a tensor of the second."""
    source, target = bind("can_cast", _CAN_CAST, args, kwargs)
    return dtypes.can_cast(source, target)


_RESULT_TYPE_TEXTS = (
    "(Tensor tensor, Tensor other)",
    "(Number scalar, Tensor tensor)",
    "(Tensor tensor, Number other)",
    "(Number scalar1, Number scalar2)",
)


@function("result_type", forms=_RESULT_TYPE_TEXTS)
def result_type(*args: Any, **kwargs: Any) -> DType:
    """The dtype of an operation on two operands, tensors or numbers."""
    values = [*args, *kwargs.values()]
    if len(values) != 2 or not all(isinstance(v, (Tensor, int, float, complex)) for v in values):
        raise no_overload("result_type", args, kwargs, _RESULT_TYPE_TEXTS)
    dimensioned = [v.dtype for v in values if isinstance(v, Tensor) and v.layout.ndim]
    zero = [v.dtype for v in values if isinstance(v, Tensor) and not v.layout.ndim]
    numbers = [number_dtype(v) for v in values if not isinstance(v, Tensor)]
    return dtypes.result_type(dimensioned, zero, numbers)
