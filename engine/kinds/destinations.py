"""What PyTorch says of an ``out=`` whose dtype is not just the result's.

Most operations convert into a destination whose dtype takes the result. These do not; each
sentence is filled with the dtypes ``y`` and ``out``. Operations stand under the names that
complaints use; a number behind a name is that of one of several results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.dtypes import can_cast
from engine.errors import DtypeError, TensorTypeError

if TYPE_CHECKING:
    from engine.dtypes import DType

_SENTENCES = {
    "Expected out tensor to have dtype {y.c_type}, but got {out.c_type} instead": (
        "aminmax avg_pool2d avg_pool3d cross frobenius_norm index_add index_copy index_reduce "
        "inverse isin linalg_cholesky linalg_cholesky_ex linalg_cross linalg_det linalg_eigh "
        "linalg_eigvalsh linalg_inv linalg_inv_ex linalg_ldl_factor linalg_ldl_factor_ex "
        "linalg_ldl_solve linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_lu_solve "
        "linalg_matrix_power linalg_qr linalg_slogdet linalg_solve linalg_solve_ex linalg_svd "
        "linalg_svdvals linalg_vector_norm linear log_softmax lu_solve lu_unpack matrix_power "
        "max min msort norm qr renorm slice_scatter slogdet softmax sort svd take_along_dim "
        "topk triangular_solve tril triu"
    ),
    "Found dtype {out.title} but expected {y.title}": (
        "abs bitwise_not ceil clamp clamp_max clamp_min conj_physical floor frac gelu hardshrink "
        "neg round sgn sign softplus softshrink trunc"
    ),
    "fft expects a complex output tensor, but got {out.title}": "fft_fft",
    "ifft expects a complex output tensor, but got {out.title}": "fft_ifft",
    "rfft expects a complex output tensor, but got {out.title}": "fft_rfft",
    "ihfft expects a complex output tensor, but got {out.title}": "fft_ihfft",
    "fftn expects a complex output tensor, but got {out.title}": (
        "fft_fft2 fft_fftn fft_ifft2 fft_ifftn"
    ),
    "rfftn expects a complex output tensor, but got {out.title}": "fft_rfft2 fft_rfftn",
    "ihfftn expects a complex output tensor, but got {out.title}": "fft_ihfft2 fft_ihfftn",
    "expected scalar_type {y.title} but found {out.title}": "cummax cummin logcumsumexp",
    "expected scalar type {y.title} but found {out.title}": "linalg_solve_triangular",
    "Expected object of scalar type {y.title} but got scalar type {out.title} for argument 'out'": (
        "complex polar"
    ),
    "torch.histogram: input tensor and hist tensor should have the same dtype, but got input "
    "{y.c_type} and hist {out.c_type}": "histc",
    "tensordot: Expected the output tensor to have dtype {y.title}, but got an output tensor with "
    "dtype {out.title}": "inner tensordot",
    "linalg.matrix_norm expected out tensor dtype {y.title} but got: {out.title}": (
        "linalg_matrix_norm nuclear_norm"
    ),
    "linalg.norm expected out tensor dtype {y.title} but got: {out.title}": "linalg_norm",
    "quantile() out tensor must be same dtype as the input tensor": "nanquantile quantile",
    "the output given to float_power has dtype {out.title} but the operation's result requires "
    "dtype {y.title}": "float_power",
    "torch.frexp() expects mantissa to have dtype {y.c_type} but got {out.c_type}": "frexp",
    "Expected result to be of dtype uint64, but got {out.title}": "hash_tensor",
    "output values must be of same type as input": "kthvalue",
    "multi_dot(): expected out tensor to have dtype {y.c_type} but got {out.c_type}": (
        "linalg_multi_dot"
    ),
    "expected scalar type '{y.title}' but got '{out.title}' for values output": "mode",
    "expected scalar type '{y.title}' but got '{out.title}' for indices output": "mode.1",
    "output indices must be of scalar type {y.title}": "kthvalue.1",
    "torch.frexp() expects exponent to have {y.c_type} dtype but got {out.c_type}": "frexp.1",
    "multinomial expects {y.title} tensor out, got: {out.title}": "multinomial",
    "nan_to_num: dtype of out: {out.title} should be same as input: {y.title}": "nan_to_num",
    "isneginf does not support non-boolean outputs.": "isneginf",
    "isposinf does not support non-boolean outputs.": "isposinf",
    "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or "
    "Long(int64) depending on whether out_int32 flag is True, but we got output tensor's dtype "
    "{out.title} and out_int32 flag is {short}": "bucketize searchsorted",
    "signbit does not support non-boolean outputs.": "signbit",
    "torch.ormqr: Expected input and result to have the same dtype, but input has dtype{y.title} "
    "and result has dtype {out.title}": "ormqr",
}
_CASTABLE = (
    "{where}: Expected {what} to be safely castable from {y.title} dtype, but got {what} with "
    "dtype {out.title}"
)


def _castable(where: str, what: str = "result") -> str:
    return _CASTABLE.replace("{where}", where).replace("{what}", what)


# What they say of a destination that does not take the result; others have one sentence for all.
_UNFIT = {
    _castable("cholesky"): "cholesky",
    _castable("cholesky_inverse"): "cholesky_inverse",
    _castable("cholesky_solve"): "cholesky_solve",
    _castable("linalg.cond"): "linalg_cond",
    _castable("linalg.pinv"): "linalg_pinv",
    _castable("matrix_power"): "linalg_matrix_power matrix_power",
    _castable("tensorinv"): "linalg_tensorinv",
    _castable("tensorsolve"): "linalg_tensorsolve",
    _castable("torch.geqrf", "a"): "geqrf",
    _castable("torch.linalg.eig", "eigenvalues"): "linalg_eig",
    _castable("torch.linalg.eig", "eigenvectors"): "linalg_eig.1",
    _castable("torch.linalg.eigvals", "eigenvalues"): "linalg_eigvals",
    _castable("torch.linalg.householder_product"): "linalg_householder_product orgqr",
    _castable("torch.linalg.matrix_rank"): "linalg_matrix_rank",
    "hfft expects a floating point output tensor, but got {out.title}": "fft_hfft",
    "irfft expects a floating point output tensor, but got {out.title}": "fft_irfft",
    "irfftn expects a floating point output tensor, but got {out.title}": "fft_irfft2 fft_irfftn",
    "logsumexp(): Expected floating point type for result tensor, but got: {out.title}": (
        "logsumexp special_logsumexp"
    ),
    "torch.cat(): input types can't be cast to the desired output type {out.title}": (
        "cat column_stack dstack hstack stack vstack"
    ),
}
_UNFIT_BY_NAME = {name: sentence for sentence, names in _UNFIT.items() for name in names.split()}
_BY_NAME = {name: sentence for sentence, names in _SENTENCES.items() for name in names.split()}
# Where a destination of complex numbers will do, whatever their width.
_COMPLEX = "complex output tensor"

# Element-wise operations that take no ``out=`` in PyTorch.
# Where a destination may not even be an operand itself.
APART = frozenset(("kthvalue",))
WITHOUT = frozenset("celu isclose isfinite isinf isnan isreal relu selu".split())


def check_dtype(name: str, y: DType, out: DType, nr: int = 0) -> None:
    """Refuse a destination of another dtype where the operation converts none.

    ``nr`` tells which of several results it is for.
    """
    if out is y:
        return
    if not can_cast(y, out):
        unfit = _UNFIT_BY_NAME.get(f"{name}.{nr}") or _UNFIT_BY_NAME.get(name)
        if unfit is not None:
            kind = TensorTypeError if "input types" in unfit else DtypeError
            raise kind(unfit.format(y=y, out=out))
    sentence = _BY_NAME.get(f"{name}.{nr}") or _BY_NAME.get(name)
    if sentence is not None and not (_COMPLEX in sentence and out.is_complex):
        raise DtypeError(sentence.format(y=y, out=out, short=y.name == "int32"))
