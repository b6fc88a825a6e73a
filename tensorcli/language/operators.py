"""Operators on values, each with the check of what it will cost; knows no syntax but its names."""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING, Any

from tensorcli.language import costs, limits
from tensorcli.language.nesting import check_key, check_nested
from tensorcli.language.text_format import percent_format

if TYPE_CHECKING:
    from collections.abc import Callable

    Binary = Callable[[Any, Any], Any]
    Guard = Callable[[Any, Any], None]

# An operand of these types makes any operator cheap or somebody else's business (a tensor's).
SAFE: set[type] = {float, complex}

_SEQUENCES = (str, list, tuple)


def _check_length(kind: type, length: int) -> None:
    if issubclass(kind, str):
        limits.meter().check_text(length)
        limits.meter().charge_bytes(length)
    else:
        limits.meter().charge_bytes(8 * length)


def guard_add(a: Any, b: Any) -> None:
    """Before `a + b`: two texts, lists or tuples make one as long as both."""
    if isinstance(a, _SEQUENCES) and isinstance(b, _SEQUENCES):
        _check_length(type(a), len(a) + len(b))


def guard_multiply(a: Any, b: Any) -> None:
    """Before `a * b`: integers, or a sequence and how often it is repeated."""
    if isinstance(a, int):
        if isinstance(b, int):
            bits_a, bits_b = a.bit_length(), b.bit_length()
            if bits_a + bits_b > 64:
                limits.meter().check_integer_bits(bits_a + bits_b)
                costs.check_products(bits_a, bits_b)
            return
    if isinstance(b, _SEQUENCES):
        a, b = b, a
    # numpy's integers and tensors count too.
    if isinstance(a, _SEQUENCES) and hasattr(type(b), "__index__"):
        try:
            length = len(a) * int(b)
        except (RuntimeError, TypeError, ValueError):
            return  # no index after all: the operation itself says so
        _check_length(type(a), length)
        limits.meter().charge_steps(max(0, length) // 16)


def guard_power(a: Any, b: Any) -> None:
    """Before `a ** b`."""
    if isinstance(a, int) and isinstance(b, int) and b > 0:
        # 0, 1 and -1 stay as they are, whatever the exponent.
        size = a.bit_length()
        if size > 1:
            bits = (size - 1) * b + 1
            if bits > 64:
                limits.meter().check_integer_bits(bits)
                costs.check_products(bits, bits)


def guard_left_shift(a: Any, b: Any) -> None:
    """Before `a << b`."""
    if isinstance(a, int) and isinstance(b, int) and a and b > 0:
        limits.meter().check_integer_bits(a.bit_length() + b)


def _guard_extension(a: Any, b: Any) -> None:
    """`list += iterable` takes any iterable; those of known length are charged."""
    if isinstance(a, list) and hasattr(b, "__len__"):
        limits.meter().charge_bytes(8 * len(b))
    else:
        guard_add(a, b)


_iadd: Callable[[Any, Any], Any] = operator.iadd
_imod: Callable[[Any, Any], Any] = operator.imod


def _extend(a: Any, b: Any) -> Any:
    if type(a) is list and type(b) is not list and hasattr(type(b), "__iter__"):
        b = costs.list_of(b)
    return _iadd(a, b)


def _modulo(a: Any, b: Any) -> Any:
    return percent_format(a, b) if type(a) is str else a % b


def _inplace_modulo(a: Any, b: Any) -> Any:
    return percent_format(a, b) if type(a) is str else _imod(a, b)


_division = costs.check_division

# operator node -> (function, guard, in-place function, its guard)
BINARY: dict[type, tuple[Binary, Guard | None, Binary, Guard | None]] = {
    ast.Add: (operator.add, guard_add, _extend, _guard_extension),
    ast.Sub: (operator.sub, None, operator.isub, None),
    ast.Mult: (operator.mul, guard_multiply, operator.imul, guard_multiply),
    ast.Div: (operator.truediv, None, operator.itruediv, None),
    ast.FloorDiv: (operator.floordiv, _division, operator.ifloordiv, _division),
    ast.Mod: (_modulo, _division, _inplace_modulo, _division),
    ast.Pow: (operator.pow, guard_power, operator.ipow, guard_power),
    ast.MatMult: (operator.matmul, None, operator.imatmul, None),
    ast.BitAnd: (operator.and_, None, operator.iand, None),
    ast.BitOr: (operator.or_, None, operator.ior, None),
    ast.BitXor: (operator.xor, None, operator.ixor, None),
    ast.LShift: (operator.lshift, guard_left_shift, operator.ilshift, guard_left_shift),
    ast.RShift: (operator.rshift, None, operator.irshift, None),
}

UNARY: dict[type, Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}

_NESTED = frozenset((list, tuple, dict, set, frozenset))
_HASHED = frozenset((dict, set, frozenset, costs.dict_keys))


def guard_compare(a: Any, b: Any) -> None:
    """Before `a == b` or `a < b`: containers are compared by recursion."""
    if type(a) in _NESTED and type(b) in _NESTED and a is not b:
        check_nested(a)
        check_nested(b)


def contains(a: Any, b: Any) -> bool:
    """`a in b`, its cost asked first."""
    kind = type(b)
    if kind in _HASHED:
        check_key(a)
    elif kind is range:
        if type(a) is not int and type(a) is not bool:
            # Python looks at every element then, without a look at the clock.
            return any(a == element for element in costs.metered(iter(b)))
    elif kind in costs.SIZED:
        costs.check_search(a, len(b))
    elif hasattr(kind, "__next__"):
        return a in costs.metered(b)
    return operator.contains(b, a)


def _lacks(a: Any, b: Any) -> bool:
    return not contains(a, b)


# comparison node -> (function, guard)
COMPARISON: dict[type, tuple[Binary, Guard | None]] = {
    ast.Eq: (operator.eq, guard_compare),
    ast.NotEq: (operator.ne, guard_compare),
    ast.Lt: (operator.lt, guard_compare),
    ast.LtE: (operator.le, guard_compare),
    ast.Gt: (operator.gt, guard_compare),
    ast.GtE: (operator.ge, guard_compare),
    ast.Is: (operator.is_, None),
    ast.IsNot: (operator.is_not, None),
    ast.In: (contains, None),
    ast.NotIn: (_lacks, None),
}
