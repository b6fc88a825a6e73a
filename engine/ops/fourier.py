"""Discrete Fourier transforms of torch.fft: sizes to pad or cut to, modes by name, conjugates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.dtypes import COMPLEX, FLOAT, DType, complex_of
from engine.errors import TensorIndexError, TensorRuntimeError
from engine.kinds import composite
from engine.kinds.results import store_out
from engine.layout import wrap_dim
from engine.modes import state
from engine.registry import F, ops

if TYPE_CHECKING:
    from engine.parameter_types import Dim, Dims
    from engine.tensor import Tensor

_MODES = {"backward": (0, 2), "ortho": (1, 1), "forward": (2, 0)}


def _scale(norm: str | None, forward: bool) -> int:
    """0 none, 1 by the root of n, 2 by n, for a mode's name and a direction."""
    found = _MODES.get(norm or "backward")
    if found is None:
        raise TensorRuntimeError(f'Invalid normalization mode: "{norm}"')
    return found[0 if forward else 1]


def _promoted(input: Tensor, to_complex: bool) -> Tensor:
    """Integers as the default dtype; real numbers as complex ones where those are wanted."""
    dtype: DType = input.dtype
    if dtype.category < FLOAT:
        dtype = state.default_dtype
    if dtype.category == FLOAT and dtype.itemsize < 4:
        raise TensorRuntimeError(f"Unsupported dtype {dtype.title}")
    if to_complex and dtype.category == FLOAT:
        dtype = complex_of(dtype)
    return input if dtype is input.dtype else input.to(dtype)


def _check_real(input: Tensor, sentence: str) -> None:
    if input.dtype.category == COMPLEX:
        raise TensorRuntimeError(sentence.format(input.dtype.title))


def _check_count(n: int) -> int:
    if n < 1:
        raise TensorRuntimeError(f"Invalid number of data points ({n}) specified")
    return n


def _wrapped(input: Tensor, dim: int) -> int:
    if input.ndim == 0:
        raise TensorIndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, input.ndim)


def _resized(input: Tensor, dims: tuple[int, ...], sizes: tuple[int, ...]) -> Tensor:
    """Cut, then padded with zeros, to ``sizes`` along ``dims``; -1 keeps a size."""
    pad = [0] * (2 * input.ndim)
    for d, size in zip(dims, sizes, strict=True):
        have = input.layout.shape[d]
        if size == -1 or size == have:
            continue
        _check_count(size)
        if size < have:
            input = input[(slice(None),) * d + (slice(0, size),)]
        else:
            pad[2 * (input.ndim - 1 - d) + 1] = size - have
    return F.constant_pad_nd(input, tuple(pad), 0) if any(pad) else input


def _one(input: Tensor, n: int | None, dim: int) -> tuple[Tensor, tuple[int, ...]]:
    """The input along one dimension, resized to ``n``, and that dimension."""
    d = _wrapped(input, dim)
    _check_count(input.layout.shape[d] if n is None else n)
    return (input if n is None else _resized(input, (d,), (n,))), (d,)


def _several(
    input: Tensor, s: tuple[int, ...] | None, dim: tuple[int, ...] | None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Dimensions and sizes (-1 for the input's own) of a transform over several."""
    ndim = input.ndim
    if dim is not None:
        dims = tuple([_wrapped(input, d) for d in dim])
        if len(set(dims)) != len(dims):
            raise TensorRuntimeError("FFT dims must be unique")
        if s is not None and len(s) != len(dims):
            raise TensorRuntimeError(
                "When given, dim and shape arguments must have the same length"
            )
    elif s is not None:
        if len(s) > ndim:
            raise TensorRuntimeError(
                f"Got shape with {len(s)} values but input tensor only has {ndim} dimensions."
            )
        dims = tuple(range(ndim - len(s), ndim))
    else:
        dims = tuple(range(ndim))
    sizes = (-1,) * len(dims) if s is None else s
    for d, size in zip(dims, sizes, strict=True):
        _check_count(input.layout.shape[d] if size == -1 else size)
    return dims, sizes


def _check_axes(name: str, dims: tuple[int, ...]) -> None:
    if not dims:
        raise TensorRuntimeError(f"{name} must transform at least one axis")


def _halved(
    name: str, input: Tensor, s: tuple[int, ...] | None, dim: tuple[int, ...] | None
) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """As ``_several`` for an input that holds half of the last dimension, and that one's size."""
    dims, sizes = _several(input, s, dim)
    _check_axes(name, dims)
    last = sizes[-1]
    if s is None or last == -1:
        last = 2 * (input.layout.shape[dims[-1]] - 1)
    _check_count(last)
    return dims, (*sizes[:-1], last // 2 + 1), last


def _stored(name: str, y: Tensor, out: Tensor | None) -> Tensor:
    """The result, in ``out`` where there is one, which must hold its kind of numbers."""
    if out is None:
        return y
    if (out.dtype.category == COMPLEX) != (y.dtype.category == COMPLEX):
        kind = "complex" if y.dtype.category == COMPLEX else "floating point"
        raise TensorRuntimeError(
            f"{name} expects a {kind} output tensor, but got {out.dtype.title}"
        )
    return store_out(out, y, f"fft_{name}")


def _c2c(input: Tensor, dims: tuple[int, ...], scale: int, forward: bool) -> Tensor:
    return ops["fft_c2c"].function(input, dims, scale, forward)


def _r2c(input: Tensor, dims: tuple[int, ...], scale: int, onesided: bool = True) -> Tensor:
    return ops["fft_r2c"].function(input, dims, scale, onesided)


def _c2r(input: Tensor, dims: tuple[int, ...], scale: int, last: int) -> Tensor:
    return ops["fft_c2r"].function(input, dims, scale, last)


def _along_one(input: Tensor, n: int | None, dim: int, norm: str | None, forward: bool) -> Tensor:
    x = _promoted(input, False)
    scale = _scale(norm, forward)
    x, dims = _one(x, n, dim)
    if x.dtype.category == COMPLEX:
        return _c2c(x, dims, scale, forward)
    y = _r2c(x, dims, scale, False)
    return y if forward else y.conj()


def _real_half(
    name: str, input: Tensor, n: int | None, dim: int, norm: str | None, forward: bool
) -> Tensor:
    _check_real(input, f"{name} expects a real input tensor, but got {{}}")
    x = _promoted(input, False)
    scale = _scale(norm, forward)
    x, dims = _one(x, n, dim)
    y = _r2c(x, dims, scale)
    return y if forward else y.conj()


def _from_half(
    name: str, input: Tensor, n: int | None, dim: int, norm: str | None, forward: bool
) -> Tensor:
    x = _promoted(input, True)
    scale = _scale(norm, forward)
    d = _wrapped(x, dim)
    count = _check_count(2 * (x.layout.shape[d] - 1) if n is None else n)
    if n is not None:
        x = _resized(x, (d,), (count // 2 + 1,))
    return _c2r(x.conj() if forward else x, (d,), scale, count)


def _along_several(
    input: Tensor,
    s: tuple[int, ...] | None,
    dim: tuple[int, ...] | None,
    norm: str | None,
    forward: bool,
) -> Tensor:
    dims, sizes = _several(input, s, dim)
    x = _resized(_promoted(input, True), dims, sizes)
    return _c2c(x, dims, _scale(norm, forward), forward)


def _real_halves(
    input: Tensor, s: tuple[int, ...] | None, dim: tuple[int, ...] | None, norm: str | None
) -> Tensor:
    _check_real(input, "rfftn expects a real-valued input tensor, but got {}")
    dims, sizes = _several(input, s, dim)
    _check_axes("rfftn", dims)
    return _r2c(_resized(_promoted(input, False), dims, sizes), dims, _scale(norm, True))


def _inverse_real_halves(
    input: Tensor, s: tuple[int, ...] | None, dim: tuple[int, ...] | None, norm: str | None
) -> Tensor:
    _check_real(input, "Only supports floating-point dtypes, but found: {}")
    dims, sizes = _several(input, s, dim)
    _check_axes("ihfftn", dims)
    scale = _scale(norm, False)
    y = _r2c(_resized(_promoted(input, False), dims, sizes), dims[-1:], scale).conj_physical()
    return y if len(dims) == 1 else _c2c(y, dims[:-1], scale, False)


def _from_halves(
    input: Tensor, s: tuple[int, ...] | None, dim: tuple[int, ...] | None, norm: str | None
) -> Tensor:
    dims, sizes, last = _halved("irfftn", input, s, dim)
    x = _resized(_promoted(input, True), dims, sizes)
    return _c2r(x, dims, _scale(norm, False), last)


def _from_hermitian_halves(
    input: Tensor, s: tuple[int, ...] | None, dim: tuple[int, ...] | None, norm: str | None
) -> Tensor:
    dims, sizes, last = _halved("hfftn", input, s, dim)
    x = _resized(_promoted(input, True), dims, sizes)
    scale = _scale(norm, True)
    if len(dims) > 1:
        x = _c2c(x, dims[:-1], scale, True)
    return _c2r(x.conj(), dims[-1:], scale, last)


@composite(name="fft.fft", method=False, out=False, example="fft.fft(tensor([1., 2., 3., 4.]))")
def fft(
    input: Tensor,
    n: int | None = None,
    dim: Dim = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The transform along one dimension, of real or complex numbers."""
    return _stored("fft", _along_one(input, n, dim, norm, True), out)


@composite(name="fft.ifft", method=False, out=False, example="fft.ifft(tensor([1+0j, 2+1j]))")
def ifft(
    input: Tensor,
    n: int | None = None,
    dim: Dim = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of ``fft``."""
    return _stored("ifft", _along_one(input, n, dim, norm, False), out)


@composite(name="fft.rfft", method=False, out=False, example="fft.rfft(tensor([1., 2., 3., 4.]))")
def rfft(
    input: Tensor,
    n: int | None = None,
    dim: Dim = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The transform of real numbers without its mirrored half."""
    return _stored("rfft", _real_half("rfft", input, n, dim, norm, True), out)


@composite(
    name="fft.irfft", method=False, out=False, example="fft.irfft(tensor([6+0j, -1+1j, 0j]))"
)
def irfft(
    input: Tensor,
    n: int | None = None,
    dim: Dim = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of ``rfft``; without ``n`` the result has an even size."""
    return _stored("irfft", _from_half("irfft", input, n, dim, norm, False), out)


@composite(name="fft.hfft", method=False, out=False, example="fft.hfft(tensor([6+0j, -1+1j, 0j]))")
def hfft(
    input: Tensor,
    n: int | None = None,
    dim: Dim = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The real transform of a signal given by half,
    the other half being its mirrored conjugate."""
    return _stored("hfft", _from_half("hfft", input, n, dim, norm, True), out)


@composite(name="fft.ihfft", method=False, out=False, example="fft.ihfft(tensor([1., 2., 3., 4.]))")
def ihfft(
    input: Tensor,
    n: int | None = None,
    dim: Dim = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of ``hfft``."""
    return _stored("ihfft", _real_half("ihfft", input, n, dim, norm, False), out)


@composite(
    name="fft.fft2", method=False, out=False, example="fft.fft2(tensor([[1., 2.], [3., 4.]]))"
)
def fft2(
    input: Tensor,
    s: Dims | None = None,
    dim: Dims = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The transform along the last two dimensions."""
    return _stored("fftn", _along_several(input, s, dim, norm, True), out)


@composite(
    name="fft.ifft2", method=False, out=False, example="fft.ifft2(tensor([[1., 2.], [3., 4.]]))"
)
def ifft2(
    input: Tensor,
    s: Dims | None = None,
    dim: Dims = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of ``fft2``."""
    return _stored("fftn", _along_several(input, s, dim, norm, False), out)


@composite(
    name="fft.rfft2", method=False, out=False, example="fft.rfft2(tensor([[1., 2.], [3., 4.]]))"
)
def rfft2(
    input: Tensor,
    s: Dims | None = None,
    dim: Dims = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The transform of real numbers along the last two dimensions,
    without the mirrored half of the last."""
    return _stored("rfftn", _real_halves(input, s, dim, norm), out)


@composite(
    name="fft.irfft2",
    method=False,
    out=False,
    example="fft.irfft2(tensor([[1+0j, 2j], [3+0j, 4j]]))",
)
def irfft2(
    input: Tensor,
    s: Dims | None = None,
    dim: Dims = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of ``rfft2``."""
    return _stored("irfftn", _from_halves(input, s, dim, norm), out)


@composite(
    name="fft.hfft2", method=False, out=False, example="fft.hfft2(tensor([[1+0j, 2j], [3+0j, 4j]]))"
)
def hfft2(
    input: Tensor,
    s: Dims | None = None,
    dim: Dims = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The real transform of a signal given by half of its last dimension,
    along the last two dimensions."""
    return _stored("hfftn", _from_hermitian_halves(input, s, dim, norm), out)


@composite(
    name="fft.ihfft2", method=False, out=False, example="fft.ihfft2(tensor([[1., 2.], [3., 4.]]))"
)
def ihfft2(
    input: Tensor,
    s: Dims | None = None,
    dim: Dims = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of ``hfft2``."""
    return _stored("ihfftn", _inverse_real_halves(input, s, dim, norm), out)


@composite(
    name="fft.fftn", method=False, out=False, example="fft.fftn(tensor([[1., 2.], [3., 4.]]))"
)
def fftn(
    input: Tensor,
    s: Dims | None = None,
    dim: Dims | None = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The transform along several dimensions, all of them by default."""
    return _stored("fftn", _along_several(input, s, dim, norm, True), out)


@composite(
    name="fft.ifftn", method=False, out=False, example="fft.ifftn(tensor([[1., 2.], [3., 4.]]))"
)
def ifftn(
    input: Tensor,
    s: Dims | None = None,
    dim: Dims | None = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of ``fftn``."""
    return _stored("fftn", _along_several(input, s, dim, norm, False), out)


@composite(
    name="fft.rfftn", method=False, out=False, example="fft.rfftn(tensor([[1., 2.], [3., 4.]]))"
)
def rfftn(
    input: Tensor,
    s: Dims | None = None,
    dim: Dims | None = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The transform of real numbers along several dimensions, all of them by default,
    without the mirrored half of the last."""
    return _stored("rfftn", _real_halves(input, s, dim, norm), out)


@composite(
    name="fft.irfftn",
    method=False,
    out=False,
    example="fft.irfftn(tensor([[1+0j, 2j], [3+0j, 4j]]))",
)
def irfftn(
    input: Tensor,
    s: Dims | None = None,
    dim: Dims | None = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of ``rfftn``."""
    return _stored("irfftn", _from_halves(input, s, dim, norm), out)


@composite(
    name="fft.hfftn", method=False, out=False, example="fft.hfftn(tensor([[1+0j, 2j], [3+0j, 4j]]))"
)
def hfftn(
    input: Tensor,
    s: Dims | None = None,
    dim: Dims | None = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The real transform of a signal given by half of its last dimension,
    along several dimensions, all of them by default."""
    return _stored("hfftn", _from_hermitian_halves(input, s, dim, norm), out)


@composite(
    name="fft.ihfftn", method=False, out=False, example="fft.ihfftn(tensor([[1., 2.], [3., 4.]]))"
)
def ihfftn(
    input: Tensor,
    s: Dims | None = None,
    dim: Dims | None = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of ``hfftn``."""
    return _stored("ihfftn", _inverse_real_halves(input, s, dim, norm), out)
