"""nn.Parameter, and what is done to the gradients of many parameters together."""

from __future__ import annotations

from typing import Any

from engine.errors import TensorRuntimeError
from engine.exposed import TYPES
from engine.registry import F, function, functions
from engine.tensor import ParameterAutograd, Tensor


class _ParameterType(type):
    """Makes isinstance tell parameters from other tensors, which are of the same class."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Tensor) and isinstance(value.ag, ParameterAutograd)


class Parameter(metaclass=_ParameterType):
    """``Parameter(data, requires_grad=True)``: a leaf over the same memory as ``data``."""

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        made = F.empty(0) if data is None else data.detach()
        if requires_grad and not (made.dtype.is_floating_point or made.dtype.is_complex):
            raise TensorRuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        made.ag = ParameterAutograd(requires_grad)
        return made


TYPES[Tensor] = lambda x: Parameter if isinstance(x.ag, ParameterAutograd) else Tensor
function("nn.Parameter", "nn.parameter.Parameter")(Parameter)


def _gradients(parameters: Any) -> list[Tensor]:
    """The gradients there are, without their history: nothing here is recorded."""
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p.ag.grad.detach() for p in listed if p.ag is not None and p.ag.grad is not None]


def _total_norm(tensors: list[Tensor], norm_type: float, error_if_nonfinite: bool) -> Tensor:
    if not tensors:
        return F.tensor(0.0)
    norm = functions["linalg.vector_norm"]
    norms = [norm(t.detach(), norm_type) for t in tensors]
    total: Tensor = norm(F.stack([n.to(norms[0].dtype) for n in norms]), norm_type)
    if error_if_nonfinite and not bool(F.isfinite(total)):
        raise TensorRuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
            "so it cannot be clipped. To disable this error and scale the gradients by the "
            "non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


@function("nn.utils.get_total_norm")
def get_total_norm(
    tensors: Any,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of several tensors taken as one vector."""
    listed = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    return _total_norm(listed, float(norm_type), error_if_nonfinite)


@function("nn.utils.clip_grads_with_norm_")
def clip_grads_with_norm_(
    parameters: Any, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale all gradients so that their common norm is at most ``max_norm``."""
    factor = (float(max_norm) / (total_norm.detach() + 1e-6)).clamp(max=1.0)
    for g in _gradients(parameters):
        g.mul_(factor)


@function("nn.utils.clip_grad_norm_")
def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients so that their common norm is at most ``max_norm``; gives the norm."""
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    total = _total_norm(_gradients(listed), float(norm_type), error_if_nonfinite)
    clip_grads_with_norm_(listed, max_norm, total)
    return total


@function("nn.utils.clip_grad_value_")
def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Bring every element of every gradient between -``clip_value`` and ``clip_value``."""
    for g in _gradients(parameters):
        g.clamp_(min=-float(clip_value), max=float(clip_value))


@function("nn.utils.parameters_to_vector")
def parameters_to_vector(parameters: Any) -> Tensor:
    """All parameters one after the other in one vector."""
    return F.cat([p.view(-1) for p in parameters])


@function("nn.utils.vector_to_parameters")
def vector_to_parameters(vec: Any, parameters: Any) -> None:
    """Let every parameter show its part of a vector."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    at = 0
    for p in parameters:
        p.data = vec[at : at + p.layout.numel].view(p.layout.shape).data
        at += p.layout.numel
