"""torch.nn.init: first values for weights, written in place and not recorded."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine.errors import TensorValueError
from engine.modes import state
from engine.registry import F, function
from engine.tensor import from_array

if TYPE_CHECKING:
    from engine.random import Generator
    from engine.tensor import Tensor

_GAINS = {
    "sigmoid": 1,
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
    "linear": 1,
    "conv1d": 1,
    "conv2d": 1,
    "conv3d": 1,
    "conv_transpose1d": 1,
    "conv_transpose2d": 1,
    "conv_transpose3d": 1,
}


def _unrecorded(change: Any) -> Any:
    """``change`` with recording switched off."""
    before = state.grad
    state.grad = False
    try:
        return change()
    finally:
        state.grad = before


@function("nn.init.calculate_gain")
def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """By how much weights before that function should be scaled."""
    if nonlinearity.__class__ is str and nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    if nonlinearity != "leaky_relu":
        raise TensorValueError(f"Unsupported nonlinearity {nonlinearity}")
    if param is None:
        slope: float = 0.01
    elif not isinstance(param, bool) and isinstance(param, (int, float)):
        slope = param
    else:
        raise TensorValueError(f"negative_slope {param} not a valid number")
    return math.sqrt(2.0 / (1 + slope**2))


def _fans(tensor: Tensor) -> tuple[int, int]:
    shape = tensor.layout.shape
    if len(shape) < 2:
        raise TensorValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def _chosen_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    modes = ["fan_in", "fan_out"]
    if mode not in modes:
        raise TensorValueError(f"Mode {mode} not supported, please use one of {modes}")
    fan_in, fan_out = _fans(tensor)
    return fan_in if mode == "fan_in" else fan_out


@function("nn.init.uniform_")
def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Numbers drawn evenly from [a, b)."""
    done: Tensor = _unrecorded(lambda: tensor.uniform_(a, b, generator=generator))
    return done


@function("nn.init.normal_")
def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Normal numbers."""
    done: Tensor = _unrecorded(lambda: tensor.normal_(mean, std, generator=generator))
    return done


# torch 2.13 draws again only if at least this share of normal numbers lies inside.
_LEAST_ACCEPTED = 0.3


def _tail_(
    tensor: Tensor,
    mean: float,
    std: float,
    bounds: tuple[float, float],
    erfs: tuple[float, float],
    generator: Generator | None,
) -> Tensor:
    """Normal numbers of a part that few lie in, by the inverse of their distribution.

    PyTorch has numbers of its own there; drawing until all lie inside might never end.
    """
    (a, b), (low, high) = bounds, erfs
    uniform_(tensor, a, b, generator)
    if a == b or tensor.array is None:
        return tensor
    evenly = (tensor.detach().to(dtypes.float64) - a) / (b - a)
    normal = (low + (high - low) * evenly).erfinv() * (std * math.sqrt(2)) + mean
    done: Tensor = _unrecorded(lambda: tensor.copy_(normal.clamp(a, b)))
    return done


@function("nn.init.trunc_normal_")
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Normal numbers, those outside [a, b] drawn again."""
    low, high = (math.erf((bound - mean) / std / math.sqrt(2)) for bound in (a, b))
    if not (high - low) / 2 >= _LEAST_ACCEPTED:
        return _tail_(tensor, mean, std, (a, b), (low, high), generator)
    normal_(tensor, mean, std, generator)
    while tensor.array is not None:
        outside = (tensor.detach() < a) | (tensor.detach() > b)
        if not outside.array.any():
            break
        again = normal_(F.empty_like(tensor), mean, std, generator)
        fresh = F.where(outside, again, tensor.detach())
        _unrecorded(lambda fresh=fresh: tensor.copy_(fresh))
    return tensor


@function("nn.init.constant_")
def constant_(tensor: Tensor, val: float) -> Tensor:
    """One number everywhere."""
    done: Tensor = _unrecorded(lambda: tensor.fill_(val))
    return done


@function("nn.init.ones_")
def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return constant_(tensor, 1.0)


@function("nn.init.zeros_")
def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    return constant_(tensor, 0.0)


@function("nn.init.eye_")
def eye_(tensor: Tensor) -> Tensor:
    """Ones on the main diagonal, zeros elsewhere."""
    if tensor.layout.ndim != 2:
        raise TensorValueError("Only tensors with 2 dimensions are supported")
    unit = F.eye(*tensor.layout.shape, dtype=tensor.dtype)
    done: Tensor = _unrecorded(lambda: tensor.copy_(unit))
    return done


@function("nn.init.dirac_")
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """The kernel of a convolution that passes its input on, in each group."""
    shape = tensor.layout.shape
    if len(shape) not in (3, 4, 5):
        raise TensorValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if shape[0] % groups:
        raise TensorValueError("dim 0 must be divisible by groups")
    zeros_(tensor)
    channels = shape[0] // groups
    middle = tuple(n // 2 for n in shape[2:])
    for group in range(groups):
        for d in range(min(channels, shape[1])):
            cell = tensor.detach()
            for index in (group * channels + d, d, *middle):
                cell = cell.select(0, index)
            cell.fill_(1)
    return tensor


@function("nn.init.xavier_uniform_")
def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Evenly drawn numbers of the variance 2 / (fan_in + fan_out), times gain squared."""
    fan_in, fan_out = _fans(tensor)
    bound = math.sqrt(3.0) * (gain * math.sqrt(2.0 / float(fan_in + fan_out)))
    return uniform_(tensor, -bound, bound, generator)


@function("nn.init.xavier_normal_")
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal numbers of the variance 2 / (fan_in + fan_out), times gain squared."""
    fan_in, fan_out = _fans(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


@function("nn.init.kaiming_uniform_")
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Evenly drawn numbers of the variance gain squared / fan."""
    if 0 in tensor.layout.shape:
        return tensor
    fan = _chosen_fan(tensor, mode)
    bound = math.sqrt(3.0) * (calculate_gain(nonlinearity, a) / math.sqrt(fan))
    return uniform_(tensor, -bound, bound, generator)


@function("nn.init.kaiming_normal_")
def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Normal numbers of the variance gain squared / fan."""
    if 0 in tensor.layout.shape:
        return tensor
    fan = _chosen_fan(tensor, mode)
    return normal_(tensor, 0, calculate_gain(nonlinearity, a) / math.sqrt(fan), generator)


@function("nn.init.orthogonal_")
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Rows or columns that are orthogonal unit vectors, times gain."""
    if tensor.layout.ndim < 2:
        raise TensorValueError("Only tensors with 2 or more dimensions are supported")
    if not tensor.layout.numel:
        return tensor
    rows = tensor.layout.shape[0]
    columns = tensor.layout.numel // rows
    flat = normal_(F.empty((rows, columns), dtype=tensor.dtype), 0, 1, generator).array
    xp = tensor.kind.xp
    q, r = xp.linalg.qr(flat.T if rows < columns else flat)
    q = q * xp.sign(xp.diagonal(r))
    if rows < columns:
        q = q.T
    made = from_array(xp.ascontiguousarray(q * gain), tensor.dtype)
    done: Tensor = _unrecorded(lambda: tensor.copy_(made.view(tensor.layout.shape)))
    return done


@function("nn.init.sparse_")
def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None
) -> Tensor:
    """Normal numbers with the same share of zeros in every column."""
    if tensor.layout.ndim != 2:
        raise TensorValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.layout.shape
    zeros = math.ceil(sparsity * rows)
    normal_(tensor, 0, std, generator)
    for column in range(columns):
        places = F.randperm(rows).tolist()[:zeros]
        for row in places:
            tensor.detach().select(0, row).select(0, column).fill_(0)
    return tensor
