"""Where a NaN or an infinity was born: the program is run again, each expression looked at.

A value that is not finite is followed back from operand to operand, to the first expression (or
step of a backward pass) that made it out of others.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from dataclasses import replace

import numpy as np

from engine import modes
from engine.tensor import Tensor
from tensorcli.explain import again
from tensorcli.explain.graph import line_of
from tensorcli.explain.names import named_tensors
from tensorcli.explain.reasons import Element, backward_reason, forward_reason
from tensorcli.explain.watching import COMPOUND
from tensorcli.findings import Operand, Origin, ProvenanceResult
from tensorcli.language.forms import visible_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tensorcli.explain.replay import Place, Replay
    from tensorcli.language.compiling import Frame, Value
    from tensorcli.language.forms import Argument
    from tensorcli.language.source import Source

MOST_EVENTS = 20_000
MOST_PATH = 8
LARGE = 1_000_000
"""Elements up to which a tensor is copied before it is changed in place."""


def explain(
    tensor: Tensor, argument: Argument, replay: Replay, line: int | None
) -> ProvenanceResult:
    """trace_nan(x): where the NaN and infinities of a tensor come from."""
    nan, inf = counts(tensor)
    origins: tuple[Origin, ...] = ()
    path: tuple[Operand, ...] = ()
    note = None
    if nan or inf:
        watcher = Tracer(replay.texts, argument)
        again.run(watcher, replay)
        if not watcher.found:
            note = "the program could not be run up to here again"
        else:
            origins, path = watcher.trace(watcher.value, "NaN" if nan else "Inf")
            if not origins:
                note = "run once more, the program does not give it again"
            else:
                origins = (*origins[:-1], _with_fix(origins[-1], argument, replay))
        path = tuple(step for step in path if step.text != argument.text)
    return ProvenanceResult(line, argument.text, nan, inf, tensor.layout.numel, origins, path, note)


def _with_fix(origin: Origin, argument: Argument, replay: Replay) -> Origin:
    """The origin with a rewrite that was tried, where one is known."""
    from tensorcli.explain import safe_branch

    name = origin.operation if origin.phase == "backward" else origin.operation.capitalize()
    return replace(origin, fix=safe_branch.fix(name, origin.line, argument, replay))


def explain_run(replay: Replay) -> ProvenanceResult | None:
    """--trace-nan: the first NaN of a whole program, else the infinity that a variable ended with;
    None where there is neither."""
    watcher = Tracer(replay.texts, None)
    outcome = again.run(watcher, replay)
    event = watcher.first_nan
    if event is not None:
        origins, path = watcher.trace(event.value, "NaN")
        nan, inf = counts(event.value)
        size = event.value.layout.numel
        return ProvenanceResult(None, event.words, nan, inf, size, origins, path, None, asked=False)
    if watcher.born_backward is not None:
        origins = (watcher.born_backward,)
        return ProvenanceResult(None, "a gradient", 1, 0, 1, origins, (), None, asked=False)
    for name, tensor in named_tensors(outcome.names):
        nan, inf = counts(tensor)
        if inf:
            origins, path = watcher.trace(tensor, "Inf")
            size = tensor.layout.numel
            return ProvenanceResult(None, name, nan, inf, size, origins, path, None, asked=False)
    return None


def counts(tensor: Tensor) -> tuple[int, int]:
    """How many NaN there are, and how many infinities."""
    array = tensor.array
    if array is None or not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
        return 0, 0
    array = np.asarray(array)
    if bool(np.isfinite(array).all()):
        return 0, 0
    return int(np.isnan(array).sum()), int(np.isinf(array).sum())


class Input:
    """A value that an expression was given; `array` is how its elements were then."""

    __slots__ = ("array", "node", "value")

    def __init__(self, node: ast.AST, value: Any, *, copied: bool) -> None:
        self.node = node
        self.value = value
        self.array = None
        if isinstance(value, Tensor) and value.array is not None:
            array = np.asarray(value.array)
            self.array = array.copy() if copied and array.size <= LARGE else array

    def has(self, what: str) -> bool:
        """Whether there is a NaN (or an infinity) in it."""
        if self.array is not None:
            if self.array.dtype.kind in "biu":
                return False
            found = np.isnan(self.array) if what == "NaN" else np.isinf(self.array)
            return bool(found.any())
        if isinstance(self.value, float):
            return self.value != self.value if what == "NaN" else abs(self.value) == float("inf")
        return False


class Event:
    """An expression or statement that gave a tensor which is not finite."""

    __slots__ = ("inputs", "node", "number", "source", "value")

    def __init__(
        self, number: int, source: Source, node: ast.AST, value: Tensor, inputs: list[Input]
    ) -> None:
        self.number = number
        self.source = source
        self.node = node
        self.value = value
        self.inputs = inputs

    @property
    def line(self) -> int:
        return self.source.span(self.node).line

    @property
    def words(self) -> str:
        return " ".join(self.source.segment(self.node).split())


class Tracer(again.Upto):
    """Looks at every value of a rerun; without an argument up to the program's end."""

    def __init__(self, texts: list[str], argument: Argument | None) -> None:
        if argument is not None:
            super().__init__(texts, argument)
        else:
            self.number, self.place, self.found = -1, (), False
        self.events: dict[int, Event] = {}
        self.open: list[tuple[bool, list[Input]]] = [(False, [])]
        self.first_nan: Event | None = None
        self.born_backward: Origin | None = None
        self.origins: dict[int, tuple[Origin, Place | None]] = {}
        # (nodes recorded so far, statement): which statement recorded a node.
        self.recorded: list[tuple[int, Place]] = []
        # What brought a value that is not finite to a node or a leaf, by its identity.
        self.brought: dict[int, Origin] = {}
        self.senders: dict[int, Any] = {}
        self.source: Source | None = None
        self.statements: list[Place] = []

    def begin(self) -> None:
        from engine.modes import state

        state.observe = self.passed

    # -- the way forward

    def expression(self, text: int, source: Source, node: ast.expr, value: Value) -> Value:
        if isinstance(node, ast.Constant | ast.JoinedStr | ast.Lambda | ast.Slice):
            return value
        is_end = text == self.number and again.place_of(node) == self.place
        in_place = _is_in_place(node)

        def watched(frame: Frame) -> Any:
            inputs: list[Input] = []
            self.open.append((in_place, inputs))
            try:
                found = value(frame)
            finally:
                self.open.pop()
            copied, outer = self.open[-1]
            outer.append(Input(node, found, copied=copied))
            if isinstance(found, Tensor):
                self._note(source, node, found, inputs)
            elif isinstance(found, tuple):
                for part in found:
                    if isinstance(part, Tensor):
                        self._note(source, node, part, inputs)
            if is_end:
                self.arrived(frame, found)
            return found

        return watched

    def _note(self, source: Source, node: ast.AST, value: Tensor, inputs: list[Input]) -> None:
        nan, inf = counts(value)
        if not nan and not inf:
            self.events.pop(id(value), None)
            return
        known = self.events.get(id(value))
        if known is not None and known.value is value and not (nan and not known_nan(known)):
            return
        if len(self.events) >= MOST_EVENTS:
            return
        event = Event(len(self.events), source, node, value, inputs)
        self.events[id(value)] = event
        if nan and self.first_nan is None and not any(i.has("NaN") for i in inputs):
            self.first_nan = event

    def before(self, place: Place, frame: Any) -> None:
        self.source = place.source
        self.statements.append(place)
        self.recorded.append((modes.state.sequence, place))
        target = place.node.target if isinstance(place.node, ast.AugAssign) else None
        inputs: list[Input] = []
        if isinstance(target, ast.Name):
            held = visible_names(frame).get(target.id)
            if isinstance(held, Tensor):
                inputs.append(Input(target, held, copied=True))
        self.open.append((False, inputs))

    def after(self, place: Place, frame: Any) -> None:
        self.statements.pop()
        if len(self.open) > 1:
            _, inputs = self.open.pop()
        else:
            inputs = []
        if isinstance(place.node, COMPOUND):
            return
        for _, tensor in named_tensors(visible_names(frame)):
            if tensor.array is not None and tensor.layout.numel <= LARGE:
                self._note(place.source, place.node, tensor, inputs)

    # -- the way back

    def passed(self, node: Any, g: Any, gradients: Any) -> None:
        """A node of a backward pass sent gradients on."""
        for target in node.next:
            if target is not None:
                self.senders[id(target)] = node
        sent = [
            (target, gradient, *counts(gradient))
            for target, gradient in zip(node.next, gradients, strict=False)
            if target is not None and gradient is not None
        ]
        bad = [one for one in sent if one[2] or one[3]]
        if not bad:
            return
        incoming = [part for part in g if part is not None] if isinstance(g, list) else [g]
        origin = self.brought.get(id(node))
        if origin is None or not any(any(counts(part)) for part in incoming):
            _, gradient, nan, _ = bad[0]
            origin = self._born(node, incoming[0], gradient, "NaN" if nan else "Inf")
            if self.born_backward is None:
                self.born_backward = origin
        for target, *_ in bad:
            self.brought[id(target)] = origin

    def _born(self, node: Any, g: Tensor, gradient: Tensor, what: str) -> Origin:
        array = np.asarray(gradient.array)
        bad = np.isnan(array) if what == "NaN" else np.isinf(array)
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        elements = [Element("g", *_element(np.asarray(g.array), index))]
        for role, kept in zip(node.gradient.saved_names, node.saved, strict=False):
            if (
                isinstance(kept, Tensor)
                and kept.array is not None
                and not role.startswith("needed")
            ):
                word = {"y": "result"}.get(role, role)
                elements.append(Element(word, *_element(np.asarray(kept.array), index)))
        line = line_of(node)
        sender = self._chooser(node)
        reason, cure = backward_reason(node.type_name, what, elements, sender)
        place = self._place(node)
        code = "" if line is None or place is None else place.source.line(line).strip()
        origin = Origin(
            what=what,
            phase="backward",
            operation=node.type_name,
            text=f"{node.type_name}" + (f" of `{code}`" if code else ""),
            line=line,
            column=None,
            index=index,
            count=int(bad.sum()),
            operands=tuple(
                Operand(e.text, e.index, e.words, None) for e in elements if e.value is not None
            ),
            reason=reason,
            cure=cure,
        )
        self.origins[id(origin)] = origin, place
        return origin

    def _place(self, node: Any) -> Place | None:
        """The statement that recorded a node."""
        at = bisect_left(self.recorded, node.sequence, key=lambda one: one[0]) - 1
        return None if at < 0 else self.recorded[at][1]

    def _chooser(self, node: Any) -> Any:
        """The node that sent a gradient here; behind products and signs, the one that chose."""
        sender = self.senders.get(id(node))
        for _ in range(MOST_PATH):
            bare = "" if sender is None else sender.type_name.rstrip("0123456789")
            if bare.removesuffix("Backward") not in ("Mul", "Neg", "Div", "Sub", "Add", "Rsub"):
                break
            sender = self.senders.get(id(sender), sender)
        return sender

    # -- following it

    def trace(self, value: Any, what: str) -> tuple[tuple[Origin, ...], tuple[Operand, ...]]:
        """The origins (of a NaN that an infinity led to, both), and the way from there."""
        event = self.events.get(id(value))
        steps: list[Event] = []
        seen: set[int] = set()
        while event is not None and id(event) not in seen:
            seen.add(id(event))
            steps.append(event)
            event = self._before(event, what)
        if not steps:
            return (), ()
        first = steps[-1]
        back = self._from_backward(first)
        way = tuple(
            Operand(step.words, None, "", step.line)
            for step in reversed(steps[: -1 if back is None else len(steps)])
            if not isinstance(step.node, ast.Name)
        )[:MOST_PATH]
        if back is not None:
            return (*self._forward_twin(back), back), way
        origins = [self._origin(first, what)]
        if what == "NaN":
            for one in first.inputs:
                if one.has("Inf") and isinstance(one.value, Tensor):
                    earlier, _ = self.trace(one.value, "Inf")
                    origins = [*earlier, *origins]
                    break
        return tuple(origins), way

    def _forward_twin(self, back: Origin) -> tuple[Origin, ...]:
        """The NaN that the same line had made on the way forward."""
        _, place = self.origins.get(id(back), (back, None))
        if place is None or back.what != "NaN":
            return ()
        born = [
            event
            for event in self.events.values()
            if event.source is place.source
            and event.line == back.line
            and isinstance(event.node, ast.Call | ast.BinOp)
            and counts(event.value)[0]
            and not any(one.has("NaN") for one in event.inputs)
        ]
        first = min(born, key=lambda event: event.number, default=None)
        return () if first is None else (self._origin(first, "NaN"),)

    def _before(self, event: Event, what: str) -> Event | None:
        for one in event.inputs:
            if one.has(what) and isinstance(one.value, Tensor):
                known = self.events.get(id(one.value))
                if known is not None and known is not event:
                    return known
        return None

    def _from_backward(self, event: Event) -> Origin | None:
        """What a backward pass brought: read as .grad, given by grad(), or put in by a step."""
        if self.born_backward is None:
            return None
        name = operation(event.node)
        if name == "grad":
            for one in event.inputs:
                if id(one.value) in self.brought:
                    return self.brought[id(one.value)]
            return self.born_backward
        ag = event.value.ag
        brought = ag is not None and ag.grad is not None and any(counts(ag.grad))
        if not brought or name not in ("step", "backward", ""):
            return None
        return self.brought.get(id(event.value), self.born_backward)

    def _origin(self, event: Event, what: str) -> Origin:
        array = np.asarray(event.value.array)
        bad = np.isnan(array) if what == "NaN" else np.isinf(array)
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        elements = []
        for one in _direct(event):
            if one.array is not None:
                at, value = _element(one.array, index)
                elements.append(Element(event.source.segment(one.node), at, value, one.array))
            elif isinstance(one.value, int | float):
                elements.append(Element(event.source.segment(one.node), None, float(one.value)))
        elements += _constants(event)
        reason, cure = forward_reason(
            operation(event.node), what, elements, event.value, array[index]
        )
        span = event.source.span(event.node)
        shown = [e for e in elements if e.value is not None and not _is_number(e.text)]
        return Origin(
            what=what,
            phase="forward",
            operation=operation(event.node),
            text=event.words,
            line=span.line,
            column=span.column,
            index=index,
            count=int(bad.sum()),
            operands=tuple(dict.fromkeys(Operand(e.text, e.index, e.words, None) for e in shown)),
            reason=reason,
            cure=cure,
        )


def known_nan(event: Event) -> bool:
    """Whether it was noted for a NaN, its memory as it is now."""
    return event.number >= 0 and counts(event.value)[0] > 0


def _direct(event: Event) -> list[Input]:
    """The operands as the expression names them, not what was computed inside a function."""
    node = event.node
    own = {again.place_of(child) for child in ast.iter_child_nodes(node)}
    if isinstance(node, ast.Call):
        own |= {again.place_of(child) for child in ast.iter_child_nodes(node.func)}
        own |= {again.place_of(keyword.value) for keyword in node.keywords}
    kept: dict[Any, Input] = {}
    for one in event.inputs:
        place = again.place_of(one.node)
        if place in own:
            kept.setdefault(place, one)
    return list(kept.values()) or event.inputs


def _constants(event: Event) -> list[Element]:
    """Numbers that stand in the expression itself."""
    node = event.node
    parts: list[ast.AST] = []
    if isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    elif isinstance(node, ast.AugAssign):
        parts = [node.value]
    elif isinstance(node, ast.Call):
        parts = list(node.args)
    found = []
    for part in parts:
        if isinstance(part, ast.Constant) and isinstance(part.value, int | float):
            found.append(Element(event.source.segment(part), None, float(part.value)))
    if isinstance(node, ast.BinOp) and found and isinstance(node.left, ast.Constant):
        found[0].first = True
    return found


def _is_number(text: str) -> bool:
    return text[:1].isdigit() or text[:1] == "-"


def _element(array: Any, index: tuple[int, ...]) -> tuple[tuple[int, ...] | None, float | None]:
    """The element of an operand that met that of the result, by the rules of broadcasting."""
    if array.ndim > len(index) or array.dtype.kind == "c":
        return None, None
    own = index[len(index) - array.ndim :]
    at = tuple(0 if size == 1 else i for i, size in zip(own, array.shape, strict=True))
    if any(i >= size for i, size in zip(at, array.shape, strict=True)):
        return None, None
    return at, float(array[at])


def operation(node: ast.AST) -> str:
    """The name of what an expression does: an operator's sign, the last part of what it calls."""
    if isinstance(node, ast.Expr):
        return operation(node.value)
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        return operation(node.value)
    if isinstance(node, ast.BinOp | ast.AugAssign):
        return SIGNS.get(type(node.op).__name__, "")
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
        return name.rstrip("_") if isinstance(name, str) else ""
    if isinstance(node, ast.Attribute):
        return node.attr
    return ""


SIGNS = {
    "Add": "add", "Sub": "sub", "Mult": "mul", "Div": "div", "Pow": "pow", "Mod": "remainder",
    "FloorDiv": "floor_divide", "MatMult": "matmul",
}  # fmt: skip


def _is_in_place(node: ast.AST) -> bool:
    name = getattr(getattr(node, "func", None), "attr", "")
    return isinstance(node, ast.Call) and name.endswith("_") and not name.endswith("__")
