"""Softmax and its relatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.kinds import composite, kernel, made, working
from engine.kinds.functional import functional
from engine.kinds.native import Native
from engine.kinds.reduction import check_takes
from engine.layout import wrap_dim
from engine.modes import warn
from engine.registry import F, ops

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.dtypes import DType
    from engine.kinds import Made
    from engine.parameter_types import Dim
    from engine.tensor import Tensor


def _shifted(xp: Any, input: Tensor, axis: int) -> Any:
    """The numbers less their maximum, which keeps exp from overflowing."""
    x = working(input)
    return x - xp.max(x, axis=axis, keepdims=True)


def _exponentials(xp: Any, input: Tensor, axis: int) -> Any:
    e = xp.exp(_shifted(xp, input, axis))
    return e / e.sum(axis=axis, keepdims=True)


def _logarithms(xp: Any, input: Tensor, axis: int) -> Any:
    x = _shifted(xp, input, axis)
    return x - xp.log(xp.exp(x).sum(axis=axis, keepdims=True))


def _along(input: Tensor, dim: int, stub: str, run: Callable[[Any, Tensor, int], Any]) -> Made:
    axis = wrap_dim(dim, input.layout.ndim)
    last = "lastdim_" if axis >= input.layout.ndim - 1 else ""
    check_takes("f", f"{stub}_{last}kernel_impl", input.dtype)

    def compute(xp: Any) -> Any:
        if input.layout.numel == 0 or input.layout.ndim == 0:
            return run(xp, input.reshape((1,)), 0) if input.layout.ndim == 0 else working(input)
        return run(xp, input, axis)

    return made(input.dtype, input.layout.shape, compute)


@kernel(
    vjp=Native(
        "SoftmaxBackwardDataBackward0",
        lambda g, y, dim: g * y - y * (g * y).sum(dim, keepdim=True),
    ),
    function=False,
    method=False,
    out=False,
    node="SoftmaxBackward0",
)
def _softmax(input: Tensor, dim: Dim) -> Made:
    """Softmax in the input's own dtype."""
    return _along(input, dim, "softmax", _exponentials)


@kernel(
    vjp=Native(
        "LogSoftmaxBackwardDataBackward0",
        lambda g, y, dim: g - y.exp() * g.sum(dim, keepdim=True),
    ),
    function=False,
    method=False,
    out=False,
    node="LogSoftmaxBackward0",
)
def _log_softmax(input: Tensor, dim: Dim) -> Made:
    """Logarithm of softmax in the input's own dtype."""
    return _along(input, dim, "log_softmax", _logarithms)


@composite(
    spaces=("", "special."),
    example="softmax(tensor([1., 2., 3.]), dim=0)",
    samples=(
        "softmax(tensor([[1., 2.], [3., 5.]]), 0)",
        "softmax(tensor([[1., 2.], [3., 5.]]), -1, dtype=float64)",
    ),
)
def softmax(input: Tensor, dim: Dim, dtype: DType | None = None) -> Tensor:
    """exp of each element over the sum of exp along ``dim``: positive, adding up to 1.

    ``dtype`` is what the input is converted to first.
    """
    return ops["_softmax"].function(input if dtype is None else input.to(dtype), dim)


@composite(
    spaces=("", "special."),
    example="log_softmax(tensor([1., 2., 3.]), dim=0)",
)
def log_softmax(input: Tensor, dim: Dim, dtype: DType | None = None) -> Tensor:
    """The logarithm of softmax along ``dim``, exact where softmax is 0 as well.

    ``dtype`` is what the input is converted to first.
    """
    return ops["_log_softmax"].function(input if dtype is None else input.to(dtype), dim)


@kernel(
    vjp=lambda g, y, dim: g * y - y * (g * y).sum(dim, keepdim=True),
    method=False,
    out=False,
    node="SafeSoftmaxBackward0",
    example="torch._safe_softmax(tensor([[1., 2.], [-inf, -inf]]), 1)",
)
def _safe_softmax(input: Tensor, dim: Dim) -> Made:
    """Softmax that gives zeros where all numbers are -inf."""

    def run(xp: Any, x: Tensor, axis: int) -> Any:
        numbers = working(x)
        nothing = xp.all(numbers == -xp.inf, axis=axis, keepdims=True)
        return xp.where(nothing, numbers.dtype.type(0), _exponentials(xp, x, axis))

    return _along(input, dim, "softmax", run)


def _chosen_dim(name: str, ndim: int) -> int:
    """The dimension that softmax takes where none is named: an old choice, warned of."""
    warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument."
    )
    return 0 if ndim in (0, 1, 3) else 1


def _of_dim(name: str, input: Any, dim: Any, dtype: Any, method: str, negate: bool) -> Any:
    if dim is None:
        dim = _chosen_dim(name, input.dim())
    x = -input if negate else input
    return getattr(x, method)(dim) if dtype is None else getattr(x, method)(dim, dtype=dtype)


@functional(name="softmax", example="nn.functional.softmax(tensor([1., 2., 3.]), dim=0)")
def _functional_softmax(
    input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None
) -> Any:
    """exp of each element over the sum of exp along ``dim``.

    Without ``dim`` PyTorch warns and takes dimension 0 of 0, 1 or 3 dimensions, else 1.
    """
    return _of_dim("softmax", input, dim, dtype, "softmax", False)


@functional(name="log_softmax", example="nn.functional.log_softmax(tensor([1., 2., 3.]), dim=0)")
def _functional_log_softmax(
    input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None
) -> Any:
    """The logarithm of softmax along ``dim``; without ``dim`` as softmax."""
    return _of_dim("log_softmax", input, dim, dtype, "log_softmax", False)


@functional(example="nn.functional.softmin(tensor([1., 2., 3.]), dim=0)")
def softmin(input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """Softmax of the negated elements along ``dim``."""
    return _of_dim("softmin", input, dim, dtype, "softmax", True)


@functional(example="nn.functional.gumbel_softmax(tensor([1., 2., 3.]), tau=0.5)")
def gumbel_softmax(
    logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Any:
    """A random sample close to a one-hot choice with the chances softmax gives.

    ``hard``: exactly one-hot, with the gradient of the soft sample.
    """
    if eps != 1e-10:
        warn("`eps` parameter is deprecated and has no effect.")
    noise = -F.empty_like(logits).contiguous().exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    chosen = F.zeros_like(logits).contiguous().scatter_(dim, index, 1.0)
    return chosen - soft.detach() + soft
