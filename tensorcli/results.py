"""What an evaluation yields, as data; no text is made here, and nothing knows how it is shown.

Plain slotted classes rather than dataclasses: these are on the start-up path, and each dataclass
costs a third of a millisecond to define.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import ClassVar

    from engine.tensor import Tensor
    from tensorcli.diagnostics import Diagnostic


class Result:
    """One thing that happened. `line` is None where there is none, as for a missing file.

    `shown` is the selection rule's answer for people's renderings; json emits everything.
    """

    __slots__ = ("line", "shown")

    def __init__(self, line: int | None, shown: bool = True) -> None:
        self.line = line
        self.shown = shown


class Finding(Result):
    """An explanation whose fields are all there is to it: json writes them as they stand."""

    __slots__ = ()

    kind: ClassVar[str]


class TensorResult(Result):
    """An expression statement whose value is a tensor.

    `names` are the session's variables at that moment: a rendering may say of which this is a view.
    """

    __slots__ = ("names", "value")

    def __init__(
        self, value: Tensor, line: int | None, shown: bool = True, names: Mapping[str, object] = {}
    ) -> None:
        self.line = line
        self.shown = shown
        self.value = value
        self.names = names


class ValueResult(Result):
    """An expression statement with any other value but None."""

    __slots__ = ("value",)

    def __init__(self, value: object, line: int | None, shown: bool = True) -> None:
        self.line = line
        self.shown = shown
        self.value = value


class PrintResult(Result):
    """One print call; `text` ends with what the call's `end` was."""

    __slots__ = ("text",)

    def __init__(self, text: str, line: int | None) -> None:
        self.line = line
        self.shown = True
        self.text = text


class WarningResult(Result):
    """PyTorch warns here."""

    __slots__ = ("message",)

    def __init__(self, message: str, line: int | None) -> None:
        self.line = line
        self.shown = True
        self.message = message


class HintResult(Result):
    """Something that runs well and is probably not what was meant; `diagnostic.code` says what."""

    __slots__ = ("diagnostic",)

    def __init__(self, diagnostic: Diagnostic) -> None:
        self.line = None if diagnostic.span is None else diagnostic.span.line
        self.shown = True
        self.diagnostic = diagnostic


class ErrorResult(Result):
    """The error that ended the program, or stopped it from starting."""

    __slots__ = ("diagnostic", "source")

    def __init__(self, diagnostic: Diagnostic, source: str | None = None) -> None:
        self.line = None if diagnostic.span is None else diagnostic.span.line
        self.shown = True
        self.diagnostic = diagnostic
        self.source = source


class LayoutResult(Result):
    """How a tensor lies in memory; strides and offsets in elements.

    `steps` are the operations that led to it, where they are known (value_results.ViewStep);
    `seen` is how a lazy view shows the memory: conjugated or negated;
    `positions`, for small tensors, the place in the storage of each element in row-major order.
    """

    __slots__ = (
        "bytes",
        "contiguous",
        "contiguous_strides",
        "device",
        "dtype",
        "first_break",
        "name",
        "numel",
        "positions",
        "seen",
        "shape",
        "shares",
        "steps",
        "storage_bytes",
        "storage_offset",
        "stride",
        "view_of",
    )

    def __init__(
        self,
        *,
        line: int | None,
        name: str | None,
        dtype: str,
        device: str,
        shape: tuple[int, ...],
        stride: tuple[int, ...],
        storage_offset: int,
        numel: int,
        contiguous: bool,
        contiguous_strides: tuple[int, ...],
        first_break: int | None,
        bytes: int,
        storage_bytes: int | None,
        seen: str | None,
        view_of: str | None,
        shares: tuple[str, ...],
        steps: tuple[object, ...] = (),
        positions: tuple[int, ...] | None = None,
    ) -> None:
        self.line = line
        self.shown = True
        self.name = name
        self.dtype = dtype
        self.device = device
        self.shape = shape
        self.stride = stride
        self.storage_offset = storage_offset
        self.numel = numel
        self.contiguous = contiguous
        self.contiguous_strides = contiguous_strides
        self.first_break = first_break
        self.bytes = bytes
        self.storage_bytes = storage_bytes
        self.seen = seen
        self.view_of = view_of
        self.shares = shares
        self.steps = steps
        self.positions = positions


class Summary:
    """Some numbers for a tensor of any size: over the finite elements, and how many are not."""

    __slots__ = ("count", "inf", "maximum", "mean", "minimum", "nan", "norm")

    def __init__(
        self,
        count: int,
        minimum: float | None,
        maximum: float | None,
        mean: float | None,
        norm: float | None,
        nan: int,
        inf: int,
    ) -> None:
        self.count = count
        self.minimum = minimum
        self.maximum = maximum
        self.mean = mean
        self.norm = norm
        self.nan = nan
        self.inf = inf


class GradientRow:
    """One leaf: its value, its gradient (None: none, for that reason), how often accumulated."""

    __slots__ = ("accumulated", "dtype", "gradient", "name", "reason", "shape", "value")

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: str,
        value: Summary,
        gradient: Summary | None,
        accumulated: int | None,
        reason: str | None = None,
    ) -> None:
        self.name = name
        self.reason = reason
        self.shape = shape
        self.dtype = dtype
        self.value = value
        self.gradient = gradient
        self.accumulated = accumulated


class GradientsResult(Result):
    """The gradients of the named leaves; `asked` is False for the table that follows backward()."""

    __slots__ = ("asked", "rows")

    def __init__(self, rows: tuple[GradientRow, ...], line: int | None, asked: bool = True) -> None:
        self.line = line
        self.shown = True
        self.rows = rows
        self.asked = asked


class PrecisionRow:
    """What one dtype loses of a tensor's values; `sqnr_db` None where it loses nothing."""

    __slots__ = (
        "count",
        "dtype",
        "exact",
        "max_absolute",
        "max_relative",
        "max_ulp",
        "overflowed",
        "sqnr_db",
        "subnormal",
        "zeroed",
    )

    def __init__(
        self,
        *,
        dtype: str,
        count: int,
        exact: int,
        max_absolute: float,
        max_relative: float,
        max_ulp: float,
        overflowed: int,
        subnormal: int,
        zeroed: int,
        sqnr_db: float | None,
    ) -> None:
        self.dtype = dtype
        self.count = count
        self.exact = exact
        self.max_absolute = max_absolute
        self.max_relative = max_relative
        self.max_ulp = max_ulp
        self.overflowed = overflowed
        self.subnormal = subnormal
        self.zeroed = zeroed
        self.sqnr_db = sqnr_db


class PrecisionResult(Result):
    """A tensor's values in other dtypes; `asked`: False for the line after a lossy cast."""

    __slots__ = ("asked", "rows", "source_dtype")

    def __init__(
        self,
        source_dtype: str,
        rows: tuple[PrecisionRow, ...],
        line: int | None,
        asked: bool = True,
    ) -> None:
        self.line = line
        self.shown = True
        self.source_dtype = source_dtype
        self.rows = rows
        self.asked = asked


class ShapeRow:
    """A shape and the expression that has it."""

    __slots__ = ("shape", "text")

    def __init__(self, text: str, shape: tuple[int, ...]) -> None:
        self.text = text
        self.shape = shape


class BroadcastResult(Result):
    """How shapes are matched: the result's shape, or the dimension of it that does not match."""

    __slots__ = ("failing_dim", "rows", "shape")

    def __init__(
        self,
        rows: tuple[ShapeRow, ...],
        shape: tuple[int, ...] | None,
        failing_dim: int | None,
        line: int | None,
    ) -> None:
        self.line = line
        self.shown = True
        self.rows = rows
        self.shape = shape
        self.failing_dim = failing_dim


EXPLANATIONS = (LayoutResult, GradientsResult, PrecisionResult, BroadcastResult)
