"""Python's operators on Tensor, tied to the registry's functions on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.dtypes import INT
from engine.errors import TensorTypeError
from engine.kinds.pointwise import operator_function
from engine.registry import methods, ops
from engine.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

BINARY = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
    "matmul": "matmul",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
UNARY = {"neg": "neg", "abs": "abs"}


def install() -> None:
    """Give Tensor its operators; each ties itself to its op when first used."""
    for dunder, name in BINARY.items():
        _tie(f"__{dunder}__", _function, name)
        _tie(f"__r{dunder}__", _reflected_function, name)
        _tie(f"__i{dunder}__", _inplace, name)
    for name in COMPARISONS:
        _tie(f"__{name}__", _function, name)
    for dunder in ("add", "mul", "and", "or", "xor"):
        # PyTorch takes the number second here too, which rounds otherwise in low precision.
        _tie(f"__r{dunder}__", _function, BINARY[dunder])
    _tie("__rsub__", _reflected_function, "rsub_plain")
    _tie("__rtruediv__", lambda name: _reciprocal_times, "")
    _tie("__invert__", lambda name: _invert, "")
    for dunder, name in (("pos", "positive"), *UNARY.items()):
        _tie(f"__{dunder}__", _plain_function, name)


def _tie(dunder: str, make: Callable[[str], Any], name: str) -> None:
    def first_use(*args: Any) -> Any:
        real = make(name)
        setattr(Tensor, dunder, real)
        return real(*args)

    setattr(Tensor, dunder, first_use)


def _plain_function(name: str) -> Any:
    return ops[name].function


def _reflected_function(name: str) -> Any:
    return _reflected(_function(name))


def _function(name: str) -> Any:
    op = ops[name]
    if op.kind == "pointwise":
        return operator_function(op)
    call = op.function
    if name == "matmul":
        apply = call.apply  # type: ignore[attr-defined]  # set by the contraction kind

        def product(a: Any, b: Any) -> Any:
            return apply(a, b) if b.__class__ is Tensor else NotImplemented

        return product

    def binary(a: Any, b: Any) -> Any:
        if not isinstance(b, (Tensor, int, float, complex)):
            return NotImplemented
        return call(a, b)

    return binary


def _reflected(call: Any) -> Any:
    def reflected(b: Any, a: Any) -> Any:
        return call(a, b)

    return reflected


def _reciprocal_times(b: Tensor, a: Any) -> Any:
    """A number divided by a tensor: PyTorch multiplies the reciprocal, and rounds twice."""
    if not isinstance(a, (int, float, complex)):
        return NotImplemented
    return b.reciprocal() * a


def _invert(x: Tensor) -> Any:
    if x.dtype.category > INT:
        raise TensorTypeError(
            "~ (operator.invert) is only implemented on integer and Boolean-type tensors"
        )
    return x.bitwise_not()


def _inplace(name: str) -> Any:
    if name == "matmul":
        return lambda a, b: NotImplemented
    call = methods[f"{name}_"]

    def inplace(a: Any, b: Any) -> Any:
        if not isinstance(b, (Tensor, int, float, complex)):
            return NotImplemented
        return call(a, b)

    return inplace
