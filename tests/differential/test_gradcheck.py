"""gradcheck and gradgradcheck accept and refuse what PyTorch's do."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from tests.differential.agree import differs  # noqa: E402

BEFORE = """
G = torch.autograd
x = torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True)
y = torch.tensor([2.0, -1.0], dtype=torch.float64, requires_grad=True)
f = torch.tensor([0.5, 1.5], requires_grad=True)
c = torch.tensor([0.5 + 1j, 1.5], dtype=torch.complex128, requires_grad=True)
m = torch.ones(2, 2, dtype=torch.float64, requires_grad=True)
def text(*args, **kwargs):
    try:
        return G.gradcheck(*args, **kwargs)
    except RuntimeError as error:
        return str(error)
"""

PROGRAMS = """
G.gradcheck(torch.sin, (x,))
G.gradcheck(torch.sin, x)
G.gradcheck(torch.mul, (x, y))
G.gradcheck(torch.matmul, (m, m.detach().clone()))
text(torch.square, f)
G.gradcheck(torch.sin, x.detach())
G.gradcheck(lambda a: a.detach() * 2, x)
text(lambda a: a.detach() * a, x)
G.gradcheck(lambda a: a.detach() * a, x, raise_exception=False)
G.gradcheck(lambda a: a.detach() * a, x, eps=1e-4, atol=10)
G.gradcheck(lambda a: (a * 2).long(), x)
G.gradcheck(lambda a: a * a, c)
G.gradcheck(lambda a: a.abs(), c)
text(lambda a: a * a.detach(), c)
text(lambda a, b: (a * b, a.detach() + b), (x, y))
G.gradcheck(torch.sin, x.detach().expand(2, 2).requires_grad_())
G.gradcheck(torch.abs, torch.zeros(2, dtype=torch.float64, requires_grad=True))
G.gradgradcheck(torch.sin, x)
G.gradgradcheck(torch.mul, (x, y))
G.gradgradcheck(lambda a: a * 2, x)
G.gradgradcheck(lambda a: a.exp(), x, y)
G.gradgradcheck(lambda a: a.detach() * a * a, x)
G.gradgradcheck(lambda a: a.detach() * a * a, x, raise_exception=False)
""".strip().split("\n")


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program: str) -> None:
    found = differs(BEFORE + program)
    assert found is None, found
