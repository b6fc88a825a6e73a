"""Elements that are not there, masks and targets that do not fit, tensors where a number is due."""

from __future__ import annotations

import ast
import re

from engine.tensor import Tensor
from tensorcli.diagnostics import ShapeLine
from tensorcli.explain.shapes import Reason, named, shape_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tensorcli.explain.trial import Failure, Fix


def dim_range(failure: Failure, exc: Any) -> Reason:
    """A dimension that the tensor does not have."""
    subject = next((n for n, t in failure.tensors), None)
    if subject is None:
        return Reason()
    ndim = len(shape_of(failure, subject))
    what = f"{named(failure, subject)} has {ndim} dimension{'s' if ndim != 1 else ''}"
    dims = f"0 to {ndim - 1}, or -{ndim} to -1 from the right" if ndim > 1 else "0, or -1"
    note = f"{what}: {dims}" if ndim else what

    def tries() -> Iterator[Fix | None]:
        wrong = [
            n for n, p in enumerate(failure.parts) if type(p.value) is int and p.value == exc.dim
        ]
        for dim in (-1, *range(ndim - 2, -1, -1)):
            for number in wrong[:1]:
                yield failure.with_parts({number: str(dim)})

    shapes = [ShapeLine(failure.parts[n].text, t.layout.shape) for n, t in failure.tensors]
    return Reason([note], failure.first(tries(), most=2), shapes)


def index(failure: Failure, exc: Any) -> Reason:
    """x[…]: out of range, too many, a mask that does not fit, lists of different lengths."""
    text = str(exc)
    if not failure.tensors:
        return Reason()
    own = failure.tensors[0][0]
    shape = shape_of(failure, own)
    out = re.search(r"index (-?\d+) is out of bounds for dimension (\d+) with size (\d+)", text)
    if out is not None:
        return _out_of_bounds(failure, own, *map(int, out.groups()))
    if "too many indices" in text:
        return _too_many(failure, own)
    if "shape of the mask" in text:
        return _mask(failure, own)
    if "indexing tensors could not be broadcast" in text:
        return _lists(failure, own)
    if "used as indices must be" in text or "valid indices" in text:
        return _kind(failure, own)
    if "0-dim tensor" in text:
        return Reason(
            [f"{named(failure, own)} is a single number: it has no elements to choose from"],
            failure.first([failure.as_written("{0}.item()")]),
        )
    return Reason([], [], [ShapeLine(failure.parts[own].text, shape)])


def _out_of_bounds(failure: Failure, own: int, at: int, dim: int, size: int) -> Reason:
    shape = shape_of(failure, own)
    if dim >= len(shape) or shape[dim] != size:  # other indices moved the dimensions
        return Reason([f"there are {size} elements: 0 to {size - 1}"] if size else [])
    note = (
        f"dim {dim} of {named(failure, own)} has size {size}: elements 0 to {size - 1}, "
        f"or -{size} to -1 from the end"
        if size
        else f"dim {dim} of {named(failure, own)} is empty"
    )

    def tries() -> Iterator[Fix | None]:
        for number, part in enumerate(failure.parts):
            if number != own and type(part.value) is int and part.value == at:
                yield failure.with_parts({number: "-1"})
        for number, tensor in failure.tensors:
            if number != own and tensor.dtype.is_integral and tensor.layout.numel:
                low, high = int(tensor.min().item()), int(tensor.max().item())
                if low >= 1 and high == size:
                    yield failure.with_parts({number: "{} - 1"})
                yield failure.with_parts({number: f"{{}}.clamp(0, {size - 1})"})

    lines = [ShapeLine(failure.parts[own].text, shape_of(failure, own), dim)]
    if failure.operation.startswith(("gather", "scatter", "index_add", "index_copy")):
        lines = [ShapeLine(failure.parts[n].text, t.layout.shape) for n, t in failure.tensors]
        lines[0] = ShapeLine(lines[0].text, lines[0].shape, dim)
    return Reason([note], failure.first(tries(), most=1), lines)


def _elements(node: ast.AST) -> list[ast.expr]:
    """The indices in a subscript's brackets."""
    inner = getattr(node, "slice", None)
    if isinstance(inner, ast.Tuple):
        return list(inner.elts)
    return [] if inner is None else [inner]


def _too_many(failure: Failure, own: int) -> Reason:
    shape = shape_of(failure, own)
    elements = _elements(failure.node)
    texts = [failure.source.segment(node) for node in elements]
    takes = [_dims_taken(failure, node) for node in elements]
    fitting = next((k for k in range(len(takes), 0, -1) if sum(takes[:k]) <= len(shape)), 0)
    kept = ", ".join(texts[:fitting])
    note = f"{named(failure, own)} has {len(shape)} dimensions, the brackets name {sum(takes)}"
    for text, taken in zip(texts, takes, strict=True):
        if taken > 1:
            note += f": the mask `{text}` alone stands for {taken}"
    fixes = failure.first([failure.as_written(f"{{{own}}}[{_braced(kept)}]")]) if kept else []
    return Reason([note], fixes, [ShapeLine(failure.parts[own].text, shape)])


def _dims_taken(failure: Failure, node: ast.expr) -> int:
    """How many dimensions an index stands for: a mask for as many as it has, None for none."""
    number = failure.number_of(node)
    value = None if number is None else failure.parts[number].value
    if isinstance(value, Tensor) and value.dtype.is_bool:
        return int(value.ndim)
    return 0 if isinstance(node, ast.Constant) and node.value in (None, ...) else 1


def _braced(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _mask(failure: Failure, own: int) -> Reason:
    shape = shape_of(failure, own)
    masks = [(n, t) for n, t in failure.tensors if n != own and t.dtype.is_bool]
    if not masks:
        return Reason()
    number, mask = masks[0]
    note = (
        f"a mask stands for as many dimensions as it has, and must have their sizes: "
        f"{named(failure, number)} is {list(mask.layout.shape)}"
    )

    def tries() -> Iterator[Fix | None]:
        for dim in range(len(shape)):
            yield failure.as_written(f"{{{own}}}[{':, ' * dim}{{{number}}}]")
        if mask.layout.ndim == 2:
            yield failure.with_parts({number: "{}.t()"})
        for dim in range(mask.layout.ndim):
            yield failure.with_parts({number: f"{{}}.squeeze({dim})"})

    lines = [ShapeLine(failure.parts[n].text, shape_of(failure, n)) for n in (own, number)]
    return Reason([note], failure.first(tries(), most=2), lines)


def _lists(failure: Failure, own: int) -> Reason:
    elements = _elements(failure.node)
    texts = [failure.source.segment(node) for node in elements]
    note = "indices beside each other are taken in pairs, so they need the same length or 1"

    def tries() -> Iterator[Fix | None]:
        if len(texts) == 2:
            first, second = map(_braced, texts)
            yield failure.as_written(f"{{{own}}}[{first}][:, {second}]")
        for number, tensor in failure.tensors:
            if number != own and tensor.layout.ndim == 1:
                yield failure.with_parts({number: "{}.unsqueeze(1)"})
                break

    return Reason([note], failure.first(tries()))


def _kind(failure: Failure, own: int) -> Reason:
    def tries() -> Iterator[Fix | None]:
        for number, part in enumerate(failure.parts):
            if number == own:
                continue
            if isinstance(part.value, Tensor):
                if set(part.value.tolist() if part.value.layout.ndim == 1 else ()) <= {0.0, 1.0}:
                    yield failure.with_parts({number: "{}.bool()"})
                yield failure.with_parts({number: "{}.long()"})
            elif type(part.value) is float:
                yield failure.with_parts({number: "int({})"})

    found = next(
        (p for n, p in enumerate(failure.parts)
         if n != own and (isinstance(p.value, Tensor) or type(p.value) is float)),
        None,
    )  # fmt: skip
    notes = []
    if found is not None and isinstance(found.value, Tensor):
        notes.append(f"`{found.text}` is {found.value.dtype.name}; positions are whole numbers")
    return Reason(notes, failure.first(tries(), most=2))


def gather(failure: Failure, exc: Any) -> Reason:
    """gather, scatter and their kin: the index must have the dimensions of the tensor."""
    text = str(exc)
    if "out of bounds" in text or "index out of range" in text:
        out = re.search(r"index (-?\d+) is out of bounds for dimension (\d+) with size (\d+)", text)
        if out is not None:
            return _out_of_bounds(failure, failure.tensors[0][0], *map(int, out.groups()))
        return _range_in_self(failure)
    numbers = [n for n, _ in failure.tensors]
    lines = [ShapeLine(failure.parts[n].text, shape_of(failure, n)) for n in numbers]
    own = failure.tensors[0][1] if failure.tensors else None

    def tries() -> Iterator[Fix | None]:
        if own is None:
            return
        for number, tensor in failure.tensors[1:]:
            if "dtype" in text and not tensor.dtype.is_integral and "src" not in text:
                yield failure.with_parts({number: "{}.long()"})
            elif "dtype" in text and tensor.dtype is not own.dtype:
                yield failure.with_parts({number: f"{{}}.to(torch.{own.dtype.name})"})
            if tensor.layout.ndim == own.layout.ndim - 1:
                for dim in _lacking(failure, own.layout.shape, tensor.layout.shape):
                    yield failure.with_parts({number: f"{{}}.unsqueeze({dim})"})

    notes = []
    if "dtype int32/int64 for index" in text:
        notes = [
            f"{named(failure, n)} is {t.dtype.name}; positions are whole numbers"
            for n, t in failure.tensors[1:]
            if not t.dtype.is_integral
        ][:1]
    if own is not None and "self.dtype" in text:
        kinds = ", ".join(f"{named(failure, n)} is {t.dtype.name}" for n, t in failure.tensors[::2])
        notes.append(f"{failure.operation}() does not convert between dtypes: {kinds}")
    if own is not None and "dimensions" in text:
        notes.append(
            f"the index names a place in one dimension for each element of the result, so it has "
            f"as many dimensions as {named(failure, numbers[0])}: {own.layout.ndim}"
        )
    return Reason(notes, failure.first(tries(), most=2), [] if "dtype" in text else lines)


def _lacking(failure: Failure, own: tuple[int, ...], index: tuple[int, ...]) -> list[int]:
    """The dimensions that an index may lack, first the one along which is chosen."""
    dims = list(range(len(own)))
    along = next((p.value for p in failure.parts if type(p.value) is int), None)
    if isinstance(along, int) and -len(own) <= along < len(own):
        along %= len(own)
        if tuple(size for dim, size in enumerate(own) if dim != along) == tuple(index):
            return [along, *(dim for dim in dims if dim != along)]
    return dims


def _range_in_self(failure: Failure) -> Reason:
    """index_select, embedding: the largest index against the rows there are."""
    tensors = dict(failure.tensors)
    whole = {n: t for n, t in tensors.items() if t.dtype.is_integral and t.layout.numel}
    tables = [n for n in tensors if n not in whole] or list(tensors)[:1]
    if not whole or not tables:
        return Reason()
    number, indices = next(iter(whole.items() if tables[0] not in whole else
                                list(whole.items())[1:] or whole.items()))  # fmt: skip
    table = tables[0]
    dim = next((p.value for p in failure.parts if type(p.value) is int), 0)
    size = (
        shape_of(failure, table)[dim]
        if failure.operation != "embedding"
        else (shape_of(failure, table)[0])
    )
    high, low = int(indices.max().item()), int(indices.min().item())
    note = (
        f"{named(failure, number)} asks for {high if high >= size else low}, "
        f"{named(failure, table)} has {size} there: 0 to {size - 1}"
    )
    tries = [failure.with_parts({number: "{} - 1"})] if low >= 1 and high == size else []
    tries.append(failure.with_parts({number: f"{{}}.clamp(0, {size - 1})"}))
    return Reason([note], failure.first(tries, most=1))


# -- targets of losses -----------------------------------------------------------------------


def target(failure: Failure, exc: Any) -> Reason:
    """cross_entropy, nll_loss and their kin: class numbers, one for each row of scores."""
    scores, labels = failure.argument(0, "input"), failure.argument(1, "target")
    if scores is None or labels is None:
        return Reason()
    s, t = failure.parts[scores].value, failure.parts[labels].value
    if not isinstance(s, Tensor) or not isinstance(t, Tensor):
        return Reason()
    text = str(exc)
    lines = [ShapeLine(failure.parts[n].text, shape_of(failure, n)) for n in (scores, labels)]
    out = re.search(r"Target (-?\d+) is out of bounds", text)
    if out is not None:
        return _class(failure, scores, labels, int(out.group(1)))
    rule = (
        f"{failure.operation}() takes class numbers, int64, one for each row: "
        f"[N] for scores [N, C] (and [N, d…] for [N, C, d…])"
    )
    note = f"{rule}; {named(failure, labels)} is {t.dtype.name} {list(t.layout.shape)}"
    batch = re.search(r"batch_size \((\d+)\) to match target batch_size \((\d+)\)", text)
    if batch is not None:
        rows, count = batch.groups()
        note = (
            f"there is one target for each row of scores: {named(failure, scores)} has {rows} "
            f"rows, {named(failure, labels)} has {count} targets"
        )
        lines = [ShapeLine(row.text, row.shape, 0) for row in lines]

    def tries() -> Iterator[Fix | None]:
        if s.dtype.is_integral and t.dtype.is_floating_point:
            yield from _swapped(failure, scores, labels)
        if not t.dtype.is_integral or t.dtype.name not in ("int64", "uint8"):
            yield failure.with_parts({labels: "{}.long()"})
        if t.layout.ndim == 2 and t.layout.shape[1] == 1:
            yield failure.with_parts({labels: "{}.squeeze(1)"})
            if t.dtype.name != "int64":
                yield failure.with_parts({labels: "{}.squeeze(1).long()"})
        if t.layout.ndim == 2 and t.layout.shape == s.layout.shape:
            yield failure.with_parts({labels: "{}.argmax(1)"})
            yield failure.with_parts({labels: "{}.float()"})
        if s.layout.ndim == 3:
            yield failure.with_parts({scores: "{}.transpose(1, 2)"})
            yield failure.with_parts({scores: "{}.flatten(0, 1)", labels: "{}.flatten()"})
        if s.layout.ndim == 2:
            yield failure.with_parts({scores: "{}.t()"})
        yield from _swapped(failure, scores, labels)

    return Reason([note], failure.first(tries(), most=2), lines)


def _swapped(failure: Failure, a: int, b: int) -> Iterator[Fix | None]:
    first, second = failure.parts[a].text, failure.parts[b].text
    function = getattr(failure.node, "func", None)
    if function is not None and len(failure.parts) == 2 and first != second:
        name = failure.source.segment(function)
        yield failure.as_written(f"{name}({{{b}}}, {{{a}}})")


def _class(failure: Failure, scores: int, labels: int, value: int) -> Reason:
    shape = shape_of(failure, scores)
    classes = shape[1] if len(shape) > 1 else shape[0]
    note = (
        f"{named(failure, scores)} has scores for {classes} classes, 0 to {classes - 1}; "
        f"{named(failure, labels)} holds {value}"
    )
    if value < 0:
        note += " (only ignore_index, -100 unless given, is left out)"
    t: Any = failure.parts[labels].value

    def tries() -> Iterator[Fix | None]:
        if value < 0 and not any(k.arg == "ignore_index" for k in failure.node.keywords):  # type: ignore[attr-defined]  # a call
            yield failure.with_parts({}, keyword=f"ignore_index={value}")
        if value == classes and int(t.min().item()) >= 1:
            yield failure.with_parts({labels: "{} - 1"})

    dim = 1 if len(shape) > 1 else 0
    return Reason(
        [note], failure.first(tries()), [ShapeLine(failure.parts[scores].text, shape, dim)]
    )


def same_size(failure: Failure, exc: Any) -> Reason:
    """Losses that compare element by element."""
    tensors = failure.tensors[:2]
    if len(tensors) < 2:
        return Reason()
    (i, a), (j, b) = tensors
    lines = [ShapeLine(failure.parts[n].text, shape_of(failure, n)) for n in (i, j)]

    def tries() -> Iterator[Fix | None]:
        for number, own, other in ((j, b, a), (i, a, b)):
            for cast in ("",) if own.dtype.is_floating_point else ("", ".float()"):
                if own.layout.ndim == other.layout.ndim - 1:
                    yield failure.with_parts({number: f"{{}}{cast}.unsqueeze(1)"})
                elif own.layout.numel == other.layout.numel:
                    yield failure.with_parts({number: f"{{}}{cast}.view_as({{other}})".replace(
                        "{other}", failure.parts[i if number == j else j].text)})  # fmt: skip
                elif not own.dtype.is_floating_point:
                    yield failure.with_parts({number: "{}.float()"})

    note = "each element is compared with the one in the same place, so the shapes must be equal"
    return Reason([note], failure.first(tries(), most=2), lines)


# -- numbers and truth values ----------------------------------------------------------------


def one_number(failure: Failure, exc: Any) -> Reason:
    """item(), float(), int() of a tensor with many elements."""
    if not failure.tensors:
        return Reason()
    number, tensor = failure.tensors[0]
    count = tensor.layout.numel
    note = f"{named(failure, number)} has {count} elements, and one number can only be one of them"

    def tries() -> Iterator[Fix | None]:
        if failure.operation == "item":
            yield failure.with_parts({}, function="tolist")
        first = ", ".join("0" * tensor.layout.ndim)
        yield failure.with_parts({number: f"{{}}[{first}]"})
        yield failure.with_parts({number: "{}.sum()"})

    lines = [ShapeLine(failure.parts[number].text, tensor.layout.shape)]
    return Reason([note], failure.first(tries()), lines)


def truth(failure: Failure, exc: Any) -> Reason:
    """`if x > 0`: many answers where one is due."""
    if not failure.tensors:
        return Reason()
    number, tensor = failure.tensors[-1] if failure.operation == "Compare" else failure.tensors[0]
    count = tensor.layout.numel
    node: Any = failure.node
    if failure.operation in ("max", "min") and isinstance(node.func, ast.Name):
        name = "maximum" if failure.operation == "max" else "minimum"
        note = f"Python's {failure.operation}() asks which of two is larger as a whole"
        two = len(failure.parts) > 1
        words = f"torch.{name}({{0}}, {{1}})" if two else f"torch.{failure.operation}({{0}})"
        return Reason([note], failure.first([failure.as_written(words)]))
    whole = _enclosing(failure)
    if whole is not None:
        text, sign = whole
        note = (
            f"each side has {count} truth values; 'and', 'or' and chained comparisons want one, "
            f"{sign} works element by element"
        )
        return Reason([note], failure.first([failure.as_written(_braced(text))]))
    note = (
        f"it has {count} elements, so {count} truth values: say whether all or any must hold"
        if count
        else "it has no elements, so no truth value"
    )

    def tries() -> Iterator[Fix | None]:
        inner: Any = failure.parts[number].node
        if isinstance(inner, ast.UnaryOp) and isinstance(inner.op, ast.Not):
            return
        if isinstance(inner, ast.Compare) and isinstance(inner.ops[0], ast.Eq):
            both = [failure.source.segment(n) for n in (inner.left, *inner.comparators)]
            if len(both) == 2 and all(_is_pure(n) for n in ast.walk(inner)):
                equal = f"torch.equal({_braced(both[0])}, {_braced(both[1])})"
                yield failure.as_written(equal)
        yield failure.with_parts({number: "{}.all()"})
        yield failure.with_parts({number: "{}.any()"})

    shapes = [ShapeLine(failure.parts[number].text, tensor.layout.shape)]
    return Reason([note], failure.first(tries()), shapes)


PURE = (
    ast.Name, ast.Constant, ast.Compare, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Attribute,
    ast.operator, ast.cmpop, ast.unaryop, ast.boolop, ast.expr_context,
)  # fmt: skip


def _is_pure(node: ast.AST) -> bool:
    """Whether evaluating it once more changes nothing."""
    return isinstance(node, PURE)


def _enclosing(failure: Failure) -> tuple[str, str] | None:
    """The `a and b` around an operand, or `a < b < c`, in words that work element by element."""
    span = failure.source.span(failure.node)
    for node in ast.walk(ast.parse(failure.source.text)):
        if isinstance(node, ast.BoolOp):
            places = [failure.source.span(value) for value in node.values]
            if span in places and all(map(_is_pure, ast.walk(node))):
                sign = "&" if isinstance(node.op, ast.And) else "|"
                texts = [f"({failure.source.segment(value)})" for value in node.values]
                return f" {sign} ".join(texts), sign
        elif isinstance(node, ast.Compare) and len(node.ops) > 1:
            if failure.source.span(node) == span and all(map(_is_pure, ast.walk(node))):
                parts = [node.left, *node.comparators]
                texts = [failure.source.segment(part) for part in parts]
                whole = failure.source.segment(node)
                links = []
                for k in range(len(node.ops)):
                    end = failure.source.span(parts[k]).end_column - span.column
                    start = failure.source.span(parts[k + 1]).column - span.column
                    links.append(f"({texts[k]}{whole[end:start]}{texts[k + 1]})")
                return " & ".join(links), "&"
    return None
