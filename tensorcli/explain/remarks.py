"""Mistakes that are known by the words of their message: what is meant by them, and what does.

Each entry is a few lines; whatever it would write instead is tried like any other fix.
"""

from __future__ import annotations

import ast
import re

from engine.tensor import Tensor
from tensorcli.diagnostics import ShapeLine
from tensorcli.explain.shapes import OPERATORS, Reason, named, short, with_dim
from tensorcli.explain.trial import Fix
from tensorcli.explain.words import is_harmless

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from tensorcli.explain.trial import Failure


def _first(failure: Failure) -> tuple[int, Any] | None:
    return next(iter(failure.tensors), None)


def _lines(failure: Failure) -> list[ShapeLine]:
    return [ShapeLine(failure.parts[n].text, t.layout.shape) for n, t in failure.tensors]


def transposed(failure: Failure, exc: Any) -> Reason:
    found = _first(failure)
    if found is None:
        return Reason()
    number, tensor = found
    note = f"t() swaps the dimensions of a matrix; {named(failure, number)} has {tensor.ndim}"
    return Reason(
        [note],
        failure.first(
            [failure.as_written(f"{{{number}}}.mT"), failure.as_written(f"{{{number}}}.mT.mT")],
            most=1,
        ),
        _lines(failure),
    )


def permuted(failure: Failure, exc: Any) -> Reason:
    found = _first(failure)
    if found is None:
        return Reason()
    number, tensor = found
    dims = [n for n, p in enumerate(failure.parts) if type(p.value) is int]
    given = [failure.parts[n].value for n in dims]
    ndim = tensor.ndim
    every = list(range(ndim))
    note = (
        f"permute() names each of the {ndim} dimensions of {named(failure, number)} once "
        f"({', '.join(map(str, every))} in the order wanted), not {', '.join(map(str, given))}"
    )

    def tries() -> Iterator[Fix | None]:
        known = [d for d in dict.fromkeys(given) if isinstance(d, int) and 0 <= d < ndim]
        wanted = [*known, *(d for d in every if d not in known)]
        if isinstance(failure.node, ast.Call) and isinstance(failure.node.func, ast.Attribute):
            yield failure.as_written(f"{{{number}}}.permute({', '.join(map(str, wanted))})")

    return Reason([note], failure.first(tries()), _lines(failure))


def probabilities(failure: Failure, exc: Any) -> Reason:
    number = failure.argument(0, "input")
    if number is None:
        return Reason()
    note = (
        f"{named(failure, number)} must hold probabilities; for raw scores there is "
        "binary_cross_entropy_with_logits(), or sigmoid() before"
    )
    tries = [
        failure.with_parts({}, function="binary_cross_entropy_with_logits"),
        failure.with_parts({number: "{}.sigmoid()"}),
    ]
    return Reason([note], failure.first(tries))


def parted(failure: Failure, exc: Any) -> Reason:
    """split and unflatten: sizes that do not add up, or multiply."""
    found = _first(failure)
    if found is None:
        return Reason()
    number, tensor = found
    sizes = [n for n, p in enumerate(failure.parts) if type(p.value) is int]

    def tries() -> Iterator[Fix | None]:
        if "unflatten" in str(exc):
            for size in sizes[1:]:
                yield failure.with_parts({size: "-1"})
            return
        for dim in range(tensor.ndim):
            yield from with_dim(failure, dim)
        total = re.search(r"exactly to (\d+)", str(exc))
        if total is not None and sizes:
            rest = int(total.group(1)) - sum(int(str(failure.parts[n].value)) for n in sizes[:-1])
            if rest >= 0:
                yield failure.with_parts({sizes[-1]: str(rest)})

    what = "multiply up to" if "unflatten" in str(exc) else "add up to"
    note = f"the sizes must {what} the size of that dimension of {named(failure, number)}"
    return Reason([note], failure.first(tries(), most=2), _lines(failure))


def classes(failure: Failure, exc: Any) -> Reason:
    found = _first(failure)
    if found is None or found[1].layout.numel == 0:
        return Reason()
    number, tensor = found
    highest = int(tensor.max().item())
    note = f"{named(failure, number)} holds {highest}, so there are at least {highest + 1} classes"
    tries = [
        failure.with_parts({n: str(highest + 1)})
        for n, p in enumerate(failure.parts)
        if type(p.value) is int
    ]
    return Reason([note], failure.first(tries))


def square(failure: Failure, exc: Any) -> Reason:
    found = _first(failure)
    if found is None:
        return Reason()
    number, tensor = found
    singular = "singular" in str(exc)
    note = f"{named(failure, number)} is {'x'.join(map(str, tensor.shape[-2:]))}"
    if singular:
        note = f"{named(failure, number)} is singular: its columns depend on each other"
    if failure.operation in ("inv", "inverse"):
        note += "; the pseudo-inverse exists for every matrix"
        tries = [failure.with_parts({}, function="pinv")]
    elif failure.operation == "solve":
        note += "; a least-squares solution exists for every matrix"
        tries = []
    else:
        tries = []
    return Reason([note], failure.first(tries), _lines(failure))


def formatted(failure: Failure, exc: Any) -> Reason:
    found = _first(failure)
    if found is None:
        return Reason()
    number, tensor = found
    if tensor.layout.numel != 1:
        note = (
            f"a format such as .2f is for one number, {named(failure, number)} has "
            f"{tensor.layout.numel}: set_printoptions(precision=2) rounds what is printed"
        )
        return Reason([note])
    note = f"{named(failure, number)} has a dimension; item() takes its number out"
    return Reason([note], failure.first([failure.as_written(f"{{{number}}}.item()")]))


def last_sizes(failure: Failure, exc: Any) -> Reason:
    found = _first(failure)
    shape = failure.argument(1, "normalized_shape")
    if found is None:
        return Reason()
    number, tensor = found
    note = f"normalized_shape are the last sizes of {named(failure, number)}"
    wanted = str(list(tensor.shape[-1:]))
    sizes = [n for n, p in enumerate(failure.parts) if type(p.value) is int]
    tries = []
    if shape is not None:
        tries.append(failure.with_parts({shape: wanted}))
    if len(sizes) == 1:
        tries.append(failure.with_parts({sizes[0]: str(tensor.shape[-1])}))
    return Reason([note], failure.first(tries), _lines(failure))


def channels(failure: Failure, exc: Any) -> Reason:
    found = _first(failure)
    if found is None or found[1].ndim < 2:
        return Reason()
    number, tensor = found
    note = f"one number for each channel: dim 1 of {named(failure, number)} is {tensor.shape[1]}"
    return Reason([note], [], _lines(failure))


def no_dimension(failure: Failure, exc: Any) -> Reason:
    """len(x), for … in x, where x is one number."""
    found = _first(failure)
    if found is None:
        return Reason()
    number, _ = found
    note = f"{named(failure, number)} is a single number and has no elements to go through"
    if failure.operation == "len":
        tries = [failure.as_written(f"{{{number}}}.numel()")]
    else:
        tries = [failure.as_written(f"{{{number}}}.reshape(1)")]
    return Reason([note], failure.first(tries))


def no_tensor(failure: Failure, exc: Any) -> Reason:
    """A method of tensors asked of a number, a list, or a pair of values and indices."""
    node = failure.node
    if not isinstance(node, ast.Attribute) or not failure.parts:
        return Reason()
    value = failure.parts[0].value
    fields = getattr(type(value), "_fields", ())
    subject = named(failure, 0)
    if isinstance(value, tuple) and "values" in fields:
        other = " and ".join(fields)
        note = f"{subject} is a pair, {other}"
        return Reason([note], failure.first([failure.as_written(f"{{0}}.values.{node.attr}")]))
    if isinstance(value, list | tuple) and all(isinstance(v, int | float) for v in value):
        note = f"{subject} is a {type(value).__name__} of numbers, not a tensor"
        return Reason(
            [note], failure.first([failure.as_written(f"torch.tensor({{0}}).{node.attr}")])
        )
    if isinstance(value, list | tuple) and any(isinstance(v, Tensor) for v in value):
        note = f"{subject} is a {type(value).__name__} of tensors, not a tensor"
        return Reason(
            [note], failure.first([failure.as_written(f"torch.stack({{0}}).{node.attr}")])
        )
    if isinstance(value, int | float):
        made = _made_by(failure, failure.parts[0].text)
        since = "" if made is None else f" since {made}"
        note = (
            f"{subject} is a Python number{since}; item() and float() take a tensor's number out "
            "of the graph"
        )
        return Reason([note])
    return Reason()


def _made_by(failure: Failure, name: str) -> str | None:
    """The last assignment of a name before the failure, as it stands in the text."""
    line = failure.source.span(failure.node).line
    found: str | None = None
    for node in ast.walk(ast.parse(failure.source.text)):
        if isinstance(node, ast.Assign | ast.AugAssign) and node.lineno < line:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(t, ast.Name) and t.id == name for t in targets):
                found = f"`{short(failure.source.segment(node))}` on line {node.lineno}"
    return found


def called(failure: Failure, exc: Any) -> Reason:
    """x.shape(): what is no function."""
    node = failure.node
    if not isinstance(node, ast.Call):
        return Reason()
    text = failure.source.segment(node.func)
    arguments = [failure.source.segment(a) for a in node.args]
    note = f"`{text}` is a value, not a function"

    def tries() -> Iterator[Fix | None]:
        if not arguments:
            yield failure.as_written(text.replace("{", "{{").replace("}", "}}"))
        else:
            yield failure.as_written(f"{text}[{', '.join(arguments)}]")

    return Reason([note], failure.first(tries()))


def uncalled(failure: Failure, exc: Any) -> Reason:
    """x.size[0]: a method that was not called."""
    node = failure.node
    if not isinstance(node, ast.Subscript):
        return Reason()
    text, index = failure.source.segment(node.value), failure.source.segment(node.slice)
    note = f"`{text}` is a method: it must be called before there are elements"
    tries = [failure.as_written(f"{text}({index})"), failure.as_written(f"{text}()[{index}]")]
    return Reason([note], failure.first(tries, most=1))


def operands(failure: Failure, exc: Any) -> Reason:
    """A tensor with a list, an array, None or a pair."""
    notes, changes = [], []
    for number, part in enumerate(failure.parts):
        value = part.value
        if isinstance(value, tuple) and "values" in getattr(type(value), "_fields", ()):
            notes.append(f"{named(failure, number)} is a pair, values and indices")
            changes.append({number: "{}.values"})
        elif isinstance(value, list | tuple):
            notes.append(f"{named(failure, number)} is a {type(value).__name__}, not a tensor")
            changes.append({number: "torch.tensor({})"})
        elif type(value).__name__ == "NDArray":
            notes.append(f"{named(failure, number)} is a numpy array")
            changes.append({number: "torch.from_numpy({})"})
        elif value is None and part.text != "None":
            notes.append(f"{named(failure, number)} is None")
    if not failure.tensors:
        return Reason()
    node = failure.node
    if isinstance(node, ast.BinOp):
        for literal in (node.left, node.right):
            if isinstance(literal, ast.List | ast.Tuple):
                text = failure.source.segment(literal)
                other = failure.source.segment(node.right if literal is node.left else node.left)
                sides = [f"torch.tensor({text})", other]
                sides = sides if literal is node.left else sides[::-1]
                words = f" {OPERATORS[type(node.op).__name__]} ".join(sides)
                note = f"`{text}` is a {type(literal).__name__.lower()}, not a tensor"
                return Reason([note], failure.first([failure.as_written(_braced(words))]))
    return Reason(notes, failure.first(map(failure.with_parts, changes)))


def _braced(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def unpacked(failure: Failure, exc: Any) -> Reason:
    """a, b, c = x: unpacking goes through the first dimension."""
    node = failure.node
    for other in ast.walk(ast.parse(failure.source.text)):
        if not isinstance(other, ast.Assign):
            continue
        if failure.source.span(other.targets[0]) != failure.source.span(node):
            continue
        text = failure.source.segment(other.value)
        whole = failure.elsewhere(text) if is_harmless(other.value, failure.names) else None
        if whole is None or whole.shape is None:
            return Reason()
        shape, count = whole.shape, len(getattr(node, "elts", ()))
        note = (
            f"`{short(text)}` has shape {list(shape)}: it is unpacked along dim 0, into "
            f"{shape[0] if shape else 0} parts, and there are {count} names"
        )
        dims = [dim for dim, size in enumerate(shape) if size == count]
        words = f"{text if isinstance(other.value, ast.Name | ast.Call) else f'({text})'}.unbind"
        tries = [failure.elsewhere(f"{words}({dim})") for dim in dims]
        targets = failure.source.segment(node)
        fixes = failure.first(tries, most=1)
        return Reason([note], [Fix(f"{targets} = {fix.expr}", None) for fix in fixes])
    return Reason()


def dtype_name(failure: Failure, exc: Any) -> Reason:
    """dtype='float32', x.to('float32'): the name of a dtype as a text."""
    from engine.dtypes import by_name

    for number, part in enumerate(failure.parts):
        if isinstance(part.value, str) and part.value in by_name:
            note = f"{part.text} is a text, the dtype is torch.{part.value}"
            fixes = failure.first([failure.with_parts({number: f"torch.{part.value}"})])
            return Reason([note], fixes)
    return Reason()


def same_as_tensor(failure: Failure, exc: Any) -> Reason:
    """x.grad = y of another shape."""
    found = _first(failure)
    if found is None:
        return Reason()
    number, tensor = found
    has = f"the shape of {named(failure, number)}: {list(tensor.shape)}"
    if "dtype" in str(exc):
        has = f"the dtype of {named(failure, number)}: {tensor.dtype.name}"
    return Reason([f"a gradient has {has}"])


def beyond_range(failure: Failure, exc: Any) -> Reason:
    found = _first(failure)
    if found is None:
        return Reason()
    number, tensor = found
    bits = 8 * tensor.dtype.itemsize
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if tensor.dtype.signed else (
        0, 2**bits - 1)  # fmt: skip
    if not tensor.dtype.is_integral:
        return Reason()
    note = f"{named(failure, number)} is {tensor.dtype.name}, which holds {low} to {high}"
    return Reason([note])


def two_dims(failure: Failure, exc: Any) -> Reason:
    """x.sum(0, 1): several dims belong in one tuple."""
    found = _first(failure)
    dims = [n for n, p in enumerate(failure.parts) if type(p.value) is int]
    if found is None or len(dims) < 2:
        return Reason()
    number = found[0]
    listed = ", ".join(failure.parts[n].text for n in dims)
    note = f"several dimensions of {failure.operation}() belong in one tuple"
    words = f"{{{number}}}.{failure.operation}(({listed}))"
    return Reason([note], failure.first([failure.as_written(words)]))


def in_list(failure: Failure, exc: Any) -> Reason:
    """SGD(w, lr=…): parameters belong in a list."""
    found = _first(failure)
    if found is None:
        return Reason()
    number = found[0]
    note = "an optimiser takes its parameters in a list"
    return Reason([note], failure.first([failure.with_parts({number: "[{}]"})]))


# The words of a message, and what is said about it.
REMARKS: tuple[tuple[str, Callable[[Failure, Any], Reason]], ...] = (
    ("t() expects a tensor", transposed),
    ("permute(", permuted),
    ("should be between 0 and 1", probabilities),
    ("unflatten: Provided sizes", parted),
    ("split_sizes to sum", parted),
    ("smaller than num_classes", classes),
    ("batches of square matrices", square),
    ("matrix is singular", square),
    ("format string passed to Tensor", formatted),
    ("normalized_shape", last_sizes),
    ("should contain", channels),
    ("of a 0-d tensor", no_dimension),
    ("over a 0-d tensor", no_dimension),
    ("object has no attribute", no_tensor),
    ("object is not callable", called),
    ("'builtin_function_or_method' object is not subscriptable", uncalled),
    ("unsupported operand type(s)", operands),
    ("values to unpack", unpacked),
    ("must be torch.dtype, not str", dtype_name),
    ("Invalid device string", dtype_name),
    ("attempting to assign a gradient of size", same_as_tensor),
    ("attempting to assign a gradient with dtype", same_as_tensor),
    ("cannot be converted to type", beyond_range),
    ("argument 'keepdim' (position 2) must be bool", two_dims),
    ("argument given to the optimizer should be an iterable", in_list),
)
