"""What is said of arguments that fit no signature, by functions and methods, against PyTorch."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import tensorcli.language.tables  # noqa: E402, F401  # lets programs see torch
from tensorcli.language.program import compile_program  # noqa: E402

CALLS = """x.exp(x)
x.exp(foo=1)
torch.exp(x, x)
x.add()
x.add('a')
x.add(1, 2, 3)
torch.add(x)
torch.add(x, 'a')
x.mul(1, 2)
x.sum('a')
x.sum(0, 1)
x.sum(foo=1)
x.reshape('a')
x.transpose()
x.transpose(0, 'a')
torch.transpose(x, 0, 'a')
torch.mm(x)
x.mm()
x.mm(3)
x.softmax(0, 1, 2, 3)
torch.full()
x.max('a')
x.clamp('a')
torch.clamp(x, 'a')
x.squeeze('a')
x.item(1)
x.clone(1)
x.zero_(1)
x.fill_('a')
x.add_('a')
x.masked_fill(x > 0)
x.masked_fill(3, 1)
x.pow('a')
x.pow(exponent='a')
torch.pow(x)
x.div()
x.eq('a')
x.lerp(x)
x.addmm(x)
torch.addmm(x, x)
x.narrow(0)
x.norm('a', 1, 2, 3, 4)
x.backward(foo=1)
x.data_ptr(1)
x.where([1], 2)
torch.where(3, x, x)
x.max(dim='a')
torch.max(x, 'a', keepdim=True)
x.float(1)
x.new_zeros('a')""".split("\n")

PROGRAM = """
x = torch.ones(2, 3)
try:
    {call}
except Exception as error:
    print(type(error).__name__, error)
"""


class Heard:
    """Keeps what a program prints."""

    def __init__(self) -> None:
        self.text = ""

    def value(self, value: object, statement: object) -> None: ...

    def print(self, text: str, line: int) -> None:
        self.text += text


def theirs(call: str) -> str:
    with pytest.raises(TypeError) as caught:
        eval(call, {"torch": torch, "x": torch.ones(2, 3)})
    return f"TypeError {caught.value}".strip()


@pytest.mark.parametrize("call", CALLS)
def test_sentence(call: str) -> None:
    heard = Heard()
    compile_program(PROGRAM.format(call=call)).run({}, heard)
    assert heard.text.strip() == theirs(call)
