"""The kinds of operations: decorators that turn one definition into an op and its spellings."""

from __future__ import annotations

from engine.kinds.composite import composite
from engine.kinds.contraction import contraction
from engine.kinds.kernel import Made, altered, kernel, made, working
from engine.kinds.pointwise import comparison, pointwise, smooth
from engine.kinds.pointwise_plan import BOOL_OUT, COMPARED, DEFAULT, INT_TO_FLOAT, STEPWISE
from engine.kinds.reduction import reduction
from engine.kinds.view import multi_view, view

__all__ = [
    "BOOL_OUT",
    "COMPARED",
    "DEFAULT",
    "INT_TO_FLOAT",
    "STEPWISE",
    "Made",
    "altered",
    "comparison",
    "composite",
    "contraction",
    "kernel",
    "made",
    "multi_view",
    "pointwise",
    "reduction",
    "smooth",
    "view",
    "working",
]
