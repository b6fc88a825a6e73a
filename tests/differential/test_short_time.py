"""Short-time Fourier transforms and window functions against PyTorch."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tests.differential.agree import agree  # noqa: E402

START = "x = torch.arange(9.).sin().requires_grad_()\nz = torch.arange(18.).cos().reshape(2, 9)"
SPECTRA = (
    "torch.stft(z, 4, return_complex=True)",
    "torch.stft(z, 4, 2, 3, torch.ones(3), return_complex=True, normalized=True)",
    "torch.stft(z, 4, center=False, onesided=False, return_complex=False)",
    "torch.stft(z + 0j, 4, center=False)",
    "z[0].stft(4, pad_mode='constant', return_complex=True)",
    "torch.stft(z, 4, window=torch.hann_window(4), return_complex=True)",
    "torch.autograd.grad(torch.stft(x, 4, return_complex=True).abs().pow(2).sum(), x)",
    "torch.stft(z, 4)", "torch.stft(z, 4, hop_length=0, return_complex=True)",
    "torch.stft(z, 4, win_length=5, return_complex=True)",
    "torch.stft(z, 4, window=torch.ones(3), return_complex=True)",
    "torch.stft(z, 10, center=False, return_complex=True)",
    "torch.stft(z.long(), 4, return_complex=True)",
    "torch.stft(z + 0j, 4, center=False, onesided=True)",
)  # fmt: skip
SIGNALS = (
    "torch.istft(s, 4)", "torch.istft(s, 4, length=5)", "torch.istft(s, 4, length=30)",
    "torch.istft(s, 4, center=False)", "torch.istft(s, 4, normalized=True)",
    "torch.istft(s, 4, window=torch.hamming_window(4))", "torch.istft(s, 6)",
    "torch.istft(s, 4, hop_length=5)", "torch.istft(s, 4, win_length=5)",
    "torch.istft(s, 4, window=torch.zeros(4))", "torch.istft(s.real, 4)",
    "torch.istft(s, 4, return_complex=True)", "torch.istft(s[:, :0], 4)",
    "torch.autograd.grad(torch.istft(s.requires_grad_(), 4).pow(2).sum(), s)",
    "torch.istft(s, 5, win_length=4)",
)  # fmt: skip


def near(text: str) -> None:
    agree(text, ulp=64, atol=1e-5)


def test_spectra() -> None:
    for text in SPECTRA:
        near(f"{START}\n{text}")


def test_signals() -> None:
    for text in SIGNALS:
        near(f"{START}\ns = torch.stft(z, 4, return_complex=True)\n{text}")


def test_windows() -> None:
    for name in ("hann", "hamming", "blackman", "bartlett", "kaiser"):
        for arguments in ("0", "1", "5", "4, False", "-1", "4.5", "4, dtype=torch.float64"):
            agree(f"torch.{name}_window({arguments})", atol=1e-6)
    for name in ("hann", "hamming", "blackman", "nuttall", "cosine", "gaussian", "exponential"):
        for arguments in ("0", "1", "5", "4, sym=False", "-1", "4, dtype=torch.int64"):
            agree(f"torch.signal.windows.{name}({arguments})", atol=1e-6)
