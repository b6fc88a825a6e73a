"""Pooling over windows: the largest element, the mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine.errors import TensorRuntimeError
from engine.kinds import composite, kernel, made, working
from engine.kinds.functional import functional
from engine.kinds.native import Native
from engine.kinds.reduction import check_takes
from engine.ops.convolution import windows
from engine.ops.padding import kept_format
from engine.registry import F, ops

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.parameter_types import Dims
    from engine.tensor import Tensor

_INTERNAL: dict[str, Any] = {"function": False, "method": False, "out": False}

_WORDS = {1: "one int", 2: "two ints", 3: "three ints"}


def _each(values: Any, dims: int, name: str, what: str) -> tuple[int, ...]:
    """One number per dimension."""
    if len(values) not in (1, dims):
        raise TensorRuntimeError(
            f"{name}: {what} must either be a single int, or a tuple of {_WORDS[dims]}"
        )
    return tuple(values) * dims if len(values) == 1 else tuple(values)


def _strides(values: Any, kernel_: tuple[int, ...], dims: int, name: str) -> tuple[int, ...]:
    if not values:
        return kernel_
    if len(values) not in (1, dims):
        raise TensorRuntimeError(
            f"{name}: stride must either be omitted, a single int, or a tuple of {_WORDS[dims]}"
        )
    return tuple(values) * dims if len(values) == 1 else tuple(values)


def pooled_size(n: int, k: int, s: int, p: int, d: int, ceil_mode: bool) -> int:
    """How many windows there are; ``ceil_mode`` lets one reach over the end, not begin there."""
    reach = n + 2 * p - d * (k - 1) - 1
    count = (reach + (s - 1 if ceil_mode else 0)) // s + 1
    if ceil_mode and (count - 1) * s >= n + p:
        count -= 1
    return count


def _check_geometry(kernel_: Any, stride: Any, padding: Any, dilation: Any, dims: int) -> None:
    if any(s == 0 for s in stride):
        raise TensorRuntimeError("stride should not be zero")
    for p in padding:
        if p < 0:
            raise TensorRuntimeError(f"pad must be non-negative, but got pad: {p}")
    for k, p, d in zip(kernel_, padding, dilation, strict=True):
        if p > ((k - 1) * d + 1) // 2 and d > 0:
            raise TensorRuntimeError(
                "pad should be at most half of effective kernel size, but got pad="
                f"{p}, kernel_size={k} and dilation={d}"
            )
    if any(k <= 0 for k in kernel_):
        sides = ("kT", "kH", "kW")[3 - dims :]
        told = " ".join(f"{s}: {k}" for s, k in zip(sides, kernel_, strict=True))
        raise TensorRuntimeError(f"kernel size should be greater than zero, but got {told}")
    if any(s < 0 for s in stride):
        sides = ("dT", "dH", "dW")[3 - dims :]
        told = " ".join(f"{s}: {n}" for s, n in zip(sides, stride, strict=True))
        raise TensorRuntimeError(f"stride should be greater than zero, but got {told}")
    if any(d <= 0 for d in dilation):
        sides = ("dilationT", "dilationH", "dilationW")[3 - dims :]
        told = " ".join(f"{s}: {d}" for s, d in zip(sides, dilation, strict=True))
        raise TensorRuntimeError(f"dilation should be greater than zero, but got {told}")


_MODES = {2: "3D or 4D", 3: "4D or 5D"}


def _check_input(shape: tuple[int, ...], dims: int) -> None:
    if len(shape) not in (dims + 1, dims + 2):
        raise TensorRuntimeError(f"non-empty {_MODES[dims]} (batch mode) tensor expected for input")
    inner = shape[1:] if len(shape) == dims + 2 else shape
    if 0 in inner:
        raise TensorRuntimeError(
            f"Expected {_MODES[dims]} (batch mode) tensor with optional 0 dim batch size for "
            f"input, but got:{list(shape)}"
        )


def _sizes(
    shape: tuple[int, ...], kernel_: Any, stride: Any, padding: Any, dilation: Any,
    ceil_mode: bool, dims: int,
) -> tuple[int, ...]:  # fmt: skip
    out = [
        pooled_size(n, k, s, p, d, ceil_mode)
        for n, k, s, p, d in zip(shape[-dims:], kernel_, stride, padding, dilation, strict=True)
    ]
    if any(n < 1 for n in out):
        channels = shape[-dims - 1]
        given = "x".join(map(str, (channels, *shape[-dims:])))
        found = "x".join(map(str, (channels, *out)))
        raise TensorRuntimeError(
            f"Given input size: ({given}). Calculated output size: ({found}). Output size is too "
            "small"
        )
    return (*shape[:-dims], *out)


def _framed(
    xp: Any, x: Any, shape: Any, kernel_: Any, stride: Any, padding: Any, dilation: Any, fill: Any
) -> Any:
    """``x`` as (n, c, *sizes) with just the border that the windows of ``shape`` reach into."""
    dims = len(kernel_)
    flat = x.reshape((_product(x.shape[:-dims]), 1, *x.shape[-dims:]))
    after = [
        (o - 1) * s + d * (k - 1) + 1 - n - p
        for o, s, d, k, n, p in zip(
            shape[-dims:], stride, dilation, kernel_, x.shape[-dims:], padding, strict=True
        )
    ]
    around = [(0, 0), (0, 0)] + [(p, max(a, 0)) for p, a in zip(padding, after, strict=True)]
    if any(b or a for b, a in around):
        flat = xp.pad(flat, around, constant_values=fill)
    return flat


def _lowest(dtype: Any, xp: Any) -> Any:
    return -xp.inf if dtype.kind == "f" else xp.iinfo(dtype).min


def _picked(
    xp: Any, x: Any, shape: Any, kernel_: Any, stride: Any, padding: Any, dilation: Any
) -> tuple[Any, Any]:
    """The largest element of each window and its place in the flat sizes of the input.

    The first of equals counts; a NaN is larger than everything, the last one if there are
    several.
    """
    dims = len(kernel_)
    sizes = x.shape[-dims:]
    count = 1
    for n in sizes:
        count *= n
    frame = _framed(xp, x, shape, kernel_, stride, padding, dilation, _lowest(x.dtype, xp))
    places = xp.arange(count, dtype="int64").reshape((1, 1, *sizes))
    numbered = _framed(xp, places, shape, kernel_, stride, padding, dilation, -1)
    seen = windows(xp, frame, kernel_, stride, dilation)
    where = windows(xp, numbered, kernel_, stride, dilation)
    spots = seen.shape[2 : 2 + dims]
    seen = seen.reshape((*seen.shape[:1], *spots, _product(kernel_)))
    where = where.reshape((1, *spots, _product(kernel_)))
    index = seen.argmax(axis=-1)
    if x.dtype.kind == "f":
        nan = xp.isnan(seen)
        last = nan.shape[-1] - 1 - nan[..., ::-1].argmax(axis=-1)
        index = xp.where(nan.any(axis=-1), last, index)
        # A window of nothing but -inf picks its first element that is no border.
        inside = xp.broadcast_to(where >= 0, seen.shape)
        best = xp.take_along_axis(seen, index[..., None], -1)[..., 0]
        index = xp.where(xp.isneginf(best), inside.argmax(axis=-1), index)
    values = xp.take_along_axis(seen, index[..., None], -1)[..., 0]
    chosen = xp.take_along_axis(xp.broadcast_to(where, seen.shape), index[..., None], -1)[..., 0]
    return values.reshape(shape), chosen.reshape(shape)


def scattered(g: Tensor, indices: Tensor, shape: tuple[int, ...], dims: int) -> Tensor:
    """``g`` added up at the places that were picked, in zeros of ``shape``."""
    lead = shape[: len(shape) - dims]
    flat = g.new_zeros((*lead, _product(shape[len(shape) - dims :])))
    rows = (*lead, _product(indices.layout.shape[indices.layout.ndim - dims :]))
    return flat.scatter_add(-1, indices.reshape(rows), g.reshape(rows)).reshape(shape)


def picked_gradient(name: str, dims: int) -> Any:
    """The derivative of values that were picked: one node of that name.

    Like PyTorch's it takes the input as well, whose numbers do not matter.
    """

    def rule(g: Tensor, indices: Tensor, input: Tensor) -> Tensor:
        return scattered(g, indices, input.layout.shape, dims)

    node = Native(name, rule)

    def gradient(g: Any, y: Any, input: Tensor) -> Any:
        return node(g[0], y[1], input)

    return gradient


def _product(sizes: Any) -> int:
    n = 1
    for size in sizes:
        n *= size
    return n


def _max_pool(dims: int, name: str) -> None:
    """The kernel that picks the largest elements of windows."""

    def body(
        input: Tensor,
        kernel_size: Dims,
        stride: Dims = (),
        padding: Dims = (0,),
        dilation: Dims = (1,),
        ceil_mode: bool = False,
    ) -> tuple[Made, ...]:
        kernel_ = _each(kernel_size, dims, f"max_pool{dims}d", "kernel_size")
        step = _strides(stride, kernel_, dims, f"max_pool{dims}d")
        pad = _each(padding, dims, f"max_pool{dims}d", "padding")
        spread = _each(dilation, dims, f"max_pool{dims}d", "dilation")
        _check_geometry(kernel_, step, pad, spread, dims)
        shape = input.layout.shape
        _check_input(shape, dims)
        out = _sizes(shape, kernel_, step, pad, spread, ceil_mode, dims)
        check_takes("if", f"max_pool{dims}d", input.dtype)
        layout = kept_format(out, input.layout)

        def run(xp: Any) -> Any:
            x = working(input)
            if not x.size:
                return [xp.zeros(out, x.dtype), xp.zeros(out, "int64")]
            return list(_picked(xp, x, out, kernel_, step, pad, spread))

        return made(input.dtype, layout, run), made(dtypes.int64, layout, run)

    body.__doc__ = "The largest element of each window, and its place."
    kernel(
        name=f"nn.max_pool{dims}d_with_indices",
        node=f"MaxPool{dims}DWithIndicesBackward0",
        vjp=picked_gradient(f"MaxPool{dims}DWithIndicesBackwardBackward0", dims),
        constant=(1,),
        spoken=f"max_pool{dims}d",
        **_INTERNAL,
    )(body)


for _dims in (2, 3):
    _max_pool(_dims, f"max_pool{_dims}d")


def _public_max_pool(dims: int) -> None:
    """torch.max_pool2d and 3d."""

    def body(
        input: Tensor,
        kernel_size: Dims,
        stride: Dims = (),
        padding: Dims = (0,),
        dilation: Dims = (1,),
        ceil_mode: bool = False,
    ) -> Tensor:
        return ops[f"nn.max_pool{dims}d_with_indices"].function(
            input, kernel_size, stride, padding, dilation, ceil_mode
        )[0]

    body.__doc__ = "The largest element of each window."
    sizes = ", ".join(["4"] * dims)
    composite(
        name=f"max_pool{dims}d",
        method=False,
        out=False,
        example=f"max_pool{dims}d(ones(1, 1, {sizes}), 2)",
    )(body)


for _dims in (2, 3):
    _public_max_pool(_dims)


def _check_max_pool1d(
    input: Tensor, kernel_: int, stride: int, padding: int, dilation: int, ceil_mode: bool
) -> None:
    shape = input.layout.shape
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise TensorRuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size "
            f"for input, but got:{list(shape)}"
        )
    for value, what, least in (
        (kernel_, "kernel_size", 1),
        (stride, "stride", 1),
        (padding, "padding", 0),
    ):
        if value < least:
            told = "greater than zero" if least else "non-negative"
            raise TensorRuntimeError(f"max_pool1d() {what} must be {told}, but got {value}")
    if padding > kernel_ // 2:
        raise TensorRuntimeError(
            "max_pool1d() padding should be at most half of kernel size, but got padding="
            f"{padding} and kernel_size={kernel_}"
        )
    if dilation < 1:
        raise TensorRuntimeError(
            f"max_pool1d() dilation must be greater than zero, but got {dilation}"
        )
    size = pooled_size(shape[-1], kernel_, stride, padding, dilation, ceil_mode)
    if size < 1:
        raise TensorRuntimeError(f"max_pool1d() Invalid computed output size: {size}")


@composite(
    name="max_pool1d_with_indices",
    method=False,
    out=False,
    spoken="max_pool1d",
    example="max_pool1d_with_indices(tensor([[1., 3., 2., 4.]]), 2)",
)
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Dims,
    stride: Dims = (),
    padding: Dims = (0,),
    dilation: Dims = (1,),
    ceil_mode: bool = False,
) -> Any:
    """The largest element of each window of the last dimension, and its place."""
    step = stride or kernel_size
    _check_max_pool1d(input, kernel_size[0], step[0], padding[0], dilation[0], ceil_mode)
    values, indices = ops["nn.max_pool2d_with_indices"].function(
        input.unsqueeze(-2),
        (1, kernel_size[0]),
        (1, step[0]),
        (0, padding[0]),
        (1, dilation[0]),
        ceil_mode,
    )
    return values.squeeze(-2), indices.squeeze(-2)


@composite(method=False, out=False, example="max_pool1d(tensor([[1., 3., 2., 4.]]), 2)")
def max_pool1d(
    input: Tensor,
    kernel_size: Dims,
    stride: Dims = (),
    padding: Dims = (0,),
    dilation: Dims = (1,),
    ceil_mode: bool = False,
) -> Tensor:
    """The largest element of each window of the last dimension."""
    check_takes("f", "max_pool1d_impl", input.dtype)
    return F.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)[0]


def _choosing(dims: int) -> None:
    """nn.functional.max_pool: with or without the places."""
    name = f"max_pool{dims}d"

    def places(
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        op = ops["max_pool1d_with_indices" if dims == 1 else f"nn.{name}_with_indices"]
        return op.function(
            input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode
        )

    places.__doc__ = "The largest element of each window, and its place in the flat sizes."

    def alone(
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        return ops[name].function(
            input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode
        )

    alone.__qualname__ = f"_{name}"
    sizes = ", ".join(["4"] * dims)
    with_places = functional(
        name=f"{name}_with_indices",
        example=f"nn.functional.{name}_with_indices(ones(1, 1, {sizes}), 2)",
    )(places)

    def pool(*args: Any, **kwargs: Any) -> Any:
        wanted = kwargs.get("return_indices", args[6] if len(args) > 6 else False)
        return (with_places if wanted else alone)(*args, **kwargs)

    pool.__doc__ = (
        "The largest element of each window.\n\n"
        "``return_indices`` gives its place in the flat sizes of the input as well."
    )
    functional(name=name, example=f"nn.functional.{name}(ones(1, 1, {sizes}), 2)")(pool)


for _dims in (1, 2, 3):
    _choosing(_dims)


def _divisors(
    xp: Any, shape: Any, out: Any, kernel_: Any, stride: Any, padding: Any, include: bool
) -> Any:
    """How many elements each window's sum is divided by."""
    dims = len(kernel_)
    counts: Any = xp.ones((1,) * dims)
    for dim in range(dims):
        n, o = shape[len(shape) - dims + dim], out[len(out) - dims + dim]
        k, s, p = kernel_[dim], stride[dim], padding[dim]
        start = xp.arange(o) * s - p
        end = xp.minimum(start + k, n + p)
        if not include:
            end, start = xp.minimum(end, n), xp.maximum(start, 0)
        row = [1] * dims
        row[dim] = o
        counts = counts * (end - start).reshape(row)
    return counts


def _avg_pool(dims: int) -> None:
    """avg_pool2d and 3d."""
    name = f"avg_pool{dims}d"

    def geometry(
        kernel_size: Any, stride: Any, padding: Any
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        kernel_ = _each(kernel_size, dims, name, "kernel_size")
        step = _strides(stride, kernel_, dims, name)
        return kernel_, step, _each(padding, dims, name, "padding")

    def gradient(
        g: Tensor,
        input: Tensor,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        count_include_pad: bool,
        divisor_override: Any,
    ) -> Tensor:
        kernel_, step, pad = geometry(kernel_size, stride, padding)
        input_shape, out = input.layout.shape, g.layout.shape
        if divisor_override is None:
            counts = _divisors(g.kind.xp, input_shape, out, kernel_, step, pad, count_include_pad)
            g = g / F.tensor(counts.tolist(), dtype=g.dtype)
        else:
            g = g / divisor_override
        return spread_over_windows(g, input_shape, kernel_, step, pad)

    def body(
        input: Tensor,
        kernel_size: Dims,
        stride: Dims = (),
        padding: Dims = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Made:
        kernel_, step, pad = geometry(kernel_size, stride, padding)
        if divisor_override == 0:
            raise TensorRuntimeError("divisor must be not zero")
        ones = (1,) * dims
        shape = input.layout.shape
        _check_geometry(kernel_, step, pad, ones, dims)
        _check_input(shape, dims)
        out = _sizes(shape, kernel_, step, pad, ones, ceil_mode, dims)
        check_takes("if", name, input.dtype)

        def run(xp: Any) -> Any:
            x = working(input)
            if not x.size:
                return xp.zeros(out, x.dtype)
            frame = _framed(xp, x, out, kernel_, step, pad, ones, 0)
            seen = windows(xp, frame, kernel_, step, ones)
            axes = tuple(range(2 + dims, 2 + 2 * dims))
            sums = seen.sum(axis=axes, dtype=x.dtype).reshape(out)
            divisor: Any = divisor_override
            if divisor is None:
                divisor = _divisors(xp, shape, out, kernel_, step, pad, count_include_pad)
            if x.dtype.kind != "f":
                return xp.trunc(sums / divisor)
            return (sums / divisor).astype(x.dtype)

        return made(input.dtype, kept_format(out, input.layout), run)

    body.__doc__ = (
        "The mean of each window.\n\n``count_include_pad``: zeros of the border count; "
        "``divisor_override`` divides by another number than the window's size."
    )
    sizes = ", ".join(["4"] * dims)
    kernel(
        name=f"nn.functional.{name}",
        node=f"AvgPool{dims}DBackward0",
        vjp=Native(f"AvgPool{dims}DBackwardBackward0", gradient),
        method=False,
        out=False,
        example=f"nn.functional.{name}(ones(1, 1, {sizes}), 2)",
    )(body)


def spread_over_windows(
    g: Tensor, shape: tuple[int, ...], kernel_: Any, stride: Any, padding: Any
) -> Tensor:
    """Each window's gradient given to all its elements, added up: a transposed convolution with
    ones."""
    dims = len(kernel_)
    flat = g.reshape((-1, 1, *g.layout.shape[g.layout.ndim - dims :]))
    ones = g.new_ones((1, 1, *kernel_))
    sizes = shape[len(shape) - dims :]
    zeros, unit = (0,) * dims, (1,) * dims
    whole = F.convolution(flat, ones, None, stride, zeros, unit, True, zeros, 1)
    have = whole.layout.shape[2:]
    crop: list[int] = []
    for n, p, h in reversed(list(zip(sizes, padding, have, strict=True))):
        crop += [-p, n + p - h]
    return F.constant_pad_nd(whole, tuple(crop), 0).reshape(shape)


for _dims in (2, 3):
    _avg_pool(_dims)


@composite(
    spaces=("", "nn.functional."),
    method=False,
    out=False,
    example="avg_pool1d(tensor([[1., 3., 2., 4.]]), 2)",
)
def avg_pool1d(
    input: Tensor,
    kernel_size: Dims,
    stride: Dims = (),
    padding: Dims = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window of the last dimension."""
    check_line(input, "avg_pool1d")
    step = stride or kernel_size
    for values, what in (
        (kernel_size, "kernel_size"), (step, "stride"), (padding, "padding"),
    ):  # fmt: skip
        if len(values) != 1:
            raise TensorRuntimeError(
                f"avg_pool1d() argument '{what}' should contain one int (got {len(values)})"
            )
    y = ops["nn.functional.avg_pool2d"].function(
        input.unsqueeze(-2),
        (1, kernel_size[0]),
        (1, step[0]),
        (0, padding[0]),
        ceil_mode,
        count_include_pad,
    )
    return y.squeeze(-2)


def check_line(input: Tensor, name: str) -> None:
    ndim = input.layout.ndim
    if ndim not in (2, 3):
        raise TensorRuntimeError(
            f"Expected 2 to 3 dimensions, but got {ndim}-dimensional tensor for argument #1 "
            f"'self' (while checking arguments for {name})"
        )
