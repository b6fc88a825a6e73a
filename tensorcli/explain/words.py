"""Names, attributes and keywords that do not exist, and those near them that do."""

from __future__ import annotations

import ast
import re

from engine.tensor import Tensor
from tensorcli.explain.elements import PURE
from tensorcli.explain.shapes import Reason
from tensorcli.language.namespaces import Namespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from tensorcli.diagnostics import Span
    from tensorcli.explain.trial import Failure, Fix
    from tensorcli.language.source import Source

# What the keywords of PyTorch's functions are called; a try tells whether a call takes one.
KEYWORDS = tuple(
    "accumulate align_corners alpha as_tuple axis base beta bias bins correction "
    "create_graph decimals device diagonal dilation dim dim0 dim1 dims descending dtype end "
    "end_dim eps equal_nan fill_value generator gradient groups high ignore_index "
    "increasing index indexing indices input inplace keepdim kernel_size label_smoothing "
    "largest layout lambd low margin mask max memory_format min mode momentum n nan "
    "negative_slope neginf norm_type normalized_shape num_classes offset other out "
    "output_size p padding padding_idx pin_memory pos_weight posinf quantile ranks "
    "reduction repeats requires_grad retain_graph return_counts return_inverse right "
    "rounding_mode rtol atol shape shifts side size sizes sorted source src stable start "
    "start_dim stride step steps target tensors threshold to training unbiased upper value "
    "values weight weights ".split()
)

# What people know from elsewhere.
KNOWN = {
    "dims": "dim", "keepdims": "keepdim", "keep_dims": "keepdim", "axes": "dim", "axis": "dim",
    "ndim": "dim", "minimum": "min", "maximum": "max", "a_min": "min", "a_max": "max",
    "ddof": "correction", "num": "steps", "kernel": "kernel_size", "pad": "padding",
    "probability": "p", "rate": "p", "labels": "target", "targets": "target",
}  # fmt: skip


def keyword(failure: Failure, exc: Any) -> Reason:
    """A call with a keyword that the function does not take."""
    node = failure.node
    if not isinstance(node, ast.Call) or not node.keywords:
        return Reason()
    text = str(exc)
    unexpected = re.search(r"unexpected keyword argument '(\w+)'", text)
    given = [k.arg for k in node.keywords if k.arg]
    wrong = [unexpected.group(1)] if unexpected is not None else given
    taken = set(re.findall(r"(\w+)(?: = \w+)?[,)]", text.partition("expected one of")[2]))

    def tries() -> Iterator[Fix | None]:
        from difflib import get_close_matches

        for name in wrong:
            near = [KNOWN[name]] if name in KNOWN else []
            near += get_close_matches(name, [*taken, *KEYWORDS], n=4, cutoff=0.7)
            for candidate in near:
                if candidate != name and candidate not in given:
                    yield failure.with_parts({}, renamed=f"{name}={candidate}")

    fixes = failure.first(tries(), most=1)
    notes = []
    if fixes and unexpected is None:
        notes = [f"{failure.operation}() takes no keyword " + " and ".join(
            f"'{name}'" for name in wrong if f"{name}=" not in fixes[0].expr)]  # fmt: skip
    return Reason(notes, fixes)


def sizes(failure: Failure, exc: Any) -> Reason:
    """A float where sizes or dimensions are whole numbers."""

    def tries() -> Iterator[Fix | None]:
        floats = [n for n, p in enumerate(failure.parts) if type(p.value) is float]
        if floats:
            whole = {
                n: str(int(v)) if isinstance(failure.parts[n].node, ast.Constant) else "int({})"
                for n in floats
                for v in [failure.parts[n].value]
                if isinstance(v, float) and v == v and abs(v) < 1e9
            }
            yield failure.with_parts(whole)

    return Reason([], failure.first(tries(), most=1))


def number_list(failure: Failure, exc: Any) -> Reason:
    """`tensor(1, 2)`: numbers that belong in one list."""
    node = failure.node
    if not isinstance(node, ast.Call) or len(node.args) < 2:
        return Reason()
    numbers = [n for n, p in enumerate(failure.parts) if type(p.value) in (int, float, bool)]
    if len(numbers) != len(node.args):
        return Reason()
    function = failure.source.segment(node.func)
    listed = ", ".join(f"{{{n}}}" for n in numbers)
    return Reason(
        [f"{failure.operation}() takes its numbers in one list"],
        failure.first([failure.as_written(f"{function}([{listed}])")]),
    )


def near_name(failure: Failure, near: list[str]) -> list[Fix]:
    """The expression around a word that does not exist, with those that do in its place."""
    whole = _around(failure)
    source, span, outer = failure.source, failure.source.span(failure.node), None
    if whole is not None:
        outer = source.segment(whole)
        first = offset(source, source.span(whole), span.line, span.column)
        last = offset(source, source.span(whole), span.end_line, span.end_column)

    def tries() -> Iterator[Fix | None]:
        for name in near:
            words = _renamed(failure, name)
            if outer is not None:
                yield failure.elsewhere(outer[:first] + words + outer[last:])
            elif isinstance(failure.node, ast.Attribute):
                yield failure.as_written(f"{{0}}.{name}")
            else:
                yield failure.as_written(name)

    return failure.first(tries(), most=2)


def _renamed(failure: Failure, name: str) -> str:
    node = failure.node
    if isinstance(node, ast.Attribute):
        return failure.source.segment(node).removesuffix(node.attr) + name
    return name


def offset(source: Source, start: Span, line: int, column: int) -> int:
    """How far a place lies behind the beginning of a stretch of text."""
    before = sum(len(source.line(n)) + 1 for n in range(start.line, line))
    return before + column - start.column


def _around(failure: Failure) -> ast.expr | None:
    """The largest expression around a word that can be evaluated without effects; None: only it."""
    span = failure.source.span(failure.node)
    path: list[ast.AST] = []

    def find(node: ast.AST) -> bool:
        if isinstance(node, ast.expr) and failure.source.span(node) == span:
            return True
        for child in ast.iter_child_nodes(node):
            if find(child):
                path.append(node)
                return True
        return False

    find(ast.parse(failure.source.text))
    found = None
    for node in path:
        unknown = getattr(failure.node, "id", "")
        if not isinstance(node, ast.expr | ast.keyword):
            break
        if not is_harmless(node, failure.names, unknown):
            break
        found = node if isinstance(node, ast.expr) else found
    return found


def is_harmless(whole: ast.AST, names: Mapping[str, object], unknown: str = "") -> bool:
    """Whether evaluating it on copies of its names changes nothing else; of the ``unknown`` name
    one of torch's will take the place."""
    for node in ast.walk(whole):
        if isinstance(node, ast.Call):
            function = node.func
            if isinstance(function, ast.Name):
                if function.id in names:
                    return False
                if function.id not in PLAIN and function.id != unknown:
                    return False
                continue
            root: ast.AST = function
            while isinstance(root, ast.Attribute | ast.Call | ast.Subscript):
                root = root.func if isinstance(root, ast.Call) else root.value
            if not isinstance(root, ast.Name):
                continue  # a part of the whole like any other
            owner = names.get(root.id)
            if root.id in names and not isinstance(owner, Tensor | Namespace):
                return False
        elif not isinstance(node, HARMLESS):
            return False
    return True


PLAIN = frozenset("float int bool complex len abs min max range tuple list sum round".split())
HARMLESS = (*PURE, ast.keyword, ast.Subscript, ast.Slice, ast.List, ast.Tuple)


def no_gradient(failure: Failure, exc: Any) -> Reason:
    """`w.grad.zero_()` before there was a gradient."""
    owner = getattr(failure.node, "value", None)
    if not isinstance(owner, ast.Attribute) or owner.attr != "grad":
        return Reason()
    text, tensor = failure.source.segment(owner), failure.source.segment(owner.value)
    note = f"`{text}` is None until the first backward() that reaches `{tensor}`"
    value = failure.names.get(tensor)
    if isinstance(value, Tensor) and not value.requires_grad:
        note = f"`{text}` is None: `{tensor}` does not require a gradient"
    elif isinstance(value, Tensor) and not value.is_leaf:
        note = f"`{text}` is None: `{tensor}` is no leaf, and only leaves keep gradients"
    if not isinstance(value, Tensor):
        return Reason([note])
    return Reason([note], failure.first([failure.instead(tensor, f"{text} = None")]))


def reversed_array(failure: Failure, exc: Any) -> Reason:
    """from_numpy of an array that runs backwards."""
    number = failure.argument(0)
    if number is None:
        return Reason()
    note = (
        f"`{failure.parts[number].text}` runs backwards in memory, and a tensor's strides are not "
        "negative: copy it, or flip() the tensor, which copies too"
    )
    return Reason([note], failure.first([failure.with_parts({number: "{}.copy()"})]))
