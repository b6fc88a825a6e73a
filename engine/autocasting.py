"""Which operations run in which dtype under autocast on the CPU, and the casts that this takes.

It knows operations by their names only. Outside of autocast a guarded operation costs one look
at the modes more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.dtypes import float32, float64
from engine.modes import state
from engine.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.dtypes import DType

# Products run in autocast's dtype; what loses too much there runs in float32; what joins tensors
# runs in the widest dtype among them. All other operations take their operands as they are.
LOWER = frozenset(
    "addbmm addmm baddbmm bmm conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d "
    "conv_transpose3d linalg.vecdot matmul mm nn.functional.linear prelu "
    "nn.functional.scaled_dot_product_attention".split()
)
FULL = frozenset(
    "cdist cholesky cholesky_inverse cholesky_solve fft.fft fft.fft2 fft.fftn fft.hfft fft.ifft "
    "fft.ifft2 fft.ifftn fft.ihfft fft.irfft fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftn "
    "geqrf inverse linalg.cholesky linalg.cholesky_ex linalg.cond linalg.eig linalg.eigh "
    "linalg.eigvals linalg.eigvalsh linalg.householder_product linalg.inv linalg.inv_ex "
    "linalg.lstsq linalg.matrix_rank linalg.qr linalg.solve linalg.svd linalg.svdvals "
    "linalg.tensorinv linalg.tensorsolve lu_solve max_pool3d nanquantile "
    "nn.functional.adaptive_avg_pool3d nn.functional.adaptive_max_pool3d nn.functional.avg_pool3d "
    "nn.functional.binary_cross_entropy nn.functional.binary_cross_entropy_with_logits "
    "nn.functional.cosine_embedding_loss nn.functional.cross_entropy nn.functional.ctc_loss "
    "nn.functional.grid_sample nn.functional.hinge_embedding_loss nn.functional.huber_loss "
    "nn.functional.kl_div nn.functional.l1_loss nn.functional.margin_ranking_loss "
    "nn.functional.max_pool3d nn.functional.max_unpool2d nn.functional.max_unpool3d "
    "nn.functional.mse_loss nn.functional.multi_margin_loss nn.functional.multilabel_margin_loss "
    "nn.functional.nll_loss nn.functional.poisson_nll_loss nn.functional.smooth_l1_loss "
    "nn.functional.soft_margin_loss nn.functional.triplet_margin_loss orgqr ormqr pinverse polar "
    "prod qr quantile reflection_pad1d replication_pad1d stft svd trace triangular_solve "
    "view_as_complex".split()
)
WIDEST = frozenset("cat index_copy stack".split())

# Casts of leaves made since autocast was entered: id of the leaf -> (leaf, its cast), so that a
# weight used twice is cast once and its gradients are added up in the low precision.
_casts: dict[int, tuple[Tensor, Tensor]] = {}


def forget_casts() -> None:
    """Drop the casts kept; at the end of the outermost autocast."""
    _casts.clear()


def _is_eligible(value: Any) -> bool:
    return (
        value.__class__ is Tensor
        and value.dtype.is_floating_point
        and value.dtype is not float64
        and value.device.type == "cpu"
    )


def _cast(value: Any, dtype: DType) -> Any:
    """``value`` with the tensors in it cast."""
    if isinstance(value, (list, tuple)):
        return type(value)([_cast(part, dtype) for part in value])
    if not _is_eligible(value) or value.dtype is dtype:
        return value
    ag = value.ag
    is_weight = (
        dtype is not float32
        and value.dtype is float32
        and ag is not None
        and ag.requires_grad
        and ag.node is None
        and value.base is None
    )
    if not is_weight or not state.autocast_cache:
        return value.to(dtype)
    kept = _casts.get(id(value))
    if kept is None:
        kept = _casts[id(value)] = (value, value.to(dtype))
    return kept[1]


def _widest(values: Any, found: DType) -> DType:
    for value in values:
        if isinstance(value, (list, tuple)):
            found = _widest(value, found)
        elif _is_eligible(value) and value.dtype is float32:
            found = float32
    return found


def run_low(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call an operation in autocast's dtype; autocast is off inside."""
    return _run(call, state.autocast, args, kwargs)


def _run(
    call: Callable[..., Any], dtype: DType, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    args = _cast(args, dtype)
    kwargs = {name: _cast(value, dtype) for name, value in kwargs.items()}
    before = state.autocast
    state.autocast = None
    try:
        return call(*args, **kwargs)
    finally:
        state.autocast = before


def guarded(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """``call``, looking at autocast first if the operation of that name is on a list."""
    low, widest = name in LOWER, name in WIDEST
    if not (low or widest or name in FULL):
        return call

    def guard(*args: Any, **kwargs: Any) -> Any:
        dtype = state.autocast
        if dtype is None:
            return call(*args, **kwargs)
        if widest:
            dtype = _widest((*args, *kwargs.values()), dtype)
        return _run(call, dtype if low or widest else float32, args, kwargs)

    # What else an operation's kind left on its function for operators and other operations.
    guard.__dict__.update(call.__dict__)
    return guard
