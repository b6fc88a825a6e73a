"""Random numbers as PyTorch's CPU generator gives them, as flat numpy arrays; knows no tensors.

Every draw takes a Generator and a count and returns a new array in the order in which PyTorch
fills its destination: the order in memory for a dense destination, else dimensions sorted by
stride as in any element-wise kernel, so that `empty(3, 4).t().uniform_()` is filled along its
memory and not along its rows. dtypes are named ("float32", "bfloat16"). Arguments are checked
with PyTorch's messages before anything is drawn; a count of 0 draws nothing.

Uniform and integer draws, and normals of up to 131,072 elements, have PyTorch's bits. Functions
of float64 draws (exponential, cauchy …) have the bits of the C library's functions up to 1,024
elements and are at most 2 ulp away above, where numpy's functions are several times quicker.
"""

from __future__ import annotations

from engine.random.continuous import (
    cauchy,
    dirichlet,
    exponential,
    gamma,
    log_normal,
)
from engine.random.discrete import (
    bernoulli_p,
    bernoulli_scalar,
    binomial,
    dropout_mask,
    geometric,
    multinomial,
    poisson,
)
from engine.random.integers import (
    randint,
    random_,
    random_from,
    random_from_to,
    randperm,
)
from engine.random.normal import normal, normal_tensors
from engine.random.source import DEFAULT_SEED, STATE_BYTES, Generator
from engine.random.uniform import uniform

__all__ = [
    "DEFAULT_SEED",
    "STATE_BYTES",
    "Generator",
    "bernoulli_p",
    "bernoulli_scalar",
    "binomial",
    "cauchy",
    "dirichlet",
    "dropout_mask",
    "exponential",
    "gamma",
    "geometric",
    "log_normal",
    "multinomial",
    "normal",
    "normal_tensors",
    "poisson",
    "randint",
    "random_",
    "random_from",
    "random_from_to",
    "randperm",
    "uniform",
]
