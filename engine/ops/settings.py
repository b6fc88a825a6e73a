"""What holds for the whole process: default dtype and device, print options, threads."""

from __future__ import annotations

from typing import Any

from engine import device as devices
from engine import dtypes, printing
from engine.device import Device
from engine.dtypes import DType
from engine.errors import TensorRuntimeError, TensorTypeError
from engine.kinds.creation import default_device
from engine.modes import state
from engine.registry import function
from engine.signature import type_name
from engine.tensor import Tensor

_ONLY_FLOATS = "only floating-point types are supported as the default type"


@function("get_default_dtype")
def get_default_dtype() -> DType:
    """The dtype that Python floats become."""
    return state.default_dtype


@function("set_default_dtype")
def set_default_dtype(d: DType, /) -> None:
    """Choose the dtype that Python floats become."""
    if not isinstance(d, DType):
        raise TensorTypeError(f"invalid dtype object: {_ONLY_FLOATS}")
    if not d.is_floating_point:
        raise TensorTypeError(_ONLY_FLOATS)
    if d.itemsize == 1:
        raise TensorTypeError(f"couldn't find storage object {d.title}Storage")
    state.default_dtype = d


@function("set_default_tensor_type")
def set_default_tensor_type(t: Any, /) -> None:
    """The old way to choose the default dtype: torch.DoubleTensor or its name."""
    name = t if isinstance(t, str) else repr(t)[8:-2]
    for dtype in dtypes.by_name.values():
        if name == f"torch.{dtype.title}Tensor":
            if not dtype.is_floating_point:
                raise TensorTypeError(_ONLY_FLOATS)
            state.default_dtype = dtype
            return
    raise TensorTypeError(f"invalid type object: {_ONLY_FLOATS}")


@function("get_default_device")
def get_default_device() -> Device:
    """The device of new tensors."""
    return default_device()


@function("set_default_device")
def set_default_device(device: Any) -> None:
    """Choose the device of new tensors; None is the main memory."""
    state.default_device = None if device is None else devices.require(devices.device(device))


@function("set_printoptions")
def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Change how tensors are printed; options that are not given stay."""
    printing.set_printoptions(precision, threshold, edgeitems, linewidth, profile, sci_mode)


@function("get_num_threads", "get_num_interop_threads")
def get_num_threads() -> int:
    """How many threads were asked for; one computes."""
    return state.kept.threads


@function("set_num_threads", "set_num_interop_threads")
def set_num_threads(count: Any, /) -> None:
    """Note how many threads are asked for."""
    if not isinstance(count, int):
        raise TensorRuntimeError(f"set_num_threads expects an int, but got {type_name(count)}")
    if count <= 0:
        raise TensorRuntimeError("set_num_threads expects a positive integer")
    state.kept.threads = count


@function("are_deterministic_algorithms_enabled")
def are_deterministic_algorithms_enabled() -> bool:
    """What ``use_deterministic_algorithms`` said last; everything here is deterministic."""
    return state.kept.deterministic


@function("is_deterministic_algorithms_warn_only_enabled")
def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether ``use_deterministic_algorithms`` asked for warnings only."""
    return state.kept.warn_only


@function("get_deterministic_debug_mode")
def get_deterministic_debug_mode() -> int:
    """0 for default, 1 for warn, 2 for error."""
    if not state.kept.deterministic:
        return 0
    return 1 if state.kept.warn_only else 2


@function("use_deterministic_algorithms")
def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Note the wish for deterministic results; they are so anyway."""
    if mode.__class__ is not bool:
        raise TensorTypeError(
            "_set_deterministic_algorithms(): argument 'mode' (position 1) must be bool, not "
            f"{type_name(mode)}"
        )
    state.kept.deterministic = mode
    state.kept.warn_only = warn_only


@function("set_flush_denormal")
def set_flush_denormal(mode: bool) -> bool:
    """True, as on most machines; yet numbers below the normal ones are kept here."""
    return True


@function("get_float32_matmul_precision")
def get_float32_matmul_precision() -> str:
    """The precision asked for; products are computed in full precision."""
    return state.kept.matmul_precision


@function("set_float32_matmul_precision")
def set_float32_matmul_precision(precision: str) -> None:
    """Note the precision asked for."""
    state.kept.matmul_precision = precision


@function("is_warn_always_enabled")
def is_warn_always_enabled() -> bool:
    """What ``set_warn_always`` said last."""
    return state.kept.warn_always


@function("set_warn_always")
def set_warn_always(b: bool, /) -> None:
    """Note the wish to see every warning."""
    state.kept.warn_always = b


@function("typename")
def typename(obj: Any, /) -> str:
    """The name of a value's type; a tensor's tells its dtype."""
    if isinstance(obj, Tensor):
        found: str = obj.type()
        return found
    if obj is Tensor:
        return "torch.Tensor"
    return type_name(obj)


@function("cuda.is_available", "backends.mps.is_available", "backends.cudnn.is_available")
def is_available() -> bool:
    """Whether a device of that kind can be used."""
    return False


@function("cuda.device_count")
def device_count() -> int:
    """How many cuda devices there are."""
    return 0


@function("cuda.manual_seed", "cuda.manual_seed_all")
def cuda_manual_seed(seed: int) -> None:
    """Nothing: there is no generator of a cuda device."""


@function("cpu.synchronize")
def synchronize(device: Any = None) -> None:
    """Nothing: every result is there when its call returns."""


@function("cuda.synchronize")
def cuda_synchronize(device: Any = None) -> None:
    """Refused, as PyTorch without such devices does: there is nothing to wait for.

    Raises AssertionError.
    """
    raise AssertionError("Torch not compiled with CUDA enabled")


@function("cuda.empty_cache")
def empty_cache() -> None:
    """Nothing: no memory is kept for later."""
