"""Pooling to a wanted size, pooling by powers, and the way back from max_pool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine.errors import DtypeError, TensorRuntimeError, TensorValueError
from engine.kinds import composite, kernel, made, working
from engine.kinds.functional import functional
from engine.kinds.native import Native
from engine.kinds.reduction import check_takes
from engine.ops.padding import kept_format
from engine.ops.pooling import check_line, picked_gradient
from engine.registry import F, ops

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.parameter_types import Dims
    from engine.tensor import Tensor

_INTERNAL: dict[str, Any] = {"function": False, "method": False, "out": False}

_EXPECTED = {2: "3D or 4D", 3: "4D or 5D"}


def _bounds(size: int, wanted: int) -> list[tuple[int, int]]:
    """Where each of ``wanted`` regions of a dimension begins and ends."""
    return [(i * size // wanted, -(-(i + 1) * size // wanted)) for i in range(wanted)]


def _check_sizes(outer: tuple[int, ...], wanted: tuple[int, ...], name: str) -> None:
    least = min(wanted, default=0)
    if least >= 0:
        return
    if "max" in name:
        raise TensorRuntimeError(
            f"Trying to create tensor with negative dimension {least}: {[*outer, *wanted]}"
        )
    told = ", ".join(map(str, wanted[:2])) + "".join(f",{n}" for n in wanted[2:])
    raise TensorRuntimeError(
        f"{name}: elements of output_size must be greater than or equal to 0 but received "
        f"{{{told}}}"
    )


def _check_adaptive(input: Tensor, wanted: tuple[int, ...], dims: int, name: str) -> None:
    shape = input.layout.shape
    colon = ":" if "max" in name else ""
    if len(shape) not in (dims + 1, dims + 2):
        raise TensorRuntimeError(
            f"{name}(): Expected {_EXPECTED[dims]} tensor, but got{colon} {list(shape)}"
        )
    if len(wanted) != dims:
        where = f"{name}()" if "max" in name else name
        told = f"internal error: output_size.size() must be {dims}"
        if "max" not in name:
            told = f"output_size must be {dims}"
        raise TensorRuntimeError(f"{where}: {told}")
    _check_sizes(shape[: len(shape) - dims], wanted, name)
    for d in range(len(shape) - dims, len(shape)):
        if shape[d] == 0:
            raise TensorRuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but "
                f"input has sizes {list(shape)} with dimension {d} being empty"
            )


def _means(xp: Any, x: Any, axis: int, wanted: int) -> Any:
    parts = []
    for start, end in _bounds(x.shape[axis], wanted):
        index = [slice(None)] * x.ndim
        index[axis] = slice(start, end)
        parts.append(x[tuple(index)].mean(axis=axis, keepdims=True))
    return xp.concatenate(parts, axis=axis) if parts else x.take([], axis=axis)


def _mean_slope(g: Tensor, input: Tensor, output_size: tuple[int, ...]) -> Tensor:
    """Each mean's gradient shared among its region; a product with 0-1 matrices, so derivable."""
    dims, input_shape = len(output_size), input.layout.shape
    for place, wanted in enumerate(output_size):
        axis = len(input_shape) - dims + place
        size = input_shape[axis]
        rows = [
            [1.0 / (end - start) if start <= i < end else 0.0 for i in range(size)]
            for start, end in _bounds(size, wanted)
        ]
        shares = F.tensor(rows, dtype=g.dtype).reshape((wanted, size))
        g = g.movedim(axis, -1).matmul(shares).movedim(-1, axis)
    return g.contiguous()


def _adaptive_avg(dims: int) -> None:
    name = f"adaptive_avg_pool{dims}d"

    def body(input: Tensor, output_size: Dims) -> Made:
        _check_adaptive(input, output_size, dims, name)
        check_takes("f", name, input.dtype)
        shape = (*input.layout.shape[:-dims], *output_size)

        def run(xp: Any) -> Any:
            x = working(input)
            for place, wanted in enumerate(output_size):
                x = _means(xp, x, x.ndim - dims + place, wanted)
            return x

        return made(input.dtype, kept_format(shape, input.layout), run)

    body.__doc__ = "The mean of each of so many regions."
    kernel(
        name=f"nn.{name}",
        node=f"AdaptiveAvgPool{dims}DBackward0",
        vjp=Native(f"AdaptiveAvgPool{dims}DBackwardBackward0", _mean_slope),
        **_INTERNAL,
    )(body)

    def public(input: Tensor, output_size: Dims) -> Tensor:
        output_size = _spread(output_size, dims)
        if output_size == (1,) * dims:
            y = input.mean(tuple(range(-dims, 0)), keepdim=True)
            layout = kept_format(y.layout.shape, input.layout)
            if layout is not y.layout and layout.strides != y.layout.strides:
                y = y.as_strided(layout.shape, layout.strides)
            return y
        return ops[f"nn.{name}"].function(input, output_size)

    public.__doc__ = "The mean of each of so many regions."
    composite(name=f"_public.{name}", **_INTERNAL)(public)

    def outer(input: Any, output_size: Any) -> Any:
        return ops[f"_public.{name}"].function(input, _filled(output_size, input.size()))

    sizes = ", ".join(["4"] * dims)
    outer.__doc__ = "The mean of each of so many regions; None keeps a dimension's size."
    functional(name=name, example=f"nn.functional.{name}(ones(1, 1, {sizes}), 2)")(outer)


def _filled(wanted: Any, size: Any) -> Any:
    """The wanted sizes with the input's own in place of None."""
    if not isinstance(wanted, (tuple, list)):
        return wanted
    if len(size) <= len(wanted):
        raise TensorValueError(f"Input dimension should be at least {len(wanted) + 1}")
    own = size[len(size) - len(wanted) :]
    return tuple([n if n is not None else o for n, o in zip(wanted, own, strict=True)])


def _spread(output_size: Any, dims: int) -> Any:
    """One number stands for all dimensions."""
    return tuple(output_size) * dims if len(output_size) == 1 else output_size


for _dims in (2, 3):
    _adaptive_avg(_dims)


def _one_size(output_size: tuple[int, ...], name: str) -> int:
    if len(output_size) != 1:
        raise TensorRuntimeError(
            f"{name}() argument 'output_size' should contain one int (got {len(output_size)})"
        )
    return output_size[0]


@composite(
    spaces=("", "nn.functional."),
    method=False,
    out=False,
    example="adaptive_avg_pool1d(tensor([[1., 3., 2., 4.]]), 2)",
)
def adaptive_avg_pool1d(input: Tensor, output_size: Dims) -> Tensor:
    """The mean of each of so many regions of the last dimension."""
    check_line(input, "adaptive_avg_pool1d")
    wanted = _one_size(output_size, "adaptive_avg_pool1d")
    y = ops["_public.adaptive_avg_pool2d"].function(input.unsqueeze(-2), (1, wanted))
    return y.squeeze(-2)


def _largest(xp: Any, x: Any, wanted: tuple[int, ...]) -> tuple[Any, Any]:
    """The largest element of each region and its place in the flat sizes."""
    dims = len(wanted)
    sizes = x.shape[x.ndim - dims :]
    flat = x.reshape((_count(x.shape[: x.ndim - dims]), *sizes))
    out = (*x.shape[: x.ndim - dims], *wanted)
    values = xp.zeros((flat.shape[0], *wanted), x.dtype)
    indices = xp.zeros((flat.shape[0], *wanted), "int64")
    bounds = [_bounds(n, w) for n, w in zip(sizes, wanted, strict=True)]
    count = 1
    for n in sizes:
        count *= n
    numbers = xp.arange(count, dtype="int64").reshape(sizes)
    for spot in _spots(wanted):
        region = tuple([slice(*bounds[d][spot[d]]) for d in range(dims)])
        where = numbers[region].reshape(-1)
        part = flat[(slice(None), *region)].reshape((flat.shape[0], where.size))
        index = part.argmax(axis=1)
        nan = xp.isnan(part)
        last = nan.shape[1] - 1 - nan[:, ::-1].argmax(axis=1)
        index = xp.where(nan.any(axis=1), last, index)
        place = (slice(None), *spot)
        values[place] = xp.take_along_axis(part, index[:, None], 1)[:, 0]
        indices[place] = where[index]
    return values.reshape(out), indices.reshape(out)


def _spots(sizes: tuple[int, ...]) -> list[tuple[int, ...]]:
    spots: list[tuple[int, ...]] = [()]
    for n in sizes:
        spots = [(*s, i) for s in spots for i in range(n)]
    return spots


def _adaptive_max(dims: int) -> None:
    name = f"adaptive_max_pool{dims}d"

    def body(input: Tensor, output_size: Dims) -> tuple[Made, ...]:
        wanted = _spread(output_size, dims)
        _check_adaptive(input, wanted, dims, name)
        check_takes("f", name, input.dtype)
        shape = (*input.layout.shape[:-dims], *wanted)
        layout = kept_format(shape, input.layout)

        def run(xp: Any) -> Any:
            return list(_largest(xp, working(input), wanted))

        return made(input.dtype, layout, run), made(dtypes.int64, layout, run)

    body.__doc__ = "The largest element of each of so many regions, and its place."
    kernel(
        name=f"nn.{name}",
        node=f"AdaptiveMaxPool{dims}DBackward0",
        vjp=picked_gradient(f"AdaptiveMaxPool{dims}DBackwardBackward0", dims),
        constant=(1,),
        **_INTERNAL,
    )(body)


for _dims in (2, 3):
    _adaptive_max(_dims)


@composite(method=False, out=False, example="adaptive_max_pool1d(tensor([[1., 3., 2., 4.]]), 2)")
def adaptive_max_pool1d(input: Tensor, output_size: Dims) -> Any:
    """The largest element of each of so many regions of the last dimension, and its place."""
    check_line(input, "adaptive_max_pool1d")
    wanted = _one_size(output_size, "adaptive_max_pool1d")
    values, indices = ops["nn.adaptive_max_pool2d"].function(input.unsqueeze(-2), (1, wanted))
    return values.squeeze(-2), indices.squeeze(-2)


def _choosing(dims: int) -> None:
    """nn.functional.adaptive_max_pool: with or without the places."""
    name = f"adaptive_max_pool{dims}d"
    op = "adaptive_max_pool1d" if dims == 1 else f"nn.{name}"

    def places(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        wanted = output_size if dims == 1 else _filled(output_size, input.size())
        return ops[op].function(input, wanted)

    def alone(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        return with_places(input, output_size)[0]

    def pool(*args: Any, **kwargs: Any) -> Any:
        wanted = kwargs.get("return_indices", args[2] if len(args) > 2 else False)
        return (with_places if wanted else alone)(*args, **kwargs)

    alone.__qualname__ = f"_{name}"
    places.__doc__ = "The largest element of each of so many regions, and its place."
    pool.__doc__ = (
        "The largest element of each of so many regions.\n\n"
        "``return_indices`` gives its place in the flat sizes of the input as well."
    )
    sizes = ", ".join(["4"] * dims)
    with_places = functional(
        name=f"{name}_with_indices",
        example=f"nn.functional.{name}_with_indices(ones(1, 1, {sizes}), 2)",
    )(places)
    functional(name=name, example=f"nn.functional.{name}(ones(1, 1, {sizes}), 2)")(pool)


for _dims in (1, 2, 3):
    _choosing(_dims)


def _lp(dims: int) -> None:
    """lp_pool1d, 2d and 3d."""

    def body(
        input: Any, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> Any:
        if norm_type == float("inf"):
            return getattr(F, f"max_pool{dims}d")(
                input, kernel_size, () if stride is None else stride, 0, 1, ceil_mode
            )
        sizes = (kernel_size,) * dims if isinstance(kernel_size, int) else tuple(kernel_size)
        count = 1
        for n in sizes:
            count *= n
        pool = getattr(F, f"avg_pool{dims}d")
        powers = input.pow(norm_type)
        if stride is None:
            y = pool(powers, kernel_size, padding=0, ceil_mode=ceil_mode)
        else:
            y = pool(powers, kernel_size, stride, 0, ceil_mode)
        return (y.sign() * y.abs().relu()).mul(count).pow(1.0 / norm_type)

    body.__doc__ = "The p-norm of each window, p being ``norm_type``."
    sizes = ", ".join(["4"] * dims)
    functional(
        name=f"lp_pool{dims}d", example=f"nn.functional.lp_pool{dims}d(ones(1, 1, {sizes}), 2, 2)"
    )(body)


for _dims in (1, 2, 3):
    _lp(_dims)


def _unpool(dims: int) -> None:
    """The kernel that puts elements back to the places they were picked from."""

    def gradient(g: Tensor, indices: Tensor) -> Tensor:
        lead = g.layout.shape[: g.layout.ndim - dims]
        flat = g.reshape((*lead, -1))
        rows = indices.reshape((*lead, -1))
        return flat.gather(-1, rows).reshape(indices.layout.shape)

    def body(input: Tensor, indices: Tensor, output_size: Dims) -> Made:
        shape = input.layout.shape
        if indices.dtype is not dtypes.int64:
            raise DtypeError(
                f"elements in indices should be type int64 but got: {indices.dtype.title}"
            )
        if len(shape) not in (dims + 1, dims + 2):
            raise TensorRuntimeError(
                f"Input to max_unpooling{dims}d should be a {dims + 1}d or {dims + 2}d Tensor, "
                f"but got a tensor with {len(shape)} dimensions."
            )
        if indices.layout.shape != shape:
            raise TensorRuntimeError(
                "Expected shape of indices to be same as that of the input tensor "
                f"({list(shape)}) but got indices tensor with shape: "
                f"{list(indices.layout.shape)}"
            )
        check_takes("if", f"max_unpool{dims}d", input.dtype)
        out = (*shape[:-dims], *output_size)
        count = 1
        for n in output_size:
            count *= n

        def run(xp: Any) -> Any:
            at = len(shape) - dims
            places = indices.array.reshape((_count(shape[:at]), _count(shape[at:])))
            wrong = (places < 0) | (places >= count)
            if wrong.any():
                raise TensorRuntimeError(
                    f"Found an invalid max index: {int(places[wrong].flat[0])} (output volumes "
                    f"are of size {'x'.join(map(str, output_size))})"
                )
            flat = xp.zeros((places.shape[0], count), input.kind.np)
            xp.put_along_axis(flat, places, input.array.reshape(places.shape), 1)
            return flat.reshape(out)

        return made(input.dtype, kept_format(out, input.layout), run)

    body.__doc__ = "Zeros with the elements of the input at the given places."
    kernel(
        name=f"nn.max_unpool{dims}d",
        node=f"MaxUnpool{dims}DBackward0",
        vjp=gradient,
        **_INTERNAL,
    )(body)


def _count(sizes: Any) -> int:
    n = 1
    for size in sizes:
        n *= size
    return n


for _dims in (2, 3):
    _unpool(_dims)


def _unpooled_size(
    input: Any, kernel_size: list[int], stride: list[int], padding: list[int], output_size: Any
) -> list[int]:
    sizes = list(input.size())[len(input.size()) - len(kernel_size) :]
    usual = [
        (n - 1) * s + k - 2 * p
        for n, s, k, p in zip(sizes, stride, kernel_size, padding, strict=True)
    ]
    if output_size is None:
        return usual
    wanted = list(output_size)
    if len(wanted) == len(kernel_size) + 2:
        wanted = wanted[2:]
    if len(wanted) != len(kernel_size):
        raise TensorValueError(
            "output_size should be a sequence containing "
            f"{len(kernel_size)} or {len(kernel_size) + 2} elements, but it has a length of "
            f"'{len(wanted)}'"
        )
    for d, (n, u, s) in enumerate(zip(wanted, usual, stride, strict=True)):
        if not u - s < n < u + s:
            raise TensorValueError(
                f'invalid output_size "{output_size}" (dim {d} must be between {u - s} and {u + s})'
            )
    return wanted


def _each(value: Any, dims: int) -> list[int]:
    return [value] * dims if isinstance(value, int) else list(value)


def _public_unpool(dims: int) -> None:
    """nn.functional.max_unpool1d, 2d and 3d."""

    def body(
        input: Any,
        indices: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        output_size: Any = None,
    ) -> Any:
        sizes = _each(kernel_size, dims)
        steps = sizes if stride is None else _each(stride, dims)
        wanted = _unpooled_size(input, sizes, steps, _each(padding, dims), output_size)
        if dims > 1:
            return ops[f"nn.max_unpool{dims}d"].function(input, indices, wanted)
        y = ops["nn.max_unpool2d"].function(
            input.unsqueeze(-1), indices.unsqueeze(-1), [*wanted, 1]
        )
        return y.squeeze(-1)

    body.__doc__ = "Zeros with the elements that max_pool picked where it picked them."
    ones = "".join(["["] * dims)
    close = "".join(["]"] * dims)
    functional(
        name=f"max_unpool{dims}d",
        example=f"nn.functional.max_unpool{dims}d("
        f"tensor([{ones}3.{close}]), tensor([{ones}1{close}]), 2)",
    )(body)


for _dims in (1, 2, 3):
    _public_unpool(_dims)
