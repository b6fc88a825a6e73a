"""The differences from PyTorch that are known, with their reasons; nothing else may differ.

An entry that no longer differs fails the suite, so that it goes when the difference goes.
"""

from __future__ import annotations

_OVERLAP = "that elements of out= share memory is not looked for"
_UINT8 = "PyTorch interpolates bytes with whole numbers, we in float32 and round"
_SIGN = "PyTorch's own method descriptors refuse a number on the left, which no program can write"
_COMPLEX32 = "there is no complex32"
_TAYLOR = "PyTorch's polynomial overflows or cancels where ours, scaled more, does not"
_GAUGE = "the derivative goes through a nearly singular system; both are off by its condition"
_PLACES = "PyTorch rounds the places in the picture to this dtype, we do not"
_ORMQR = "a view in PyTorch's gradient, a copy of other strides in ours"

# "operator", "operator/dtype" (results and gradients) or "operator/refusal" (error samples).
KNOWN: dict[str, str] = {
    "__radd__/refusal": _SIGN,
    "__rand__/refusal": _SIGN,
    "__rmul__/refusal": _SIGN,
    "__ror__/refusal": _SIGN,
    "__rxor__/refusal": _SIGN,
    "as_strided_scatter/complex64": "PyTorch's gradient of the input is wrong: it is that of src",
    "as_strided_scatter/float32": "PyTorch's gradient of the input is wrong: it is that of src",
    "as_strided_scatter/float64": "PyTorch's gradient of the input is wrong: it is that of src",
    "cat/refusal": "PyTorch cannot resize memory that came from numpy; ours is none",
    "complex/float16": _COMPLEX32,
    "div.trunc_rounding/bfloat16": "PyTorch rounds the quotient to bfloat16 before it truncates",
    "gather/refusal": _OVERLAP,
    "grid_sampler_2d/bfloat16": _PLACES,
    "grid_sampler_2d/float16": _PLACES,
    "linalg.solve_triangular/complex64": "strides of a gradient with one row",
    "matrix_exp/bfloat16": _TAYLOR,
    "matrix_exp/float16": _TAYLOR,
    "matrix_exp/float32": _TAYLOR,
    "narrow/refusal": "a start that is a tensor is taken as its number",
    "narrow_copy/refusal": "PyTorch fails an internal check here; ours names the dimension",
    "nn.functional.ctc_loss/float32": "sums of logarithms in another order",
    "nn.functional.grid_sample/bfloat16": _PLACES,
    "nn.functional.grid_sample/float16": _PLACES,
    "nn.functional.interpolate.bicubic/uint8": _UINT8,
    "nn.functional.interpolate.bilinear/uint8": _UINT8,
    "nn.functional.upsample_bilinear/uint8": _UINT8,
    "ormqr/complex64": _ORMQR,
    "ormqr/float32": _ORMQR,
    "ormqr/float64": _ORMQR,
    "special.bessel_j0/float64": "PyTorch's approximation is off by 2e-7 here, SciPy's is not",
    "special.bessel_y1/float64": "PyTorch's approximation is off by 3e-7 here, SciPy's is not",
    "svd_lowrank/complex64": _GAUGE,
    "view_as_complex/float16": _COMPLEX32,
}

# Of these it depends on the processor's rounding whether they differ.
DEPENDING = {"pca_lowrank/complex64"}

# In float16 and bfloat16 PyTorch rounds between the steps of these, we only at their end; values
# may be a few roundings of the largest one apart.
ROUNDED_BETWEEN = {
    "addbmm", "addr", "nn.functional.adaptive_avg_pool3d",
    "nn.functional.binary_cross_entropy_with_logits", "nn.functional.conv_transpose1d",
    "nn.functional.conv_transpose2d", "nn.functional.conv_transpose3d",
    "nn.functional.instance_norm", "nn.functional.interpolate",
    "nn.functional.mse_loss", "nn.functional.scaled_dot_product_attention",
}  # fmt: skip


def reason(name: str, part: str) -> str | None:
    """Why that part of an operator differs, None if it must not."""
    return KNOWN.get(f"{name}/{part}") or (None if part == "refusal" else KNOWN.get(name))


# Operators whose refusals agree in some runs and differ in others, with the reason; with a dtype
# behind them those whose results do, from machine to machine.
UNSETTLED = {
    "pca_lowrank/complex64": _GAUGE,
    "multinomial": "an out= tensor of another dtype: PyTorch's check depends on earlier calls",
}
