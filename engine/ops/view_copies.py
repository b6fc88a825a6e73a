"""Views that are copied at once: ``permute_copy`` and the like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import TensorRuntimeError
from engine.formats import contiguous_format
from engine.kinds.results import store_out
from engine.registry import F, function, methods

if TYPE_CHECKING:
    from engine.tensor import Tensor

_COPIED = (
    "alias", "as_strided", "detach", "diagonal", "expand", "narrow", "permute", "select", "slice", "split",
    "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unfold", "unsqueeze", "view",
    "view_as_complex", "view_as_real",
)  # fmt: skip


def _enter(view: str) -> None:
    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        viewed = _of(view)(*args, **kwargs)
        if viewed.__class__ is tuple:
            copies = tuple([v.clone(memory_format=contiguous_format) for v in viewed])
            if out is not None:
                for o, c in zip(out, copies, strict=True):
                    store_out(o, c, f"{view}_copy")
                return None
            return copies
        copy = viewed.clone(memory_format=contiguous_format)
        return copy if out is None else store_out(out, copy, f"{view}_copy")

    call.__name__ = f"{view}_copy"
    call.__doc__ = f"A copy of what ``{view}`` shows."
    function(call.__name__)(call)


def _of(view: str) -> Any:
    if view == "alias":
        return lambda input: input
    if view == "slice":
        return _slice
    return methods[view] if view in methods else getattr(F, view)


def _slice(
    input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    if step <= 0:
        raise TensorRuntimeError("slice step must be positive")
    size = input.layout.shape[dim]
    first, last, _ = slice(start, end).indices(size)
    index = (slice(None),) * (dim % input.ndim) + (slice(first, max(first, last), step),)
    return input[index]  # type: ignore[index, no-any-return]


for _name in _COPIED:
    _enter(_name)
