"""The Tensor class: slots and plain properties.

Operators and methods come from the registry when engine.ops is imported; the derived slots (the
array of a view, the storage and the counters of a fresh result) are filled on first use, so that
making a tensor costs a handful of assignments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine import device as devices
from engine import layout as layouts
from engine import storage as storages
from engine.errors import TensorRuntimeError

if TYPE_CHECKING:
    from engine.device import Device
    from engine.dtypes import DType
    from engine.layout import Layout, Size
    from engine.storage import Storage, Version
    from engine.tensor_methods import TensorMethods
else:
    TensorMethods = object


class Kind:
    """A dtype on a device; interned, so that one identity stands for both in caches.

    ``opaque``: numpy exports no buffer of this dtype (the ml_dtypes types).
    """

    __slots__ = ("device", "dtype", "opaque")

    def __init__(self, dtype: DType, device: Device):
        self.dtype = dtype
        self.device = device
        self.opaque = dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2")

    @property
    def np(self) -> Any:
        return self.dtype.np

    @property
    def xp(self) -> Any:
        """The array module of this device."""
        if self.device.type == "cuda":
            from engine.backends import cupy

            return cupy.module()
        return np

    def __repr__(self) -> str:
        return f"Kind({self.dtype.name}, {self.device})"


_kinds: dict[tuple[DType, Device], Kind] = {}


def kind_of(dtype: DType, device: Device = devices.cpu) -> Kind:
    """The one Kind of that dtype and device."""
    found = _kinds.get((dtype, device))
    if found is None:
        found = _kinds[dtype, device] = Kind(dtype, device)
    return found


class Autograd:
    """What autograd knows of a tensor.

    A leaf that requires grad has ``node`` None. ``stamp`` is the version of the memory at which
    a view's node was made. ``fresh_grad`` counts accumulations, for the gradient table.
    """

    __slots__ = ("grad", "hooks", "node", "nr", "requires_grad", "retains", "stamp", "times")

    def __init__(self, requires_grad: bool, node: Any = None, nr: int = 0):
        self.requires_grad = requires_grad
        self.node = node
        self.nr = nr
        self.grad: Tensor | None = None
        self.hooks: Any = None
        self.retains = False
        self.stamp = 0
        self.times = 0


# How a view came to be, which decides whether it may be changed in place.
DEFAULT, NO_GRAD, MULTI_OUTPUT, INFERENCE = range(4)


class Tensor(TensorMethods):
    """An n-dimensional array with PyTorch's semantics.

    ``layout`` is the truth for shape and strides; ``array`` shows the same elements.
    ``version`` is None for an inference tensor, ``base`` the tensor that a view shows,
    ``origin`` how the view was made.
    """

    __slots__ = (
        "__weakref__", "ag", "array", "base", "kind", "layout", "offset", "origin", "storage",
        "version",
    )  # fmt: skip

    ag: Autograd | None
    array: Any
    base: Tensor | None
    kind: Kind
    layout: Layout
    offset: int
    origin: int
    storage: Storage
    version: Version | None

    def __getattr__(self, name: str) -> Any:
        fill = _FILL.get(name)
        if fill is None:
            return registry_attribute(self, name)
        value = fill(self)
        setattr(self, name, value)
        return value

    @property
    def dtype(self) -> DType:
        return self.kind.dtype

    @property
    def device(self) -> Device:
        return self.kind.device

    @property
    def shape(self) -> Size:
        return self.layout.size

    @property
    def ndim(self) -> int:
        return self.layout.ndim

    @property
    def is_meta(self) -> bool:
        return self.kind.device is devices.meta


def _fill_array(t: Tensor) -> Any:
    return t.storage.array(t.kind, t.layout, t.offset)


def _fill_storage(t: Tensor) -> Storage:
    return storages.of_array(t.array, t.kind)


_FILL: dict[str, Any] = {
    "array": _fill_array,
    "storage": _fill_storage,
    "version": lambda t: storages.Version(),
    "offset": lambda t: 0,
    "origin": lambda t: DEFAULT,
}


def registry_attribute(t: Tensor, name: str) -> Any:
    """Replaced by the registry: a method of that name, made on first use."""
    raise AttributeError(f"'Tensor' object has no attribute '{name}'")


_new = object.__new__


def from_array(array: Any, dtype: DType | None = None, device: Device = devices.cpu) -> Tensor:
    """A tensor that owns ``array`` (numpy, already of the right dtype); not recorded.

    The layout is taken from the array where it is contiguous, else the array is copied.
    """
    from engine import dtypes

    if dtype is None:
        found = dtypes.from_np(array.dtype)
        if found is None:
            raise TypeError(f"can't convert np.ndarray of type {array.dtype}")
        dtype = found
    if not array.flags.c_contiguous:
        array = array.copy()
    return wrap(array, kind_of(dtype, device), layouts.contiguous(array.shape))


def wrap(array: Any, kind: Kind, layout: Layout) -> Tensor:
    """A tensor over an array of just that kind and layout; not recorded."""
    t: Tensor = _new(Tensor)
    t.array = array
    t.kind = kind
    t.layout = layout
    t.base = None
    t.ag = None
    if array is None:
        t.storage = storages.Storage(None, layout.span * kind.dtype.itemsize, kind.device)
    return t


def alias(t: Tensor, layout: Layout | None = None, offset: int | None = None) -> Tensor:
    """Another tensor over the same memory and version counter, unknown to autograd."""
    a: Tensor = _new(Tensor)
    a.kind = t.kind
    a.layout = t.layout if layout is None else layout
    a.offset = t.offset if offset is None else offset
    a.storage = t.storage
    a.version = t.version
    a.base = None
    a.ag = None
    return a


def number(t: Tensor) -> Any:
    """The Python number in a one-element tensor. Raises as ``item()`` does."""
    if t.layout.numel != 1:
        raise TensorRuntimeError(
            f"a Tensor with {t.layout.numel} elements cannot be converted to Scalar"
        )
    if t.array is None:
        raise TensorRuntimeError("Tensor.item() cannot be called on meta tensors")
    value = t.array.item()
    return float(value) if t.kind.opaque else value
