"""Normalisation by mean and variance: of layers, batches, groups, instances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine.errors import DimError, DtypeError, TensorRuntimeError, TensorValueError
from engine.kinds import composite, kernel, made, working
from engine.kinds.functional import functional
from engine.kinds.native import Native
from engine.kinds.reduction import check_takes
from engine.kinds.underived import refuse_recorded
from engine.ops.padding import kept_format
from engine.registry import F, ops

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.parameter_types import Shape
    from engine.tensor import Tensor

_INTERNAL: dict[str, Any] = {"function": False, "method": False, "out": False}


def _wide(t: Tensor) -> Tensor:
    """The tensor in the dtype that its statistics are computed in."""
    return t.to(dtypes.float32) if t.dtype.low else t


def normalised_gradients(
    g: Tensor,
    input: Tensor,
    scale: Tensor | None,
    dims: tuple[int, ...],
    eps: float,
    affine_dims: tuple[int, ...],
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of input, weight and bias where ``dims`` were brought to mean 0 and variance
    1 and then scaled; those of weight and bias are summed over ``affine_dims``."""
    x, g = _wide(input), _wide(g)
    centred = x - x.mean(dims, keepdim=True)
    inverse = (centred.pow(2).mean(dims, keepdim=True) + eps).rsqrt()
    hat = centred * inverse
    scaled = g if scale is None else g * _wide(scale)
    along = scaled.mean(dims, keepdim=True) + hat * (scaled * hat).mean(dims, keepdim=True)
    to_input = (scaled - along) * inverse
    if not affine_dims:
        return to_input, g * hat, g
    return to_input, (g * hat).sum(affine_dims), g.sum(affine_dims)


def _check_normalized(input: Tensor, size: tuple[int, ...], comma: str = ", ") -> None:
    if not size:
        raise TensorRuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least "
            f"one element, but got normalized_shape = {list(size)}"
        )
    shape = input.layout.shape
    if len(shape) < len(size) or shape[len(shape) - len(size) :] != size:
        raise TensorRuntimeError(
            f"Given normalized_shape={list(size)}, expected input with shape "
            f"[*{comma}{', '.join(map(str, size))}], but got input of size{list(shape)}"
        )


def _check_affine(t: Tensor | None, size: tuple[int, ...], what: str) -> None:
    if t is not None and t.layout.shape != size:
        raise TensorRuntimeError(
            f"Expected {what} to be of same shape as normalized_shape, but got {what} of shape "
            f"{list(t.layout.shape)} and normalized_shape = {list(size)}"
        )


def _check_mixed(input: Tensor, *affine: Tensor | None) -> None:
    """Low precision goes with parameters in float32; everything else with its own dtype."""
    for t in affine:
        if t is None or t.dtype is input.dtype:
            continue
        if input.dtype.low and t.dtype is dtypes.float32:
            continue
        raise DtypeError("mixed dtype (CPU): expect parameter to have scalar type of Float")


def _layer_gradients(
    g: Any, input: Tensor, normalized_shape: tuple[int, ...], weight: Tensor | None, eps: float
) -> Any:
    g = g[0] if isinstance(g, (list, tuple)) else g
    return _layer_slopes(g, input, normalized_shape, weight, eps)


def _layer_rule(
    g: Tensor, input: Tensor, normalized_shape: tuple[int, ...], weight: Tensor | None, eps: float
) -> tuple[Any, Any, Any]:
    ndim = input.layout.ndim
    first = ndim - len(normalized_shape)
    return normalised_gradients(
        g, input, weight, tuple(range(first, ndim)), eps, tuple(range(first))
    )


_layer_slopes = Native("NativeLayerNormBackwardBackward0", _layer_rule)


@kernel(
    vjp={"input,weight,bias": _layer_gradients},
    constant=(1, 2),
    method=False,
    out=False,
    example="native_layer_norm(tensor([[1., 2.]]), (2,), None, None, 1e-5)",
)
def native_layer_norm(
    input: Tensor,
    normalized_shape: Shape,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Made, ...]:
    """Layer normalisation with the means and inverse deviations it used."""
    _check_normalized(input, normalized_shape)
    _check_affine(weight, normalized_shape, "weight")
    _check_affine(bias, normalized_shape, "bias")
    check_takes("f", "LayerNormKernelImpl", input.dtype)
    _check_mixed(input, weight, bias)
    shape = input.layout.shape
    first = len(shape) - len(normalized_shape)
    axes = tuple(range(first, len(shape)))
    statistics = (*shape[:first], *[1] * len(axes))

    def run(xp: Any) -> Any:
        x = working(input)
        if x.size == 0:
            empty = xp.zeros(statistics, x.dtype)
            return [x, empty, empty + xp.nan]
        mean = x.mean(axis=axes, keepdims=True)
        centred = x - mean
        inverse = 1 / xp.sqrt(xp.square(centred).mean(axis=axes, keepdims=True) + eps)
        y = centred * inverse.astype(x.dtype)
        if weight is not None:
            y = y * working(weight)
        if bias is not None:
            y = y + working(bias)
        return [y, mean, inverse]

    kept = input.dtype if weight is None or not input.dtype.low else weight.dtype
    return (
        made(input.dtype, shape, run),
        made(kept, statistics, run),
        made(kept, statistics, run),
    )


@composite(method=False, out=False, example="layer_norm(tensor([[1., 2.], [3., 5.]]), (2,))")
def layer_norm(
    input: Tensor,
    normalized_shape: Shape,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    """The last dimensions brought to mean 0 and variance 1, then scaled and shifted."""
    return ops["native_layer_norm"].function(input, normalized_shape, weight, bias, eps)[0]


@functional(
    name="layer_norm",
    example="nn.functional.layer_norm(tensor([[1., 2.], [3., 5.]]), (2,))",
)
def _layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """The last dimensions (``normalized_shape``) brought to mean 0 and variance 1.

    ``weight`` and ``bias`` then scale and shift; ``eps`` is added to the variance.
    """
    return ops["layer_norm"].function(input, normalized_shape, weight, bias, eps)


@composite(method=False, out=False, example="rms_norm(tensor([[1., 2.], [3., 5.]]), (2,))")
def rms_norm(
    input: Tensor,
    normalized_shape: Shape,
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """The last dimensions divided by their root mean square, then scaled."""
    _check_normalized(input, normalized_shape, "")
    _check_affine(weight, normalized_shape, "weight")
    check_takes("fc", "rms_norm", input.dtype)
    small = 2.0 ** -(52 if input.dtype is dtypes.float64 else 23) if eps is None else eps
    ndim = input.layout.ndim
    dims = tuple(range(ndim - len(normalized_shape), ndim))
    wide = input.to(dtypes.float32) if input.dtype.low else input
    y = wide * (wide.pow(2).mean(dims, keepdim=True) + small).rsqrt()
    if weight is not None:
        y = y * weight
    return y.to(input.dtype) if y.dtype is not input.dtype else y


@functional(name="rms_norm", example="nn.functional.rms_norm(tensor([[1., 2.], [3., 5.]]), (2,))")
def _rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: Any = None) -> Any:
    """The last dimensions divided by their root mean square; ``weight`` then scales.

    ``eps`` is the dtype's epsilon where none is given.
    """
    return ops["rms_norm"].function(input, normalized_shape, weight, eps)


def _across(values: Tensor | None, ndim: int) -> Any:
    """One value per channel, shaped to go with an input whose channels are dimension 1."""
    return None if values is None else values.view((1, -1, *[1] * (ndim - 2)))


def _batch_gradients(
    g: Tensor,
    input: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    eps: float,
) -> tuple[Any, Any, Any]:
    ndim = input.layout.ndim
    dims = (0, *range(2, ndim))
    scale = _across(weight, ndim)
    if training:
        return normalised_gradients(g, input, scale, dims, eps, dims)
    inverse = (_across(running_var, ndim) + eps).rsqrt()
    hat = (input - _across(running_mean, ndim)) * inverse
    scaled = g if scale is None else g * scale
    return scaled * inverse, (g * hat).sum(dims), g.sum(dims)


def _check_channels(t: Tensor | None, channels: int, what: str) -> None:
    if t is not None and t.layout.numel != channels:
        raise TensorRuntimeError(f"{what} should contain {channels} elements not {t.layout.numel}")


@kernel(
    name="nn.batch_norm",
    node="NativeBatchNormBackward0",
    vjp={"input,weight,bias": Native("NativeBatchNormBackwardBackward0", _batch_gradients)},
    **_INTERNAL,
)
def _batch_norm_kernel(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    eps: float,
) -> Made:
    """Channels brought to mean 0 and variance 1."""
    check_takes("f", "batch_norm", input.dtype)
    shape = input.layout.shape
    axes = (0, *range(2, len(shape)))
    column = (1, -1, *[1] * (len(shape) - 2))

    def run(xp: Any) -> Any:
        x = working(input)
        if training:
            mean = x.mean(axis=axes, keepdims=True)
            var = xp.square(x - mean).mean(axis=axes, keepdims=True)
        else:
            assert running_mean is not None
            assert running_var is not None
            mean = working(running_mean).reshape(column).astype(x.dtype)
            var = working(running_var).reshape(column).astype(x.dtype)
        y = (x - mean) / xp.sqrt(var + x.dtype.type(eps))
        if weight is not None:
            y = y * working(weight).reshape(column).astype(x.dtype)
        if bias is not None:
            y = y + working(bias).reshape(column).astype(x.dtype)
        return y

    return made(input.dtype, kept_format(shape, input.layout), run)


def _follow(running: Tensor | None, now: Any, momentum: float) -> None:
    """Move a running statistic towards that of this batch."""
    if running is not None:
        with_dtype = now.to(running.dtype)
        running.copy_(running * (1 - momentum) + with_dtype * momentum)


@composite(
    method=False,
    out=False,
    example="batch_norm(tensor([[1.], [3.]]), None, None, None, None, True, 0.1, 1e-5, True)",
)
def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """Every channel (dimension 1) brought to mean 0 and variance 1 over the batch."""
    shape = input.layout.shape
    if not input.layout.numel:
        y = input.clone()
        y = y if weight is None else y * weight[0]
        return y if bias is None else y + bias[0]
    if len(shape) < 2:
        raise DimError(1, len(shape))
    channels = shape[1]
    for t, what in (
        (running_mean, "running_mean"),
        (running_var, "running_var"),
        (weight, "weight"),
        (bias, "bias"),
    ):
        _check_channels(t, channels, what)
    if not training and (running_mean is None or running_var is None):
        missing = "running_mean" if running_mean is None else "running_var"
        raise TensorRuntimeError(f"{missing} must be defined in evaluation mode")
    _check_mixed(input, weight, bias, running_mean, running_var)
    refuse_recorded("native_batch_norm", running_mean=running_mean, running_var=running_var)
    known = (None, None) if training else (running_mean, running_var)
    y = ops["nn.batch_norm"].function(input, weight, bias, *known, training, eps)
    if training and (running_mean is not None or running_var is not None):
        x = _wide(input.detach())
        dims = (0, *range(2, len(shape)))
        _follow(running_mean, x.mean(dims), momentum)
        _follow(running_var, x.var(dims), momentum)
    return y


@functional(
    name="batch_norm",
    example="nn.functional.batch_norm(tensor([[1.], [3.]]), None, None, training=True)",
)
def _batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Every channel (dimension 1) brought to mean 0 and variance 1 over the batch.

    When ``training`` the batch's own statistics are used, and the running ones, where given,
    are changed in place towards them; else the running ones are used.
    """
    if training:
        _check_batch(input.size())
    return ops["batch_norm"].function(
        input, weight, bias, running_mean, running_var, training, momentum, eps, True
    )


def _check_batch(size: Any) -> None:
    count = size[0]
    for n in size[2:]:
        count *= n
    if count == 1:
        raise TensorValueError(
            f"Expected more than 1 value per channel when training, got input size {size}"
        )


def _group_gradients(
    g: Tensor, input: Tensor, num_groups: int, weight: Tensor | None, eps: float
) -> tuple[Any, Any, Any]:
    shape = input.layout.shape
    ndim = len(shape)
    x, wide = _wide(input), _wide(g)
    scale = 1.0 if weight is None else _wide(weight).view((1, -1, *[1] * (ndim - 2)))
    rows = shape[0] * num_groups
    grouped = (shape[0], num_groups, input.layout.numel // rows if rows else 0)
    to_input, _, _ = normalised_gradients(
        (wide * scale).reshape(grouped), x.reshape(grouped), None, (2,), eps, (0,)
    )
    dims = (0, *range(2, ndim))
    hat = x.reshape(grouped)
    centred = hat - hat.mean(2, keepdim=True)
    hat = centred * (centred.pow(2).mean(2, keepdim=True) + eps).rsqrt()
    return to_input.reshape(shape), (wide * hat.reshape(shape)).sum(dims), wide.sum(dims)


@kernel(
    name="nn.group_norm",
    node="NativeGroupNormBackward0",
    vjp={"input,weight,bias": _group_gradients},
    **_INTERNAL,
)
def _group_norm_kernel(
    input: Tensor, num_groups: int, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Made:
    """Groups of channels brought to mean 0 and variance 1."""
    check_takes("f", "GroupNormKernelImpl", input.dtype)
    shape = input.layout.shape
    column = (1, -1, *[1] * (len(shape) - 2))

    def run(xp: Any) -> Any:
        x = working(input)
        if x.size == 0:
            return x
        grouped = x.reshape((shape[0], num_groups, -1))
        mean = grouped.mean(axis=2, keepdims=True)
        centred = grouped - mean
        var = xp.square(centred).mean(axis=2, keepdims=True)
        y = (centred / xp.sqrt(var + x.dtype.type(eps))).reshape(shape)
        if weight is not None:
            y = y * working(weight).reshape(column)
        if bias is not None:
            y = y + working(bias).reshape(column)
        return y

    return made(input.dtype, kept_format(shape, input.layout), run)


@composite(method=False, out=False, example="group_norm(arange(8.).reshape(1, 4, 2), 2)")
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Groups of channels brought to mean 0 and variance 1, each sample by itself."""
    shape = input.layout.shape
    if len(shape) < 2:
        raise TensorRuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {len(shape)}"
        )
    channels = shape[1]
    if num_groups <= 0:
        raise TensorRuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if channels % num_groups:
        raise TensorRuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input "
            f"of shape {list(shape)} and num_groups={num_groups}"
        )
    for t, what in ((weight, "weight"), (bias, "bias")):
        if t is not None and t.layout.shape != (channels,):
            raise TensorRuntimeError(
                f"Expected {what} to be a vector of size equal to the number of channels in "
                f"input, but got {what} of shape {list(t.layout.shape)} and input of shape "
                f"{list(shape)}"
            )
    _check_mixed(input, weight, bias)
    return ops["nn.group_norm"].function(input, num_groups, weight, bias, eps)


@functional(name="group_norm", example="nn.functional.group_norm(arange(8.).reshape(1, 4, 2), 2)")
def _group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Groups of channels (dimension 1) brought to mean 0 and variance 1, each sample by itself."""
    if input.dim() < 2:
        raise TensorRuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {input.dim()}"
        )
    size = list(input.size())
    _check_batch((size[0] * size[1] // num_groups, num_groups, *size[2:]))
    return ops["group_norm"].function(input, num_groups, weight, bias, eps)


@composite(
    method=False,
    out=False,
    example="instance_norm(arange(4.).view(1, 2, 2), None, None, None, None, True, 0., 0., True)",
)
def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """Every channel of every sample brought to mean 0 and variance 1."""
    if not use_input_stats and (running_mean is None or running_var is None):
        raise TensorRuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    shape = input.layout.shape
    batch, channels = input.size(0), input.size(1)
    repeated = [
        None if t is None else t.repeat(batch) for t in (weight, bias, running_mean, running_var)
    ]
    flat = input.contiguous().view((1, batch * channels, *shape[2:]))
    y = F.batch_norm(flat, *repeated, use_input_stats, momentum, eps, cudnn_enabled)
    for own, many in ((running_mean, repeated[2]), (running_var, repeated[3])):
        if own is not None and use_input_stats:
            assert many is not None
            own.copy_(many.view((batch, channels)).mean(0))
    return y.view(shape)


@functional(
    name="instance_norm",
    example="nn.functional.instance_norm(arange(4.).reshape(1, 2, 2))",
)
def _instance_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Every channel of every sample brought to mean 0 and variance 1."""
    if use_input_stats:
        count = 1
        for n in input.size()[2:]:
            count *= n
        if count == 1:
            raise TensorValueError(
                f"Expected more than 1 spatial element when training, got input size {input.size()}"
            )
    return ops["instance_norm"].function(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True
    )
