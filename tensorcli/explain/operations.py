"""How many floating-point operations a call takes, from its name and shapes; an estimate."""

from __future__ import annotations

from math import prod

from engine.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

# Nothing is computed: names of attributes, views, creation, conversion, and what moves data.
FREE = frozenset(
    "view reshape view_as reshape_as flatten unflatten ravel squeeze unsqueeze transpose permute "
    "t T mT H mH movedim moveaxis swapaxes swapdims expand expand_as broadcast_to narrow select "
    "diagonal as_strided unfold split chunk unbind tensor_split hsplit vsplit dsplit detach data "
    "contiguous clone to float double half bfloat16 int long bool type type_as requires_grad "
    "retain_grad grad real imag zeros ones empty full eye arange linspace tensor as_tensor "
    "zeros_like ones_like empty_like full_like new_zeros new_ones new_full new_empty new_tensor "
    "from_numpy cat concat stack hstack vstack dstack repeat tile flip roll rot90 index_select "
    "gather take masked_select where masked_fill tril triu scatter index_put copy fill zero "
    "meshgrid Parameter argmax argmin sort argsort topk nonzero one_hot embedding "
    "rand randn randint randperm rand_like randn_like normal uniform multinomial shape".split()
)
PRODUCTS = frozenset("matmul mm bmm mv dot vdot inner linear addmm addmv addbmm baddbmm".split())
REDUCTIONS = frozenset(
    "sum mean prod amax amin max min norm var std cumsum cumprod nansum nanmean aminmax "
    "count_nonzero median logsumexp".split()
)
# Several operations for each element of the input.
HEAVIER = {
    "softmax": 5, "log_softmax": 5, "logsumexp": 4, "var": 3, "std": 3, "layer_norm": 8,
    "batch_norm": 8, "rms_norm": 5, "group_norm": 8, "gelu": 8, "silu": 5, "sigmoid": 4,
    "tanh": 5, "cross_entropy": 6, "nll_loss": 1, "mse_loss": 3, "binary_cross_entropy": 5,
    "norm": 2, "dropout": 2, "normalize": 4,
}  # fmt: skip


def count(name: str, operands: Sequence[Any], result: Any) -> int:
    """The operations of one call by its plain name (no underscore at its end)."""
    tensors = [value for value in operands if isinstance(value, Tensor)]
    made = result if isinstance(result, Tensor) else None
    if made is None or not tensors or name in FREE:
        return 0
    shapes = [t.layout.shape for t in tensors]
    out = made.layout.numel
    if name in PRODUCTS:
        inner = shapes[1] if name.startswith(("addm", "addb", "badd")) and shapes[1:] else shapes[0]
        return 2 * out * (inner[-1] if inner else 1)
    if name.startswith("conv") and len(shapes) > 1:
        weight = shapes[1]
        outer = shapes[0][1] if name.startswith("conv_transpose") else weight[0]
        spread = prod(shapes[0]) if name.startswith("conv_transpose") else out
        return 2 * spread * (prod(weight) // max(outer, 1))
    if name == "scaled_dot_product_attention" and len(shapes) > 2:
        length = shapes[1][-2] if len(shapes[1]) > 1 else 1
        return 4 * prod(shapes[0]) * length + 5 * prod(shapes[0][:-1]) * length
    if not made.dtype.is_floating_point and not made.dtype.is_complex:
        return 0
    size = max((prod(shape) for shape in shapes), default=0)
    if name in HEAVIER:
        return HEAVIER[name] * size
    return size if name in REDUCTIONS else out


def count_backward(node: Any, g: Any, gradients: Sequence[Any]) -> int:
    """The operations of one step of a backward pass."""
    sent = [t for t in gradients if isinstance(t, Tensor)]
    bare = node.gradient.name.rpartition("::")[2].rstrip("0123456789").removesuffix("Backward")
    if bare in ("Mm", "Bmm", "Addmm", "Linear", "Mv", "Dot", "Baddbmm") and isinstance(g, Tensor):
        inner = _inner(node)
        products = min(len(sent), 2)
        return 2 * g.layout.numel * inner * products
    if bare.lower() in FREE or bare in ("UnsafeView", "Expand", "CopySlices", "Slice", "Permute"):
        return 0
    return sum(t.layout.numel for t in sent)


def _inner(node: Any) -> int:
    """The dimension that a product summed over, from what its node kept."""
    for role, value in zip(node.gradient.saved_names, node.saved, strict=False):
        if isinstance(value, Tensor) and value.layout.ndim:
            shape = value.layout.shape
            first = role in ("input", "self", "mat1")
            return shape[-1] if first or len(shape) < 2 else shape[-2]
    return 1
