"""Functions of the user's applied to every element, in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import tape
from engine.errors import AutogradError, TensorTypeError
from engine.foreign import exchange
from engine.plain_calls import check_tensor
from engine.registry import method
from engine.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable


def _check(name: str, x: Tensor, others: tuple[Tensor, ...]) -> None:
    if any(tape.requires_grad(t) for t in (x, *others)):
        raise AutogradError(
            f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() "
            "instead."
        )
    for at, other in enumerate(others):
        if other.dtype is not x.dtype:
            which = "other" if len(others) == 1 else "xy"[at]
            raise TensorTypeError(
                f"{name}: expected torch.{x.dtype.title}Tensor for '{which}' "
                f"(got torch.{other.dtype.title}Tensor)"
            )


def _change(name: str, x: Tensor, others: tuple[Tensor, ...], function: Any) -> Tensor:
    _check(name, x, others)
    tape.check_inplace(x, False)
    shown = [t.expand(x.shape) for t in others]
    if x.array is None:
        return x
    rows = zip(*[t.reshape(-1).tolist() for t in (x, *shown)], strict=True)
    call = exchange.function(function)
    values = [x.dtype.np.type(call(*row)) for row in rows]
    for place, value in zip(_places(x), values, strict=True):
        x.array[place] = value
    tape.bump(x)
    return x


def _places(x: Tensor) -> Any:
    import numpy as np

    return np.ndindex(x.layout.shape)


@method("apply_")
def apply_(x: Tensor, callable: Callable[..., Any]) -> Tensor:
    """Each element replaced by what the function makes of it; slow, and unknown to autograd."""
    return _change("apply_", x, (), callable)


@method("map_")
def map_(x: Tensor, tensor: Tensor, callable: Callable[..., Any]) -> Tensor:
    """Each element replaced by what the function makes of it and of that of ``tensor``."""
    check_tensor("map_", "tensor", 2, tensor)
    return _change("map_", x, (tensor,), callable)


@method("map2_")
def map2_(x: Tensor, first: Tensor, second: Tensor, callable: Callable[..., Any]) -> Tensor:
    """As ``map_``, with elements of two further tensors."""
    check_tensor("map2_", "x", 2, first)
    check_tensor("map2_", "y", 3, second)
    return _change("map2_", x, (first, second), callable)
