"""Normal draws by Box and Muller, in the two ways PyTorch's CPU kernel has.

Below 16 elements, or into a destination that is not contiguous, elements come one after another
from pairs of float64 uniforms, and the second of a pair is kept in the generator for the next
call. Else the destination is filled with uniforms and each block of 16 is transformed: the first
eight give the radius, the last eight the angle; a broken last block is drawn afresh over the last
16 elements. float16 and bfloat16 draw block by block in float32, so that they skip the draws of
the broken block which float32 and float64 make and throw away.

PyTorch's float32 blocks use Cephes' polynomials with fused multiply-adds. They are followed to
the last bit up to EXACT elements: measured, 17 ns an element in numpy against 2 with numpy's own
log, sin and cos, which give other bits in 14 % of the elements, at most 3 ulp away. Above EXACT
numpy's are used.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.dtypes import by_name
from engine.errors import TensorRuntimeError
from engine.random import libm
from engine.random.cephes import log, sin_cos
from engine.random.uniform import cast, floats24, floats53, fused

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engine.random.source import Generator

EXACT = 1 << 18

_BLOCK = 16
_PANEL = 512 * _BLOCK  # what is transformed at a time; float64 copies of half of it fit in 32 KB
_FEW_PAIRS = 32
_TWO_PI = 2 * math.pi
_PARTS = {"complex64": "float32", "complex128": "float64"}


def normal(
    generator: Generator,
    n: int,
    dtype: str,
    mean: float = 0.0,
    std: float = 1.0,
    *,
    contiguous: bool = True,
) -> NDArray[Any]:
    """`n` normal draws; `contiguous` tells how the destination lies.

    complex dtypes draw real and imaginary parts in turn, each with `mean` and std / sqrt(2).
    Raises RuntimeError for a negative (or NaN) std.
    """
    if not std >= 0:
        raise TensorRuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if dtype in _PARTS:
        std /= math.sqrt(2)
        parts = normal(generator, 2 * n, _PARTS[dtype], mean, std, contiguous=contiguous)
        return parts.view(dtype)
    if n < _BLOCK or not contiguous:
        return cast(fused(serial(generator, n), std, mean), dtype)
    if dtype == "float64":
        return _filled(generator, n, floats53(generator, n), std, mean)
    std, mean = float(np.float32(std)), float(np.float32(mean))
    whole = n if dtype == "float32" else n - n % _BLOCK
    return cast(_filled(generator, n, floats24(generator, whole), std, mean), dtype)


def normal_tensors(
    generator: Generator,
    n: int,
    dtype: str,
    mean: NDArray[Any] | float,
    std: NDArray[Any] | float,
) -> NDArray[Any]:
    """torch.normal with a tensor for mean, std or both, flat and already broadcast.

    A number for std scales the draws before they are rounded to the dtype; a tensor multiplies
    what was rounded. Raises RuntimeError for a negative std.
    """
    if isinstance(std, np.ndarray):
        if std.size and not bool(std.min() >= 0):
            raise TensorRuntimeError("normal expects all elements of std >= 0.0")
        drawn = normal(generator, n, dtype)
        drawn *= std
    else:
        drawn = normal(generator, n, dtype, 0.0, std)
    drawn += mean if isinstance(mean, np.ndarray) else by_name[dtype].np.type(mean)
    return drawn


def serial(generator: Generator, n: int) -> NDArray[np.float64]:
    """`n` standard normals one after another, the generator's kept one first."""
    drawn = np.empty(n)
    kept = generator.next_normal
    start = 0
    if n and kept is not None:
        drawn[0] = kept
        generator.next_normal = None
        start = 1
    pairs = (n - start + 1) // 2
    if not pairs:
        return drawn
    uniforms = floats53(generator, 2 * pairs)
    if pairs <= _FEW_PAIRS:
        made = np.array(_pairs_one_by_one(uniforms.tolist()))
    else:
        radius = np.sqrt(-2.0 * libm.log1p(-uniforms[1::2]))
        angle = _TWO_PI * uniforms[::2]
        made = np.empty(2 * pairs)
        made[::2] = radius * libm.cos(angle)
        made[1::2] = radius * libm.sin(angle)
    drawn[start:] = made[: n - start]
    if (n - start) % 2:
        generator.next_normal = float(made[-1])
    return drawn


def _pairs_one_by_one(uniforms: list[float]) -> list[float]:
    made = []
    each = iter(uniforms)
    for u1, u2 in zip(each, each, strict=True):
        radius = math.sqrt(-2.0 * math.log1p(-u2))
        angle = _TWO_PI * u1
        made.append(radius * math.cos(angle))
        made.append(radius * math.sin(angle))
    return made


def _filled(
    generator: Generator, n: int, uniforms: NDArray[Any], std: float, mean: float
) -> NDArray[Any]:
    """Blocks of 16 from uniforms (float32 or float64); draws the last block if n breaks one."""
    whole = n - n % _BLOCK
    tail: NDArray[Any] | None = None
    if whole < n:
        draw = floats53 if uniforms.dtype == np.float64 else floats24
        tail = draw(generator, _BLOCK)
    if uniforms.dtype == np.float64:
        transform = _transform_float64
    else:
        transform = _transform_cephes if n <= EXACT else _transform_float32
    if tail is not None and n <= _PANEL:
        both = np.concatenate([uniforms[:whole], tail])
        transform(both, std, mean)
        drawn = np.empty(n, uniforms.dtype)
        drawn[:whole] = both[:whole]
        drawn[n - _BLOCK :] = both[whole:]
        return drawn
    if uniforms.size < n:
        uniforms = np.concatenate([uniforms, np.empty(n - uniforms.size, uniforms.dtype)])
    for start in range(0, whole, _PANEL):
        transform(uniforms[start : min(start + _PANEL, whole)], std, mean)
    if tail is not None:
        transform(tail, std, mean)
        uniforms[n - _BLOCK :] = tail
    return uniforms


def _halves(uniforms: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    blocks = uniforms.reshape(-1, 2, _BLOCK // 2)
    return blocks[:, 0], blocks[:, 1]


def _transform_float64(uniforms: NDArray[Any], std: float, mean: float) -> None:
    first, second = _halves(uniforms)
    shape = first.shape
    radius = np.sqrt(-2.0 * libm.log((1.0 - first).ravel()))
    angle = (_TWO_PI * second).ravel()
    first[:] = fused(radius * libm.cos(angle), std, mean).reshape(shape)
    second[:] = fused(radius * libm.sin(angle), std, mean).reshape(shape)


def _transform_float32(uniforms: NDArray[Any], std: float, mean: float) -> None:
    first, second = _halves(uniforms)
    radius = np.sqrt(np.float32(-2) * np.log(np.float32(1) - first))
    angle = np.float32(_TWO_PI) * second
    first[:] = fused(radius * np.cos(angle), std, mean)
    second[:] = fused(radius * np.sin(angle), std, mean)


def _transform_cephes(uniforms: NDArray[Any], std: float, mean: float) -> None:
    first, second = _halves(uniforms)
    shape = first.shape
    radius = np.sqrt(np.float32(-2) * log((np.float32(1) - first).ravel()))
    sines, cosines = sin_cos((np.float32(_TWO_PI) * second).ravel())
    first[:] = fused(radius * cosines, std, mean).reshape(shape)
    second[:] = fused(radius * sines, std, mean).reshape(shape)
