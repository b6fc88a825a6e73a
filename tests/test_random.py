"""Random draws against numbers recorded from PyTorch 2.13 with seed 0, and the generator alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine import random as ours

WEIGHTS = np.array([[1, 2, 3, 4]], np.float32)

Draw = Callable[[ours.Generator], Any]

RECORDED: dict[str, tuple[Draw, list[Any]]] = {
    "uniform float32": (
        lambda g: ours.uniform(g, 3, "float32"),
        [0.49625658988952637, 0.7682217955589294, 0.08847743272781372],
    ),
    "uniform float64": (
        lambda g: ours.uniform(g, 3, "float64"),
        [0.9700530018065531, 0.707819864399788, 0.45938294312745087],
    ),
    "uniform bfloat16": (
        lambda g: ours.uniform(g, 4, "bfloat16"),
        [0.49609375, 0.76953125, 0.08837890625, 0.1318359375],
    ),
    "normal below 16": (
        lambda g: ours.normal(g, 3, "float32"),
        [1.5409960746765137, -0.293428897857666, -2.1787893772125244],
    ),
    "normal float32 with a broken block": (
        lambda g: ours.normal(g, 20, "float32"),
        [
            -1.1258398294448853,
            -1.152360200881958,
            -0.2505785822868347,
            -0.4338788092136383,
            0.5988394618034363,
            -1.5550950765609741,
            -0.3413603901863098,
            1.85300612449646,
            0.46809640526771545,
            -0.1577124446630478,
            1.4436601400375366,
            0.26604941487312317,
            1.3893661499023438,
            1.586334228515625,
            0.946298360824585,
            -0.843676745891571,
            0.9318265914916992,
            1.2590092420578003,
            2.0049805641174316,
            0.05373690277338028,
        ],
    ),
    "normal float16 with a broken block": (
        lambda g: ours.normal(g, 18, "float16"),
        [
            -1.1259765625,
            -1.15234375,
            -1.3525390625,
            -1.6962890625,
            0.56689453125,
            0.79345703125,
            0.5986328125,
            -1.5546875,
            -0.34130859375,
            1.8525390625,
            0.75,
            -0.58544921875,
            -0.17333984375,
            0.1834716796875,
            1.3896484375,
            1.5859375,
            0.9462890625,
            -0.84375,
        ],
    ),
    "normal float64 with a broken block": (
        lambda g: ours.normal(g, 17, "float64"),
        [
            -2.310411800234176,
            -0.6332746088675096,
            -1.2609246557194385,
            -0.726951062065411,
            -0.019964750907762653,
            0.2102998901016947,
            0.17718935139366584,
            -0.830510051008449,
            0.23871805816817063,
            -0.2426793824588577,
            -0.7730112772958181,
            -1.5951814880783068,
            -0.6870036940435463,
            1.4880743158106724,
            -0.4484158047114511,
            -0.8910030351707375,
            0.6748575435940039,
        ],
    ),
    "randint": (lambda g: ours.randint(g, 10, 0, 10, "int64"), [4, 9, 3, 0, 3, 9, 7, 3, 7, 3]),
    "randint of two words": (
        lambda g: ours.randint(g, 3, -(2**40), 2**40, "int64"),
        [-358231004625, -593374360384, 291447657211],
    ),
    "randperm": (lambda g: ours.randperm(g, 10), [4, 1, 7, 5, 3, 9, 0, 8, 6, 2]),
    "bernoulli of a number": (
        lambda g: ours.bernoulli_scalar(g, 10, 0.5, "float32"),
        [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0],
    ),
    "bernoulli of a tensor": (
        lambda g: ours.bernoulli_p(g, np.full(10, 0.5, np.float32), "float32"),
        [1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0],
    ),
    "exponential": (
        lambda g: ours.exponential(g, 3, "float32"),
        [3.508326292037964, 1.2303847074508667, 0.615044116973877],
    ),
    "geometric": (lambda g: ours.geometric(g, 5, "int64", 0.2), [1, 2, 4, 1, 2]),
    "cauchy": (
        lambda g: ours.cauchy(g, 3, "float32"),
        [10.597729682922363, 0.7647672891616821, -0.12829934060573578],
    ),
    "multinomial": (lambda g: ours.multinomial(g, WEIGHTS, 3)[0], [2, 1, 3]),
    "multinomial with replacement": (
        lambda g: ours.multinomial(g, WEIGHTS, 6, replacement=True)[0],
        [3, 3, 2, 3, 3, 3],
    ),
    "poisson": (
        lambda g: ours.poisson(g, np.array([0.5, 3, 20, 50], np.float32)),
        [2.0, 4.0, 21.0, 49.0],
    ),
    "normal complex64": (
        lambda g: ours.normal(g, 2, "complex64"),
        [(1.0896488428115845 - 0.20748557150363922j), (-1.5406367778778076 + 0.40194159746170044j)],
    ),
}


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_numbers(name: str) -> None:
    draw, want = RECORDED[name]
    got = draw(ours.Generator(0))
    # The C library and numpy's functions may differ in the last bit from machine to machine.
    np.testing.assert_allclose(got.astype(type(want[0])), want, rtol=3e-7)


def test_the_second_normal_of_a_pair_is_kept() -> None:
    generator = ours.Generator(0)
    first = ours.normal(generator, 3, "float64")
    assert generator.next_normal is not None
    rest = ours.normal(generator, 2, "float64")
    assert generator.next_normal is not None
    whole = ours.normal(ours.Generator(0), 5, "float64")
    assert (np.concatenate([first, rest]) == whole).all()


def test_a_state_goes_back() -> None:
    generator = ours.Generator(3)
    ours.normal(generator, 1, "float32")
    state = generator.get_state()
    assert state.dtype == np.uint8
    assert state.size == ours.STATE_BYTES
    before = ours.normal(generator, 700, "float32")
    generator.set_state(state)
    assert (ours.normal(generator, 700, "float32") == before).all()


def test_a_clone_goes_its_own_way() -> None:
    generator = ours.Generator(3)
    ours.normal(generator, 1, "float32")
    twin = generator.clone()
    ours.uniform(generator, 5, "float32")
    other = ours.Generator(3)
    ours.normal(other, 1, "float32")
    assert (twin.get_state() == other.get_state()).all()


def test_without_a_seed_generators_differ() -> None:
    one, two = ours.Generator(None), ours.Generator(None)
    assert one.initial_seed() != two.initial_seed()
    assert one.seed() == one.initial_seed()
    assert ours.Generator().initial_seed() == ours.DEFAULT_SEED


def test_nothing_is_drawn_for_nothing() -> None:
    generator = ours.Generator(1)
    state = generator.get_state()
    for draw in (ours.uniform, ours.normal, ours.exponential, ours.random_):
        assert draw(generator, 0, "float32").size == 0
    assert (generator.get_state() == state).all()


def test_long_and_short_draws_are_one_sequence() -> None:
    long = ours.uniform(ours.Generator(9), 2_100_000, "float32")  # long enough for numpy.random
    generator = ours.Generator(9)
    parts = [ours.uniform(generator, n, "float32") for n in (1, 700, 3, 50_000)]
    together = np.concatenate(parts)
    assert (long[: together.size] == together).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g: ours.normal(g, 3, "float32", 0, -1), "normal expects std >= 0.0"),
        (lambda g: ours.uniform(g, 3, "float32", 2, 1), "found from=2 > to=1"),
        (lambda g: ours.exponential(g, 3, "float32", 0), "but found lambda=0"),
        (lambda g: ours.geometric(g, 3, "float32", 1.0), "but got p=1"),
        (lambda g: ours.bernoulli_scalar(g, 3, 1.5, "float32"), "but got p=1.5"),
        (lambda g: ours.randint(g, 3, 5, 5, "int64"), "but got from=5 >= to=5"),
        (lambda g: ours.randint(g, 3, 0, 300, "int8"), "out of bounds for signed char"),
        (lambda g: ours.multinomial(g, -WEIGHTS, 1), "element < 0"),
        (lambda g: ours.poisson(g, -WEIGHTS[0]), "invalid Poisson rate"),
    ],
)
def test_refusals(call: Draw, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        call(ours.Generator(0))
