"""Every operation's sample calls in PyTorch too, on the same layouts, dtypes and empty shapes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from engine.device import Device  # noqa: E402
from engine.dtypes import DType  # noqa: E402
from engine.formats import MemoryFormat, StorageLayout  # noqa: E402
from engine.registry import Op  # noqa: E402
from engine.tensor import Tensor  # noqa: E402
from tests import registry_samples as table  # noqa: E402
from tests.differential import agree  # noqa: E402
from tests.registry_samples import Raised, Sample  # noqa: E402


def theirs(value: Any) -> Any:
    """PyTorch's counterpart of an argument; a tensor with the same memory layout."""
    if isinstance(value, Tensor):
        return their_tensor(value)
    if isinstance(value, (DType, Device, MemoryFormat, StorageLayout)):
        return eval(repr(value), {"torch": torch, "device": torch.device})
    if value.__class__ in (tuple, list):
        return value.__class__(theirs(v) for v in value)
    return value


def their_tensor(t: Tensor) -> Any:
    dtype = getattr(torch, t.dtype.name)
    layout = t.layout
    if t.is_meta:
        cells = torch.empty(t.storage.nbytes // t.dtype.itemsize, dtype=dtype, device="meta")
        return cells.as_strided(layout.shape, layout.strides, t.offset)
    copy = torch.zeros(t.storage.nbytes // t.dtype.itemsize, dtype=dtype)
    shown = copy.as_strided(layout.shape, layout.strides, t.offset)
    array = np.array(t.array.astype("float32") if t.kind.opaque else t.array)
    if layout.overlaps:
        for d, stride in enumerate(layout.strides):
            if stride == 0:
                array = array.take([0], axis=d)
                shown = shown.narrow(d, 0, 1)
    lazily = (torch.conj,) if t.is_conj() else (torch._neg_view,) if t.is_neg() else ()
    source = torch.from_numpy(array)
    whole = copy.as_strided(layout.shape, layout.strides, t.offset)
    for seen in lazily:
        shown, whole = seen(shown), seen(whole)
    shown.copy_(source)
    return whole.requires_grad_(t.requires_grad)


def their_call(sample: Sample) -> Any:
    """What PyTorch gives for the call, an error as (type, sentence)."""
    found: Any = torch
    args = [theirs(a) for a in sample.args]
    kwargs = {k: theirs(v) for k, v in sample.kwargs.items()}
    if sample.spelling == "@":
        return args[0] @ args[1]
    if sample.spelling == "[]":
        return args[0][args[1]]
    for part in sample.spelling.split("."):
        found = getattr(found, part)
    torch.manual_seed(0)
    return found(*args, **kwargs)


def outcome(sample: Sample) -> Any:
    """PyTorch's result, or the name of its error's type."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return their_call(sample)
        except Exception as error:
            return type(error).__name__.removeprefix("_")


def differs(sample: Sample, ulp: float, atol: float) -> str | None:
    """What differs between PyTorch's answer and the engine's; of errors only the type counts."""
    wanted, got = outcome(sample), sample.run()
    if isinstance(got, Raised):
        return None if wanted == got.type else f"{wanted} and {got}"
    if isinstance(wanted, str):
        return f"{wanted} and {got}"
    return agree.compare(wanted, got, ulp, atol)


UNINITIALISED = (
    "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided",
)  # fmt: skip

# Known differences by reason; each operation must still show one: mend it and its name goes.
DIFFERENCES = {
    "strides of results of one element or none, which PyTorch takes from the input": """
        binary_cross_entropy_with_logits conj_physical conjugated_copy deg2rad instance_norm ldexp
        nan_to_num nn.functional.scaled_dot_product_attention rad2deg
    """,
    "there is no complex32 here": """
        complex polar view_as_complex
    """,
    "PyTorch has no kernel for a dtype that is computed here": """
        avg_pool1d binomial conv_transpose1d conv_transpose2d conv_transpose3d convolution ctc_loss
        hinge_embedding_loss linalg.vander nn.functional.avg_pool2d nn.functional.avg_pool3d
        nn.functional.ctc_loss nn.functional.hinge_embedding_loss nn.functional.interpolate
        nn.functional.local_response_norm nn.functional.lp_pool1d nn.functional.lp_pool2d
        nn.functional.lp_pool3d nn.functional.max_unpool1d nn.functional.max_unpool2d
        nn.functional.max_unpool3d nn.functional.multi_margin_loss
        nn.functional.multilabel_margin_loss pdist
    """,
    "the error for a shape or dtype that makes no sense is another": """
        affine_grid_generator batch_norm cholesky conv1d conv2d conv3d embedding_bag grid_sampler_2d
        grid_sampler_3d group_norm histogram histogramdd kl_div linalg.cross linalg.tensorinv
        linalg.tensorsolve native_batch_norm native_group_norm nn.functional.embedding_bag
        nn.functional.kl_div nn.functional.linear_cross_entropy
        nn.functional.multi_head_attention_forward nn.functional.rms_norm pixel_unshuffle rms_norm
    """,
    "what a failed factorisation leaves behind": """
        cholesky_inverse linalg.cholesky_ex linalg.inv_ex linalg.solve_ex
    """,
    "a sample that shows memory which nothing was written to": """
        as_strided
    """,
}
# Of singular matrices the last pivot is zero or a rounding error, as the machine's kernels have it.
SINGULAR = ("inverse", "linalg.inv", "linalg.lu_factor", "linalg.lu_factor_ex", "linalg.slogdet",
            "slogdet")  # fmt: skip
KNOWN = {name for names in DIFFERENCES.values() for name in names.split()}


@pytest.mark.parametrize("op", table.tested(), ids=lambda op: op.name)
def test_agrees(op: Op) -> None:
    """Values to 8 units in the last place, dtype, shape, strides; of errors the type."""
    found = []
    for sample in table.variants(op):
        if op.name in SINGULAR and sample.about.endswith("rowwise_expanded"):
            continue
        with np.errstate(all="ignore"):
            different = differs(sample, 8, 1e-6)
        if different and not (op.name in UNINITIALISED and different.startswith("values")):
            found.append((sample.about, different))
    if op.name in KNOWN:
        assert found, f"{op.name} agrees now: take it from the known differences"
    else:
        assert not found, found
