"""Watchers of a rerun: which statement changed a memory in place, and which freed a graph."""

from __future__ import annotations

import ast

from engine.tape import FREED
from engine.tensor import Tensor
from tensorcli.explain.names import named_tensors
from tensorcli.explain.replay import Watcher
from tensorcli.language.forms import visible_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tensorcli.explain.replay import Place

COMPOUND = (ast.For, ast.While, ast.If, ast.With, ast.Try, ast.FunctionDef)
MOST_STEPS = 20_000
MOST_NODES = 5_000


class Change:
    """A statement after which a version counter stood higher than before."""

    __slots__ = ("counter", "new", "old", "place")

    def __init__(self, counter: Any, old: int, new: int, place: Place) -> None:
        self.counter = counter
        self.old = old
        self.new = new
        self.place = place


class Changes(Watcher):
    """Notes each change of a named tensor's memory, with the statement that made it."""

    def __init__(self) -> None:
        self.versions: dict[int, tuple[Any, int]] = {}
        self.names: dict[int, str] = {}
        self.untouched: dict[int, Tensor] = {}
        self.changes: list[Change] = []
        self.steps = 0
        self.last: Place | None = None

    def before(self, place: Place, frame: Any) -> None:
        self.last = place
        if not isinstance(place.node, COMPOUND):
            self._look(place, frame, note=False)

    def after(self, place: Place, frame: Any) -> None:
        if not isinstance(place.node, COMPOUND):
            self._look(place, frame, note=True)

    def _look(self, place: Place, frame: Any, note: bool) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            return
        for name, tensor in named_tensors(visible_names(frame)):
            counter = tensor.counter
            number = getattr(counter, "n", None)
            if number is None:
                self.untouched[id(tensor)] = tensor
                continue
            _, known = self.versions.get(id(counter), (None, None))
            if known is None and self.untouched.pop(id(tensor), None) is tensor:
                known = 0  # a counter is made with the first change
            if known is not None and note and known != number:
                self.changes.append(Change(counter, known, number, place))
            self.versions[id(counter)] = (counter, number)
            self.names.setdefault(id(counter), name)

    def culprit(self, tensor: Any, expected: int) -> Place | None:
        """The statement that took a kept tensor's memory beyond the version it was kept at."""
        for change in self.changes:
            if change.counter is tensor.counter and change.old <= expected < change.new:
                return change.place
        return None


class Frees(Watcher):
    """Notes which statement's backward pass freed which node."""

    def __init__(self) -> None:
        self.freed: dict[int, tuple[Any, Place]] = {}
        self.alive: dict[int, Any] = {}
        self.last: Place | None = None

    def before(self, place: Place, frame: Any) -> None:
        self.last = place
        if _goes_backward(place):
            for _, tensor in named_tensors(visible_names(frame)):
                self._collect(tensor)

    def after(self, place: Place, frame: Any) -> None:
        if not _goes_backward(place):
            return
        for node in list(self.alive.values()):
            if node.saved is FREED:
                self.freed.setdefault(id(node), (node, place))
                del self.alive[id(node)]

    def _collect(self, tensor: Tensor) -> None:
        todo = [None if tensor.ag is None else tensor.ag.node]
        while todo and len(self.alive) < MOST_NODES:
            node: Any = todo.pop()
            if node is None or isinstance(node, Tensor) or id(node) in self.alive:
                continue
            if node.saved is not FREED:
                self.alive[id(node)] = node
            todo += node.next

    def culprit(self, node: Any) -> Place | None:
        found = self.freed.get(id(node))
        return None if found is None else found[1]


def _goes_backward(place: Place) -> bool:
    if isinstance(place.node, COMPOUND):
        return False
    return any(
        isinstance(node, ast.Attribute | ast.Name)
        and getattr(node, "attr", getattr(node, "id", "")) in ("backward", "grad")
        for node in ast.walk(place.node)
    )
