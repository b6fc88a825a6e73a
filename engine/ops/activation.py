"""Activation functions that PyTorch has kernels for, under their kernels' names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import layout as layouts
from engine.dtypes import BOOL, COMPLEX, DType, float32
from engine.errors import DtypeError, TensorNotImplementedError, TensorRuntimeError
from engine.kinds import DEFAULT, composite, kernel, made, pointwise, working
from engine.kinds.conjugate import conj
from engine.kinds.native import Native
from engine.kinds.reduction import check_takes
from engine.kinds.underived import NODE, underived
from engine.layout import wrap_dim
from engine.registry import F, ops
from engine.tensor import Tensor

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.parameter_types import Dim, Scalar

# What selu fixes elu's alpha and scale at.
_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946

_SQRT_HALF = 0.5**0.5
_SQRT_2_OVER_PI = 0.7978845608028654
_TANH_CUBIC = 0.044715
_NORMAL_PEAK = 0.3989422804014327

_KERNEL: dict[str, Any] = {"function": False, "method": False, "named_inplace": False}


def _elu(xp: Any, x: Any, alpha: Any, scale: Any, input_scale: Any) -> Any:
    negative = xp.expm1(xp.minimum(x, x.dtype.type(0)) * input_scale) * (alpha * scale)
    return xp.where(x > 0, x * scale, negative)


def _elu_slope(g: Tensor, input: Tensor, alpha: Any, scale: Any, input_scale: Any) -> Tensor:
    return ops["nn.elu_backward"].function(g, input, alpha, scale, input_scale)


def _elu_down(xp: Any, grad: Any, x: Any, alpha: Any, scale: Any, input_scale: Any) -> Any:
    steep = xp.exp(xp.minimum(x, x.dtype.type(0)) * input_scale) * (alpha * scale * input_scale)
    return grad * xp.where(x <= 0, steep, x.dtype.type(scale))


def _elu_bend(
    g: Tensor, grad: Tensor, input: Tensor, alpha: Any, scale: Any, input_scale: Any
) -> Tensor:
    # By a product with 0 above: NaN goes on. At 0 the slope is the one from below, with no bend.
    bent = _elu_slope(g * grad * input_scale, input, alpha, scale, input_scale)
    return bent * (input < 0)


@pointwise(
    name="nn.elu_backward",
    kernel=_elu_down,
    vjp={
        "grad": lambda g, input, alpha, scale, input_scale: _elu_slope(
            g, input, alpha, scale, input_scale
        ),
        "input": _elu_bend,
    },
    node="EluBackwardBackward0",
    takes="f",
    function=False,
    method=False,
    inplace=False,
)
def elu_backward(
    grad: Tensor, input: Tensor, alpha: Scalar, scale: Scalar, input_scale: Scalar
) -> Tensor:
    """The gradient of elu, given that of its result."""


@pointwise(
    name="nn.elu",
    kernel=_elu,
    vjp=_elu_slope,
    takes="f",
    inplace_number=1,
    **_KERNEL,
)
def elu(input: Tensor, alpha: Scalar = 1.0, scale: Scalar = 1, input_scale: Scalar = 1) -> Tensor:
    """x above 0, alpha * (exp(x) - 1) below."""


@pointwise(
    kernel=lambda xp, x: _elu(xp, x, _SELU_ALPHA, _SELU_SCALE, 1),
    vjp=lambda g, input: _elu_slope(g, input, _SELU_ALPHA, _SELU_SCALE, 1),
    takes="f",
    stub="elu_cpu",
    node="EluBackward0",
    method=False,
    named_inplace=False,
    example="selu(tensor([-1., 2.]))",
    inplace_number=1,
)
def selu(input: Tensor) -> Tensor:
    """elu with the alpha and scale that keep mean 0 and variance 1."""


def _check_alpha(values: Any) -> None:
    if values == 0:
        raise TensorRuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")


def _celu(xp: Any, x: Any, alpha: Any) -> Any:
    _check_alpha(alpha)
    return _elu(xp, x, alpha, 1, 1 / alpha)


@pointwise(
    kernel=_celu,
    vjp=lambda g, input, alpha: _elu_slope(g, input, alpha, 1, 1 / alpha),
    takes="f",
    stub="elu_cpu",
    method=False,
    named_inplace=False,
    example="celu(tensor([-1., 2.]), 0.5)",
    inplace_number=1,
)
def celu(input: Tensor, alpha: Scalar = 1.0) -> Tensor:
    """x above 0, alpha * (exp(x / alpha) - 1) below: smooth for every alpha."""


def _erf(x: Any) -> Any:
    import scipy.special

    return scipy.special.erf(x)


def _gelu(xp: Any, x: Any, approximate: str) -> Any:
    if approximate not in ("none", "tanh"):
        raise TensorRuntimeError("approximate argument must be either none or tanh.")
    if approximate == "tanh":
        return 0.5 * x * (1 + xp.tanh(_SQRT_2_OVER_PI * (x + _TANH_CUBIC * x * x * x)))
    return 0.5 * x * (1 + _erf(x * x.dtype.type(_SQRT_HALF)))


def _gelu_slope(g: Tensor, input: Tensor, approximate: str) -> Tensor:
    if approximate == "tanh":
        squared = input * input
        inner = (_SQRT_2_OVER_PI * (input + _TANH_CUBIC * squared * input)).tanh()
        growth = _SQRT_2_OVER_PI * (1 + 3 * _TANH_CUBIC * squared)
        return g * (0.5 * (1 + inner) + 0.5 * input * (1 - inner * inner) * growth)
    below = 0.5 * (1 + (input * _SQRT_HALF).erf())
    return g * (below + input * (-0.5 * input * input).exp() * _NORMAL_PEAK)


@pointwise(
    name="nn.functional.gelu",
    kernel=_gelu,
    vjp=Native("GeluBackwardBackward0", _gelu_slope),
    takes="f",
    stub="GeluKernelImpl",
    inplace=False,
    method=False,
    example="nn.functional.gelu(tensor([-1., 0., 1.]))",
)
def gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    """x times the chance that a normal number is below x; "tanh" computes it approximately."""


def _silu_slope(g: Tensor, input: Tensor) -> Tensor:
    s = input.sigmoid()
    return g * conj(s * (1 + input * (1 - s)))


@pointwise(
    name="nn.silu",
    kernel=lambda xp, x: x / (1 + xp.exp(-x)),
    vjp=_silu_slope,
    takes="fc",
    **_KERNEL,
)
def silu(input: Tensor) -> Tensor:
    """x * sigmoid(x)."""


def _mish_slope(g: Tensor, input: Tensor) -> Tensor:
    t = F.softplus(input).tanh()
    return g * (t + input * input.sigmoid() * (1 - t * t))


@pointwise(
    name="nn.mish",
    kernel=lambda xp, x: x * xp.tanh(xp.log1p(xp.exp(x))),
    vjp=_mish_slope,
    takes="f",
    **_KERNEL,
)
def mish(input: Tensor) -> Tensor:
    """x * tanh(log(1 + exp(x)))."""


def _bent(xp: Any, x: Any) -> Any:
    """0 below -3, 1 above 3, a straight line between."""
    zero, six = x.dtype.type(0), x.dtype.type(6)
    return xp.minimum(xp.maximum(x + 3, zero), six) / 6


def _hardswish_slope(g: Tensor, input: Tensor) -> Tensor:
    if input.dtype.low:
        # In low precision the slope itself would be rounded.
        g, input = g.to(float32), input.to(float32)
    middle = F.where(input < 3, g * (input / 3 + 0.5), g)
    return F.where(input <= -3, 0.0, middle)


@pointwise(
    name="nn.hardswish",
    kernel=lambda xp, x: x * _bent(xp, x),
    vjp=Native("HardswishBackwardBackward0", _hardswish_slope),
    takes="f",
    **_KERNEL,
)
def hardswish(input: Tensor) -> Tensor:
    """x * hardsigmoid(x)."""


@pointwise(
    name="nn.hardsigmoid",
    kernel=_bent,
    vjp=Native(
        NODE,
        lambda g, input: F.where((input > -3) & (input < 3), g / 6, 0.0),
        underived("hardsigmoid_backward"),
    ),
    takes="f",
    **_KERNEL,
)
def hardsigmoid(input: Tensor) -> Tensor:
    """0 below -3, 1 above 3, a straight line between."""


def _hardtanh_dtypes(common: DType) -> tuple[DType, DType]:
    if common.category == BOOL:
        raise TensorRuntimeError("Bool inputs not supported for hardtanh")
    if common.category == COMPLEX:
        raise TensorNotImplementedError("clamp is not supported for complex types")
    return DEFAULT(common)


def _hardtanh(xp: Any, x: Any, min_val: Any, max_val: Any) -> Any:
    if x.dtype.kind == "u" and (min_val < 0 or max_val < 0):
        raise TensorRuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    low, high = x.dtype.type(min_val), x.dtype.type(max_val)
    return xp.where(x < low, low, xp.where(x > high, high, x))


@pointwise(
    name="nn.hardtanh",
    kernel=_hardtanh,
    vjp=Native(
        "HardtanhBackwardBackward0",
        lambda g, input, min_val, max_val: F.where((input > min_val) & (input < max_val), g, 0.0),
    ),
    promote=_hardtanh_dtypes,
    stub="clamp_scalar_cpu",
    **_KERNEL,
)
def hardtanh(input: Tensor, min_val: Scalar = -1, max_val: Scalar = 1) -> Tensor:
    """x kept between two limits."""


@pointwise(
    name="nn.leaky_relu",
    kernel=lambda xp, x, slope: xp.where(x > 0, x, x * slope),
    vjp=Native(
        "LeakyReluBackwardBackward0",
        lambda g, input, negative_slope: F.where(input > 0, g, g * negative_slope),
    ),
    takes="f",
    **_KERNEL,
    inplace_number=1,
)
def leaky_relu(input: Tensor, negative_slope: Scalar = 0.01) -> Tensor:
    """x above 0, x times the slope below."""


@kernel(
    name="nn.functional.logsigmoid",
    node="LogSigmoidBackward0",
    vjp=Native("LogSigmoidBackwardBackward0", lambda g, input: g * (-input).sigmoid()),
    method=False,
    out=False,
    spoken="log_sigmoid",
    example="nn.functional.logsigmoid(tensor([-1., 0., 1.]))",
)
def logsigmoid(input: Tensor) -> Made:
    """The logarithm of sigmoid, exact where sigmoid is nearly 0."""
    check_takes("f", "log_sigmoid_cpu", input.dtype)

    def run(xp: Any) -> Any:
        x = working(input)
        return xp.minimum(x, x.dtype.type(0)) - xp.log1p(xp.exp(-xp.abs(x)))

    return made(input.dtype, input.layout.shape, run)


def _softplus(xp: Any, x: Any, beta: Any, threshold: Any) -> Any:
    scaled = x * beta
    return xp.where(scaled > threshold, x, xp.log1p(xp.exp(scaled)) / beta)


def _softplus_slope(g: Tensor, input: Tensor, beta: Any, threshold: Any) -> Tensor:
    scaled = input * beta
    # At the threshold the slope is still that of the curve, and has none itself.
    bent = F.where(scaled >= threshold, threshold, scaled)
    return F.where(scaled > threshold, g, g * bent.sigmoid())


@pointwise(
    name="nn.functional.softplus",
    kernel=_softplus,
    vjp=Native("SoftplusBackwardBackward0", _softplus_slope),
    takes="f",
    inplace=False,
    method=False,
    example="nn.functional.softplus(tensor([-1., 0., 1.]))",
)
def softplus(input: Tensor, beta: Scalar = 1, threshold: Scalar = 20) -> Tensor:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold."""


def _softshrink(xp: Any, x: Any, lambd: Any) -> Any:
    highest = float(xp.finfo(x.dtype).max)
    if not 0 <= lambd <= highest:
        raise TensorRuntimeError(
            f"lambda must be in range [0, {highest:g}] for input dtype "
            f"{'Double' if x.dtype.itemsize == 8 else 'Float'}, but found {lambd:g}"
        )
    return xp.where(x > lambd, x - lambd, xp.where(x < -lambd, x + lambd, x * 0))


def _outside(g: Tensor, input: Tensor, lambd: Any) -> Tensor:
    return F.where((input >= -lambd) & (input <= lambd), 0.0, g)


@pointwise(
    name="nn.functional.softshrink",
    kernel=_softshrink,
    vjp=Native("SoftshrinkBackwardBackward0", _outside),
    takes="f",
    stub="softshrink_check",
    inplace=False,
    method=False,
    example="nn.functional.softshrink(tensor([-1., 0.2, 1.]))",
)
def softshrink(input: Tensor, lambd: Scalar = 0.5) -> Tensor:
    """x moved towards 0 by ``lambd``, 0 where it would pass it."""


@pointwise(
    kernel=lambda xp, x, lambd: xp.where((x >= -lambd) & (x <= lambd), x.dtype.type(0), x),
    vjp=Native("HardshrinkBackwardBackward0", _outside),
    takes="f",
    spaces=("", "nn.functional."),
    inplace=False,
    example="hardshrink(tensor([-1., 0.2, 1.]))",
)
def hardshrink(input: Tensor, lambd: Scalar = 0.5) -> Tensor:
    """x, but 0 between -lambd and lambd."""


@pointwise(
    kernel=lambda xp, x, threshold, value: xp.where(x <= threshold, x.dtype.type(value), x),
    vjp=Native(
        "ThresholdBackwardBackward0",
        lambda g, input, threshold: F.where(input <= threshold, 0.0, g),
    ),
    takes="if",
    method=False,
    named_inplace=False,
    example="threshold(tensor([0.2, 1.]), 0.5, 0.)",
    inplace_number=1,
)
def threshold(input: Tensor, threshold: Scalar, value: Scalar) -> Tensor:
    """x above the threshold, ``value`` elsewhere."""


def _glu_slope(g: Tensor, input: Tensor, dim: int) -> Tensor:
    a, b = input.chunk(2, dim)
    s = b.sigmoid()
    return F.cat((g * s, g * a * s * (1 - s)), dim)


@kernel(
    name="nn.glu",
    vjp=Native("GluBackwardBackward0", _glu_slope),
    function=False,
    method=False,
    out=False,
)
def glu(input: Tensor, dim: Dim = -1) -> Made:
    """One half of a dimension times the sigmoid of the other."""
    axis = wrap_dim(dim, input.layout.ndim)
    size = input.layout.shape[axis]
    if size % 2:
        raise TensorRuntimeError(
            f"Halving dimension must be even, but dimension {axis} is size {size}"
        )
    check_takes("f", "glu_cpu", input.dtype)
    half, _ = layouts.narrow(input.layout, axis, 0, size // 2, 1)

    def run(xp: Any) -> Any:
        a, b = xp.split(working(input), 2, axis)
        return a / (1 + xp.exp(-b))

    return made(input.dtype, layouts.elementwise([half, half], half.shape), run)


@pointwise(
    name="_prelu_kernel",
    node="PreluKernelBackward0",
    kernel=lambda xp, x, w: xp.where(x > 0, x, x * w),
    vjp={
        "input": Native(
            "PreluKernelBackwardBackward0",
            lambda g, input, weight: F.where(input > 0, g, g * weight),
        ),
        "weight": Native(
            "PreluKernelBackwardBackward0", lambda g, input: F.where(input > 0, 0.0, g * input)
        ),
    },
    takes="f",
    stub="prelu_cpu",
    function=False,
    method=False,
    inplace=False,
)
def _prelu_kernel(input: Tensor, weight: Tensor) -> Tensor:
    """prelu of operands that broadcast."""


@composite(
    spaces=("", "nn.functional."),
    out=False,
    example="prelu(tensor([-1., 2.]), tensor([0.25]))",
)
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x above 0, x times the weight below: one weight, or one for each of dimension 1."""
    if input.dtype is not weight.dtype:
        raise DtypeError(
            f"prelu: Type promoting not supported. Got {input.dtype.title} and {weight.dtype.title}"
        )
    ndim = input.layout.ndim
    count = weight.layout.numel
    if count != 1:
        if ndim == 0:
            raise TensorRuntimeError("Not allow zero-dim input tensor.")
        channels = input.layout.shape[1] if ndim > 1 else 1
        if channels != count:
            raise TensorRuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{count} and channel size = {channels}."
            )
    if weight.layout.ndim > 1:
        raise TensorRuntimeError(
            "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = "
            f"{weight.layout.ndim}"
        )
    if weight.layout.ndim and ndim:
        shape = [1] * ndim
        shape[1 if ndim > 1 else 0] = count
        if tuple(shape) != weight.layout.shape:
            weight = weight.view(tuple(shape))
    elif weight.layout.ndim:
        weight = weight.view(())
    return ops["_prelu_kernel"].function(input, weight)
