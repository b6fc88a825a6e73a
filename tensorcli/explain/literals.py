"""What tensor() cannot take: rows of different lengths, tensors, text and None among numbers."""

from __future__ import annotations

import ast

from engine.tensor import Tensor
from tensorcli.explain.shapes import Reason, named, short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tensorcli.explain.trial import Failure, Fix

    Path = tuple[int, ...]
    Length = tuple[Path, int | None]  # None: no list


def _braced(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _given(failure: Failure) -> Any:
    """The list that the call got, as far as it is known; None otherwise."""
    node = failure.node
    if not isinstance(node, ast.Call) or not node.args:
        return None
    number = failure.number_of(node.args[0])
    if number is not None:
        return failure.parts[number].value
    return _written(failure, node.args[0])


def _written(failure: Failure, node: ast.expr) -> Any:
    """The value of a list that was written out, from the values of its elements."""
    if isinstance(node, ast.List | ast.Tuple):
        return [_written(failure, element) for element in node.elts]
    number = failure.number_of(node)
    if number is not None:
        return failure.parts[number].value
    return node.value if isinstance(node, ast.Constant) else ...


def _place(path: Path) -> str:
    return "[" + "][".join(map(str, path)) + "]"


def _subject(failure: Failure) -> str:
    node = failure.node
    assert isinstance(node, ast.Call)
    number = failure.number_of(node.args[0])
    return "the list" if number is None else named(failure, number)


def ragged(failure: Failure, exc: Any) -> Reason:
    """tensor([[1, 2], [3]]): which row is short, and the same with zeros to fill it up."""
    node = failure.node
    if not isinstance(node, ast.Call) or not node.args:
        return Reason()
    value = _given(failure)
    found = _uneven(value) if isinstance(value, list | tuple) else None
    if found is None:
        return Reason()
    (first, here), (other, there) = found
    literal = isinstance(node.args[0], ast.List | ast.Tuple)
    if here is None or there is None:
        kinds = [f"a list of {n}" if n is not None else "a number" for n in (here, there)]
        places = f"element {_place(first)} is {kinds[0]}, element {_place(other)} {kinds[1]}"
        return Reason([places])
    text = _row_text(failure, node.args[0], other) if literal else ""
    if len(other) == 1:
        note = f"row {first[0]} has {here} elements, row {other[0]} has {there}{text}"
    else:
        note = f"row {_place(first)} has {here} elements, row {_place(other)} has {there}{text}"
    if not literal:
        note = f"in {_subject(failure)} {note}"
    return Reason([note], failure.first(_filled(failure, node, literal)))


def _uneven(value: Any) -> tuple[Length, Length] | None:
    """The first two elements of one level that differ in length, with their places."""
    level: list[tuple[Path, Any]] = [((), value)]
    while level:
        lengths = [(at, len(v) if isinstance(v, list | tuple) else None) for at, v in level]
        if all(length is None for _, length in lengths):
            return None
        for at, length in lengths:
            if length != lengths[0][1]:
                return lengths[0], (at, length)
        level = [((*at, i), item) for at, v in level for i, item in enumerate(v)][:10_000]
    return None


def _row_text(failure: Failure, node: ast.expr, path: Path) -> str:
    for index in path:
        elements = getattr(node, "elts", [])
        if index >= len(elements):
            return ""
        node = elements[index]
    return f": `{short(failure.source.segment(node))}`"


def _filled(failure: Failure, node: ast.Call, literal: bool) -> Iterator[Fix | None]:
    """The rows of a matrix with zeros behind the short ones."""
    function = failure.source.segment(node.func)
    value = _given(failure)
    if not all(isinstance(row, list | tuple) for row in value):
        return
    most = max(map(len, value))
    if literal:
        rows = []
        for row in getattr(node.args[0], "elts", []):
            inner = [failure.source.segment(e) for e in getattr(row, "elts", [])]
            rows.append("[" + ", ".join([*inner, *["0"] * (most - len(inner))]) + "]")
        yield failure.as_written(_braced(f"{function}([{', '.join(rows)}])"))
    else:
        text = failure.source.segment(node.args[0])
        words = f"{function}([row + [0] * ({most} - len(row)) for row in {text}])"
        yield failure.as_written(_braced(words))


def one_each(failure: Failure, exc: Any) -> Reason:
    """tensor([a, b]) of tensors with several elements."""
    value = _given(failure)
    if not isinstance(value, list | tuple) or not any(isinstance(v, Tensor) for v in value):
        return Reason()
    note = "tensor() takes numbers; to put tensors together there is stack()"
    if not isinstance(getattr(failure.node, "args", [None])[0], ast.List | ast.Tuple):
        note = f"{_subject(failure)} is a {type(value).__name__} of tensors: {note}"
    return Reason([note], failure.first([failure.with_parts({}, function="stack")]))


def no_number(failure: Failure, exc: Any) -> Reason:
    """tensor([1., None]), tensor(["1"])."""
    value = _given(failure)
    found = _first_odd(value, ())
    if found is None:
        return Reason()
    path, odd = found
    what = "None" if odd is None else f"the text {odd!r}"
    where = f"element {_place(path)} of {_subject(failure)} is {what}" if path else f"it is {what}"
    note = f"{where}, and a tensor holds numbers"
    node: Any = failure.node
    text = failure.source.segment(node.args[0])
    function = failure.source.segment(node.func)
    flat = isinstance(value, list | tuple) and len(path) == 1

    def tries() -> Iterator[Fix | None]:
        if flat and odd is None:
            words = f"{function}([math.nan if v is None else v for v in {text}])"
            yield failure.as_written(_braced(words.replace("math.nan", 'float("nan")')))
        elif flat:
            yield failure.as_written(_braced(f"{function}([float(v) for v in {text}])"))
        elif isinstance(odd, str) and not path:
            yield failure.as_written(_braced(f"{function}(float({text}))"))

    return Reason([note], failure.first(tries()))


def _first_odd(value: Any, path: Path) -> tuple[Path, Any] | None:
    if value is None or isinstance(value, str):
        return path, value
    if isinstance(value, list | tuple) and len(path) < 8:
        for i, item in enumerate(value[:1000]):
            found = _first_odd(item, (*path, i))
            if found is not None:
                return found
    return None
