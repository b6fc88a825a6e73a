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
    if failure.operation in VECTORS and (len(a), len(b)) != (1, 1):
        return _not_vectors(failure, i, j)
    if failure.operation.rstrip("_") == "bmm" and len(a) == len(b) == 3 and a[0] != b[0]:
        return _uneven_batches(failure, i, j)
    notes = [note] if note else [_wrong_ndims(failure, i, j)]
    fixes = failure.first(_product_tries(failure, i, j))
    if not note and not fixes:
        return Reason(notes, [], [ShapeLine(r.text, r.shape) for r in lines])
    return Reason(notes, fixes, lines if note else [ShapeLine(r.text, r.shape) for r in lines])


# Products of two vectors.
VECTORS = frozenset({"dot", "vdot", "ger", "outer"})


def _not_vectors(failure: Failure, i: int, j: int) -> Reason:
    a, b = shape_of(failure, i), shape_of(failure, j)
    wrong = [f"{named(failure, n)} has {len(s)}" for n, s in ((i, a), (j, b)) if len(s) != 1]
    note = f"{failure.operation}() takes two vectors, of one dimension: {', '.join(wrong)}"
    lines = [ShapeLine(failure.parts[n].text, shape_of(failure, n)) for n in (i, j)]

    def tries() -> Iterator[Fix | None]:
        if failure.operation in ("dot", "vdot"):
            yield failure.as_written("({0} * {1}).sum()")
            yield failure.with_parts({j: "{}.mT"}, function="matmul")
        yield failure.with_parts({i: "{}.flatten()", j: "{}.flatten()"})

    return Reason([note], failure.first(tries(), most=2), lines)


def _uneven_batches(failure: Failure, i: int, j: int) -> Reason:
    a, b = shape_of(failure, i), shape_of(failure, j)
    note = (
        f"bmm() multiplies matrix by matrix, so both batches have the same length: {a[0]} of "
        f"{named(failure, i)} meets {b[0]} of {named(failure, j)}"
    )
    lines = [ShapeLine(failure.parts[n].text, shape_of(failure, n), 0) for n in (i, j)]
    return Reason([note], failure.first([failure.with_parts({}, function="matmul")]), lines)


def of_vectors(failure: Failure, exc: Any) -> Reason:
    """outer() of something else than vectors."""
    numbers = [number for number, _ in failure.tensors][-2:]
    return _not_vectors(failure, *numbers) if len(numbers) == 2 else Reason()


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
        return Reason() if bias is None else _of_bias(failure, bias, b[0])

    def tries() -> Iterator[Fix | None]:
        yield failure.with_parts({weight: "{}.t()"})
        yield failure.with_parts({x: "{}.t()" if len(a) == 2 else "{}.mT"})
        yield failure.with_parts({x: "{}.t()", weight: "{}.t()"})
        if len(a) > 2:
            yield failure.with_parts({x: "{}.flatten(1)"})

    return Reason(notes, failure.first(tries()), lines)


def bias(failure: Failure, exc: Any) -> Reason:
    """A bias of a convolution that is not one number per channel."""
    weight, own = failure.tensor_at(1, "weight"), failure.tensor_at(2, "bias")
    if weight is None or own is None:
        return Reason()
    return _of_bias(failure, own, shape_of(failure, weight)[0])


def _of_bias(failure: Failure, number: int, outputs: int) -> Reason:
    shape = shape_of(failure, number)
    note = f"a bias has one element per output: {outputs}, not {list(shape)}"

    def tries() -> Iterator[Fix | None]:
        yield failure.with_parts({number: "{}.flatten()"})
        yield failure.with_parts({number: "None"})

    lines = [ShapeLine(failure.parts[number].text, shape, 0 if len(shape) == 1 else None)]
    return Reason([note], failure.first(tries(), most=1), lines)


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
    notes += _letters_amiss(failure, str(exc), terms, operands, output)

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


def _letters_amiss(
    failure: Failure, text: str, terms: list[str], operands: list[int], output: str
) -> list[str]:
    """einsum: too few or too many letters, operands, or letters that nothing has."""
    found = re.search(r"number of subscripts .* for operand (\d+)", text)
    if found is not None and int(found.group(1)) < min(len(terms), len(operands)):
        at = int(found.group(1))
        ndim, letters = len(shape_of(failure, operands[at])), len(terms[at])
        return [
            f"`{terms[at]}` names {letters} dimension{'s' if letters != 1 else ''}, "
            f"{named(failure, operands[at])} has {ndim}: one letter for each, or ... for the rest"
        ]
    if "operands were provided" in text or "operands than" in text:
        listed = " and ".join(f"`{term}`" for term in terms)
        return [f"the equation is about {len(terms)} tensors, {listed}; {len(operands)} given"]
    lost = [c for c in output if c.isalpha() and not any(c in term for term in terms)]
    if lost:
        known = ", ".join(sorted({c for term in terms for c in term if c.isalpha()}))
        return [f"each letter of the output comes from an operand: {known}, not {lost[0]}"]
    return []


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
        if 0 <= channels < len(a) and 1 in (a[channels], b[1]):
            keep = ["-1"] * len(a)
            keep[channels] = str(b[1])
            yield failure.with_parts({x: f"{{}}.expand({', '.join(keep)})"})
            rest = ", -1" * (len(b) - 2)
            yield failure.with_parts({weight: f"{{}}.expand(-1, {a[channels]}{rest})"})
        if len(a) > 1 and b[1] and a[channels] % b[1] == 0 and a[channels] != b[1]:
            yield failure.with_parts({}, keyword=f"groups={a[channels] // b[1]}")

    return Reason([note], failure.first(tries(), most=2), lines)
