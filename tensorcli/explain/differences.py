"""check_grad(y): the gradients of named leaves beside slopes from finite differences.

The program is run again with one element of a leaf moved a little, at the moment before the leaf
is first used for the value; what the program did before that, the steps of a training loop among
it, is left as it was.
"""

from __future__ import annotations

import time

import numpy as np

from engine import backward
from engine.tensor import Tensor
from tensorcli.explain import again
from tensorcli.explain.names import named_tensors
from tensorcli.explain.watching import COMPOUND
from tensorcli.findings import CheckedGradient, GradientCheckResult
from tensorcli.language.forms import visible_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tensorcli.explain.replay import Place, Replay
    from tensorcli.language.compiling import Frame
    from tensorcli.language.forms import Argument

TIME = 4.0
"""Seconds for all runs together; fewer elements are compared where that is too little."""
MOST_ELEMENTS = 200

# dtype -> (step for a value of size 1, relative tolerance); the step balances what the dtype
# rounds away against what the curve bends.
STEPS = {
    "float64": (6e-6, 1e-5),
    "float32": (5e-3, 5e-3),
    "float16": (6e-2, 6e-2),
    "bfloat16": (1.2e-1, 1.2e-1),
}
NOISE = {"float64": 2.3e-16, "float32": 1.2e-7, "float16": 9.8e-4, "bfloat16": 7.9e-3}


class _Leaf:
    """A leaf to be checked: its name, and the step of the program at which it is moved."""

    def __init__(self, name: str, tensor: Tensor, step: int, after: bool, recorded: bool) -> None:
        self.name = name
        self.tensor = tensor
        self.step = step
        self.after = after
        self.recorded = recorded


def explain(
    tensor: Tensor, argument: Argument, replay: Replay, line: int | None
) -> GradientCheckResult:
    """Compare as many elements as time allows. Raises TypeError where there is no gradient."""
    if not tensor.dtype.is_floating_point:
        raise TypeError(f"check_grad() compares slopes of real numbers, not of {tensor.dtype.name}")
    first = _History(replay.texts, argument)
    again.run(first, replay)
    if not first.found or not isinstance(first.value, Tensor):
        raise TypeError(f"check_grad() could not run the program up to '{argument.text}' again")
    leaves = _leaves(first)
    base = _Moved(replay.texts, argument, leaves)
    started = time.perf_counter()
    again.run(base, replay)
    taken = max(time.perf_counter() - started, 1e-4)
    gradients = _gradients(base, leaves)
    budget = max(int(TIME / taken / 2), len(leaves))
    share = max(min(budget, MOST_ELEMENTS) // max(len(leaves), 1), 1)
    value = _total(base.value)
    rows = tuple(
        _check(leaf, base, gradient, share, argument, replay, value)
        for leaf, gradient in zip(leaves, gradients, strict=True)
    )
    size = STEPS.get(tensor.dtype.name, STEPS["float32"])[0]
    summed = tensor.layout.numel != 1
    # What the value neither was recorded to depend on nor does is nobody's question.
    kept = tuple(
        row for row, leaf in zip(rows, leaves, strict=True) if leaf.recorded or not row.agrees
    )
    return GradientCheckResult(line, argument.text, value, summed, size, kept)


def _total(value: Any) -> float:
    """The sum of the elements, in float64: the differences lose enough as it is."""
    if not isinstance(value, Tensor) or value.array is None:
        return float("nan")
    return float(np.asarray(value.array).astype(np.float64).sum())


class _History(again.Upto):
    """Notes when each leaf came up, and how many nodes there were before each statement."""

    def __init__(self, texts: list[str], argument: Argument) -> None:
        super().__init__(texts, argument)
        self.sequences: list[int] = []
        self.born: dict[int, tuple[Tensor, int]] = {}

    def before(self, place: Place, frame: Any) -> None:
        if not isinstance(place.node, COMPOUND):
            from engine.modes import state

            self.sequences.append(state.sequence)

    def after(self, place: Place, frame: Any) -> None:
        if isinstance(place.node, COMPOUND):
            return
        for _, tensor in named_tensors(visible_names(frame)):
            if _is_leaf(tensor):
                self.born.setdefault(id(tensor), (tensor, len(self.sequences) - 1))

    def step_of(self, sequence: int) -> int:
        """The statement that recorded the node of that number."""
        from bisect import bisect_left

        return bisect_left(self.sequences, sequence) - 1


def _is_leaf(tensor: Tensor) -> bool:
    ag = tensor.ag
    return ag is not None and ag.requires_grad and ag.node is None and tensor.array is not None


def _leaves(history: _History) -> list[_Leaf]:
    """The named leaves, in the graph and outside of it."""
    first_use: dict[int, int] = {}
    seen: set[int] = set()
    todo: list[Any] = [history.value.grad_fn]
    while todo:
        node = todo.pop()
        if node is None or isinstance(node, Tensor) or id(node) in seen:
            continue
        seen.add(id(node))
        for target in node.next:
            if isinstance(target, Tensor):
                known = first_use.get(id(target), node.sequence)
                first_use[id(target)] = min(known, node.sequence)
            todo.append(target)
    leaves: list[_Leaf] = []
    named: set[int] = set()
    for name, tensor in named_tensors(history.names):
        if not _is_leaf(tensor) or id(tensor) in named or name == "_":
            continue
        named.add(id(tensor))
        if id(tensor) in first_use:
            step = history.step_of(first_use[id(tensor)])
            leaves.append(_Leaf(name, tensor, step, False, True))
        elif id(tensor) in history.born:
            leaves.append(_Leaf(name, tensor, history.born[id(tensor)][1], True, False))
    return leaves


class _Moved(again.Upto):
    """Runs the program with an element of a leaf moved; `moved` are the leaves that it met."""

    def __init__(
        self,
        texts: list[str],
        argument: Argument,
        leaves: list[_Leaf],
        element: int | None = None,
        by: float = 0.0,
    ) -> None:
        super().__init__(texts, argument)
        self.leaves = leaves
        self.element = element
        self.by = by
        self.step = -1
        self.met: dict[str, Tensor] = {}
        self.distance = 0.0

    def before(self, place: Place, frame: Frame) -> None:
        if isinstance(place.node, COMPOUND):
            return
        self.step += 1
        self._meet(frame, after=False)

    def after(self, place: Place, frame: Frame) -> None:
        if not isinstance(place.node, COMPOUND):
            self._meet(frame, after=True)

    def _meet(self, frame: Frame, *, after: bool) -> None:
        for leaf in self.leaves:
            if leaf.step == self.step and leaf.after is after and leaf.name not in self.met:
                found = dict(named_tensors(visible_names(frame))).get(leaf.name)
                if found is not None and found.array is not None:
                    self.met[leaf.name] = found
                    if self.element is not None:
                        self._move(found, self.element)

    def _move(self, tensor: Tensor, element: int) -> None:
        index = np.unravel_index(element, tensor.layout.shape)
        before = float(tensor.array[index])
        tensor.array[index] = before + self.by
        self.distance = float(tensor.array[index]) - before


def _gradients(base: _Moved, leaves: list[_Leaf]) -> list[Tensor | None]:
    """The leaves' gradients of the sum of the value, those that a rerun met again."""
    value = base.value
    wanted = [base.met.get(leaf.name) for leaf in leaves]
    inputs = [t for t in wanted if t is not None]
    if not inputs or not isinstance(value, Tensor) or not value.requires_grad:
        return [None] * len(leaves)
    start = value.detach().new_ones(value.layout.shape)
    found = backward.run([value], [start], retain=True, inputs=inputs, accumulate=False)
    by_id = {id(t): g for t, g in zip(inputs, found, strict=True)}
    return [None if t is None else by_id[id(t)] for t in wanted]


def _check(
    leaf: _Leaf,
    base: _Moved,
    gradient: Tensor | None,
    share: int,
    argument: Argument,
    replay: Replay,
    value: float,
) -> CheckedGradient:
    shape = leaf.tensor.layout.shape
    met = base.met.get(leaf.name)
    if met is None or leaf.tensor.layout.shape != met.layout.shape:
        note = "is not there under this name when it is first used"
        return _row(leaf, shape, None, (0.0, 0.0, 0.0, 0.0), 0, agrees=True, note=note)
    if leaf.recorded and gradient is None:
        return _row(leaf, shape, None, (0.0, 0.0, 0.0, 0.0), 0, agrees=True, note="was rebound")
    if not np.isfinite(value):
        note = f"{argument.text} is not finite, trace_nan({argument.text}) says why"
        return _row(leaf, shape, None, (0.0, 0.0, 0.0, 0.0), 0, agrees=True, note=note)
    numel = leaf.tensor.layout.numel
    slopes = (
        np.zeros(numel)
        if gradient is None
        else np.asarray(gradient.array).astype(np.float64).reshape(-1)
    )
    size, relative = STEPS.get(leaf.tensor.dtype.name, STEPS["float32"])
    noise = NOISE.get(leaf.tensor.dtype.name, NOISE["float32"])
    worst: tuple[float, int, tuple[float, float, float, float]] | None = None
    elements = _chosen(slopes, share)
    scale = float(np.abs(np.asarray(base.value.array).astype(np.float64)).sum()) or noise
    agrees = True
    for element in elements:
        at = float(np.asarray(leaf.tensor.array).reshape(-1)[element])
        step = size * max(1.0, abs(at))
        ups = [_run_moved(leaf, element, by, argument, replay) for by in (step, -step)]
        (up, right), (down, left) = ups
        difference = (up - down) / (right - left)
        sides = sorted(((up - value) / right, (down - value) / left))
        slope = float(slopes[element])
        rounding = 4 * noise * max(abs(up), abs(down), scale) / step
        tolerance = rounding + relative * max(abs(slope), abs(difference))
        error = abs(slope - difference)
        # At a kink any slope between those of both sides will do.
        inside = sides[0] - tolerance <= slope <= sides[1] + tolerance
        fine = error <= tolerance or (inside and not _smooth(sides, tolerance, difference))
        if not np.isfinite(difference):
            fine = not np.isfinite(slope)
        agrees = agrees and fine
        rank = error / tolerance if not fine else error / tolerance / 1e6
        if np.isnan(rank):
            rank = 0.0
        if worst is None or rank > worst[0]:
            worst = (rank, element, (slope, difference, error, tolerance))
    note = ""
    if gradient is None and not agrees:
        note = (
            f"{argument.text} depends on it, but not by what was recorded: a detach, a no_grad "
            "block, .data, or a conversion to numbers or integers lies between"
        )
    index = None if worst is None else tuple(map(int, np.unravel_index(worst[1], shape)))
    numbers = (0.0, 0.0, 0.0, 0.0) if worst is None else worst[2]
    return _row(leaf, shape, index, numbers, len(elements), agrees=agrees, note=note or None)


def _smooth(sides: list[float], tolerance: float, difference: float) -> bool:
    """Whether the slopes of both sides are near each other, so that there is no kink."""
    return abs(sides[1] - sides[0]) <= 4 * tolerance + 0.05 * abs(difference)


def _run_moved(
    leaf: _Leaf, element: int, by: float, argument: Argument, replay: Replay
) -> tuple[float, float]:
    """The value with an element moved, and how far it really went."""
    watcher = _Moved(replay.texts, argument, [leaf], element, by)
    again.run(watcher, replay)
    return (_total(watcher.value) if watcher.found else float("nan")), watcher.distance or by


def _chosen(slopes: Any, share: int) -> list[int]:
    """The elements to compare: all, or those of the largest gradients and some in between."""
    if len(slopes) <= share:
        return list(range(len(slopes)))
    largest = np.argsort(-np.abs(slopes), kind="stable")[: (share + 1) // 2]
    spread = np.linspace(0, len(slopes) - 1, share - len(largest) + 1).astype(int)[:-1]
    return sorted({*map(int, largest), *map(int, spread)})


def _row(
    leaf: _Leaf,
    shape: tuple[int, ...],
    index: tuple[int, ...] | None,
    numbers: tuple[float, float, float, float],
    compared: int,
    *,
    agrees: bool,
    note: str | None,
) -> CheckedGradient:
    slope, difference, error, tolerance = numbers
    return CheckedGradient(
        name=leaf.name,
        shape=shape,
        index=index,
        gradient=slope if compared else None,
        difference=difference if compared else None,
        error=error if compared else None,
        tolerance=tolerance if compared else None,
        compared=compared,
        agrees=agrees,
        note=note,
    )
