"""Short-time Fourier transforms: of a signal piece by piece, and the signal back from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import layout as layouts
from engine.errors import TensorNotImplementedError, TensorRuntimeError
from engine.kinds import composite, kernel, made
from engine.modes import warn
from engine.registry import F, function, method, ops

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.parameter_types import Dim, Shape
    from engine.tensor import Tensor


@kernel(
    name="unfold_backward",
    vjp=lambda g, dim, size, step: g.unfold(dim, size, step),
    function=False,
    method=False,
    out=False,
    node="UnfoldBackwardBackward0",
)
def overlap_added(input: Tensor, sizes: Shape, dim: Dim, size: int, step: int) -> Made:
    """Windows, as ``unfold`` gives them, put back in their places, shared elements summed."""

    def run(xp: Any) -> Any:
        whole = xp.zeros(sizes, input.kind.np)
        for at in range(input.layout.shape[dim]):
            place = (slice(None),) * dim + (slice(at * step, at * step + size),)
            piece = input.array[(slice(None),) * dim + (at,)]
            whole[place] += xp.moveaxis(piece, -1, dim)
        return whole

    return made(input.dtype, layouts.contiguous(sizes), run)


def _flag(value: Any) -> str:
    return "None" if value is None else str(int(value))


def _window_text(window: Tensor | None) -> str:
    if window is None:
        return "None"
    return f"torch.{window.dtype.title}Tensor{{{list(window.layout.shape)}}}"


def _check_window(window: Tensor | None, length: int) -> bool:
    return window is None or window.layout.shape == (length,)


def _padded_window(window: Tensor | None, length: int, n_fft: int, like: Tensor) -> Tensor | None:
    """The window with zeros around it up to ``n_fft``; ones where there is none but a length."""
    if length == n_fft:
        return window
    if window is None:
        window = like.real.detach().new_ones((length,))
    left = (n_fft - length) // 2
    return F.constant_pad_nd(window, (left, n_fft - length - left), 0)


def _centred(input: Tensor, n_fft: int, mode: str) -> Tensor:
    ndim = input.ndim
    pad = n_fft // 2
    whole = F.pad(input.view((1,) * (3 - ndim) + tuple(input.layout.shape)), (pad, pad), mode)
    return whole.view(whole.layout.shape[-ndim:])


@composite(name="_stft", spoken="stft", function=False, method=False, out=False)
def spectrum(
    input: Tensor,
    n_fft: int,
    hop_length: int | None,
    win_length: int | None,
    window: Tensor | None,
    normalized: bool,
    onesided: bool | None,
    return_complex: bool | None,
    align_to_window: bool | None,
) -> Tensor:
    """The transforms of the pieces of a signal that needs no padding."""
    hop = n_fft >> 2 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    shape = list(input.layout.shape)
    call = (
        f"stft(torch.{input.dtype.title}Tensor{shape}, n_fft={n_fft}, hop_length={hop}, "
        f"win_length={length}, window={_window_text(window)}, normalized={_flag(normalized)}, "
        f"onesided={_flag(onesided)}, return_complex={_flag(return_complex)}, "
        f"align_to_window={_flag(align_to_window)}) : "
    )
    complex_window = window is not None and window.dtype.is_complex
    if return_complex is None:
        return_complex = input.dtype.is_complex or complex_window
        if not return_complex:
            raise TensorRuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will "
                "further require that return_complex=True in a future PyTorch release."
            )
    elif not return_complex:
        warn(
            "stft with return_complex=False is deprecated. In a future pytorch release, stft "
            "will return complex tensors for all inputs, and return_complex=False will raise an "
            "error.\nNote: you can still call torch.view_as_real on the complex output to "
            "recover the old return format."
        )
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise TensorRuntimeError(f"{call}expected a tensor of floating point or complex values")
    if input.ndim not in (1, 2):
        raise TensorRuntimeError(f"{call}expected a 1D or 2D tensor")
    single = input.ndim == 1
    x = input.unsqueeze(0) if single else input
    rows, count = x.layout.shape
    if not 0 < n_fft <= count:
        raise TensorRuntimeError(f"{call}expected 0 < n_fft < {count}, but got n_fft={n_fft}")
    if hop <= 0:
        raise TensorRuntimeError(f"{call}expected hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        raise TensorRuntimeError(
            f"{call}expected 0 < win_length <= n_fft, but got win_length={length}"
        )
    if window is not None and not _check_window(window, length):
        raise TensorRuntimeError(
            f"{call}expected a 1D window tensor of size equal to win_length={length}, but got "
            f"window with size {list(window.layout.shape)}"
        )
    factor = _padded_window(window, length, n_fft, x)
    outer, inner = x.layout.strides
    frames = (count - n_fft) // hop + 1
    x = x.as_strided((rows, frames, n_fft), (outer, hop * inner, inner), x.offset)
    if factor is not None:
        x = x.mul(factor)
    if x.dtype.itemsize < 4:
        raise TensorRuntimeError(f"MKL FFT doesn't support tensors of type: {x.dtype.title}")
    if x.dtype.is_complex:
        if onesided:
            raise TensorRuntimeError("Cannot have onesided output if window or input is complex")
        y = ops["fft_c2c"].function(x, (2,), int(normalized), True)
    else:
        half = True if onesided is None else onesided
        y = ops["fft_r2c"].function(x, (2,), int(normalized), half)
    y.transpose_(1, 2)
    if single:
        y.squeeze_(0)
    return y if return_complex else F.view_as_real(y)


@method("stft")
@function("stft")
def stft(
    input: Any,
    n_fft: Any,
    hop_length: Any = None,
    win_length: Any = None,
    window: Any = None,
    center: Any = True,
    pad_mode: Any = "reflect",
    normalized: Any = False,
    onesided: Any = None,
    return_complex: Any = None,
    align_to_window: Any = None,
) -> Any:
    """The Fourier transforms of a signal's pieces: (frequency, piece), batched or not.

    Pieces of ``n_fft`` elements are ``hop_length`` (a quarter of that) apart, multiplied by
    ``window``; with ``center`` the signal is padded so that pieces are centred on their places.
    """
    if center:
        if align_to_window is not None:
            raise TensorRuntimeError("stft align_to_window should only be set when center = false")
        if pad_mode not in ("constant", "reflect", "replicate", "circular"):
            raise TensorNotImplementedError(f"Unrecognised padding mode {pad_mode}")
        input = _centred(input, n_fft, pad_mode)
    return ops["_stft"].function(
        input, n_fft, hop_length, win_length, window, normalized, onesided, return_complex,
        align_to_window,
    )  # fmt: skip


@composite(
    out=False,
    data_dependent=True,
    example="istft(stft(arange(8.), 4, return_complex=True), 4)",
)
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal whose ``stft`` is nearest to the input: pieces added, divided by the windows.

    Raises RuntimeError where the squared windows do not cover the signal.
    """
    hop = n_fft >> 2 if hop_length is None else hop_length
    wide = n_fft if win_length is None else win_length
    call = (
        f"istft(CPU{input.dtype.title}Type{list(input.layout.shape)}, n_fft={n_fft}, "
        f"hop_length={hop}, win_length={wide}, window={_window_text(window)}, "
        f"center={_flag(center)}, normalized={_flag(normalized)}, onesided={_flag(onesided)}, "
        f"length={'None' if length is None else length}, return_complex={_flag(return_complex)}) "
    )
    if not input.dtype.is_complex:
        raise TensorRuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with "
            "return_complex=True."
        )
    pairs = F.view_as_real(input)
    frames, bins = pairs.size(-2), pairs.size(-3)
    half = onesided if onesided is not None else bins != n_fft
    _check_spectrum(f"{call}: ", pairs, n_fft, hop, wide, window, half)
    single = pairs.ndim == 3
    if single:
        pairs = pairs.unsqueeze(0)
    x = F.view_as_complex(pairs.transpose(1, 2))
    if return_complex:
        if half:
            raise TensorRuntimeError("Cannot have onesided output if window or input is complex")
        x = ops["fft_c2c"].function(x, (2,), 1 if normalized else 2, False)
    else:
        if window is not None and window.dtype.is_complex:
            raise TensorRuntimeError("Complex windows are incompatible with return_complex=False")
        if not half:
            x = x[..., 0 : n_fft // 2 + 1]
        x = ops["fft_c2r"].function(x, (2,), 1 if normalized else 2, n_fft)
    factor = window if window is not None else input.real.detach().new_ones((wide,))
    if wide != n_fft:
        factor = _padded_window(factor, wide, n_fft, input)
    whole = n_fft + hop * (frames - 1)
    added = ops["unfold_backward"].function
    y = added(x * factor.view((1, 1, n_fft)), (x.size(0), whole), 1, n_fft, hop)
    squares = factor.pow(2).expand((1, frames, n_fft))
    cover = added(squares, (1, whole), 1, n_fft, hop)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else whole - n_fft // 2 if center else whole
    y, cover = y[:, start:end], cover[:, start:end]
    if bool(cover.detach().abs().min() < 1e-11):
        raise TensorRuntimeError(f"{call}window overlap add min: 1\n[ CPUBoolType{{}} ]")
    y = y / cover
    if single:
        y = y.squeeze(0)
    if end > whole:
        warn(
            "The length of signal is shorter than the length parameter. Result is being padded "
            "with zeros in the tail. Please check your center and hop_length settings."
        )
        y = F.constant_pad_nd(y, (0, end - whole), 0)
    return y


def _check_spectrum(
    call: str,
    pairs: Tensor,
    n_fft: int,
    hop: int,
    wide: int,
    window: Tensor | None,
    half: bool,
) -> None:
    if not pairs.layout.numel:
        raise TensorRuntimeError(f"{call}input tensor cannot be empty.")
    if pairs.ndim not in (3, 4):
        raise TensorRuntimeError(
            f"{call}expected a tensor with 3 or 4 dimensions, but got {pairs.ndim}"
        )
    bins = pairs.size(-3)
    if bins != (n_fft // 2 + 1 if half else n_fft):
        wanted = "n_fft / 2 + 1" if half else "n_fft"
        raise TensorRuntimeError(
            f"{call}expected the frequency dimension (3rd to the last) of the input tensor to "
            f"match {wanted} when onesided={half}, but got {bins}"
        )
    if not 0 < hop <= wide:
        raise TensorRuntimeError(f"{call}expected 0 < hop_length <= win_length")
    if not 0 < wide <= n_fft:
        raise TensorRuntimeError(f"{call}expected 0 < win_length <= n_fft")
    if not _check_window(window, wide):
        raise TensorRuntimeError(
            f"{call}Invalid window shape. window has to be 1D and length of `win_length`"
        )
