"""The three transforms that every Fourier function is made of, each one node of the graph.

They know nothing of sizes to pad to or of modes by name: ``scale`` is 0 for none, 1 for
1/sqrt(n), 2 for 1/n, in either direction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import layout as layouts
from engine.dtypes import complex_of, real_of
from engine.errors import TensorRuntimeError
from engine.kinds import kernel, made
from engine.registry import F, ops
from engine.tensor import kind_of

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.layout import Layout
    from engine.parameter_types import Dims
    from engine.tensor import Tensor

# numpy's name of a scale, by direction: "backward" there scales the inverse only.
_FORWARD = ("backward", "ortho", "forward")
_INVERSE = ("forward", "ortho", "backward")


def _transposed(input: Layout, dims: tuple[int, ...], shape: tuple[int, ...]) -> Layout:
    """The result's layout as MKL leaves it: batch dimensions outside in the order of the input's
    strides, then ``dims``, the last one innermost."""
    order = _batch_first(input.ndim, dims)
    order.sort(key=lambda d: -input.strides[d])
    strides = [0] * input.ndim
    step = 1
    for d in reversed((*order, *dims)):
        strides[d] = step
        step *= shape[d]
    return layouts.layout(shape, tuple(strides))


def _batch_first(ndim: int, dims: tuple[int, ...]) -> list[int]:
    """The other dimensions in the order that C++'s std::partition leaves them in, which decides
    between equal strides."""
    order = list(range(ndim))
    first, last = 0, ndim
    while True:
        while first != last and order[first] not in dims:
            first += 1
        if first == last:
            return order[:first]
        last -= 1
        while first != last and order[last] in dims:
            last -= 1
        if first == last:
            return order[:first]
        order[first], order[last] = order[last], order[first]
        first += 1


def _by_stride(input: Layout, dims: tuple[int, ...], keep_last: bool) -> tuple[int, ...]:
    free, fixed = (dims[:-1], dims[-1:]) if keep_last else (dims, ())
    return (*sorted(free, key=lambda d: -input.strides[d]), *fixed)


def _refuse_empty(input: Layout) -> None:
    if not input.numel:
        raise TensorRuntimeError(
            "MKL FFT error: Intel oneMKL DFTI ERROR: Inconsistent configuration parameters"
        )


@kernel(
    name="fft_c2c",
    vjp=lambda g, dim, scale, forward: ops["fft_c2c"].function(g, dim, scale, not forward),
    function=False,
    method=False,
    out=False,
    node="FftC2CBackward0",
)
def complex_to_complex(input: Tensor, dim: Dims, scale: int, forward: bool) -> Made:
    """The transform of complex numbers along ``dim``, one direction or the other."""
    layout = input.layout
    if not dim:
        return made(input.dtype, layouts.preserved(layout), lambda xp: xp.array(input.array))
    _refuse_empty(layout)
    wanted = _transposed(layout, _by_stride(layout, dim, False), layout.shape)

    def run(xp: Any) -> Any:
        if forward:
            return xp.fft.fftn(input.array, axes=dim, norm=_FORWARD[scale])
        return xp.fft.ifftn(input.array, axes=dim, norm=_INVERSE[scale])

    return made(input.dtype, wanted, run)


def _from_half(
    g: Tensor, input_shape: tuple[int, ...], dim: tuple[int, ...], scale: int, onesided: bool
) -> Tensor:
    if onesided:
        last = dim[-1]
        missing = input_shape[last] - g.layout.shape[last]
        pad = (0, 0) * (len(input_shape) - 1 - last) + (0, missing)
        g = F.constant_pad_nd(g, pad, 0) if missing else g
    return F.real(ops["fft_c2c"].function(g, dim, scale, False))


@kernel(
    name="fft_r2c",
    vjp=_from_half,
    function=False,
    method=False,
    out=False,
    node="FftR2CBackward0",
)
def real_to_complex(input: Tensor, dim: Dims, scale: int, onesided: bool) -> Made:
    """The transform of real numbers; ``onesided`` leaves out the mirrored half of the last of
    ``dim``."""
    layout = input.layout
    _refuse_empty(layout)
    shape = list(layout.shape)
    if onesided:
        shape[dim[-1]] = shape[dim[-1]] // 2 + 1
    wanted = _transposed(layout, _by_stride(layout, dim, True), tuple(shape))
    dtype = complex_of(input.dtype)

    def run(xp: Any) -> Any:
        if onesided:
            return xp.fft.rfftn(input.array, axes=dim, norm=_FORWARD[scale])
        wide = input.array.astype(kind_of(dtype).np)
        return xp.fft.fftn(wide, axes=dim, norm=_FORWARD[scale])

    return made(dtype, wanted, run)


def _doubled_middle(
    g: Tensor, input_shape: tuple[int, ...], dim: tuple[int, ...], scale: int
) -> Tensor:
    last = dim[-1]
    half = ops["fft_r2c"].function(g, dim, scale, True)
    twice = g.layout.shape[last] - half.layout.shape[last]
    if twice > 0:
        weights = half.real.new_ones((half.layout.shape[last],))
        weights[1 : 1 + twice] = 2
        half = half * weights.reshape((-1,) + (1,) * (len(input_shape) - 1 - last))
    return half


@kernel(
    name="fft_c2r",
    vjp=_doubled_middle,
    function=False,
    method=False,
    out=False,
    node="FftC2RBackward0",
)
def complex_to_real(input: Tensor, dim: Dims, scale: int, last_dim_size: int) -> Made:
    """The inverse of the onesided transform: real numbers, ``last_dim_size`` along the last of
    ``dim``."""
    layout = input.layout
    _refuse_empty(layout)
    last = dim[-1]
    if len(dim) > 1:  # the layout after the transform of the other dimensions
        layout = _transposed(layout, _by_stride(layout, dim[:-1], False), layout.shape)
    shape = (*layout.shape[:last], last_dim_size, *layout.shape[last + 1 :])

    def run(xp: Any) -> Any:
        array = input.array
        if len(dim) > 1:
            array = xp.fft.ifftn(array, axes=dim[:-1], norm=_INVERSE[scale])
        return xp.fft.irfft(array, last_dim_size, axis=last, norm=_INVERSE[scale])

    return made(real_of(input.dtype), _transposed(layout, (last,), shape), run)
