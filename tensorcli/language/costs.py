"""What work costs, asked before it is done: iterating, hashing, comparing, big integers.

Python's own C loops look at no clock and some of them at no stack: hashing a tuple nested a
million deep ends the process, and comparing two lists that share their parts can take for ever.
These functions charge such work to the meter first. They know no tensors and no arrays.
"""

from __future__ import annotations

from itertools import islice
from types import GeneratorType
from typing import TYPE_CHECKING

from tensorcli.language.limits import meter, reached
from tensorcli.language.nesting import check_nested

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

dict_keys: type = type({}.keys())
dict_values: type = type({}.values())
dict_items: type = type({}.items())

# Values whose elements exist already: a C loop over one is bounded by memory that was paid for.
SIZED = frozenset({list, tuple, str, dict, set, frozenset, dict_keys, dict_values, dict_items})

_CONTAINERS = frozenset({list, tuple, dict, set, frozenset})

# Work on big integers is counted in products of two 30-bit digits, about 1 ns each.
_DIGIT_BITS = 30
_MOST_DIGIT_PRODUCTS = 20_000_000_000
_PRODUCTS_PER_STEP = 100

_CHUNK = 4096


def bounded(iterable: Any) -> Iterable[Any]:
    """An iterable fit for a loop in C: charged already where it is short, else as it goes."""
    if type(iterable) in SIZED:
        meter().charge_steps(len(iterable))
        sized: Iterable[Any] = iterable
        return sized
    return metered(iter(iterable))


def metered(iterator: Iterator[Any]) -> Iterator[Any]:
    """The same items, one step each."""
    step = meter().step
    for item in iterator:
        step()
        yield item


def list_of(iterable: Any, item_bytes: int = 8) -> list[Any]:
    """`list(iterable)`, asking for memory first."""
    kind = type(iterable)
    if kind in SIZED or kind is range:
        # An integer of a range is a new object; the parts of other containers exist.
        each = item_bytes + 32 if kind is range else item_bytes
        length = len(iterable)
        meter().charge_bytes(each * length)
        meter().charge_steps(length)
        return list(iterable)
    iterator = iter(iterable)
    if kind is not GeneratorType:
        iterator = metered(iterator)
    items: list[Any] = []
    while chunk := list(islice(iterator, _CHUNK)):
        meter().charge_bytes((item_bytes + 32) * len(chunk))
        items += chunk
    return items


def check_keys(values: Iterable[object]) -> None:
    for value in values:
        if type(value) is tuple:
            check_nested(value)


def check_order(values: list[Any]) -> None:
    """Before values are sorted: their comparisons may look into containers."""
    meter().charge_steps(len(values))
    if not _CONTAINERS.isdisjoint(map(type, values)):
        for value in filter(_is_nested, values):
            for _ in range(len(values).bit_length()):
                check_nested(value)


def check_search(item: object, length: int) -> None:
    """Before an item is compared with each of `length` others."""
    meter().charge_steps(length)
    if _is_nested(item):
        for _ in range(length):
            check_nested(item)


def _is_nested(value: Any) -> bool:
    if type(value) not in _CONTAINERS:
        return False
    parts = value.values() if type(value) is dict else value
    return not _CONTAINERS.isdisjoint(map(type, parts))


def check_modular_power(exponent: object, modulus: object) -> None:
    """Before `pow(base, exponent, modulus)`."""
    if isinstance(exponent, int) and isinstance(modulus, int):
        digits = modulus.bit_length() // _DIGIT_BITS + 1
        _check_digit_products(exponent.bit_length() * 2 * digits**2)


def check_products(bits_a: int, bits_b: int) -> None:
    """Before two integers of that many bits are multiplied."""
    shorter, longer = sorted((bits_a // _DIGIT_BITS + 1, bits_b // _DIGIT_BITS + 1))
    # Python multiplies by Karatsuba's rule: the shorter one counts with its power 0.585.
    _check_digit_products(int(longer * shorter**0.585))


def check_division(a: object, b: object) -> None:
    """Before `a // b`, `a % b` or `divmod(a, b)` of integers: schoolbook division."""
    if type(a) is int and type(b) is int:
        digits_a, digits_b = a.bit_length() // _DIGIT_BITS, b.bit_length() // _DIGIT_BITS
        if digits_a > digits_b > 0:
            _check_digit_products((digits_a - digits_b) * digits_b)


def _check_digit_products(count: int) -> None:
    if count > _MOST_DIGIT_PRODUCTS:
        reached("integer", f"arithmetic on big integers that takes {count} products of digits")
    if count > _PRODUCTS_PER_STEP:
        meter().charge_steps(count // _PRODUCTS_PER_STEP)


def check_integer_result(bits: float) -> None:
    """Before an integer of about that many bits is made by multiplications."""
    if bits > 64:
        meter().check_integer_bits(int(bits))
        check_products(int(bits), int(bits))


def check_quadratic(numbers: list[int]) -> None:
    """Before a greatest common divisor: quadratic in the length of its arguments."""
    longest = max((number.bit_length() for number in numbers), default=0) // _DIGIT_BITS
    _check_digit_products(longest * longest * len(numbers))
