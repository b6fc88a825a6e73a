"""Reductions of runs, and decompositions from random projections, against PyTorch."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tests.differential.agree import agree  # noqa: E402

DATA = "d = torch.tensor([[0., 2, 2, 3, 1, 4], [5, 1, 5, 2, 2, 0]], requires_grad=True)"
ROWS = "lengths=torch.tensor([[3, 2, 1], [2, 0, 4]]), axis=1"


def test_runs() -> None:
    for reduce in ("sum", "mean", "max", "min", "prod"):
        for initial in ("None", "1.0"):
            agree(f"{DATA}\ntorch.segment_reduce(d, '{reduce}', {ROWS}, initial={initial})")
        agree(
            f"{DATA}\ny = torch.segment_reduce(d, '{reduce}', {ROWS})\n"
            "torch.autograd.grad((y * torch.tensor([1., 2, 3])).sum(), d)"
        )
    agree(f"{DATA}\ntorch.segment_reduce(d, 'sum', offsets=torch.tensor([0, 1, 2]))")


def test_complaints() -> None:
    for arguments in (
        "'foo', lengths=torch.tensor([2])", "'sum'", "'sum', lengths=torch.tensor([1])",
        "'sum', lengths=torch.tensor([1, 1]), axis=1",
    ):  # fmt: skip
        agree(f"{DATA}\ntorch.segment_reduce(d, {arguments})")
    agree("torch.segment_reduce(torch.arange(3), 'sum', lengths=torch.tensor([3]))")


def test_low_rank() -> None:
    for call in ("svd_lowrank(x, 3)", "svd_lowrank(x.mT, 3, M=x.mT[:1])", "pca_lowrank(x)"):
        text = f"torch.manual_seed(0)\nx = torch.randn(2, 4, 7)\nu, s, v = torch.{call}\ns"
        agree(text, ulp=64, atol=1e-5)
    agree("torch.pca_lowrank(torch.ones(2, 3), 9)")
