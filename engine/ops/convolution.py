"""Convolution in one, two and three dimensions, and its transpose.

A convolution is one product of matrices: the windows of the padded input side by side, times the
kernels. Its derivatives are convolutions again, so that they can be derived in turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine import layout as layouts
from engine.dtypes import compute_dtype
from engine.errors import DtypeError, DtypeNotImplementedError, TensorRuntimeError
from engine.kinds import composite, kernel, made, working
from engine.kinds.conjugate import conj
from engine.kinds.native import Native
from engine.overloads import no_overload
from engine.registry import F, ops
from engine.signature import ArgumentError

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.layout import Layout
    from engine.parameter_types import Dims
    from engine.tensor import Tensor

_SIGNATURES = tuple(
    [
        f"(Tensor input, Tensor weight, Tensor bias = None, tuple of ints stride = 1, {padding}, "
        "tuple of ints dilation = 1, int groups = 1)"
        for padding in ("tuple of ints padding = 0", 'str padding = "valid"')
    ]
)


def windows(xp: Any, x: Any, kernel: Any, stride: Any, dilation: Any) -> Any:
    """A view of ``x`` (n, c, *sizes) as (n, c, *places, *kernel)."""
    step = x.strides[2:]
    places = [
        (size - d * (k - 1) - 1) // s + 1
        for size, k, s, d in zip(x.shape[2:], kernel, stride, dilation, strict=True)
    ]
    return np.lib.stride_tricks.as_strided(
        x,
        (*x.shape[:2], *places, *kernel),
        (
            *x.strides[:2],
            *[b * s for b, s in zip(step, stride, strict=True)],
            *[b * d for b, d in zip(step, dilation, strict=True)],
        ),
        writeable=False,
    )


def _padded(xp: Any, x: Any, before: Any, after: Any) -> Any:
    """Zeros around the sizes of ``x``; negative numbers crop."""
    inner = [slice(None)] * 2 + [
        slice(max(-b, 0), n - max(-a, 0))
        for b, a, n in zip(before, after, x.shape[2:], strict=True)
    ]
    x = x[tuple(inner)]
    around = [(0, 0)] * 2 + [(max(b, 0), max(a, 0)) for b, a in zip(before, after, strict=True)]
    return xp.pad(x, around) if any(b or a for b, a in around) else x


def _columns(xp: Any, x: Any, kernel: Any, stride: Any, dilation: Any, groups: int) -> Any:
    """(groups, n * places, channels of a group * kernel), and the places."""
    view = windows(xp, x, kernel, stride, dilation)
    dims = len(kernel)
    n, c = view.shape[:2]
    places = view.shape[2 : 2 + dims]
    split = view.reshape((n, groups, c // groups, *view.shape[2:]))
    order = (1, 0, *range(3, 3 + dims), 2, *range(3 + dims, 3 + 2 * dims))
    rows = n
    for p in places:
        rows *= p
    width = c // groups
    for k in kernel:
        width *= k
    return split.transpose(order).reshape((groups, rows, width)), places


def _correlate(xp: Any, x: Any, weight: Any, stride: Any, dilation: Any, groups: int) -> Any:
    """(n, outputs, *places) of a padded input and kernels (outputs, group's channels, *kernel)."""
    n, outputs = x.shape[0], weight.shape[0]
    columns, places = _columns(xp, x, weight.shape[2:], stride, dilation, groups)
    flat = weight.reshape((groups, outputs // groups, -1)).swapaxes(1, 2)
    y = (columns @ flat).reshape((groups, n, *places, outputs // groups))
    dims = len(places)
    y = y.transpose((1, 0, 2 + dims, *range(2, 2 + dims)))
    return y.reshape((n, outputs, *places))


def _spread(xp: Any, x: Any, stride: Any) -> Any:
    """Zeros put between the elements of the sizes of ``x``."""
    if all(s == 1 for s in stride):
        return x
    sizes = [(n - 1) * s + 1 if n else 0 for n, s in zip(x.shape[2:], stride, strict=True)]
    y = xp.zeros((*x.shape[:2], *sizes), x.dtype)
    y[(slice(None), slice(None), *[slice(None, None, s) for s in stride])] = x
    return y


def _transposed(
    xp: Any, x: Any, weight: Any, stride: Any, padding: Any, dilation: Any, extra: Any, groups: int
) -> Any:
    """The transpose of a correlation; ``weight`` is (channels, outputs of a group, *kernel)."""
    kernel = weight.shape[2:]
    reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    x = _padded(
        xp,
        _spread(xp, x, stride),
        [r - p for r, p in zip(reach, padding, strict=True)],
        [r - p + e for r, p, e in zip(reach, padding, extra, strict=True)],
    )
    channels, width = weight.shape[:2]
    split = weight.reshape((groups, channels // groups, width, *kernel)).swapaxes(1, 2)
    turned = split.reshape((groups * width, channels // groups, *kernel))
    flipped = turned[(slice(None), slice(None), *[slice(None, None, -1)] * len(kernel))]
    ones = [1] * len(kernel)
    return _correlate(xp, x, flipped, ones, dilation, groups)


def _output_sizes(
    sizes: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, extra: Any
) -> list[int]:
    if transposed:
        return [
            (n - 1) * s - 2 * p + d * (k - 1) + e + 1
            for n, k, s, p, d, e in zip(
                sizes, kernel, stride, padding, dilation, extra, strict=True
            )
        ]
    return [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(sizes, kernel, stride, padding, dilation, strict=True)
    ]


def _format(shape: tuple[int, ...], input: Layout, weight: Layout) -> Layout:
    """Channels last where the input or the kernels are stored so."""
    for one in (input, weight):
        if not one.contiguous and layouts.is_channels_last(one.shape, one.strides):
            return layouts.layout(shape, layouts.channels_last_strides(shape))
    return layouts.contiguous(shape)


def _gradients(
    g: Tensor,
    input: Tensor,
    weight: Tensor,
    stride: Dims,
    padding: Dims,
    dilation: Dims,
    transposed: bool,
    output_padding: Dims,
    groups: int,
    needed: tuple[bool, ...],
) -> list[Any]:
    convolve = ops["convolution"].function
    dims = weight.layout.ndim - 2
    stride, padding, dilation = (
        _expanded(values, dims, "sizes") for values in (stride, padding, dilation)
    )
    to_input = to_weight = to_bias = None
    if needed[0]:
        extra = tuple(
            [
                (n + 2 * p - d * (k - 1) - 1) % s
                for n, k, s, p, d in zip(
                    input.layout.shape[2:], weight.layout.shape[2:], stride, padding, dilation,
                    strict=True,
                )
            ]
        )  # fmt: skip
        zeros = (0,) * len(stride)
        to_input = convolve(
            g,
            conj(weight),
            None,
            stride,
            padding,
            dilation,
            not transposed,
            zeros if transposed else extra,
            groups,
        )
        to_input = _cropped(to_input, input.layout.shape)
    if needed[1]:
        source, slid = (g, input) if transposed else (input, g)
        to_weight = ops["nn.convolution_weight"].function(
            conj(source) if not transposed else source,
            slid if not transposed else conj(slid),
            weight.layout.shape,
            stride,
            padding,
            dilation,
            groups,
        )
    if needed[2]:
        to_bias = g.sum((0, *range(2, g.layout.ndim)))
    return [to_input, to_weight, to_bias]


def _cropped(t: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The first places of each size: an output padding of a stride or more leaves others."""
    for d in range(2, len(shape)):
        if t.layout.shape[d] > shape[d]:
            t = t.narrow(d, 0, shape[d])
    return t


def _weight_gradients(
    g: Tensor,
    input: Tensor,
    slid: Tensor,
    shape: Dims,
    stride: Dims,
    padding: Dims,
    dilation: Dims,
    groups: int,
    needed: tuple[bool, ...],
) -> list[Any]:
    convolve = ops["convolution"].function
    to_input = to_slid = None
    zeros = (0,) * len(stride)
    if needed[0]:
        extra = tuple(
            [
                n + 2 * p - d * (k - 1) - 1 - (m - 1) * s
                for n, m, k, s, p, d in zip(
                    input.layout.shape[2:], slid.layout.shape[2:], shape[2:], stride, padding,
                    dilation, strict=True,
                )
            ]
        )  # fmt: skip
        to_input = convolve(conj(slid), g, None, stride, padding, dilation, True, extra, groups)
    if needed[1]:
        to_slid = convolve(conj(input), g, None, stride, padding, dilation, False, zeros, groups)
        to_slid = _cropped(to_slid, slid.layout.shape)
    return [to_input, to_slid]


@kernel(
    name="nn.convolution_weight",
    node="ConvolutionBackwardBackward0",
    vjp={"input,slid": _weight_gradients},
    function=False,
    method=False,
    out=False,
)
def _convolution_weight(
    input: Tensor,
    slid: Tensor,
    shape: Dims,
    stride: Dims,
    padding: Dims,
    dilation: Dims,
    groups: int,
) -> Made:
    """The gradient of kernels of that shape, given the input and the output's gradient."""

    def run(xp: Any) -> Any:
        x, g = working(input), working(slid)
        x = _padded(xp, x, padding, padding)
        places = g.shape[2:]
        # What the strides skip at the end of the input takes no part.
        used = [
            (p - 1) * s + d * (k - 1) + 1
            for p, s, d, k in zip(places, stride, dilation, shape[2:], strict=True)
        ]
        x = x[(slice(None), slice(None), *[slice(0, u) for u in used])]
        columns, _ = _columns(xp, x, shape[2:], stride, dilation, groups)
        n, outputs = g.shape[:2]
        dims = len(places)
        split = g.reshape((n, groups, outputs // groups, *places))
        rows = split.transpose((1, 2, 0, *range(3, 3 + dims))).reshape(
            (groups, outputs // groups, -1)
        )
        return (rows @ columns).reshape(shape)

    return made(input.dtype, tuple(shape), run)


def _check_shapes(
    input: Tensor, weight: Tensor, bias: Tensor | None, transposed: bool, groups: int
) -> None:
    kernel, sizes = weight.layout.shape, input.layout.shape
    if len(kernel) < 3:
        raise TensorRuntimeError("weight should have at least three dimensions")
    if len(sizes) != len(kernel):
        raise TensorRuntimeError(
            f"Expected {len(kernel)}-dimensional input for {len(kernel)}-dimensional weight "
            f"{list(kernel)}, but got {len(sizes)}-dimensional input of size {list(sizes)} instead"
        )
    if groups <= 0:
        raise TensorRuntimeError("non-positive groups is not supported")
    if kernel[0] < groups:
        raise TensorRuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but "
            f"got weight of size {list(kernel)} instead"
        )
    if kernel[0] % groups:
        raise TensorRuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, "
            f"but got weight of size [{list(kernel)}] instead"
        )
    told = f"transposed={int(transposed)}" if transposed else f"groups={groups}"
    wanted = kernel[0] if transposed else kernel[1] * groups
    if sizes[1] != wanted:
        raise TensorRuntimeError(
            f"Given {told}, weight of size {list(kernel)}, expected input{list(sizes)} to have "
            f"{wanted} channels, but got {sizes[1]} channels instead"
        )
    outputs = kernel[1] * groups if transposed else kernel[0]
    if bias is not None and bias.layout.shape != (outputs,):
        told = f"Given transposed={int(transposed)}" if transposed else "Given"
        comma = "," if transposed else ""
        raise TensorRuntimeError(
            f"{told}{comma} weight of size {list(kernel)}, expected bias to be 1-dimensional with "
            f"{outputs} elements, but got bias of size {list(bias.layout.shape)} instead"
        )


def _by_x(sizes: Any) -> str:
    return " x ".join(map(str, sizes))


def _check_sizes(
    input: Tensor, weight: Tensor, padding: Any, dilation: Any, transposed: bool, out: Any
) -> None:
    sizes, kernel = input.layout.shape[2:], weight.layout.shape[2:]
    if transposed:
        if any(n < 1 for n in out):
            raise TensorRuntimeError(
                f"Given input size per channel: ({_by_x(sizes)}). Calculated output size per "
                f"channel: ({_by_x(out)}). Output size is too small"
            )
        return
    padded = [n + 2 * p for n, p in zip(sizes, padding, strict=True)]
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    if any(r > n for r, n in zip(reach, padded, strict=True)):
        raise TensorRuntimeError(
            f"Calculated padded input size per channel: ({_by_x(padded)}). Kernel size: "
            f"({_by_x(reach)}). Kernel size can't be greater than actual input size"
        )


def _check_dtypes(input: Tensor, weight: Tensor, bias: Tensor | None, transposed: bool) -> None:
    if bias is not None and bias.dtype is not input.dtype:
        raise DtypeError(
            f"Input type ({input.dtype.c_type}) and bias type ({bias.dtype.c_type}) should "
            "be the same"
        )
    if input.dtype is not weight.dtype:
        raise DtypeError(f"expected scalar type {input.dtype.title} but found {weight.dtype.title}")
    if input.dtype.is_bool:
        dims = input.layout.ndim - 2
        stub = f"slow_conv_transpose{dims}d_out_cpu" if transposed else "slow_conv2d_cpu"
        raise DtypeNotImplementedError(f"\"{stub}\" not implemented for 'Bool'")


def _expanded(values: Any, dims: int, name: str) -> tuple[int, ...]:
    if len(values) == 1:
        return tuple(values) * dims
    if len(values) != dims:
        raise TensorRuntimeError(
            f"expected {name} to be a single integer value or a list of {dims} values to match "
            f"the convolution dimensions, but got {name}={list(values)}"
        )
    return tuple(values)


@kernel(
    vjp={"input,weight,bias": Native("ConvolutionBackwardBackward0", _gradients)},
    method=False,
    out=False,
    example=("convolution(ones(1, 1, 3), ones(1, 1, 2), None, [1], [0], [1], False, [0], 1)"),
)
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Dims,
    padding: Dims,
    dilation: Dims,
    transposed: bool,
    output_padding: Dims,
    groups: int,
) -> Made:
    """A convolution of any number of dimensions, or the transpose of one."""
    dims = weight.layout.ndim - 2
    stride = _expanded(stride, dims, "stride")
    padding = _expanded(padding, dims, "padding")
    dilation = _expanded(dilation, dims, "dilation")
    output_padding = _expanded(output_padding, dims, "output_padding")
    if any(p < 0 for p in padding):
        raise TensorRuntimeError("negative padding is not supported")
    if any(s <= 0 for s in stride):
        raise TensorRuntimeError("non-positive stride is not supported")
    if any(d < 0 for d in dilation):
        raise TensorRuntimeError("dilation should be greater than zero")
    if 0 in dilation:
        told = [1, *dilation] if dims == 1 else [*dilation]
        raise TensorRuntimeError(f"dilation should be greater than zero, but got {told}")
    _check_shapes(input, weight, bias, transposed, groups)
    sizes, kernel_ = input.layout.shape, weight.layout.shape[2:]
    out = _output_sizes(sizes[2:], kernel_, stride, padding, dilation, transposed, output_padding)
    _check_sizes(input, weight, padding, dilation, transposed, out)
    _check_dtypes(input, weight, bias, transposed)
    if transposed and any(
        e >= s and e >= d for e, s, d in zip(output_padding, stride, dilation, strict=True)
    ):
        raise TensorRuntimeError(_too_much_padding(output_padding, stride, dilation))
    outputs = weight.layout.shape[1] * groups if transposed else weight.layout.shape[0]
    shape = (sizes[0], outputs, *out)

    def run(xp: Any) -> Any:
        x, w = working(input), working(weight)
        if not x.size or not w.size:
            y = xp.zeros(shape, compute_dtype(input.dtype).np)
        elif transposed:
            y = _transposed(xp, x, w, stride, padding, dilation, output_padding, groups)
        else:
            y = _correlate(xp, _padded(xp, x, padding, padding), w, stride, dilation, groups)
        if bias is not None:
            y = y + working(bias).reshape((1, -1, *[1] * dims))
        return y

    return made(input.dtype, _format(shape, input.layout, weight.layout), run)


_SIDES = {1: ("width",), 2: ("height", "width"), 3: ("depth", "height", "width")}


def _too_much_padding(output_padding: Any, stride: Any, dilation: Any) -> str:
    if len(stride) == 1:
        output_padding, stride, dilation = (
            (0, *output_padding), (1, *stride), (1, *dilation),
        )  # fmt: skip
    sides = _SIDES[len(stride)]
    parts = [
        f"{what}_{side}: {n}"
        for what, values in (
            ("output_padding", output_padding), ("stride", stride), ("dilation", dilation),
        )
        for side, n in zip(sides, values, strict=True)
    ]  # fmt: skip
    return "output padding must be smaller than either stride or dilation, but got " + " ".join(
        parts
    )


_BATCHES = {1: ("2D", "3D"), 2: ("3D", "4D"), 3: ("4D", "5D")}


def _batched(input: Tensor, dims: int, name: str) -> tuple[Tensor, bool]:
    """The input with a batch dimension, and whether it had one."""
    if input.layout.ndim == dims + 2:
        return input, True
    if input.layout.ndim == dims + 1:
        return input.unsqueeze(0), False
    alone, many = _BATCHES[dims]
    raise TensorRuntimeError(
        f"Expected {alone} (unbatched) or {many} (batched) input to {name}, but got input of "
        f"size: {list(input.layout.shape)}"
    )


def _same(
    input: Tensor, weight: Tensor, bias: Any, stride: Any, dilation: Any, groups: int
) -> Tensor:
    """padding='same': an odd zero goes behind."""
    dims = weight.layout.ndim - 2
    stride, dilation = _expanded(stride, dims, "stride"), _expanded(dilation, dims, "dilation")
    if any(s != 1 for s in stride):
        raise TensorRuntimeError("padding='same' is not supported for strided convolutions")
    totals = [d * (k - 1) for d, k in zip(dilation, weight.layout.shape[2:], strict=True)]
    if any(t % 2 for t in totals):
        extra: list[int] = []
        for total in reversed(totals):
            extra += [0, total % 2]
        input = F.constant_pad_nd(input, tuple(extra), 0)
    half = tuple([t // 2 for t in totals])
    return F.convolution(input, weight, bias, stride, half, dilation, False, (0,) * dims, groups)


def _plain(dims: int, name: str) -> None:
    """conv1d, conv2d or conv3d."""

    def body(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Dims = (1,) * dims,
        padding: Any = (0,) * dims,
        dilation: Dims = (1,) * dims,
        groups: int = 1,
    ) -> Tensor:
        x, many = _batched(input, dims, name)
        if isinstance(padding, str):
            if padding == "same":
                y = _same(x, weight, bias, stride, dilation, groups)
            elif padding == "valid":
                y = F.convolution(
                    x, weight, bias, stride, (0,) * dims, dilation, False, (0,) * dims, groups
                )
            else:
                raise TensorRuntimeError(f"Invalid padding string: '{padding}'")
        else:
            pads = (padding,) if isinstance(padding, int) else tuple(padding)
            y = F.convolution(x, weight, bias, stride, pads, dilation, False, (0,) * dims, groups)
        return y if many else y.squeeze(0)

    body.__doc__ = (
        f"Kernels (outputs, channels, {dims} sizes) slid over an input (batch, channels, sizes)."
        '\n\n``padding`` may be "same" or "valid".'
    )
    ones = ", ".join(["3"] * dims)
    twos = ", ".join(["2"] * dims)
    op = composite(
        name=name,
        spaces=("", "nn.functional."),
        method=False,
        out=False,
        example=f"{name}(ones(1, 1, {ones}), ones(1, 1, {twos}))",
    )(body)
    bound = op.build
    op.build = lambda op: _with_overloads(name, bound(op))


def _with_overloads(name: str, call: Any) -> Any:
    """The same, its arguments refused with the list of PyTorch's two signatures."""

    def checked(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except ArgumentError as error:
            if str(error).startswith(f"{name}()"):
                raise no_overload(name, args, kwargs, _SIGNATURES) from None
            raise

    return checked


def _transpose(dims: int, name: str) -> None:
    """conv_transpose1d, 2d or 3d."""

    def body(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Dims = (1,) * dims,
        padding: Dims = (0,) * dims,
        output_padding: Dims = (0,) * dims,
        groups: int = 1,
        dilation: Dims = (1,) * dims,
    ) -> Tensor:
        x, many = _batched(input, dims, name)
        y = F.convolution(x, weight, bias, stride, padding, dilation, True, output_padding, groups)
        return y if many else y.squeeze(0)

    body.__doc__ = (
        f"The transpose of conv{dims}d: what takes its gradient to that of its input.\n\n"
        "Kernels are (channels, outputs, sizes)."
    )
    ones = ", ".join(["3"] * dims)
    twos = ", ".join(["2"] * dims)
    composite(
        name=name,
        spaces=("", "nn.functional."),
        method=False,
        out=False,
        example=f"{name}(ones(1, 1, {ones}), ones(1, 1, {twos}))",
    )(body)


for _dims in (1, 2, 3):
    _plain(_dims, f"conv{_dims}d")
for _dims in (1, 2, 3):
    _transpose(_dims, f"conv_transpose{_dims}d")
