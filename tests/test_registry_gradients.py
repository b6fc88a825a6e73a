"""Every differentiable operation against central differences, to second order; no PyTorch.

Once in one random direction, for real and complex numbers, and once by gradcheck and
gradgradcheck, element by element in float64.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from engine import dtypes
from engine.errors import EngineError
from engine.registry import F, Op, functions
from engine.tensor import Tensor
from tests import gradient_checks as checks
from tests import registry_samples as table
from tests.registry_samples import Raised, Sample

TOLERANCE = 1e-5

# What PyTorch has no derivative of, or takes it for zero.
UNSUPPORTED = re.compile("derivative for .* is not implemented|supported for contiguous inputs")
DRAWS = {"_normal_1", "_normal_2", "_normal_3"}
# PyTorch's derivative of ctc_loss presumes that the input is a log_softmax.
PRESUMING = {"ctc_loss", "nn.functional.ctc_loss"}
# PyTorch refuses to differentiate these for complex numbers.
REAL_ONLY = {"nn.functional.soft_margin_loss"}
# How many of the differentiable inputs have a derivative, where that is not all.
DIFFERENTIABLE = {"nn.functional.soft_margin_loss": 1}
# Vectors that are unique up to a factor: the part of the result that is unique, for all dtypes
# and for complex ones.
UNIQUE = {"linalg.eig": 0}
UNIQUE_COMPLEX = {**UNIQUE, "linalg.eigh": 0, "linalg.svd": 1, "svd": 1}


def check(sample: Sample) -> bool:
    """First and second derivatives of one call; False where nothing in it is differentiable."""
    count = DIFFERENTIABLE.get(sample.op.name)
    points = [t.detach().requires_grad_() for t in table.differentiable_inputs(sample)[:count]]
    try:
        first = checks.weighted(lambda values: called(sample, values), points)
        if first is None:
            return False
        compare(sample, "first", first)
        second = checks.gradient_function(first)
        if second is not None:
            compare(sample, "second", second)
    except EngineError as error:
        if not UNSUPPORTED.search(str(error)):
            raise
    return True


def called(sample: Sample, values: Sequence[Tensor]) -> Any:
    """The sample's call with other numbers in its differentiable tensors."""
    fresh = iter(values)
    floating = {id(t) for t in table.differentiable_inputs(sample)[: len(values)]}
    changed = sample.mapped(lambda t: next(fresh) if id(t) in floating else t, "moved")
    F.manual_seed(0)
    args = changed.args
    if sample.changes:
        args = (args[0].clone(), *args[1:])
    y = sample.call(*args, **changed.kwargs)
    unique = UNIQUE_COMPLEX if values[0].dtype.is_complex else UNIQUE
    return y[unique[sample.op.name]] if sample.op.name in unique else y


def compare(sample: Sample, order: str, f: checks.Scalar) -> None:
    random = np.random.default_rng(3)
    domains = [
        d for t, d in table.domains(sample) if t.dtype.is_floating_point or t.dtype.is_complex
    ]
    direction = [checks.like(random, p) for p in f.points]
    for v, domain in zip(direction, domains, strict=False):
        v.array = table.within(domain, v.array)
    claimed = checks.slope(checks.gradients(f, f.points), direction)
    measured = checks.measured(f, direction)
    scale = max(1.0, abs(claimed), abs(measured))
    assert abs(claimed - measured) <= TOLERANCE * scale, (order, claimed, measured, sample)


@pytest.mark.parametrize(
    "op", [op for op in table.tested() if op.name not in DRAWS | PRESUMING], ids=lambda op: op.name
)
@pytest.mark.parametrize("dtype", [dtypes.float64, dtypes.complex128], ids=str)
def test_gradient(op: Op, dtype: Any) -> None:
    with np.errstate(all="ignore"):
        for sample in table.smooth(op, dtype):
            if dtype.is_complex and (op.name in REAL_ONLY or isinstance(sample.run(), Raised)):
                continue
            check(sample)


# What gradcheck and gradgradcheck do not accept, with the reason; an operation that they accept
# after all must go from the table.
REFUSED = {
    "PyTorch has no derivative": """
        _bernoulli_p _scatter_reduced binomial floor_divide geqrf heaviside histogram histogramdd
        igamma igammac linalg.ldl_factor linalg.ldl_factor_ex linalg.ldl_solve
        native_channel_shuffle special.gammainc special.gammaincc special.zeta unique
        unique_consecutive
    """,
    "the derivative of a random number is taken for 0": """
        _normal_1 _normal_2 _normal_3
    """,
    "the derivative presumes that the input is a log_softmax": """
        ctc_loss nn.functional.ctc_loss
    """,
    "the result depends on the memory around the input": """
        as_strided as_strided_scatter
    """,
}
REFUSED_TWICE = {
    "PyTorch has no second derivative": """
        _cdist_forward _segment_reduce embedding_bag nn.functional.embedding_bag
        nn.functional.hardsigmoid nn.functional.multi_margin_loss
        nn.functional.multilabel_margin_loss nn.functional.scaled_dot_product_attention pdist
    """,
}
GRADCHECK = {name for names in REFUSED.values() for name in names.split()}
GRADGRADCHECK = {name for names in REFUSED_TWICE.values() for name in names.split()}

# The part of a matrix that an operation looks at, as a function of all of it.
PARTS = {
    "hermitian": lambda a: (a + a.mH) / 2,
    "lower": lambda a: a.tril(),
    "upper": lambda a: a.triu(),
}


def accepted(sample: Sample, check: str) -> bool:
    """Whether gradcheck or gradgradcheck accepts a sample; True where nothing is differentiable."""
    inputs = table.differentiable_inputs(sample)[: DIFFERENTIABLE.get(sample.op.name)]
    parts = {id(t): PARTS[d] for t, d in table.domains(sample) if isinstance(d, str)}
    points = [t.detach().requires_grad_() for t in inputs]

    def call(*values: Tensor) -> tuple[Tensor, ...]:
        shaped = [parts.get(id(t), lambda a: a)(v) for t, v in zip(inputs, values, strict=True)]
        return tuple(table.tensors_in(called(sample, shaped)))

    try:
        if not any(t.requires_grad for t in call(*points)):
            return True
        F.manual_seed(0)
        return bool(functions[f"autograd.{check}"](call, points, raise_exception=False))
    except EngineError as error:
        if not UNSUPPORTED.search(str(error)):
            raise
        return False


@pytest.mark.parametrize("op", table.tested(), ids=lambda op: op.name)
def test_gradcheck(op: Op) -> None:
    """Both checks, on contiguous, transposed and stepped inputs."""
    with np.errstate(all="ignore"):
        samples = [s for s in table.smooth(op, dtypes.float64) if not isinstance(s.run(), Raised)]
        first = all(accepted(s, "gradcheck") for s in samples)
        fewer = [s for s in samples if not s.about.endswith("enlarged, float64")]
        second = first and all(accepted(s, "gradgradcheck") for s in fewer)
    assert first == (op.name not in GRADCHECK), "gradcheck"
    assert second == (op.name not in GRADCHECK | GRADGRADCHECK), "gradgradcheck"
