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
from engine.modes import state

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

    __slots__ = ("device", "dtype", "np", "opaque")

    def __init__(self, dtype: DType, device: Device):
        self.dtype = dtype
        self.device = device
        self.np = dtype.np
        self.opaque = dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2")

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

    A leaf that requires grad has ``node`` None. ``times`` counts accumulations, for the gradient
    table; ``hooks`` see a leaf's gradient before it is added to ``grad``, ``after`` the leaf
    afterwards.
    """

    __slots__ = (
        "after", "grad", "hooks", "node", "nr", "requires_grad", "retains", "times",
    )  # fmt: skip

    def __init__(self, requires_grad: bool, node: Any = None, nr: int = 0):
        self.requires_grad = requires_grad
        self.node = node
        self.nr = nr
        self.grad: Tensor | None = None
        self.hooks: Any = None
        self.after: Any = None
        self.retains = False
        self.times = 0


class ParameterAutograd(Autograd):
    """What autograd knows of an nn.Parameter, which is a Tensor told apart by this alone: code
    that looks for exactly the class Tensor goes on working."""

    __slots__ = ()


# How a view came to be, which decides whether it may be changed in place.
DEFAULT, NO_GRAD, MULTI_OUTPUT, INFERENCE = range(4)


class Tensor(TensorMethods):
    """An n-dimensional array with PyTorch's semantics.

    ``layout`` is the truth for shape and strides; ``array`` shows the same elements. ``memory``
    and ``counter`` are None until somebody asks for the storage or the version; ``version`` is
    None for an inference tensor. A view has a ``base``, ``origin`` says how it was made, ``stamp``
    at which version it got its node. The class must not define ``__getattr__``: it would make
    every attribute of every tensor four times as slow.
    """

    __slots__ = (
        "__weakref__", "ag", "array", "base", "counter", "kind", "layout", "memory", "offset",
        "origin", "stamp",
    )  # fmt: skip

    ag: Autograd | None
    array: Any
    base: Tensor | None
    kind: Kind
    layout: Layout
    offset: int
    origin: int
    stamp: int
    memory: Any
    counter: Any

    @property
    def storage(self) -> Storage:
        """The memory behind the tensor, known from the first time that somebody asks."""
        found = self.memory
        if found is None:
            found = self.memory = storages.of_tensor(self.array, self.kind, self.layout)
        return found  # type: ignore[no-any-return]

    @property
    def version(self) -> Version | None:
        """The counter of in-place changes; None for an inference tensor."""
        found = self.counter
        if found is None:
            found = self.counter = storages.Version()
        return None if found is storages.UNTRACKED else found

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
    t.offset = 0
    t.base = None
    t.ag = None
    t.origin = 0
    t.memory = None
    t.counter = None
    return t


def alias(t: Tensor, layout: Layout | None = None, offset: int | None = None) -> Tensor:
    """Another tensor over the same memory and version counter, unknown to autograd."""
    a: Tensor = _new(Tensor)
    a.kind = t.kind
    a.layout = t.layout if layout is None else layout
    a.offset = t.offset if offset is None else offset
    a.array = (
        t.array
        if layout is None and offset is None
        else t.storage.array(a.kind, a.layout, a.offset)
    )
    a.base = None
    a.ag = None
    a.origin = 0
    a.memory = t.storage
    version = t.counter
    if version is None:
        version = t.counter = storages.Version()
    a.counter = version
    return a


def number(t: Tensor) -> Any:
    """The Python number in a one-element tensor. Raises as ``item()`` does."""
    if t.layout.numel != 1:
        raise TensorRuntimeError(
            f"a Tensor with {t.layout.numel} elements cannot be converted to Scalar"
        )
    if t.array is None:
        raise TensorRuntimeError("Tensor.item() cannot be called on meta tensors")
    if state.recording is not None:
        state.recording.fail("a value was read")
    value = t.array.item()
    return float(value) if t.kind.opaque else value
