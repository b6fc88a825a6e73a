"""Pooling over regions of random sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine.errors import DimError, TensorRuntimeError, TensorValueError
from engine.kinds import kernel, made, working
from engine.kinds.functional import functional
from engine.kinds.reduction import check_takes
from engine.ops.pooling import picked_gradient
from engine.registry import F, ops

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.parameter_types import Dims
    from engine.tensor import Tensor

_SIDES = {2: ("height", "width"), 3: ("time", "height", "width")}


def _starts(sample: Any, size: int, out: int, pool: int) -> list[int]:
    """Where the regions of one dimension begin."""
    starts = []
    if out > 1:
        step = type(sample)(size - pool) / type(sample)(out - 1)
        starts = [int((i + sample) * step) - int(sample * step) for i in range(out - 1)]
    return [*starts, size - pool]


def _sample_of(samples: Any, dim: int, dims: int) -> Any:
    """In two dimensions PyTorch's first sample is that of the width."""
    return samples[dims - 1 - dim] if dims == 2 else samples[dim]


def _picked(x: Any, xp: Any, samples: Any, sizes: Any, out: Any) -> tuple[Any, Any]:
    dims = len(out)
    flat = x.reshape((-1, *x.shape[x.ndim - dims :]))
    draws = samples.reshape((flat.shape[0], dims))
    values = xp.zeros((flat.shape[0], *out), x.dtype)
    indices = xp.zeros((flat.shape[0], *out), "int64")
    cells = 1
    for n in flat.shape[1:]:
        cells *= n
    numbers = xp.arange(cells).reshape(flat.shape[1:])
    for plane in range(flat.shape[0]):
        starts = [
            _starts(_sample_of(draws[plane], d, dims), flat.shape[1 + d], out[d], sizes[d])
            for d in range(dims)
        ]
        for spot in xp.ndindex(*out):
            region = tuple(
                [slice(starts[d][spot[d]], starts[d][spot[d]] + sizes[d]) for d in range(dims)]
            )
            part = flat[plane][region].reshape(-1)
            nan = xp.flatnonzero(xp.isnan(part))
            best = nan[-1] if nan.size else part.argmax()
            values[(plane, *spot)] = part[best]
            indices[(plane, *spot)] = numbers[region].reshape(-1)[best]
    shape = (*x.shape[: x.ndim - dims], *out)
    return values.reshape(shape), indices.reshape(shape)


def _fractional(dims: int) -> None:
    """The kernel and the functions of fractional_max_pool2d or 3d."""
    name = f"fractional_max_pool{dims}d"

    def body(
        input: Tensor, kernel_size: Dims, output_size: Dims, _random_samples: Tensor
    ) -> tuple[Made, ...]:
        pools = kernel_size * dims if len(kernel_size) == 1 else kernel_size
        out = output_size * dims if len(output_size) == 1 else output_size
        shape = input.layout.shape
        if _random_samples.layout.shape[-1] != dims:
            raise TensorRuntimeError(
                f"Expect _random_samples.size(2) equals to {dims}; got "
                f"{_random_samples.layout.shape[-1]}."
            )
        for side, n, o, k in zip(_SIDES[dims], shape[-dims:], out, pools, strict=True):
            if o + k - 1 > n:
                raise TensorRuntimeError(
                    f"{name}(): pool {side} {k} too large relative to input {side} {n}"
                )
        check_takes("f", f"{name}_out_frame", input.dtype)
        result = (*shape[:-dims], *out)

        def run(xp: Any) -> Any:
            return list(_picked(working(input), xp, working(_random_samples), pools, out))

        return made(input.dtype, result, run), made(dtypes.int64, result, run)

    body.__doc__ = "The largest element of each of regions of random sizes, and its place."
    kernel(
        name=f"nn.{name}",
        node=f"FractionalMaxPool{dims}DBackward0",
        vjp=picked_gradient(f"FractionalMaxPool{dims}DBackwardBackward0", dims),
        constant=(1,),
        function=False,
        method=False,
        out=False,
    )(body)

    def places(
        input: Any,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> Any:
        if output_size is None and output_ratio is None:
            raise TensorValueError(
                f"{name} requires specifying either an output_size or an output_ratio"
            )
        if output_size is None:
            if len(output_ratio) != dims:
                raise TensorValueError(
                    f"{name} requires output_ratio to either be a single Int or tuple of Ints."
                )
            own = input.size()[-dims:]
            output_size = [int(n * r) for n, r in zip(own, output_ratio, strict=True)]
        if _random_samples is None:
            if input.dim() <= dims:
                raise DimError(-dims - 1, input.dim())
            batch = 1 if input.dim() == dims + 1 else input.size(0)
            _random_samples = F.rand(
                batch, input.size(-dims - 1), dims, dtype=input.dtype, device=input.device
            )
        return ops[f"nn.{name}"].function(input, kernel_size, output_size, _random_samples)

    def alone(
        input: Any,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> Any:
        return with_places(
            input, kernel_size, output_size, output_ratio, return_indices, _random_samples
        )[0]

    def pool(*args: Any, **kwargs: Any) -> Any:
        wanted = kwargs.get("return_indices", args[4] if len(args) > 4 else False)
        return (with_places if wanted else alone)(*args, **kwargs)

    alone.__qualname__ = f"_{name}"
    places.__doc__ = "The largest element of each of regions of random sizes, and its place."
    pool.__doc__ = (
        "The largest element of each of regions of random sizes.\n\n"
        "``return_indices`` gives its place in the flat sizes of the input as well."
    )
    shape = ", ".join(["4"] * dims)
    with_places = functional(
        name=f"{name}_with_indices",
        example=f"nn.functional.{name}_with_indices(ones(1, 1, {shape}), 2, 2)",
    )(places)
    functional(name=name, example=f"nn.functional.{name}(ones(1, 1, {shape}), 2, 2)")(pool)


for _dims in (2, 3):
    _fractional(_dims)
