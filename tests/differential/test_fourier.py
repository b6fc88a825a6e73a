"""Fourier transforms against PyTorch: values, strides, nodes, derivatives, complaints."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tests.differential.agree import agree  # noqa: E402

X = "x = torch.arange(60.).reshape(3, 4, 5).sin()"
C = "x = torch.complex(torch.arange(60.).sin(), torch.arange(60.).cos()).reshape(3, 4, 5)"
HALF = ("irfft", "hfft", "ifft", "fft")
REAL = ("rfft", "ihfft", "fft", "ifft")
NORMS = ("None", "'ortho'", "'forward'", "'backward'")


def near(text: str) -> None:
    agree(text, ulp=64, atol=1e-5)


def test_values_and_strides() -> None:
    for start, names in ((X, REAL), (C, HALF)):
        for name in names:
            for dim in (0, 1, -1):
                near(f"{start}\ntorch.fft.{name}(x, dim={dim})")
                near(f"{start}\ntorch.fft.{name}(x.permute(1, 2, 0), n=6, dim={dim})")
            for norm in NORMS:
                near(f"{start}\ntorch.fft.{name}(x, 3, norm={norm})")
            for dims in ("(0, 1)", "(1, 0)", "(2, 0)", "(2, 0, 1)", "1", "None"):
                near(f"{start}\ntorch.fft.{name}n(x, dim={dims})")
            near(f"{start}\ntorch.fft.{name}2(x, s=(2, 8), norm='ortho')")
            near(f"{start}\ntorch.fft.{name}n(x.expand(2, 3, 4, 5), s=(-1, 4))")


def test_gradients() -> None:
    for start, names in ((X, (*REAL, *HALF)), (C, HALF)):
        for name in names:
            for end in ("", "2", "n"):
                near(
                    f"{start.replace('60.)', '60., dtype=torch.float64)')}\nx.requires_grad_()\n"
                    f"y = torch.fft.{name}{end}(x)\n"
                    "w = torch.arange(y.numel()).double().reshape(y.shape).cos()\n"
                    "g, = torch.autograd.grad((y.abs() ** 2 * w).sum(), x, create_graph=True)\n"
                    "torch.autograd.grad((g.abs() ** 2).sum(), x)[0].contiguous(), y"
                )


def test_dtypes() -> None:
    for name in (*REAL, *HALF):
        for dtype in ("int64", "bool", "float16", "bfloat16", "float64", "complex128"):
            near(f"torch.fft.{name}(torch.ones(4, dtype=torch.{dtype}))")
            near(f"torch.fft.{name}n(torch.ones(4, 3, dtype=torch.{dtype}))")


COMPLAINTS = (
    "torch.fft.fft(x, n=0)", "torch.fft.fft(x, n=-1)", "torch.fft.fft(x, dim=3)",
    "torch.fft.fft(x, norm='foo')", "torch.fft.fft(x, norm=3)", "torch.fft.fft(torch.tensor(1.))",
    "torch.fft.irfft(torch.ones(1))", "torch.fft.fftn(x, dim=(0, 0))",
    "torch.fft.fftn(x, s=(1, 2, 3, 4))", "torch.fft.fftn(x, s=(1, 2), dim=(0,))",
    "torch.fft.fftn(x, s=(0, 2))", "torch.fft.rfftn(x, dim=())", "torch.fft.fftn(x, dim=())",
    "torch.fft.irfftn(x, dim=())", "torch.fft.ihfftn(x + 0j)", "torch.fft.rfft(x + 0j)",
    "torch.fft.fft(torch.zeros(0, 3))", "torch.fft.fft(3)", "torch.fft.fft()",
    "torch.fft.fft(x, 2, 0, None, 3)", "torch.fft.fft(x, out=torch.zeros(3))",
    "torch.fft.irfftn(x, out=torch.zeros(3) + 0j)",
    "torch.fft.fft(x, out=torch.zeros(0, dtype=torch.complex128))",
    "torch.fft.fftn(x, s=2.5)", "torch.fft.fftfreq(-1)", "torch.fft.fftfreq(5.0)",
    "torch.fft.fftfreq(4, dtype=torch.int64)", "torch.fft.fftfreq(4, dtype=torch.complex64)",
    "torch.fft.fftshift(torch.tensor(1.))", "torch.fft.fftshift(x, 5)",
)  # fmt: skip


def test_complaints() -> None:
    for text in COMPLAINTS:
        near(f"{X}\n{text}")


def test_frequencies_and_shifts() -> None:
    for name in ("fftfreq", "rfftfreq"):
        for arguments in ("5", "4, 2.0", "0", "1", "4, d=0", "6, dtype=torch.float64", "7, 0.1"):
            agree(f"torch.fft.{name}({arguments})")
        agree(f"torch.fft.{name}(4, dtype=torch.float16, requires_grad=True)")
    for name in ("fftshift", "ifftshift"):
        for dim in ("None", "0", "(0, 2)", "-1"):
            agree(f"{X}\ntorch.fft.{name}(x.requires_grad_(), dim={dim})")
