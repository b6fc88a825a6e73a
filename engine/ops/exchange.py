"""Tensors as Python's and numpy's values: item, tolist, numpy, and Python's own protocols."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes, foreign, lazy, scalars, tape
from engine.errors import (
    TensorNotImplementedError,
    TensorRuntimeError,
    TensorTypeError,
    TensorValueError,
)
from engine.registry import F, method
from engine.storage import ask
from engine.tensor import Tensor, number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.dtypes import DType


@method("item")
def item(x: Tensor) -> Any:
    """The only element as a Python number. Raises RuntimeError for more or fewer."""
    return number(x)


# A Python number and its place in a list.
_NUMBER_BYTES = 32


@method("tolist")
def tolist(x: Tensor) -> Any:
    """The elements as nested lists of Python numbers; a 0-d tensor gives its number."""
    array = x.array
    if array is None:
        raise TensorNotImplementedError("Cannot copy out of meta tensor; no data!")
    ask(x.layout.numel * _NUMBER_BYTES)
    if x.kind.opaque:
        array = array.astype("float32")
    return array.tolist()


@method("numpy")
def numpy(x: Tensor, *, force: bool = False) -> Any:
    """numpy's array over the tensor's memory; ``force`` detaches first where that is needed."""
    if x.array is None:
        raise TensorTypeError(
            "can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor "
            "to host memory first."
        )
    if tape.requires_grad(x) and not force:
        raise TensorRuntimeError(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        )
    if x.device.type != "cpu":
        if not force:
            raise TensorTypeError(
                f"can't convert {x.device} device type tensor to numpy. Use Tensor.cpu() to copy "
                "the tensor to host memory first."
            )
        x = x.cpu()
    if x.kind.opaque:
        raise TensorTypeError(f"Got unsupported ScalarType {x.dtype.title}")
    if lazy.is_lazy(x):
        if not force:
            raise _unresolved(x)
        x = x.detach().clone()
    return foreign.exchange.wrap(x.array)


def _unresolved(x: Tensor) -> TensorRuntimeError:
    bit, name = (
        ("conjugate", "conj") if lazy.has(x.memory, lazy.CONJUGATED) else ("negative", "neg")
    )
    return TensorRuntimeError(
        f"Can't call numpy() on Tensor that has {bit} bit set. Use "
        f"tensor.resolve_{name}().numpy() instead."
    )


@method("data_ptr")
def data_ptr(x: Tensor) -> int:
    """The address of the first element, 0 where there is none."""
    if x.array is None or not x.layout.numel:
        return 0
    address: int = lazy.held(x).__array_interface__["data"][0]
    return address


# Python's protocols


def _length(x: Tensor) -> int:
    if not x.layout.ndim:
        raise TensorTypeError("len() of a 0-d tensor")
    return x.layout.shape[0]


def _iterate(x: Tensor) -> Iterator[Tensor]:
    if not x.layout.ndim:
        raise TensorTypeError("iteration over a 0-d tensor")
    return iter(F.unbind(x, 0))


def _truth(x: Tensor) -> bool:
    if x.layout.numel != 1:
        many = "more than one value" if x.layout.numel else "no values"
        raise TensorRuntimeError(f"Boolean value of Tensor with {many} is ambiguous")
    return bool(number(x))


def _only(x: Tensor) -> Any:
    if x.layout.numel != 1:
        raise TensorValueError("only one element tensors can be converted to Python scalars")
    return number(x)


def _real(x: Tensor, dtype: DType) -> Any:
    value = _only(x)
    return scalars.element(value, dtype).item() if value.__class__ is complex else value


def _integer(x: Tensor) -> int:
    return int(_real(x, dtypes.int64))


def _floating(x: Tensor) -> float:
    return float(_real(x, dtypes.float64))


def _complex(x: Tensor) -> complex:
    return complex(_only(x))


def _index(x: Tensor) -> int:
    if x.layout.numel != 1 or x.dtype.category > dtypes.INT:
        raise TensorTypeError(
            "only integer tensors of a single element can be converted to an index"
        )
    return int(number(x))


def _contains(x: Tensor, element: Any) -> bool:
    if not isinstance(element, (Tensor, int, float, complex)):
        raise TensorRuntimeError(
            "Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
            f"{type(element)}."
        )
    equal: Any = x == element
    return bool(equal.any())


def _text(x: Tensor) -> str:
    from engine.printing import tensor_text

    return tensor_text(x)


def _formatted(x: Tensor, spec: str) -> str:
    from engine.printing import format_tensor_value

    return format_tensor_value(x, spec)


def _reversed(x: Tensor) -> Tensor:
    found: Tensor = F.flip(x, (0,)) if x.layout.ndim else x
    return found


def install() -> None:
    """Give Tensor Python's protocols."""
    protocols = {
        "__len__": _length,
        "__iter__": _iterate,
        "__bool__": _truth,
        "__int__": _integer,
        "__float__": _floating,
        "__complex__": _complex,
        "__index__": _index,
        "__contains__": _contains,
        "__repr__": _text,
        "__format__": _formatted,
        "__reversed__": _reversed,
    }
    for name, function in protocols.items():
        setattr(Tensor, name, function)


install()
