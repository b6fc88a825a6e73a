"""Names, attributes and keywords that do not exist, and those near them that do."""

from __future__ import annotations

import ast
import re

from engine.tensor import Tensor
from tensorcli.explain.renamed import renamed
from tensorcli.explain.shapes import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tensorcli.explain.trial import Failure, Fix

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
KNOWN = {"dims": "dim", "keepdims": "keepdim", "axes": "dim", "axis": "dim", "ndim": "dim"}


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
    """The words that exist, in place of the one that does not, with what it is called with."""
    if not isinstance(failure.node, ast.Attribute | ast.Name):
        return []
    return failure.first((renamed(failure, name) for name in near), most=2)


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
