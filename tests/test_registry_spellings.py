"""In-place twins and ``out=`` against the plain call, for every operation that has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.dtypes import can_cast
from engine.kinds.record import twin
from engine.registry import F, Op
from engine.signature import ArgumentError
from engine.tensor import Tensor
from tests import registry_samples as table
from tests.registry_samples import Raised, Sample

OPS = table.tested()
TWINNED = [op for op in OPS if op.build_inplace is not None]
# The only ops whose plain form draws other numbers than the twin, or has no plain form.
PLAIN = [op for op in TWINNED if op.names or op.methods]


def same(a: Any, b: Any) -> bool:
    """Whether two tensors have equal elements, NaN counted as equal to itself."""
    x, y = a.array, b.array
    if a.kind.opaque:
        x, y = x.astype("float32"), y.astype("float32")
    return bool(np.array_equal(x, y, equal_nan=x.dtype.kind in "fc"))


def inplace_samples(op: Op) -> list[Sample]:
    """Calls that give the first argument's shape, in several layouts and dtypes."""
    return [
        s
        for s in table.variants(op)
        if s.args and isinstance(s.args[0], Tensor) and not s.args[0].layout.overlaps
    ]


@pytest.mark.parametrize("op", PLAIN, ids=lambda op: op.name)
def test_inplace_gives_what_the_plain_call_gives(op: Op) -> None:
    change = twin(op)
    for sample in inplace_samples(op):
        if sample.spelling in ("@", "[]") or sample.changes:
            continue
        x = table.same_layout(sample.args[0])
        plain = table.outcome(op.function, *sample.args, **sample.kwargs)
        before, layout = x.version.n, x.layout
        done = table.outcome(change, x, *sample.args[1:], **sample.kwargs)
        if isinstance(plain, Raised):
            assert isinstance(done, Raised), sample
        elif isinstance(done, Raised):
            assert refused_rightly(x, plain), (sample, done)
            assert x.version.n == before
        else:
            assert done is x, sample
            assert x.version.n == before + 1, sample
            assert same(x, plain.to(x.dtype)), (sample, x, plain)
            assert op.view != "no" or x.layout is layout, sample


def refused_rightly(x: Tensor, plain: Tensor) -> bool:
    """Whether the result does not fit its destination; abs_ alone refuses complex numbers."""
    if x.dtype.is_complex and not plain.dtype.is_complex:
        return True
    fits = plain.layout.shape == x.layout.shape and can_cast(plain.dtype, x.dtype)
    return not fits or x.dtype.is_complex


@pytest.mark.parametrize("op", [op for op in TWINNED if op not in PLAIN], ids=lambda op: op.name)
def test_inplace_alone_changes_and_counts(op: Op) -> None:
    for sample in inplace_samples(op):
        if not sample.changes:
            continue
        x = sample.args[0]
        before = x.version.n
        done = sample.run()
        if isinstance(done, Raised):
            assert x.version.n == before, (sample, done)
        else:
            assert done is x
            assert x.version.n > before


@pytest.mark.parametrize("op", [op for op in OPS if op.kind != "view"], ids=lambda op: op.name)
def test_out(op: Op) -> None:
    for sample in [
        *table.samples(op),
        *(s.mapped(table.transposed, "turned") for s in table.samples(op)),
    ]:
        if sample.changes or sample.spelling in ("@", "[]"):
            continue
        plain = sample.run()
        parts = table.tensors_in(plain)
        if not parts or any(t.requires_grad for t in parts):
            continue
        outs = [F.empty(t.layout.shape, dtype=t.dtype) for t in parts]
        if not accepts(sample, outs, plain):
            return
        given = written(sample, outs, plain)
        assert all(a is b for a, b in zip(table.tensors_in(given), outs, strict=True)), sample
        assert all(same(a, b) for a, b in zip(outs, parts, strict=True)), sample
        assert all(t.version.n >= 1 for t in outs)
        turned = [table.transposed(t) for t in outs]
        strides = [t.layout.strides for t in turned]
        written(sample, turned, plain)
        assert [t.layout.strides for t in turned] == strides, sample
        assert all(same(a, b) for a, b in zip(turned, parts, strict=True)), sample
        small = [F.empty((0,), dtype=t.dtype) for t in parts]
        written(sample, small, plain)
        assert [t.layout.shape for t in small] == [t.layout.shape for t in parts], sample
        assert all(same(a, b) for a, b in zip(small, parts, strict=True)), sample


def accepts(sample: Sample, outs: list[Tensor], plain: Any) -> bool:
    """Whether the op has an ``out=`` at all."""
    found = written(sample, outs, plain)
    if isinstance(found, Raised) and "argument 'out'" in found.text and "unexpected" in found.text:
        return False
    return not (isinstance(found, Raised) and isinstance(found.error, ArgumentError))


def written(sample: Sample, outs: list[Tensor], plain: Any) -> Any:
    out = outs[0] if isinstance(plain, Tensor) else tuple(outs)
    return table.outcome(sample.call, *sample.args, **sample.kwargs, out=out)
