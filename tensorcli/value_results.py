"""Results that explain one value: view or copy, bits, rounding, summaries, plots; no text.

Loaded only when one of them is asked for, so dataclasses cost nothing elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tensorcli.results import Finding, PrecisionRow

Sizes = tuple[int, ...]


class Explanation(Finding):
    """A finding about a value; the session notes its line."""

    __slots__ = ()

    def __post_init__(self) -> None:
        self.line = None
        self.shown = True


@dataclass(slots=True, frozen=True)
class ViewStep:
    """One operation of the chain that made a tensor.

    `outcome`: "view" of the operand's memory, "copy" of its elements, "same" tensor, "new" values,
    or "source": where the chain begins. `reason` says why, empty where the outcome says it all.
    """

    text: str
    outcome: str
    shape: Sizes
    stride: Sizes
    storage_offset: int
    bytes: int
    reason: str


@dataclass(slots=True)
class WhyResult(Explanation):
    """Whether a tensor is a view or a copy: `verdict` "view", "copy", "own" memory, or the "same".

    `notes` are PyTorch's rules that its values show: promotion, ties, rounding.
    """

    name: str
    verdict: str
    view_of: str | None
    bytes: int
    reason: str
    notes: tuple[str, ...]
    steps: tuple[ViewStep, ...]
    shares: tuple[str, ...]

    kind: ClassVar[str] = "why"


@dataclass(slots=True, frozen=True)
class BitsRow:
    """One element as its bits.

    `fields` are (name, bits): sign, exponent and mantissa of a float, sign and value of an
    integer. `spacing` is the distance to the next number away from zero; `below` and `above` the
    neighbours.
    """

    index: Sizes
    value: str
    fields: tuple[tuple[str, str], ...]
    kind: str
    exponent: int | None
    spacing: float | None
    below: float | None
    above: float | None


@dataclass(slots=True)
class BitsResult(Explanation):
    """The elements of a tensor in bits; `omitted` were too many."""

    dtype: str
    rows: tuple[BitsRow, ...]
    omitted: int

    kind: ClassVar[str] = "bits"


@dataclass(slots=True, frozen=True)
class DtypeRow:
    """The limits of a floating-point dtype; `bits` are sign, exponent and mantissa."""

    dtype: str
    bits: Sizes
    eps: float
    max: float
    smallest_normal: float
    smallest_subnormal: float
    digits: int
    largest_exact_integer: int


@dataclass(slots=True)
class DtypesResult(Explanation):
    """What the floating-point dtypes can hold."""

    rows: tuple[DtypeRow, ...]

    kind: ClassVar[str] = "dtypes"


@dataclass(slots=True, frozen=True)
class RoundingStep:
    """One operation of a computation in low precision, all of its repetitions together.

    `text` is how the program wrote it, `short` the same with its operands left out;
    `own` is its largest relative error on the operands it got, `total` its distance from the run
    in float64 relative to the largest value there, `gradient` the same of its value's gradient;
    `cause` the word for how its error arose.
    """

    text: str
    short: str
    line: int
    column: int
    times: int
    own: float
    total: float
    gradient: float | None
    cause: str
    reason: str


@dataclass(slots=True, frozen=True)
class PrecisionRun:
    """A computation in one dtype against the same in float64; `error` if it could not be run."""

    dtype: str
    error: str | None
    result: PrecisionRow | None
    value: float | None
    exact: float | None
    gradients: tuple[tuple[str, PrecisionRow], ...]
    steps: tuple[RoundingStep, ...]


@dataclass(slots=True)
class PrecisionRunResult(Explanation):
    """A whole computation in several dtypes."""

    text: str
    runs: tuple[PrecisionRun, ...]

    kind: ClassVar[str] = "precision_run"


@dataclass(slots=True)
class SummaryResult(Explanation):
    """A tensor in numbers, over its finite elements; `sampled` elements of `count` were read.

    `counts` is a histogram over equal parts of minimum to maximum; `gradient` the state of its
    gradient in words.
    """

    name: str
    dtype: str
    device: str
    shape: Sizes
    stride: Sizes
    contiguous: bool
    bytes: int
    count: int
    sampled: int
    minimum: float | None
    maximum: float | None
    mean: float | None
    deviation: float | None
    zeros: int
    nan: int
    inf: int
    counts: Sizes
    gradient: str

    kind: ClassVar[str] = "summary"


@dataclass(slots=True)
class HistogramResult(Explanation):
    """How often values fall into equal parts of minimum to maximum; what is not finite is apart."""

    name: str
    edges: tuple[float, ...]
    counts: Sizes
    nan: int
    inf: int
    count: int
    sampled: int
    ascii: bool

    kind: ClassVar[str] = "histogram"
    is_picture: ClassVar[bool] = True


@dataclass(slots=True)
class PlotResult(Explanation):
    """A vector as a line: the values themselves, or the means of as many groups."""

    name: str
    values: tuple[float | None, ...]
    count: int
    minimum: float | None
    maximum: float | None
    ascii: bool

    kind: ClassVar[str] = "plot"
    is_picture: ClassVar[bool] = True


@dataclass(slots=True)
class HeatmapResult(Explanation):
    """A matrix as rows of values, or of the means of blocks; None for what is not finite."""

    name: str
    shape: Sizes
    rows: tuple[tuple[float | None, ...], ...]
    minimum: float | None
    maximum: float | None
    ascii: bool

    kind: ClassVar[str] = "heatmap"
    is_picture: ClassVar[bool] = True
    is_image: ClassVar[bool] = True  # a terminal that can is sent it as one
