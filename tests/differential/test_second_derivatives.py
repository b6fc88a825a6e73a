"""Derivatives of derivatives of every operator of PyTorch's database: which gradients can be
differentiated again, what comes out, and how the rest is refused.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

torch = pytest.importorskip("torch")
pytest.importorskip("torch.testing._internal.common_methods_invocations")

from engine import modes  # noqa: E402
from tests.differential import agree  # noqa: E402
from tests.differential import operator_database as database  # noqa: E402
from tests.differential.agree import OURS  # noqa: E402

SAMPLES = 2

# Each must still differ: mend it and its entry goes.
KNOWN = {
    "as_strided_scatter": "PyTorch's gradient of the input is wrong: it is that of src",
    "nn.functional.linear_cross_entropy.chunked": "PyTorch's second derivative is 0, not right",
    "nn.functional.linear_cross_entropy.chunked_none": "PyTorch fails within: out= and gradients",
}


@pytest.fixture(autouse=True, scope="module")
def _brisk() -> Iterator[None]:
    with database.brisk():
        yield


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [t for item in value for t in _tensors(item)]
    return [value] if hasattr(value, "requires_grad") else []


def _weights(module: Any, like: Any, seed: int) -> Any:
    """Random numbers of the shape and dtype of a tensor."""
    random = np.random.default_rng(seed)
    array = random.uniform(0.5, 1.5, tuple(like.shape))
    if like.is_complex():
        array = array + 1j * random.uniform(-1, 1, tuple(like.shape))
    return module.from_numpy(np.asarray(array))


def _derivatives(module: Any, call: Any, inputs: list[Any]) -> Any:
    """First gradients, which of them can be differentiated, and the second ones; or the error."""
    try:
        module.manual_seed(0)
        outputs = [t for t in _tensors(call()) if t.requires_grad]
        if not outputs:
            return None
        starts = [_weights(module, t, k).requires_grad_() for k, t in enumerate(outputs)]
        first = module.autograd.grad(outputs, inputs, starts, create_graph=True, allow_unused=True)
        again = [g for g in first if g is not None and g.requires_grad]
        flags = [g is not None and g.requires_grad for g in first]
        if not again:
            return flags, _arrays(first), None
        weights = [_weights(module, g, 9 + k) for k, g in enumerate(again)]
        wanted = [*inputs, *starts]
        second = module.autograd.grad(again, wanted, weights, allow_unused=True)
        return flags, _arrays(first), _arrays(second)
    except RuntimeError as error:
        return str(error).split("\n")[0]


def _arrays(found: Any) -> list[Any]:
    return [0.0 if t is None else agree._array(t.detach().clone()) for t in found]


def _differ(theirs: Any, ours: Any) -> str | None:
    if theirs is None or ours is None or isinstance(theirs, str) or isinstance(ours, str):
        same = type(theirs) is type(ours) and theirs == ours
        return None if same else f"{theirs} and {ours}"[:300]
    if theirs[0] != ours[0]:
        return f"differentiable again: {theirs[0]} and {ours[0]}"
    for order, a, b in zip(("first", "second"), theirs[1:], ours[1:], strict=True):
        for x, y in zip(a or (), b or (), strict=True):
            with np.errstate(all="ignore"):
                near = np.isclose(x, y, rtol=1e-6, atol=1e-7, equal_nan=True)
            if not np.all(near):
                return f"{order}: {np.broadcast_to(x, near.shape)[~near][:4]} and " + str(
                    np.broadcast_to(y, near.shape)[~near][:4]
                )
    return None


def _difference(call: Any) -> str | None:
    sample = call.sample
    bring = database.Conversion()
    try:
        arguments, options = bring((sample.input, *sample.args)), bring(sample.kwargs)
    except database.Untranslatable:
        return None
    inputs = _tensors((sample.input, sample.args, sample.kwargs))
    leaves = [t for t in inputs if t.requires_grad]
    own = [t for t in _tensors((arguments, options)) if t.requires_grad]
    if not leaves:
        return None
    process = sample.output_process_fn_grad
    rebound = database.rebound(process)
    theirs = _derivatives(
        torch, lambda: process(call.op(sample.input, *sample.args, **sample.kwargs)), leaves
    )
    ours = _derivatives(OURS, lambda: rebound(database.ours(call.op)(*arguments, **options)), own)
    modes.state.reset()
    return _differ(theirs, ours)


@pytest.mark.parametrize("name", database.operators())
def test_second_derivatives(name: str) -> None:
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in database.calls(name, SAMPLES, (torch.float64,)):
            different = _difference(call)
            found += [f"sample {call.number}: {different}"] if different else []
    if name in KNOWN:
        assert found, f"{name} agrees now: take it from the known differences"
        pytest.xfail(KNOWN[name])
    assert not found, "PyTorch and engine: " + "\n".join(found)


def test_known_differences_are_of_operators() -> None:
    assert set(KNOWN) <= set(database.operators())
