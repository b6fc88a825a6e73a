"""Attributes, methods and calls of torch's values that are no tensors: dtypes, devices, sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import device as devices
from engine import dtypes, namespace, numeric_limits
from engine.device import Device
from engine.dtypes import DType
from engine.errors import TensorRuntimeError
from engine.layout import Size
from engine.numeric_limits import FloatLimits, IntegerLimits
from engine.ops import random
from engine.ops.reading import legacy
from engine.random import Generator
from engine.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable


def _to_complex(dtype: DType) -> DType:
    if dtype.category < dtypes.FLOAT:
        raise TensorRuntimeError(f"Unknown Complex ScalarType for {dtype.title}")
    return dtypes.complex_of(dtype)


ATTRIBUTES: dict[type, dict[str, Callable[[Any], Any]]] = {
    DType: {
        "is_floating_point": lambda d: d.is_floating_point,
        "is_complex": lambda d: d.is_complex,
        "is_signed": lambda d: d.signed,
        "itemsize": lambda d: d.itemsize,
    },
    Device: {"type": lambda d: d.type, "index": lambda d: d.index},
    FloatLimits: {
        "bits": lambda limits: limits.bits,
        "eps": lambda limits: limits.eps,
        "max": lambda limits: limits.max,
        "min": lambda limits: limits.min,
        "tiny": lambda limits: limits.tiny,
        "smallest_normal": lambda limits: limits.tiny,
        "resolution": lambda limits: limits.resolution,
        "dtype": lambda limits: limits.dtype,
    },
    IntegerLimits: {
        "bits": lambda limits: limits.bits,
        "max": lambda limits: limits.max,
        "min": lambda limits: limits.min,
        "dtype": lambda limits: limits.dtype,
    },
    Generator: {"device": lambda generator: devices.cpu},
}

METHODS: dict[type, dict[str, Callable[..., Any]]] = {
    DType: {"to_complex": _to_complex, "to_real": dtypes.real_of},
    Size: {"numel": Size.numel},
    Generator: {
        "manual_seed": random.seeded,
        "seed": Generator.seed,
        "initial_seed": Generator.initial_seed,
        "get_state": random.state_of,
        "set_state": random.put_state,
        "clone_state": Generator.clone,
    },
}


def _tensor(*args: Any, **kwargs: Any) -> Tensor:
    """torch.Tensor(...): the old constructor in the default dtype."""
    from engine.modes import state

    return legacy(state.default_dtype, args, kwargs, "Tensor")


CALLS: dict[Any, Callable[..., Any]] = {
    Size: Size,
    Tensor: _tensor,
    Device: namespace.make_device,
    Generator: random.new_generator,
    FloatLimits: numeric_limits.finfo,
    IntegerLimits: numeric_limits.iinfo,
}
