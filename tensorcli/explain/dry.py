"""shape(expr): what an expression would make, evaluated on meta; and the holes of an expression.

The names that the expression sees are replaced by tensors without data, so that nothing is
computed and nothing of the session changes.
"""

from __future__ import annotations

from copy import copy
from itertools import product

from engine import device as devices
from engine.modes import state
from engine.tensor import Tensor, kind_of, wrap
from tensorcli.findings import Fit, HolesResult, ShapeResult
from tensorcli.language.compiling import GLOBALS, PARENT
from tensorcli.language.functions import Function
from tensorcli.language.running import now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from tensorcli.language.compiling import Frame
    from tensorcli.language.forms import Argument

MOST_DIMS = 4
MOST_TRIES = 6000
MOST_FITS = 8
# Sizes that nothing else has: where one fits, any size does. Each has its letter.
FREE = {9973: "n", 9967: "m", 9949: "k"}


def shape(argument: Argument, frame: Frame, line: int | None) -> ShapeResult:
    """Shape, dtype, strides and cost of an expression.

    Raises what the expression raises, and TypeError where its value is no tensor. One that looks
    at values is computed.
    """
    try:
        value = on_meta(lambda: argument.value(without_data(frame)))
    except Exception as exc:
        if "meta" not in str(exc).lower():
            raise
        value = argument.value(frame)
    if not isinstance(value, Tensor):
        kind = type(value).__name__
        raise TypeError(f"shape() describes a tensor, '{argument.text}' is a {kind}")
    layout = value.layout
    size = layout.numel * value.dtype.itemsize
    cost = _operations(argument, frame)
    return ShapeResult(
        line, argument.text, layout.shape, value.dtype.name, layout.strides, size, cost
    )


def on_meta(evaluate: Callable[[], Any]) -> Any:
    """A value with every new tensor on meta."""
    outer, state.default_device = state.default_device, devices.device("meta")
    was_dry, now.is_dry = now.is_dry, True
    try:
        return evaluate()
    finally:
        state.default_device = outer
        now.is_dry = was_dry


def _operations(argument: Argument, frame: Frame) -> int:
    """The operations of the expression, counted on meta; 0 where that fails, or where functions
    of the program are called, which are compiled already."""
    from tensorcli.explain.checking import Counting
    from tensorcli.language.forms import visible_names
    from tensorcli.language.program import compile_program
    from tensorcli.language.running import Silence

    counter = Counting()
    try:
        program = compile_program(
            f"({argument.text}\n)",
            watch=lambda node, value: counter.expression(0, argument.source, node, value),
        )
        names = without_data(visible_names(frame))
        on_meta(lambda: program.run(names, Silence()))
    except Exception:
        return 0
    return 0 if counter.calls else counter.operations


def without_data(frame: Frame) -> Frame:
    """A copy of a frame, and of those around it, whose tensors are on meta."""
    return _Copies().frame(frame)


class _Copies:
    """Copies in the making: one for each frame, tensor and function, however often it is met."""

    def __init__(self) -> None:
        self.known: dict[int, Any] = {}
        self.kept: list[Any] = []

    def frame(self, frame: Frame) -> Frame:
        found = self.known.get(id(frame))
        if found is not None:
            return found  # type: ignore[no-any-return]
        made: Frame = {}
        self._keep(frame, made)
        for name, value in frame.items():
            made[name] = self.frame(value) if name in (GLOBALS, PARENT) else self.value(value)
        return made

    def _keep(self, original: Any, made: Any) -> None:
        self.known[id(original)] = made
        self.kept.append(original)

    def value(self, value: Any) -> Any:
        if id(value) in self.known:
            return self.known[id(value)]
        made = value
        if isinstance(value, Tensor):
            made = _empty(value)
        elif type(value) is Function:
            made = copy(value)
            self._keep(value, made)
            made.globals, made.parent = self.frame(value.globals), self.frame(value.parent)
            made.defaults = tuple(self.value(item) for item in value.defaults)
            return made
        elif type(value) is list or type(value) is tuple:
            if len(value) <= 1000:
                made = type(value)(self.value(item) for item in value)
        elif type(value) is dict and len(value) <= 1000:
            made = {key: self.value(item) for key, item in value.items()}
        else:
            return value
        self._keep(value, made)
        return made


def _empty(tensor: Tensor) -> Tensor:
    """A tensor as that one, on meta."""
    kind = kind_of(tensor.dtype, devices.device("meta"))
    made = wrap(None, kind, tensor.layout)
    made.offset = tensor.offset
    if tensor.requires_grad and (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
        made.requires_grad_()
    return made


# -- holes -----------------------------------------------------------------------------------


def holes(argument: Argument, names: list[str], frame: Frame, line: int | None) -> HolesResult:
    """The shapes with which the expression can be evaluated where it has question marks."""
    base = without_data(frame)
    for dtype in ("float32", "int64"):
        found = list(_fits(argument, names, base, dtype))
        if found:
            break
    chosen = _distinct(found)
    least = min((_dims(fit) for fit in chosen), default=0)
    chosen = [fit for fit in chosen if _dims(fit) <= least + 2]
    return HolesResult(
        line,
        argument.text.strip(),
        tuple(chosen[:MOST_FITS]),
        len(chosen) > MOST_FITS,
    )


def _fits(argument: Argument, names: list[str], base: Frame, dtype: str) -> Iterator[Fit]:
    sizes = _sizes(argument, base)
    depth = MOST_DIMS
    shapes: list[tuple[int, ...]] = []
    while depth >= 0:
        shapes = [s for ndim in range(depth + 1) for s in product(sizes, repeat=ndim)]
        if len(shapes) ** len(names) <= MOST_TRIES:
            break
        depth -= 1
    combinations = sorted(product(shapes, repeat=len(names)), key=_order)
    for combination in combinations:
        frame = dict(base)
        for name, sizes_of_hole in zip(names, combination, strict=True):
            frame[name] = _hole(sizes_of_hole, dtype)
        try:
            value = on_meta(lambda frame=frame: argument.value(frame))  # type: ignore[misc]
        except Exception:
            continue
        if isinstance(value, Tensor):
            yield _lettered(combination, value.layout.shape)


def _hole(sizes: tuple[int, ...], dtype: str) -> Tensor:
    from engine import dtypes, layout

    kind = kind_of(dtypes.by_name[dtype], devices.device("meta"))
    return wrap(None, kind, layout.contiguous(sizes))


def _sizes(argument: Argument, frame: Frame) -> list[int]:
    """The sizes to try: those that occur in the expression's tensors, 1, and free ones."""
    import ast

    found: dict[int, None] = {}
    for node in ast.walk(argument.node):
        if isinstance(node, ast.Constant) and type(node.value) is int and 1 < node.value < 9000:
            found[node.value] = None
        elif isinstance(node, ast.Name):
            value = _looked_up(node.id, frame)
            if isinstance(value, Tensor):
                found.update(dict.fromkeys(s for s in value.layout.shape if s > 1))
    for part in _parts(argument, frame):
        found.update(dict.fromkeys(s for s in part if s > 1))
    return [*list(found)[:8], 1, *list(FREE)[:2]]


def _looked_up(name: str, frame: Frame) -> Any:
    while True:
        if name in frame:
            return frame[name]
        if PARENT not in frame:
            return None
        frame = frame[PARENT]


def _parts(argument: Argument, frame: Frame) -> Iterator[tuple[int, ...]]:
    """The shapes of the pieces of the expression that have no hole."""
    import ast

    from tensorcli.language.compiling import Context, expression

    context = Context(argument.source)
    for node in ast.walk(argument.node):
        if isinstance(node, ast.BinOp | ast.Call | ast.Subscript | ast.Attribute) and not any(
            isinstance(part, ast.Name) and part.id.startswith("?") for part in ast.walk(node)
        ):
            try:
                value = on_meta(lambda node=node: expression(node, context)(dict(frame)))  # type: ignore[misc]
            except Exception:
                continue
            if isinstance(value, Tensor):
                yield value.layout.shape


def _order(combination: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """Few dimensions first, then few sizes of 1, then few free ones."""
    sizes = [size for shape in combination for size in shape]
    return (len(sizes), sizes.count(1), sum(size in FREE for size in sizes))


def _lettered(combination: tuple[tuple[int, ...], ...], result: tuple[int, ...]) -> Fit:
    letters: dict[int, str] = {}
    names = iter(FREE.values())
    for shape in combination:
        for size in shape:
            if size in FREE and size not in letters:
                letters[size] = next(names)

    def word(size: int) -> int | str:
        """A size that depends on a free one, by what it is more or how often as large."""
        for free, letter in letters.items():
            if size == free:
                return letter
            if size > 9000 and size % free == 0:
                return f"{size // free}{letter}"
            if size > 9000 and 0 < abs(size - free) < 500 and size not in FREE:
                return f"{letter}{size - free:+d}"
        return size

    def named(shape: tuple[int, ...]) -> tuple[int | str, ...]:
        return tuple(map(word, shape))

    return Fit(tuple(map(named, combination)), named(result))


def _distinct(fits: list[Fit]) -> list[Fit]:
    """The fits without those that another one covers: a letter stands for any size."""
    unique = sorted(dict.fromkeys(fits), key=_plainness)
    return [
        fit
        for fit in unique
        if not any(other is not fit and _covers(other, fit) for other in unique)
    ]


def _plainness(fit: Fit) -> tuple[int, int]:
    """Those without sizes of 1 first: they are broadcast, which is seldom what is looked for."""
    sizes = [size for hole in fit.holes for size in hole]
    return sizes.count(1), len(sizes)


def _dims(fit: Fit) -> int:
    return sum(map(len, fit.holes))


def _covers(general: Fit, special: Fit) -> bool:
    meaning: dict[int | str, int | str] = {}
    pairs = zip((*general.holes, general.result), (*special.holes, special.result), strict=True)
    for pattern, shape in pairs:
        if len(pattern) != len(shape):
            return False
        for one, other in zip(pattern, shape, strict=True):
            if one != other and (
                not isinstance(one, str) or meaning.setdefault(one, other) != other
            ):
                return False
            if isinstance(one, str) and meaning.setdefault(one, other) != other:
                return False
    return general != special
