"""New tensors against PyTorch: sizes, numbers, lists, ranges, windows; values and refusals."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tests.differential.agree import agree  # noqa: E402

FILLED = """
zeros(2, 3)
zeros([])
zeros(2, 3, dtype=torch.int64)
zeros(2, device="meta")
zeros("a")
zeros(-1)
zeros((2, None))
zeros(2, foo=1)
zeros(2, out=torch.zeros(3))
zeros(2, out=torch.zeros(3), dtype=torch.int64)
zeros(2, requires_grad=True, dtype=torch.int64)
ones(-1)
full((2,), 1)
full((2,), 1.5, dtype=torch.int64)
full((2,), True)
full((2,), 1j)
full((2,), -1, dtype=torch.uint8)
full((2,), 300, dtype=torch.uint8)
full((2,), 1e40, dtype=torch.float32)
full((2,), 2**63)
full((2,), 2**64)
full((2,), nan, dtype=torch.int64)
full(2, 3)
empty(2, 3, memory_format=torch.channels_last)
zeros_like(torch.ones(2, 3).t())
zeros_like(torch.ones(2, 3)[:, ::2])
zeros_like(torch.ones(2, 1).expand(2, 3))
zeros_like(torch.ones(2, 3, 4, 5), memory_format=torch.channels_last)
full_like(torch.tensor([1, 2]), 3.7)
full_like(torch.tensor([1, 2]), 3j)
ones(2).new_zeros(3, dtype=torch.int64)
ones(2).new_full((2,), 3)
ones(2).new_full(2, 3)
ones(2).new_tensor([1, 2])
empty_strided((2, 3), (1,))
empty_permuted((2, 3, 5), (1, 2, 2))
scalar_tensor(3)
eye(3, 2)
eye(-1)
eye(2, dtype=torch.bool)
tril_indices(3, 3, 1)
triu_indices(2, 3, dtype=torch.float32)
"""

RANGES = """
arange(5)
arange(5.)
arange(1, 5, 2)
arange(5, 1, -1)
arange(5, 1)
arange(0, 1, 0)
arange(0, 1, 0.1)
arange(2.5, 10.2, 2)
arange(2**53, 2**53 + 3)
arange(0, 1, 0.3, dtype=torch.int64)
arange(5, dtype=torch.bool)
arange(inf)
arange(1j)
arange(0, 2**62)
arange(1, step=2)
torch.range(0, 5, 2)
linspace(0, 1, 7)
linspace(10, 0, 4, dtype=torch.int64)
linspace(-5.5, 5.5, 4, dtype=torch.int32)
linspace(1j, 1, 3)
linspace(0, 1, -1)
linspace(0, 1)
linspace(torch.tensor([0.]), 1., 3)
linspace(0, 1j, 3, dtype=torch.float32)
logspace(0, 3, 4, base=2)
logspace(0, 3, 4, dtype=torch.int64)
"""

READ = """
tensor([[1, 2], [3, 4]])
tensor([1, 2.5])
tensor([True, 2])
tensor([1, 2j])
tensor([])
tensor([[], []])
tensor([[1, 2], [3]])
tensor([1, [2]])
tensor([[1], 2])
tensor([1., [2]])
tensor("a")
tensor(["a"])
tensor([1, "a"])
tensor([1, None])
tensor({})
tensor(2**63)
tensor(2**63, dtype=torch.uint64)
tensor(-1, dtype=torch.uint8)
tensor(256, dtype=torch.uint8)
tensor(3.7, dtype=torch.int64)
tensor(nan, dtype=torch.int64)
tensor(-0.5, dtype=torch.uint8)
tensor(1j, dtype=torch.float32)
tensor(1e300, dtype=torch.float16)
tensor([1000.], dtype=torch.float8_e4m3fn)
tensor([torch.tensor(1.), torch.tensor(2)])
tensor([torch.tensor([1, 2])])
tensor([torch.tensor(1.5)], dtype=torch.int64)
tensor([1], requires_grad=True)
tensor(torch.ones(2, 3).t())
as_tensor([1, 2])
as_tensor(torch.tensor([1.], requires_grad=True), dtype=torch.float64)
asarray([1, 2], copy=False)
asarray(torch.tensor([1., 2.]), copy=False, dtype=torch.int64)
frombuffer(bytearray(b"abcd"), dtype=torch.int16)
FloatTensor([1, 2])
LongTensor([1.5, 2])
"""

BUILT = """
hann_window(5)
hamming_window(5, True, 0.6)
bartlett_window(6, False)
blackman_window(5, dtype=torch.float64)
kaiser_window(5)
hann_window(-1)
hann_window(5, dtype=torch.int64)
signal.windows.hann(5)
signal.windows.hann(-1)
signal.windows.exponential(5, center=0)
block_diag(torch.tensor([1, 2]), torch.tensor([[1., 2.], [3., 4.]]))
block_diag()
block_diag(torch.ones(2, 2, 2))
block_diag(torch.ones(2, requires_grad=True))
vander(torch.tensor([1, 2, 3]))
vander(torch.tensor([1, 2, 3]), 2, increasing=True)
vander(torch.tensor([[1]]))
"""


def _programs(*tables: str) -> list[str]:
    lines = [line for table in tables for line in table.strip().splitlines()]
    return [line if line.startswith("torch.") else f"torch.{line}" for line in lines]


@pytest.mark.parametrize("program", _programs(FILLED, RANGES, READ))
def test_same_as_pytorch(program: str) -> None:
    agree(program)


@pytest.mark.parametrize("program", _programs(BUILT))
def test_same_windows_and_matrices(program: str) -> None:
    agree(program, ulp=64, atol=1e-6)
