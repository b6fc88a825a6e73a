"""What the operands of a failed operation have to do with it: shapes, dtypes, and tried fixes."""

from __future__ import annotations

from engine import errors as faults
from engine.tape import shown_node
from engine.tensor import Tensor
from tensorcli.diagnostics import Diagnostic, Label, line_span
from tensorcli.explain import fixes
from tensorcli.explain.layout import first_break, row_major

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tensorcli.explain.fixes import Fix
    from tensorcli.language.errors import Operand, Where

    Notes = Callable[[Any, list[Operand]], list[str]]
    Repairs = Callable[[Where, Any, list[Operand]], list[Fix]]


def with_reasons(
    diagnostic: Diagnostic, exc: Exception, where: Where, since: int = 0
) -> Diagnostic:
    """The diagnostic with a label per tensor operand, and the rule that was broken.

    Of graph nodes only those numbered above `since` were recorded by this very text.
    """
    if not isinstance(exc, faults.EngineError):
        return diagnostic
    operands = [operand for operand in where.operands if isinstance(operand.value, Tensor)]
    describe = next((d for kind, d in DESCRIPTIONS if isinstance(exc, kind)), _shape_and_dtype)
    labels = [Label(operand.span, describe(operand.value)) for operand in operands]
    labels += _recorded_labels(exc, where, since)
    diagnostic = diagnostic.with_more(labels=labels)
    for kind, (notes, repairs) in REASONS.items():
        if isinstance(exc, kind):
            return diagnostic.with_more(
                notes=notes(exc, operands), fixes=repairs(where, exc, operands)
            )
    return diagnostic


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


def _recorded_labels(exc: Any, where: Where, since: int) -> list[Label]:
    """Where the node was recorded whose saved value was changed or freed."""
    if not isinstance(exc, faults.SavedTensorError | faults.FreedGraphError):
        return []
    node: Any = exc.node
    line = getattr(node, "site", None)
    if not isinstance(line, int) or node.sequence <= since:
        return []
    what = "changed since" if isinstance(exc, faults.SavedTensorError) else "freed since"
    text = f"{node.type_name} kept a value here, {what}"
    return [Label(line_span(where.source.text, line), text)]


def _broadcast_notes(exc: faults.BroadcastError, operands: list[Operand]) -> list[str]:
    """The rule, and the two sizes that break it, counted as they stand in each operand."""
    a, b = exc.shapes
    width = max(len(a), len(b))
    left, right = (_size(shape, exc.dim - width + len(shape)) for shape in (a, b))
    return [
        "sizes are matched from the right and must be equal or 1: "
        f"in dimension {exc.dim} of the result {left} meets {right}"
    ]


def _size(shape: tuple[int, ...], dim: int) -> str:
    return "nothing" if dim < 0 else str(shape[dim])


def _matmul_notes(exc: faults.MatmulError, operands: list[Operand]) -> list[str]:
    a, b = exc.shapes
    if not a or not b:
        return []
    rows = b[-2] if len(b) > 1 else b[-1]
    return [f"the last size of the left ({a[-1]}) must equal the rows of the right ({rows})"]


def _view_notes(exc: faults.ViewError, operands: list[Operand]) -> list[str]:
    dim = first_break(exc.old_shape, exc.old_strides)
    note = f"with strides {exc.old_strides} the elements do not lie in the order of the dimensions"
    if dim is not None:
        wanted = row_major(exc.old_shape)[dim]
        note += f": dim {dim} has stride {exc.old_strides[dim]}, a view needs {wanted}"
    return [note]


def _saved_notes(exc: faults.SavedTensorError, operands: list[Operand]) -> list[str]:
    node: Any = exc.node
    if node is None:
        return []
    return [
        f"{node.type_name} needs the value it kept for its derivative: change a copy instead "
        "(x = x + 1, or x.clone().add_(1))"
    ]


def _no_fixes(where: Where, exc: Exception, operands: list[Operand]) -> list[Fix]:
    return []


def _dtype_notes(exc: Exception, operands: list[Operand]) -> list[str]:
    names = {operand.value.dtype.name for operand in operands}  # type: ignore[attr-defined]  # tensors only
    return [f"the operands are {' and '.join(sorted(names))}"] if len(names) > 1 else []


def _shape_fixes(where: Where, exc: Exception, operands: list[Operand]) -> list[Fix]:
    return fixes.of_shapes(where, operands)


def _dtype_fixes(where: Where, exc: Exception, operands: list[Operand]) -> list[Fix]:
    return fixes.of_dtypes(where, operands)


def _view_fixes(where: Where, exc: Exception, operands: list[Operand]) -> list[Fix]:
    return fixes.of_view(where, operands)


REASONS: dict[type[Exception], tuple[Notes, Repairs]] = {
    faults.BroadcastError: (_broadcast_notes, _shape_fixes),
    faults.MatmulError: (_matmul_notes, _shape_fixes),
    faults.ViewError: (_view_notes, _view_fixes),
    faults.DtypeError: (_dtype_notes, _dtype_fixes),
    faults.SavedTensorError: (_saved_notes, _no_fixes),
}
