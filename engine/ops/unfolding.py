"""Sliding blocks as columns and back: nn.functional.unfold and fold; shuffles of channels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import DimError, TensorRuntimeError
from engine.kinds import kernel, made, working
from engine.kinds.functional import functional
from engine.kinds.reduction import check_takes
from engine.kinds.underived import NODE, underived
from engine.ops.convolution import windows
from engine.ops.padding import kept_format
from engine.registry import ops

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.parameter_types import Dims
    from engine.tensor import Tensor

_INTERNAL: dict[str, Any] = {"function": False, "method": False, "out": False}


def _inner(lead: list[int], order: tuple[int, ...]) -> tuple[int, ...]:
    """The dimensions after the leading ones in another order."""
    n = len(lead)
    return (*range(n), *(n + d for d in order))


def _pair(value: Any) -> Any:
    return value if isinstance(value, (tuple, list)) else (value, value)


def _told(values: Any) -> str:
    return f"({values[0]}, {values[1]})"


def _check_blocks(kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> None:
    for values, what, short in (
        (kernel_size, "kernel size", "kernel"),
        (stride, "stride", "stride"),
        (dilation, "dilation", "dilation"),
    ):
        if values[0] <= 0 or values[1] <= 0:
            raise TensorRuntimeError(
                f"{what} should be greater than zero, but got {short}_height: {values[0]} "
                f"{short}_width: {values[1]}"
            )
    if padding[0] < 0 or padding[1] < 0:
        raise TensorRuntimeError(
            f"padding should be non-negative, but got pad_height: {padding[0]} pad_width: "
            f"{padding[1]}"
        )


def _check_pairs(**values: Any) -> None:
    for name, value in values.items():
        if len(value) != 2:
            raise TensorRuntimeError(
                f"It is expected {name} equals to 2, but got size {len(value)}"
            )


def _blocks(size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> list[int]:
    return [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, d, p, s in zip(size, kernel_size, dilation, padding, stride, strict=True)
    ]


@kernel(
    name="im2col",
    node="Im2ColBackward0",
    vjp=lambda g, input_shape, kernel_size, dilation, padding, stride: ops["col2im"].function(
        g, input_shape[-2:], kernel_size, dilation, padding, stride
    ),
    **_INTERNAL,
)
def im2col(input: Tensor, kernel_size: Dims, dilation: Dims, padding: Dims, stride: Dims) -> Made:
    """Every block that a kernel would cover, as a column."""
    _check_pairs(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)
    _check_blocks(kernel_size, dilation, padding, stride)
    shape = input.layout.shape
    ndim = len(shape)
    if ndim < 3:
        raise DimError(2, ndim)
    inner = shape if ndim == 3 else shape[1:]
    if ndim not in (3, 4) or 0 in inner:
        raise TensorRuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(shape)}"
        )
    counts = _blocks(shape[-2:], kernel_size, dilation, padding, stride)
    if counts[0] < 1 or counts[1] < 1:
        raise TensorRuntimeError(
            f"Given input with spatial size {_told(shape[-2:])}, kernel_size="
            f"{_told(kernel_size)}, dilation={_told(dilation)}, padding={_told(padding)}, "
            f"calculated shape of the array of sliding blocks as {_told(counts)}, but its "
            "components must be at least one."
        )
    check_takes("bfc", "im2col_out_cpu", input.dtype)
    rows = shape[-3] * kernel_size[0] * kernel_size[1]
    out = (*shape[:-3], rows, counts[0] * counts[1])

    def run(xp: Any) -> Any:
        x = working(input).reshape((-1, *shape[-3:]))
        x = xp.pad(x, [(0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2])
        view = windows(xp, x, kernel_size, stride, dilation)
        return view.transpose((0, 1, 4, 5, 2, 3)).reshape(out)

    return made(input.dtype, out, run)


@kernel(
    name="col2im",
    node="Col2ImBackward0",
    vjp=lambda g, kernel_size, dilation, padding, stride: ops["im2col"].function(
        g, kernel_size, dilation, padding, stride
    ),
    **_INTERNAL,
)
def col2im(
    input: Tensor,
    output_size: Dims,
    kernel_size: Dims,
    dilation: Dims,
    padding: Dims,
    stride: Dims,
) -> Made:
    """Columns put back as blocks, overlaps added up."""
    _check_pairs(
        output_size=output_size,
        kernel_size=kernel_size,
        dilation=dilation,
        padding=padding,
        stride=stride,
    )
    _check_blocks(kernel_size, dilation, padding, stride)
    shape = input.layout.shape
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise TensorRuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
            f"non-zero dimensions for input, but got: {list(shape)}"
        )
    rows, columns = shape[-2:]
    area = kernel_size[0] * kernel_size[1]
    if rows % area:
        raise TensorRuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, "
            f"but got input.size(1)={rows} and kernel_size={_told(kernel_size)}."
        )
    counts = _blocks(output_size, kernel_size, dilation, padding, stride)
    if counts[0] * counts[1] != columns:
        raise TensorRuntimeError(
            f"Given output_size={_told(output_size)}, kernel_size={_told(kernel_size)}, "
            f"dilation={_told(dilation)}, padding={_told(padding)}, stride={_told(stride)}, "
            "expected size of input's dimension 2 to match the calculated number of sliding "
            f"blocks {counts[0]} * {counts[1]} = {counts[0] * counts[1]}, but got "
            f"input.size(2)={columns}."
        )
    check_takes("bfc", "col2im_out_cpu", input.dtype)
    out = (*shape[:-2], rows // area, *output_size)

    def run(xp: Any) -> Any:
        x = working(input).reshape((-1, rows // area, *kernel_size, *counts))
        height, width = (n + 2 * p for n, p in zip(output_size, padding, strict=True))
        whole = xp.zeros((x.shape[0], rows // area, height, width), x.dtype)
        for i in range(kernel_size[0]):
            for j in range(kernel_size[1]):
                top, left = i * dilation[0], j * dilation[1]
                down = slice(top, top + (counts[0] - 1) * stride[0] + 1, stride[0])
                across = slice(left, left + (counts[1] - 1) * stride[1] + 1, stride[1])
                whole[:, :, down, across] += x[:, :, i, j]
        top, left = padding
        return whole[:, :, top : height - top, left : width - left].reshape(out)

    return made(input.dtype, out, run)


@functional(example="nn.functional.unfold(ones(1, 1, 3, 3), 2)")
def unfold(
    input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    """Every block that a kernel of that size covers of a picture, as a column."""
    return ops["im2col"].function(
        input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride)
    )


@functional(example="nn.functional.fold(ones(1, 4, 4), (3, 3), 2)")
def fold(
    input: Any,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Any:
    """Columns put back as the blocks of a picture, overlaps added up."""
    return ops["col2im"].function(
        input,
        _pair(output_size),
        _pair(kernel_size),
        _pair(dilation),
        _pair(padding),
        _pair(stride),
    )


def _check_factor(input: Tensor, factor: int, name: str, what: str) -> None:
    ndim = input.layout.ndim
    if ndim < 3:
        raise TensorRuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {ndim} "
            "dimension(s)"
        )
    if factor <= 0:
        raise TensorRuntimeError(f"{name} expects a positive {what}, but got {factor}")


@kernel(
    spaces=("", "nn.functional."),
    vjp=lambda g, upscale_factor: ops["pixel_unshuffle"].function(g, upscale_factor),
    method=False,
    out=False,
    example="pixel_shuffle(arange(4.).reshape(1, 4, 1, 1), 2)",
)
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Made:
    """Channels turned into pixels: (c * r * r, h, w) becomes (c, h * r, w * r)."""
    r = upscale_factor
    _check_factor(input, r, "pixel_shuffle", "upscale_factor")
    *lead, c, h, w = input.layout.shape
    if c % (r * r):
        raise TensorRuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
            f"of upscale_factor, but input.size(-3)={c} is not divisible by {r * r}"
        )
    shape = (*lead, c // (r * r), h * r, w * r)

    def run(xp: Any) -> Any:
        x = input.array.reshape((*lead, c // (r * r), r, r, h, w))
        return x.transpose(_inner(lead, (0, 3, 1, 4, 2))).reshape(shape)

    return made(input.dtype, kept_format(shape, input.layout), run)


@kernel(
    spaces=("", "nn.functional."),
    vjp=lambda g, downscale_factor: ops["pixel_shuffle"].function(g, downscale_factor),
    method=False,
    out=False,
    example="pixel_unshuffle(arange(4.).reshape(1, 1, 2, 2), 2)",
)
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Made:
    """Pixels turned into channels, the way back from pixel_shuffle."""
    r = downscale_factor
    _check_factor(input, r, "pixel_unshuffle", "downscale_factor")
    *lead, c, h, w = input.layout.shape
    for size, what, at in ((h, "height", -2), (w, "width", -1)):
        if size % r:
            raise TensorRuntimeError(
                f"pixel_unshuffle expects {what} to be divisible by downscale_factor, but "
                f"input.size({at})={size} is not divisible by {r}"
            )
    shape = (*lead, c * r * r, h // r, w // r)

    def run(xp: Any) -> Any:
        x = input.array.reshape((*lead, c, h // r, r, w // r, r))
        return x.transpose(_inner(lead, (0, 2, 4, 1, 3))).reshape(shape)

    return made(input.dtype, kept_format(shape, input.layout), run)


def _shuffled(input: Tensor, groups: int) -> Made:
    shape = input.layout.shape
    if len(shape) < 3:
        raise TensorRuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(shape)}"
        )
    if groups <= 0:
        raise TensorRuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    if shape[1] % groups:
        raise TensorRuntimeError(
            f"Number of channels must be divisible by groups. Got {shape[1]} channels and "
            f"{groups} groups."
        )

    def run(xp: Any) -> Any:
        x = input.array.reshape((shape[0], groups, shape[1] // groups, *shape[2:]))
        return x.swapaxes(1, 2).reshape(shape)

    return made(input.dtype, kept_format(shape, input.layout), run)


def _unshuffled(g: Tensor, groups: int) -> Tensor:
    return ops["channel_shuffle"].function(g, g.layout.shape[1] // groups)


@kernel(
    spaces=("", "nn.functional."),
    vjp=_unshuffled,
    method=False,
    out=False,
    example="channel_shuffle(arange(4.).reshape(1, 4, 1), 2)",
)
def channel_shuffle(input: Tensor, groups: int) -> Made:
    """Channels of several groups interleaved."""
    return _shuffled(input, groups)


@kernel(
    vjp=underived("native_channel_shuffle"),
    node=NODE,
    spaces=("", "nn.functional."),
    method=False,
    out=False,
    example="native_channel_shuffle(arange(4.).reshape(1, 4, 1), 2)",
)
def native_channel_shuffle(input: Tensor, groups: int) -> Made:
    """channel_shuffle under the name of its kernel; without a derivative."""
    return _shuffled(input, groups)
