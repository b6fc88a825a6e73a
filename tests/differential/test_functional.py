"""torch.nn.functional against PyTorch: values, layouts, nodes, refusals and derivatives."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tests.differential.agree import differs  # noqa: E402

HERE = Path(__file__).parent

NAMES = """
torch.manual_seed(0)
r = torch.rand
L = torch.tensor([0, 1, 2])
x = r(3, 4)
def leaf(*sizes):
    return torch.randn(*sizes).requires_grad_()
def leafd(*sizes):
    return torch.randn(*sizes, dtype=torch.float64).requires_grad_()
def grads(y, *leaves):
    g = torch.arange(y.numel(), dtype=y.dtype).reshape(y.shape) * 0.37 - 1
    torch.autograd.backward([y], [g])
    return [leaf.grad for leaf in leaves]
"""


def _lines(name: str) -> list[str]:
    text = (HERE / name).read_text()
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def _program(line: str) -> str:
    return NAMES + "\n".join(part.strip() for part in line.split(";"))


@pytest.mark.parametrize("name", ["functional_layers.txt", "functional_losses.txt"])
def test_calls(name: str) -> None:
    found = {line: differs(_program(line), ulp=64, atol=4e-6) for line in _lines(name)}
    assert not {line: told for line, told in found.items() if told}


def test_derivatives() -> None:
    lines = _lines("functional_gradients.txt")
    found = {line: differs(_program(line), ulp=256, atol=2e-4) for line in lines}
    assert not {line: told for line, told in found.items() if told}
