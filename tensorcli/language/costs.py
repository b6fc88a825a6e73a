"""What work costs, asked before it is done: iterating, hashing, comparing, big integers.

Python's own C loops look at no clock and some of them at no stack: hashing a tuple nested a
million deep ends the process, and comparing two lists that share their parts can take for ever.
These functions charge such work to the meter first. They know no tensors and no arrays.
"""

from __future__ import annotations

from itertools import islice
from math import log2
from types import GeneratorType
from typing import TYPE_CHECKING

from tensorcli.language.limits import meter, reached

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

dict_keys: type = type({}.keys())
dict_values: type = type({}.values())
dict_items: type = type({}.items())

# Values whose elements exist already: a C loop over one is bounded by memory that was paid for.
SIZED = frozenset({list, tuple, str, dict, set, frozenset, dict_keys, dict_values, dict_items})

# Containers whose comparison or hash looks into their elements, with how to list these. What a set
# holds was hashed when it went in, and is looked at no more.
CHILDREN: dict[type, Callable[[Any], Iterable[object]]] = {
    list: iter,
    tuple: iter,
    dict: dict.values,
    slice: lambda s: (s.start, s.stop, s.step),
    dict_values: iter,
    dict_items: iter,
}
_CONTAINERS = frozenset(CHILDREN)
_COLLECTIONS = frozenset({set, frozenset, dict_keys})

# Deeper nesting is printed, but not hashed or compared: these recurse in C.
DEEPEST = 900

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


def measure(value: object, *, times: int = 1) -> None:
    """Charge a walk through nested containers, `times` over; refuse what is nested too deep.

    Parts that occur twice count twice, as they do for Python's comparison and hash.
    """
    if type(value) not in _CONTAINERS:
        return
    charge = meter().charge_steps
    pending = [(value, 0)]
    while pending:
        item, depth = pending.pop()
        children = list(CHILDREN[type(item)](item))
        charge((len(children) + 1) * times)
        if _CONTAINERS.isdisjoint(map(type, children)):
            continue
        if depth >= DEEPEST:
            reached("depth", f"values nested more than {DEEPEST} deep")
        pending.extend((c, depth + 1) for c in children if type(c) in _CONTAINERS)


def check_hash(value: object) -> None:
    """Before a value becomes a key: charge the walk that its hash makes."""
    if type(value) is tuple or type(value) is slice:
        measure(value)


def check_hashes(values: Iterable[object]) -> None:
    for value in values:
        if type(value) is tuple or type(value) is slice:
            measure(value)


def check_compare(a: object, b: object) -> None:
    """Before `a == b` or `a < b`: charge the walk that comparing them makes, part by part."""
    if type(a) not in _CONTAINERS or type(b) not in _CONTAINERS:
        if type(a) in _COLLECTIONS and type(b) in _COLLECTIONS:
            meter().charge_steps(len(a))  # type: ignore[arg-type]  # collections have a length
        return
    charge = meter().charge_steps
    pending = [(a, b, 0)]
    while pending:
        x, y, depth = pending.pop()
        if x is y or type(x) is not type(y):
            continue
        if depth > DEEPEST:
            reached("depth", f"values nested more than {DEEPEST} deep")
        pairs = _pairs(x, y)
        charge(len(pairs) + 1)
        pending.extend((p, q, depth + 1) for p, q in pairs if type(p) in _CONTAINERS)


def _pairs(x: object, y: object) -> list[tuple[object, object]]:
    if isinstance(x, dict) and isinstance(y, dict):
        return [(v, y[k]) for k, v in x.items() if k in y]
    children = CHILDREN[type(x)]
    return list(zip(children(x), children(y), strict=False))


def check_order(values: list[Any]) -> None:
    """Before values are sorted: their comparisons may look into containers."""
    meter().charge_steps(len(values))
    if not _CONTAINERS.isdisjoint(map(type, values)):
        for value in values:
            measure(value, times=len(values).bit_length())


def check_search(item: object, length: int) -> None:
    """Before an item is compared with each of `length` others."""
    meter().charge_steps(length)
    measure(item, times=length)


_NEVER_INTEGERS = frozenset({str, list, tuple, dict, set, frozenset, type(None), slice, range})


def contains(container: Any, item: object) -> bool:
    """`item in container`, charged first."""
    kind = type(container)
    if kind is range:
        return _range_contains(container, item)
    if kind in (dict, set, frozenset, dict_keys):
        check_hash(item)
    elif kind in SIZED:
        check_search(item, len(container))
    elif hasattr(kind, "__next__"):
        return item in metered(container)
    found: bool = item in container
    return found


def _range_contains(numbers: range, item: object) -> bool:
    # Python asks every element in turn for anything but an int: `0.5 in range(10**12)` would hang.
    kind = type(item)
    if kind is int or kind is bool:
        return item in numbers
    if kind in _NEVER_INTEGERS:
        return False
    if isinstance(item, complex):
        return item.imag == 0 and _range_contains(numbers, item.real)
    if isinstance(item, float):
        return item.is_integer() and int(item) in numbers
    return item in metered(iter(numbers))


def check_power(base: object, exponent: object) -> None:
    """Before `base ** exponent`."""
    if not isinstance(base, int) or not isinstance(exponent, int):
        return
    if exponent > 1 and not -2 < base < 2:
        check_integer_result((exponent * int(log2(abs(base)) * 1024) >> 10) + 1)


def check_modular_power(exponent: object, modulus: object) -> None:
    """Before `pow(base, exponent, modulus)`."""
    if isinstance(exponent, int) and isinstance(modulus, int):
        digits = modulus.bit_length() // _DIGIT_BITS + 1
        _check_digit_products(exponent.bit_length() * 2 * digits**2)


def check_shift(value: object, count: object) -> None:
    """Before `value << count`."""
    if isinstance(value, int) and isinstance(count, int) and value and count > 0:
        meter().check_integer_bits(value.bit_length() + count)


def check_product(a: object, b: object) -> None:
    """Before `a * b`, for two integers or for a sequence and how often it is repeated."""
    if isinstance(a, int) and isinstance(b, int):
        bits_a, bits_b = a.bit_length(), b.bit_length()
        if bits_a + bits_b > 1024:
            meter().check_integer_bits(bits_a + bits_b)
            check_products(bits_a, bits_b)
    elif hasattr(type(a), "__index__"):
        check_repeat(b, a)
    else:
        check_repeat(a, b)


def check_repeat(sequence: object, count: Any) -> None:
    """Before `sequence * count`; the count may be whatever Python takes for an index."""
    if not isinstance(sequence, (str, list, tuple)) or not hasattr(type(count), "__index__"):
        return
    try:
        length = len(sequence) * max(0, int(count))
    except (TypeError, ValueError, RuntimeError):
        # No index after all, such as a tensor of many elements: the operation itself says so.
        return
    if isinstance(sequence, str):
        meter().check_text(length)
        meter().charge_bytes(length)
    else:
        meter().charge_bytes(8 * length)
        meter().charge_steps(length // 16)


def check_concatenation(a: object, b: object) -> None:
    """Before `a + b`, for two texts, lists or tuples."""
    if isinstance(a, str) and isinstance(b, str):
        meter().check_text(len(a) + len(b))
        meter().charge_bytes(len(a) + len(b))
    elif isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        meter().charge_bytes(8 * (len(a) + len(b)))


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
