"""Rarer layers: bilinear, conv_tbc, rrelu, local response normalisation, pdist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.dtypes import float64, int64
from engine.errors import DimError, DtypeError, TensorRuntimeError, TensorValueError
from engine.kinds import composite, kernel, made
from engine.kinds.functional import functional
from engine.kinds.native import Native
from engine.kinds.recomputed import array_of, differentiated
from engine.kinds.record import parameters, twin
from engine.kinds.reduction import check_takes
from engine.kinds.underived import unlisted
from engine.registry import F, function, ops

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.parameter_types import Scalar
    from engine.random import Generator
    from engine.tensor import Tensor

_INTERNAL: dict[str, Any] = {"function": False, "method": False, "out": False}


def _trilinear_product(a: Tensor, weight: Tensor, b: Tensor) -> Tensor:
    """(rows, outputs): a @ weight[o] @ b for each output."""
    outputs, n, m = weight.layout.shape
    rows = a.layout.shape[0]
    left = a.matmul(weight.permute(1, 0, 2).reshape((n, outputs * m)))
    left = left.reshape((rows, outputs, m))
    return (left * b.unsqueeze(1)).sum(2)


def _trilinear_gradients(
    g: Tensor, a: Tensor, weight: Tensor, b: Tensor, needed: tuple[bool, ...]
) -> list[Any]:
    found = differentiated(_trilinear_product, g, (a, weight, b), needed)
    return [None if f is None else f.contiguous() for f in found]


@kernel(
    name="nn.trilinear",
    node="TrilinearBackward0",
    vjp={"a,weight,b": _trilinear_gradients},
    **_INTERNAL,
)
def _trilinear(a: Tensor, weight: Tensor, b: Tensor) -> Made:
    """The product of two vectors with each of many matrices between them."""
    shape = (a.layout.shape[0], weight.layout.shape[0])
    return made(a.dtype, shape, lambda xp: array_of(_trilinear_product, a, weight, b))


@composite(
    spaces=("", "nn.functional."),
    method=False,
    out=False,
    example="bilinear(ones(1, 2), ones(1, 2), ones(1, 2, 2), None)",
)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input1 @ weight[o] @ input2 for each output o, plus ``bias``."""
    if bias is not None and bias.layout.shape[0] != weight.layout.shape[0]:
        raise TensorRuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.layout.shape[0]} but "
            f"expected {weight.layout.shape[0]}"
        )
    one, two = input1.layout.shape, input2.layout.shape
    if weight.layout.ndim < 3:
        raise DimError(2, weight.layout.ndim)
    if len(one) != len(two):
        raise TensorRuntimeError(
            f"bilinear(): input dimensions do not match: got {len(one)} and {len(two)}"
        )
    for d, (n, m) in enumerate(zip(one[:-1], two[:-1], strict=True)):
        if n != m:
            raise TensorRuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {d}: got {n} and {m}"
            )
    for which, shape in ((1, one), (2, two)):
        wanted = weight.layout.shape[which]
        if shape[-1] != wanted:
            raise TensorRuntimeError(
                f"bilinear(): input{which} size does not match weight size: got {shape[-1]} but "
                f"expected {wanted}"
            )
    if not input1.dtype is input2.dtype is weight.dtype:
        raise DtypeError(
            f"All tensors must have the same dtype, got input1: {input1.dtype.c_type}, input2: "
            f"{input2.dtype.c_type}, weight: {weight.dtype.c_type}"
        )
    a = input1.reshape((-1, one[-1]))
    b = input2.reshape((-1, two[-1]))
    y = ops["nn.trilinear"].function(a, weight, b)
    y = y.view((*one[:-1], weight.layout.shape[0]))
    return y if bias is None else y + bias


def _time_convolution(input: Tensor, weight: Tensor, bias: Tensor, pad: int) -> Tensor:
    x = input.permute(1, 2, 0)
    return F.conv1d(x, weight.permute(2, 1, 0), bias, 1, pad).permute(2, 0, 1).contiguous()


def _time_gradients(
    g: Tensor, input: Tensor, weight: Tensor, bias: Tensor, pad: int, needed: tuple[bool, ...]
) -> list[Any]:
    return differentiated(_time_convolution, g, (input, weight, bias), needed, pad)


@kernel(
    spaces=("", "nn.functional."),
    vjp={"input,weight,bias": _time_gradients},
    method=False,
    out=False,
    example="conv_tbc(ones(3, 1, 1), ones(2, 1, 1), zeros(1))",
)
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Made:
    """conv1d of (time, batch, channels) with kernels (time, channels, outputs)."""
    if input.layout.ndim != 3:
        raise TensorRuntimeError("Input must have 3 dims: time, batch, in_channel")
    if weight.layout.ndim != 3:
        raise TensorRuntimeError(
            "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels."
        )
    if bias.layout.ndim != 1:
        raise TensorRuntimeError("Bias must be 1-D")
    time, batch, channels = input.layout.shape
    width, inputs, outputs = weight.layout.shape
    if channels != inputs:
        raise TensorRuntimeError(
            "Input dim 2 (input channels) is not == dim 1 in the weight tensor"
        )
    if outputs != bias.layout.shape[0]:
        raise TensorRuntimeError(
            "Bias size must equal dim 2 in the weight tensor (output channels)."
        )
    shape = (time + 2 * pad - width + 1, batch, outputs)
    return made(
        input.dtype, shape, lambda xp: array_of(_time_convolution, input, weight, bias, pad)
    )


def _rrelu_slope(g: Tensor, input: Tensor, noise: Tensor) -> Tensor:
    return g * noise


@kernel(
    name="nn.rrelu_with_noise",
    node="RreluWithNoiseBackward0",
    vjp=Native("RreluWithNoiseBackwardBackward0", _rrelu_slope),
    inplace=True,
    named_inplace=False,
    **_INTERNAL,
    inplace_number=1,
)
def _rrelu_with_noise(input: Tensor, noise: Tensor) -> Made:
    """Each element times its slope."""
    check_takes("f", "rrelu_with_noise_out_cpu", input.dtype)
    return made(input.dtype, input.layout.shape, lambda xp: input.array * noise.array)


def _rrelu(
    input: Tensor, lower: Any, upper: Any, training: bool, generator: Any, inplace: bool
) -> Any:
    if lower > upper:
        raise TensorRuntimeError("Lower bound should be less than or equal to the upper bound")
    check_takes("f", "rrelu_with_noise_out_cpu" if training else "leaky_relu_cpu", input.dtype)
    op = ops["nn.rrelu_with_noise"]
    if training:
        below = input.detach() <= 0
        drawn = input.new_ones(input.layout.shape)
        count = int(below.sum().item())
        slopes = F.empty(count, dtype=float64).uniform_(lower, upper, generator=generator)
        drawn[below] = slopes.to(input.dtype)
        noise = drawn
    else:
        noise = F.where(input.detach() > 0, 1.0, (lower + upper) / 2).to(input.dtype)
    return twin(op)(input, noise) if inplace else op.function(input, noise)


@composite(method=False, out=False, example="rrelu(tensor([-1., 2.]))")
def rrelu(
    input: Tensor,
    lower: Scalar = 1.0 / 8,
    upper: Scalar = 1.0 / 3,
    training: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """x above 0; below, x times a random slope, or times the mean slope when not training."""
    return _rrelu(input, lower, upper, training, generator, False)


@composite(method=False, out=False, example="rrelu_(tensor([-1., 2.]))")
def rrelu_(
    input: Tensor,
    lower: Scalar = 1.0 / 8,
    upper: Scalar = 1.0 / 3,
    training: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """rrelu that changes its input."""
    return _rrelu(input, lower, upper, training, generator, True)


@function("nn.functional.rrelu_", forms=lambda: (parameters(ops["rrelu_"]),))
def _rrelu_twin(*args: Any, **kwargs: Any) -> Any:
    """rrelu that changes its input."""
    return ops["rrelu_"].function(*args, **kwargs)


@functional(name="rrelu", example="nn.functional.rrelu(tensor([-1., 2.]))")
def _functional_rrelu(
    input: Any,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Any:
    """x above 0; below, x times a random slope, or times the mean slope when not training."""
    return ops["rrelu_" if inplace else "rrelu"].function(input, lower, upper, training)


@functional(example="nn.functional.local_response_norm(ones(1, 2, 3), 2)")
def local_response_norm(
    input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Any:
    """Divided by (k + alpha * mean of squares of ``size`` neighbouring channels) ** beta."""
    ndim = input.dim()
    if ndim < 3:
        raise TensorValueError(
            "Expected 3D or higher dimensionality                          input (got "
            f"{ndim} dimensions)"
        )
    if input.numel() == 0:
        return input
    squares = input.mul(input)
    around = (size // 2, (size - 1) // 2)
    if ndim == 3:
        padded = F.constant_pad_nd(squares.unsqueeze(1), (0, 0, *around), 0)
        means = F.avg_pool2d(padded, (size, 1), stride=1).squeeze(1)
    else:
        shape = input.size()
        spread = squares.view(shape[0], 1, shape[1], shape[2], -1)
        padded = F.constant_pad_nd(spread, (0, 0, 0, 0, *around), 0)
        means = F.avg_pool3d(padded, (size, 1, 1), stride=1).squeeze(1).view(shape)
    return input / means.mul(alpha).add(k).pow(beta)


def _pairs(input: Tensor, p: float) -> Tensor:
    """The distance of each pair of rows, made of operations that know their derivatives."""
    rows, width = input.layout.shape
    if rows < 2 or not width:
        return (input * 0).sum().expand((rows * (rows - 1) // 2,))
    first = [i for i in range(rows) for _ in range(i + 1, rows)]
    second = [j for i in range(rows) for j in range(i + 1, rows)]
    difference = input[F.tensor(first, dtype=int64)] - input[F.tensor(second, dtype=int64)]
    return ops["nn.norm"].function(difference, p, 1, False)


def _pair_gradients(g: Tensor, input: Tensor, p: float) -> Any:
    return differentiated(_pairs, g, (input,), (True,), p)[0]


@kernel(
    spaces=("", "nn.functional."),
    vjp=Native("PdistBackwardBackward0", _pair_gradients, unlisted("_pdist_backward")),
    method=False,
    out=False,
    example="pdist(tensor([[0., 0.], [3., 4.]]))",
)
def pdist(input: Tensor, p: float = 2) -> Made:
    """The p-norm distance of each pair of rows, as one line: (0, 1), (0, 2), … (1, 2), …"""
    if input.layout.ndim != 2:
        raise TensorRuntimeError(f"pdist only supports 2D tensors, got: {input.layout.ndim}D")
    if not input.dtype.is_floating_point:
        raise DtypeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise TensorRuntimeError("pdist only supports non-negative p values")
    check_takes("f", "pdist", input.dtype)
    rows = input.layout.shape[0]
    count = rows * (rows - 1) // 2

    def run(xp: Any) -> Any:
        if not count or not input.layout.shape[1]:
            return xp.zeros((count,), input.kind.np)
        return array_of(_pairs, input, p)

    return made(input.dtype, (count,), run)
