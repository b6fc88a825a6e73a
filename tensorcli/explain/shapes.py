"""Shapes that do not go together: the rule that was broken, who broke it, and what would do.

Each function takes the failure and its exception, and answers notes, fixes that were tried, and
the shapes to be shown under each other.
"""

from __future__ import annotations

import ast
import re

from tensorcli.diagnostics import ShapeLine
from tensorcli.explain.layout import first_break, row_major
from tensorcli.explain.merging import blocking, without_minus_one

# How far a divisor is looked for: the number asked for may have ten digits.
_NEAR = 10_000

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tensorcli.explain.trial import Failure, Fix


class Reason:
    """Why an operation failed, and what would not."""

    __slots__ = ("fixes", "notes", "shapes")

    def __init__(
        self,
        notes: list[str] | None = None,
        fixes: list[Fix] | None = None,
        shapes: list[ShapeLine] | None = None,
    ) -> None:
        self.notes = notes or []
        self.fixes = fixes or []
        self.shapes = shapes or []


Tries = "Iterator[Fix | None]"

OPERATORS = {
    "Add": "+",
    "Sub": "-",
    "Mult": "*",
    "Div": "/",
    "FloorDiv": "//",
    "Mod": "%",
    "Pow": "**",
    "MatMult": "@",
    "BitAnd": "&",
    "BitOr": "|",
    "BitXor": "^",
    "LShift": "<<",
    "RShift": ">>",
}


def short(text: str) -> str:
    """An expression as a sentence can hold it."""
    flat = " ".join(text.split())
    return flat if len(flat) <= 40 else flat[:37] + "..."


def shape_of(failure: Failure, number: int) -> tuple[int, ...]:
    shape: tuple[int, ...] = failure.parts[number].value.layout.shape  # type: ignore[attr-defined]  # tensors only
    return shape


def named(failure: Failure, number: int) -> str:
    return f"`{short(failure.parts[number].text)}`"


def pair_with(failure: Failure, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, int] | None:
    """The two operands that have these shapes, else the only two tensors there are."""
    shapes = {number: tuple(t.layout.shape) for number, t in failure.tensors}
    for i, first in shapes.items():
        for j, second in shapes.items():
            if i != j and (first, second) == (a, b):
                return (i, j)
    for i, first in shapes.items():
        for j, second in shapes.items():
            if i != j and (first, second) == (b, a):
                return (i, j)
    if len(shapes) == 2:
        i, j = shapes
        return (i, j)
    return None


# -- broadcasting ----------------------------------------------------------------------------


def broadcast(failure: Failure, exc: Any) -> Reason:
    a, b = exc.shapes
    left, right = (_size(shape, exc.dim, max(len(a), len(b))) for shape in (a, b))
    rule = "sizes are matched from the right and must be equal or 1: "
    pair = pair_with(failure, a, b)
    if pair is None:
        note = f"{rule}in dimension {exc.dim} of the result {left} meets {right}"
        return Reason([note])
    if shape_of(failure, pair[0]) == b and a != b:
        a, b, left, right = b, a, right, left
    width = max(len(shape_of(failure, n)) for n in pair)
    # Of matrices only the batches are broadcast, and only their shapes are in the error.
    matrix = 2 if failure.operation in ("MatMult", "matmul") else 0
    dim = exc.dim + width - matrix - max(len(a), len(b))
    lines = [_line(failure, n, dim, width) for n in pair]
    i, j = pair
    note = (
        f"{rule}in dimension {dim} of the result, "
        f"{left} of {named(failure, i)} meets {right} of {named(failure, j)}"
    )
    if failure.operation in COMPARING:
        note = f"{note}; {failure.operation}() compares what is in the same place"
        return Reason([note], failure.first(_as_other(failure, i, j)), lines)
    return Reason([note], failure.first(_broadcast_tries(failure, i, j)), lines)


# Another dimension would make these run, and compare each element with every other.
COMPARING = frozenset(
    "mse_loss l1_loss smooth_l1_loss huber_loss allclose isclose kl_div poisson_nll_loss".split()
)


def _as_other(failure: Failure, i: int, j: int) -> Iterator[Fix | None]:
    for number, other in ((j, i), (i, j)):
        yield failure.with_parts({number: f"{{}}.view_as({failure.parts[other].text})"})


def _size(shape: tuple[int, ...], dim: int, width: int) -> str:
    at = dim - width + len(shape)
    return "nothing" if at < 0 else str(shape[at])


def _line(failure: Failure, number: int, dim: int, width: int) -> ShapeLine:
    shape = shape_of(failure, number)
    at = dim - width + len(shape)
    return ShapeLine(failure.parts[number].text, shape, at if at >= 0 else None)


def _broadcast_tries(failure: Failure, i: int, j: int) -> Iterator[Fix | None]:
    """Another dimension for the operand that lacks one, or dimensions swapped."""
    for number, other in ((j, i), (i, j)):
        own, others = shape_of(failure, number), shape_of(failure, other)
        if 0 < len(own) < len(others):
            for dim in range(1, len(own) + 1):
                yield failure.with_parts({number: f"{{}}.unsqueeze({dim})"})
    for number, other in ((j, i), (i, j)):
        own, others = shape_of(failure, number), shape_of(failure, other)
        if len(own) == len(others) == 2:
            yield failure.with_parts({number: "{}.t()"})
        elif len(own) == len(others) > 2:
            yield failure.with_parts({number: "{}.mT"})
    yield from out_of_place(failure)
    for number, other in ((j, i), (i, j)):
        own, others = shape_of(failure, number), shape_of(failure, other)
        if len(own) == len(others):
            yield failure.with_parts({number: "{}.unsqueeze(1)"})
            if len(own) == 1 and max(own[0], others[0]) <= 2 * min(own[0], others[0]):
                yield failure.with_parts({number: f"{{}}[:{others[0]}]"})


def out_of_place(failure: Failure) -> Iterator[Fix | None]:
    """`a = a + b` for `a += b`, `a.add(b)` for `a.add_(b)`."""
    node = failure.node
    if isinstance(node, ast.AugAssign):
        sign = OPERATORS[type(node.op).__name__]
        if len(failure.parts) == 2:
            yield failure.as_written(f"{{0}} = {{0}} {sign} {{1}}")
    elif failure.operation.endswith("_"):
        own = failure.number_of(getattr(getattr(node, "func", None), "value", None))
        if own is not None and isinstance(failure.parts[own].node, ast.Name):
            rest = failure.with_parts({}, function=failure.operation[:-1])
            if rest is not None:
                yield failure.assigned(own, failure.operation[:-1])
        yield failure.with_parts({}, function=failure.operation[:-1])


def grown(failure: Failure, exc: Any) -> Reason:
    """An in-place operation whose result would be larger than its destination."""
    found = re.search(r"shape (\[.*?\]) doesn't match the broadcast shape (\[.*\])", str(exc))
    if found is None:
        return Reason()
    own, whole = found.groups()
    what = f"{named(failure, 0)} is {own}" if failure.parts else f"the destination is {own}"
    note = f"{what} and stays so in an in-place operation; the result would be {whole}"
    shapes = [ShapeLine(failure.parts[n].text, t.layout.shape) for n, t in failure.tensors]
    return Reason([note], failure.first(out_of_place(failure)), shapes)


# -- joining ---------------------------------------------------------------------------------


def joining(failure: Failure, exc: Any) -> Reason:
    tensors = failure.tensors
    operation = failure.operation
    if not tensors:
        return Reason()
    if "must be tuple of Tensors" in str(exc):
        text = failure.source.segment(failure.node.func)  # type: ignore[attr-defined]  # a call
        numbers = ", ".join(f"{{{number}}}" for number, _ in tensors)
        note = f"{operation}() takes its tensors in one list or tuple"
        return Reason([note], failure.first([failure.as_written(f"{text}([{numbers}])")]))
    shapes = [ShapeLine(failure.parts[n].text, t.layout.shape) for n, t in tensors]
    first = tuple(tensors[0][1].layout.shape)
    found = re.search(r"except in dimension (\d+).*tensor number (\d+)", str(exc))
    notes = []
    if found is not None and int(found.group(2)) < len(tensors):
        dim, number = int(found.group(1)), int(found.group(2))
        other = tuple(tensors[number][1].layout.shape)
        shapes = [
            ShapeLine(row.text, row.shape, _first_difference(first, other, dim))
            if index in (0, number)
            else row
            for index, row in enumerate(shapes)
        ]
        notes.append(f"only dimension {dim}, along which they are joined, may differ")
    elif "equal size" in str(exc):
        notes.append("stack() makes a new dimension, so all shapes must be the same")
    elif "zero-dimensional" in str(exc):
        notes.append(
            "cat() joins along a dimension, and a single number has none; stack() makes one"
        )
    elif "same number of dimensions" in str(exc):
        notes.append("cat() joins along a dimension that all have; stack() makes a new one")

    def tries() -> Iterator[Fix | None]:
        ndims = max(len(t.layout.shape) for _, t in tensors)
        if operation in ("cat", "concat", "concatenate"):
            if all(len(t.layout.shape) == 0 for _, t in tensors):
                yield failure.with_parts({}, function="stack")
            for number, tensor in tensors:
                if len(tensor.layout.shape) == ndims - 1:
                    for dim in range(ndims):
                        yield failure.with_parts({number: f"{{}}.unsqueeze({dim})"})
            for dim in range(ndims):
                yield from with_dim(failure, dim)
            for number, tensor in tensors[1:]:
                if len(tensor.layout.shape) == 2:
                    yield failure.with_parts({number: "{}.t()"})
        elif operation == "stack":
            for dim in range(ndims):
                if not any(k.arg == "dim" for k in getattr(failure.node, "keywords", ())):
                    more = {"keyword": f"dim={dim}"} if dim else {}
                    yield failure.with_parts({}, function="cat", **more)
        else:
            twins = {"vstack": "hstack", "hstack": "vstack", "row_stack": "hstack"}
            if operation in twins:
                yield failure.with_parts({}, function=twins[operation])
            for number, tensor in tensors[1:]:
                if len(tensor.layout.shape) == 2:
                    yield failure.with_parts({number: "{}.t()"})

    return Reason(notes, failure.first(tries()), shapes)


def _first_difference(a: tuple[int, ...], b: tuple[int, ...], but: int) -> int | None:
    return next(
        (d for d, (x, y) in enumerate(zip(a, b, strict=False)) if x != y and d != but), None
    )


def with_dim(failure: Failure, dim: int) -> Iterator[Fix | None]:
    """The call with another dim, written where it was, or added."""
    node = failure.node
    if not isinstance(node, ast.Call):
        return
    named_dim = next((k.value for k in node.keywords if k.arg in ("dim", "axis")), None)
    if named_dim is not None:
        number = failure.number_of(named_dim)
        if number is not None:
            yield failure.with_parts({number: str(dim)})
        return
    last = failure.number_of(node.args[-1]) if node.args else None
    if last is not None and type(failure.parts[last].value) is int and len(node.args) > 1:
        yield failure.with_parts({last: str(dim)})
    else:
        yield failure.with_parts({}, keyword=f"dim={dim}")


# -- other shapes for the same elements ------------------------------------------------------


def view(failure: Failure, exc: Any) -> Reason:
    """Strides that a view cannot have: the two dimensions that do not merge."""
    dim = first_break(exc.old_shape, exc.old_strides)
    strides = tuple(exc.old_strides)
    note = f"with strides {strides} the elements do not lie in the order of the dimensions"
    gap = blocking(exc.old_shape, strides, without_minus_one(exc.shape, exc.old_shape))
    if gap is not None:
        note = f"with strides {strides} {gap.text}"
    elif dim is not None:
        wanted = row_major(exc.old_shape)[dim]
        note += f": dim {dim} has stride {strides[dim]}, a view needs {wanted}"

    def tries() -> Iterator[Fix | None]:
        yield failure.with_parts({}, function="reshape")
        own = failure.tensor_at(0)
        if own is not None:
            yield failure.with_parts({own: "{}.contiguous()"})

    return Reason([note], failure.first(tries()))


def count(failure: Failure, exc: Any) -> Reason:
    """A shape for another number of elements."""
    own = failure.tensor_at(0)
    if own is None or not hasattr(failure.parts[own].value, "layout"):
        return Reason()
    sizes = [(n, p.value) for n, p in enumerate(failure.parts) if n != own and type(p.value) is int]
    numel = exc.numel
    known = [int(str(size)) for _, size in sizes if size != -1]
    product_ = 1
    for size in known:
        product_ *= size
    text = " * ".join(map(str, known))
    if len(known) < len(sizes):
        note = f"{named(failure, own)} has {numel} elements, which {text} does not divide"
    else:
        note = f"{named(failure, own)} has {numel} elements, {text} is {product_}"
    if product_ and len(known) == 1:
        note = note.replace(f"{text} is {product_}", f"not {product_}")

    def tries() -> Iterator[Fix | None]:
        if all(size != -1 for _, size in sizes):
            for number, _ in sizes:
                yield failure.with_parts({number: "-1"})
        for number, size in sizes:
            if size != -1:
                most = min(int(str(size)), numel)
                for other in range(most, max(most - _NEAR, 0), -1):
                    if numel % other == 0 and other > 1:
                        yield failure.with_parts({number: str(other)})
                        break
        yield failure.with_parts({number: "-1" for number, _ in sizes[:1]})
        for free, _ in sizes[:1] if len(sizes) > 1 else []:
            for number, size in sizes:
                divisors = range(min(abs(int(str(size))), numel, _NEAR), 1, -1)
                divisor = next((d for d in divisors if numel % d == 0), None)
                if number != free and divisor is not None:
                    yield failure.with_parts({free: "-1", number: str(divisor)})

    return Reason(
        [note],
        failure.first(tries(), most=2),
        [ShapeLine(failure.parts[own].text, shape_of(failure, own))],
    )


def expansion(failure: Failure, exc: Any) -> Reason:
    """A size that is not 1 asked to be another."""
    found = re.search(r"Target sizes: (\[.*?\])\.  Tensor sizes: (\[.*?\])", str(exc))
    if found is None:
        return _too_few_sizes(failure)
    target, own = (tuple(map(int, re.findall(r"-?\d+", text))) for text in found.groups())
    dim = next(
        (d for d in range(-1, -min(len(own), len(target)) - 1, -1)
         if own[d] not in (1, target[d]) and target[d] != -1),
        None,
    )  # fmt: skip
    source, wanted = "the tensor", "the target"
    for number, tensor in failure.tensors:
        if tuple(tensor.layout.shape) == own:
            source = failure.parts[number].text
    if failure.operation == "setitem":
        wanted = failure.source.segment(failure.node)
    elif failure.operation.startswith("expand"):
        wanted = "expand to"
    lines = [
        ShapeLine(wanted, target, None if dim is None else len(target) + dim),
        ShapeLine(source, own, None if dim is None else len(own) + dim),
    ]
    note = "only a size of 1 can be expanded; the others must be the same, matched from the right"
    return Reason([note], failure.first(_expansion_tries(failure, target, own)), lines)


def _too_few_sizes(failure: Failure) -> Reason:
    own = failure.tensor_at(0)
    if own is None:
        return Reason()
    shape = shape_of(failure, own)
    note = (
        f"expand() needs a size for each of the {len(shape)} dimensions of "
        f"{named(failure, own)} (-1 keeps one), and may add some on the left"
    )
    sizes = [n for n in range(len(failure.parts)) if n != own]
    keep = ", ".join(["{}", *["-1"] * (len(shape) - len(sizes))]) if sizes else ""
    fixes = failure.first([failure.with_parts({sizes[0]: keep})] if sizes else [])
    return Reason([note], fixes, [ShapeLine(failure.parts[own].text, shape)])


def _expansion_tries(
    failure: Failure, target: tuple[int, ...], own: tuple[int, ...]
) -> Iterator[Fix | None]:
    source = next((n for n, t in failure.tensors[::-1] if tuple(t.layout.shape) == own), None)
    if source is None:
        return
    for dim in range(1, len(own) + 1):
        if len(own) < len(target):
            yield failure.with_parts({source: f"{{}}.unsqueeze({dim})"})
    if len(own) >= 2:
        yield failure.with_parts({source: "{}.t()" if len(own) == 2 else "{}.mT"})
    sizes = [n for n, p in enumerate(failure.parts) if type(p.value) is int]
    if failure.operation == "expand" and len(sizes) == len(target) == len(own):
        for number, size in zip(sizes, own, strict=True):
            if size != 1 and failure.parts[number].value != size:
                yield failure.with_parts({number: "-1"})
        times = [
            t // s if s and t > 0 and t % s == 0 else 0 for t, s in zip(target, own, strict=True)
        ]
        if all(times):
            changes = {n: str(t) for n, t in zip(sizes, times, strict=True)}
            yield failure.with_parts(changes, function="repeat")
    if failure.operation == "setitem" and len(own) == len(target) == 1 and own[0] > target[0]:
        yield failure.with_parts({source: f"{{}}[:{target[0]}]"})


def beyond(failure: Failure, exc: Any) -> Reason:
    """as_strided beyond its memory: the last element that the view would need."""
    found = re.search(
        r"sizes (\[.*?\]), strides (\[.*?\]), storage offset (-?\d+), and itemsize (\d+).*"
        r"storage of size (\d+)",
        str(exc),
    )
    if found is None:
        return Reason()
    sizes, strides = (list(map(int, re.findall(r"-?\d+", found.group(i)))) for i in (1, 2))
    offset, item, room = (int(found.group(i)) for i in (3, 4, 5))
    steps = [f"{n - 1}*{s}" for n, s in zip(sizes, strides, strict=False) if n > 1]
    reach = sum((n - 1) * s for n, s in zip(sizes, strides, strict=False))
    count = room // item
    note = (
        f"the view would reach element {' + '.join([str(offset), *steps])} = {offset + reach}, "
        f"the memory has {count}: 0 to {count - 1} (the offset counts from its beginning)"
    )

    def tries() -> Iterator[Fix | None]:
        for number, part in enumerate(failure.parts):
            if type(part.value) is int and part.value == offset and reach < count:
                yield failure.with_parts({number: str(count - 1 - reach)})
        for number, part in enumerate(failure.parts):
            if sizes and type(part.value) is int and part.value == sizes[0] and strides[0] > 0:
                rest = reach - (sizes[0] - 1) * strides[0]
                fits = (count - 1 - offset - rest) // strides[0] + 1
                if fits > 0:
                    yield failure.with_parts({number: str(fits)})

    return Reason([note], failure.first(tries(), most=2))
