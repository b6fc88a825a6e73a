"""Random draws against PyTorch's CPU generator: values, and the generator's state after them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine import random as ours

torch = pytest.importorskip("torch")

SIZES = [0, 1, 2, 3, 7, 15, 16, 17, 20, 31, 32, 33, 40, 1000, 100_000]
FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTEGERS = ["bool", "uint8", "int8", "int16", "int32", "int64"]

Draw = Callable[[ours.Generator, int], Any]


def bits(values: np.ndarray) -> np.ndarray:
    """The values as integers in the order of the numbers, so that a difference is in ulp."""
    if values.dtype.kind == "c":
        values = values.view(values.real.dtype)
    if values.dtype.kind in "biu":
        return values.astype(np.int64)
    size = values.dtype.itemsize
    raw = values.view(f"i{size}").astype(np.int64)
    return np.where(raw < 0, -(raw & ((1 << (8 * size - 1)) - 1)), raw)


def array(tensor: Any) -> np.ndarray:
    """PyTorch's values, flat."""
    tensor = tensor.contiguous()
    if tensor.dtype == torch.bfloat16:
        import ml_dtypes

        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16).ravel()
    return tensor.numpy().ravel()


def check(draw: Draw, theirs: Callable[[Any, int], Any], n: int, seed: int, ulp: int = 0) -> None:
    """Both draw twice from the same seed; values and state must agree."""
    mine, other = ours.Generator(seed), torch.Generator().manual_seed(seed)
    for _ in range(2):
        got, want = draw(mine, n), array(theirs(other, n))
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        with np.errstate(over="ignore"):
            off = np.abs(bits(got) - bits(want))
        worst = int(off.max()) if off.size else 0
        assert worst <= ulp, f"{worst} ulp at {off.argmax()} of {n}, seed {seed}"
        state = other.get_state().numpy()
        now = mine.get_state()
        kept = slice(5024, 5032)
        assert np.allclose(now[kept].view(float), state[kept].view(float), rtol=1e-15, atol=0)
        now[kept] = state[kept]
        assert (now == state).all()


def empty(n: int, dtype: str) -> Any:
    return torch.empty(n, dtype=getattr(torch, dtype))


def filled(method: str, dtype: str, *args: Any) -> Callable[[Any, int], Any]:
    """An in-place method of an empty tensor as a function of generator and size."""
    return lambda g, n: getattr(empty(n, dtype), method)(*args, generator=g)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [*FLOATS, "complex64", "complex128"])
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-2.5, 7.1), (3.0, 3.0), (0.0, 1e-7), (0.999, 1.0)])
def test_uniform(n: int, dtype: str, bounds: tuple[float, float]) -> None:
    check(lambda g, n: ours.uniform(g, n, dtype, *bounds), filled("uniform_", dtype, *bounds), n, n)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [*FLOATS, "complex64", "complex128"])
@pytest.mark.parametrize("moments", [(0.0, 1.0), (1.3, 0.7), (-100.0, 3.0), (2.0, 0.0)])
def test_normal(n: int, dtype: str, moments: tuple[float, float]) -> None:
    # Above 1,024 elements float64 uses numpy's functions, and a sum near 0 shows their last bit.
    loose = n > 1000 and dtype in ("float64", "complex128")
    if loose and moments[0]:
        pytest.skip("cancellation shows the functions' last bits")
    check(
        lambda g, n: ours.normal(g, n, dtype, *moments),
        filled("normal_", dtype, *moments),
        n,
        n,
        3 if loose else 0,
    )


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_normal_into_a_strided_destination(n: int, dtype: str) -> None:
    def theirs(g: Any, n: int) -> Any:
        return empty(2 * n, dtype)[::2].normal_(0.5, 2.0, generator=g)

    loose = 3 if n > 1000 and dtype in ("float64", "float32") else 0
    got = ours.normal(ours.Generator(n), n, dtype, 0.5, 2.0, contiguous=False)
    if loose:
        want = array(theirs(torch.Generator().manual_seed(n), n))
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-15)
        return
    check(lambda g, n: ours.normal(g, n, dtype, 0.5, 2.0, contiguous=False), theirs, n, n)


@pytest.mark.parametrize("n", [5, 16, 40, 1000])
@pytest.mark.parametrize("dtype", FLOATS)
def test_normal_with_tensors(n: int, dtype: str) -> None:
    kind = getattr(torch, dtype)
    mean, std = torch.linspace(-3, 3, n).to(kind), torch.linspace(0, 2, n).to(kind)
    m, s = array(mean), array(std)
    for mine, theirs in [
        (lambda g, n: ours.normal_tensors(g, n, dtype, m, s), (mean, std)),
        (lambda g, n: ours.normal_tensors(g, n, dtype, m, 1.7), (mean, 1.7)),
        (lambda g, n: ours.normal_tensors(g, n, dtype, 0.3, s), (0.3, std)),
    ]:
        check(mine, lambda g, n, a=theirs: torch.normal(*a, generator=g), n, n)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_random_without_bounds(n: int, dtype: str) -> None:
    check(lambda g, n: ours.random_(g, n, dtype), filled("random_", dtype), n, n)


RANGES = [
    (0, 1),
    (0, 2),
    (-5, 17),
    (0, 100),
    (3, 1000),
    (0, 5000),
    (-(2**20), 2**20),
    (0, 2**28 - 1),
    (0, 2**28),
    (-5, 2**31 - 1),
    (0, 2**40 + 3),
    (-(2**62), 2**62 + 5),
    (-(2**63), 2**63 - 1),
]


@pytest.mark.parametrize("bounds", RANGES)
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "uint16", "uint32", "uint64", "complex64"])
@pytest.mark.filterwarnings("ignore:.*out of bounds")
def test_random_from_to(dtype: str, bounds: tuple[int, int]) -> None:
    agree_or_fail_alike(
        lambda g, n: ours.random_from_to(g, n, *bounds, dtype), filled("random_", dtype, *bounds)
    )


@pytest.mark.parametrize("low", [0, 1, -7, 5, 200, 2000, 4000, 40000, -(2**40), 2**62, -(2**63)])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "uint16", "uint32", "uint64"])
@pytest.mark.filterwarnings("ignore:.*out of bounds")
def test_random_from(dtype: str, low: int) -> None:
    agree_or_fail_alike(
        lambda g, n: ours.random_from(g, n, low, dtype), filled("random_", dtype, low, None)
    )


def outcome(call: Callable[[], Any]) -> Exception | None:
    """What the call raises, if anything."""
    try:
        call()
    except Exception as error:
        return error
    return None


def agree_or_fail_alike(draw: Draw, theirs: Callable[[Any, int], Any]) -> None:
    """The same numbers, or the same class and text of error."""
    for n in (1, 37, 9000):
        want = outcome(lambda n=n: theirs(torch.Generator(), n))
        if want is None:
            check(draw, theirs, n, n)
            continue
        got = outcome(lambda n=n: draw(ours.Generator(), n))
        assert isinstance(got, type(want)), f"{want!r} against {got!r}"
        assert str(got) == str(want).split("\n")[0]


@pytest.mark.parametrize("dtype", ["int64", "int32", "float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 17, 100, 250, 30_000])
def test_randperm(dtype: str, n: int) -> None:
    if n > 250 and dtype in ("float16", "bfloat16"):
        return
    check(
        lambda g, n: ours.randperm(g, n, dtype),
        lambda g, n: torch.randperm(n, dtype=getattr(torch, dtype), generator=g),
        n,
        n,
    )


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_bernoulli_with_a_number(n: int, dtype: str, p: float) -> None:
    check(lambda g, n: ours.bernoulli_scalar(g, n, p, dtype), filled("bernoulli_", dtype, p), n, n)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_bernoulli_with_a_tensor(n: int, dtype: str) -> None:
    p = torch.linspace(0, 1, n).to(getattr(torch, dtype))
    flat = array(p)
    check(
        lambda g, n: ours.bernoulli_p(g, flat, dtype),
        lambda g, n: torch.bernoulli(p, generator=g),
        n,
        n,
    )


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.77])
@pytest.mark.parametrize("dtype", FLOATS)
def test_dropout(dtype: str, p: float) -> None:
    for n in (1, 40, 1000):
        torch.manual_seed(n)
        want = array(torch.nn.functional.dropout(torch.ones(n, dtype=getattr(torch, dtype)), p))
        got = ours.dropout_mask(ours.Generator(n), n, p, dtype)
        assert (got == want).all()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("exponential", (1.0,)),
        ("exponential", (0.37,)),
        ("cauchy", (0.0, 1.0)),
        ("cauchy", (2.0, 0.3)),
        ("log_normal", (1.0, 2.0)),
        ("log_normal", (0.0, 0.25)),
    ],
)
def test_continuous(n: int, dtype: str, name: str, args: tuple[float, ...]) -> None:
    # 2.0 + 0.3 * tan cancels near 0: there the functions' last bits show.
    ulp = 0 if n <= 1000 else 32 if name != "cauchy" else 1 << 20
    draw = getattr(ours, name)
    check(lambda g, n: draw(g, n, dtype, *args), filled(name + "_", dtype, *args), n, n, ulp)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [*FLOATS, *(d for d in INTEGERS if d != "bool")])
@pytest.mark.parametrize("p", [0.01, 0.5, 0.9])
def test_geometric(n: int, dtype: str, p: float) -> None:
    check(lambda g, n: ours.geometric(g, n, dtype, p), filled("geometric_", dtype, p), n, n)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("samples", [1, 2, 5])
def test_multinomial(dtype: str, replacement: bool, samples: int) -> None:
    for rows, size in [(1, 5), (3, 8), (2, 100)]:
        weights = torch.rand(rows, size, generator=torch.Generator().manual_seed(size))
        weights = weights.to(getattr(torch, dtype))
        if samples > 1 and not replacement and weights.dtype == torch.bfloat16:
            continue  # equal races, whose order PyTorch leaves open
        flat = array(weights).reshape(rows, size)
        for seed in range(20):
            check(
                lambda g, n, w=flat: ours.multinomial(
                    g, w, samples, replacement=replacement
                ).ravel(),
                lambda g, n, w=weights: torch.multinomial(w, samples, replacement, generator=g),
                0,
                seed,
            )


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize(
    "weights", [[0.0, 0.0], [1.0, -1.0], [1.0, np.inf], [1.0, np.nan], [0.0, 1.0]]
)
def test_multinomial_refuses(weights: list[float], replacement: bool) -> None:
    flat = np.array([weights], np.float32)
    agree_or_fail_alike(
        lambda g, n: ours.multinomial(g, flat, 2, replacement=replacement).ravel(),
        lambda g, n: torch.multinomial(torch.tensor(weights), 2, replacement, generator=g),
    )


@pytest.mark.parametrize("dtype", FLOATS)
def test_poisson(dtype: str) -> None:
    rates = torch.linspace(0, 60, 300).to(getattr(torch, dtype))
    flat = array(rates)
    check(lambda g, n: ours.poisson(g, flat), lambda g, n: torch.poisson(rates, generator=g), 0, 3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_binomial(dtype: str) -> None:
    kind = getattr(torch, dtype)
    counts, probs = torch.arange(300).to(kind), torch.linspace(-0.1, 1.1, 300).to(kind)
    c, p = array(counts), array(probs)
    for seed in range(5):
        check(
            lambda g, n: ours.binomial(g, c, p),
            lambda g, n: torch.binomial(counts, probs, generator=g),
            0,
            seed,
        )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gamma_and_dirichlet(dtype: str) -> None:
    alpha = torch.linspace(0.05, 9, 60).to(getattr(torch, dtype))
    flat = array(alpha)
    check(
        lambda g, n: ours.gamma(g, flat),
        lambda g, n: torch._standard_gamma(alpha, generator=g),
        0,
        1,
    )
    check(
        lambda g, n: ours.dirichlet(g, flat.reshape(6, 10)).ravel(),
        lambda g, n: torch._sample_dirichlet(alpha.reshape(6, 10), generator=g),
        0,
        1,
        4,
    )


@pytest.mark.parametrize("seed", [0, 1, -1, 2**31, 2**32 + 7, 2**64 - 1, -(2**63)])
def test_seeds_and_states(seed: int) -> None:
    mine, other = ours.Generator(seed), torch.Generator().manual_seed(seed)
    assert mine.initial_seed() == other.initial_seed()
    for n in (0, 1, 622, 1, 1, 623, 624, 625, 3):
        assert (mine.get_state() == other.get_state().numpy()).all()
        got, want = ours.uniform(mine, n, "float32"), torch.rand(n, generator=other)
        assert (got == want.numpy()).all()
    torch.empty(3).normal_(generator=other)
    again = ours.Generator()
    again.set_state(other.get_state().numpy())
    assert (again.get_state() == other.get_state().numpy()).all()
    assert (
        ours.normal(again, 4, "float64") == torch.empty(4).double().normal_(generator=other).numpy()
    ).all()


def test_mixed_draws_before_and_after_moving_to_numpy() -> None:
    mine, other = ours.Generator(5), torch.Generator().manual_seed(5)
    pairs: list[tuple[Draw, Callable[[Any, int], Any]]] = [
        (lambda g, n: ours.normal(g, n, "float32"), filled("normal_", "float32")),
        (lambda g, n: ours.uniform(g, n, "float64"), filled("uniform_", "float64")),
        (lambda g, n: ours.randint(g, n, 0, 7, "int64"), filled("random_", "int64", 0, 7)),
        (lambda g, n: ours.uniform(g, n, "float32"), filled("uniform_", "float32")),
    ]
    for n in (3, 2_200_001, 5, 17, 90_001, 1):
        for draw, theirs in pairs if n < 10**6 else pairs[3:]:
            assert (draw(mine, n) == array(theirs(other, n))).all()
            assert (mine.get_state()[:5024] == other.get_state().numpy()[:5024]).all()
    rates = torch.full((20,), 3.0)
    want = torch.poisson(rates, generator=other).numpy()
    twin = mine.clone()
    assert (ours.poisson(mine, rates.numpy()) == want).all()
    assert (ours.poisson(twin, rates.numpy()) == want).all()


@pytest.mark.parametrize("n", [100_000, 1_000_000])
def test_long_permutations(n: int) -> None:
    want = torch.randperm(n, generator=torch.Generator().manual_seed(n)).numpy()
    assert (ours.randperm(ours.Generator(n), n) == want).all()


@pytest.mark.parametrize("fill", [-(2**63) - 1, 2**64])
def test_seeds_out_of_range(fill: int) -> None:
    agree_or_fail_alike(
        lambda g, n: g.manual_seed(fill), lambda g, n: torch.Generator().manual_seed(fill)
    )


def test_states_that_are_refused() -> None:
    for state in (torch.zeros(5), torch.zeros(5).byte(), torch.zeros(5056).byte()):
        want = outcome(lambda s=state: torch.Generator().set_state(s))
        got = outcome(lambda s=state: ours.Generator().set_state(s.numpy()))
        assert isinstance(got, type(want))
        assert str(got) == str(want)
