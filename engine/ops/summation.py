"""Einstein's summation: equations read, operands lined up, pairs multiplied from left to right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import TensorRuntimeError, TensorValueError
from engine.kinds import composite
from engine.registry import function, ops
from engine.signature import ArgumentError, type_name
from engine.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ELLIPSIS = 52


def _count(shape: Any) -> int:
    n = 1
    for size in shape:
        n *= size
    return n


def _ellipsis(text: str, at: int, seen: bool, where: str) -> None:
    if seen:
        raise TensorRuntimeError(
            f"einsum(): found '.' for {where} for which an ellipsis was already found"
        )
    if text[at : at + 3] != "...":
        shown = " (...)" if where == "output" else ""
        raise TensorRuntimeError(
            f"einsum(): found '.' for {where} that is not part of any ellipsis{shown}"
        )


def _invalid(at: int) -> TensorRuntimeError:
    return TensorRuntimeError(
        f"einsum(): invalid subscript given at index {at} in the equation string, subscripts "
        "must be in [a-zA-Z]"
    )


def _inputs(left: str, count: int) -> list[list[int]]:
    """The labels of each operand; 52 stands for an ellipsis."""
    labels: list[list[int]] = [[]]
    at = 0
    seen = False
    while at < len(left):
        c = left[at]
        if c == ".":
            _ellipsis(left, at, seen, f"operand {len(labels) - 1}")
            at += 2
            seen = True
            labels[-1].append(_ELLIPSIS)
        elif c == ",":
            if len(labels) >= count:
                raise TensorRuntimeError(
                    "einsum(): fewer operands were provided than specified in the equation"
                )
            labels.append([])
            seen = False
        elif c != " ":
            if c not in _LETTERS:
                raise _invalid(at)
            labels[-1].append(_LETTERS.index(c))
        at += 1
    if len(labels) < count:
        raise TensorRuntimeError(
            "einsum(): more operands were provided than specified in the equation"
        )
    return labels


def _output(right: str, start: int, counts: Sequence[int]) -> list[int]:
    found: list[int] = []
    at = 0
    while at < len(right):
        c = right[at]
        if c == ".":
            _ellipsis(right, at, _ELLIPSIS in found, "output")
            at += 2
            found.append(_ELLIPSIS)
        elif c != " ":
            if c not in _LETTERS:
                raise _invalid(start + at)
            label = _LETTERS.index(c)
            if label in found:
                raise TensorRuntimeError(
                    f"einsum(): output subscript {c} appears more than once in the output"
                )
            if not counts[label]:
                raise TensorRuntimeError(
                    f"einsum(): output subscript {c} does not appear in the equation for any "
                    "input operand"
                )
            found.append(label)
        at += 1
    return found


def _dots(labels: list[list[int]], operands: Sequence[Tensor]) -> int:
    """How many dimensions the ellipses stand for at most."""
    most = 0
    for at, (found, t) in enumerate(zip(labels, operands, strict=True)):
        n = len(found)
        if _ELLIPSIS in found:
            n -= 1
            most = max(most, t.ndim - n)
            if n > t.ndim:
                raise TensorRuntimeError(
                    f"einsum(): the number of subscripts in the equation ({n}) is more than the "
                    f"number of dimensions ({t.ndim}) for operand {at}"
                )
        elif n != t.ndim:
            raise TensorRuntimeError(
                f"einsum(): the number of subscripts in the equation ({n}) does not match the "
                f"number of dimensions ({t.ndim}) for operand {at} and no ellipsis was given"
            )
    return most


def _check_repeated(labels: list[int], sizes: tuple[int, ...], at: int) -> None:
    """A label twice on one operand names two dimensions of one size."""
    dots = len(sizes) - (len(labels) - 1)
    first: dict[int, int] = {}
    j = 0
    for label in labels:
        if label == _ELLIPSIS:
            j += dots
            continue
        size = first.setdefault(label, sizes[j])
        if size != sizes[j]:
            raise TensorRuntimeError(
                f"einsum(): subscript {_LETTERS[label]} is repeated for operand {at} but the "
                f"sizes don't match, {sizes[j]} != {size}"
            )
        j += 1


def _check_sizes(labels: list[list[int]], operands: Sequence[Tensor], dots: int) -> None:
    sizes: dict[int, int] = {}
    hidden = [1] * dots
    for at, (found, t) in enumerate(zip(labels, operands, strict=True)):
        _check_repeated(found, t.layout.shape, at)
        j = 0
        for label in found:
            if label == _ELLIPSIS:
                span = t.ndim - (len(found) - 1)
                for k in range(dots - span, dots):
                    size = t.layout.shape[j]
                    if hidden[k] != 1 and size != 1 and hidden[k] != size:
                        raise TensorRuntimeError(
                            f"einsum(): dimension {j} covered by ellipsis in operand {at}has size "
                            f"{size} which does not broadcast with previously seen ellipsis with "
                            f"size {hidden[k]} for the respective dimension"
                        )
                    hidden[k] = max(hidden[k], size) if size else size
                    j += 1
                continue
            size = t.layout.shape[j]
            known = sizes.get(label, 1)
            if known not in (1, size) and size != 1:
                raise TensorRuntimeError(
                    f"einsum(): subscript {_LETTERS[label]} has size {size} for operand {at} "
                    f"which does not broadcast with previously seen size {known}"
                )
            if size != 1:
                sizes[label] = size
            j += 1


def _lined_up(
    x: Tensor, labels: list[int], places: dict[int, int], dots: int, total: int
) -> Tensor:
    """An operand with every label of the equation as a dimension, repeated ones made diagonals."""
    order = [-1] * total
    dims: dict[int, int] = {}
    j = 0
    missing = dots - (x.ndim - (len(labels) - 1))
    for label in labels:
        if label == _ELLIPSIS:
            for _ in range(missing):
                x = x.unsqueeze(j)
            for k in range(dots):
                order[places[_ELLIPSIS] + k] = j
                j += 1
        elif label in dims:
            dim = dims[label]
            x = x.diagonal(0, dim, j).movedim(-1, dim)
        else:
            dims[label] = j
            order[places[label]] = j
            j += 1
    for place, dim in enumerate(order):
        if dim < 0:
            x = x.unsqueeze(-1)
            order[place] = j
            j += 1
    return x.permute(tuple(order))


def _paired(x: Tensor, y: Tensor, dims: list[int]) -> Tensor:
    """The product summed over ``dims``, which stay with size 1, by one batched product."""
    both: list[int] = []
    left: list[int] = []
    right: list[int] = []
    for d in range(x.ndim):
        if d in dims:
            continue
        wide_x, wide_y = x.layout.shape[d] != 1, y.layout.shape[d] != 1
        (both if wide_x and wide_y else left if wide_x else right).append(d)
    if left and right and y.layout.shape[right[0]] != 1 and right[0] < left[0]:
        x, y, left, right = y, x, right, left
    p, q = x.layout.shape, y.layout.shape
    batch, rows = _count(p[d] for d in both), _count(p[d] for d in left)
    inner, columns = _count(p[d] for d in dims), _count(q[d] for d in right)
    a = x.permute((*both, *left, *dims, *right)).reshape((batch, rows, inner))
    b = y.permute((*both, *dims, *right, *left)).reshape((batch, inner, columns))
    shape = (
        *(p[d] for d in both),
        *(p[d] for d in left),
        *(1 for _ in dims),
        *(q[d] for d in right),
    )
    back = [0] * x.ndim
    for i, d in enumerate((*both, *left, *dims, *right)):
        back[d] = i
    return a.bmm(b).view(shape).permute(tuple(back))


def _one_by_one(operands: list[Tensor], kept: int, total: int) -> Tensor:
    wide = [sum(t.layout.shape[d] != 1 for t in operands) for d in range(total)]
    while len(operands) > 1:
        a, b = operands.pop(0), operands.pop(0)
        alone_a: list[int] = []
        alone_b: list[int] = []
        shared: list[int] = []
        for d in range(kept, total):
            m, n = a.layout.shape[d], b.layout.shape[d]
            if m != 1 and n != 1:
                wide[d] -= 1
                if wide[d] == 1:
                    shared.append(d)
                    wide[d] = 0
            elif wide[d] == 1:
                if m != 1:
                    alone_a.append(d)
                    wide[d] = 0
                elif n != 1:
                    alone_b.append(d)
                    wide[d] = 0
        if alone_a:
            a = a.sum(tuple(alone_a), True)
        if alone_b:
            b = b.sum(tuple(alone_b), True)
        operands.append(_paired(a, b, shared) if shared else a * b)
    return operands[0]


@composite(
    name="_einsum",
    function=False,
    method=False,
    example="einsum('ij,jk->ik', ones(2, 3), ones(3, 1))",
)
def _einsum(equation: str, operands: Any) -> Tensor:
    """Products of operands summed over the labels that the output lacks."""
    if not operands:
        raise TensorRuntimeError("einsum(): must provide at least one operand")
    left, arrow, right = equation.partition("->")
    labels = _inputs(left, len(operands))
    dots = _dots(labels, operands)
    counts = [sum(found.count(label) for found in labels) for label in range(_ELLIPSIS + 1)]
    if arrow:
        output = _output(right, len(left) + 2, counts)
    else:
        output = [_ELLIPSIS] if counts[_ELLIPSIS] else []
        output += [label for label in range(_ELLIPSIS) if counts[label] == 1]
    places: dict[int, int] = {}
    total = 0
    for label in output:
        places[label] = total
        total += dots if label == _ELLIPSIS else 1
    kept = total
    if _ELLIPSIS not in places:
        places[_ELLIPSIS] = total
        total += dots
    for label in range(_ELLIPSIS):
        if counts[label] and label not in places:
            places[label] = total
            total += 1
    _check_sizes(labels, operands, dots)
    lined = [
        _lined_up(t, found, places, dots, total) for t, found in zip(operands, labels, strict=True)
    ]
    y = _one_by_one(lined, kept, total)
    if total == kept:
        return y
    if len(operands) > 1:
        return y.view(tuple(y.layout.shape[:kept]))
    return y.sum(tuple(range(kept, total)))


def _from_lists(args: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """The equation and operands of the form einsum(op1, [0, 1], op2, [1, 2], …, [0, 2])."""

    def letters(subscripts: Any) -> str:
        text = ""
        for s in subscripts:
            if s is Ellipsis:
                text += "..."
            elif 0 <= s < _ELLIPSIS:
                text += _LETTERS[s]
            else:
                raise TensorValueError(
                    "einsum(): subscript in subscript list is not within the valid range [0, 52)"
                )
        return text

    equation = ",".join(letters(s) for s in args[1::2])
    if len(args) % 2:
        equation += "->" + letters(args[-1])
        return equation, list(args[:-1:2])
    return equation, list(args[::2])


_EINSUM_TEXTS = (
    "(str equation, Tensor *operands)",
    "(Tensor operand, list of ints sublist, ..., list of ints sublist_out = None)",
)


@function("einsum", forms=_EINSUM_TEXTS)
def einsum(*args: Any) -> Tensor:
    """Einstein summation: ``einsum("ij,jk->ik", a, b)``; labels that the output lacks are summed.

    Also takes operands and lists of label numbers in turn.
    """
    if len(args) < 2:
        raise TensorValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one "
            "operand and its subscripts list"
        )
    if isinstance(args[0], Tensor):
        equation, operands = _from_lists(args)
    else:
        equation, operands = args[0], list(args[1:])
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = list(operands[0])
    if not isinstance(equation, str):
        raise ArgumentError(
            f"einsum(): argument 'equation' (position 1) must be str, not {type_name(equation)}",
            "equation",
        )
    for at, t in enumerate(operands):
        if not isinstance(t, Tensor):
            raise ArgumentError(
                f"expected Tensor as element {at} in argument 1, but got {type_name(t)}", "operands"
            )
    return ops["_einsum"].body(equation, operands)
