"""layout(x): how a tensor lies in memory, whose view it is, and what breaks its contiguity."""

from __future__ import annotations

from engine import lazy
from engine.tensor import Tensor
from tensorcli.explain.names import name_of, sharing, sharing_names
from tensorcli.results import LayoutResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def explain(
    tensor: Tensor,
    name: str | None,
    names: Mapping[str, object],
    line: int | None,
    steps: tuple[object, ...] = (),
) -> LayoutResult:
    """The layout of a tensor; `name` is how the program wrote it."""
    layout = tensor.layout
    wanted = row_major(layout.shape)
    size = tensor.dtype.itemsize
    return LayoutResult(
        line=line,
        name=name,
        dtype=tensor.dtype.name,
        device=str(tensor.device),
        shape=layout.shape,
        stride=layout.strides,
        storage_offset=tensor.offset,
        numel=layout.numel,
        contiguous=layout.contiguous,
        contiguous_strides=wanted,
        first_break=None if layout.contiguous else first_break(layout.shape, layout.strides),
        bytes=layout.numel * size,
        storage_bytes=tensor.storage.nbytes,
        seen=seen(tensor),
        view_of=_base(tensor, names, steps),
        shares=sharing_names(tensor, names),
        steps=steps,
        positions=positions(layout.shape, layout.strides, tensor.offset),
    )


def seen(tensor: Tensor) -> str | None:
    """How a lazy view shows what its memory holds; None where it shows it as it is."""
    if not lazy.is_lazy(tensor):
        return None
    changes = {"conjugated": lazy.CONJUGATED, "negated": lazy.NEGATED}
    return " and ".join(word for word, c in changes.items() if lazy.has(tensor.memory, c))


MOST_POSITIONS = 64
"""Elements of a tensor whose order in memory is drawn."""


def positions(
    shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> tuple[int, ...] | None:
    """The place in the storage of each element, in row-major order; None where they are many."""
    found = [offset]
    for size, stride in zip(shape, strides, strict=True):
        if len(found) * size > MOST_POSITIONS:
            return None
        found = [place + i * stride for place in found for i in range(size)]
    return tuple(found) if len(found) > 1 else None


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a contiguous tensor of that shape, as PyTorch counts them."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def first_break(shape: tuple[int, ...], strides: tuple[int, ...]) -> int | None:
    """The last dimension whose stride is not what the sizes to its right ask for."""
    step = 1
    for dim in range(len(shape) - 1, -1, -1):
        if shape[dim] == 1:
            continue
        if strides[dim] != step:
            return dim
        step *= shape[dim]
    return None


def _base(tensor: Tensor, names: Mapping[str, object], steps: tuple[Any, ...]) -> str | None:
    """Of which variable it is a view: that where its chain began, if its base has no name."""
    base = view_of(tensor, names)
    began = steps[0] if steps else None
    shares = [name for name, value in sharing(tensor, names) if value is not tensor]
    if base == "a temporary" and began is not None and began.text in shares:
        if all(step.outcome != "copy" for step in steps):
            return str(began.text)
    return base


def view_of(tensor: Tensor, names: Mapping[str, object]) -> str | None:
    """The variable that this is a view of; 'a temporary' where its base has no name; else None."""
    base = tensor.base
    if base is None:
        return None
    name = name_of(base, names)
    if name is not None:
        return name
    others = [other for other, value in sharing(tensor, names) if value.base is None]
    return others[0] if others else "a temporary"
