"""From arrays to tensors and into destinations: what all kinds do with a computed result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine import device as devices
from engine import layout as layouts
from engine import lazy, tape
from engine.dtypes import can_cast
from engine.errors import DeviceError, DtypeError, InplaceError, OverlapError, TensorRuntimeError
from engine.modes import state, warn
from engine.signature import ArgumentError, type_name
from engine.storage import UNTRACKED, allocate, of_array, of_tensor
from engine.tensor import Kind, Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.device import Device
    from engine.layout import Layout

_new = object.__new__


def common_device(name: str, tensors: Sequence[Tensor]) -> Device:
    """The device of the operands; a 0-d cpu tensor goes with any. Raises DeviceError."""
    found = devices.cpu
    first: Tensor | None = None
    for t in tensors:
        device = t.kind.device
        if first is None or (first.layout.ndim == 0 and first.kind.device is devices.cpu):
            first, found = t, device
        elif device is not found and not (t.layout.ndim == 0 and device is devices.cpu):
            if devices.meta in (found, device):  # PyTorch's check for meta has words of its own
                raise DeviceError(
                    f"Tensor on device {device} is not on the expected device {found}!"
                )
            raise DeviceError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{found} and {device}!"
            )
    return found


def fit(array: Any, kind: Kind, layout: Layout) -> Any:
    """``array`` cast to ``kind`` and laid out as ``layout`` says; itself where it is so already."""
    if array is None:
        return None
    if array.__class__ is not np.ndarray and array.__class__ is not kind.xp.ndarray:
        array = array.read() if array.__class__ is lazy.Shown else kind.xp.asarray(array)
        if array.dtype is kind.np and not layout.shape:
            return array
    if array.dtype != kind.np:
        array = cast(array, kind)
    if array.shape != layout.shape:
        array = array.reshape(layout.shape)
    if layout.contiguous:
        return (
            array
            if array.flags.c_contiguous and array.flags.owndata
            else kind.xp.array(array, order="C")
        )
    if array_strides(array) == layout.strides and array.flags.owndata:
        return array
    into = allocate(kind, layout)
    into[...] = array
    return into


def cast(array: Any, kind: Kind) -> Any:
    """``array`` converted to a kind's dtype as PyTorch converts."""
    target = kind.np
    if kind.dtype.is_bool:
        return array != 0
    if array.dtype.kind == "c" and not kind.dtype.is_complex:
        array = array.real
    if array.dtype.kind == "f" and kind.dtype.is_integral:
        return _truncated(array, kind)
    return array.astype(target)


def _truncated(array: Any, kind: Kind) -> Any:
    """Float to integer: towards zero; narrow types wrap by way of a wider integer, as on x86."""
    if kind.dtype.itemsize >= 4 and kind.dtype.signed:
        return array.astype(kind.np)
    if kind.dtype.name == "uint64":
        return array.astype(kind.np)
    wide = "int32" if kind.dtype.itemsize < 4 and kind.dtype.signed else "int64"
    return array.astype(wide).astype(kind.np)


def array_strides(array: Any) -> tuple[int, ...]:
    """An array's strides in elements."""
    size = array.dtype.itemsize
    return tuple(s // size for s in array.strides)


def verify(t: Tensor) -> None:
    """Check mode: the kernel's array must be just what the rule said."""
    array = t.array
    if array is None:
        assert t.kind.device is devices.meta, t
        return
    assert array.dtype == t.kind.np, (array.dtype, t.kind)
    assert array.shape == t.layout.shape, (array.shape, t.layout)
    if t.layout.numel:
        for size, have, want in zip(
            array.shape, array_strides(array), t.layout.strides, strict=True
        ):
            assert size == 1 or have == want, (array_strides(array), t.layout)


def is_ready(array: Any, kind: Kind, layout: Layout) -> bool:
    """Whether an array can stand in a new tensor as it is."""
    return bool(
        array.__class__ is np.ndarray
        and array.base is None
        and array.dtype is kind.np
        and layout.plain
        and array.shape == layout.shape
        and array.flags.c_contiguous
    )


def fitted(array: Any, kind: Kind, layout: Layout) -> Any:
    """``array`` as a new tensor of that kind and layout holds it."""
    if array.__class__ is not np.ndarray and not layout.shape and array.__class__ is kind.np.type:
        return np.asarray(array)
    return array if is_ready(array, kind, layout) else fit(array, kind, layout)


def result(array: Any, kind: Kind, layout: Layout) -> Tensor:
    """A new tensor over ``array``, fitted; an inference tensor in inference mode."""
    # As ``fitted``, without its calls.
    if array.__class__ is not np.ndarray:
        if not layout.shape and array.__class__ is kind.np.type:
            array = np.asarray(array)
        else:
            array = fit(array, kind, layout)
    elif not (
        array.base is None
        and array.dtype is kind.np
        and layout.plain
        and array.shape == layout.shape
        and array.flags.c_contiguous
    ):
        array = fit(array, kind, layout)
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
    if state.watch:
        finish(t)
    return t


def finish(t: Tensor, run: Any = None, arrays: tuple[Any, ...] = (), number: Any = None) -> Tensor:
    """What a new result needs in inference and check mode and while somebody records:
    ``run`` of ``arrays`` gave its array, ``number`` is that which stands for a Python number."""
    if state.inference:
        t.counter = UNTRACKED
    if state.check:
        verify(t)
    if run is not None and state.recording is not None:
        state.recording.computed(t, run, arrays, number)
    return t


def tell(y: Tensor, key: Any, run: Any, operands: Sequence[Any], arrays: Sequence[Any]) -> None:
    """Tell whoever records that ``run`` of ``arrays``, fitted, gave the array of ``y``."""
    kind, layout = y.kind, y.layout
    state.recording.numbers(operands, arrays)
    state.recording.computed(y, lambda *a: fitted(run(*a), kind, layout), arrays, None, key)


def write(destination: Tensor, y: Tensor) -> None:
    """Store ``y`` in ``destination`` (same shape or broadcast), converting; no checks."""
    if destination.array is None:
        return
    source = y.array
    if source.dtype != destination.array.dtype:
        source = cast(source, destination.kind)
    destination.array[...] = source


def check_destination(
    destination: Tensor,
    y_kind: Kind,
    y_shape: tuple[int, ...],
    record: bool,
    overlapping: bool = False,
) -> None:
    """All refusals of an in-place operation, in PyTorch's order, before anything is written.

    ``overlapping``: the operation takes a destination whose elements share memory.
    """
    tape.check_inplace(destination, record)
    if not overlapping:
        tape.check_overlap(destination)
    if y_shape != destination.layout.shape:
        try:
            whole = layouts.broadcast_shapes(destination.layout.shape, y_shape)
        except TensorRuntimeError:
            whole = y_shape
        if whole != destination.layout.shape:
            raise InplaceError(
                f"output with shape {list(destination.layout.shape)} doesn't match the broadcast "
                f"shape {list(whole)}"
            )
    check_castable(y_kind, destination.kind)


def check_castable(source: Kind, target: Kind) -> None:
    """Refuse to store a result of a higher category."""
    if not can_cast(source.dtype, target.dtype):
        raise DtypeError(
            f"result type {source.dtype.title} can't be cast to the desired output type "
            f"{target.dtype.title}"
        )


def check_partial_overlap(destination: Tensor, other: Tensor) -> None:
    """Refuse an operand that shares some but not all of the destination's memory."""
    if destination is not other and _overlap(destination, other) == "partial":
        raise _shared_memory()


def check_memory(destination: Tensor, other: Tensor) -> None:
    """As check_partial_overlap for a kernel that reads and writes lazy views without copies."""
    if lazy.is_lazy(destination) or lazy.is_lazy(other):
        same = destination.storage.root is other.storage.root
        if same and _overlap_within(destination, other) == "partial":
            raise _shared_memory()


def check_apart(destination: Tensor, other: Tensor) -> None:
    """Refuse an operand that shares any of the destination's memory."""
    if destination is other or _overlap(destination, other):
        raise _shared_memory()


def _shared_memory() -> OverlapError:
    return OverlapError(
        "unsupported operation: some elements of the input tensor and the written-to tensor "
        "refer to a single memory location. Please clone() the tensor before performing the "
        "operation."
    )


def _overlap(a: Tensor, b: Tensor) -> str:
    """ "full", "partial" or "": PyTorch looks no closer where a tensor is not dense, and computes
    with copies of lazy views."""
    if a.memory is None or a.memory is not b.memory or lazy.is_lazy(a):
        return ""
    return _overlap_within(a, b)


def _overlap_within(a: Tensor, b: Tensor) -> str:
    """As ``_overlap`` for tensors over the same memory."""
    if a.layout.numel == 0 or b.layout.numel == 0:
        return ""
    if not (a.layout.dense and b.layout.dense):
        return ""
    size, other = a.kind.dtype.itemsize, b.kind.dtype.itemsize
    low, high = a.offset * size, (a.offset + a.layout.span) * size
    start, end = b.offset * other, (b.offset + b.layout.span) * other
    if low == start and high == end and a.layout.strides == b.layout.strides:
        return "full"
    return "partial" if start < high and low < end else ""


def store_out(
    out: Tensor, y: Tensor, name: str, operands: Sequence[Any] = (), nr: int = 0
) -> Tensor:
    """PyTorch's ``out=``: resize where the shape differs, convert where the category allows.

    Raises for tensors among ``operands`` that share a part of the destination's memory. ``nr``
    is the number of the result, where there are several.
    """
    # Imported where somebody asks for a destination: most programs never do.
    from engine.kinds import destinations

    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type_name(out)}")
    if name in destinations.WITHOUT:
        raise ArgumentError(f"{name}() got an unexpected keyword argument 'out'", "out")
    if state.grad and (tape.requires_grad(out) or (y.ag is not None and y.ag.requires_grad)):
        raise TensorRuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad."
        )
    for operand in operands:
        if isinstance(operand, Tensor):
            check = check_apart if name in destinations.APART else check_partial_overlap
            check(out, operand)
    destinations.check_dtype(name, y.kind.dtype, out.kind.dtype, nr)
    if not can_cast(y.kind.dtype, out.kind.dtype):
        check_castable(y.kind, out.kind)
    if out.layout.shape != y.layout.shape:
        if out.layout.numel:
            warn(
                "An output with one or more elements was resized since it had shape "
                f"{list(out.layout.shape)}, which does not match the required output shape "
                f"{list(y.layout.shape)}. This behavior is deprecated, and in a future PyTorch "
                "release outputs will not be resized unless they have zero elements. You can "
                "explicitly reuse an out tensor t by resizing it, inplace, to zero elements with "
                "t.resize_(0)."
            )
        resize(out, y)
    tape.check_overlap(out)
    write(out, y)
    tape.bump(out)
    return out


def resize(out: Tensor, like: Tensor) -> None:
    """Give ``out`` fresh memory of ``like``'s shape and strides, keeping its dtype."""
    out.layout = like.layout
    fresh = allocate(out.kind, like.layout)
    out.offset = 0
    if lazy.is_lazy(out):
        lazy.renew(out, of_tensor(fresh, out.kind, out.layout))
        return
    out.array = fresh
    out.memory = None if fresh is None else of_array(fresh, out.kind)
