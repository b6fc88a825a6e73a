"""Distances between sets of rows against PyTorch: values, gradients, complaints."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tests.differential.agree import agree  # noqa: E402

START = """a = torch.arange(6.).reshape(3, 2).requires_grad_()
b = torch.tensor([[0., 1.], [5., -3.], [1., 2.], [8., 8.]]).requires_grad_()
w = torch.arange(12.).reshape(3, 4)"""
MODES = ("use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
COMPLAINTS = (
    "a, b, -1", "a, b, compute_mode='foo'", "a, b[:, :1]", "a, b[0]", "a, b.double()",
    "a.half(), b.half()", "a.int(), b.int()", "a + 0j, b + 0j", "3, b", "a, b, 'x'",
    "a.expand(2, 3, 2), b.expand(3, 4, 2)", "a[:0], b", "a[:, :0], b[:, :0]", "a, b, 2, 0, 0",
)  # fmt: skip


def test_values_and_gradients() -> None:
    for p in ("0", "0.5", "1", "1.5", "2", "3", "float('inf')"):
        for mode in MODES:
            agree(
                f"{START}\ny = torch.cdist(a, b.expand(2, 4, 2), {p}, '{mode}')\n"
                "y, torch.autograd.grad((y * w).sum(), [a, b])",
                ulp=16,
                atol=1e-5,
            )


def test_complaints() -> None:
    for arguments in COMPLAINTS:
        agree(f"{START}\ntorch.cdist({arguments})")
