"""Continuous distributions made of float64 uniforms or normals, one after another."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.errors import TensorRuntimeError
from engine.random import libm
from engine.random.normal import serial
from engine.random.uniform import cast, floats53, fused

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engine.random.source import Generator

_THIRD = np.float32(1) / np.float32(3)
_SQUEEZE = float(np.float32(0.0331))
# Draws are kept at or above the smallest normal number.
_TINY: dict[str, Any] = {"float32": np.float32(2.0**-126), "float64": np.float64(2.0**-1022)}


def exponential(generator: Generator, n: int, dtype: str, lambd: float = 1.0) -> NDArray[Any]:
    """-log(1 - u) / lambd. Raises RuntimeError unless lambd > 0."""
    if not lambd > 0:
        raise TensorRuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    drawn = libm.log1p(-floats53(generator, n))
    drawn *= -1.0 / lambd
    return cast(drawn, dtype)


def cauchy(
    generator: Generator, n: int, dtype: str, median: float = 0.0, sigma: float = 1.0
) -> NDArray[Any]:
    """median + sigma * tan(pi * (u - 1/2)). Raises RuntimeError unless sigma > 0."""
    if not sigma > 0:
        raise TensorRuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    tangents = libm.tan(math.pi * (floats53(generator, n) - 0.5))
    return cast(fused(tangents, sigma, median), dtype)


def log_normal(
    generator: Generator, n: int, dtype: str, mean: float = 1.0, std: float = 2.0
) -> NDArray[Any]:
    """exp of serial normals, at every size. Raises RuntimeError unless std > 0."""
    if not std > 0:
        raise TensorRuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    return cast(libm.exp(fused(serial(generator, n), std, mean)), dtype)


def gamma(generator: Generator, alpha: NDArray[Any]) -> NDArray[Any]:
    """Standard gamma draws for a flat float32 or float64 array of shapes, in its dtype.

    The method is Marsaglia and Tsang's (2000).
    """
    drawn = np.array([_one_gamma(generator, a) for a in alpha], np.float64).astype(alpha.dtype)
    kept: NDArray[Any] = np.maximum(drawn, _TINY[alpha.dtype.name])
    return kept


def dirichlet(generator: Generator, alpha: NDArray[Any]) -> NDArray[Any]:
    """Dirichlet draws for the rows of a 2-d array of concentrations, made in float64.

    At most 4 ulp from PyTorch's, which adds a row in another order.
    """
    raw = np.array([_one_gamma(generator, a) for a in alpha.ravel().astype(np.float64)])
    raw = raw.reshape(alpha.shape)
    drawn: NDArray[Any] = (raw / raw.sum(axis=-1, keepdims=True)).astype(alpha.dtype)
    below_one = np.nextafter(drawn.dtype.type(1), drawn.dtype.type(0))
    clipped: NDArray[Any] = np.minimum(np.maximum(drawn, _TINY[alpha.dtype.name]), below_one)
    return clipped


def _one_gamma(generator: Generator, alpha: Any) -> float:
    """One draw for a numpy scalar; PyTorch's constants are float32 even in float64 work."""
    kind = type(alpha)
    scale = 1.0
    if alpha == 0:
        return 0.0
    if alpha < 1:
        scale = (1 - generator.uniform53()) ** float(kind(1) / alpha)
        alpha = alpha + kind(1)
    d = float(alpha - kind(_THIRD))
    c = 1 / math.sqrt(9 * d)
    while True:
        x = float(serial(generator, 1)[0])
        root = 1 + c * x
        if root <= 0:
            continue
        v = root * root * root
        u = 1 - generator.uniform53()
        xx = x * x
        if u < 1 - _SQUEEZE * xx * xx or math.log(u) < 0.5 * xx + d * (1 - v + math.log(v)):
            return scale * d * v
