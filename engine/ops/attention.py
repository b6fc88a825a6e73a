"""Attention: softmax(query @ key.T) @ value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine.errors import DtypeError, TensorRuntimeError
from engine.kinds import composite, kernel, made, working
from engine.kinds.native import Native
from engine.kinds.underived import NODE, underived
from engine.registry import F, ops
from engine.tape import requires_grad

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.tensor import Tensor


def _check_operands(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> None:
    a, b, c = query.dtype, key.dtype, value.dtype
    if a is not b or a is not c:
        raise DtypeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{a.c_type} key.dtype: {b.c_type} and value.dtype: {c.c_type} instead."
        )
    sizes = [t.layout.ndim for t in (query, key, value)]
    if min(sizes) < 2:
        raise TensorRuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got "
            f"query.dim: {sizes[0]} key.dim: {sizes[1]} and value.dim: {sizes[2]} instead."
        )
    if mask is not None and not (
        mask.dtype.is_bool or mask.dtype is dtypes.float32 or mask.dtype is a
    ):
        raise DtypeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
            f"attn_mask.dtype: {mask.dtype.c_type} and  query.dtype: {a.c_type} instead."
        )


def _bias(mask: Tensor | None, causal: bool, query: Tensor, key: Tensor) -> Any:
    """What is added to the scores: -inf where nothing may be seen."""
    if mask is not None and mask.dtype.is_bool:
        mask = F.zeros_like(mask, dtype=query.dtype).masked_fill(~mask, float("-inf"))
    if not causal:
        return mask
    shape = (query.layout.shape[-2], key.layout.shape[-2])
    seen = F.ones(shape, dtype=dtypes.bool_, device=query.device).tril()
    ahead = F.zeros_like(seen, dtype=query.dtype).masked_fill(~seen, float("-inf"))
    return ahead if mask is None else mask + ahead


def _scale(query: Tensor, scale: float | None) -> float:
    width = query.layout.shape[-1]
    return scale if scale is not None else float(width) ** -0.5 if width else float("inf")


def _gradients(
    g: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    scale: float,
) -> tuple[Any, Any, Any]:
    scores = query.matmul(key.transpose(-2, -1)) * scale
    if bias is not None:
        scores = scores + bias
    p = ops["_safe_softmax"].function(scores, -1)
    to_p = g.matmul(value.transpose(-2, -1))
    to_scores = p * (to_p - (to_p * p).sum(-1, keepdim=True)) * scale
    found = (
        to_scores.matmul(key),
        to_scores.transpose(-2, -1).matmul(query),
        p.transpose(-2, -1).matmul(g),
    )
    # In memory the heads stand after the positions.
    q, k, v = (t.transpose(1, 2).contiguous().transpose(1, 2) for t in found)
    return q, k, v


@kernel(
    name="nn.flash_attention",
    node="ScaledDotProductFlashAttentionForCpuBackward0",
    vjp={
        "query,key,value": Native(
            NODE,
            _gradients,
            underived("_scaled_dot_product_flash_attention_for_cpu_backward"),
        )
    },
    function=False,
    method=False,
    out=False,
)
def _flash_attention(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, scale: float
) -> Made:
    """Attention as one node."""

    def run(xp: Any) -> Any:
        q, k, v = working(query), working(key), working(value)
        scores = (q @ k.swapaxes(-1, -2)) * q.dtype.type(scale)
        if bias is not None:
            scores = scores + working(bias)
        if not scores.size:
            return scores @ v
        top = scores.max(axis=-1, keepdims=True)
        top = xp.where(xp.isneginf(top), scores.dtype.type(0), top)
        e = xp.exp(scores - top)
        total = e.sum(axis=-1, keepdims=True)
        return (e / xp.where(total == 0, total.dtype.type(1), total)) @ v

    shape = (*query.layout.shape[:-1], value.layout.shape[-1])
    return made(query.dtype, shape, run)


def _takes_flash(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float
) -> bool:
    """Whether PyTorch's one-node kernel does this call."""
    q, k, v = query.layout.shape, key.layout.shape, value.layout.shape
    return (
        len(q) == len(k) == len(v) == 4
        and query.dtype.is_floating_point
        and dropout_p == 0.0
        and q[-1] == k[-1] == v[-1]
        and k[2] == v[2]
        and q[0] == k[0] == v[0]
        and q[1] == k[1] == v[1]
        and q[2] > 0
        and k[2] > 0
        and all(t.layout.strides[-1] == 1 or t.layout.shape[-1] == 1 for t in (query, key, value))
        and (mask is None or not requires_grad(mask))
        and (mask is None or mask.layout.ndim in (2, 4))
    )


@composite(
    name="nn.functional.scaled_dot_product_attention",
    method=False,
    out=False,
    example="nn.functional.scaled_dot_product_attention(ones(1, 2), eye(2), eye(2))",
    samples=(
        "nn.functional.scaled_dot_product_attention(ones(1, 1, 3, 2), ones(1, 1, 3, 2), "
        "arange(6.).reshape(1, 1, 3, 2), is_causal=True)",
    ),
)
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query @ key.T * scale + mask) @ value; ``scale`` is 1 / sqrt(width) by default.

    A row that may see nothing gives zeros. ``enable_gqa`` repeats heads of key and value.
    """
    _check_operands(query, key, value, attn_mask)
    if (
        is_causal
        and attn_mask is not None
        and not _takes_flash(query, key, value, attn_mask, dropout_p)
    ):
        raise TensorRuntimeError(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when "
            "is_causal=True"
        )
    bias = _bias(attn_mask, is_causal, query, key)
    factor = _scale(query, scale)
    if _takes_flash(query, key, value, attn_mask, dropout_p):
        return ops["nn.flash_attention"].function(query, key, value, bias, factor)
    if enable_gqa:
        heads = query.layout.shape[-3]
        key = key.repeat_interleave(heads // key.layout.shape[-3], -3)
        value = value.repeat_interleave(heads // value.layout.shape[-3], -3)
    root = abs(factor) ** 0.5
    scores = (query * (-root if factor < 0 else root)).matmul(key.transpose(-2, -1) * root)
    if bias is not None:
        scores = scores + bias
    weights = ops["_safe_softmax"].function(scores, -1)
    if dropout_p > 0.0:
        weights = F.dropout(weights, dropout_p, True)
    return weights.matmul(value)
