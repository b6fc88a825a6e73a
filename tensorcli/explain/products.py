"""Products that do not fit: matrices, linear, einsum, convolution; who broke which rule."""

from __future__ import annotations

import re

from tensorcli.diagnostics import ShapeLine
from tensorcli.explain.shapes import Reason, named, shape_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tensorcli.explain.trial import Failure, Fix


# Operations whose last two operands are multiplied as matrices or vectors.
PRODUCTS = frozenset({"mm", "bmm", "mv", "dot", "matmul", "addmm", "addmv", "baddbmm", "addbmm",
                      "MatMult", "linear", "inner", "vdot", "ger"})  # fmt: skip


# -- products --------------------------------------------------------------------------------


def product(failure: Failure, exc: Any) -> Reason:
    tensors = failure.tensors
    if failure.operation in ("linear", "bilinear"):
        return linear(failure)
    numbers = [number for number, _ in tensors][-2:]
    known = failure.operation.rstrip("_") in PRODUCTS
    if len(numbers) < 2 or not known:
        all_lines = [ShapeLine(failure.parts[n].text, t.layout.shape) for n, t in tensors]
        return Reason([], [], all_lines if len(all_lines) > 1 else [])
    i, j = numbers
    a, b = shape_of(failure, i), shape_of(failure, j)
    lines = [ShapeLine(failure.parts[i].text, a, len(a) - 1 if a else None)]
    lines.append(ShapeLine(failure.parts[j].text, b, max(len(b) - 2, 0) if b else None))
    note = ""
    if a and b:
        rows = b[-2] if len(b) > 1 else b[0]
        which = f"dim {len(b) - 2}" if len(b) > 1 else "dim 0"
        if a[-1] != rows:
            note = (
                f"the last size of {named(failure, i)} ({a[-1]}) must equal "
                f"{which} of {named(failure, j)} ({rows})"
            )
    notes = [note] if note else [_wrong_ndims(failure, i, j)]
    fixes = failure.first(_product_tries(failure, i, j))
    if not note and not fixes:
        return Reason(notes, [], [ShapeLine(r.text, r.shape) for r in lines])
    return Reason(notes, fixes, lines if note else [ShapeLine(r.text, r.shape) for r in lines])


def _wrong_ndims(failure: Failure, i: int, j: int) -> str:
    a, b = len(shape_of(failure, i)), len(shape_of(failure, j))
    wanted = {"mm": "two matrices", "bmm": "two batches of matrices (3 dimensions each)"}
    takes = wanted.get(failure.operation.rstrip("_"), "")
    has = f"{named(failure, i)} has {a} dimensions, {named(failure, j)} has {b}"
    return f"{failure.operation}() multiplies {takes}: {has}" if takes else has


def _product_tries(failure: Failure, i: int, j: int) -> Iterator[Fix | None]:
    for function in ("matmul",):
        if failure.operation in ("mm", "bmm", "mv", "dot"):
            yield failure.with_parts({}, function=function)
    for number in (j, i):
        ndim = len(shape_of(failure, number))
        if ndim >= 2:
            yield failure.with_parts({number: "{}.t()" if ndim == 2 else "{}.mT"})
    a, b = shape_of(failure, i), shape_of(failure, j)
    if failure.operation == "MatMult":
        if a == b or not a or not b:
            yield failure.as_written("{0} * {1}")
        yield failure.as_written("{1} @ {0}")
    for number in (j, i):
        if len(shape_of(failure, number)) == 1:
            yield failure.with_parts({number: "{}.unsqueeze(1)"})
            yield failure.with_parts({number: "{}.unsqueeze(0)"})
    if failure.operation in ("mm", "bmm", "mv", "dot"):
        for number in (j, i):
            yield failure.with_parts({number: "{}.mT"}, function="matmul")


def of_linear(failure: Failure, exc: Any) -> Reason:
    return linear(failure)


def linear(failure: Failure) -> Reason:
    x, weight = failure.tensor_at(0, "input"), failure.tensor_at(1, "weight")
    bias = failure.tensor_at(2, "bias")
    if x is None or weight is None:
        return Reason()
    a, b = shape_of(failure, x), shape_of(failure, weight)
    text = failure.parts[weight].text
    lines = [
        ShapeLine(failure.parts[x].text, a, len(a) - 1 if a else None),
        ShapeLine(f"{text} ([out, in])", b, len(b) - 1 if b else None),
    ]
    features = a[-1] if a else 0
    notes = [
        f"linear(x, weight) is x @ weight.t(): a weight is [out, in], so the last size of "
        f"{named(failure, weight)} ({b[-1] if b else 0}) must equal that of "
        f"{named(failure, x)} ({features})"
    ]
    if b and features == b[-1]:
        notes, lines = [], []
        if bias is not None:
            size = shape_of(failure, bias)
            notes = [f"a bias has one element per output: {b[0]}, not {list(size)}"]

    def tries() -> Iterator[Fix | None]:
        yield failure.with_parts({weight: "{}.t()"})
        yield failure.with_parts({x: "{}.t()" if len(a) == 2 else "{}.mT"})
        yield failure.with_parts({x: "{}.t()", weight: "{}.t()"})
        if len(a) > 2:
            yield failure.with_parts({x: "{}.flatten(1)"})

    return Reason(notes, failure.first(tries()), lines)


def contraction(failure: Failure, exc: Any) -> Reason:
    """einsum: the letter, and the operands in which it has different sizes."""
    at = next((i for i, p in enumerate(failure.parts) if isinstance(p.value, str)), None)
    if at is None:
        return Reason()
    equation = str(failure.parts[at].value)
    inputs, _, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    operands = [number for number, _ in failure.tensors]
    notes = []
    shapes = []
    letter = re.search(r"subscript (\w) has size (\d+) for operand (\d+)", str(exc))
    for term, number in zip(terms, operands, strict=False):
        shape = shape_of(failure, number)
        dim = term.find(letter.group(1)) if letter is not None and len(term) == len(shape) else -1
        text = f"{failure.parts[number].text} ({term})"
        shapes.append(ShapeLine(text, shape, dim if dim >= 0 else None))
    if letter is not None:
        uses = [
            f"{shape_of(failure, n)[t.find(letter.group(1))]} in {named(failure, n)}"
            for t, n in zip(terms, operands, strict=False)
            if letter.group(1) in t and len(t) == len(shape_of(failure, n))
        ]
        sizes = ", ".join(uses)
        notes.append(f"the letter {letter.group(1)} stands for one size (or 1), here it is {sizes}")

    def changed(terms: list[str], output: str) -> Fix | None:
        text = ",".join(terms) + ("->" + output if "->" in equation else "")
        return failure.with_parts({at: f'"{text}"'})

    def tries() -> Iterator[Fix | None]:
        from itertools import permutations

        blamed = [int(letter.group(3))] if letter is not None else []
        for index in [*blamed, *(i for i in range(len(terms)) if i not in blamed)]:
            term = terms[index]
            if 1 < len(term) <= 4 and "." not in term:
                for order in permutations(term):
                    yield changed([*terms[:index], "".join(order), *terms[index + 1 :]], output)
            if index < len(operands):
                ndim = len(shape_of(failure, operands[index]))
                if len(term) > ndim and "." not in term:
                    cut = [*terms[:index], term[:ndim], *terms[index + 1 :]]
                    kept = "".join(c for c in output if c in "".join(cut))
                    yield changed(cut, kept)
                elif len(term) < ndim:
                    yield changed([*terms[:index], "..." + term, *terms[index + 1 :]],
                                  "..." + output)  # fmt: skip
        kept = "".join(c for c in output if c in inputs or c == ".")
        if kept != output:
            yield changed(terms, kept)

    return Reason(notes, failure.first(tries(), most=2), shapes)


def convolution(failure: Failure, exc: Any) -> Reason:
    """conv1d to conv3d: channels in the wrong place, a missing batch, a kernel too large."""
    x, weight = failure.tensor_at(0, "input"), failure.tensor_at(1, "weight")
    if x is None or weight is None:
        return Reason()
    a, b = shape_of(failure, x), shape_of(failure, weight)
    if len(b) < 3:
        return Reason()
    channels = len(a) - len(b) + 1
    lines = [
        ShapeLine(failure.parts[x].text, a, channels if 0 <= channels < len(a) else None),
        ShapeLine(
            f"{failure.parts[weight].text} ([out, in / groups, …])", b, 1 if len(b) > 1 else None
        ),
    ]
    note = (
        f"the channels of {named(failure, x)} (dim 1 of a batch) must be dim 1 of "
        f"{named(failure, weight)} times groups"
    )
    if "Kernel size" in str(exc):
        note = "the kernel does not fit into the input: pad it, or use a smaller kernel"
        lines = [ShapeLine(line.text, line.shape) for line in lines]
    elif len(a) not in (len(b), len(b) - 1):
        note = (
            f"{failure.operation}() takes [N, C, …] or [C, …]: {len(b)} or {len(b) - 1} dimensions"
        )
        lines = [ShapeLine(line.text, line.shape) for line in lines]

    def tries() -> Iterator[Fix | None]:
        if "Kernel size" in str(exc):
            for padding in (1, 2, 3):
                yield failure.with_parts({}, keyword=f"padding={padding}")
            return
        if len(b) == 4 and len(a) in (3, 4):
            order = "0, 3, 1, 2" if len(a) == 4 else "2, 0, 1"
            yield failure.with_parts({x: f"{{}}.permute({order})"})
        elif len(b) == 3 and len(a) in (2, 3):
            yield failure.with_parts({x: "{}.mT" if len(a) == 3 else "{}.t()"})
        yield failure.with_parts({weight: "{}.transpose(0, 1)"})
        if len(a) < len(b):
            yield failure.with_parts({x: "{}.unsqueeze(0)"})
            yield failure.with_parts({x: "{}.unsqueeze(1)"})
            yield failure.with_parts({x: f"{{}}.expand({b[1]}{', -1' * len(a)})"})
        if len(a) > 1 and b[1] and a[channels] % b[1] == 0 and a[channels] != b[1]:
            yield failure.with_parts({}, keyword=f"groups={a[channels] // b[1]}")

    return Reason([note], failure.first(tries(), most=2), lines)
