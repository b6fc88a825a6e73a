"""Window functions: torch.hann_window and its kin, and those of torch.signal.windows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from engine import layout as layouts
from engine.dtypes import DType, compute_dtype
from engine.errors import (
    DtypeNotImplementedError,
    TensorRuntimeError,
    TensorTypeError,
    TensorValueError,
)
from engine.kinds.creation import creation
from engine.kinds.kernel import Made, made
from engine.modes import state
from engine.registry import F, function
from engine.tensor import kind_of

if TYPE_CHECKING:
    from engine.tensor import Tensor


def _window(name: str, length: int, periodic: bool, dtype: DType | None, shape: Any) -> Made:
    """A window of ``shape(x, n, rounded)`` values: x counts from 0, n is the symmetric length, and
    ``rounded`` brings what it is given back into the dtype, as every step in PyTorch does."""
    found = dtype or state.default_dtype
    if found.is_complex:
        raise DtypeNotImplementedError(f"\"arange_cpu\" not implemented for '{found.title}'")
    if not found.is_floating_point:
        raise TensorRuntimeError(
            f"{name} expects floating point dtypes, got: TensorOptions(dtype="
            f"{found.c_type}, device=cpu, layout=Strided (default), "
            "requires_grad=false (default), pinned_memory=false, memory_format=(nullopt))"
        )
    if length < 0:
        raise TensorRuntimeError(
            f"{name} requires non-negative window_length, got window_length={length}"
        )
    compute = compute_dtype(found).np
    kept = kind_of(found).np

    def rounded(values: Any) -> Any:
        return values.astype(kept).astype(compute) if found.low else values.astype(compute)

    def run(xp: Any) -> Any:
        if length < 2:
            return xp.ones(length, compute)
        n = length + 1 if periodic else length
        return shape(rounded(xp.arange(n)), n, rounded)[:length]

    return made(found, layouts.contiguous((length,)), run)


def _hamming(alpha: float, beta: float) -> Any:
    def shape(x: Any, n: int, rounded: Any) -> Any:
        waves = rounded(np.cos(rounded(x * (math.pi * 2.0 / (n - 1)))))
        return rounded(rounded(waves * -beta) + alpha)

    return shape


def _bartlett(x: Any, n: int, rounded: Any) -> Any:
    x = rounded(x * (2.0 / (n - 1)))
    return np.where(np.arange(n) <= (n - 1) // 2, x, rounded(2 - x))


def _blackman(x: Any, n: int, rounded: Any) -> Any:
    x = rounded(x * (math.pi / (n - 1)))
    fast = rounded(rounded(np.cos(rounded(x * 4))) * 0.08)
    slow = rounded(rounded(np.cos(rounded(x * 2))) * 0.5)
    return rounded(rounded(fast - slow) + 0.42)


def _kaiser(beta: float) -> Any:
    def shape(x: Any, n: int, rounded: Any) -> Any:
        x = x * (2.0 / (n - 1)) - 1
        return np.i0(beta * np.sqrt(np.maximum(1 - x * x, 0))) / np.i0(beta)

    return shape


@creation(method=False, out=False, example="hann_window(4)")
def hann_window(window_length: int, periodic: bool = True, *, dtype: DType | None = None) -> Made:
    """A raised cosine from 0 to 1 and back; ``periodic`` leaves the last point out."""
    return _window("hann_window", window_length, periodic, dtype, _hamming(0.5, 0.5))


@creation(method=False, out=False, example="hamming_window(4)")
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: DType | None = None,
) -> Made:
    """alpha - beta cos(2 pi n / N)."""
    return _window("hamming_window", window_length, periodic, dtype, _hamming(alpha, beta))


@creation(method=False, out=False, example="bartlett_window(4)")
def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: DType | None = None
) -> Made:
    """A triangle from 0 to 1 and back."""
    return _window("bartlett_window", window_length, periodic, dtype, _bartlett)


@creation(method=False, out=False, example="blackman_window(4)")
def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: DType | None = None
) -> Made:
    """0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)."""
    return _window("blackman_window", window_length, periodic, dtype, _blackman)


@creation(method=False, out=False, example="kaiser_window(4)")
def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: DType | None = None,
) -> Made:
    """Kaiser's window: Bessel functions of a half circle."""
    return _window("kaiser_window", window_length, periodic, dtype, _kaiser(beta))


def _checked(name: str, M: int, dtype: DType | None, layout: Any) -> DType:
    found = dtype or state.default_dtype
    if M < 0:
        raise TensorValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not None and layout.name != "strided":
        raise TensorValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if found.name not in ("float32", "float64"):
        raise TensorValueError(f"{name} expects float32 or float64 dtypes, got: {found}")
    return found


def _spaced(start: float, end: float, M: int, options: dict[str, Any]) -> Tensor:
    found: Tensor = F.linspace(start, end, M, **options)
    return found


def _few(M: int, options: dict[str, Any]) -> Tensor:
    """Windows of no or one point."""
    found: Tensor = F.ones((M,), **options) if M else F.empty((0,), **options)
    return found


def _options(
    name: str, M: int, dtype: Any, layout: Any, device: Any, requires_grad: bool
) -> dict[str, Any]:
    found = _checked(name, M, dtype, layout)
    return {"dtype": found, "device": device, "requires_grad": requires_grad}


@function("signal.windows.bartlett")
def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A triangle from 0 to 1 and back."""
    options = _options("bartlett", M, dtype, layout, device, requires_grad)
    if M < 2:
        return _few(M, options)
    step = 2 / (M - 1 if sym else M)
    found: Tensor = 1 - abs(_spaced(-1, -1 + (M - 1) * step, M, options))
    return found


@function("signal.windows.cosine")
def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Half a wave of a sine."""
    options = _options("cosine", M, dtype, layout, device, requires_grad)
    if not M:
        return _few(M, options)
    step = math.pi / (M + 1 if not sym and M > 1 else M)
    return _spaced(0.5 * step, (0.5 + (M - 1)) * step, M, options).sin()


@function("signal.windows.exponential")
def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """exp(-|n - center| / tau)."""
    options = _options("exponential", M, dtype, layout, device, requires_grad)
    if tau <= 0:
        raise TensorValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise TensorValueError("Center must be None for symmetric windows")
    if not M:
        return _few(M, options)
    middle = (M if not sym and M > 1 else M - 1) / 2 if center is None else center
    k = _spaced(-middle / tau, (-middle + (M - 1)) / tau, M, options)
    return (-abs(k)).exp()


@function("signal.windows.gaussian")
def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """exp(-(n - middle)^2 / (2 std^2))."""
    options = _options("gaussian", M, dtype, layout, device, requires_grad)
    if std <= 0:
        raise TensorValueError(f"Standard deviation must be positive, got: {std} instead.")
    if not M:
        return _few(M, options)
    start = -(M if not sym and M > 1 else M - 1) / 2.0
    step = 1 / (std * math.sqrt(2))
    k = _spaced(start * step, (start + (M - 1)) * step, M, options)
    return (-(k**2)).exp()


@function("signal.windows.kaiser")
def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Kaiser's window: Bessel functions of a half circle."""
    options = _options("kaiser", M, dtype, layout, device, requires_grad)
    if beta < 0:
        raise TensorValueError(f"beta must be non-negative, got: {beta} instead.")
    if M < 2:
        return _few(M, options)
    step = 2.0 * beta / (M - 1 if sym else M)
    k = _spaced(-beta, min(beta, -beta + (M - 1) * step), M, options)
    whole = F.tensor(beta, dtype=options["dtype"], device=device)
    found: Tensor = (beta * beta - k**2).sqrt().i0() / whole.i0()
    return found


@function("signal.windows.general_cosine")
def general_cosine(
    M: int,
    *,
    a: Any,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A sum of cosines with the weights ``a``, their signs alternating."""
    options = _options("general_cosine", M, dtype, layout, device, requires_grad)
    if M < 2:
        return _few(M, options)
    if not isinstance(a, (list, tuple)):
        raise TensorTypeError("Coefficients must be a list/tuple")
    if not a:
        raise TensorValueError("Coefficients cannot be empty")
    step = 2 * math.pi / (M - 1 if sym else M)
    k = _spaced(0, (M - 1) * step, M, options)
    kind = {"dtype": options["dtype"], "device": device}
    weights = F.tensor([(-1) ** i * w for i, w in enumerate(a)], **kind)
    waves = F.arange(len(a), **kind)
    found: Tensor = (weights.unsqueeze(-1) * (waves.unsqueeze(-1) * k).cos()).sum(0)
    return found


@function("signal.windows.general_hamming")
def general_hamming(M: int, *, alpha: float = 0.54, **options: Any) -> Tensor:
    """alpha - (1 - alpha) cos(2 pi n / N)."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], **options)


@function("signal.windows.hamming")
def hamming(M: int, **options: Any) -> Tensor:
    """0.54 - 0.46 cos(2 pi n / N)."""
    return general_hamming(M, **options)


@function("signal.windows.hann")
def hann(M: int, **options: Any) -> Tensor:
    """A raised cosine from 0 to 1 and back."""
    return general_hamming(M, alpha=0.5, **options)


@function("signal.windows.blackman")
def blackman(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)."""
    options = _options("blackman", M, dtype, layout, device, requires_grad)
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **options)


@function("signal.windows.nuttall")
def nuttall(M: int, **options: Any) -> Tensor:
    """Four cosines, the sidelobes as low as they get."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], **options)
