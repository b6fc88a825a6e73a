"""Resizing of pictures: interpolate and its modes.

Every mode is, dimension by dimension, a product with a matrix whose rows say from which elements
an output element is made; its derivative is the product with the transpose.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.errors import TensorNotImplementedError, TensorRuntimeError, TensorValueError
from engine.kinds import kernel, made, working
from engine.kinds.functional import functional
from engine.kinds.native import Native
from engine.kinds.reduction import check_takes
from engine.modes import warn
from engine.ops.padding import kept_format
from engine.registry import F, ops
from engine.tensor import Tensor

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.parameter_types import Dims

_CUBIC = -0.75
_CUBIC_ANTIALIASED = -0.5


def _scale(size: int, out: int, factor: float | None, align: bool) -> Any:
    """How far the input advances for each element of the output."""
    if align:
        return np.float64(size - 1) / (out - 1) if out > 1 else np.float64(0)
    return np.float64(1.0 / factor if factor is not None and factor > 0 else size / out)


def _nearest(size: int, out: int, factor: float | None, exact: bool) -> Any:
    """The element taken for each element of the output."""
    scale = np.float32(_scale(size, out, factor, False))
    places = np.arange(out, dtype=np.float32)
    places = (places + np.float32(0.5)) * scale if exact else places * scale
    return np.minimum(np.floor(places).astype("int64"), size - 1)


def _cubic(t: Any, a: float) -> Any:
    t = np.abs(t)
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0.0))


def _lanczos(t: Any) -> Any:
    return np.where(np.abs(t) < 3, np.sinc(t) * np.sinc(t / 3), 0.0)


def _triangle(t: Any) -> Any:
    return np.maximum(1 - np.abs(t), 0.0)


_ANTIALIASED = {
    "linear": (1.0, _triangle),
    "cubic": (2.0, lambda t: _cubic(t, _CUBIC_ANTIALIASED)),
    "lanczos": (3.0, _lanczos),
}


def _smooth_matrix(mode: str, size: int, out: int, factor: float | None, align: bool) -> Any:
    """The matrix of a mode whose support grows where the picture shrinks."""
    reach, weigh = _ANTIALIASED[mode]
    scale = float(_scale(size, out, factor, align))
    support = reach * scale if scale >= 1 else reach
    inverse = 1 / scale if scale >= 1 else 1.0
    matrix = np.zeros((out, size))
    for i in range(out):
        centre = scale * (i + 0.5)
        first = max(int(centre - support + 0.5), 0)
        last = min(int(centre + support + 0.5), size)
        weights = weigh((np.arange(first, last) - centre + 0.5) * inverse)
        total = weights.sum()
        matrix[i, first:last] = weights / total if total else weights
    return matrix


def _matrix(
    mode: str, size: int, out: int, factor: float | None, align: bool, smooth: bool, dtype: Any
) -> Any:
    """What an output is made of: (out, size)."""
    if smooth:
        return _smooth_matrix(mode, size, out, factor, align)
    matrix = np.zeros((out, size))
    rows = np.arange(out)
    if mode in ("nearest", "nearest-exact"):
        matrix[rows, _nearest(size, out, factor, mode == "nearest-exact")] = 1
        return matrix
    scale = _scale(size, out, factor, align).astype(dtype)
    places = rows.astype(dtype)
    half = dtype.type(0.5)
    source = places * scale if align else (places + half) * scale - half
    if mode == "linear":
        source = np.maximum(source, dtype.type(0))
        low = np.minimum(np.floor(source).astype("int64"), size - 1)
        share = np.minimum(np.maximum(source - low, 0), 1)
        np.add.at(matrix, (rows, low), 1 - share)
        np.add.at(matrix, (rows, np.minimum(low + 1, size - 1)), share)
        return matrix
    low = np.floor(source).astype("int64")
    for step in range(-1, 3):
        place = np.clip(low + step, 0, size - 1)
        np.add.at(matrix, (rows, place), _cubic(source - low - step, _CUBIC))
    return matrix


def _apply(x: Any, matrix: Any, axis: int) -> Any:
    return np.moveaxis(np.tensordot(x, matrix, axes=(axis, 1)), -1, axis)


_SIDES = {1: "W", 2: "HW", 3: "DHW"}


def _told(sizes: Any) -> str:
    sides = _SIDES[len(sizes)]
    return ", ".join(f"{side}: {n}" for side, n in zip(sides, sizes, strict=True))


def _check_sizes(shape: tuple[int, ...], out: Any) -> None:
    dims = len(out)
    if any(n <= 0 for n in (*shape[2:], *out)):
        joint = " and" if dims == 1 else ""
        raise TensorRuntimeError(
            f"Input and output sizes should be greater than 0, but got input "
            f"({_told(shape[2:])}){joint} output ({_told(out)})"
        )
    if shape[1] == 0:
        raise TensorRuntimeError(
            f"Non-empty {dims + 2}D data tensor expected but got a tensor with sizes {list(shape)}"
        )


_STUBS = {
    ("nearest", 2): "upsample_nearest2d_channels_last",
    ("nearest-exact", 2): "upsample_nearest2d_channels_last",
    ("linear", 2): "upsample_bilinear2d_channels_last",
}


def _stub(mode: str, dims: int) -> str:
    return _STUBS.get((mode, dims), f"compute_indices_weights_{mode.partition('-')[0]}")


def _upsample(name: str, node: str, mode: str, dims: int, smooth: bool = False) -> None:
    """One mode for one number of dimensions."""

    def matrices(
        shape: tuple[int, ...], out: Any, align: bool, factors: Any, dtype: Any
    ) -> list[Any]:
        return [
            _matrix(mode, size, n, None if factors is None else factors[d], align, smooth, dtype)
            for d, (size, n) in enumerate(zip(shape[2:], out, strict=True))
        ]

    def gradient(
        g: Tensor,
        input_shape: tuple[int, ...],
        output_size: Any,
        align_corners: bool,
        scale_factors: Any,
    ) -> Tensor:
        wide = np.dtype("float64" if g.dtype.itemsize == 8 else "float32")
        found = matrices(input_shape, output_size, align_corners, scale_factors, wide)
        for d, matrix in enumerate(found):
            share = F.tensor(matrix.tolist(), dtype=g.dtype).reshape(matrix.shape)
            g = g.movedim(2 + d, -1).matmul(share).movedim(-1, 2 + d)
        return g.contiguous()

    def body(
        input: Tensor,
        output_size: Dims,
        align_corners: bool = False,
        scale_factors: Any = None,
    ) -> Made:
        shape = input.layout.shape
        _check_sizes(shape, output_size)
        if input.dtype.name != "uint8":
            check_takes("f", _stub(mode, dims), input.dtype)
        out = (*shape[:2], *output_size)

        def run(xp: Any) -> Any:
            if mode.startswith("nearest"):
                x = input.array
                for d, n in enumerate(output_size):
                    factor = None if scale_factors is None else scale_factors[d]
                    index = _nearest(shape[2 + d], n, factor, mode != "nearest")
                    x = x.take(xp.asarray(index), axis=2 + d)
                return x
            x = working(input)
            if x.dtype.kind != "f":
                x = x.astype("float32")
            for d, matrix in enumerate(
                matrices(shape, output_size, align_corners, scale_factors, x.dtype)
            ):
                x = _apply(x, matrix.astype(x.dtype), 2 + d)
            if input.dtype.is_integral:
                x = xp.clip(xp.floor(x + 0.5), 0, 255)
            return x

        return made(input.dtype, kept_format(out, input.layout), run)

    body.__doc__ = f"Resized by the mode {mode}."
    kernel(
        name=f"nn.{name}",
        node=f"{node}Backward0",
        vjp=Native(f"{node}BackwardBackward0", gradient),
        function=False,
        method=False,
        out=False,
    )(body)


for _dims in (1, 2, 3):
    _upsample(f"upsample_nearest{_dims}d", f"UpsampleNearest{_dims}D", "nearest", _dims)
    _upsample(
        f"_upsample_nearest_exact{_dims}d",
        f"UpsampleNearestExact{_dims}D",
        "nearest-exact",
        _dims,
    )
_upsample("upsample_linear1d", "UpsampleLinear1D", "linear", 1)
_upsample("upsample_bilinear2d", "UpsampleBilinear2D", "linear", 2)
_upsample("upsample_trilinear3d", "UpsampleTrilinear3D", "linear", 3)
_upsample("upsample_bicubic2d", "UpsampleBicubic2D", "cubic", 2)
_upsample("_upsample_bilinear2d_aa", "UpsampleBilinear2DAa", "linear", 2, True)
_upsample("_upsample_bicubic2d_aa", "UpsampleBicubic2DAa", "cubic", 2, True)
_upsample("_upsample_lanczos2d_aa", "UpsampleLanczos2DAa", "lanczos", 2, True)

_LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2, "lanczos": 2}
_NAMES = {
    ("nearest", 1): "upsample_nearest1d",
    ("nearest", 2): "upsample_nearest2d",
    ("nearest", 3): "upsample_nearest3d",
    ("nearest-exact", 1): "_upsample_nearest_exact1d",
    ("nearest-exact", 2): "_upsample_nearest_exact2d",
    ("nearest-exact", 3): "_upsample_nearest_exact3d",
    ("linear", 1): "upsample_linear1d",
    ("bilinear", 2): "upsample_bilinear2d",
    ("trilinear", 3): "upsample_trilinear3d",
    ("bicubic", 2): "upsample_bicubic2d",
    ("lanczos", 2): "_upsample_lanczos2d_aa",
}
_NEEDED = {"linear": 3, "bilinear": 4, "trilinear": 5}


def _sizes_wanted(
    input: Any, dims: int, size: Any, scale_factor: Any
) -> tuple[list[Any] | None, list[float] | None]:
    """The size or the factors asked for, one for each dimension."""
    if size is not None and scale_factor is not None:
        raise TensorValueError("only one of size or scale_factor should be defined")
    own = list(input.size())[2:]
    if size is not None:
        if not isinstance(size, (list, tuple)):
            return [int(size.item()) if isinstance(size, Tensor) else size] * dims, None
        if len(size) != dims:
            raise TensorValueError(
                "Input and output must have the same number of spatial dimensions, but got input "
                f"with spatial dimensions of {own} and output size of {size}. Please provide "
                "input tensor in (N, C, d1, d2, ...,dK) format and output size in "
                "(o1, o2, ...,oK) format."
            )
        return list(size), None
    if scale_factor is None:
        raise TensorValueError("either size or scale_factor should be defined")
    if not isinstance(scale_factor, (list, tuple)):
        return None, [scale_factor] * dims
    if len(scale_factor) != dims:
        raise TensorValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got "
            f"input with spatial dimensions of {own} and scale_factor of shape {scale_factor}. "
            "Please provide input tensor in (N, C, d1, d2, ...,dK) format and scale_factor in "
            "(s1, s2, ...,sK) format."
        )
    return None, list(scale_factor)


def _check_options(
    input: Any, mode: str, align_corners: Any, antialias: bool, size: Any, recompute: Any
) -> None:
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise TensorValueError(
            "align_corners option can only be set with the interpolating modes: linear | "
            "bilinear | bicubic | trilinear"
        )
    if recompute is not None and recompute and size is not None:
        raise TensorValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and input.dim() == 4):
        raise TensorValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires "
            "a 4-D tensor as input"
        )


def _check_mode(input: Any, mode: str) -> None:
    """Refuse a mode that there is none of for the input's dimensions."""
    ndim = input.dim()
    if ndim in (3, 4, 5):
        if (mode, ndim - 2) in _NAMES or mode == "area":
            return
        if mode in _NEEDED:
            raise TensorNotImplementedError(
                f"Got {ndim}D input, but {mode} mode needs {_NEEDED[mode]}D input"
            )
    raise TensorNotImplementedError(
        "Input Error: Only 3D, 4D and 5D input Tensors supported "
        f"(got {ndim}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | "
        f"lanczos | area | nearest-exact (got {mode})"
    )


@functional(
    example="nn.functional.interpolate(ones(1, 1, 2, 2), scale_factor=2)",
    samples=tuple(
        f"nn.functional.interpolate(arange({2**n}.).reshape({(1, 1, *(2,) * n)}), size=3, {rest})"
        for n, rest in (
            (1, "mode='nearest'"),
            (1, "mode='nearest-exact'"),
            (2, "mode='nearest-exact'"),
            (3, "mode='nearest'"),
            (3, "mode='nearest-exact'"),
            (1, "mode='linear'"),
            (3, "mode='trilinear', align_corners=True"),
            (2, "mode='bicubic'"),
            (2, "mode='bilinear', antialias=True"),
            (2, "mode='bicubic', antialias=True"),
            (2, "mode='lanczos', antialias=True"),
        )
    ),
)
def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: Any = None,
    recompute_scale_factor: Any = None,
    antialias: bool = False,
) -> Any:
    """(batch, channels, sizes) resized to ``size`` or by ``scale_factor``.

    ``mode`` is nearest, nearest-exact, area, linear, bilinear, bicubic, trilinear or lanczos.
    ``align_corners`` puts the outermost elements' centres on each other.
    """
    dims = input.dim() - 2
    _check_options(input, mode, align_corners, antialias, None, None)
    align = bool(align_corners)
    wanted, factors = _sizes_wanted(input, dims, size, scale_factor)
    _check_options(input, mode, None, False, size, recompute_scale_factor)
    if factors is not None and (mode == "area" or recompute_scale_factor):
        wanted = [math.floor(n * f) for n, f in zip(list(input.size())[2:], factors, strict=True)]
        factors = None
    _check_mode(input, mode)
    if mode == "area":
        return getattr(F, f"adaptive_avg_pool{dims}d")(input, tuple(wanted or ()))
    if mode == "lanczos" and align:
        raise TensorValueError("Lanczos mode does not support align_corners=True")
    if mode == "lanczos" and not antialias:
        raise TensorValueError("Lanczos mode requires antialias=True")
    if wanted is None:
        assert factors is not None
        own = list(input.size())[2:]
        wanted = [int(math.floor(n * f)) for n, f in zip(own, factors, strict=True)]
    name = _NAMES[mode, dims]
    if antialias and mode in ("bilinear", "bicubic"):
        name = f"_upsample_{mode}2d_aa"
    return ops[f"nn.{name}"].function(input, wanted, align, factors)


@functional(example="nn.functional.upsample(ones(1, 1, 2, 2), scale_factor=2)")
def upsample(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: Any = None,
) -> Any:
    """interpolate under its old name."""
    warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, mode, align_corners)


@functional(example="nn.functional.upsample_nearest(ones(1, 1, 2, 2), scale_factor=2)")
def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """interpolate by the mode nearest."""
    warn("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, mode="nearest")


@functional(example="nn.functional.upsample_bilinear(ones(1, 1, 2, 2), scale_factor=2)")
def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """interpolate by the mode bilinear with aligned corners."""
    warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead."
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
