"""Covariances and correlation coefficients of variables in rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine.errors import TensorRuntimeError
from engine.kinds.composite import composite
from engine.kinds.conjugate import conj
from engine.modes import warn
from engine.registry import F

if TYPE_CHECKING:
    from engine.tensor import Tensor


def _check_weights(name: str, weights: Tensor, category: int, count: int) -> None:
    kind = "integral" if category == dtypes.INT else "floating point"
    if weights.ndim > 1:
        raise TensorRuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with "
            f"{weights.ndim} dimensions"
        )
    if weights.dtype.category != category:
        raise TensorRuntimeError(
            f"cov(): expected {name} to have {kind} dtype but got {name} with "
            f"{weights.dtype.title} dtype"
        )
    if weights.layout.numel != count:
        raise TensorRuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the "
            f"input but got {weights.layout.numel} != {count}"
        )
    if weights.array is not None and weights.array.size and weights.array.min() < 0:
        raise TensorRuntimeError(f"cov(): {name} cannot be negative")


def _check_input(name: str, input: Tensor) -> None:
    if input.ndim > 2:
        raise TensorRuntimeError(
            f"{name}(): expected input to have two or fewer dimensions but got an input with "
            f"{input.ndim} dimensions"
        )


@composite(out=False, example="cov(tensor([[0., 1., 2.], [2., 1., 0.]]))")
def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Any:
    """The covariance matrix of the rows of ``input``, each a variable.

    ``fweights`` count how often an observation occurred, ``aweights`` how much it matters.
    """
    _check_input("cov", input)
    if input.dtype.is_bool:
        raise TensorRuntimeError("cov(): bool dtype is not supported for input")
    x: Any = input.reshape(1, -1) if input.ndim < 2 else input
    count = x.layout.shape[1]
    w: Any = None
    if fweights is not None:
        _check_weights("fweights", fweights, dtypes.INT, count)
        w = fweights
    if aweights is not None:
        _check_weights("aweights", aweights, dtypes.FLOAT, count)
        w = aweights if w is None else w * aweights
    total: Any = count if w is None else w.sum()
    if w is not None and total.item() == 0:
        raise TensorRuntimeError("cov(): weights sum to zero, can't be normalized")
    mean = (x if w is None else x * w).sum(1) / total
    if aweights is not None and correction != 0:
        factor: Any = total - correction * (w * aweights).sum() / total
    else:
        factor = total - correction
    left = factor if isinstance(factor, int) else factor.item()
    if left <= 0:
        warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the "
            "number of observations."
        )
        factor = 0
    away = x - mean.unsqueeze(1)
    product = away.mm(conj((away if w is None else away * w).t()))
    return F.true_divide(product, factor).squeeze()


@composite(out=False, example="corrcoef(tensor([[0., 1., 2.], [2., 1., 1.]]))")
def corrcoef(input: Tensor) -> Any:
    """Pearson's correlation coefficients of the rows of ``input``, each a variable."""
    _check_input("corrcoef", input)
    c: Any = F.cov(input)
    if c.ndim == 0:
        return c / c
    d = c.diag()
    deviation = F.sqrt(d.real if d.dtype.is_complex else d)
    c = c / deviation.reshape(-1, 1)
    c = c / deviation.reshape(1, -1)
    if c.dtype.is_complex:
        return F.complex(c.real.clamp(-1, 1), c.imag.clamp(-1, 1))
    return c.clamp(-1, 1)
