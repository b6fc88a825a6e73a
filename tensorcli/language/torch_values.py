"""Attributes and methods of torch's values beside tensors: dtypes, devices, sizes, graph nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.device import Device
from engine.dtypes import DType
from engine.layout import Size
from engine.ops.autograd import HookHandle
from engine.tape import AccumulateGrad, Node
from engine.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable


def _count(size: Size) -> int:
    count = 1
    for length in size:
        count *= length
    return count


def _graph_node(target: Any) -> Any:
    """An edge's end as PyTorch shows it: a leaf is the node that accumulates into it."""
    return AccumulateGrad(target) if isinstance(target, Tensor) else target


def _next_functions(node: Node) -> tuple[tuple[Any, int], ...]:
    edges = zip(node.next, node.nr, strict=True)
    return tuple([(_graph_node(target), number) for target, number in edges])


METHODS: dict[type, dict[str, Callable[..., Any]]] = {
    Size: {"numel": _count, "count": tuple.count, "index": tuple.index},
    Node: {"name": lambda node: node.name},
    HookHandle: {"remove": HookHandle.remove},
    AccumulateGrad: {"name": lambda node: f"torch::autograd::{node.name}"},
}

ATTRIBUTES: dict[type, dict[str, Callable[[Any], Any]]] = {
    DType: {
        "is_floating_point": lambda dtype: dtype.is_floating_point,
        "is_complex": lambda dtype: dtype.is_complex,
        "is_signed": lambda dtype: dtype.is_signed,
        "itemsize": lambda dtype: dtype.itemsize,
    },
    Device: {
        "type": lambda device: device.type,
        "index": lambda device: device.index,
    },
    Node: {"next_functions": _next_functions},
    AccumulateGrad: {
        "next_functions": lambda node: (),
        "variable": lambda node: node.variable,
    },
}
