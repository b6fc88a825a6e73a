"""Recording what operations do to arrays, so that a stretch of them can be done again.

While a Recording is under way (``modes.state.recording``) the kinds of operations tell it of every
array that they compute, show in another way or change. It keeps the functions and which of their
operands are memory that was there before, and which were computed on the way. What nobody told it
of is unknown to it: that does no harm unless something depends on it that outlasts the stretch.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from engine import lazy
from engine.storage import BIG, UNTRACKED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from engine.tensor import Tensor

    Run = Callable[..., Any]

_ndarray = np.ndarray


# What a step does: compute, move elements about, or an operation's rule and kernel once more,
# which may find an index out of its range.
COMPUTES, MOVES, REDOES = range(3)


class Departed(Exception):
    """A step cannot go on from what it finds: the stretch does something else this time."""


class _Step:
    """``run`` of the arrays at ``places``; its result goes to ``into``, or, where that is below 0,
    so many of the last arrays are changed instead. ``key`` tells it apart from other steps."""

    __slots__ = ("into", "key", "places", "run", "sort")

    def __init__(self, key: Any, run: Run, places: tuple[int, ...], into: int, sort: int):
        self.key = key
        self.run = run
        self.places = places
        self.into = into
        self.sort = sort


class Recording:
    """The steps of one stretch. ``tensors`` are those that were there before.

    ``failure`` says why the stretch cannot be done again from its steps, if it cannot.
    """

    __slots__ = (
        "_arrays", "_keep", "_keys", "_places", "_roots", "_starts", "_steps", "_tensors", "_used",
        "_writes", "counters", "failure",
    )  # fmt: skip

    def __init__(self, tensors: Iterable[Tensor]):
        self.failure = ""
        # The counters of changes that steps see to themselves, by identity.
        self.counters: dict[int, Any] = {}
        # The array at each place, None where a step computes it; what it is, for comparisons.
        self._arrays: list[Any] = []
        self._keys: list[Any] = []
        self._places: dict[int, int] = {}
        # All arrays that have a place stay alive, so that no other gets their identity.
        self._keep: list[Any] = []
        # For a view of computed memory that memory, and where the view begins in it.
        self._roots: dict[int, tuple[Any, int]] = {}
        self._steps: list[_Step] = []
        self._used: set[int] = set()
        self._writes: dict[int, int] = {}
        self._tensors = list(tensors)
        self._starts = {}
        for t in self._tensors:
            if lazy.is_lazy(t):
                self.fail("a lazy view takes part")
            self._constant(t.array, ("memory", id(t.array)))
            self._starts[id(t.counter)] = 0 if t.counter is None else t.counter.n

    def fail(self, why: str) -> None:
        """Something happened that steps cannot do again."""
        self.failure = self.failure or why

    # What operations tell

    def computed(
        self,
        y: Tensor,
        run: Run,
        arrays: Sequence[Any],
        number: Any = None,
        key: Any = None,
        sort: int = COMPUTES,
    ) -> None:
        """``run`` of ``arrays`` gave the array of ``y``; ``number`` is that of them which stands
        for a Python number. ``key`` identifies what is done where ``run`` is made anew each time.
        """
        if number is not None and id(number) not in self._places:
            self._constant(number, ("number", number.dtype.char, number.tobytes()))
        self._tensors.append(y)
        self._result(y.array, run if key is None else key, run, arrays, sort)

    def computed_parts(
        self, ys: Sequence[Tensor], run: Run, arrays: Sequence[Any], key: Any
    ) -> None:
        """As ``computed`` for several results: ``run`` gives their arrays in order."""
        self._tensors += ys
        whole = [y.array for y in ys]
        if id(whole[0]) in self._places or not self._result(whole, key, run, arrays, REDOES):
            return
        for at, array in enumerate(whole):
            self._result(array, ("part", at), itemgetter(at), (whole,), MOVES)

    def viewed(self, x: Tensor, y: Tensor, move: int) -> None:
        """``y`` shows the memory of ``x``, from ``move`` elements on."""
        self._tensors.append(y)
        place = self._places.get(id(x.array))
        if place is None or y.array is None or id(y.array) in self._places:
            return
        layout = y.layout
        if self._arrays[place] is not None:
            self._constant(y.array, (self._keys[place], y.kind, layout, move))
            return
        # Views of views are made from the memory itself, which is contiguous.
        root, start = self._roots.get(place, (x.array, 0))
        if y.kind is not x.kind or y.kind.opaque or not root.flags.c_contiguous:
            return
        start += move * y.kind.np.itemsize
        shape, dtype, strides = layout.shape, y.kind.np, y.array.strides
        key = ("view", y.kind, layout, start)
        if self._result(
            y.array, key, lambda a: _ndarray(shape, dtype, a, start, strides), (root,), MOVES
        ):
            self._roots[self._places[id(y.array)]] = root, start

    def copied(self, x: Any, y: Any) -> None:
        """The array ``y`` is a copy of the array ``x``, which may be one that never changes."""
        if id(x) not in self._places:
            return
        self._result(y, "copy", lambda a: a.copy(), (x,), MOVES)

    def fresh(self, kept: Any, y: Any) -> None:
        """The array ``y`` is a copy of one of ours that nobody changes."""
        self._constant(kept, ("ours", id(kept)))
        self.copied(kept, y)

    def changed(
        self, x: Tensor, key: Any, run: Run, arrays: Sequence[Any], sort: int = COMPUTES
    ) -> None:
        """``run`` of ``arrays`` and the array of ``x`` changed the latter in place."""
        self._tensors.append(x)
        places = self._find((*arrays, x.array))
        if places is None:
            return self.fail("an unknown operand was stored")
        self._steps.append(_Step(key, run, places, -1, sort))
        counter = id(x.counter)
        self._writes[counter] = self._writes.get(counter, 0) + 1
        return None

    def updated(self, tensors: Sequence[Tensor], key: Any, run: Run, arrays: Sequence[Any]) -> None:
        """``run`` of ``arrays`` changed ``tensors``, and will count that by itself."""
        places = self._find((*arrays, *[t.array for t in tensors]))
        if places is None:
            self.fail("an unknown operand was stored")
            return
        count = len(arrays)
        self._steps.append(
            _Step(key, lambda *given: run(*given[:count]), places, -len(tensors), COMPUTES)
        )
        self.counters.update((id(t.counter), t.counter) for t in tensors)

    def numbers(self, operands: Sequence[Any], arrays: Sequence[Any]) -> None:
        """Those ``arrays`` whose operand is a Python number stand for that."""
        for operand, array in zip(operands, arrays, strict=True):
            if array is not None and operand.__class__ in (bool, int, float, complex):
                self._constant(array, ("number", array.dtype.char, array.tobytes()))

    # Afterwards

    def close(self) -> None:
        """The stretch is over: see that every change of a counter was told of."""
        seen: set[int] = set()
        for t in self._tensors:
            counter = t.counter
            if counter is None or id(counter) in seen or id(counter) in self.counters:
                continue
            seen.add(id(counter))
            changes = counter.n - self._starts.get(id(counter), 0)
            if counter is UNTRACKED or changes != self._writes.get(id(counter), 0):
                self.fail("something was changed by an operation that does not tell")
        if self._has_loose_index():
            self.fail("an index may leave its range")

    def _has_loose_index(self) -> bool:
        """Whether an operation looks at integers that a later turn may have computed otherwise:
        it could refuse them, which must happen in the body. What kernels give (the place of a
        maximum) is in its range."""
        written = self.written()
        fixed = {
            place
            for place in self._used
            if self._arrays[place] is not None
            and not any(np.may_share_memory(self._arrays[place], w) for w in written)
        }
        loose = {p for p in self._used if self._arrays[p] is not None and p not in fixed}
        for step in self._steps:
            if step.sort == REDOES and any(p in loose and self._is_integer(p) for p in step.places):
                return True
            if step.into < 0:
                continue
            if fixed.issuperset(step.places):
                fixed.add(step.into)
            elif step.sort == COMPUTES or (step.sort == MOVES and loose.intersection(step.places)):
                loose.add(step.into)
        return False

    def _is_integer(self, place: int) -> bool:
        array = self._keep[place]
        return array.__class__ is not list and array.dtype.kind in "iu"

    def uses(self, array: Any) -> bool:
        """Whether some step looks at that array."""
        place = self._places.get(id(array))
        return place is not None and place in self._used

    def same(self, other: Recording) -> bool:
        """Whether two stretches did the same to the same memory."""
        return bool(self._signature() == other._signature())

    def written(self) -> list[Any]:
        """The arrays from before whose elements the steps change."""
        places = {p for step in self._steps if step.into < 0 for p in step.places[step.into :]}
        return [self._arrays[p] for p in sorted(places) if self._arrays[p] is not None]

    def steps(self) -> tuple[list[Callable[[], None]], list[Callable[[], None]]]:
        """Functions that, called in order, do the stretch again on the memory as it is then:
        those that leave it alone, and all from the first one on that changes it."""
        held = list(self._arrays)
        closures = [_closure(step, held) for step in self._steps]
        for at, step in enumerate(self._steps):
            changed = step.places[step.into :] if step.into < 0 else ()
            if any(self._arrays[place] is not None for place in changed):
                return closures[:at], closures[at:]
        return closures, []

    def _signature(self) -> Any:
        steps = [(step.key, step.places, step.into) for step in self._steps]
        return steps, [key if p in self._used else None for p, key in enumerate(self._keys)]

    def _constant(self, array: Any, key: Any) -> None:
        if array is None or id(array) in self._places:
            return
        self._places[id(array)] = len(self._arrays)
        self._arrays.append(array)
        self._keys.append(key)
        self._keep.append(array)

    def _find(self, arrays: Sequence[Any]) -> tuple[int, ...] | None:
        places = tuple([self._places.get(id(a), -1) for a in arrays])
        if -1 in places:
            return None
        self._used.update(places)
        return places

    def _result(self, y: Any, key: Any, run: Run, arrays: Sequence[Any], sort: int) -> bool:
        """Enter the step that gives ``y``, an array or a list of them; whether it is known how."""
        places = self._find(arrays)
        if places is None or y is None:
            return False
        if y.__class__ is not list and y.nbytes > BIG:
            self.fail("large arrays gain nothing")
        into = self._places[id(y)] = len(self._arrays)
        self._arrays.append(None)
        self._keys.append("computed")
        self._keep.append(y)
        self._steps.append(_Step(key, run, places, into, sort))
        return True


def _closure(step: _Step, held: list[Any]) -> Callable[[], None]:
    """The step as a function without arguments over the arrays ``held`` by place."""
    run, places, into = step.run, step.places, step.into
    if into < 0:

        def change() -> None:
            run(*[held[p] for p in places])

        return change
    if len(places) == 1:
        (a,) = places

        def one() -> None:
            held[into] = run(held[a])

        return one
    if len(places) == 2:
        a, b = places

        def two() -> None:
            held[into] = run(held[a], held[b])

        return two

    def many() -> None:
        held[into] = run(*[held[p] for p in places])

    return many
