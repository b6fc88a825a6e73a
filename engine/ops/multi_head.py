"""Multi-head attention as one function of its projections."""

from __future__ import annotations

from typing import Any

from engine.errors import EngineError, TensorRuntimeError
from engine.kinds.functional import functional
from engine.registry import F, ops


class AttentionShapeError(EngineError, AssertionError):
    """PyTorch raises AssertionError here."""

    code = "shape"


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise AttentionShapeError(message)


def _check_batches(query: Any, key: Any, value: Any) -> bool:
    """Whether there is a batch dimension."""
    ndim = query.dim()
    if ndim not in (2, 3):
        raise AttentionShapeError(
            f"query should be unbatched 2D or batched 3D tensor but received {ndim}-D query tensor"
        )
    kind = "batched (3-D)" if ndim == 3 else "unbatched (2-D)"
    _require(
        key.dim() == ndim and value.dim() == ndim,
        f"For {kind} `query`, expected `key` and `value` to be {ndim}-D but found {key.dim()}-D "
        f"and {value.dim()}-D tensors respectively",
    )
    return bool(ndim == 3)


def _as_bias(mask: Any, dtype: Any) -> Any:
    """A mask as what is added to the scores."""
    if mask is None or not mask.dtype.is_bool:
        return mask
    return F.zeros_like(mask, dtype=dtype).masked_fill_(mask, float("-inf"))


def _projected(query: Any, key: Any, value: Any, weight: Any, bias: Any) -> list[Any]:
    """Query, key and value through one projection in three parts."""
    width = query.size(-1)
    weights = weight.split([width] * 3)
    biases = [None] * 3 if bias is None else bias.split([width] * 3)
    return [F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)]


def _by_heads(x: Any, batch: int, heads: int, width: int) -> Any:
    return x.view(x.size(0), batch * heads, width).transpose(0, 1)


@functional(
    example=(
        "nn.functional.multi_head_attention_forward(ones(2, 1, 2), ones(2, 1, 2), ones(2, 1, 2), "
        "2, 1, ones(6, 2), None, None, None, False, 0., eye(2), None)"
    )
)
def multi_head_attention_forward(
    query: Any,
    key: Any,
    value: Any,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Any,
    in_proj_bias: Any,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Any,
    out_proj_bias: Any,
    training: bool = True,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    static_k: Any = None,
    static_v: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> Any:
    """Attention by several heads, (length, batch, width) in and out; the output and the weights.

    ``key_padding_mask`` and a boolean ``attn_mask`` are true where nothing may be seen.
    """
    batched = _check_batches(query, key, value)
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, width = query.size()
    if is_causal and attn_mask is None:
        raise TensorRuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None
    else:
        is_causal = False
    padding = _as_bias(key_padding_mask, query.dtype)
    bias = _as_bias(attn_mask, query.dtype)
    _require(
        width == embed_dim_to_check,
        f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}",
    )
    each = width // num_heads
    _require(each * num_heads == width, f"embed_dim {width} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        biases = [None] * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = (
            F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)
        )
    else:
        q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias)
    if bias is not None and bias.dim() == 2:
        bias = bias.unsqueeze(0)
    if bias_k is not None and bias_v is not None:
        k = F.cat([k, bias_k.repeat(1, batch, 1)])
        v = F.cat([v, bias_v.repeat(1, batch, 1)])
        bias, padding = _longer(bias), _longer(padding)
    q = _by_heads(q, batch, num_heads, each)
    k = _by_heads(k, batch, num_heads, each) if static_k is None else static_k
    v = _by_heads(v, batch, num_heads, each) if static_v is None else static_v
    if add_zero_attn:
        zeros = (batch * num_heads, 1, each)
        k = F.cat([k, k.new_zeros(zeros)], 1)
        v = F.cat([v, v.new_zeros(zeros)], 1)
        bias, padding = _longer(bias), _longer(padding)
    source = k.size(1)
    if padding is not None:
        spread = padding.view(batch, 1, 1, source).expand(-1, num_heads, -1, -1)
        spread = spread.reshape(batch * num_heads, 1, source)
        bias = spread if bias is None else bias + spread
    chance = dropout_p if training else 0.0
    if need_weights:
        y, weights_ = _weighted(q, k, v, bias, chance)
    else:
        y, weights_ = _unweighted(q, k, v, bias, chance, batch, num_heads, is_causal), None
    if y.dim() == 4:
        y = y.permute(2, 0, 1, 3).contiguous().view(batch * length, width)
    else:
        y = y.transpose(0, 1).contiguous().view(length * batch, width)
    y = F.linear(y, out_proj_weight, out_proj_bias).view(length, batch, -1)
    if weights_ is not None:
        weights_ = weights_.view(batch, num_heads, length, source)
        if average_attn_weights:
            weights_ = weights_.mean(1)
    if batched:
        return y, weights_
    return y.squeeze(1), None if weights_ is None else weights_.squeeze(0)


def _longer(mask: Any) -> Any:
    """Room for one more key that everything may see."""
    return None if mask is None else F.constant_pad_nd(mask, (0, 1), 0)


def _weighted(q: Any, k: Any, v: Any, bias: Any, chance: float) -> tuple[Any, Any]:
    scaled = q * (float(q.size(2)) ** -0.5)
    turned = k.transpose(-2, -1)
    scores = scaled.bmm(turned) if bias is None else F.baddbmm(bias, scaled, turned)
    weights = scores.softmax(-1)
    if chance > 0.0:
        weights = ops["nn.functional.dropout"].function(weights, chance)
    return weights.bmm(v), weights


def _unweighted(
    q: Any, k: Any, v: Any, bias: Any, chance: float, batch: int, heads: int, causal: bool
) -> Any:
    if bias is not None:
        if bias.size(0) == 1 and bias.dim() == 3:
            bias = bias.unsqueeze(0)
        else:
            bias = bias.view(batch, heads, -1, k.size(1))
    q, k, v = (x.view(batch, heads, x.size(1), x.size(2)) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, bias, chance, causal)
