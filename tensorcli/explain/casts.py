"""Dtypes and devices that do not go together, and the cast that was tried."""

from __future__ import annotations

import ast

from engine.device import Device
from tensorcli.diagnostics import ShapeLine
from tensorcli.explain.shapes import Reason, named, out_of_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tensorcli.explain.trial import Failure, Fix


def dtypes(failure: Failure, exc: Any) -> Reason:
    """Tensors of different dtypes where an operation promotes none of them."""
    if failure.operation == "conj" or not failure.tensors:
        return Reason()
    kinds = {t.dtype.name for _, t in failure.tensors}
    if len(kinds) < 2:
        return one_dtype(failure, exc)
    texts = [f"{named(failure, n)} is {t.dtype.name}" for n, t in failure.tensors]
    notes = [f"{failure_name(failure)} does not convert between dtypes: {', '.join(texts)}"]
    return Reason(notes, failure.first(_casts(failure), most=2))


COMPARISONS = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


def failure_name(failure: Failure) -> str:
    node = failure.node
    if isinstance(node, ast.BinOp | ast.AugAssign):
        from tensorcli.explain.shapes import OPERATORS

        return f"`{OPERATORS[type(node.op).__name__]}`"
    if isinstance(node, ast.Compare):
        return f"`{COMPARISONS.get(type(node.ops[0]), 'in')}`"
    return f"{failure.operation}()"


def _casts(failure: Failure) -> Iterator[Fix | None]:
    """Each operand cast to what another one is: the widest dtype first."""
    tensors = failure.tensors

    def rank(dtype: Any) -> tuple[bool, bool, int]:
        return dtype.is_complex, dtype.is_floating_point, dtype.itemsize

    wanted = sorted({t.dtype for _, t in tensors}, key=rank, reverse=True)
    for dtype in wanted:
        changes = {n: f"{{}}.to(torch.{dtype.name})" for n, t in tensors if t.dtype is not dtype}
        yield failure.with_parts(changes)
        for number, change in changes.items():
            yield failure.with_parts({number: change})


def one_dtype(failure: Failure, exc: Any) -> Reason:
    """An operation that a dtype does not have."""
    if not failure.tensors:
        return Reason()
    number, tensor = failure.tensors[0]
    name = tensor.dtype.name
    if failure.operation in ("mean", "std", "var", "nanmean", "std_mean", "var_mean"):
        note = f"a {failure.operation} has fractions, which {name} does not hold"
    else:
        note = f"{failure_name(failure)} is not there for {name}"

    def tries() -> Iterator[Fix | None]:
        if tensor.dtype.is_complex:
            yield failure.with_parts({number: "{}.abs()"})
            yield failure.with_parts({number: "{}.real"})
        yield failure.with_parts({number: "{}.float()"})
        if failure.operation in ("mean", "softmax", "log_softmax", "nansum", "nanmean"):
            yield failure.with_parts({}, keyword="dtype=torch.float32")
        if not tensor.dtype.is_integral and not tensor.dtype.is_bool:
            bitwise = failure.operation in ("BitAnd", "BitOr", "BitXor")
            every = {n: "{}.bool()" for n, t in failure.tensors if t.dtype.is_floating_point}
            yield failure.with_parts(every if bitwise else {number: "{}.long()"})
            yield failure.with_parts({number: "{}.long()" if bitwise else "{}.bool()"})
        elif tensor.dtype.is_bool:
            yield failure.with_parts({number: "{}.int()"})
        for other, _ in failure.tensors[1:]:
            yield failure.with_parts({other: "{}.float()"})

    return Reason([note], failure.first(tries(), most=2))


def mask_minus(failure: Failure, exc: Any) -> Reason:
    """`1 - mask`, `-mask`."""
    masks = [n for n, t in failure.tensors if t.dtype.is_bool]
    if not masks:
        return Reason()
    number = masks[-1]
    note = f"{named(failure, number)} is bool: ~ inverts it, for arithmetic it must be a number"

    def tries() -> Iterator[Fix | None]:
        if len(masks) == 2:
            yield failure.as_written("{0} ^ {1}")
        else:
            yield failure.as_written(f"~{{{number}}}")
        yield failure.with_parts(dict.fromkeys(masks, "{}.int()"))

    return Reason([note], failure.first(tries()))


def inplace_dtype(failure: Failure, exc: Any) -> Reason:
    """An in-place operation whose result its destination cannot hold."""
    if not failure.tensors:
        return Reason()
    number, tensor = failure.tensors[0]
    note = (
        f"in place {named(failure, number)} stays {tensor.dtype.name}, and the result would be "
        "of a dtype that it cannot hold: make a new tensor, or convert it first"
    )

    def tries() -> Iterator[Fix | None]:
        yield from out_of_place(failure)
        node = failure.node
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
            yield failure.as_written("{0} //= {1}")
        if not isinstance(node, ast.AugAssign):
            yield failure.with_parts({number: "{}.float()"})

    return Reason([note], failure.first(tries(), most=2))


def to_boolean(failure: Failure, exc: Any) -> Reason:
    """where and masked_fill with a mask that is no mask."""
    wanted = 0 if failure.operation == "where" else 1
    number = failure.argument(wanted, "condition" if wanted == 0 else "mask")
    if number is None or not hasattr(failure.parts[number].value, "dtype"):
        return Reason()
    dtype = failure.parts[number].value.dtype.name  # type: ignore[attr-defined]  # a tensor
    note = f"{named(failure, number)} is {dtype}, a condition is bool"
    tries = (failure.with_parts({number: template}) for template in ("{}.bool()", "({} > 0)"))
    return Reason([note], failure.first(tries))


def to_integer(failure: Failure, exc: Any) -> Reason:
    """Indices, class numbers: an operand that must be whole numbers."""

    def tries() -> Iterator[Fix | None]:
        for number, tensor in failure.tensors:
            if tensor.dtype.name != "int64":
                yield failure.with_parts({number: "{}.long()"})

    wrong = [(n, t) for n, t in failure.tensors if not t.dtype.is_integral]
    if failure.operation.startswith("embedding"):
        wrong = wrong[:1]  # the table behind it is of any dtype
    notes = [
        f"{named(failure, n)} is {t.dtype.name}; positions and classes are whole numbers"
        for n, t in wrong
    ]
    return Reason(notes, failure.first(tries(), most=1))


def devices(failure: Failure, exc: Any) -> Reason:
    tensors = failure.tensors
    if len({str(t.device) for _, t in tensors}) < 2:
        return no_device(failure, exc)
    texts = [f"{named(failure, n)} is on {t.device}" for n, t in tensors]

    def tries() -> Iterator[Fix | None]:
        for number, tensor in reversed(tensors):
            for other, model in tensors:
                if str(tensor.device) != str(model.device) and other != number:
                    yield failure.with_parts({number: f'{{}}.to("{model.device}")'})

    shapes = [ShapeLine(failure.parts[n].text, t.layout.shape) for n, t in tensors]
    return Reason([", ".join(texts)], failure.first(tries(), most=1), shapes)


def no_device(failure: Failure, exc: Any) -> Reason:
    """A cuda device where there is none."""

    def tries() -> Iterator[Fix | None]:
        node = failure.node
        if failure.operation == "cuda":
            yield failure.with_parts({}, function="cpu")
        for number, part in enumerate(failure.parts):
            if isinstance(part.value, str) and part.value.startswith("cuda"):
                yield failure.with_parts({number: '"cpu"'})
            elif isinstance(part.value, Device):
                yield failure.with_parts({number: '"cpu"'})
        if isinstance(node, ast.Call) and failure.operation == "to" and len(failure.parts) > 1:
            yield failure.with_parts({1: '"cpu"'})

    return Reason(["tensors are on the CPU here"], failure.first(tries(), most=1))
