"""Orthogonal polynomials and Bessel functions of torch.special; none has a derivative."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.dtypes import DType
from engine.errors import DtypeNotImplementedError
from engine.kinds import INT_TO_FLOAT, pointwise

if TYPE_CHECKING:
    from engine.parameter_types import Operand
    from engine.tensor import Tensor


def _wide(stub: str) -> Any:
    def promote(common: DType) -> tuple[DType, DType]:
        if common.low:
            raise DtypeNotImplementedError(f"\"{stub}\" not implemented for '{common.title}'")
        return INT_TO_FLOAT(common)

    return promote


def _bessel(name: str, scipy_name: str, doc: str) -> None:
    """Enter ``special.<name>``, computed by the scipy function of that name."""

    def kernel(xp: Any, x: Any) -> Any:
        import scipy.special

        y = getattr(scipy.special, scipy_name)(x)
        return y[0] if scipy_name == "airy" else y

    def body(input: Tensor) -> Tensor: ...

    body.__doc__ = doc
    pointwise(
        kernel=kernel,
        promote=_wide(f"{name}_cpu"),
        takes="bif",
        stub=f"{name}_cpu",
        name=f"special.{name}",
        method=False,
        inplace=False,
        example=f"special.{name}(tensor([1., 2.]))",
    )(body)


_BESSEL = {
    "airy_ai": ("airy", "The Airy function Ai."),
    "bessel_j0": ("j0", "The Bessel function of the first kind of order 0."),
    "bessel_j1": ("j1", "The Bessel function of the first kind of order 1."),
    "bessel_y0": ("y0", "The Bessel function of the second kind of order 0."),
    "bessel_y1": ("y1", "The Bessel function of the second kind of order 1."),
    "modified_bessel_i0": ("i0", "The modified Bessel function of the first kind of order 0."),
    "modified_bessel_i1": ("i1", "The modified Bessel function of the first kind of order 1."),
    "modified_bessel_k0": ("k0", "The modified Bessel function of the second kind of order 0."),
    "modified_bessel_k1": ("k1", "The modified Bessel function of the second kind of order 1."),
    "scaled_modified_bessel_k0": ("k0e", "modified_bessel_k0 scaled by exp(x)."),
    "scaled_modified_bessel_k1": ("k1e", "modified_bessel_k1 scaled by exp(x)."),
}
for _name, (_scipy_name, _doc) in _BESSEL.items():
    _bessel(_name, _scipy_name, _doc)


def _spherical(xp: Any, x: Any) -> Any:
    near = xp.absolute(x) < 0.5
    square = x * x
    series = 1 - square / 6 * (1 - square / 20 * (1 - square / 42 * (1 - square / 72)))
    return xp.where(xp.isinf(x), 0, xp.where(near, series, xp.sin(x) / x)).astype(x.dtype)


@pointwise(
    kernel=_spherical,
    promote=_wide("spherical_bessel_j0_cpu"),
    takes="bif",
    name="special.spherical_bessel_j0",
    method=False,
    inplace=False,
    example="special.spherical_bessel_j0(tensor([0., 1.]))",
)
def spherical_bessel_j0(input: Tensor) -> Tensor:
    """The spherical Bessel function of the first kind of order 0, sin(x) / x."""


def _recur(first: Any, step: Any) -> Any:
    """Values of a family by its three-term recurrence, up to the largest degree asked for.

    ``first(x)`` is the polynomial of degree 1, ``step(x, k, q, p)`` that of degree k + 1 from
    those of degrees k and k - 1.
    """

    def values(xp: Any, x: Any, n: Any) -> Any:
        x, n = xp.broadcast_arrays(x, n)
        top = int(n.max(initial=0))
        p = xp.ones_like(x)
        y = xp.where(n < 0, 0, p).astype(x.dtype)
        q = first(x)
        for k in range(1, top + 1):
            y = xp.where(n >= k, q, y)
            p, q = q, step(x, x.dtype.type(k), q, p)
            if k % 64 == 0 and xp.isnan(q)[n > k].all():
                # Once a step overflowed, all that follow are NaN, however many they are.
                return xp.where(n > k, q, y)
        return y

    return values


def _chebyshev(first: Any, at_one: Any, at_minus_one: Any, angle: Any, from_degree: int) -> Any:
    """A Chebyshev family: exact at -1 and 1, by angles inside for high degrees."""
    by_recurrence = _recur(first, lambda x, k, q, p: (x + x) * q - p)

    def values(xp: Any, x: Any, n: Any) -> Any:
        x, n = xp.broadcast_arrays(x, n)
        size = xp.absolute(x)
        inside = (size < 1) & (n > from_degree)
        y = by_recurrence(xp, x, xp.where(inside | (size == 1), 0, n))
        y = xp.where(inside, angle(xp, xp.arccos(xp.where(inside, x, 0)), n), y)
        odd = xp.where(n % 2 == 0, 1, -1)
        y = xp.where(x == 1, at_one(n), xp.where(x == -1, at_minus_one(n, odd), y))
        return xp.where(n < 0, 0, y).astype(x.dtype)

    return values


_T = _chebyshev(lambda x: x, lambda n: 1, lambda n, odd: odd, lambda xp, a, n: xp.cos(n * a), 6)
_U = _chebyshev(
    lambda x: x + x,
    lambda n: n + 1,
    lambda n, odd: odd * (n + 1),
    lambda xp, a, n: xp.sin((n + 1) * a) / xp.sin(a),
    8,
)
_V = _chebyshev(
    lambda x: x + x - 1,
    lambda n: 1,
    lambda n, odd: odd * (n + n + 1),
    lambda xp, a, n: xp.cos((n + 0.5) * a) / xp.cos(a / 2),
    8,
)
_W = _chebyshev(
    lambda x: x + x + 1,
    lambda n: n + n + 1,
    lambda n, odd: odd,
    lambda xp, a, n: xp.sin((n + 0.5) * a) / xp.sin(a / 2),
    8,
)


def _legendre(xp: Any, x: Any, n: Any) -> Any:
    x, n = xp.broadcast_arrays(x, n)
    y = _recur(lambda x: x, lambda x, k, q, p: ((k + k + 1) * x * q - k * p) / (k + 1))(xp, x, n)
    edge = xp.where((x > 0) | (n % 2 == 0), 1, -1)
    return xp.where((xp.absolute(x) == 1) & (n >= 0), edge, y).astype(x.dtype)


_FAMILIES: dict[str, tuple[Any, bool]] = {
    "chebyshev_polynomial_t": (_T, False),
    "chebyshev_polynomial_u": (_U, False),
    "chebyshev_polynomial_v": (_V, False),
    "chebyshev_polynomial_w": (_W, False),
    "shifted_chebyshev_polynomial_t": (_T, True),
    "shifted_chebyshev_polynomial_u": (_U, True),
    "shifted_chebyshev_polynomial_v": (_V, True),
    "shifted_chebyshev_polynomial_w": (_W, True),
    "hermite_polynomial_h": (
        _recur(lambda x: x + x, lambda x, k, q, p: (x + x) * q - (k + k) * p),
        False,
    ),
    "hermite_polynomial_he": (_recur(lambda x: x, lambda x, k, q, p: x * q - k * p), False),
    "laguerre_polynomial_l": (
        _recur(lambda x: 1 - x, lambda x, k, q, p: ((k + k + 1 - x) * q - k * p) / (k + 1)),
        False,
    ),
    "legendre_polynomial_p": (_legendre, False),
}


def _polynomial(name: str, values: Any, shifted: bool) -> None:
    def kernel(xp: Any, x: Any, n: Any) -> Any:
        return values(xp, x + x - 1 if shifted else x, xp.trunc(n))

    def body(input: Operand, n: Operand) -> Tensor: ...

    words = name.replace("_polynomial_", " polynomial ").replace("_", " ")
    body.__doc__ = f"The {words} of degree ``n`` (0 for a negative one)."
    pointwise(
        kernel=kernel,
        promote=_wide(f"{name}_cpu"),
        takes="bif",
        stub=f"{name}_cpu",
        name=f"special.{name}",
        method=False,
        inplace=False,
        example=f"special.{name}(tensor([0.5, 2.]), 3)",
    )(body)


for _name, (_values, _shifted) in _FAMILIES.items():
    _polynomial(_name, _values, _shifted)
