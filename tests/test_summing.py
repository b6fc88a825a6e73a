"""Sums by matrix products keep the accuracy of sums in blocks."""

from __future__ import annotations

import numpy as np
import pytest

from engine.summing import running, squares, total

SHAPES = [(1,), (1024,), (1025,), (100_003,), (3000, 7), (7, 3000), (5, 60, 70), (0, 3)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int64"])
def test_total(shape: tuple[int, ...], dtype: str) -> None:
    x = np.random.default_rng(0).uniform(0, 100, shape).astype(dtype)
    wide = x.astype("complex128" if dtype == "complex64" else "float64")
    for axes in (None, (0,), (x.ndim - 1,), tuple(range(x.ndim))):
        for array, wanted in ((x, wide), (x.T, wide.T)):
            got = total(np, array, axes)
            assert got.dtype == array.dtype
            np.testing.assert_allclose(got, wanted.sum(axis=axes), rtol=1e-6)


def test_infinity_stays_in_its_row() -> None:
    x = np.zeros((300, 4), "float32")
    x[7, 1] = np.inf
    assert total(np, x, (0,)).tolist() == [0, np.inf, 0, 0]
    assert total(np, x, (1,))[6] == 0


def test_squares_about_a_large_mean() -> None:
    x = (np.random.default_rng(0).normal(size=(400, 300)) + 1000).astype("float32")
    mean = x.mean(dtype="float64").astype("float32").reshape(1, 1)
    wanted = ((x.astype("float64") - float(mean[0, 0])) ** 2).sum()
    np.testing.assert_allclose(squares(np, x, None, mean), wanted, rtol=1e-6)


@pytest.mark.parametrize(("shape", "axis"), [((70_001,), 0), ((40, 3001), 1), ((1000, 41), 0)])
def test_running(shape: tuple[int, ...], axis: int) -> None:
    x = (np.random.default_rng(0).normal(size=shape) + 3).astype("float32")
    wanted = np.cumsum(x, axis=axis, dtype="float64")
    np.testing.assert_allclose(running(np, x, axis), wanted, rtol=4e-7)


def test_running_before_an_infinity() -> None:
    x = np.ones(40_000, "float32")
    x[20_000] = np.inf
    y = running(np, x, 0)
    assert y[19_999] == 20_000
    assert y[20_000] == np.inf


@pytest.mark.parametrize(("shape", "axis"), [((500, 300), 0), ((500, 300), 1), ((90, 40, 50), 0)])
def test_squares_along_an_axis(shape: tuple[int, ...], axis: int) -> None:
    x = (np.random.default_rng(0).normal(size=shape) + 30).astype("float32")
    mean = x.mean(axis=axis, keepdims=True, dtype="float64").astype("float32")
    for about, wanted in ((mean, x.astype("float64") - mean), (None, x.astype("float64"))):
        got = squares(np, x, (axis,), about)
        np.testing.assert_allclose(got, (wanted**2).sum(axis=axis), rtol=1e-6)
