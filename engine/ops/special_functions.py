"""Error functions, gamma functions, Bessel functions and their kin; scipy computes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.dtypes import DType
from engine.errors import DtypeNotImplementedError, TensorRuntimeError
from engine.kinds import INT_TO_FLOAT, composite, kernel, made, pointwise, smooth, working
from engine.kinds.record import twin
from engine.kinds.twins import by_number
from engine.kinds.underived import unlisted
from engine.registry import F, method, ops
from engine.storage import ask
from engine.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.kinds import Made
    from engine.parameter_types import Operand

_PI = 3.141592653589793


def _scipy(name: str) -> Any:
    """A kernel that asks scipy, which is imported with the first call; numpy arrays only."""

    def kernel(xp: Any, *arrays: Any) -> Any:
        import scipy.special

        return getattr(scipy.special, name)(*arrays)

    return kernel


_SPACES = ("", "special.")


@smooth(
    kernel=_scipy("erf"),
    takes="bif",
    stub="erf_vml_cpu",
    vjp=lambda g, input: g * (2 / _PI**0.5) * (-(input.pow(2))).exp(),
    spaces=_SPACES,
    example="erf(tensor([0., 1.]))",
)
def erf(input: Tensor) -> Tensor:
    """The error function."""


@smooth(
    kernel=_scipy("erfc"),
    takes="bif",
    stub="erfc_vml_cpu",
    vjp=lambda g, input: g * (-2 / _PI**0.5) * (-(input.pow(2))).exp(),
    spaces=_SPACES,
    example="erfc(tensor([0., 1.]))",
)
def erfc(input: Tensor) -> Tensor:
    """1 minus the error function, exact where that is near 0."""


def _erfinv(xp: Any, x: Any) -> Any:
    import scipy.special

    # scipy's own float32 erfinv is some ulp off; the double one rounded is not.
    return scipy.special.erfinv(x.astype("float64")).astype(x.dtype)


@smooth(
    kernel=_erfinv,
    takes="bif",
    stub="erfinv_vml_cpu",
    vjp=lambda g, y: g * (_PI**0.5 / 2) * y.pow(2).exp(),
    spaces=_SPACES,
    example="erfinv(tensor([0., 0.5]))",
    domain=(-0.9, 0.9),
)
def erfinv(input: Tensor) -> Tensor:
    """The inverse of erf; infinite at -1 and 1, NaN beyond."""


def _lgamma(xp: Any, x: Any) -> Any:
    import scipy.special

    # scipy's is -inf at -inf.
    return scipy.special.gammaln(xp.where(x == -xp.inf, xp.inf, x).astype(x.dtype))


@smooth(
    kernel=_lgamma,
    takes="bif",
    stub="lgamma_vml_cpu",
    vjp=lambda g, input: g * input.digamma(),
    example="lgamma(tensor([0.5, 4.]))",
    domain=(0.1, 10),
)
def lgamma(input: Tensor) -> Tensor:
    """The logarithm of the absolute value of the gamma function."""


@smooth(
    kernel=_lgamma,
    takes="bif",
    stub="lgamma_vml_cpu",
    vjp=lambda g, input: g * input.digamma(),
    name="special.gammaln",
    node="LgammaBackward0",
    method=False,
    inplace=False,
    example="special.gammaln(tensor([0.5, 4.]))",
    domain=(0.1, 10),
)
def gammaln(input: Tensor) -> Tensor:
    """The logarithm of the absolute value of the gamma function."""


def _digamma(xp: Any, x: Any) -> Any:
    import scipy.special

    y = scipy.special.psi(x)
    # The two zeros are poles with a sign; other negative integers have none.
    y = xp.where(x == 0, xp.copysign(xp.inf, -x), y)
    return xp.where((x < 0) & (x == xp.floor(x)), xp.nan, y).astype(x.dtype)


@smooth(
    kernel=_digamma,
    takes="bif",
    stub="digamma",
    vjp=lambda g, input: g * F.polygamma(1, input),
    spaces=_SPACES,
    example="digamma(tensor([1., 2.]))",
    domain=(0.1, 10),
)
def digamma(input: Tensor) -> Tensor:
    """The derivative of lgamma; -inf at 0, NaN at the negative integers."""


@smooth(
    kernel=_digamma,
    takes="bif",
    stub="digamma",
    vjp=lambda g, input: g * F.polygamma(1, input),
    name="special.psi",
    node="DigammaBackward0",
    method=False,
    inplace=False,
    example="special.psi(tensor([1., 2.]))",
    domain=(0.1, 10),
)
def psi(input: Tensor) -> Tensor:
    """The derivative of lgamma."""


def _polygamma(xp: Any, x: Any, n: int) -> Any:
    import scipy.special

    if n == 0:
        return _digamma(xp, x)
    if n == 1:
        return _trigamma(xp, x)
    sign = 1.0 if n % 2 else -1.0
    wide = x.astype("float64")
    y = sign * scipy.special.gamma(n + 1.0) * scipy.special.zeta(n + 1.0, wide)
    return y.astype(x.dtype)


def _trigamma(xp: Any, x: Any) -> Any:
    """By reflection below a half, recurrence up to six, and an asymptotic series, in the dtype:
    at negative integers it gives the large number that a sine near 0 makes of it."""
    one = x.dtype.type(1)
    low = x < 0.5
    sine = xp.sin(x.dtype.type(_PI) * x)
    total = xp.where(low, -(x.dtype.type(_PI) ** 2) / (sine * sine), 0).astype(x.dtype)
    sign = xp.where(low, -one, one)
    z = xp.where(low, 1 - x, x)
    rest = xp.zeros_like(z)
    for _ in range(6):
        rest = rest + 1 / (z * z)
        z = z + one
    inverse = 1 / (z * z)
    series = (
        1
        + 1 / (2 * z)
        + inverse
        * (x.dtype.type(1 / 6) - inverse * (x.dtype.type(1 / 30) - inverse * x.dtype.type(1 / 42)))
    ) / z
    return sign * (rest + series + total)


def _check_order(n: int) -> None:
    if n < 0:
        raise TensorRuntimeError("polygamma(n, x) does not support negative n.")


@pointwise(
    kernel=_polygamma,
    promote=INT_TO_FLOAT,
    takes="bif",
    stub="polygamma",
    vjp=lambda g, input, n: g * F.polygamma(n + 1, input),
    function=False,
    method=False,
    named_inplace=False,
    node="PolygammaBackward0",
    example="polygamma(1, tensor([1., 2.]))",
    inplace_number=1,
)
def polygamma_of(input: Tensor, n: int) -> Tensor:
    """The n-th derivative of digamma."""


@composite(method=False, spaces=_SPACES, example="polygamma(1, tensor([1., 2.]))")
def polygamma(n: int, input: Tensor) -> Tensor:
    """The ``n``-th derivative of digamma."""
    _check_order(n)
    return ops["polygamma_of"].function(input, n)


@method("polygamma_")
def _polygamma_inplace(input: Tensor, n: int) -> Tensor:
    _check_order(n)
    return twin(ops["polygamma_of"])(input, n)


@method("polygamma")
def _polygamma_method(input: Tensor, n: int) -> Tensor:
    return F.polygamma(n, input)


@smooth(
    kernel=_scipy("i0"),
    takes="bif",
    stub="i0_vml_cpu",
    vjp=lambda g, input: g * ops["special.i1"].function(input),
    spaces=_SPACES,
    example="i0(tensor([0., 1.]))",
)
def i0(input: Tensor) -> Tensor:
    """The modified Bessel function of the first kind of order 0."""


def _special(
    name: str, kernel: Any, vjp: Any, node: str, stub: str, low: bool, example: str
) -> Callable[[Any], Any]:
    """A decorator for a function of ``torch.special`` alone; ``low``: half types are taken."""

    def promote(common: DType) -> tuple[DType, DType]:
        if common.low and not low:
            raise DtypeNotImplementedError(f"\"{stub}\" not implemented for '{common.title}'")
        return INT_TO_FLOAT(common)

    return smooth(
        kernel=kernel,
        promote=promote,
        takes="bif",
        stub=stub,
        vjp=vjp,
        name=f"special.{name}",
        node=node,
        method=False,
        inplace=False,
        example=example,
    )


@_special(
    "i0e",
    _scipy("i0e"),
    lambda g, input, y: g * (ops["special.i1e"].function(input) - input.sgn() * y),
    "SpecialI0EBackward0",
    "i0e_cpu",
    True,
    "special.i0e(tensor([0., 1.]))",
)
def i0e(input: Tensor) -> Tensor:
    """i0 scaled by exp(-|x|)."""


def _i1_slope(g: Tensor, input: Tensor, y: Tensor) -> Tensor:
    small = input.abs() > 1e-7
    safe = F.where(small, input, 1e-7)
    slope = safe.i0() - y * safe.reciprocal()
    return g * F.where(small, slope, 0.5)


@_special(
    "i1",
    _scipy("i1"),
    _i1_slope,
    "SpecialI1Backward0",
    "i1_cpu",
    True,
    "special.i1(tensor([0., 1.]))",
)
def i1(input: Tensor) -> Tensor:
    """The modified Bessel function of the first kind of order 1."""


def _i1e_slope(g: Tensor, input: Tensor, y: Tensor) -> Tensor:
    small = input.abs() > 1e-7
    safe = F.where(small, input, 1e-7)
    slope = ops["special.i0e"].function(safe) - y * (safe.sgn() + safe.reciprocal())
    return g * F.where(small, slope, 0.5)


@_special(
    "i1e",
    _scipy("i1e"),
    _i1e_slope,
    "SpecialI1EBackward0",
    "i1e_cpu",
    True,
    "special.i1e(tensor([0., 1.]))",
)
def i1e(input: Tensor) -> Tensor:
    """i1 scaled by exp(-|x|)."""


@composite(method=False, name="special.ndtr", example="special.ndtr(tensor([0., 1.]))")
def ndtr(input: Tensor) -> Tensor:
    """The area under the standard normal curve up to x."""
    spread = by_number(by_number(input * 0.5**0.5).erf() + 1)
    return by_number(spread * 0.5)


@_special(
    "ndtri",
    _scipy("ndtri"),
    lambda g, y: g * (2 * _PI) ** 0.5 * (y.square() / 2).exp(),
    "SpecialNdtriBackward0",
    "ndtri_cpu",
    False,
    "special.ndtri(tensor([0.25, 0.5]))",
)
def ndtri(input: Tensor) -> Tensor:
    """The inverse of ndtr."""


def _log_ndtr_slope(g: Tensor, input: Tensor, y: Tensor) -> Tensor:
    return g / (2 * _PI) ** 0.5 * (y + input.pow(2) / 2).neg().exp()


@_special(
    "log_ndtr",
    _scipy("log_ndtr"),
    _log_ndtr_slope,
    "SpecialLogNdtrBackward0",
    "log_ndtr_cpu",
    False,
    "special.log_ndtr(tensor([0., -20.]))",
)
def log_ndtr(input: Tensor) -> Tensor:
    """The logarithm of ndtr, exact far below 0."""


@_special(
    "erfcx",
    _scipy("erfcx"),
    lambda g, input, y: (2.0 * input * y - 2.0 / _PI**0.5) * g,
    "SpecialErfcxBackward0",
    "erfcx_cpu",
    False,
    "special.erfcx(tensor([0., 10.]))",
)
def erfcx(input: Tensor) -> Tensor:
    """erfc scaled by exp(x²)."""


def _gamma_density(g: Tensor, input: Tensor, other: Tensor) -> Tensor:
    return g * ((input - 1) * other.log() - other - input.lgamma()).exp()


def _incomplete(name: str, upper: bool, spelled: str, **record: Any) -> Callable[[Any], Any]:
    """A decorator for an incomplete gamma function."""
    sign = -1 if upper else 1
    return pointwise(
        kernel=_gamma_part("gammaincc" if upper else "gammainc"),
        takes="f",
        stub=f"{name}_cpu",
        vjp={
            "input": unlisted(f"{name}: input"),
            "other": lambda g, input, other: sign * _gamma_density(g, input, other),
        },
        name=spelled,
        node=f"{name.capitalize()}Backward0",
        **record,
    )


def _gamma_part(name: str) -> Any:
    def kernel(xp: Any, a: Any, x: Any) -> Any:
        import scipy.special

        y = getattr(scipy.special, name)(a, x)
        limit = 1.0 if name == "gammainc" else 0.0
        return xp.where((a == 0) & (x > 0), limit, y).astype(a.dtype)

    return kernel


@_incomplete("igamma", False, "igamma", example="igamma(tensor([2.]), tensor([1.]))")
def igamma(input: Tensor, other: Tensor) -> Tensor:
    """The regularised lower incomplete gamma function; it is derived by ``other`` only."""


@_incomplete(
    "igamma",
    False,
    "special.gammainc",
    method=False,
    inplace=False,
    example="special.gammainc(tensor([2.]), tensor([1.]))",
)
def gammainc(input: Tensor, other: Tensor) -> Tensor:
    """The regularised lower incomplete gamma function; it is derived by ``other`` only."""


@_incomplete("igammac", True, "igammac", example="igammac(tensor([2.]), tensor([1.]))")
def igammac(input: Tensor, other: Tensor) -> Tensor:
    """The regularised upper incomplete gamma function; it is derived by ``other`` only."""


@_incomplete(
    "igammac",
    True,
    "special.gammaincc",
    method=False,
    inplace=False,
    example="special.gammaincc(tensor([2.]), tensor([1.]))",
)
def gammaincc(input: Tensor, other: Tensor) -> Tensor:
    """The regularised upper incomplete gamma function; it is derived by ``other`` only."""


def _mvlgamma(input: Tensor, p: int) -> Made:
    if p < 1:
        raise TensorRuntimeError("p has to be greater than or equal to 1")
    if input.dtype.is_bool:
        raise TensorRuntimeError("The input tensor may not be a boolean tensor.")
    if input.dtype.is_complex:
        title = input.dtype.title
        raise DtypeNotImplementedError(f"\"arange_cpu\" not implemented for '{title}'")
    compute, final = INT_TO_FLOAT(input.dtype)
    ask(p * input.layout.numel * final.itemsize)  # PyTorch has all terms in memory at once

    def run(xp: Any) -> Any:
        import scipy.special

        x = working(input, compute)
        narrow = final.np

        def rounded(value: Any) -> Any:
            """PyTorch does the steps one by one in the result's dtype."""
            return value.astype(narrow).astype(x.dtype)

        total = xp.zeros_like(x)
        for i in range(p):
            total = total + rounded(scipy.special.gammaln(rounded(x - x.dtype.type(i / 2))))
        return rounded(total) + x.dtype.type(p * (p - 1) / 4 * 1.1447298858494002)

    return made(final, input.layout.shape, run)


def _mvlgamma_slope(g: Tensor, input: Any, p: int) -> Tensor:
    total = input.digamma()
    for i in range(1, p):
        total = total + (input - i / 2).digamma()
    return g * total


@kernel(vjp=_mvlgamma_slope, inplace=True, example="mvlgamma(tensor([3., 4.]), 2)", domain=(3, 10))
def mvlgamma(input: Tensor, p: int) -> Made:
    """The logarithm of the multivariate gamma function of dimension ``p``."""
    return _mvlgamma(input, p)


@kernel(
    vjp=_mvlgamma_slope,
    name="special.multigammaln",
    node="MvlgammaBackward0",
    method=False,
    example="special.multigammaln(tensor([3., 4.]), 2)",
    domain=(3, 10),
)
def multigammaln(input: Tensor, p: int) -> Made:
    """The logarithm of the multivariate gamma function of dimension ``p``."""
    return _mvlgamma(input, p)


def _wide_floats(stub: str) -> Any:
    def promote(common: DType) -> tuple[DType, DType]:
        if common.low:
            raise DtypeNotImplementedError(f"\"{stub}\" not implemented for '{common.title}'")
        return INT_TO_FLOAT(common)

    return promote


@pointwise(
    kernel=_scipy("zeta"),
    promote=_wide_floats("zeta_cpu"),
    takes="bif",
    stub="zeta_cpu",
    vjp={
        "input": unlisted("zeta"),
        "other": lambda g, input, other: (
            g * -input * ops["special.zeta"].function(input + 1.0, other)
        ),
    },
    name="special.zeta",
    node="SpecialZetaBackward0",
    method=False,
    inplace=False,
    example="special.zeta(tensor([2., 4.]), tensor([1., 1.]))",
)
def zeta(input: Operand, other: Operand) -> Tensor:
    """The Hurwitz zeta function; it is derived by ``other`` only."""
