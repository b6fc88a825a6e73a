"""Which variables of a session hold which tensors, those in lists and dicts included."""

from __future__ import annotations

import numpy as np

from engine.tensor import Tensor
from tensorcli.language.numpy_array import NDArray

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOST_ITEMS = 1000
"""Elements looked at in one list or dict: a list of parameters, not a data set."""


def named_tensors(names: Mapping[str, object]) -> Iterator[tuple[str, Tensor]]:
    """(expression, tensor): variables first, then elements such as `params[0]`, `p['w']`."""
    for name, value in names.items():
        if isinstance(value, Tensor):
            yield name, value
    for name, value in names.items():
        if isinstance(value, list | tuple):
            for index, item in enumerate(value[:MOST_ITEMS]):
                if isinstance(item, Tensor):
                    yield f"{name}[{index}]", item
        elif isinstance(value, dict) and len(value) <= MOST_ITEMS:
            for key, item in value.items():
                if isinstance(item, Tensor) and isinstance(key, str | int):
                    yield f"{name}[{key!r}]", item


def name_of(tensor: Tensor, names: Mapping[str, object]) -> str | None:
    """The first name that is bound to just this tensor."""
    return next((name for name, value in named_tensors(names) if value is tensor), None)


def sharing(tensor: Tensor, names: Mapping[str, object]) -> list[tuple[str, Tensor]]:
    """The other named tensors over the same memory."""
    storage = tensor.storage.root
    return [
        (name, value)
        for name, value in named_tensors(names)
        if value is not tensor and value.storage.root is storage
    ]


def sharing_names(tensor: Tensor, names: Mapping[str, object]) -> tuple[str, ...]:
    """The other variables over the same memory, numpy's arrays included."""
    tensors = [name for name, _ in sharing(tensor, names)]
    return tuple(tensors + arrays_over(tensor, names))


def arrays_over(tensor: Tensor, names: Mapping[str, object]) -> list[str]:
    """The numpy arrays among the variables that show memory of a tensor."""
    if tensor.array is None:
        return []
    own = np.asarray(tensor.array)
    return [
        name
        for name, value in names.items()
        if isinstance(value, NDArray) and np.may_share_memory(value.array, own)
    ]
