"""`tensorcli check`: a program run on meta, without data; what each line made, and what it costs.

A program that must look at values is run with its data instead.
"""

from __future__ import annotations

import ast

from engine import device as devices
from engine.tape import FREED
from engine.tensor import Tensor
from tensorcli.explain import operations
from tensorcli.explain.names import named_tensors
from tensorcli.explain.provenance import operation
from tensorcli.explain.replay import Replay, Watcher
from tensorcli.explain.watching import COMPOUND
from tensorcli.findings import CheckedLine, CheckResult
from tensorcli.language.errors import where
from tensorcli.language.forms import visible_names
from tensorcli.language.functions import Function
from tensorcli.language.source import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tensorcli.explain.replay import Outcome, Place
    from tensorcli.language.compiling import Frame, Value

MOST_LOOKS = 20
"""How often one statement's memory is looked at: a loop repeats itself."""


def check(text: str, seed: int | None, seconds: float) -> tuple[CheckResult, Exception | None]:
    """The program's lines, and the error that it ends with, if any."""
    watcher, outcome = _run(text, seed, seconds, meta=True)
    real, note = False, None
    stopped = outcome.error
    if stopped is not None and _asks_for_values(stopped):
        place = where(stopped)
        line = None if place is None else place.span.line
        again, second = _run(text, seed, seconds, meta=False)
        if second.finished or second.error is not None:
            watcher, outcome, real = again, second, True
            what = (
                "" if place is None else f" `{' '.join(place.source.segment(place.node).split())}`"
            )
            note = f"line {line}{what} looks at values, so the program was run with its data"
    if not outcome.finished and outcome.error is None:
        note = f"stopped after {seconds:g} s"
    rows = tuple(_rows(Source(text), watcher))
    result = CheckResult(
        None, rows, watcher.peak, watcher.peak_line, watcher.operations, real, note
    )
    return result, outcome.error


def _run(text: str, seed: int | None, seconds: float, *, meta: bool) -> tuple[_Lines, Outcome]:
    watcher = _Lines(meta=meta)
    replay = Replay([], text, seed)
    replay.seconds = seconds
    return watcher, replay.run(watcher)


def _asks_for_values(exc: Exception) -> bool:
    """Whether an error comes of there being no data."""
    text = str(exc)
    return "meta" in text or "Meta" in text


class _Record:
    """What a statement made, the last time that it ran."""

    def __init__(self) -> None:
        self.made: list[tuple[str, Any]] = []
        self.times = 0
        self.operations = 0
        self.memory = 0
        self.shapes: set[tuple[int, ...]] = set()


class Counting(Watcher):
    """Counts the floating-point operations of the expressions that are evaluated.

    `calls` are those of the program's own functions, whose bodies count by themselves.
    """

    def __init__(self) -> None:
        self.operations = 0
        self.calls = 0
        self.open: list[list[Any]] = [[]]

    def count(self, operations: int) -> None:
        self.operations += operations

    def made(self, value: Any) -> None:
        """An expression has a value; `open` holds those whose expressions are under way."""

    def expression(self, text: int, source: Source, node: ast.expr, value: Value) -> Value:
        if isinstance(node, ast.Constant | ast.Lambda):
            return value
        name = "getitem" if isinstance(node, ast.Subscript) else operation(node)
        counts = isinstance(node, ast.BinOp | ast.UnaryOp | ast.Call | ast.Compare)

        def watched(frame: Frame) -> Any:
            operands: list[Any] = []
            self.open.append(operands)
            try:
                found = value(frame)
            finally:
                self.open.pop()
            if operands and type(operands[0]) is Function:
                self.calls += 1
            elif counts:
                self.count(operations.count(name or "neg", operands, found))
            self.open[-1].append(found)
            self.made(found)
            return found

        return watched


class _Lines(Counting):
    """Watches the statements for what they make, the expressions for what they cost."""

    def __init__(self, *, meta: bool) -> None:
        super().__init__()
        self.meta = meta
        self.records: dict[int, dict[tuple[int, int], _Record]] = {}
        self.peak = 0
        self.peak_line: int | None = None
        self.live: dict[int, int] = {}
        self.held = 0
        self.line = 0
        self.record: list[_Record] = []

    def begin(self) -> None:
        from engine.modes import state

        if self.meta:
            state.default_device = devices.device("meta")
        state.observe = self.passed

    def forgives(self, place: Place, exc: Exception) -> bool:
        """What a print would have shown is not missed."""
        value = place.node.value if isinstance(place.node, ast.Expr) else None
        name = getattr(getattr(value, "func", None), "id", "")
        return self.meta and name == "print" and _asks_for_values(exc)

    def passed(self, node: Any, g: Any, gradients: Any) -> None:
        self.count(operations.count_backward(node, g, gradients))

    def count(self, operations: int) -> None:
        super().count(operations)
        if self.record:
            self.record[-1].operations += operations

    def before(self, place: Place, frame: Any) -> None:
        if isinstance(place.node, COMPOUND):
            return
        self.line = place.span.line
        key = (place.span.line, place.span.column)
        record = self.records.setdefault(place.span.line, {}).setdefault(key, _Record())
        self.record.append(record)
        self.open.append([])

    def after(self, place: Place, frame: Any) -> None:
        if isinstance(place.node, COMPOUND):
            return
        values = self.open.pop()
        record = self.record.pop()
        record.times += 1
        node = place.node
        names = visible_names(frame)
        if isinstance(node, ast.AugAssign) and values:
            target = names.get(getattr(node.target, "id", ""))
            self.count(operations.count(operation(node), [target, *values], target))
        record.made = list(_made(node, names, values))
        record.shapes.update(t.layout.shape for _, t in record.made if isinstance(t, Tensor))
        if record.times <= MOST_LOOKS:
            self.live = dict(_memories(names))
            self.held = sum(self.live.values())
            record.memory = max(record.memory, self.held)
            self._highest(self.held)

    def made(self, value: Any) -> None:
        """The memory while an expression is under way: what is named, and what it holds."""
        if not isinstance(value, Tensor):
            return
        more = {
            id(t.storage.root): t.storage.nbytes
            for values in self.open
            for t in values
            if isinstance(t, Tensor) and id(t.storage.root) not in self.live
        }
        self._highest(self.held + sum(more.values()))

    def _highest(self, size: int) -> None:
        if size > self.peak:
            self.peak, self.peak_line = size, self.line


def _made(node: ast.AST, names: dict[str, Any], values: list[Any]) -> Iterator[tuple[str, Any]]:
    """The names that a statement bound, with their values; the value of an expression."""
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            for part in ast.walk(target):
                base = part.value if isinstance(part, ast.Subscript) else part
                if isinstance(base, ast.Name) and base.id in names and _is_bound(base, part):
                    yield base.id, names[base.id]
    elif isinstance(node, ast.Expr | ast.Return) and values:
        yield ("return" if isinstance(node, ast.Return) else ""), values[-1]


def _is_bound(base: ast.Name, part: ast.AST) -> bool:
    """Whether a name is assigned to, or what it names is written into."""
    return isinstance(base.ctx, ast.Store) or base is not part


def _memories(names: dict[str, Any]) -> Iterator[tuple[int, int]]:
    """The memories that variables, gradients and recorded graphs hold on to."""
    seen: set[int] = set()
    todo: list[Any] = []
    for _, tensor in named_tensors(names):
        yield id(tensor.storage.root), tensor.storage.nbytes
        ag = tensor.ag
        if ag is not None:
            todo.append(ag.node)
            if ag.grad is not None:
                yield id(ag.grad.storage.root), ag.grad.storage.nbytes
    while todo:
        node = todo.pop()
        if node is None or id(node) in seen:
            continue
        if isinstance(node, Tensor):
            yield id(node.storage.root), node.storage.nbytes
            continue
        seen.add(id(node))
        todo += node.next
        for value in () if node.saved is FREED else node.saved:
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, Tensor):
                    yield id(part.storage.root), part.storage.nbytes


def _rows(source: Source, watcher: _Lines) -> Iterator[CheckedLine]:
    """Every line of the program, with what it made where it made something."""
    for number, text in enumerate(source.lines, 1):
        if not text.strip():
            continue
        empty = True
        for record in watcher.records.get(number, {}).values():
            for name, value in record.made:
                row = _row(number, text.rstrip(), name, value, record)
                if row is not None:
                    empty = False
                    yield row
        if empty:
            records = watcher.records.get(number, {}).values()
            cost = sum(record.operations for record in records)
            memory = max((record.memory for record in records), default=0)
            times = max((record.times for record in records), default=0)
            yield CheckedLine(
                number, text.rstrip(), "", None, None, None, None, None, 0, cost, memory, times
            )


def _row(number: int, text: str, name: str, value: Any, record: _Record) -> CheckedLine | None:
    if not isinstance(value, Tensor):
        if value is None or type(value).__name__ in ("function", "Namespace"):
            return None
        note = _words(name, value)
        if "<" in note or "0x" in note:
            return None  # an address, which says nothing
        return CheckedLine(
            number, text, name, None, None, None, None, note, 0,
            record.operations, record.memory, record.times,
        )  # fmt: skip
    layout = value.layout
    others = record.shapes - {layout.shape}
    note = ", ".join(str(list(s)) for s in sorted(others)[:3])
    note = f"also {note}" if note and len(record.made) == 1 else ""
    return CheckedLine(
        line=number,
        text=text,
        name=name,
        shape=layout.shape,
        dtype=value.dtype.name,
        stride=layout.strides,
        contiguous=layout.contiguous,
        note=note or None,
        bytes=layout.numel * value.dtype.itemsize,
        operations=record.operations if record.made[0][0] == name else 0,
        memory=record.memory,
        times=record.times,
    )


def _words(name: str, value: Any) -> str:
    """A value that is no tensor, in a few words."""
    from tensorcli.language.value_text import repr_of

    if isinstance(value, list | tuple | dict) and (
        len(value) > 4 or any(isinstance(item, Tensor) for item in value)
    ):
        text = f"{type(value).__name__} of {len(value)}"
    else:
        text = repr_of(value).replace("\n", " ")
    text = text if len(text) <= 40 else text[:37] + "..."
    return f"{name} {text}".strip()
