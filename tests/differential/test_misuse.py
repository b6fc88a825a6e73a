"""Arguments that no call can take, as a careless program passes them: PyTorch's error, no fault."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from engine.errors import public_type  # noqa: E402
from tensorcli.language.program import compile_program  # noqa: E402
from tensorcli.language.running import Silence  # noqa: E402

# Types and sentences alike.
SAID_ALIKE = """
torch.real(5)
torch.imag(input='a')
torch.conj([1])
torch.positive((1,))
torch.is_same_size(torch.ones(2), 3)
torch.is_same_size(3, torch.ones(2))
torch.is_inference([torch.ones(2)])
torch.detach_(slice(1))
torch.zero_((0, 1))
torch.resize_as_(torch.ones(2), [0.5])
torch.slice_copy(1)
torch.ones(2).is_same_size(5)
torch.ones(2).is_set_to(5)
torch.ones(2).resize_as_(5)
torch.ones(2).cuda(torch.tensor(3))
torch.broadcast_tensors(torch.ones(2), 5)
torch.atleast_1d(torch.ones(2), 5)
torch.atleast_2d(5, torch.ones(2))
torch.atleast_3d(torch.ones(2), torch.float32)
torch.chain_matmul(torch.ones(2, 2), 5)
torch.set_rng_state(5)
torch.set_rng_state(torch.ones(2, device='meta'))
torch.random.set_rng_state('a')
torch.manual_seed([1, 2])
torch.autograd.backward([[1, 2]], torch.ones(2))
torch.autograd.backward(torch.tensor(1., requires_grad=True), 5)
torch.normal(torch.ones(2), torch.ones(2, dtype=torch.complex64))
torch.nn.functional.nll_loss(torch.ones(1, 2), torch.tensor([1]), reduction=[])
torch.nn.functional.mse_loss(torch.ones(2), torch.ones(2), reduction={})
torch.nn.init.calculate_gain([])
torch.tensordot(torch.ones(2, 3), torch.ones(3, 4), dims='sum')
torch.tensordot(torch.ones(2, 3), torch.ones(3, 4), dims=torch.float32)
torch.broadcast_shapes(torch.ones(2))
torch.ones(2, 2).sum(2 ** 63)
torch.ones(2, 2).select(2 ** 70, 0)
torch.ones(2, 2).select(0, -2 ** 70)
torch.ones(2, 2).tril(2 ** 70)
torch.ones(2, 2).split(2 ** 63)
torch.eye(2 ** 63)
torch.vander(torch.ones(3), 2 ** 63)
torch.bincount(torch.tensor([1]), minlength=2 ** 63)
torch.matrix_power(torch.ones(2, 2), 2 ** 63)
torch.mvlgamma(torch.ones(2), 2 ** 63)
torch.round(torch.ones(2), decimals=2 ** 63)
""".strip().splitlines()

# Types alike, and no word on standard output, where LAPACK complains of numbers not finite.
NOT_FINITE = """
torch.linalg.matrix_rank(nan)
torch.linalg.pinv(nan)
torch.linalg.svd(torch.stack([one, nan]))
torch.linalg.cond(nan)
torch.linalg.lstsq(nan, one)
torch.linalg.lstsq(one, nan, driver='gelsd')
torch.linalg.lstsq(torch.stack([one, nan]), one)
torch.nn.functional.embedding_bag(torch.tensor([0]), torch.ones(3), torch.tensor([0]))
torch.embedding_bag(torch.tensor(3.), torch.tensor([0]), torch.tensor([0]))
torch.get_autocast_dtype('xyz')
torch.get_autocast_dtype(5)
torch.ones(2).map_(5, torch.add)
""".strip().splitlines()
INFINITE = """
torch.linalg.svdvals(torch.ones(30, 30) * float('inf'))
torch.linalg.svdvals(torch.stack([one, torch.ones(2, 2) * float('inf')]))
torch.linalg.matrix_rank(torch.stack([one, torch.ones(2, 2) * float('inf')]))
torch.linalg.pinv(torch.stack([one, torch.ones(2, 2) * float('inf')]))
torch.linalg.lstsq(torch.ones(2, 2) * float('inf'), one).solution
""".strip().splitlines()
MATRICES = "one = torch.eye(2)\nnan = torch.ones(2, 2) * float('nan')\n"

# Types alike; PyTorch's sentences are longer, with every signature or with a C++ trace.
RAISED_ALIKE = """
torch.zeros(2 ** 63)
torch.zeros(1, -2 ** 63 - 1)
torch.ones(2).view(2 ** 63)
torch.ones(2).roll((2 ** 70,))
torch.ones(2, 2).sum((0, 2 ** 63))
torch.ones(2).tensor_split()
torch.linalg.pinv(torch.ones(2, 2), (0, 1))
torch.randint_like(torch.ones(2), float('nan'))
torch.randint_like(torch.ones(2), float('inf'))
torch.std(torch.ones(2), [[1]])
torch.fill_(torch.uint8, torch.ones(2))
torch.embedding_renorm_(torch.ones(2, 2), -0.5, -0.5, 2.)
torch.nn.functional.conv_transpose1d(torch.ones(1, 1, 3), torch.ones(1, 2, 3, 3))
torch.autograd.backward('mean', set())
torch.ones(2).random_(10 ** 30)
torch.histogram(torch.ones(2), 4, range=[1])
torch.autograd.graph.increment_version(5)
torch.broadcast_shapes((1, 2), 'a')
""".strip().splitlines()


# Whatever the language lets a program catch.
ERRORS = (Exception,)


def theirs(call: str) -> BaseException:
    names: dict[str, object] = {"torch": torch}
    exec(MATRICES, names)
    with pytest.raises(ERRORS) as caught:
        eval(call, names)
    return caught.value


def ours(call: str) -> BaseException:
    with pytest.raises(ERRORS) as caught:
        compile_program(f"import torch\n{MATRICES}{call}").run({}, Silence())
    return caught.value


@pytest.mark.parametrize("call", SAID_ALIKE)
def test_sentence(call: str) -> None:
    expected, found = theirs(call), ours(call)
    assert (public_type(found), str(found)) == (type(expected).__name__, str(expected))


@pytest.mark.parametrize("call", RAISED_ALIKE)
def test_type(call: str) -> None:
    expected, found = theirs(call), ours(call)
    assert public_type(found) == type(expected).__name__, (str(found), str(expected))
    assert not any(word in str(found) for word in ("numpy", "ufunc", "zip()"))


@pytest.mark.parametrize("call", NOT_FINITE)
def test_not_finite(call: str, capfd: pytest.CaptureFixture[str]) -> None:
    expected = public_type(theirs(call)) if "LinAlg" not in type(theirs(call)).__name__ else ""
    capfd.readouterr()
    found = ours(call)
    assert public_type(found) == (expected or "LinAlgError")
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("call", INFINITE)
def test_infinite(call: str, capfd: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {"torch": torch}
    exec(MATRICES, names)
    expected = eval(call, names)
    capfd.readouterr()
    scope: dict[str, Any] = {}
    with np.errstate(all="ignore"):
        compile_program(f"import torch\n{MATRICES}r = {call}").run(scope, Silence())
    np.testing.assert_allclose(scope["r"].array, expected.numpy(), atol=1e-6)
    assert capfd.readouterr().out == ""
