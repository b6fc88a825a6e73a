"""Activation functions as torch.nn.functional spells them, most with ``inplace``."""

from __future__ import annotations

from typing import Any

from engine.errors import TensorRuntimeError, TensorValueError
from engine.kinds.functional import functional
from engine.kinds.record import parameters, twin
from engine.registry import function, ops
from engine.signature import ArgumentError, type_name
from engine.tensor import Tensor


def _apply(name: str, inplace: Any, *args: Any) -> Any:
    op = ops[name]
    return twin(op)(*args) if inplace else op.function(*args)


_IN_TORCH = ("selu", "celu", "threshold")


def _twin_function(name: str, op: str) -> None:
    """``nn.functional.elu_`` and its like: the twin under a name of its own."""

    def call(*args: Any, **kwargs: Any) -> Any:
        """The function of the same name, in place."""
        return twin(ops[op])(*args, **kwargs)

    names = (f"nn.functional.{name}_", *([f"{name}_"] if name in _IN_TORCH else []))
    function(*names, forms=lambda: (parameters(ops[op]),))(call)


for _name, _op in {
    "relu": "relu",
    "elu": "nn.elu",
    "selu": "selu",
    "celu": "celu",
    "hardtanh": "nn.hardtanh",
    "leaky_relu": "nn.leaky_relu",
    "threshold": "threshold",
}.items():
    _twin_function(_name, _op)


@functional(example="nn.functional.relu(tensor([-1., 2.]))")
def relu(input: Any, inplace: bool = False) -> Any:
    """x above 0, else 0; NaN stays."""
    return _apply("relu", inplace, input)


@functional(example="nn.functional.relu6(tensor([-1., 2., 7.]))")
def relu6(input: Any, inplace: bool = False) -> Any:
    """x kept between 0 and 6."""
    if not isinstance(input, Tensor):
        raise ArgumentError(
            "relu6(): argument 'input' (position 1) must be Tensor, not " + type_name(input)
        )
    return _apply("nn.hardtanh", inplace, input, 0, 6)


@functional(example="nn.functional.elu(tensor([-1., 2.]))")
def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """x above 0, alpha * (exp(x) - 1) below."""
    return _apply("nn.elu", inplace, input, alpha)


@functional(example="nn.functional.selu(tensor([-1., 2.]))")
def selu(input: Any, inplace: bool = False) -> Any:
    """elu with the alpha and scale that keep mean 0 and variance 1."""
    return _apply("selu", inplace, input)


@functional(example="nn.functional.celu(tensor([-1., 2.]), 0.5)")
def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """x above 0, alpha * (exp(x / alpha) - 1) below."""
    return _apply("celu", inplace, input, alpha)


@functional(example="nn.functional.silu(tensor([-1., 2.]))")
def silu(input: Any, inplace: bool = False) -> Any:
    """x * sigmoid(x)."""
    return _apply("nn.silu", inplace, input)


@functional(example="nn.functional.mish(tensor([-1., 2.]))")
def mish(input: Any, inplace: bool = False) -> Any:
    """x * tanh(softplus(x))."""
    return _apply("nn.mish", inplace, input)


@functional(example="nn.functional.hardswish(tensor([-1., 2.]))")
def hardswish(input: Any, inplace: bool = False) -> Any:
    """x * hardsigmoid(x)."""
    return _apply("nn.hardswish", inplace, input)


@functional(example="nn.functional.hardsigmoid(tensor([-1., 2.]))")
def hardsigmoid(input: Any, inplace: bool = False) -> Any:
    """0 below -3, 1 above 3, a straight line between."""
    return _apply("nn.hardsigmoid", inplace, input)


@functional(example="nn.functional.hardtanh(tensor([-2., 0.5]))")
def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """x kept between two limits."""
    if min_val > max_val:
        raise TensorValueError("min_val cannot be greater than max_val")
    if isinstance(input, Tensor) and min(min_val, max_val) < 0:
        if input.dtype.is_integral and not input.dtype.signed:
            raise TensorRuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    return _apply("nn.hardtanh", inplace, input, min_val, max_val)


@functional(example="nn.functional.leaky_relu(tensor([-1., 2.]))")
def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """x above 0, x times the slope below."""
    return _apply("nn.leaky_relu", inplace, input, negative_slope)


@functional(example="nn.functional.threshold(tensor([0.2, 1.]), 0.5, 0.)")
def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Any:
    """x above the threshold, ``value`` elsewhere."""
    return _apply("threshold", inplace, input, threshold, value)


@functional(example="nn.functional.sigmoid(tensor([-1., 2.]))")
def sigmoid(input: Any) -> Any:
    """1 / (1 + exp(-x)): from 0 to 1."""
    return input.sigmoid()


@functional(example="nn.functional.tanh(tensor([-1., 2.]))")
def tanh(input: Any) -> Any:
    """Hyperbolic tangent: from -1 to 1."""
    return input.tanh()


@functional(example="nn.functional.softsign(tensor([-1., 2.]))")
def softsign(input: Any) -> Any:
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


@functional(example="nn.functional.tanhshrink(tensor([-1., 2.]))")
def tanhshrink(input: Any) -> Any:
    """x - tanh(x)."""
    return input - input.tanh()


@functional(example="nn.functional.glu(tensor([1., 2., 3., 0.]))")
def glu(input: Any, dim: int = -1) -> Any:
    """One half of a dimension times the sigmoid of the other."""
    if input.dim() == 0:
        raise TensorRuntimeError("glu does not support scalars because halving size must be even")
    return ops["nn.glu"].function(input, dim)
