"""Random tensors against PyTorch: the same numbers for the same seed, the same refusals."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tests.differential.agree import agree  # noqa: E402

PROGRAMS = """
torch.rand(2, 3)
torch.rand(20, dtype=torch.bfloat16)
torch.rand(2, dtype=torch.int64)
torch.rand(-1)
torch.randn(5)
torch.randn(4, 10)
torch.randn(3, dtype=torch.complex64)
torch.randn(2, dtype=torch.bool)
torch.randint(10, (5,))
torch.randint(3, 10, (2, 3))
torch.randint(5, 3, (2,))
torch.randint(10, 2)
torch.randint(300, (2,), dtype=torch.uint8)
torch.randperm(10)
torch.randperm(300, dtype=torch.uint8)
torch.rand_like(torch.ones(2, 3).t())
torch.randn_like(torch.ones(4, 5).t())
torch.rand_like(torch.tensor([1]))
torch.randint_like(torch.ones(2, 3), 5)
torch.zeros(4, 6).t().uniform_(-1, 1)
torch.zeros(4, 6)[:, ::2].uniform_()
torch.zeros(4, 6)[:, ::2].normal_(1, 2)
torch.zeros(4, 6).t().normal_()
torch.zeros(2).uniform_(1, 0)
torch.zeros(1).expand(3).uniform_()
torch.zeros(2, requires_grad=True).normal_()
(torch.zeros(2, requires_grad=True) * 1).normal_()
torch.zeros(5).exponential_(2)
torch.zeros(2, dtype=torch.int64).exponential_()
torch.zeros(5).cauchy_()
torch.zeros(5).log_normal_()
torch.zeros(5).geometric_(0.3)
torch.zeros(5).geometric_(2)
torch.zeros(5).random_(5)
torch.zeros(5, dtype=torch.int64).random_()
torch.zeros(2).random_(5, 2)
torch.normal(torch.tensor([0., 1.]), torch.tensor([1., 2.]))
torch.normal(torch.tensor([0., 1.]), 2.)
torch.normal(0., torch.tensor([1., 2.]))
torch.normal(0., 1., (20,))
torch.normal(0., 1.)
torch.normal(torch.tensor([0.]), -1.)
torch.normal(torch.tensor([0.], requires_grad=True), torch.tensor([1.]))
torch.bernoulli(torch.tensor([0.2, 0.5, 0.9]))
torch.bernoulli(torch.tensor([0.2, 0.5, 0.9], requires_grad=True))
torch.bernoulli(torch.tensor([2.]))
torch.bernoulli(torch.ones(2, 3).t() * 0.5)
torch.tensor([1, 2]).bernoulli_(torch.tensor([0.3, 0.4]))
torch.multinomial(torch.tensor([0.1, 0.9, 3.]), 2)
torch.multinomial(torch.tensor([0.1, 0.9, 3.]), 5, True)
torch.multinomial(torch.tensor([0.1, 0.9]), 3)
torch.multinomial(torch.tensor([0., 0.]), 1)
torch.poisson(torch.tensor([1., 20.]))
torch.binomial(torch.tensor([10., 100.]), torch.tensor([0.5, 0.3]))
torch.nn.init.xavier_uniform_(torch.zeros(3, 5))
torch.nn.init.kaiming_normal_(torch.zeros(20, 3))
torch.nn.init.trunc_normal_(torch.zeros(50))
torch.nn.init.dirac_(torch.zeros(3, 2, 3))
torch.nn.init.xavier_uniform_(torch.zeros(2))
torch.nn.init.calculate_gain("foo")
"""


@pytest.mark.parametrize("program", PROGRAMS.strip().splitlines())
def test_same_as_pytorch(program: str) -> None:
    agree(f"torch.manual_seed(7)\n{program}", ulp=4)


def test_a_state_that_was_put_back_gives_the_same_numbers() -> None:
    program = (
        "torch.manual_seed(1)\ns = torch.get_rng_state()\na = torch.rand(3)\n"
        "torch.set_rng_state(s)\ntorch.rand(3) - a"
    )
    agree(program)
