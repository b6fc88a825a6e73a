"""What goes along with Fourier transforms: the frequencies of their results, and shifted order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine.dtypes import FLOAT, DType
from engine.errors import DtypeNotImplementedError, TensorIndexError, TensorRuntimeError
from engine.kinds import composite, made
from engine.kinds.creation import creation
from engine.layout import wrap_dim
from engine.modes import state
from engine.registry import F

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.parameter_types import Dims
    from engine.tensor import Tensor


def _frequencies(
    name: str, count: int, negative: int, n: int, d: float, dtype: DType | None
) -> Made:
    """0, 1, 2 … times 1/(n·d), the last ``negative`` ones counted from below zero."""
    dtype = dtype or state.default_dtype
    if dtype.category < FLOAT:
        raise TensorRuntimeError(f"{name} requires a floating point or complex dtype")
    if dtype.is_complex:
        raise DtypeNotImplementedError(f"\"arange_cpu\" not implemented for '{dtype.title}'")
    if count < 0:
        raise TensorRuntimeError(
            f"Trying to create tensor with negative dimension {count}: [{count}]"
        )
    wide = np.float64 if dtype.itemsize == 8 else np.float32
    step = wide(np.float64(1.0) / (np.float64(n) * d))

    def run(xp: Any) -> Any:
        numbers = xp.arange(count, dtype=wide)
        if negative:
            numbers[count - negative :] -= n
        return numbers * step

    return made(dtype, (count,), run)


@creation(name="fft.fftfreq", spoken="fft_fftfreq", method=False, example="fft.fftfreq(4, 0.5)")
def fftfreq(n: int, d: float = 1.0, *, dtype: DType | None = None) -> Made:
    """The frequencies that the elements of ``fft``'s result stand for, ``d`` apart in time."""
    return _frequencies("fftfreq", n, n // 2, n, d, dtype)


@creation(name="fft.rfftfreq", spoken="fft_rfftfreq", method=False, example="fft.rfftfreq(4, 0.5)")
def rfftfreq(n: int, d: float = 1.0, *, dtype: DType | None = None) -> Made:
    """The frequencies that the elements of ``rfft``'s result stand for."""
    return _frequencies("rfftfreq", int(n / 2) + 1, 0, n, d, dtype)


def _rolled(input: Tensor, dim: tuple[int, ...] | None, extra: int) -> Tensor:
    if dim and input.ndim == 0:
        raise TensorIndexError(f"Dimension specified as {dim[0]} but tensor has no dimensions")
    dims = range(input.ndim) if dim is None else dim
    chosen = tuple([wrap_dim(d, input.ndim) for d in dims])
    shifts = tuple([(input.layout.shape[d] + extra) // 2 for d in chosen])
    return F.roll(input, shifts, chosen)


@composite(name="fft.fftshift", method=False, out=False, example="fft.fftshift(arange(5))")
def fftshift(input: Tensor, dim: Dims | None = None) -> Tensor:
    """The zero frequency moved to the middle, along ``dim`` or all dimensions."""
    return _rolled(input, dim, 0)


@composite(name="fft.ifftshift", method=False, out=False, example="fft.ifftshift(arange(5))")
def ifftshift(input: Tensor, dim: Dims | None = None) -> Tensor:
    """The inverse of ``fftshift``."""
    return _rolled(input, dim, 1)
