"""Dropout in its forms, with the random numbers that PyTorch draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import TensorRuntimeError, TensorValueError
from engine.kinds import composite
from engine.kinds.functional import functional
from engine.modes import warn
from engine.registry import F, ops

if TYPE_CHECKING:
    from engine.tensor import Tensor

# The negative limit of selu, to which alpha dropout sets what it drops.
_ALPHA = 1.7580993408473766


def _check(p: float) -> None:
    if p < 0 or p > 1:
        raise TensorRuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")


def _kept(input: Tensor, p: float, feature: bool) -> Tensor:
    """1 where an element (or a whole feature) is kept, else 0."""
    if not feature:
        return F.empty_like(input).bernoulli_(1 - p)
    if input.layout.ndim < 2:
        raise TensorRuntimeError("Feature dropout requires at least 2 dimensions in the input")
    shape = (*input.layout.shape[:2], *[1] * (input.layout.ndim - 2))
    return input.new_empty(shape).bernoulli_(1 - p)


def _drop(input: Any, p: float, train: bool, feature: bool, alpha: bool, inplace: bool) -> Any:
    _check(p)
    if p == 0 or not train or input.layout.numel == 0:
        return input
    multiply = input.mul_ if inplace else input.mul
    if p == 1:
        return multiply(input.new_zeros(()))
    noise = _kept(input, p, feature)
    if not alpha:
        return multiply(noise.div_(1 - p))
    scale = 1.0 / ((_ALPHA * _ALPHA * p + 1) * (1 - p)) ** 0.5
    shift = noise.add(-1).mul_(_ALPHA * scale).add_(_ALPHA * scale * p)
    scaled = multiply(noise.mul_(scale))
    return scaled.add_(shift) if inplace else scaled.add(shift)


def _variant(name: str, feature: bool, alpha: bool, doc: str) -> None:
    """One kind of dropout, ``torch.`` function and in-place twin alike."""

    def body(input: Tensor, p: float, train: bool) -> Tensor:
        return _drop(input, p, train, feature, alpha, False)

    def changed(input: Tensor, p: float, train: bool) -> Tensor:
        return _drop(input, p, train, feature, alpha, True)

    body.__doc__ = doc
    changed.__doc__ = f"{doc} The input itself is changed."
    shape = "ones(1, 2, 3)" if feature else "ones(4)"
    for name_, fn in ((name, body), (f"{name}_", changed)):
        composite(name=name_, method=False, out=False, example=f"{name_}({shape}, 0.5, True)")(fn)


_variant("dropout", False, False, "Elements are set to 0 with chance ``p``, the rest scaled up.")
_variant("feature_dropout", True, False, "Whole channels are set to 0 with chance ``p``.")
_variant("alpha_dropout", False, True, "Dropout that keeps the mean and variance of selu.")
_variant("feature_alpha_dropout", True, True, "Alpha dropout of whole channels.")


def _functional(name: str, input: Any, p: Any, training: Any, inplace: Any) -> Any:
    if p < 0.0 or p > 1.0:
        raise TensorValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return ops[f"{name}_" if inplace else name].function(input, p, training)


@functional(name="dropout", example="nn.functional.dropout(ones(4), 0.5)")
def _dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Elements are set to 0 with chance ``p``, the rest scaled by 1 / (1 - p)."""
    return _functional("dropout", input, p, training, inplace)


@functional(name="alpha_dropout", example="nn.functional.alpha_dropout(ones(4), training=True)")
def _alpha_dropout(
    input: Any, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Any:
    """Dropout that keeps the mean and variance of what selu gives."""
    return _functional("alpha_dropout", input, p, training, inplace)


@functional(
    name="feature_alpha_dropout",
    example="nn.functional.feature_alpha_dropout(ones(1, 2, 3), training=True)",
)
def _feature_alpha_dropout(
    input: Any, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Any:
    """Alpha dropout of whole channels."""
    return _functional("feature_alpha_dropout", input, p, training, inplace)


@functional(example="nn.functional.dropout1d(ones(2, 3), 0.5)")
def dropout1d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Dropout of whole channels of (channels, length) or (batch, channels, length)."""
    if p < 0.0 or p > 1.0:
        raise TensorValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    ndim = input.dim()
    if ndim not in (2, 3):
        raise TensorRuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {ndim}D input. Note that "
            "dropout1d exists to provide channel-wise dropout on inputs with 1 spatial "
            "dimension, a channel dimension, and an optional batch dimension (i.e. 2D or 3D "
            "inputs)."
        )
    return _of_channels(input, p, training, inplace, ndim == 2)


@functional(example="nn.functional.dropout2d(ones(1, 2, 3, 3), 0.5)")
def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Dropout of whole channels of (batch, channels, height, width)."""
    if p < 0.0 or p > 1.0:
        raise TensorValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    ndim = input.dim()
    if ndim not in (3, 4):
        warn(
            f"dropout2d: Received a {ndim}-D input to dropout2d, which is deprecated and will "
            "result in an error in a future release. To retain the behavior and silence this "
            "warning, please use dropout instead. Note that dropout2d exists to provide "
            "channel-wise dropout on inputs with 2 spatial dimensions, a channel dimension, and "
            "an optional batch dimension (i.e. 3D or 4D inputs)."
        )
    if ndim == 3:
        warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D "
            "dropout behavior is desired - input is interpreted as shape (N, C, L), where C is "
            "the channel dim. This behavior will change in a future release to interpret the "
            "input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D "
            "channel-wise dropout behavior, please switch to using dropout1d instead."
        )
    return _of_channels(input, p, training, inplace, False)


@functional(example="nn.functional.dropout3d(ones(1, 2, 3, 3, 3), 0.5)")
def dropout3d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Dropout of whole channels of (batch, channels, depth, height, width)."""
    if p < 0.0 or p > 1.0:
        raise TensorValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    ndim = input.dim()
    if ndim not in (4, 5):
        warn(
            f"dropout3d: Received a {ndim}-D input to dropout3d, which is deprecated and will "
            "result in an error in a future release. To retain the behavior and silence this "
            "warning, please use dropout instead. Note that dropout3d exists to provide "
            "channel-wise dropout on inputs with 3 spatial dimensions, a channel dimension, and "
            "an optional batch dimension (i.e. 4D or 5D inputs)."
        )
    return _of_channels(input, p, training, inplace, ndim == 4)


def _of_channels(input: Any, p: float, training: bool, inplace: bool, alone: bool) -> Any:
    """Dropout of channels; an input ``alone`` has no batch dimension."""
    name = "feature_dropout_" if inplace else "feature_dropout"
    if alone:
        input = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    y = ops[name].function(input, p, training)
    if alone:
        return y.squeeze_(0) if inplace else y.squeeze(0)
    return y
