"""Random expressions over broadcasting, promotion and indexing: results and refusals as PyTorch's.

Operands differ in dtype, shape, strides and kind (tensors, 0-d tensors, Python numbers); what is
compared is dtype, shape, strides, values and the error's class and sentence.
"""

from __future__ import annotations

import operator
import random
import re
import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from engine import errors  # noqa: E402
from engine.registry import functions  # noqa: E402
from tests.differential import agree, operator_database  # noqa: E402

EXPRESSIONS = 4_000

DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip
OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "eq", "ne", "lt", "le",
             "gt", "ge", "and_", "or_", "xor")  # fmt: skip
FUNCTIONS = ("maximum", "minimum", "fmod", "atan2", "logaddexp", "copysign", "hypot")
SHAPES = ((), (1,), (3,), (2, 3), (3, 1), (1, 3), (2, 1, 3), (4,), (0,), (2, 0), (1, 1))
NUMBERS = (0, 1, 2, -1, 3, 0.5, -2.0, 2.5, True, False, 1j, 1e10, 300)


def random_tensor(rng: random.Random, shape: tuple[int, ...] | None = None) -> torch.Tensor:
    """A tensor of a random dtype and geometry, small numbers in it."""
    dtype = getattr(torch, rng.choice(DTYPES))
    if shape is None:
        shape = rng.choice(SHAPES)
    order = list(range(len(shape)))
    rng.shuffle(order)
    if rng.random() < 0.6:
        order.sort()
    stepped = [2 if rng.random() < 0.15 else 1 for _ in shape]
    sizes = [shape[d] * stepped[d] for d in order]
    count = int(np.prod(sizes)) if sizes else 1
    values = torch.tensor([rng.randint(-3, 5) for _ in range(count)])
    whole = values.to(dtype).reshape(sizes)
    view = whole[tuple(slice(None, None, stepped[d]) for d in order)]
    return view.permute([order.index(d) for d in range(len(shape))])


def random_index(rng: random.Random, shape: tuple[int, ...]) -> list[Any]:
    """The parts of an index into a tensor of that shape; now and then one that does not fit."""
    parts: list[Any] = []
    for size in shape[: rng.randint(0, len(shape))]:
        kind = rng.random()
        if kind < 0.3:
            parts.append(rng.randint(-size - 1, size))
        elif kind < 0.65:
            bound = [rng.choice((None, rng.randint(-5, 5))) for _ in range(2)]
            parts.append(slice(*bound, rng.choice((None, 1, 2))))
        elif kind < 0.8:
            parts.append(torch.tensor([rng.randint(-size, max(size - 1, 0)) for _ in range(2)]))
        elif kind < 0.9:
            parts.append(torch.tensor([rng.random() < 0.5 for _ in range(size)], dtype=torch.bool))
        else:
            parts.append([rng.randint(-size, max(size - 1, 0)) for _ in range(rng.randint(1, 3))])
    if rng.random() < 0.2:
        parts.insert(rng.randint(0, len(parts)), None)
    if rng.random() < 0.2:
        parts.insert(rng.randint(0, len(parts)), Ellipsis)
    return parts


def outcome(work: Any, theirs: bool) -> Any:
    """The value, or the error as (class, first line)."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return work()
    except Exception as error:
        kind = type(error).__name__ if theirs else errors.public_type(error)
        return kind.removeprefix("_"), str(error).split("\n")[0]


def converted(value: Any) -> Any:
    if isinstance(value, list):
        return [converted(item) for item in value]
    return operator_database.Conversion()(value) if isinstance(value, torch.Tensor) else value


def binary(rng: random.Random) -> tuple[str, Any, Any]:
    """A description, PyTorch's outcome and the engine's, of an operator on random operands."""
    a, b = random_tensor(rng), random_tensor(rng)
    if rng.random() < 0.3:
        b = rng.choice(NUMBERS)
        if rng.random() < 0.4:
            a, b = b, a
    x, y = converted(a), converted(b)
    if rng.random() < 0.75:
        name = rng.choice(OPERATORS)
        function = getattr(operator, name)
        pair = outcome(lambda: function(a, b), True), outcome(lambda: function(x, y), False)
    else:
        name = rng.choice(FUNCTIONS)
        pair = (
            outcome(lambda: getattr(torch, name)(a, b), True),
            outcome(lambda: functions[name](x, y), False),
        )
    return f"{name}({described(a)}, {described(b)})", *pair


def indexed(rng: random.Random) -> tuple[str, Any, Any]:
    """The same for reading or writing by a random index."""
    shape = tuple(rng.randint(1, 4) for _ in range(rng.randint(1, 3)))
    t = random_tensor(rng, shape).clone()
    parts = random_index(rng, shape)
    x, places = converted(t), converted(parts)
    key, ours = (tuple(parts), tuple(places)) if len(parts) != 1 else (parts[0], places[0])
    if rng.random() < 0.6:
        text = f"{described(t)}[{parts}]"
        return text, outcome(lambda: t[key], True), outcome(lambda: x[ours], False)
    value = rng.choice(NUMBERS) if rng.random() < 0.5 else random_tensor(rng, rng.choice(SHAPES))
    v = converted(value)
    text = f"{described(t)}[{parts}] = {described(value)}"
    return (
        text,
        outcome(lambda: _put(t, key, value), True),
        outcome(lambda: _put(x, ours, v), False),
    )


def _put(t: Any, key: Any, value: Any) -> Any:
    t[key] = value
    return t


def described(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return repr(value)
    return f"{value.dtype} {list(value.shape)} strides {value.stride()} {value.tolist()}"


# What is known to differ: (in the description or the difference, why).
KNOWN = (
    ("omplex32", "there is no complex32: numpy has none"),
    ("ComplexHalf", "there is no complex32: numpy has none"),
    (
        "pow(",
        "complex powers are numpy's: exact for small integers, other NaNs at zero and infinity",
    ),
    ("logaddexp(", "complex logaddexp is rounded once, in another order"),
)


def known(text: str) -> bool:
    """Whether a difference is of a kind declared above."""
    complex_ = "complex" in text or re.search(r"\dj\b", text) is not None
    return complex_ and any(mark in text for mark, _ in KNOWN)


def differences(seed: int, count: int) -> list[str]:
    """The expressions whose outcomes differ."""
    rng = random.Random(seed)
    found = []
    for _ in range(count):
        text, theirs, ours = (binary if rng.random() < 0.6 else indexed)(rng)
        difference = agree.compare(theirs, ours, ulp=4, atol=1e-30)
        if difference is not None and not known(text + str(difference)):
            found.append(f"{text}\n    {difference}")
    return found


def test_expressions() -> None:
    found = differences(0, EXPRESSIONS)
    assert not found, f"{len(found)} differ\n" + "\n".join(found[:10])
