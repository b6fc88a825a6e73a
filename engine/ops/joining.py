"""Several tensors made one: cat, stack and their relatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine import layout as layouts
from engine.errors import TensorRuntimeError, TensorValueError
from engine.kinds import composite, kernel, made
from engine.kinds.results import cast
from engine.layout import wrap_dim
from engine.registry import F
from engine.tensor import kind_of

if TYPE_CHECKING:
    from engine.dtypes import DType
    from engine.kinds import Made
    from engine.parameter_types import Dim, Tensors
    from engine.tensor import Tensor


def _common(tensors: Tensors) -> DType:
    first = tensors[0].dtype
    if all(t.dtype is first for t in tensors):
        return first
    dimensioned = [t.dtype for t in tensors if t.ndim]
    return dtypes.result_type(dimensioned, [t.dtype for t in tensors if not t.ndim], [])


def _arrays(tensors: Tensors, common: DType) -> list[Any]:
    return [
        t.array if t.dtype is common else cast(t.array, kind_of(common, t.device)) for t in tensors
    ]


def _skipped(t: Tensor) -> bool:
    """PyTorch ignores tensors of shape (0,) among those to be joined."""
    return t.layout.shape == (0,)


def _cat_gradient(g: Tensor, tensors_shape: Any, dim: int) -> list[Tensor]:
    parts: list[Tensor] = []
    start = 0
    for shape in tensors_shape:
        if shape == (0,):
            parts.append(g.new_zeros((0,)))
            continue
        d = wrap_dim(dim, len(shape))
        parts.append(g.narrow(d, start, shape[d]))
        start += shape[d]
    return parts


@kernel(
    vjp={"tensors": _cat_gradient},
    method=False,
    aliases=("concat", "concatenate"),
    example="cat([tensor([1., 2.]), tensor([3.])])",
)
def cat(tensors: Tensors, dim: Dim = 0) -> Made:
    """The tensors one after another along ``dim``; their other sizes must agree.

    A tensor of shape (0,) is ignored.
    """
    if not tensors:
        raise TensorValueError("torch.cat(): expected a non-empty list of Tensors")
    for at, t in enumerate(tensors):
        if t.ndim == 0:
            raise TensorRuntimeError(
                f"zero-dimensional tensor (at position {at}) cannot be concatenated"
            )
    parts = tuple([t for t in tensors if not _skipped(t)])
    common = _common(tensors)
    if not parts:
        wrap_dim(dim, 1)
        return made(common, (0,), lambda xp: xp.empty(0, kind_of(common).np))
    first = parts[0]
    d = wrap_dim(dim, first.ndim)
    want = first.layout.shape
    total = 0
    for at, t in enumerate(tensors):
        if _skipped(t):
            continue
        shape = t.layout.shape
        if len(shape) != len(want):
            raise TensorRuntimeError(
                f"Tensors must have same number of dimensions: got {len(want)} and {len(shape)}"
            )
        if shape[:d] != want[:d] or shape[d + 1 :] != want[d + 1 :]:
            bad = next(i for i in range(len(want)) if i != d and shape[i] != want[i])
            raise TensorRuntimeError(
                f"Sizes of tensors must match except in dimension {d}. Expected size {want[bad]} "
                f"but got size {shape[bad]} for tensor number {at} in the list."
            )
        total += shape[d]
    whole = (*want[:d], total, *want[d + 1 :])
    layout = layouts.joined([t.layout for t in parts], whole)
    return made(common, layout, lambda xp: xp.concatenate(_arrays(parts, common), axis=d))


def _stack_gradient(g: Tensor, tensors_shape: Any, dim: int) -> list[Tensor]:
    return [g.select(dim, at) for at in range(len(tensors_shape))]


@kernel(
    vjp={"tensors": _stack_gradient},
    method=False,
    example="stack([tensor([1., 2.]), tensor([3., 4.])])",
)
def stack(tensors: Tensors, dim: Dim = 0) -> Made:
    """Tensors of one shape side by side along a new dimension ``dim``."""
    if not tensors:
        raise TensorRuntimeError("stack expects a non-empty TensorList")
    shape = tensors[0].layout.shape
    d = wrap_dim(dim, len(shape) + 1)
    for at, t in enumerate(tensors):
        if t.layout.shape != shape:
            raise TensorRuntimeError(
                "stack expects each tensor to be equal size, but got "
                f"{list(shape)} at entry 0 and {list(t.layout.shape)} at entry {at}"
            )
    common = _common(tensors)
    whole = (*shape[:d], len(tensors), *shape[d:])
    layout = layouts.contiguous(whole)
    if d < len(shape):
        merged = (*shape[:d], len(tensors) * shape[d], *shape[d + 1 :])
        layout = layouts.view(layouts.joined([t.layout for t in tensors], merged), whole)
    return made(
        common,
        layout,
        lambda xp: xp.stack(_arrays(tensors, common), axis=d),
    )


def _nonempty(tensors: Tensors, name: str) -> None:
    if not tensors:
        raise TensorRuntimeError(f"{name} expects a non-empty TensorList")


@composite(method=False, example="hstack([tensor([1., 2.]), tensor([3.])])")
def hstack(tensors: Tensors) -> Tensor:
    """Joined along the second dimension, vectors along their only one."""
    _nonempty(tensors, "hstack")
    parts = [F.atleast_1d(t) for t in tensors]
    return F.cat(parts, 0 if parts[0].ndim == 1 else 1)


@composite(
    method=False, aliases=("row_stack",), example="vstack([tensor([1., 2.]), tensor([3., 4.])])"
)
def vstack(tensors: Tensors) -> Tensor:
    """Joined along the first dimension, vectors as rows."""
    _nonempty(tensors, "vstack")
    return F.cat([F.atleast_2d(t) for t in tensors], 0)


@composite(method=False, example="dstack([tensor([1., 2.]), tensor([3., 4.])])")
def dstack(tensors: Tensors) -> Tensor:
    """Joined along the third dimension, which is added where it is missing."""
    _nonempty(tensors, "dstack")
    return F.cat([F.atleast_3d(t) for t in tensors], 2)


@composite(method=False, example="column_stack([tensor([1., 2.]), tensor([3., 4.])])")
def column_stack(tensors: Tensors) -> Tensor:
    """Joined along the second dimension, vectors as columns."""
    _nonempty(tensors, "column_stack")
    return F.hstack([t if t.ndim > 1 else t.reshape((t.layout.numel, 1)) for t in tensors])
