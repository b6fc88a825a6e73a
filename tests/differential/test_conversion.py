"""Copies, conversions, fillings and exchange with Python against PyTorch."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tests.differential.agree import agree  # noqa: E402

PROGRAMS = """
torch.ones(2).to(torch.float64)
torch.ones(2, 3).t().to(torch.float64)
torch.ones(2, 3)[:, ::2].double()
torch.ones(2, requires_grad=True).to(torch.float64)
torch.ones(2, requires_grad=True).to(torch.int64)
torch.ones(2, requires_grad=True).to(torch.float32, copy=True)
torch.ones(2).to(torch.tensor([1]))
torch.ones(2).to("cpu", torch.int64)
torch.ones(2).to("meta")
torch.ones(2).to("cuda")
torch.ones(2).to(torch.int64, "cpu")
torch.ones(2).to("float32")
torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)
torch.ones(2).type()
torch.ones(2).type("torch.LongTensor")
torch.ones(2).type("foo")
torch.tensor([300.7, -1.5]).byte()
torch.tensor([1.5, 0.]).bool()
torch.tensor([1.5]).cfloat()
torch.ones(2).element_size()
torch.ones(2).nbytes
torch.is_floating_point(1)
torch.promote_types(torch.uint16, torch.int16)
torch.result_type(torch.tensor([1], dtype=torch.int8), 1000)
torch.can_cast(torch.complex64, torch.float32)
torch.set_default_dtype(torch.int64)
torch.ones(2, 3).t().clone()
torch.ones(2, 3).clone(memory_format="a")
torch.ones(2, 3).t().contiguous()
torch.ones(2, 3).contiguous(memory_format=torch.channels_last)
torch.ones(3).copy_(torch.tensor([1, 2, 3]))
torch.ones(3).copy_(torch.tensor([1, 2]))
torch.ones(3).copy_(torch.ones(2, 3))
torch.ones(3, requires_grad=True).copy_(torch.ones(3))
torch.ones(1).expand(3).copy_(torch.ones(3))
torch.ones(3).copy_(torch.tensor([1., 2, 3], requires_grad=True))
torch.ones(2, 2).fill_(torch.tensor(3))
torch.ones(2, 2).fill_(torch.tensor([3]))
torch.ones(2, 2).fill_(torch.tensor(3., requires_grad=True))
torch.fill(torch.ones(2, 2), torch.tensor(3., requires_grad=True))
torch.fill(torch.ones(2, requires_grad=True), 3)
torch.ones(2, dtype=torch.int64).fill_(3j)
torch.ones(1).expand(3).fill_(2)
(torch.ones(2, requires_grad=True) * 1).fill_(2)
(torch.ones(2, requires_grad=True) * 1).zero_()
torch.ones(2, requires_grad=True).zero_()
torch.zeros(7, 3).fill_diagonal_(5, wrap=True)
torch.zeros(3, 4, 3).fill_diagonal_(5)
(torch.zeros(3, 3, requires_grad=True) * 1).fill_diagonal_(5)
x = torch.ones(3, requires_grad=True); y = x * 2; y.fill_(1); y.sum().backward(); x.grad
x = torch.tensor(2., requires_grad=True); torch.ones(3).fill_(x).sum().backward(); x.grad
x = torch.ones(3, requires_grad=True); torch.zeros(2, 3).copy_(x).sum().backward(); x.grad
x = torch.ones(3, requires_grad=True); x.double().sum().backward(); x.grad
torch.tensor([1, 2]).item()
torch.tensor(1., device="meta").item()
torch.tensor([0.1], dtype=torch.bfloat16).tolist()
torch.zeros(2, 0).tolist()
len(torch.tensor(1))
[x for x in torch.tensor(1)]
list(torch.tensor([[1, 2], [3, 4]]))
bool(torch.tensor([1, 2]))
bool(torch.tensor([]))
int(torch.tensor([1, 2]))
int(torch.tensor(1.7))
int(torch.tensor(1j))
int(torch.tensor(nan))
[1, 2, 3][torch.tensor(2)]
[1, 2, 3][torch.tensor(2.)]
1.0 in torch.tensor([1, 2])
None in torch.tensor([1])
f"{torch.tensor(1.5):.3f}"
f"{torch.tensor([1.5]):.3f}"
torch.tensor([1.], requires_grad=True).numpy()
torch.tensor([1.], dtype=torch.bfloat16).numpy()
list(reversed(torch.tensor([1, 2, 3])))
"""


@pytest.mark.parametrize("program", PROGRAMS.strip().splitlines())
def test_same_as_pytorch(program: str) -> None:
    agree("\n".join(program.split("; ")))
