"""Why an operation failed: a label for each operand, the rule that was broken, and tried fixes.

A table finds the explanation by the exception's class, by its words, or by the operation.
"""

from __future__ import annotations

from engine import errors as faults
from engine.tape import shown_node
from engine.tensor import Tensor
from tensorcli.diagnostics import Diagnostic, Label
from tensorcli.explain import (
    casts,
    domains,
    elements,
    literals,
    misuse,
    products,
    refusals,
    remarks,
    shapes,
    words,
)
from tensorcli.explain.shapes import Reason
from tensorcli.explain.trial import Failure
from tensorcli.language.attributes import NearNames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tensorcli.explain.replay import Replay
    from tensorcli.language.errors import Where

    Explain = Callable[[Failure, Any], Reason]


def with_reasons(
    diagnostic: Diagnostic,
    exc: Exception,
    where: Where,
    since: int,
    names: Mapping[str, object],
    replay: Replay | None,
) -> Diagnostic:
    """The diagnostic with what its operands are, why they do not do, and what would.

    Of graph nodes only those numbered above `since` were recorded by this very text.
    """
    failure = Failure(where, names)
    diagnostic = diagnostic.with_more(labels=_labels(exc, failure))
    if isinstance(exc, faults.EngineError):
        reason, labels = refusals.explain(failure, exc, since, replay)
        diagnostic = diagnostic.with_more(labels=labels)
        if not reason.notes:
            reason = _reason(failure, exc)
    else:
        reason = _reason(failure, exc)
    told = len(reason.shapes) == 1 and reason.shapes[0].dim is None  # its label says as much
    shapes_ = [] if told else reason.shapes
    return diagnostic.with_more(notes=reason.notes, fixes=reason.fixes, shapes=shapes_)


def _reason(failure: Failure, exc: Exception) -> Reason:
    for test, explain in REASONS:
        if _applies(test, failure, exc):
            found = explain(failure, exc)
            if found.notes or found.fixes or found.shapes:
                return found
    return Reason()


def _applies(test: type | str | frozenset[str], failure: Failure, exc: Exception) -> bool:
    if isinstance(test, str):
        return test in str(exc)
    if isinstance(test, frozenset):
        return failure.operation.rstrip("_") in test
    return isinstance(exc, test)


def _near(failure: Failure, exc: Any) -> Reason:
    hints = getattr(exc, "tensorcli_hints", ())
    near = [name for hint in hints if isinstance(hint, NearNames) for name in hint.near()]
    return Reason([], words.near_name(failure, near))


def _ordinary_broadcast(failure: Failure, exc: Any) -> Reason:
    if failure.operation == "linear":
        return products.linear(failure)
    return shapes.broadcast(failure, exc)


JOINING = frozenset({"cat", "concat", "concatenate", "stack", "hstack", "vstack", "row_stack",
                     "dstack", "column_stack"})  # fmt: skip
INDEXING = frozenset({"getitem", "setitem"})
GATHERING = frozenset({"gather", "scatter", "scatter_add", "scatter_reduce", "index_add",
                       "index_copy", "index_fill", "index_select", "embedding", "take",
                       "take_along_dim", "embedding_bag"})  # fmt: skip
TARGETS = frozenset({"cross_entropy", "nll_loss"})

# The first row that has something to say explains: a class, words of the message, or operations.
REASONS: tuple[tuple[type | str | frozenset[str], Explain], ...] = (
    (NameError, _near),
    ("'NoneType' object has no attribute", words.no_gradient),
    (AttributeError, _near),
    (KeyError, misuse.unknown_key),
    *remarks.REMARKS,
    *misuse.MISUSES,
    *domains.DOMAINS,
    ("Boolean value of Tensor with", elements.truth),
    ("converted to Scalar", elements.one_number),
    ("only one element tensors", literals.one_each),
    ("only one element tensors", elements.one_number),
    ("stride in the given numpy array is negative", words.reversed_array),
    ("are out of bounds for storage of size", shapes.beyond),
    ("expected sequence of length", literals.ragged),
    ("not a sequence", literals.ragged),
    ("Could not infer dtype of NoneType", literals.no_number),
    ("too many dimensions 'str'", literals.no_number),
    (faults.DeviceError, casts.devices),
    (faults.NoCudaError, casts.no_device),
    (JOINING, shapes.joining),
    ("einsum()", products.contraction),
    (TARGETS, elements.target),
    ("must be the same as input size", elements.same_size),
    ("different to the input size", elements.same_size),
    ("Found dtype", casts.dtypes),
    ("with a bool tensor is not supported", casts.mask_minus),
    ("with two bool tensors is not supported", casts.mask_minus),
    ("on a bool tensor is not supported", casts.mask_minus),
    ("can't be cast to the desired output type", casts.inplace_dtype),
    ("could not infer output dtype", casts.one_dtype),
    ("only support floating point", casts.one_dtype),
    ("condition to be a boolean", casts.to_boolean),
    ("only supports boolean masks", casts.to_boolean),
    ("the same dtype", casts.dtypes),
    ("did not match", casts.dtypes),
    ("but got dtype", casts.dtypes),
    ("applicable to index tensor", casts.to_integer),
    ("scalar types: Long", casts.to_integer),
    ("expected bias to be 1-dimensional", products.bias),
    (faults.BroadcastError, _ordinary_broadcast),
    ("doesn't match the broadcast shape", shapes.grown),
    (frozenset({"linear"}), products.of_linear),
    ("The expanded size of the tensor", shapes.expansion),
    ("the number of sizes provided", shapes.expansion),
    (INDEXING, elements.index),
    (GATHERING, elements.gather),
    (frozenset({"scaled_dot_product_attention"}), domains.attention),
    (faults.MatmulError, products.product),
    ("Expected 1-D argument", products.of_vectors),
    (products.PRODUCTS, products.product),
    (faults.ViewError, shapes.view),
    (faults.ShapeError, shapes.count),
    (faults.DimError, elements.dim_range),
    ("to conv", products.convolution),
    ("Given groups=", products.convolution),
    ("Kernel size", products.convolution),
    (faults.DtypeNotImplementedError, casts.dtypes),
    (faults.DtypeError, casts.dtypes),
    ("must be tuple of ints", words.sizes),
    ("positional argument but", words.number_list),
    ("keyword argument", words.keyword),
    ("invalid combination of arguments", words.keyword),
)


# -- labels ----------------------------------------------------------------------------------


def _labels(exc: Exception, failure: Failure) -> list[Label]:
    """What each tensor of the operation is; dtype or strides where they are the matter."""
    if not isinstance(exc, faults.EngineError):
        return []
    describe = next((d for kind, d in DESCRIPTIONS if isinstance(exc, kind)), _shape_and_dtype)
    parts = [part for part in failure.parts if isinstance(part.value, Tensor)]
    return [Label(part.span, describe(part.value)) for part in parts]


def _shape_and_dtype(value: Any) -> str:
    return f"shape {list(value.layout.shape)}, {value.dtype.name}"


def _graph_state(value: Any) -> str:
    shape = f"shape {list(value.layout.shape)}"
    if not value.requires_grad:
        return f"{shape}, requires no grad"
    node = shown_node(value)
    return f"{shape}, leaf that requires grad" if node is None else f"{shape}, by {node.type_name}"


def _layout(value: Any) -> str:
    layout = value.layout
    return f"shape {list(layout.shape)}, strides {layout.strides}, {value.dtype.name}"


# What matters of an operand, where it is not its shape and dtype.
DESCRIPTIONS: tuple[tuple[type[Exception], Callable[[Any], str]], ...] = (
    (faults.OverlapError, _layout),
    (faults.ViewError, _layout),
    (faults.AutogradError, _graph_state),
    (faults.InplaceError, _graph_state),
)
