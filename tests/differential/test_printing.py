"""The printed text of random tensors beside PyTorch's; knows no rule of how either comes about."""

from __future__ import annotations

import math
import random
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from engine import device, dtypes, printing

torch = pytest.importorskip("torch")

NAMES = tuple(dtypes.by_name)
FLOATS = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2")
COMPLEX = ("complex64", "complex128")
DEFAULTS = ("float32", "float32", "float32", "float64", "float16", "bfloat16")
SPECIAL = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-45, 5e-324, 1.0, -1.0, 1e8, 1.5e8, 1e-4)
# Without a numpy type of their own: carried over bit for bit.
EXOTIC = {
    "bfloat16": ("int16", ml_dtypes.bfloat16),
    "float8_e4m3fn": ("uint8", ml_dtypes.float8_e4m3fn),
    "float8_e5m2": ("uint8", ml_dtypes.float8_e5m2),
}


class Node:
    """A graph node as far as printing looks at it."""

    def __init__(self, name: str) -> None:
        self.name = name


class Subject:
    """What printing reads of a tensor, taken from one of PyTorch's."""

    def __init__(self, theirs: Any) -> None:
        name = str(theirs.dtype).removeprefix("torch.")
        self.dtype = dtypes.by_name[name]
        self.shape = tuple(theirs.shape)
        self.device = device.device(str(theirs.device))
        self.requires_grad = theirs.requires_grad
        self.ag = None
        self.grad_fn = Node(type(theirs.grad_fn).__name__) if theirs.grad_fn else None
        plain = theirs.detach()
        if plain.is_meta:
            self.array = None
        elif name in EXOTIC:
            carrier, exotic = EXOTIC[name]
            self.array = plain.contiguous().view(getattr(torch, carrier)).numpy().view(exotic)
        else:
            self.array = plain.numpy()


def random_numbers(rng: random.Random, count: int) -> np.ndarray[Any, Any]:
    """Float64 numbers of one character: spread, whole, near a threshold, or mixed with specials."""
    draw = np.random.default_rng(rng.getrandbits(32))
    kind = rng.randrange(7)
    numbers: np.ndarray[Any, Any]
    if kind == 0:
        numbers = draw.standard_normal(count)
    elif kind == 1:
        numbers = draw.standard_normal(count) * 10.0 ** rng.uniform(-40, 38)
    elif kind == 2:
        numbers = draw.integers(-(10 ** rng.randrange(1, 12)), 10 ** rng.randrange(1, 12), count)
    elif kind == 3:
        numbers = draw.standard_normal(count) * 10.0 ** draw.uniform(-40, 38, count)
    elif kind == 4:
        numbers = rng.choice([1e-4, 1e8, 1.0, 1e5]) * (1 + draw.uniform(-1e-3, 1e-3, count))
    elif kind == 5:
        numbers = draw.choice([1.0, 1000.0, 1000.5, 999.0, 0.5, -2.0], count)
    else:
        numbers = np.zeros(count)
    numbers = numbers.astype(np.float64)
    if rng.random() < 0.3:
        for _ in range(rng.randrange(1, 4) if count else 0):
            numbers[rng.randrange(count)] = rng.choice(SPECIAL)
    return numbers


def random_shape(rng: random.Random) -> tuple[int, ...]:
    roll = rng.random()
    if roll < 0.02:
        return rng.choice([(1001,), (2000, 3), (7, 1000), (2, 3, 400), (40, 40), (11, 8, 9, 2)])
    if roll < 0.12:
        return (rng.randrange(70),)
    sizes = [0, *[1] * 6, *[2] * 8, *[3] * 8, *[4] * 4, 5, 7, 9]
    return tuple(rng.choice(sizes) for _ in range(rng.choice([0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5])))


def random_tensor(rng: random.Random) -> Any:
    name = rng.choice(NAMES)
    dtype = getattr(torch, name)
    shape = random_shape(rng)
    if rng.random() < 0.03:
        return torch.empty(shape, dtype=dtype, device="meta")
    count = math.prod(shape)
    if rng.random() < 0.15 and name != "bool":
        # Any bits at all: subnormals, NaN of every payload, the extremes of integers.
        raw = torch.tensor(list(rng.randbytes(count * dtype.itemsize)), dtype=torch.uint8)
        made = raw.view(dtype).reshape(shape)
    elif name in COMPLEX:
        parts = [torch.from_numpy(random_numbers(rng, count)) for _ in range(2)]
        made = torch.complex(*parts).to(dtype).reshape(shape)
    else:
        numbers = random_numbers(rng, count)
        if name not in FLOATS:
            numbers = np.clip(np.nan_to_num(numbers), -(2.0**62), 2.0**62)
            if name.startswith("uint"):
                numbers = np.abs(numbers)
            bits = 8 * dtype.itemsize
            numbers = np.fmod(numbers, 2.0 ** min(bits - 1, 62))
        made = torch.from_numpy(numbers).to(dtype).reshape(shape)
    if len(shape) > 1 and rng.random() < 0.2:
        made = made.transpose(0, -1)
    if (name in FLOATS or name in COMPLEX) and rng.random() < 0.3:
        made.requires_grad_()
        if rng.random() < 0.5:
            made = made.clone()
    return made


def random_options(rng: random.Random) -> dict[str, Any]:
    if rng.random() < 0.4:
        return {"profile": "default"}
    chosen: dict[str, Any] = {"profile": rng.choice(["default", "default", "short", "full"])}
    if rng.random() < 0.4:
        chosen["precision"] = rng.choice([0, 1, 2, 3, 6, 8, 12, 20])
    if rng.random() < 0.4:
        chosen["threshold"] = rng.choice([-1, 0, 1, 5, 20, 100, math.inf])
    if rng.random() < 0.4:
        chosen["edgeitems"] = rng.choice([0, 1, 1, 2, 4, 5, 30])
    if rng.random() < 0.4:
        chosen["linewidth"] = rng.choice([0, 1, 10, 20, 40, 61.5, 79, 120, 1000])
    if rng.random() < 0.3:
        chosen["sci_mode"] = rng.choice([True, False, None])
    return chosen


def differences(seed: int, count: int) -> list[tuple[dict[str, Any], str, str]]:
    """Options, PyTorch's text and ours, wherever the two texts are not the same."""
    rng = random.Random(seed)
    found = []
    for _ in range(count):
        options = random_options(rng)
        default = rng.choice(DEFAULTS)
        theirs = random_tensor(rng)
        subject = Subject(theirs)
        torch.set_printoptions(**options)
        torch.set_default_dtype(getattr(torch, default))
        printing.set_printoptions(**options)
        try:
            expected = repr(theirs)
            got = printing.tensor_text(subject, default_dtype=dtypes.by_name[default])  # type: ignore[arg-type]
        finally:
            torch.set_printoptions(profile="default")
            torch.set_default_dtype(torch.float32)
            printing.reset_options()
        if got != expected:
            found.append((options, expected, got))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_random_tensors_print_alike(seed: int) -> None:
    assert differences(seed, 400) == []


@pytest.mark.parametrize("size", [1, 2, 5, 9])
@pytest.mark.parametrize("edgeitems", [-1, -2])
def test_negative_edge_items_print_alike_in_one_dimension(size: int, edgeitems: int) -> None:
    theirs = torch.arange(size)
    torch.set_printoptions(edgeitems=edgeitems, threshold=0)
    printing.set_printoptions(edgeitems=edgeitems, threshold=0)
    try:
        assert printing.tensor_text(Subject(theirs), default_dtype=dtypes.float32) == repr(theirs)  # type: ignore[arg-type]
        with pytest.raises(RuntimeError) as expected:
            repr(theirs[None])
        with pytest.raises(RuntimeError) as got:
            printing.tensor_text(Subject(theirs[None]), default_dtype=dtypes.float32)  # type: ignore[arg-type]
        assert str(got.value) == str(expected.value)
    finally:
        torch.set_printoptions(profile="default")
        printing.reset_options()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("spec", ["", ">12", "08.3f", "+.2e", "g", "x", "d", "q"])
def test_format_specs_act_alike(name: str, spec: str) -> None:
    theirs = torch.tensor(1.0).to(getattr(torch, name))
    assert outcome(lambda: printing.format_tensor_value(Subject(theirs), spec)) == outcome(  # type: ignore[arg-type]
        lambda: format(theirs, spec)
    )
    if spec:
        row = theirs.reshape(1)
        assert outcome(lambda: printing.format_tensor_value(Subject(row), spec)) == outcome(  # type: ignore[arg-type]
            lambda: format(row, spec)
        )


def test_options_read_back_alike() -> None:
    steps: list[dict[str, Any]] = [
        {"precision": 2, "sci_mode": True},
        {"profile": "full"},
        {"profile": "short", "linewidth": 100},
        {"profile": "nonsense", "edgeitems": 1},
        {"profile": "default"},
    ]
    try:
        for step in steps:
            torch.set_printoptions(**step)
            printing.set_printoptions(**step)
            assert printing.get_options() == torch._tensor_str.get_printoptions()
    finally:
        torch.set_printoptions(profile="default")
        printing.reset_options()


def outcome(act: Any) -> tuple[str, str]:
    try:
        return "value", act()
    except (TypeError, ValueError) as error:
        return type(error).__name__, str(error)
