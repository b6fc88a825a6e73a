"""float32 log, sine and cosine with the bits of Cephes' polynomials in fused arithmetic.

For arguments in the ranges of Box and Muller's transform only: log on (0, 1], sine and cosine on
[0, 2 pi]. The polynomials are those of S. Moshier's Cephes library (logf, sinf, cosf). A fused
multiply-add of float32 values is made here in float64, where the product is exact, and rounded
to float32; the second rounding shows with probability 2**-29.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_F32 = np.float32
_F64 = np.float64

_LOG = tuple(
    float(_F32(c))
    for c in (
        7.0376836292e-2,
        -1.1514610310e-1,
        1.1676998740e-1,
        -1.2420140846e-1,
        1.4249322787e-1,
        -1.6668057665e-1,
        2.0000714765e-1,
        -2.4999993993e-1,
        3.3333331174e-1,
    )
)
_LN2_LOW = _F32(-2.12194440e-4)
_LN2_HIGH = 0.693359375
_SQRT_HALF = _F32(0.707106781186547524)
_SIN = tuple(float(_F32(c)) for c in (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1))
_COS = tuple(
    float(_F32(c)) for c in (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
)
_FOUR_OVER_PI = _F32(1.27323954473516)
# pi / 4 in three parts, the first two short enough for exact products.
_QUARTER_PI = tuple(
    float(_F32(c)) for c in (0.78515625, 2.4187564849853515625e-4, 3.77489497744594108e-8)
)
_MANTISSA = np.int32(0x007FFFFF)
_HALF_EXPONENT = np.int32(0x3F000000)


class _Panel:
    """Work arrays for one panel: allocating them anew costs as much as the arithmetic."""

    __slots__ = ("rounded", "wide")

    def __init__(self, n: int) -> None:
        self.wide = np.empty(n)
        self.rounded = np.empty(n, _F32)

    def fma(self, a: Any, b: Any, c: Any) -> NDArray[np.float64]:
        """round32(a * b + c) as float64, in the panel's own array (`a` may be that array)."""
        wide = self.wide
        np.multiply(a, b, out=wide)
        np.add(wide, c, out=wide)
        self.rounded[:] = wide
        wide[:] = self.rounded
        return wide

    def horner(self, coefficients: tuple[float, ...], x: NDArray[np.float64]) -> None:
        """The polynomial at x, rounded at each step; the result is in `rounded`."""
        value: Any = coefficients[0]
        for coefficient in coefficients[1:]:
            value = self.fma(value, x, coefficient)


def log(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Natural logarithm of normal numbers in (0, 1]."""
    panel = _Panel(x.size)
    bits = x.view(np.int32)
    exponent = (bits >> np.int32(23)).astype(_F32)
    exponent -= _F32(126)
    mantissa = ((bits & _MANTISSA) | _HALF_EXPONENT).view(_F32)
    small = mantissa < _SQRT_HALF
    exponent -= small
    m = mantissa - _F32(1)
    m += mantissa * small
    square = m * m
    panel.horner(_LOG, m.astype(_F64))
    series = panel.rounded * m
    wide_square = square.astype(_F64)
    panel.fma(series, wide_square, exponent * _LN2_LOW)
    panel.fma(wide_square, -0.5, panel.rounded.astype(_F64))
    m += panel.rounded
    panel.fma(exponent, _LN2_HIGH, m)
    return panel.rounded


def sin_cos(x: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Sine and cosine of angles in [0, 2 pi]."""
    panel = _Panel(x.size)
    octant = (x * _FOUR_OVER_PI).astype(np.int32)
    octant += np.int32(1)
    octant &= np.int32(~1)
    turns = octant.astype(_F64)
    rest: Any = x
    for part in _QUARTER_PI:
        rest = panel.fma(turns, -part, rest.copy() if rest is panel.wide else rest)
    wide_rest = panel.wide.copy()
    square = panel.rounded * panel.rounded
    wide_square = square.astype(_F64)

    panel.horner(_COS, wide_square)
    even = panel.rounded * square
    panel.fma(even, wide_square, wide_square * -0.5)
    even = panel.rounded + _F32(1)

    panel.horner(_SIN, wide_square)
    odd = panel.rounded * square
    panel.fma(odd, wide_rest, wide_rest)
    odd = panel.rounded

    swapped = (octant & np.int32(2)) != 0
    sines = np.where(swapped, even, odd)
    cosines = np.where(swapped, odd, even)
    # Signs, as bits: the sine turns negative in octants 4 to 7, the cosine in 2 to 5.
    sines.view(np.int32)[:] ^= (octant & np.int32(4)) << np.int32(29)
    cosines.view(np.int32)[:] ^= (~(octant - np.int32(2)) & np.int32(4)) << np.int32(29)
    return sines, cosines
