"""Derivatives against central differences in one random direction; knows no op in particular.

Complex numbers count as pairs of reals: a gradient g and a direction v give Re(conj(g) · v).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine import dtypes
from engine.registry import F, functions
from engine.tensor import Tensor, from_array
from tests.registry_samples import tensors_in

STEP = 1e-6


@dataclass(frozen=True, slots=True)
class Scalar:
    """A real function of several tensors, with the random weights that make it of an op's result.

    ``points`` are leaves; ``at`` gives the value as a 0-d tensor, recorded.
    """

    points: tuple[Tensor, ...]
    at: Callable[[Sequence[Tensor]], Tensor]


def weighted(call: Callable[[Sequence[Tensor]], Any], points: Sequence[Tensor]) -> Scalar | None:
    """The sum of the differentiable parts of ``call(points)`` times fixed random weights."""
    random = np.random.default_rng(1)
    parts = differentiable(call(points))
    if not parts:
        return None
    weights = [like(random, t) for t in parts]

    def at(values: Sequence[Tensor]) -> Tensor:
        total = None
        for part, weight in zip(differentiable(call(values)), weights, strict=True):
            product = (part * weight).sum()
            product = F.real(product) if product.dtype.is_complex else product
            total = product if total is None else total + product
        assert total is not None
        return total

    return Scalar(tuple(points), at)


def differentiable(value: Any) -> list[Tensor]:
    """The recorded tensors in a result."""
    return [t for t in tensors_in(value) if t.requires_grad]


def like(random: np.random.Generator, t: Tensor) -> Tensor:
    """Random numbers around 1 in size, of a tensor's shape and dtype."""
    array = random.uniform(0.5, 1.5, t.layout.shape) * random.choice([-1, 1], t.layout.shape)
    if t.dtype.is_complex:
        array = array + 1j * random.uniform(-1, 1, t.layout.shape)
    return from_array(np.asarray(array, t.kind.np), t.dtype)


def gradients(f: Scalar, points: Sequence[Tensor], create_graph: bool = False) -> list[Any]:
    y = f.at(points)
    if not y.requires_grad:
        return [None] * len(points)
    return list(
        functions["autograd.grad"](y, list(points), create_graph=create_graph, allow_unused=True)
    )


def slope(grads: Sequence[Any], direction: Sequence[Tensor]) -> float:
    """The derivative along ``direction`` that the gradients claim."""
    total = 0.0
    for g, v in zip(grads, direction, strict=True):
        if g is not None:
            total += float(np.sum((np.conj(g.array) * v.array).real))
    return total


def moved(points: Sequence[Tensor], direction: Sequence[Tensor], by: float) -> list[Tensor]:
    """Leaves at ``points`` plus ``by`` times the direction, laid out as ``points`` are."""
    result = []
    for p, v in zip(points, direction, strict=True):
        memory = F.zeros((p.layout.span,), dtype=p.dtype)
        there = memory.as_strided(p.layout.shape, p.layout.strides).detach()
        there.array[...] = p.array + by * v.array
        result.append(there.requires_grad_())
    return result


def measured(f: Scalar, direction: Sequence[Tensor], step: float = STEP) -> float:
    """The derivative along ``direction`` by central differences."""
    high = f.at(moved(f.points, direction, step)).item()
    low = f.at(moved(f.points, direction, -step)).item()
    return (high - low) / (2 * step)


def gradient_function(f: Scalar) -> Scalar | None:
    """The gradient of ``f`` as a function again, weighted: what a second derivative is of."""
    random = np.random.default_rng(2)
    weights = [like(random, p) for p in f.points]
    if not any(g is not None and g.requires_grad for g in gradients(f, f.points, True)):
        return None

    def at(values: Sequence[Tensor]) -> Tensor:
        total = F.zeros((), dtype=dtypes.float64)
        for g, weight in zip(gradients(f, values, True), weights, strict=True):
            if g is not None and g.requires_grad:
                product = (g * weight).sum()
                total = total + (F.real(product) if product.dtype.is_complex else product)
        return total

    return Scalar(f.points, at)
