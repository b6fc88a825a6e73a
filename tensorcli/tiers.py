"""How common an operation is: 1 what most programs use, 2 what many use, 3 the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

TIER_1 = (
    "T __bool__ __getitem__ __iter__ __len__ __repr__ __setitem__ abs add all allclose amax amin "
    "any arange argmax argmin argsort as_tensor autograd.grad backward bmm bool cat ceil chunk "
    "clamp clone contiguous copy_ cos cumprod cumsum data detach device diag dim div dot double "
    "dtype einsum empty eq equal exp expand eye fill flatten flip float floor from_numpy full "
    "gather ge grad grad_fn gt hstack index_select int is_contiguous is_leaf isclose isnan item "
    "le linalg.det linalg.eigh linalg.inv linalg.norm linalg.solve linalg.svd linspace log log2 "
    "log_softmax logical_and logical_not logical_or logsumexp long lt manual_seed masked_fill "
    "masked_select matmul max maximum mean median meshgrid min minimum mm mul ndim ne neg "
    "nn.functional.binary_cross_entropy_with_logits nn.functional.conv2d "
    "nn.functional.cosine_similarity nn.functional.cross_entropy nn.functional.dropout "
    "nn.functional.embedding nn.functional.gelu nn.functional.layer_norm nn.functional.linear "
    "nn.functional.log_softmax nn.functional.max_pool2d nn.functional.mse_loss "
    "nn.functional.nll_loss nn.functional.normalize nn.functional.one_hot nn.functional.pad "
    "nn.functional.relu nn.functional.scaled_dot_product_attention nn.functional.sigmoid "
    "nn.functional.softmax no_grad nonzero norm numel numpy ones ones_like outer permute pow rand "
    "randint randn randn_like randperm relu repeat repeat_interleave requires_grad requires_grad_ "
    "reshape retain_grad round scatter shape sigmoid sign sin size softmax sort split sqrt square "
    "squeeze stack std stride sub sum t tan tanh tensor tile to tolist topk trace transpose tril "
    "triu type unique unsqueeze var view vstack where zero zeros zeros_like "
)

TIER_2 = (
    "FloatTensor Generator LongTensor Size __contains__ __float__ __format__ __index__ __int__ "
    "acos addcmul addmm aminmax angle argwhere as_strided asin atan atan2 autograd.backward "
    "autograd.functional.hessian autograd.functional.jacobian baddbmm bernoulli bfloat16 bincount "
    "bitwise_and bitwise_not bitwise_or bitwise_xor broadcast_shapes broadcast_to bucketize byte "
    "cartesian_prod cdist char cholesky clamp_max clamp_min column_stack complex conj cosh "
    "count_nonzero cov cpu cross cummax cummin data_ptr deg2rad diag_embed diagonal diff dist "
    "element_size empty_like enable_grad erf erfc expand_as expm1 exponential_ fft.fft fft.fft2 "
    "fft.fftfreq fft.fftshift fft.ifft fft.irfft fft.rfft fill_diagonal_ finfo floor_divide fmod "
    "frac full_like func.grad func.jacfwd func.jacrev func.jvp func.vjp func.vmap "
    "get_default_dtype half hamming_window hann_window histc iinfo imag index_add index_fill "
    "index_put inference_mode initial_seed inner is_complex is_floating_point is_grad_enabled "
    "is_tensor isfinite isin isinf istft kthvalue lerp lgamma linalg.cholesky linalg.eig "
    "linalg.eigvals linalg.eigvalsh linalg.lstsq linalg.matrix_norm linalg.matrix_power "
    "linalg.matrix_rank linalg.pinv linalg.qr linalg.solve_triangular linalg.svdvals "
    "linalg.vector_norm load log10 log1p logaddexp logcumsumexp logdet logit logspace mH mT mode "
    "movedim multinomial mv nan_to_num nanmean nansum narrow nbytes new_empty new_full new_ones "
    "new_tensor new_zeros newaxis nn.functional.adaptive_avg_pool1d "
    "nn.functional.adaptive_avg_pool2d nn.functional.avg_pool1d nn.functional.avg_pool2d "
    "nn.functional.batch_norm nn.functional.binary_cross_entropy nn.functional.conv1d "
    "nn.functional.conv_transpose2d nn.functional.cosine_embedding_loss nn.functional.dropout2d "
    "nn.functional.elu nn.functional.fold nn.functional.glu nn.functional.grid_sample "
    "nn.functional.group_norm nn.functional.hardswish nn.functional.huber_loss "
    "nn.functional.instance_norm nn.functional.interpolate nn.functional.kl_div "
    "nn.functional.l1_loss nn.functional.leaky_relu nn.functional.logsigmoid "
    "nn.functional.max_pool1d nn.functional.mish nn.functional.pixel_shuffle "
    "nn.functional.rms_norm nn.functional.selu nn.functional.silu nn.functional.smooth_l1_loss "
    "nn.functional.softplus nn.functional.tanh nn.functional.triplet_margin_loss "
    "nn.functional.unfold nn.init.constant_ nn.init.kaiming_uniform_ nn.init.normal_ "
    "nn.init.uniform_ nn.init.xavier_uniform_ nn.init.zeros_ normal normal_ polar prod "
    "promote_types quantile rad2deg rand_like ravel real reciprocal register_hook remainder "
    "reshape_as result_type roll rot90 rsqrt save scatter_add scatter_reduce searchsorted select "
    "set_default_dtype set_grad_enabled set_printoptions short sinc sinh special.entr stft "
    "storage_offset svd take take_along_dim tensordot tril_indices triu_indices trunc unbind "
    "unflatten unfold uniform_ var_mean vdot view_as view_as_complex view_as_real vmap "
)

_TIERS: dict[str, int] = {}


def tier_of(spellings: Iterable[str]) -> int:
    """The tier of the most common of an operation's spellings ("torch.exp", "Tensor.exp_")."""
    if not _TIERS:
        _TIERS.update(dict.fromkeys(TIER_2.split(), 2))
        _TIERS.update(dict.fromkeys(TIER_1.split(), 1))
    return min((_TIERS.get(_bare(spelling), 3) for spelling in spellings), default=3)


def _bare(spelling: str) -> str:
    name = spelling.removeprefix("torch.").removeprefix("Tensor.")
    return name if name in _TIERS else name.rstrip("_")
