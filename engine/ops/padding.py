"""Padding: by a constant, by reflection, by repeating the border, around in a circle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import layout as layouts
from engine.errors import TensorNotImplementedError, TensorRuntimeError
from engine.kinds import composite, kernel, made
from engine.kinds.functional import functional
from engine.kinds.native import Native
from engine.kinds.reduction import check_takes
from engine.registry import F, ops
from engine.scalars import element

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.layout import Layout
    from engine.parameter_types import Scalar, Shape
    from engine.tensor import Tensor


def kept_format(shape: tuple[int, ...], like: Layout) -> Layout:
    """The layout of a new shape in the memory format of a tensor: channels last or row-major."""
    if (
        len(shape) == like.ndim
        and not like.contiguous
        and layouts.is_channels_last(like.shape, like.strides)
    ):
        return layouts.layout(shape, layouts.channels_last_strides(shape))
    return layouts.contiguous(shape)


def _pairs(pad: tuple[int, ...], ndim: int) -> list[tuple[int, int]]:
    """Before and after for each dimension, the first one first."""
    count = len(pad) // 2
    given = [(pad[2 * i], pad[2 * i + 1]) for i in range(count)]
    return [(0, 0)] * (ndim - count) + given[::-1]


def _check_even(pad: tuple[int, ...], ndim: int, what: str) -> None:
    if len(pad) % 2:
        raise TensorRuntimeError(what)
    if len(pad) > 2 * ndim:
        raise TensorRuntimeError(
            "Padding length should be less than or equal to two times the input dimension but "
            f"got padding length {len(pad)} and input of dimension {ndim}"
        )


def _padded_shape(input: Tensor, pairs: list[tuple[int, int]]) -> tuple[int, ...]:
    shape = input.layout.shape
    sizes = []
    for dim, (before, after) in enumerate(pairs):
        size = shape[dim] + before + after
        cropped = shape[dim] + min(before, 0) + min(after, 0)
        if cropped < 0:
            raise TensorRuntimeError("narrow(): length must be non-negative.")
        if size < 0:
            raise TensorRuntimeError(
                f"The input size {shape[dim]}, plus negative padding {before} and {after} "
                "resulted in a negative output size, which is invalid. Check dimension "
                f"{dim} of your input."
            )
        sizes.append(size)
    return tuple(sizes)


@kernel(
    vjp=lambda g, pad: F.constant_pad_nd(g, tuple([-n for n in pad]), 0),
    method=False,
    out=False,
    example="constant_pad_nd(tensor([1., 2.]), (1, 1))",
)
def constant_pad_nd(input: Tensor, pad: Shape, value: Scalar = 0) -> Made:
    """Padded with a constant; ``pad`` lists before and after from the last dimension on.

    A negative number takes elements away.
    """
    layout = input.layout
    _check_even(pad, layout.ndim, f"Length of pad must be even but instead it equals {len(pad)}")
    pairs = _pairs(pad, layout.ndim)
    shape = _padded_shape(input, pairs)

    def run(xp: Any) -> Any:
        whole = xp.full(shape, element(value, input.dtype), input.kind.np)
        source = tuple(
            [
                slice(max(-b, 0), n - max(-a, 0))
                for (b, a), n in zip(pairs, layout.shape, strict=True)
            ]
        )
        target = tuple(
            [slice(max(b, 0), n - max(a, 0)) for (b, a), n in zip(pairs, shape, strict=True)]
        )
        whole[target] = input.array[source]
        return whole

    if all(n <= 0 for n in pad):  # a copy of a view
        cut = layout
        for d, (before, _) in enumerate(pairs):
            cut, _ = layouts.narrow(cut, d, -before, shape[d])
        return made(input.dtype, layouts.preserved(cut), run)
    return made(input.dtype, kept_format(shape, layout), run)


def _reflected(before: int, after: int, size: int) -> list[int]:
    period = max(2 * (size - 1), 1)
    places = [abs(i) % period for i in range(-before, size + after)]
    return [p if p < size else period - p for p in places]


def _repeated(before: int, after: int, size: int) -> list[int]:
    return [min(max(i, 0), size - 1) for i in range(-before, size + after)]


def _by_index(name: str, title: str, spatial: int, places: Any, checks: Any) -> None:
    """The kernel that pads the last ``spatial`` dimensions with elements of the input."""

    def indices(shape: tuple[int, ...], pad: tuple[int, ...]) -> list[tuple[int, list[int]]]:
        first = len(shape) - spatial
        return [
            (d, places(*pad[2 * (len(shape) - 1 - d) :][:2], shape[d]))
            for d in range(first, len(shape))
        ]

    def gradient(g: Tensor, input: Tensor, pad: tuple[int, ...]) -> Tensor:
        sizes = input.layout.shape
        for dim, index in indices(sizes, pad):
            shape = list(g.layout.shape)
            shape[dim] = sizes[dim]
            g = g.new_zeros(tuple(shape)).index_add(dim, F.tensor(index), g)
        return g

    @kernel(
        name=f"{title}_pad{spatial}d",
        node=f"{title.title()}Pad{spatial}DBackward0",
        vjp=Native(f"{title.title()}Pad{spatial}DBackwardBackward0", gradient),
        function=False,
        method=False,
        out=False,
    )
    def padded(input: Tensor, pad: Shape) -> Made:
        shape = input.layout.shape
        _check_spatial(shape, spatial)
        pairs = _pairs(pad, len(shape))
        if checks is not None:
            checks(shape, pairs)
        check_takes("ifc", f"{title}_pad{spatial}d", input.dtype)
        new = tuple([n + b + a for n, (b, a) in zip(shape, pairs, strict=True)])

        def run(xp: Any) -> Any:
            array = input.array
            for dim, index in indices(shape, pad):
                array = array.take(xp.asarray(index, "int64"), axis=dim)
            return array

        return made(input.dtype, kept_format(new, input.layout), run)


_DIMS = {1: "2D or 3D", 2: "3D or 4D", 3: "4D or 5D"}


def _check_spatial(shape: tuple[int, ...], spatial: int) -> None:
    inner = shape[1:] if len(shape) == spatial + 2 else shape
    if 0 in inner:
        raise TensorRuntimeError(
            f"Expected {_DIMS[spatial]} (batch mode) tensor with possibly 0 batch size and other "
            f"non-zero dimensions for input, but got: {list(shape)}"
        )


def _check_reflection(shape: tuple[int, ...], pairs: list[tuple[int, int]]) -> None:
    for dim in range(len(shape) - 1, -1, -1):
        before, after = pairs[dim]
        if max(before, after) >= max(shape[dim], 1):
            argument = 4 + 2 * (len(shape) - 1 - dim)
            raise TensorRuntimeError(
                f"Argument #{argument}: Padding size should be less than the corresponding input "
                f"dimension, but got: padding ({before}, {after}) at dimension {dim} of input "
                f"{list(shape)}"
            )


for _spatial in (1, 2, 3):
    _by_index("reflect", "reflection", _spatial, _reflected, _check_reflection)
    _by_index("replicate", "replication", _spatial, _repeated, None)


def _circular(input: Tensor, pad: tuple[int, ...]) -> Tensor:
    """Padded from the other side, written part by part as PyTorch does."""
    ndim = input.layout.ndim
    pairs = _pairs(pad, ndim)
    sizes = []
    for dim, (before, after) in enumerate(pairs):
        size = input.layout.shape[dim]
        if before > size or after > size:
            raise TensorRuntimeError("Padding value causes wrapping around more than once.")
        if size + before + after < 0:
            raise TensorRuntimeError("Negative padding value is resulting in an empty dimension")
        sizes.append(size + before + after)
    whole = input.new_empty(tuple(sizes))
    target, source = whole, input
    for dim in range(2, ndim):
        before, after = pairs[dim]
        target = target.narrow(dim, max(before, 0), sizes[dim] - max(before, 0) - max(after, 0))
        size = input.layout.shape[dim]
        source = source.narrow(dim, max(-before, 0), size - max(-before, 0) - max(-after, 0))
    target.copy_(source)
    for dim in range(ndim - 1, ndim - len(pad) // 2 - 1, -1):
        before, after = pairs[dim]
        size = sizes[dim]
        if before > 0:
            start = size - before - max(after, 0)
            whole.narrow(dim, 0, before).copy_(whole.narrow(dim, start, before))
        if after > 0:
            part = whole.narrow(dim, max(before, 0), after)
            whole.narrow(dim, size - after, after).copy_(part)
    return whole


_TITLES = {"reflect": "reflection", "replicate": "replication"}


@composite(name="nn.pad", function=False, method=False, out=False)
def pad(input: Tensor, pad: Shape, mode: str = "constant", value: float | None = None) -> Tensor:
    """Padding in one of four modes."""
    ndim = input.layout.ndim
    _check_even(pad, ndim, "Padding length must be divisible by 2")
    if mode == "constant":
        return F.constant_pad_nd(input, pad, 0.0 if value is None else value)
    if value is not None and value != 0:
        raise TensorRuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    count = len(pad)
    if count in (2, 4, 6) and ndim in (count // 2 + 1, count // 2 + 2):
        if mode in _TITLES:
            return ops[f"{_TITLES[mode]}_pad{count // 2}d"].function(input, pad)
        if mode == "circular":
            if ndim == count // 2 + 1:
                return _circular(input.unsqueeze(0), pad).squeeze(0)
            return _circular(input, pad)
        raise TensorNotImplementedError(f"Unrecognised padding mode {mode}")
    raise TensorNotImplementedError(
        f"Padding size {count} is not supported for {ndim}D input tensor."
    )


@functional(
    name="pad",
    example="nn.functional.pad(tensor([1., 2.]), (1, 2))",
    samples=(
        "nn.functional.pad(arange(4.).reshape(1, 1, 4), (1, 2), mode='reflect')",
        "nn.functional.pad(arange(4.).reshape(1, 1, 4), (1, 2), mode='replicate')",
        "nn.functional.pad(arange(4.).reshape(1, 1, 4), (1, 2), mode='circular')",
        "nn.functional.pad(arange(9.).reshape(1, 1, 3, 3), (1, 2, 0, 1), mode='reflect')",
        "nn.functional.pad(arange(9.).reshape(1, 1, 3, 3), (1, 2, 0, 1), mode='replicate')",
        "nn.functional.pad(arange(8.).reshape(1, 1, 2, 2, 2), (1,) * 6, mode='reflect')",
        "nn.functional.pad(arange(8.).reshape(1, 1, 2, 2, 2), (1,) * 6, mode='replicate')",
    ),
)
def _pad(input: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    """Padded at the ends of dimensions; ``pad`` lists before and after from the last one on.

    ``mode`` is "constant", "reflect", "replicate" or "circular".
    """
    return ops["nn.pad"].function(input, pad, mode, value)
