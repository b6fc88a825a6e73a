"""Numbers that a call cannot take: counts, sizes, steps and powers; what they may be instead.

Like remarks.py: found by the words of the message, and whatever is offered was tried.
"""

from __future__ import annotations

import ast

from engine.tensor import Tensor
from tensorcli.diagnostics import ShapeLine
from tensorcli.explain.shapes import Reason, named, shape_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from tensorcli.explain.trial import Failure, Fix


def integers(failure: Failure) -> list[int]:
    """The numbers of the parts that are whole numbers."""
    return [n for n, part in enumerate(failure.parts) if type(part.value) is int]


def _integer(failure: Failure, number: int) -> int:
    return int(str(failure.parts[number].value))


def _lines(failure: Failure, *marked: tuple[int, int]) -> list[ShapeLine]:
    """The shapes of the tensors; `marked`: (part, its dimension that does not fit)."""
    dims = dict(marked)
    return [
        ShapeLine(failure.parts[n].text, t.layout.shape, dims.get(n)) for n, t in failure.tensors
    ]


def arange_backwards(failure: Failure, exc: Any) -> Reason:
    """arange(3, 0) without a step that goes down."""
    numbers = [n for n, p in enumerate(failure.parts) if type(p.value) in (int, float)]
    if len(numbers) < 2:
        return Reason()
    start, end = (failure.parts[n].text for n in numbers[:2])
    step = failure.parts[numbers[2]].text if len(numbers) > 2 else "1"
    note = f"in steps of {step} there is no way from {start} to {end}: the step has the wrong sign"

    def tries() -> Iterator[Fix | None]:
        if len(numbers) > 2:
            yield failure.with_parts({numbers[2]: f"-({step})" if step[0] != "-" else step[1:]})
        else:
            yield failure.with_parts({numbers[1]: f"{failure.parts[numbers[1]].text}, -1"})

    return Reason([note], failure.first(tries()))


def strided_backwards(failure: Failure, exc: Any) -> Reason:
    """as_strided with a negative stride: the same elements forwards, and flip()."""
    note = "strides are 0 or more; flip() gives the elements in the other order, as a copy"
    values = [_integer(failure, n) for n in integers(failure)]

    def tries() -> Iterator[Fix | None]:
        if len(values) in (2, 3):
            size, stride, offset = (*values, 0)[:3]
            last = offset + (size - 1) * stride
            yield failure.as_written(f"{{0}}.as_strided(({size},), ({-stride},), {last}).flip(0)")

    return Reason([note], failure.first(tries()))


def reversed_slice(failure: Failure, exc: Any) -> Reason:
    """x[::-1], which is flip() here."""
    node = failure.node
    if not isinstance(node, ast.Subscript) or not failure.tensors:
        return Reason()
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    note = "a tensor's strides are not negative, so no slice goes backwards: flip() copies"
    steps = [_negative_step(failure, part) for part in parts]
    dims = [dim for dim, step in enumerate(steps) if step is not None]
    if not dims or not all(isinstance(part, ast.Slice) for part in parts):
        return Reason([note])
    flipped = f"{{0}}.flip({', '.join(map(str, dims))})"
    rest = ", ".join(
        failure.source.segment(part) if step is None else "::" + step if step != "1" else ":"
        for part, step in zip(parts, steps, strict=True)
    )
    whole = flipped if set(rest) <= set(":, ") else f"{flipped}[{rest}]"
    return Reason([note], failure.first([failure.as_written(whole)]))


def _negative_step(failure: Failure, part: ast.expr) -> str | None:
    """The step of `::-n` without its sign."""
    if not isinstance(part, ast.Slice) or part.lower or part.upper or part.step is None:
        return None
    text = failure.source.segment(part.step)
    return text[1:] if text[:1] == "-" else None


def too_many_chosen(failure: Failure, exc: Any) -> Reason:
    """topk and kthvalue: k beyond the elements that there are."""
    own = failure.tensor_at(0, "input")
    k = failure.argument(1, "k")
    if own is None or k is None:
        return Reason()
    dim_at = failure.argument(2, "dim")
    dim = failure.parts[dim_at].value if dim_at is not None else -1
    shape = shape_of(failure, own)
    size = shape[dim] if shape and isinstance(dim, int) else 1
    least = 1 if failure.operation == "kthvalue" else 0
    where = f"dim {dim}" if isinstance(dim, int) and dim >= 0 else "its last dim"
    note = f"{named(failure, own)} has {size} elements in {where}: k is {least} to {size}"
    wanted = least if _integer(failure, k) < least else size
    return Reason(
        [note], failure.first([failure.with_parts({k: str(wanted)})]), _lines(failure, (own, -1))
    )


def repeats(failure: Failure, exc: Any) -> Reason:
    """x.repeat(2) of a matrix: a number for each dimension."""
    own = failure.tensor_at(0)
    counts = [n for n in integers(failure) if n != own]
    if own is None or not counts:
        return Reason()
    missing = len(shape_of(failure, own)) - len(counts)
    note = (
        f"repeat() takes a number for each of the {len(counts) + missing} dimensions of "
        f"{named(failure, own)}, {len(counts)} {'is' if len(counts) == 1 else 'are'} given"
    )
    ones = ["1"] * missing
    texts = [failure.parts[n].text for n in counts]

    def tries() -> Iterator[Fix | None]:
        for sizes in ([*texts, *ones], [*ones, *texts]):
            yield failure.as_written(f"{{0}}.repeat({', '.join(sizes)})")

    return Reason([note], failure.first(tries()), _lines(failure))


def two_unknowns(failure: Failure, exc: Any) -> Reason:
    """view(-1, -1)."""
    own = failure.tensor_at(0)
    unknown = [n for n in integers(failure) if _integer(failure, n) == -1]
    if own is None or len(unknown) < 2:
        return Reason()
    shape = shape_of(failure, own)
    note = (
        f"one size can be found from the others, not {len(unknown)}: {named(failure, own)} has "
        f"{failure.parts[own].value.layout.numel} elements"  # type: ignore[attr-defined]  # a tensor
    )

    def tries() -> Iterator[Fix | None]:
        for size in shape:
            yield failure.with_parts(dict.fromkeys(unknown[:-1], str(size)))
        for size in shape[::-1]:
            yield failure.with_parts(dict.fromkeys(unknown[1:], str(size)))

    return Reason([note], failure.first(tries(), most=2), _lines(failure))


def pooled_away(failure: Failure, exc: Any) -> Reason:
    """A pooling window larger than the picture."""
    own = failure.tensor_at(0, "input")
    sizes = integers(failure)
    if own is None:
        return Reason()
    picture = " x ".join(map(str, shape_of(failure, own)[2:] or shape_of(failure, own)[1:]))
    note = f"the window is larger than the picture, which is {picture}: nothing is left"
    least = min(shape_of(failure, own)[-2:], default=1)

    def tries() -> Iterator[Fix | None]:
        if sizes:
            yield failure.with_parts({sizes[0]: str(least)})
        yield failure.with_parts({}, keyword="padding=1")

    return Reason([note], failure.first(tries()), _lines(failure))


def divided_by_zero(failure: Failure, exc: Any) -> Reason:
    """x // 0 and x % 0 of integers."""
    note = "integers have no infinity to stand for it; / divides as floats and gives inf"

    def tries() -> Iterator[Fix | None]:
        if isinstance(failure.node, ast.BinOp):
            yield failure.as_written("{0} / {1}")
        for number, _ in failure.tensors[:1]:
            yield failure.with_parts({number: "{}.float()"})

    return Reason([note], failure.first(tries(), most=1))


def negative_power(failure: Failure, exc: Any) -> Reason:
    """tensor([2]) ** -1."""
    whole = [n for n, t in failure.tensors if not t.dtype.is_floating_point]
    if not whole:
        return Reason()
    subject = named(failure, whole[0])
    kind = failure.parts[whole[0]].value.dtype.name  # type: ignore[attr-defined]  # a tensor
    note = f"the result has fractions, and {subject} is {kind}"
    return Reason([note], failure.first([failure.with_parts({whole[0]: "{}.float()"})]))


def one_value(failure: Failure, exc: Any) -> Reason:
    """batch_norm in training of a single row."""
    own = failure.tensor_at(0, "input")
    if own is None:
        return Reason()
    shape = list(shape_of(failure, own))
    note = (
        f"{named(failure, own)} is {shape}: one value per channel has no deviation to divide by; "
        "training needs more, evaluation (training=False) uses the running mean and variance"
    )
    return Reason([note], [], _lines(failure))


def no_leaf_for_optimiser(failure: Failure, exc: Any) -> Reason:
    """SGD of a tensor that was computed."""
    from engine.tape import shown_node

    for number, tensor in failure.tensors:
        node = shown_node(tensor)
        if node is not None:
            name = failure.parts[number].text
            note = (
                f"{named(failure, number)} was computed, by {node.type_name}: an optimiser changes "
                "leaves. Make the values first, then requires_grad_()"
            )
            prefix = f"{name} = {name}.detach().requires_grad_(); "
            is_name = isinstance(failure.parts[number].node, ast.Name)
            tries = [failure.inside(prefix, number)] if is_name else []
            return Reason([note], failure.first(tries))
    return Reason()


def unknown_key(failure: Failure, exc: Any) -> Reason:
    """d["W"] of a dict that has "w"."""
    from difflib import get_close_matches

    node = failure.node
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
        return Reason()
    owner = failure.names.get(node.value.id)
    if not isinstance(owner, dict) or not exc.args:
        return Reason()
    keys = [key for key in owner if isinstance(key, str)]
    listed = ", ".join(repr(key) for key in list(owner)[:6])
    note = f"`{node.value.id}` has {listed}{', …' if len(owner) > 6 else ''}" if owner else (
        f"`{node.value.id}` is empty"
    )  # fmt: skip
    wanted = str(exc.args[0])
    near = get_close_matches(wanted, keys, n=2, cutoff=0.6) or [
        key for key in keys if key.lower() == wanted.lower()
    ]
    tries = (failure.as_written(f"{node.value.id}[{key!r}]") for key in near)
    return Reason([note], failure.first(tries, most=1))


def in_sequence(failure: Failure, exc: Any) -> Reason:
    """`x in [y, z]` of tensors, which asks == for one truth value."""
    node = failure.node
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.In | ast.NotIn):
        return Reason()
    note = "`in` compares with ==, which gives a truth value for each element"
    sign = "" if isinstance(node.ops[0], ast.In) else "not "
    left, right = failure.source.segment(node.left), failure.source.segment(node.comparators[0])
    words = f"{sign}any(torch.equal({left}, t) for t in {right})"
    words = words.replace("{", "{{").replace("}", "}}")
    return Reason([note], failure.first([failure.as_written(words)]))


def uncalled_operand(failure: Failure, exc: Any) -> Reason:
    """x.mean + 1: a method where its result was meant; w.grad * 2 where there is none."""
    from tensorcli.language.attributes import Method

    for number, part in enumerate(failure.parts):
        if isinstance(part.value, Method):
            note = f"`{part.text}` is a method: only its call gives a value"
            tries = [failure.with_parts({number: "{}()"})]
            if part.value.name == "size":
                owner = part.text.rpartition(".")[0]
                tries = [
                    failure.with_parts({number: f"{owner}.numel()"}),
                    failure.with_parts({number: "{}(0)"}),
                ]
            return Reason([note], failure.first(tries))
        if part.value is None and isinstance(part.node, ast.Attribute) and part.node.attr == "grad":
            owner = failure.source.segment(part.node.value)
            value = failure.names.get(owner)
            note = f"`{part.text}` is None until the first backward() that reaches `{owner}`"
            if isinstance(value, Tensor) and not value.requires_grad:
                note = f"`{part.text}` is None: `{owner}` does not require a gradient"
            return Reason([note])
    return Reason()


# The words of a message, and what is said about it.
MISUSES: tuple[tuple[str, Callable[[Failure, Any], Reason]], ...] = (
    ("inconsistent with step sign", arange_backwards),
    ("Negative strides are not supported", strided_backwards),
    ("step must be greater than zero", reversed_slice),
    ("selected index k out of range", too_many_chosen),
    ("selected number k out of range", too_many_chosen),
    ("Number of dimensions of repeat dims", repeats),
    ("only one dimension can be inferred", two_unknowns),
    ("Output size is too small", pooled_away),
    ("ZeroDivisionError", divided_by_zero),
    ("Integers to negative integer powers", negative_power),
    ("Expected more than 1 value per channel", one_value),
    ("can't optimize a non-leaf Tensor", no_leaf_for_optimiser),
    ("Boolean value of Tensor with more than one", in_sequence),
    ("unsupported operand type(s)", uncalled_operand),
)
