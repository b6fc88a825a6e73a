"""Copies and conversions: clone, copy_, contiguous, to, detach."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import layout as layouts
from engine import tape
from engine.kinds import kernel, made
from engine.kinds.kernel import change
from engine.kinds.results import cast
from engine.kinds.deriving import Recorder
from engine.registry import F, function, method, ops
from engine.tensor import Tensor, alias, kind_of

if TYPE_CHECKING:
    from engine.dtypes import DType
    from engine.kinds import Made


def _format(x: Tensor, memory_format: Any) -> Any:
    name = str(memory_format).rpartition(".")[2] if memory_format is not None else "preserve_format"
    if name == "contiguous_format" or name == "contiguous":
        return layouts.contiguous(x.layout.shape)
    if name.startswith("channels_last"):
        return layouts.layout(x.layout.shape, layouts.channels_last_strides(x.layout.shape))
    return layouts.preserved(x.layout)


@kernel(vjp=lambda g: g, out=False, example="clone(tensor([1., 2.]))")
def clone(input: Tensor, *, memory_format: Any = None) -> Made:
    """A copy of its own memory; dense strides are kept."""
    return made(input.dtype, _format(input, memory_format), lambda xp: xp.array(input.array))


@method("detach")
@function("detach")
def detach(x: Tensor) -> Tensor:
    """The same memory, unknown to the graph; in-place changes are seen on both sides."""
    return alias(x)


@kernel(vjp={"src": lambda g, src_dtype: g}, function=False, method=False, inplace=True, out=False, node="CopyBackwards", name="copy")
def copy(input: Tensor, src: Tensor, non_blocking: bool = False) -> Made:
    """The elements of ``src``, broadcast and converted to the tensor's own shape and dtype."""
    return made(input.dtype, input.layout, lambda xp: xp.broadcast_to(cast(src.array, input.kind), input.layout.shape))


@method("contiguous")
def contiguous(x: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself where it is row-major already, else a copy that is."""
    return x if x.layout.contiguous else x.clone(memory_format="contiguous")


@kernel(vjp=lambda g, input_dtype: g.to(input_dtype), function=False, method=False, out=False, node="ToCopyBackward0", name="_to_copy")
def _to_copy(input: Tensor, dtype: DType) -> Made:
    return made(dtype, layouts.preserved(input.layout), lambda xp: cast(input.array, kind_of(dtype, input.device)))


@method("to")
def to(x: Tensor, dtype: Any) -> Tensor:
    """The tensor in another dtype; itself where nothing changes."""
    return x if x.dtype is dtype else ops["_to_copy"].function(x, dtype)
