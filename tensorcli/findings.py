"""Results of the explanations that follow values through a program: graphs, passes, provenance.

Data only, as in results.py; apart from it because they are made only when asked for, so that
dataclasses cost nobody else their time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tensorcli.results import Finding

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """A value that a node keeps for its derivative; `name` is the variable that holds it."""

    role: str
    shape: Shape | None
    dtype: str | None
    bytes: int
    name: str | None


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A recorded operation or a leaf, `depth` steps below the result.

    `number` is its own, `inputs` those of what it was computed from; `repeated`: what is below
    was shown further up; `line` where it was recorded, `name` the variable that holds its value.
    """

    depth: int
    number: int
    operation: str
    shape: Shape | None
    dtype: str | None
    name: str | None
    line: int | None
    saved: tuple[Kept, ...]
    freed: bool
    repeated: bool
    inputs: tuple[int, ...]


@dataclass(slots=True)
class GraphResult(Finding):
    """The recorded graph of a tensor, from the result down; `omitted` rows were too many."""

    kind: ClassVar[str] = "graph"
    line: int | None
    rows: tuple[GraphNode, ...]
    omitted: bool
    saved_bytes: int
    shown: bool = True


@dataclass(slots=True)
class GraphDocument(Finding):
    """The recorded graph, to be written as a file of that format: dot, mermaid, svg or html."""

    kind: ClassVar[str] = "graph_document"
    line: int | None
    format: str
    rows: tuple[GraphNode, ...]
    omitted: bool
    shown: bool = True


@dataclass(frozen=True, slots=True)
class BackwardInput:
    """What a step sent to one of its inputs; `summed` are the dimensions that it was summed over
    because that input had been broadcast, `value` the gradient in a few words."""

    to: str
    shape: Shape | None
    summed: tuple[int, ...]
    from_shape: Shape | None
    cast: str | None
    value: str | None


@dataclass(frozen=True, slots=True)
class BackwardStep:
    """One operation of a backward pass: its rule, the gradient that came in, what went out."""

    operation: str
    line: int | None
    code: str | None
    rule: str | None
    incoming: Shape | None
    incoming_value: str | None
    arrivals: int
    outgoing: tuple[BackwardInput, ...]


@dataclass(slots=True)
class BackwardResult(Finding):
    """A backward pass, step by step, and what it leaves at the leaves."""

    kind: ClassVar[str] = "backward"
    line: int | None
    root: str
    steps: tuple[BackwardStep, ...]
    omitted: int
    leaves: tuple[BackwardInput, ...]
    rerun: bool
    shown: bool = True


@dataclass(slots=True)
class AbsentGradient(Finding):
    """A .grad that is None, and why."""

    kind: ClassVar[str] = "absent_gradient"
    line: int | None
    of: str
    reason: str
    shown: bool = True


@dataclass(frozen=True, slots=True)
class CheckedGradient:
    """A leaf's gradient beside the slope that differences give, at the worst element."""

    name: str
    shape: Shape
    index: tuple[int, ...] | None
    gradient: float | None
    difference: float | None
    error: float | None
    tolerance: float | None
    compared: int
    agrees: bool
    note: str | None


@dataclass(slots=True)
class GradientCheckResult(Finding):
    """Gradients beside finite differences; `summed`: of the sum of a value with many elements."""

    kind: ClassVar[str] = "gradient_check"
    line: int | None
    of: str
    value: float
    summed: bool
    step: float
    rows: tuple[CheckedGradient, ...]
    shown: bool = True


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of the operation that is explained, and the element of it that matters."""

    text: str
    index: tuple[int, ...] | None
    value: str
    line: int | None


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the first NaN or infinity came from: the expression, its element, and why.

    `fix` is the statement in other words, with which the program was run without it.
    """

    what: str
    phase: str
    operation: str
    text: str
    line: int | None
    column: int | None
    index: tuple[int, ...] | None
    count: int
    operands: tuple[Operand, ...]
    reason: str
    cure: str | None
    fix: str | None = None


@dataclass(slots=True)
class ProvenanceResult(Finding):
    """Where the NaN and Inf of a value were born; no origins: there is none in it.

    `path` are the expressions between the first origin and the value, in the order of evaluation.
    """

    kind: ClassVar[str] = "provenance"
    line: int | None
    of: str
    nan: int
    inf: int
    count: int
    origins: tuple[Origin, ...]
    path: tuple[Operand, ...]
    note: str | None
    asked: bool = True
    shown: bool = True


@dataclass(frozen=True, slots=True)
class CheckedLine:
    """What one line of a program made: a tensor's shape, or words for anything else."""

    line: int
    text: str
    name: str
    shape: Shape | None
    dtype: str | None
    stride: Shape | None
    contiguous: bool | None
    note: str | None
    bytes: int
    operations: int
    memory: int
    times: int


@dataclass(slots=True)
class CheckResult(Finding):
    """A program run without data: its lines, the peak of its memory, its operations."""

    kind: ClassVar[str] = "check"
    line: int | None
    rows: tuple[CheckedLine, ...]
    peak: int
    peak_line: int | None
    operations: int
    real: bool
    note: str | None
    shown: bool = True


@dataclass(slots=True)
class ShapeResult(Finding):
    """What an expression would make: its shape, dtype and strides, without computing it."""

    kind: ClassVar[str] = "shape"
    line: int | None
    text: str
    shape: Shape
    dtype: str
    stride: Shape
    bytes: int
    operations: int
    shown: bool = True


@dataclass(frozen=True, slots=True)
class Fit:
    """Shapes for the holes of an expression, in their order, and the shape it then has.

    A size may be a letter: any size, the same wherever the letter stands.
    """

    holes: tuple[tuple[int | str, ...], ...]
    result: tuple[int | str, ...]


@dataclass(slots=True)
class HolesResult(Finding):
    """The shapes that fit where an expression has question marks."""

    kind: ClassVar[str] = "holes"
    line: int | None
    text: str
    fits: tuple[Fit, ...]
    omitted: bool
    shown: bool = True
