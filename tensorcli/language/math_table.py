"""The math module: Python's functions on numbers, with the cost of big integers asked first."""

from __future__ import annotations

import math
from math import log2
from operator import index
from typing import TYPE_CHECKING

from tensorcli.language.costs import check_integer_result, check_quadratic, list_of
from tensorcli.language.operators import guard_multiply

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_NUMBERS_BITS = 1.4427  # log2(e): in Stirling's formula for factorials and binomials


def factorial(*args: Any) -> int:
    if len(args) == 1:
        n = index(args[0])
        # Python itself refuses what is no C integer.
        if 20 < n < 2**63:
            check_integer_result(n * max(1.0, log2(n) - _NUMBERS_BITS))
        args = (n,)
    return math.factorial(*args)


def comb(*args: Any) -> int:
    if len(args) == 2:
        n, k = map(index, args)
        chosen = min(k, n - k)
        if 0 < chosen < 2**63:
            check_integer_result(chosen * (log2(n) - log2(chosen) + _NUMBERS_BITS))
        args = (n, k)
    return math.comb(*args)


def perm(*args: Any) -> int:
    if len(args) == 1 or (len(args) == 2 and args[1] is None):
        return factorial(args[0])
    if len(args) == 2:
        n, k = map(index, args)
        if 0 < k <= min(n, 2**63):
            check_integer_result(k * log2(n))
        args = (n, k)
    return math.perm(*args)


def gcd(*args: Any) -> int:
    numbers = [index(number) for number in args]
    check_quadratic(numbers)
    return math.gcd(*numbers)


def lcm(*args: Any) -> int:
    numbers = [index(number) for number in args]
    check_quadratic(numbers)
    check_integer_result(sum(number.bit_length() for number in numbers))
    return math.lcm(*numbers)


def isqrt(*args: Any) -> int:
    if len(args) == 1:
        check_integer_result(index(args[0]).bit_length() / 2)
    return math.isqrt(*args)


def prod(*args: Any, **kwargs: Any) -> Any:
    if len(args) != 1 or any(name != "start" for name in kwargs):
        return math.prod(*args, **kwargs)
    result = kwargs.get("start", 1)
    for factor in list_of(args[0]):
        guard_multiply(result, factor)
        result = result * factor
    return result


def fsum(*args: Any) -> float:
    return math.fsum(*map(list_of, args))


def dist(*args: Any) -> float:
    return math.dist(*(tuple(list_of(point)) for point in args))


def _sumprod(*args: Any) -> Any:
    return math.sumprod(*map(list_of, args))  # type: ignore[attr-defined]  # since Python 3.12


# Functions whose cost does not depend on the size of their arguments, or only linearly.
_PLAIN = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh degrees erf erfc exp exp2"
    " expm1 fabs floor fmod frexp gamma hypot isclose isfinite isinf isnan ldexp lgamma log log10"
    " log1p log2 modf nextafter pow radians remainder sin sinh sqrt tan tanh trunc ulp"
    " e inf nan pi tau"
)

_GUARDED: tuple[Callable[..., Any], ...] = (
    comb,
    dist,
    factorial,
    fsum,
    gcd,
    isqrt,
    lcm,
    perm,
    prod,
)

MATH: dict[str, object] = {
    **{name: getattr(math, name) for name in _PLAIN.split()},
    **{function.__name__: function for function in _GUARDED},
    **({"sumprod": _sumprod} if hasattr(math, "sumprod") else {}),
    **({"fma": math.fma} if hasattr(math, "fma") else {}),
}
