"""What holds for every operation, with the registry as the table; needs no PyTorch.

An op enters these tests by being registered: its example and samples are the calls, varied in
layout, shape and dtype. Check mode is on, so every result is also held against its rule.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engine import dtypes, registry
from engine.errors import DtypeNotImplementedError, EngineError, LinAlgError, TensorIndexError
from engine.kinds.record import parameters
from engine.modes import state
from engine.registry import Op, functions
from tensorcli import reference, results
from tensorcli.session import Session
from tensorcli.settings import Settings
from tests import registry_samples as table
from tests.in_memory import World
from tests.registry_samples import Raised, Sample

ROOT = Path(__file__).resolve().parent.parent
OPS = table.tested()
each_op = pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)

# Meta tensors have no data and no kernels, so they need not raise these (PyTorch's do not).
OF_VALUES = (LinAlgError, TensorIndexError, DtypeNotImplementedError)
SAID_OF_VALUES = (
    "Number of elements of source <",
    "invalid multinomial distribution",
    "torch.linalg.lu_factor: U[",
    "is out of bounds for",
    "is out of range",
    "target out of range",
    "check_random_bounds handles only",
)


def test_check_mode_is_on() -> None:
    assert state.check


@pytest.mark.parametrize("op", [op for op in OPS if table.spellings(op)], ids=lambda op: op.name)
def test_documented(op: Op) -> None:
    assert op.doc.rstrip().endswith((".", "…")), op.doc
    assert op.example


def test_functions_without_a_record_are_documented() -> None:
    recorded = {name for op in registry.ops.values() for name in (*op.names, *op.inplace)}
    bare = {name for name in registry.functions.names() if not registry.functions[name].__doc__}
    assert not bare - recorded


@each_op
def test_example_runs_in_the_language(op: Op) -> None:
    told: list[Any] = []
    text = reference.of_op(op).example
    status = Session(World().environment, Settings(seed=0)).run(text, told.append)
    assert status == 0, [r for r in told if isinstance(r, results.ErrorResult)]
    assert told


@each_op
def test_has_a_sample_that_works(op: Op) -> None:
    found = table.samples(op)
    assert found
    assert not [s.run() for s in found if isinstance(s.run(), Raised)]


def test_no_op_is_untested() -> None:
    """An op without an example is a part of others, whose samples or derivatives call it."""
    for op in OPS:
        for sample in table.smooth(op, dtypes.float32):
            points = [t.requires_grad_() for t in table.differentiable_inputs(sample)]
            for y in table.tensors_in(sample.run()):
                if y.requires_grad:
                    table.outcome(functions["autograd.grad"], y.sum(), points, allow_unused=True)
        for sample in table.samples(op):
            sample.run()
    hidden = [op for op in registry.ops.values() if op not in OPS]
    assert not [op.name for op in hidden if op.call is None]


@each_op
def test_meta_equals_real(op: Op) -> None:
    for sample in table.variants(op):
        real, meta = sample.run(), sample.on_meta().run()
        if isinstance(real, Raised):
            assert deliberate(op, real), (sample, real)
        if op.data_dependent and sample.tensors:
            assert isinstance(meta, Raised), (sample, meta)
            assert deliberate(op, meta), (sample, meta)
        elif not (isinstance(real, Raised) and of_values(real)):
            assert table.described(real) == table.described(meta), sample


def deliberate(op: Op, raised: Raised) -> bool:
    """Whether the error is one of the engine's, not an accident of numpy or Python."""
    return isinstance(raised.error, EngineError) or op.kind == "functional"


def of_values(raised: Raised) -> bool:
    return isinstance(raised.error, OF_VALUES) or any(s in raised.text for s in SAID_OF_VALUES)


@each_op
def test_a_wrong_dim_is_refused(op: Op) -> None:
    for sample in table.given(op)[:1]:
        for wrong in with_wrong_dim(sample):
            real, meta = wrong.run(), wrong.on_meta().run()
            assert isinstance(real, Raised), wrong
            assert real.type == "IndexError", wrong
            assert op.data_dependent or real == meta, wrong


def with_wrong_dim(sample: Sample) -> list[Sample]:
    """The sample with each dimension number that it names out of range."""
    found = []
    for at, p in enumerate(parameters(sample.op)):
        if p.kind == "Dim" and at < len(sample.args) and isinstance(sample.args[at], int):
            args = (*sample.args[:at], 99, *sample.args[at + 1 :])
            found.append(table.replace(sample, args=args, about=f"{p.name}=99"))
    return found


@pytest.mark.skipif(not (ROOT / "engine/ops/index.py").exists(), reason="nothing generated yet")
def test_generated_files_are_current() -> None:
    command = [sys.executable, str(ROOT / "scripts/generate"), "--check"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert process.returncode == 0, process.stdout + process.stderr
