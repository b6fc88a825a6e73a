"""Loops that do the same with tensors each time round: recorded twice, then done from the record.

A training loop spends most of its time on finding out, each time again, what it found out the time
before. Where a loop's body is written of nothing but operations on tensors, whose effects the
engine knows, two turns are recorded; if both did the same to the same memory, the following ones
are done by calling the recorded functions on arrays, and the last one by the body itself, so that
all that a turn leaves behind is there. Whatever stands against it, the body runs as ever.

Which bodies come into question `tensor_bodies` decides by their text, `Turns` by what they did.
"""

from __future__ import annotations

import signal
from copy import copy
from itertools import chain
from operator import length_hint
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.modes import state
from engine.recording import Recording
from engine.registry import functions
from engine.tensor import Tensor
from tensorcli.language.compiling import GLOBALS, PARENT
from tensorcli.language.functions import Function
from tensorcli.language.limits import meter
from tensorcli.language.names import MISSING, lookup
from tensorcli.language.namespaces import Namespace
from tensorcli.language.running import now
from tensorcli.language.tensor_bodies import ATTRIBUTES, MODES, NUMBERS, is_function, is_method

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tensorcli.language.compiling import Action, Context, Frame, Store, Value
    from tensorcli.language.running import Emitted, Listener
    from tensorcli.language.tensor_bodies import Body

    Step = Callable[[], None]

# Turns that make a recording worth its while, and turns before it in which plans are made.
_WORTH = 30
_WARM = 3
# Recordings of one loop, which a change of what it reads makes useless.
_ATTEMPTS = 8
# Lists of more tensors, or deeper ones, are not looked through before each recording.
_MANY = 256
_DEPTH = 3
# Iterators that know how many items are left, and of which a copy can look ahead.
_COUNTED: tuple[type, ...] = (type(iter([])), type(iter(())), type(iter(range(0))))


class Turns:
    """The turns of one run of a loop over `iteration`, whose items `save` gives to the program.

    A turn in which one of the `tests` holds does more than the body's recording knows. It finds
    the names as the turn before left them, so that one is run by the body, too.
    """

    __slots__ = (
        "_ahead", "_attempts", "_body", "_changes", "_cost", "_due", "_first", "_held", "_left",
        "_needed", "_recording", "_save", "_skipped", "_standing", "_steps", "_tests", "_turns",
    )  # fmt: skip

    def __init__(
        self, body: Body, tests: Sequence[Value], iteration: Iterator[Any], save: Store
    ) -> None:
        self._body = body
        self._tests = tests
        self._left = length_hint(iteration)
        self._ahead = copy(iteration)
        self._save = save
        self._held = _Held()
        self._attempts = 0
        self._due = bool(tests)
        self._forget()

    def _forget(self) -> None:
        """Back to the time before the first recording."""
        self._attempts += 1
        self._turns = 0
        self._first: Recording | None = None
        self._recording: Recording | None = None
        self._standing: _Standing | None = None
        self._needed: list[bool] = []
        self._steps: tuple[list[Step], list[Step]] | None = None
        self._changes: list[tuple[Any, str, int]] = []
        self._skipped = 0
        # Steps that a turn counts against the program's limit.
        self._cost = 0

    def take(self, frame: Frame, item: object, body: Action) -> Any:
        """One turn; answers as the body does."""
        self._left -= 1
        due = self._due
        if self._tests:
            self._look_ahead(frame, item)
        if self._steps is not None:
            if not (due or self._due or self._held.asked) and self._left > 0:
                return self._repeat(frame, body)
            self.settle()
            signal = body(frame)
            if due and self._left > 0 and not self._holds(frame):
                self._forget()
            self._held.answer()
            return signal
        self._turns += 1
        if due or self._turns <= _WARM or self._attempts > _ATTEMPTS or self._left < _WORTH:
            return body(frame)
        if self._recording is not None:
            return self._try_out(frame, body)
        return self._record(frame, body)

    def _look_ahead(self, frame: Frame, item: object) -> None:
        """Whether more than the body's usual work is due in the next turn."""
        if self._left > 0:
            if self._turns == 0 and self._attempts == 1:
                next(self._ahead)  # the first of all
            self._save(frame, next(self._ahead))
            try:
                self._due = any(test(frame) for test in self._tests)
            except Exception:
                self._due = True  # the turn itself will say what is wrong
            self._save(frame, item)

    def _repeat(self, frame: Frame, body: Action) -> Any:
        """A turn from the record; by the body, which knows places, if something goes wrong."""
        assert self._steps is not None
        harmless, lasting = self._steps
        meter().charge_steps(self._cost)
        self._held.hold()
        try:
            for step in harmless:
                step()
        except Exception:
            self.settle()
            self._give_up()
            return body(frame)
        try:
            for step in lasting:
                step()
        finally:
            self._skipped += 1
        return None

    def settle(self) -> None:
        """Back to turns by the body: count what those from the record would have counted."""
        for owner, name, change in self._changes:
            setattr(owner, name, getattr(owner, name) + change * self._skipped)
        self._skipped = 0
        self._held.release()

    def _give_up(self) -> None:
        self._forget()
        self._attempts = _ATTEMPTS + 1

    def _record(self, frame: Frame, body: Action) -> Any:
        """Run the body and write down what it does; after the second time compare."""
        standing = _Standing.of(self._body, frame)
        if standing is None:
            self._give_up()
            return body(frame)
        recording = Recording(standing.tensors)
        used = meter().used
        signal = _recorded(recording, frame, body)
        self._cost = meter().used - used
        after = _Standing.of(self._body, frame)
        if signal is not None or recording.failure or after is None:
            self._give_up()
        elif not after.follows(standing, standing.looked_at(recording)):
            self._give_up()
        elif self._first is None:
            self._first = recording
        elif not self._first.same(recording):
            self._give_up()
        else:
            self._recording, self._standing = recording, after
            self._needed = standing.looked_at(recording)
            self._changes = after.changes_since(standing)
        return signal

    def _try_out(self, frame: Frame, body: Action) -> Any:
        """Do a turn both ways: what the steps leave must be what the body leaves, to the bit."""
        assert self._recording is not None
        steps, written = self._recording.steps(), self._recording.written()
        before = [array.copy() for array in written]
        for step in chain(*steps):
            step()
        found = [array.tobytes() for array in written]
        for array, old in zip(written, before, strict=True):
            array[...] = old
        signal = body(frame)
        agrees = all(array.tobytes() == there for array, there in zip(written, found, strict=True))
        if written and agrees and signal is None and self._holds(frame):
            self._steps = steps
        else:
            self._give_up()
        return signal

    def _holds(self, frame: Frame) -> bool:
        """Whether what the body reads is still as it was when it was recorded."""
        assert self._standing is not None
        standing = _Standing.of(self._body, frame)
        return standing is not None and standing.follows(self._standing, self._needed)


def _recorded(recording: Recording, frame: Frame, body: Action) -> Any:
    """Run the body while `recording` is told of it; what people are told makes it fail."""
    listener, warn = now.listener, state.warn

    def heard(message: str, category: str) -> None:
        recording.fail("a warning was given")
        if warn is not None:
            warn(message, category)

    now.listener, state.warn = _Noticing(listener, recording), heard
    state.set_recording(recording)
    try:
        return body(frame)
    finally:
        state.set_recording(None)
        now.listener, state.warn = listener, warn
        recording.close()


class _Held:
    """Holds ^C back while turns are done from the record, whose names are those of an older turn:
    it is `asked` for, one turn is run by the body, and then it is answered."""

    __slots__ = ("_outer", "asked")

    def __init__(self) -> None:
        self._outer: Any = None
        self.asked = False

    def hold(self) -> None:
        if self._outer is None and current_thread() is main_thread():
            self._outer = signal.signal(signal.SIGINT, self._note)

    def release(self) -> None:
        if self._outer is not None:
            signal.signal(signal.SIGINT, self._outer)
            self._outer = None

    def answer(self) -> None:
        if self.asked:
            raise KeyboardInterrupt

    def _note(self, *_: object) -> None:
        self.asked = True


class _Noticing:
    """Passes on what a program tells, and notes on the recording that it did."""

    __slots__ = ("_listener", "_recording")

    def __init__(self, listener: Listener, recording: Recording) -> None:
        self._listener = listener
        self._recording = recording

    def value(self, value: object, statement: Emitted) -> None:
        if value is not None and self._listener.hears(statement):
            self._recording.fail("a value was told")
        self._listener.value(value, statement)

    def hears(self, statement: Emitted) -> bool:
        return self._listener.hears(statement)

    def print(self, text: str, line: int) -> None:
        self._recording.fail("something was printed")
        self._listener.print(text, line)


class _Standing:
    """How what a body reads stands between two turns.

    `tensors` are those within reach, `facts` what must be the same before each turn, `grads` the
    gradients that leaves have.
    """

    __slots__ = ("_counts", "_entered", "facts", "grads", "tensors")

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self.facts: list[Any] = []
        self.grads: list[Tensor | None] = []
        self._counts: list[tuple[Any, str, int]] = []
        self._entered: set[int] = set()

    @classmethod
    def of(cls, body: Body, frame: Frame) -> _Standing | None:
        """As it is now; None where something stands in the way of recording."""
        found = cls()
        if state.inference or state.anomaly or state.autocast is not None:
            return None
        if state.observe is not None or state.recording is not None:
            return None
        found.facts += [state.grad, state.default_dtype]
        if not all(found._take(value_of(name, body.context, frame)) for name in body.read):
            return None
        return found if found._takes_calls(body, frame) else None

    def _takes_calls(self, body: Body, frame: Frame) -> bool:
        """Whether all that is called does nothing that a recording does not see."""
        return _are_modes(body, frame) and all(
            self._takes_call(p, body, frame) for p in body.called
        )

    def _takes_call(self, path: tuple[str, ...], body: Body, frame: Frame) -> bool:
        value = value_of(path[0], body.context, frame)
        at = 1
        while at < len(path) and type(value) is Namespace:
            value = value.table.get(path[at], MISSING)
            at += 1
        if at == len(path):
            if type(value) is Function:
                return self._takes_function(value)
            return is_function(path[-1], value) or (value is range and path == ("range",))
        # What is left are attributes of a tensor, and the method.
        return (
            type(value) is Tensor
            and all(part in ATTRIBUTES for part in path[at:-1])
            and is_method(path[-1])
        )

    def _takes_function(self, function: Function) -> bool:
        """Whether a function of the program does, and enter what it reads."""
        body: Body | None = function.body
        if body is None or function.contexts or id(function) in self._entered:
            return body is not None and not function.contexts
        self._entered.add(id(function))
        frame: Frame = {GLOBALS: function.globals}
        values = [value_of(name, body.context, frame) for name in body.read]
        values += [*function.defaults, *function.keyword_defaults.values()]
        return all(self._take(value) for value in values) and self._takes_calls(body, frame)

    def looked_at(self, recording: Recording) -> list[bool]:
        """Which of the gradients here the recorded turn looked at."""
        return [g is not None and recording.uses(g.array) for g in self.grads]

    def follows(self, before: _Standing, needed: list[bool]) -> bool:
        """Whether a turn can start from here as it did from `before`: a gradient may be another
        one where no turn looks at the one that it finds."""
        return self.facts == before.facts and all(
            new is old or not looked_at
            for new, old, looked_at in zip(self.grads, before.grads, needed, strict=True)
        )

    def changes_since(self, before: _Standing) -> list[tuple[Any, str, int]]:
        """By how much each count grew."""
        old = {(id(owner), name): count for owner, name, count in before._counts}
        found: dict[tuple[int, str], tuple[Any, str, int]] = {}
        for owner, name, count in self._counts:
            change = count - old.get((id(owner), name), count)
            if change:
                found[id(owner), name] = (owner, name, change)
        return list(found.values())

    def _take(self, value: object, depth: int = 0) -> bool:
        """Enter a value that the body reads; whether it is of a kind that can be held to."""
        kind = type(value)
        if kind is Tensor:
            assert isinstance(value, Tensor)
            return self._take_tensor(value)
        if isinstance(value, (list, tuple)):
            self.facts.append(id(value))
            if depth == _DEPTH or len(value) > _MANY:
                return False
            return all(self._take(part, depth + 1) for part in value)
        self.facts.append((kind, value) if kind in NUMBERS else id(value))
        return kind in NUMBERS or kind is Namespace or callable(value)

    def _take_tensor(self, t: Tensor) -> bool:
        if type(t.array) is not np.ndarray or t.version is None:
            return False
        ag = t.ag
        self.tensors.append(t)
        self.facts += [id(t), id(t.array), t.layout, t.kind, t.offset]
        self._counts.append((t.version, "n", t.version.n))
        if ag is not None:
            if ag.hooks or ag.after or ag.retains:
                return False
            self.facts += [ag.requires_grad, id(ag.node), ag.nr, ag.grad is None]
            self.grads.append(ag.grad)
            self._counts.append((ag, "times", ag.times))
            if ag.grad is not None:
                self.tensors.append(ag.grad)
                if ag.grad.version is None:
                    return False
                self._counts.append((ag.grad.version, "n", ag.grad.version.n))
        return t.base is None or self._take_tensor(t.base)


def value_of(name: str, context: Context, frame: Frame) -> object:
    """The value of a name as the program would find it now, or MISSING."""
    hops = context.hops(name)
    if hops is None:
        names = frame if context.at_module_level else frame[GLOBALS]
        found = names.get(name, MISSING)
        return lookup(name) if found is MISSING else found
    for _ in range(hops):
        frame = frame[PARENT]
    return frame.get(name, MISSING)


def _are_modes(body: Body, frame: Frame) -> bool:
    for path in body.managers:
        value = value_of(path[0], body.context, frame)
        for part in path[1:]:
            if type(value) is not Namespace:
                return False
            value = value.table.get(part, MISSING)
        if not any(value is functions[name] for name in MODES):
            return False
    return True


def turns_of(
    body: Body, tests: Sequence[Value], iteration: Iterator[Any], save: Store
) -> Turns | None:
    """Who takes the turns of a loop that may be recorded; None if they are few or unknown."""
    if type(iteration) in _COUNTED and length_hint(iteration) > _WORTH:
        return Turns(body, tests, iteration, save)
    return None
