"""Discrete distributions: Bernoulli, geometric, multinomial, Poisson, binomial, dropout masks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.dtypes import by_name
from engine.errors import TensorRuntimeError
from engine.random import libm
from engine.random.continuous import exponential
from engine.random.uniform import cast, floats24, floats53

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engine.random.source import Generator

_NOT_A_PROBABILITY = (
    "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be "
    "improved?  If so, please report an enhancement request to PyTorch.)"
)


def bernoulli_p(generator: Generator, p: NDArray[Any], dtype: str) -> NDArray[Any]:
    """1 where a draw is below p, for a flat array of probabilities already broadcast.

    float64 probabilities meet 53-bit draws, all others 24-bit draws.
    Raises RuntimeError for a value outside [0, 1].
    """
    if p.size and not (bool((p >= 0).all()) and bool((p <= 1).all())):
        raise TensorRuntimeError(_NOT_A_PROBABILITY)
    if p.dtype == np.float64:
        hits = floats53(generator, p.size) < p
    else:
        hits = floats24(generator, p.size) < p.astype(np.float32, copy=False)
    return hits.astype(by_name[dtype].np, copy=False)


def bernoulli_scalar(generator: Generator, n: int, p: float, dtype: str) -> NDArray[Any]:
    """1 with probability p, by 53-bit draws. Raises RuntimeError for p outside [0, 1]."""
    if not 0 <= p <= 1:
        raise TensorRuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    return (floats53(generator, n) < p).astype(by_name[dtype].np, copy=False)


def dropout_mask(generator: Generator, n: int, p: float, dtype: str) -> NDArray[Any]:
    """What dropout multiplies its input by in training: 0, or 1 / (1 - p) rounded to the dtype.

    For 0 < p < 1; PyTorch draws nothing for p of 0 or 1 or an empty input.
    """
    mask = bernoulli_scalar(generator, n, 1 - p, dtype)
    if mask.dtype.itemsize == 2:  # the quotient is made in float32
        return cast(mask.astype(np.float32) / np.float32(1 - p), dtype)
    mask /= mask.dtype.type(1 - p)
    return mask


def geometric(generator: Generator, n: int, dtype: str, p: float) -> NDArray[Any]:
    """ceil(log(u) / log(1 - p)). Raises RuntimeError unless 0 < p < 1."""
    if not 0 < p < 1:
        raise TensorRuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    drawn = np.ceil(libm.log(floats53(generator, n)) / math.log1p(-p))
    if by_name[dtype].is_floating_point:
        return cast(drawn, dtype)
    return drawn.astype(np.int64).astype(by_name[dtype].np, copy=False)


def multinomial(
    generator: Generator, weights: NDArray[Any], num_samples: int, *, replacement: bool = False
) -> NDArray[np.int64]:
    """Indices drawn by weight for each row of a 2-d array.

    Without replacement (or for one sample) the largest of weight / exponential win, one 53-bit
    draw a weight; with it each sample searches the cumulated weights for one 53-bit draw.
    Among equal races, common in float16 and bfloat16 only, the first wins; PyTorch's selection
    leaves their order open.
    Raises RuntimeError for weights that are negative, not finite or without a positive sum.
    """
    if replacement and num_samples != 1:
        return _with_replacement(generator, weights, num_samples)
    wide = weights.astype(np.float32 if weights.dtype.itemsize == 2 else weights.dtype, copy=False)
    if not (np.isfinite(wide).all() and (wide >= 0).all()):
        raise TensorRuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if not (wide.sum(axis=-1) > 0).all():
        raise TensorRuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    name = weights.dtype.name
    races = exponential(generator, weights.size, name).reshape(weights.shape)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        races = cast(wide / races.astype(wide.dtype, copy=False), name)
    races = races.astype(wide.dtype, copy=False)
    if num_samples == 1:
        best: NDArray[np.int64] = races.argmax(axis=-1, keepdims=True)
        return best
    chosen: NDArray[np.int64] = np.argsort(-races, axis=-1, kind="stable")[..., :num_samples]
    return chosen


def _with_replacement(
    generator: Generator, weights: NDArray[Any], num_samples: int
) -> NDArray[np.int64]:
    rows, size = weights.shape
    kind = np.float64 if weights.dtype == np.float64 else np.float32
    chosen = np.empty((rows, num_samples), np.int64)
    for row in range(rows):
        line = weights[row].astype(kind)
        if not (line >= 0).all():
            raise TensorRuntimeError(
                "invalid multinomial distribution (encountering probability entry < 0)"
            )
        if not np.isfinite(line).all():
            raise TensorRuntimeError(
                "invalid multinomial distribution (encountering probability entry = infinity or "
                "NaN)"
            )
        heights = np.add.accumulate(line, dtype=kind)
        if not (size and heights[-1] > 0):
            raise TensorRuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
        heights /= heights[-1]
        heights[-1] = 1
        draws = floats53(generator, num_samples)
        chosen[row] = np.searchsorted(heights.astype(np.float64), draws, side="left")
    return chosen


def poisson(generator: Generator, rates: NDArray[Any]) -> NDArray[Any]:
    """Poisson draws for a flat array of rates, in its dtype (Hoermann's PTRS from rate 10 on).

    Raises RuntimeError for a rate that is negative or NaN.
    """
    drawn = np.array([_one_poisson(generator, float(r)) for r in rates.tolist()], np.float64)
    return cast(drawn, rates.dtype.name)


def _one_poisson(generator: Generator, rate: float) -> float:
    if not rate >= 0:
        raise TensorRuntimeError("invalid Poisson rate, expected rate to be non-negative")
    if rate == 0:
        return 0
    if rate < 10:
        floor = math.exp(-rate)
        count, product = 0, generator.uniform53()
        while product > floor:
            count += 1
            product *= generator.uniform53()
        return count
    root, log_rate = math.sqrt(rate), math.log(rate)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    log_inverse_alpha = math.log(1.1239 + 1.1328 / (b - 3.4))
    bound = 0.9277 - 3.6224 / (b - 2)
    while True:
        u = generator.uniform53() - 0.5
        v = generator.uniform53()
        us = 0.5 - abs(u)
        if us == 0 or v == 0:
            continue
        k = math.floor((2 * a / us + b) * u + rate + 0.43)
        if us >= 0.07 and v <= bound:
            return k
        if k < 0 or (us < 0.013 and v > us):
            continue
        left = math.log(v) + log_inverse_alpha - math.log(a / (us * us) + b)
        if left <= -rate + k * log_rate - math.lgamma(k + 1):
            return k


def binomial(generator: Generator, counts: NDArray[Any], probs: NDArray[Any]) -> NDArray[Any]:
    """Binomial draws for flat arrays of one float dtype, in that dtype.

    Inversion by geometric gaps below a mean of 10, Hoermann's BTRS from there on.
    """
    drawn = [
        _one_binomial(generator, count, p)
        for count, p in zip(counts.tolist(), probs.tolist(), strict=True)
    ]
    return cast(np.array(drawn, np.float64), counts.dtype.name)


def _one_binomial(generator: Generator, count: float, p: float) -> float:
    if count <= 0 or p <= 0:
        return 0
    if p >= 1:
        return count
    if not (p == p and count == count):
        return math.nan
    q = p if p <= 0.5 else 1 - p
    draw = _by_rejection if count * q >= 10 else _by_gaps
    drawn = draw(generator, count, q)
    return drawn if p <= 0.5 else count - drawn


def _by_gaps(generator: Generator, count: float, p: float) -> float:
    log_miss = math.log1p(-p)
    place, hits = 0.0, 0
    while True:
        u = generator.uniform53()
        place += math.ceil(math.log(u) / log_miss) if u else math.inf
        if place > count:
            return hits
        hits += 1


def _by_rejection(generator: Generator, count: float, p: float) -> float:
    deviation = math.sqrt(count * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    centre = count * p + 0.5
    bound = 0.92 - 4.2 / b
    odds = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    m = math.floor((count + 1) * p)
    while True:
        u = generator.uniform53() - 0.5
        v = generator.uniform53()
        us = 0.5 - abs(u)
        if us == 0:
            continue
        k = math.floor((2 * a / us + b) * u + centre)
        if k < 0 or k > count:
            continue
        if us >= 0.07 and v <= bound:
            return k
        height = v * alpha / (a / (us * us) + b)
        if height == 0 or math.log(height) <= (
            (m + 0.5) * math.log((m + 1) / (odds * (count - m + 1)))
            + (count + 1) * math.log((count - m + 1) / (count - k + 1))
            + (k + 0.5) * math.log(odds * (count - k + 1) / (k + 1))
            + _stirling_tail(m)
            + _stirling_tail(count - m)
            - _stirling_tail(k)
            - _stirling_tail(count - k)
        ):
            return k


def _stirling_tail(k: float) -> float:
    """log(k!) less Stirling's approximation."""
    if k < 10:
        n = k + 1
        return math.lgamma(n) - ((k + 0.5) * math.log(n) - n + 0.5 * math.log(2 * math.pi))
    inverse = 1 / (k + 1)
    square = inverse * inverse
    return (1 / 12 - (1 / 360 - square / 1260) * square) * inverse
