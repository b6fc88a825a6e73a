"""Pictures sampled at the points of a grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine.errors import (
    DtypeError,
    TensorNotImplementedError,
    TensorRuntimeError,
    TensorValueError,
)
from engine.kinds import composite, kernel, made
from engine.kinds.functional import functional
from engine.kinds.native import Native
from engine.kinds.recomputed import array_of, differentiated
from engine.kinds.reduction import check_takes
from engine.modes import warn
from engine.registry import F, ops

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.tensor import Tensor

_BILINEAR, _NEAREST, _BICUBIC = 0, 1, 2
_ZEROS, _BORDER, _REFLECTION = 0, 1, 2
_MODES = {"bilinear": _BILINEAR, "nearest": _NEAREST, "bicubic": _BICUBIC}
_PADDINGS = {"zeros": _ZEROS, "border": _BORDER, "reflection": _REFLECTION}
_CUBIC = -0.75


def _unnormalized(x: Tensor, size: int, align: bool) -> Tensor:
    """From -1 … 1 to element numbers."""
    if align:
        return (x + 1) / 2 * (size - 1)
    return ((x + 1) * size - 1) / 2


def _reflected(x: Tensor, low: float, high: float) -> Tensor:
    span = high - low
    if span == 0:
        return x * 0
    x = (x - low).abs()
    flips = (x / span).floor()
    extra = x - flips * span
    return F.where(flips % 2 == 0, extra + low, span - extra + low)


def _bounded(x: Tensor, size: int, padding: int, align: bool) -> Tensor:
    """Points brought back into the picture, where the padding is not zeros."""
    if padding == _REFLECTION:
        low, high = (0, size - 1) if align else (-0.5, size - 0.5)
        x = _reflected(x, low, high)
    if padding != _ZEROS:
        x = x.clamp(0, size - 1)
    return x


def _gathered(input: Tensor, index: list[Tensor]) -> Tensor:
    """The elements (n, c, *points) at whole-numbered points, zeros outside."""
    n, c, *sizes = input.layout.shape
    points = index[0].layout.shape[1:]
    flat = F.zeros_like(index[0], dtype=dtypes.int64)
    inside = F.ones_like(flat, dtype=dtypes.bool_)
    for place, size in zip(index, sizes, strict=True):
        whole = place.detach().nan_to_num(-1.0, -1.0, -1.0).clamp(-2, size + 1).to(dtypes.int64)
        inside = inside & (whole >= 0) & (whole < size)
        flat = flat * size + whole.clamp(0, size - 1)
    count = 1
    for p in points:
        count *= p
    rows = flat.reshape((n, 1, count)).expand((n, c, count))
    values = input.reshape((n, c, -1)).gather(2, rows).reshape((n, c, *points))
    return values * inside.unsqueeze(1)


def _corners(dims: int) -> list[tuple[int, ...]]:
    corners: list[tuple[int, ...]] = [()]
    for _ in range(dims):
        corners = [(*c, i) for c in corners for i in (0, 1)]
    return corners


def _cubic_weights(t: Tensor) -> list[Tensor]:
    a = _CUBIC

    def far(x: Tensor) -> Tensor:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    def near(x: Tensor) -> Tensor:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _sampled(input: Tensor, grid: Tensor, mode: int, padding: int, align: bool) -> Tensor:
    """The samples, made of operations that know their derivatives."""
    dtype = input.dtype
    if dtype.low:
        input, grid = input.to(dtypes.float32), grid.to(dtypes.float32)
    sizes = input.layout.shape[2:]
    dims = len(sizes)
    # The grid names the last dimension first.
    raw = [_unnormalized(grid.select(-1, dims - 1 - d), sizes[d], align) for d in range(dims)]
    if mode == _BICUBIC:
        y = _bicubic(input, raw, padding, align)
    else:
        points = [_bounded(x, n, padding, align) for x, n in zip(raw, sizes, strict=True)]
        if mode == _NEAREST:
            y = _gathered(input, [p.detach().round() for p in points]) + _nothing(grid)
        else:
            y = _multilinear(input, points)
    return y if y.dtype is dtype else y.to(dtype)


def _nothing(grid: Tensor) -> Tensor:
    """Zeros that depend on the grid, so that its gradient is zeros and not missing."""
    return (grid.select(-1, 0) * 0).nan_to_num(0.0).unsqueeze(1)


def _multilinear(input: Tensor, points: list[Tensor]) -> Tensor:
    lows = [p.detach().floor() for p in points]
    total: Any = None
    for corner in _corners(len(points)):
        weight: Any = 1.0
        for side, p, low in zip(corner, points, lows, strict=True):
            share = p - low
            weight = weight * (share if side else 1 - share)
        value = _gathered(input, [low + side for low, side in zip(lows, corner, strict=True)])
        part = value * weight.unsqueeze(1)
        total = part if total is None else total + part
    return total


def _bicubic(input: Tensor, raw: list[Tensor], padding: int, align: bool) -> Tensor:
    height, width = input.layout.shape[2:]
    top, left = raw[0].detach().floor(), raw[1].detach().floor()
    down, across = _cubic_weights(raw[0] - top), _cubic_weights(raw[1] - left)
    total: Any = None
    for i in range(4):
        row: Any = None
        y = _bounded(top + (i - 1), height, padding, align)
        for j in range(4):
            x = _bounded(left + (j - 1), width, padding, align)
            part = _gathered(input, [y, x]) * across[j].unsqueeze(1)
            row = part if row is None else row + part
        part = row * down[i].unsqueeze(1)
        total = part if total is None else total + part
    return total


def _gradients(
    g: Tensor,
    input: Tensor,
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
    needed: tuple[bool, ...],
) -> list[Any]:
    rest = (interpolation_mode, padding_mode, align_corners)
    return differentiated(_sampled, g, (input, grid), needed, *rest)


def _check(input: Tensor, grid: Tensor, dims: int) -> None:
    shape, points = input.layout.shape, grid.layout.shape
    if input.size(0) != grid.size(0):
        raise TensorRuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with "
            f"sizes {list(shape)} and grid with sizes {list(points)}"
        )
    if points[-1] != len(shape) - 2:
        raise TensorRuntimeError(
            f"grid_sampler(): expected grid to have size {len(shape) - 2} in last dimension, but "
            f"got grid with sizes {list(points)}"
        )
    if len(shape) not in (4, 5) or len(points) != len(shape):
        raise TensorRuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but "
            f"got input with sizes {list(shape)} and grid with sizes {list(points)}"
        )
    for d in range(2, len(shape)):
        if shape[d] == 0:
            raise TensorRuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input "
                f"has sizes {list(shape)} with dimension {d} being empty"
            )


def _sampler(dims: int) -> None:
    def body(
        input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
    ) -> Made:
        check_takes("f", f"grid_sampler_{dims}d_cpu_kernel_impl", input.dtype)
        if input.dtype is not grid.dtype:
            raise DtypeError(
                f"expected scalar type {input.dtype.title} but found {grid.dtype.title}"
            )
        shape = (input.size(0), input.size(1), *grid.layout.shape[1:-1])

        def run(xp: Any) -> Any:
            if 0 in shape:
                return xp.zeros(shape, input.kind.np)
            return array_of(_sampled, input, grid, interpolation_mode, padding_mode, align_corners)

        return made(input.dtype, shape, run)

    body.__doc__ = "A picture sampled at the points of a grid."
    kernel(
        name=f"grid_sampler_{dims}d",
        node=f"GridSampler{dims}DBackward0",
        vjp={"input,grid": Native(f"GridSampler{dims}DBackwardBackward0", _gradients)},
        method=False,
        out=False,
        example=f"grid_sampler_{dims}d(ones({', '.join(['1'] * (dims + 2))}), "
        f"zeros({', '.join(['1'] * (dims + 1))}, {dims}), 0, 0, False)",
    )(body)


for _dims in (2, 3):
    _sampler(_dims)


@composite(
    method=False,
    out=False,
    example="grid_sampler(ones(1, 1, 2, 2), zeros(1, 1, 1, 2), 0, 0, False)",
)
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """A picture sampled at the points of a grid; the modes are numbers."""
    dims = input.layout.ndim - 2
    _check(input, grid, dims)
    if dims == 3 and interpolation_mode == _BICUBIC:
        raise TensorRuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    return ops[f"grid_sampler_{dims}d"].function(
        input, grid, interpolation_mode, padding_mode, align_corners
    )


_CHANGED = (
    "Default {} behavior has changed to align_corners=False since 1.3.0. Please specify "
    "align_corners=True if the old behavior is desired. See the documentation of {} for details."
)


@functional(
    example="nn.functional.grid_sample(ones(1, 1, 2, 2), zeros(1, 1, 1, 2), align_corners=False)"
)
def grid_sample(
    input: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: Any = None,
) -> Any:
    """A picture sampled at points given as (x, y) from -1 to 1 for each output element.

    ``padding_mode`` says what is outside: "zeros", "border" or "reflection".
    """
    if mode not in _MODES:
        raise TensorValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or "
            f"'bicubic', but got: '{mode}'"
        )
    if padding_mode not in _PADDINGS:
        raise TensorValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    if align_corners is None:
        warn(_CHANGED.format("grid_sample and affine_grid", "grid_sample"))
        align_corners = False
    return ops["grid_sampler"].function(
        input, grid, _MODES[mode], _PADDINGS[padding_mode], align_corners
    )


def _steps(size: int, align: bool, dtype: Any) -> Tensor:
    if size <= 1:
        return F.zeros(size, dtype=dtype)
    line = F.linspace(-1, 1, size, dtype=dtype)
    return line if align else line * ((size - 1) / size)


def _grid(theta: Tensor, size: tuple[int, ...], align: bool) -> Tensor:
    """(n, *sizes, dims): the points of a regular grid, mapped by ``theta``."""
    n, _, *sizes = size
    dims = len(sizes)
    parts = []
    for d in reversed(range(dims)):
        shape = [1] * dims
        shape[d] = sizes[d]
        parts.append(_steps(sizes[d], align, theta.dtype).reshape(shape).expand(sizes))
    parts.append(F.ones(sizes, dtype=theta.dtype))
    base = F.stack(parts, -1).reshape((1, -1, dims + 1)).expand((n, -1, dims + 1))
    return base.bmm(theta.transpose(1, 2)).reshape((n, *sizes, dims))


def _grid_gradients(g: Tensor, theta: Tensor, size: Any, align_corners: bool) -> Tensor:
    found: Tensor = differentiated(_grid, g, (theta,), (True,), tuple(size), align_corners)[0]
    return found


@kernel(
    vjp={"theta": _grid_gradients},
    method=False,
    out=False,
    example="affine_grid_generator(ones(1, 2, 3), (1, 1, 2, 2), False)",
)
def affine_grid_generator(theta: Tensor, size: Any, align_corners: bool) -> Made:
    """The points that an affine map takes a regular grid to."""
    n, _, *sizes = size
    if theta.size(0) != n or theta.size(2) != len(sizes) + 1:
        cells = 1
        for s in sizes:
            cells *= s
        raise TensorRuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{n}, {len(sizes) + 1}] but got: [{theta.size(0)}, {theta.size(2)}]."
        )
    if theta.dtype.category < dtypes.FLOAT:
        raise DtypeError(f"expected scalar type Float but found {theta.dtype.title}")
    shape = (n, *sizes, len(sizes))
    return made(theta.dtype, shape, lambda xp: array_of(_grid, theta, tuple(size), align_corners))


@functional(example="nn.functional.affine_grid(ones(1, 2, 3), (1, 1, 2, 2), False)")
def affine_grid(theta: Any, size: Any, align_corners: Any = None) -> Any:
    """A grid for grid_sample: the points that an affine map takes a regular grid to."""
    if align_corners is None:
        warn(_CHANGED.format("grid_sample and affine_grid", "grid_sample"))
        align_corners = False
    if not theta.dtype.is_floating_point:
        raise TensorValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    dims = len(size) - 2
    if dims not in (2, 3):
        raise TensorNotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {size}."
        )
    wanted = (dims, dims + 1)
    if theta.dim() != 3 or tuple(theta.size())[1:] != wanted:
        raise TensorValueError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size "
            f"{size}. Got {theta.size()}."
        )
    if align_corners and min(size[2:]) == 1:
        warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when "
            "align_corners=True. This is not an intended use case of affine_grid. See the "
            "documentation of affine_grid for details."
        )
    elif min(size) <= 0:
        raise TensorValueError(f"Expected non-zero, positive output size. Got {size}")
    return ops["affine_grid_generator"].function(theta, size, align_corners)
