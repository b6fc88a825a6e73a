"""What the operands of a failed operation have to do with it: shapes, dtypes, and tried fixes."""

from __future__ import annotations

from engine import errors as faults
from engine.tensor import Tensor
from tensorcli.diagnostics import Diagnostic, Label

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tensorcli.language.errors import Operand, Where


class Fix:
    """An expression that was tried in place of the one that failed, and the shape it gives."""

    __slots__ = ("expr", "shape")

    def __init__(self, expr: str, shape: tuple[int, ...] | None) -> None:
        self.expr = expr
        self.shape = shape

    def __repr__(self) -> str:
        return f"Fix({self.expr!r}, {self.shape!r})"


def with_reasons(diagnostic: Diagnostic, exc: Exception, where: Where) -> Diagnostic:
    """The diagnostic with a label per tensor operand, and the rule that was broken."""
    if not isinstance(exc, faults.EngineError):
        return diagnostic
    operands = [operand for operand in where.operands if isinstance(operand.value, Tensor)]
    labels = [Label(operand.span, _described(operand.value)) for operand in operands]
    diagnostic = diagnostic.with_more(labels=labels)
    for kind, reason in REASONS.items():
        if isinstance(exc, kind):
            return reason(diagnostic, exc, operands)
    return diagnostic


def _described(value: Any) -> str:
    return f"shape {list(value.layout.shape)}, {value.dtype.name}"


def _broadcast(diagnostic: Diagnostic, exc: Any, operands: list[Operand]) -> Diagnostic:
    a, b = exc.shapes
    return diagnostic.with_more(
        notes=["sizes are matched from the right and must be equal or 1", *aligned(a, b, exc.dim)]
    )


def aligned(a: tuple[int, ...], b: tuple[int, ...], dim: int) -> list[str]:
    """Both shapes written under each other from the right, the failing column named."""
    width = max(len(a), len(b))
    return [
        f"dimension {dim} of the result: {_size(a, dim - width + len(a))} against "
        f"{_size(b, dim - width + len(b))}"
    ]


def _size(shape: tuple[int, ...], dim: int) -> str:
    return "nothing" if dim < 0 else str(shape[dim])


def _matmul(diagnostic: Diagnostic, exc: Any, operands: list[Operand]) -> Diagnostic:
    a, b = exc.shapes
    if not a or not b:
        return diagnostic
    rows = b[-2] if len(b) > 1 else b[-1]
    return diagnostic.with_more(
        notes=[f"the last size of the left ({a[-1]}) must equal the rows of the right ({rows})"]
    )


def _view(diagnostic: Diagnostic, exc: Any, operands: list[Operand]) -> Diagnostic:
    from tensorcli.explain.layout import first_break

    dim = first_break(exc.old_shape, exc.old_strides)
    note = f"the strides {exc.old_strides} do not let these dimensions merge without a copy"
    if dim is not None:
        note += f": dim {dim} breaks row-major order"
    return diagnostic.with_more(notes=[note])


REASONS: dict[type[Exception], Callable[[Diagnostic, Any, list[Operand]], Diagnostic]] = {
    faults.BroadcastError: _broadcast,
    faults.MatmulError: _matmul,
    faults.ViewError: _view,
}
