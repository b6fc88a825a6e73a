"""Calls whose rule fits into a sentence: what the values must be, and the words that were tried.

A table by the words of the message. `{it}` in a sentence is the first tensor by name, `{low}`
and `{high}` are its extremes; a try is a template for a part, another function, a
keyword, or other words for the whole.
"""

from __future__ import annotations

import ast
import re

from engine.tensor import Tensor
from tensorcli.diagnostics import ShapeLine
from tensorcli.explain.shapes import Reason, named, shape_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from tensorcli.explain.trial import Failure, Fix


class Rule:
    """A sentence, and what to try: `parts` templates for the first tensor, `last` for the last."""

    __slots__ = ("keyword", "last", "parts", "sentence", "whole")

    def __init__(
        self,
        sentence: str,
        parts: tuple[str, ...] = (),
        last: tuple[str, ...] = (),
        whole: tuple[str, ...] = (),
        keyword: str | None = None,
    ) -> None:
        self.sentence = sentence
        self.parts = parts
        self.last = last
        self.whole = whole
        self.keyword = keyword


RULES: dict[str, Rule] = {
    "Class values must be non-negative": Rule(
        "{it} holds {low}, and classes count from 0", ("{}.clamp(min=0)",)
    ),
    "only supports 1-d non-negative integral": Rule(
        "{it} is {shape}, {low} to {high}: bincount() counts the numbers 0, 1, 2 … of a vector",
        ("{}.clamp(min=0)", "{}.flatten()"),
    ),
    "without replacement": Rule(
        "{it} is {shape}: without replacement each is drawn once at most", (),
        keyword="replacement=True",
    ),
    "contains either `inf`, `nan` or element < 0": Rule(
        "{it} holds {low} to {high}: weights are finite and not negative",
        ("{}.softmax(-1)", "{}.clamp(min=0)"),
    ),
    "p_in >= 0 && p_in <= 1": Rule(
        "{it} holds {low} to {high}, and a probability lies between 0 and 1",
        ("{}.sigmoid()", "{}.clamp(0, 1)"),
    ),
    "all elements of std >= 0": Rule("a deviation is not negative", last=("{}.abs()",)),
    "Supports 1D or 2D tensors": Rule(
        "diag() is about a vector or a matrix, {it} is {shape}; diagonal() takes batches",
        whole=("torch.diagonal({0}, dim1=-2, dim2=-1)",),
    ),
    "expected a matrix, but got tensor": Rule(
        "trace() is about one matrix, {it} is {shape}",
        whole=("torch.diagonal({0}, dim1=-2, dim2=-1).sum(-1)",),
    ),
    "doesn't require gradient": Rule(
        "{it} requires no gradient, so none comes by", ("{}.requires_grad_()",)
    ),
    "can't retain_grad on Tensor": Rule(
        "{it} requires no gradient, so none comes by", ("{}.requires_grad_()",)
    ),
    "modes: nearest": Rule(
        "{it} is {shape}; interpolate() takes [N, C, …]", ("{}[None, None]", "{}[None]")
    ),
    "X1 and X2 must have the same number of columns": Rule(
        "a distance is between points of equally many coordinates: the last sizes must be equal",
        last=("{}.mT",),
    ),
    "Number of elements of source < number of ones": Rule(
        "the source needs an element for each True of the mask"
    ),
    "contracted dimensions need to match": Rule(
        "the last dimensions of the first tensor are summed with the first ones of the second",
        last=("{}.mT",),
    ),
    "Incompatible shapes of A and B": Rule(
        "solve(A, B) has an equation in each row: B has as many rows as A, or as many elements",
        last=("{}.mT",),
    ),
    "must have length 3": Rule(
        "a cross product is of vectors with 3 elements, along the last dimension or dim=",
        keyword="dim=0",
    ),
    "Expected reduction dim": Rule("{it} is empty: there is no largest or smallest element"),
    "must be Tensor, not tuple": Rule(
        "a shape is no tensor; the function without _like takes it"
    ),
    "can be converted to an index": Rule(
        "{it} is {shape}, {dtype}: a position is one whole number",
        ("int({})", "{}[0]", "{}.long()"),
    ),
    "converted to type double without overflow": Rule(
        "{it} is complex: of its parts, or its absolute value, there is one number",
        ("{}.real", "{}.abs()"),
    ),
    "Can't detach views in-place": Rule(
        "{it} is a view: detach() gives it a new name outside of the graph",
        whole=("{0} = {0}.detach()",),
    ),
    "should be equal to source.size(dim)": Rule(
        "each row of the source needs an index: as many as the source has along that dimension"
    ),
    "Padding length should be": Rule(
        "pad() takes two numbers for each dimension, the last one first; {it} is {shape}"
    ),
    "maximum size for tensor at dimension": Rule(
        "the window does not fit: {it} is {shape}"
    ),
    "shifts and dimensions must align": Rule("roll() takes a shift for each of its dims"),
    "multi_dot(): tensors": Rule(
        "in a chain the last size of each matrix equals the first of the next"
    ),
    "for @: 'Tensor' and": Rule(
        "@ multiplies matrices; a number is multiplied with *", whole=("{0} * {1}",)
    ),
    "for @: 'int' and": Rule(
        "@ multiplies matrices; a number is multiplied with *", whole=("{0} * {1}",)
    ),
    "for @: 'float' and": Rule(
        "@ multiplies matrices; a number is multiplied with *", whole=("{0} * {1}",)
    ),
}  # fmt: skip


def explain(failure: Failure, exc: Any) -> Reason:
    """The sentence of a rule, and what of its tries went through."""
    rule = next((RULES[words] for words in RULES if words in str(exc)), None)
    if rule is None:
        return Reason()
    first = next(iter(failure.tensors), None)
    if first is None and "{" in rule.sentence:
        return Reason()
    note = rule.sentence.format_map(_Facts(failure))

    def tries() -> Iterator[Fix | None]:
        if first is not None:
            for template in rule.parts:
                yield failure.with_parts({first[0]: template})
        for template in rule.last:
            yield failure.with_parts({failure.tensors[-1][0]: template})
        for words in rule.whole:
            yield failure.as_written(words)
        if rule.keyword is not None:
            yield failure.with_parts({}, keyword=rule.keyword)
        if failure.operation.endswith("_like"):
            yield failure.with_parts({}, function=failure.operation.removesuffix("_like"))

    return Reason([note], failure.first(tries(), most=2))


class _Facts(dict[str, str]):
    """What a sentence may name, worked out when it does."""

    def __init__(self, failure: Failure) -> None:
        super().__init__()
        self.failure = failure

    def __missing__(self, key: str) -> str:
        failure = self.failure
        number, tensor = failure.tensors[0]
        if key == "shape":
            return str(list(tensor.layout.shape))
        if key == "dtype":
            return str(tensor.dtype.name)
        if key in ("low", "high"):
            extreme = tensor.min() if key == "low" else tensor.max()
            return f"{extreme.item():g}"
        return named(failure, number)


def written_values(failure: Failure, exc: Any) -> Reason:
    """x[mask] = values of another length."""
    if failure.operation != "setitem" or len(failure.tensors) < 2:
        return Reason()
    found = re.search(r"value tensor of shape (\[.*?\]) .* result of shape (\[.*?\])", str(exc))
    if found is None:
        return Reason()
    given, wanted = found.groups()
    number = failure.tensors[-1][0]
    target = failure.source.segment(failure.node)
    note = f"`{target}` has room for {wanted}, {named(failure, number)} is {given}"
    shape = shape_of(failure, number)
    sizes = [int(n) for n in re.findall(r"\d+", wanted)]

    def tries() -> Iterator[Fix | None]:
        if len(shape) == len(sizes) == 1 and shape[0] > sizes[0]:
            yield failure.with_parts({number: f"{{}}[:{sizes[0]}]"})
        yield failure.with_parts({number: "{}.mT"})
        for dim in range(1, len(shape) + 1):
            yield failure.with_parts({number: f"{{}}.unsqueeze({dim})"})

    return Reason([note], failure.first(tries(), most=1))


def narrowed(failure: Failure, exc: Any) -> Reason:
    """narrow(dim, start, length) beyond the end."""
    start, length, size = map(int, re.findall(r"\((-?\d+)\)", str(exc))[:3])
    number = failure.argument(3, "length")
    note = f"from {start} on there are {size - start} of {size} elements"
    if number is None:
        return Reason([note])
    return Reason([note], failure.first([failure.with_parts({number: str(size - start)})]))


def selected(failure: Failure, exc: Any) -> Reason:
    """select(dim, index) beyond the end."""
    found = re.search(r"out of range .* size \[(.*?)\] at dimension (-?\d+)", str(exc))
    number = failure.argument(2, "index")
    if found is None:
        return Reason()
    size = int(found.group(1).split(", ")[int(found.group(2))])
    note = f"there are {size} elements: 0 to {size - 1}, or -{size} to -1 from the end"
    tries = [] if number is None else [failure.with_parts({number: "-1"})]
    return Reason([note], failure.first(tries))


def share(failure: Failure, exc: Any) -> Reason:
    """quantile(x, 50)."""
    number = failure.argument(1, "q")
    if number is None:
        return Reason()
    value = failure.parts[number].value
    note = f"{named(failure, number)} is no share: quantiles go from 0 to 1, 0.5 is the median"
    is_percent = isinstance(value, int | float) and 1 < value <= 100
    tries = [failure.with_parts({number: f"{value / 100:g}"})] if is_percent else []  # type: ignore[operator]  # a number
    return Reason([note], failure.first(tries))


def listed_sizes(failure: Failure, exc: Any) -> Reason:
    """zeros(tensor([2, 3])), full(2, 3), ones(2, torch.float64)."""
    from engine.dtypes import DType

    for number, part in enumerate(failure.parts):
        if isinstance(part.value, Tensor) and part.value.ndim == 1 and number == _size_at(failure):
            note = f"{named(failure, number)} is a tensor; sizes are whole numbers"
            return Reason([note], failure.first([failure.with_parts({number: "{}.tolist()"})]))
        if isinstance(part.value, DType):
            note = f"{named(failure, number)} is a dtype, which goes by its keyword"
            words = f"dtype={part.text}"
            return Reason([note], failure.first([failure.with_parts({number: words})]))
        if type(part.value) is int and failure.operation == "full":
            note = f"full() takes its sizes in one tuple: `{part.text}` is a number"
            return Reason([note], failure.first([failure.with_parts({number: "({},)"})]))
    return Reason()


def _size_at(failure: Failure) -> int | None:
    return failure.argument(1 if failure.operation in ("reshape", "view", "expand") else 0)


def indexed_list(failure: Failure, exc: Any) -> Reason:
    """A list's element that is not there."""
    node = failure.node
    if not isinstance(node, ast.Subscript):
        return Reason()
    text = failure.source.segment(node.value)
    value = failure.names.get(text)
    count = len(value) if isinstance(value, list | tuple) else None
    if isinstance(node.value, ast.List | ast.Tuple):
        count = len(node.value.elts)
    if count is None:
        return Reason()
    note = f"`{text}` has {count} elements: 0 to {count - 1}, or -{count} to -1 from the end"
    fixes = failure.first([failure.as_written(f"{text}[-1]")]) if count else []
    return Reason([note if count else f"`{text}` is empty"], fixes)


def swapped_bounds(failure: Failure, exc: Any) -> Reason:
    """randint(5, 2, size)."""
    numbers = [n for n, p in enumerate(failure.parts) if type(p.value) is int][:2]
    if len(numbers) < 2 or failure.operation != "randint":
        return Reason()
    low, high = (failure.parts[n].text for n in numbers)
    note = f"numbers are drawn from the first up to, not including, the second: {low} to {high}"
    return Reason([note], failure.first([failure.with_parts({numbers[0]: high, numbers[1]: low})]))


def named_type(failure: Failure, exc: Any) -> Reason:
    """x.type("float"): old names of dtypes."""
    from engine.dtypes import ALIASES, by_name

    for number, part in enumerate(failure.parts):
        known = ALIASES.get(part.value) if isinstance(part.value, str) else None
        dtype = by_name.get(part.value) if isinstance(part.value, str) else None
        found = known or dtype
        if found is not None:
            note = f"{part.text} is a text, the dtype is torch.{found.name}"
            words = f"torch.{found.name}"
            return Reason([note], failure.first([failure.with_parts({number: words})]))
    return Reason()


def paired(failure: Failure, exc: Any) -> Reason:
    """x.max(1) + 1: a pair is no tensor."""
    for number, part in enumerate(failure.parts):
        if "values" in getattr(type(part.value), "_fields", ()):
            note = f"{named(failure, number)} is a pair, values and indices"
            return Reason([note], failure.first([failure.with_parts({number: "{}.values"})]))
    return Reason()


def attention(failure: Failure, exc: Any) -> Reason:
    """scaled_dot_product_attention of queries and keys of different sizes."""
    query, key, value = (failure.tensor_at(at, name) for at, name in enumerate(PARTS))
    if query is None or key is None or value is None:
        return Reason()
    q, k, v = (shape_of(failure, n) for n in (query, key, value))
    lines = [
        ShapeLine(failure.parts[query].text, q, len(q) - 1),
        ShapeLine(failure.parts[key].text, k, len(k) - 1),
    ]
    if q[-1] != k[-1]:
        note = (
            f"queries and keys are compared, so their last sizes are equal: {q[-1]} of "
            f"{named(failure, query)}, {k[-1]} of {named(failure, key)}"
        )
        return Reason([note], [], lines)
    if k[-2] != v[-2]:
        note = (
            f"there is a value for each key: {k[-2]} keys in {named(failure, key)}, {v[-2]} values "
            f"in {named(failure, value)}"
        )
        return Reason([note], failure.first([failure.with_parts({value: "{}.mT"})]))
    return Reason()


PARTS = ("query", "key", "value")


def not_definite(failure: Failure, exc: Any) -> Reason:
    """cholesky of a matrix that is not positive-definite."""
    from engine.registry import functions

    number, tensor = failure.tensors[0]
    if tensor.ndim != 2:
        return Reason()
    lowest = float(functions["linalg.eigvalsh"](tensor.detach()).min().item())
    note = (
        f"a Cholesky factor needs eigenvalues above 0, the smallest of {named(failure, number)} "
        f"is {lowest:.4g}"
    )
    added = f"{1.1 * abs(lowest) + 1e-3:.2g}"
    size = tensor.shape[0]
    template = f"({{}} + {added} * torch.eye({size}))"
    return Reason([note], failure.first([failure.with_parts({number: template})], most=1))


# The words of a message, and what explains it.
DOMAINS: tuple[tuple[str, Callable[[Failure, Any], Reason]], ...] = (
    *((words, explain) for words in RULES),
    ("value tensor of shape", written_values),
    ("exceeds dimension size", narrowed),
    ("out of range for tensor of size", selected),
    ("q must be in the range", share),
    ("must be tuple of ints, not", listed_sizes),
    ("type must be tuple of ints,but got", listed_sizes),
    ("list index out of range", indexed_list),
    ("can only concatenate tuple", paired),
    ("not positive-definite", not_definite),
    ("random_ expects 'from' to be less", swapped_bounds),
    ("invalid type: '", named_type),
)
