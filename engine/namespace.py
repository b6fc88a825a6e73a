"""What torch and its modules hold beside functions, by dotted name: dtypes, formats, types."""

from __future__ import annotations

from typing import Any

from engine import device as devices
from engine import draws, dtypes, formats, numeric_limits
from engine.device import Device
from engine.dtypes import DType
from engine.layout import Size
from engine.random import Generator
from engine.tensor import Tensor

_INF = float("inf")

constants: dict[str, Any] = {
    "Tensor": Tensor,
    "Size": Size,
    "dtype": DType,
    "device": Device,
    "Generator": Generator,
    "memory_format": formats.MemoryFormat,
    "layout": formats.StorageLayout,
    "finfo": numeric_limits.FloatLimits,
    "iinfo": numeric_limits.IntegerLimits,
    "inf": _INF,
    "nan": _INF - _INF,
    "pi": 3.141592653589793,
    "e": 2.718281828459045,
    "newaxis": None,
    "__version__": "2.13.0",
    "contiguous_format": formats.contiguous_format,
    "preserve_format": formats.preserve_format,
    "channels_last": formats.channels_last,
    "channels_last_3d": formats.channels_last_3d,
    "strided": formats.strided,
    "sparse_coo": formats.sparse_coo,
    "sparse_csr": formats.sparse_csr,
    "default_generator": draws.default,
    "random.default_generator": draws.default,
    "version.__version__": "2.13.0",
    "version.cuda": None,
    "backends.cudnn.enabled": True,
    "backends.cudnn.deterministic": False,
    "backends.cudnn.benchmark": False,
    **dtypes.by_name,
    **dtypes.ALIASES,
}


def make_device(*args: Any, **kwargs: Any) -> Device:
    """``torch.device(...)``: from a name, a name and a number, or another device."""
    from engine.overloads import no_overload

    texts = ("(torch.device device)", "(str type, int index = -1)")
    given = [*args]
    given += [kwargs[k] for k in ("device", "type", "index") if k in kwargs]
    if not 1 <= len(given) <= 2 or not isinstance(given[0], (str, Device, int)):
        raise no_overload("device", args, kwargs, texts)
    if len(given) == 2 and not (isinstance(given[0], str) and given[1].__class__ is int):
        raise no_overload("device", args, kwargs, texts)
    return devices.device(*given)
