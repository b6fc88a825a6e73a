"""PyTorch's own rules behind a value: which dtype wins, which of equals, how halves are rounded.

Read from the expression that made the value; its operands are evaluated once more, on copies, where
that has no effects. Only what matters to this very value is said.
"""

from __future__ import annotations

import ast

import numpy as np

from engine.tensor import Tensor
from tensorcli.explain.shapes import short
from tensorcli.explain.trial import evaluated
from tensorcli.explain.words import is_harmless

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from tensorcli.language.source import Source

MOST_ELEMENTS = 1_000_000


class Made:
    """How a value was made: its expression, the operands' nodes, and their values when asked."""

    __slots__ = ("names", "node", "source", "value")

    def __init__(
        self, value: Tensor, node: ast.expr, source: Source, names: Mapping[str, object]
    ) -> None:
        self.value = value
        self.node = node
        self.source = source
        self.names = names

    def of(self, node: ast.AST | None) -> Any:
        """The value of an operand; None if it cannot be had without effects."""
        if not isinstance(node, ast.expr) or not is_harmless(node, self.names):
            return None
        return evaluated(self.source.segment(node), self.names)

    def words(self, node: ast.expr) -> str:
        return f"`{short(self.source.segment(node))}`"

    def argument(self, position: int, keyword: str) -> ast.expr | None:
        """An argument of the call behind its first operand, by place or by name."""
        call = self.node
        if not isinstance(call, ast.Call):
            return None
        for given in call.keywords:
            if given.arg == keyword:
                return given.value
        at = position if self.operand is _receiver(call) else position + 1
        return call.args[at] if at < len(call.args) else None

    @property
    def operand(self) -> ast.expr | None:
        """What the operation is done to: a method's object, a function's first argument."""
        if not isinstance(self.node, ast.Call):
            return None
        receiver = _receiver(self.node)
        if receiver is not None and isinstance(self.of(receiver), Tensor):
            return receiver
        return self.node.args[0] if self.node.args else None


def _receiver(call: ast.Call) -> ast.expr | None:
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def notes(
    value: Tensor, node: ast.expr, source: Source, names: Mapping[str, object]
) -> tuple[str, ...]:
    """What is to be said about a value that an expression made."""
    while isinstance(node, ast.Attribute) and node.attr in ("values", "indices"):
        node = node.value
    made = Made(value, node, source, names)
    try:
        if isinstance(node, ast.BinOp):
            return tuple(_arithmetic(made, node))
        if isinstance(node, ast.Subscript):
            return tuple(_index(made, node))
        if isinstance(node, ast.Call):
            name = str(getattr(node.func, "attr", None) or getattr(node.func, "id", ""))
            rule = RULES.get(name)
            return tuple(rule(made)) if rule is not None else ()
    except (ValueError, TypeError, KeyError, AttributeError, IndexError):
        pass  # an operand is not what it seemed
    return ()


# -- arithmetic ------------------------------------------------------------------------------


def _arithmetic(made: Made, node: ast.BinOp) -> Iterator[str]:
    a, b = made.of(node.left), made.of(node.right)
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        return
    yield from _promotion(made, ((node.left, a), (node.right, b)))
    tensors = [value for value in (a, b) if isinstance(value, Tensor)]
    whole = all(not t.dtype.is_floating_point and not t.dtype.is_complex for t in tensors)
    if isinstance(node.op, ast.FloorDiv) and _any(made.value, lambda v: v < 0):
        yield "// rounds down, to the smaller neighbour; div(…, rounding_mode='trunc') cuts off"
    if isinstance(node.op, ast.Mod) and (_any(a, lambda v: v < 0) or _any(b, lambda v: v < 0)):
        yield "% takes the sign of the divisor, fmod() that of the dividend"
    if isinstance(node.op, ast.Div) and whole:
        yield "/ of whole numbers gives the default floating-point dtype; // stays with integers"
    if isinstance(node.op, ast.Add) and all(t.dtype.is_bool for t in tensors) and len(tensors) == 2:
        yield "+ of two bool tensors is or, not a count: .int() first, or sum(), counts"
    if isinstance(node.op, ast.Add | ast.Sub) and made.value.dtype.is_floating_point:
        yield from _absorbed(made, node, a, b)


def _any(value: Any, test: Callable[[Any], Any]) -> bool:
    if isinstance(value, Tensor):
        if value.array is None or value.dtype.is_complex or value.layout.numel > MOST_ELEMENTS:
            return False
        value = np.asarray(value.array)
        value = value.astype(np.float64)
    return value is not None and bool(np.any(test(value)))


RANKS = ("a Python number", "a tensor without dimensions", "a tensor with dimensions")


def _rank(value: Any) -> int:
    return 0 if not isinstance(value, Tensor) else 1 if value.ndim == 0 else 2


def _category(value: Any) -> int:
    if isinstance(value, Tensor):
        return int(value.dtype.category)
    return {bool: 0, int: 1, float: 2, complex: 3}[type(value)]


def _kind(value: Any) -> str:
    return str(value.dtype.name) if isinstance(value, Tensor) else type(value).__name__


def _promotion(made: Made, operands: tuple[tuple[ast.expr, Any], ...]) -> Iterator[str]:
    """Which operand decided about the dtype, where they differ and the wider one did not."""
    if any(value is None for _, value in operands):
        return
    tensors = [(node, v) for node, v in operands if isinstance(v, Tensor)]
    dtypes = {v.dtype.name for _, v in tensors}
    ranks = {_rank(v) for _, v in operands}
    categories = {_category(v) for _, v in operands}
    if len(dtypes) < 2 and len(categories) < 2:
        return
    numbers = [v for _, v in operands if not isinstance(v, Tensor)]
    if numbers and tensors[0][1].dtype is made.value.dtype and len(categories) > 1:
        return  # x + 1: as everybody expects
    each = [
        f"{made.words(node)} is {_kind(value)} ({RANKS[_rank(value)]})" for node, value in operands
    ]
    how = "the wider kind wins (bool, integer, float, complex)"
    if len(categories) == 1:
        how = (
            "of one kind, tensors with dimensions go before those without, and these before "
            "Python numbers"
            if len(ranks) > 1
            else "of one kind and rank, the smallest dtype that holds both"
        )
    yield f"dtype {made.value.dtype.name}: {' and '.join(each)}; {how}"


def _absorbed(made: Made, node: ast.BinOp, a: Any, b: Any) -> Iterator[str]:
    """An operand that is lost in a sum."""
    for own, other, words in ((a, b, node.right), (b, a, node.left)):
        if not isinstance(own, Tensor) or own.dtype is not made.value.dtype or other is None:
            continue
        same = np.array_equal(_doubles(own), _doubles(made.value))
        if same and _any(other, lambda v: v != 0) and own.layout.numel:
            from tensorcli.explain.precision import FORMATS, spacing

            name = made.value.dtype.name
            if name in FORMATS:
                largest = float(np.max(np.abs(_doubles(own))))
                gap = float(spacing(np.array(largest), name))
                yield (
                    f"{made.words(words)} is lost: at {largest:.6g} the numbers of {name} are "
                    f"{gap:.6g} apart"
                )
            return


def _doubles(tensor: Tensor) -> Any:
    return np.asarray(tensor.array).astype(np.float64)


# -- elements --------------------------------------------------------------------------------


def _index(made: Made, node: ast.Subscript) -> Iterator[str]:
    """x[1, :, [0, 1]]: an int is taken first, and is no list."""
    if not isinstance(node.slice, ast.Tuple):
        return
    kinds = []
    for part in node.slice.elts:
        if isinstance(part, ast.Slice):
            kinds.append("slice")
            continue
        value = made.of(part)
        is_list = isinstance(value, list) or (isinstance(value, Tensor) and value.ndim > 0)
        kinds.append("list" if is_list else "int" if type(value) is int else "")
    lists = [at for at, kind in enumerate(kinds) if kind == "list"]
    ints = [at for at, kind in enumerate(kinds) if kind == "int"]
    if lists and ints and any("slice" in kinds[min(i, j) : max(i, j)] for i in ints for j in lists):
        yield (
            "a whole number is taken first, by itself, and only lists are taken together; numpy "
            "counts it among the lists and may put their dimension in front"
        )
    elif len(lists) > 1 and "slice" in kinds[lists[0] : lists[-1]]:
        yield "a slice stands between the lists, so their dimension comes first"


def _operand_array(made: Made) -> tuple[Tensor, Any] | None:
    value = made.of(made.operand)
    if not isinstance(value, Tensor) or value.array is None or value.dtype.is_complex:
        return None
    if not 0 < value.layout.numel <= MOST_ELEMENTS:
        return None
    return value, _doubles(value)


def _extreme(made: Made) -> Iterator[str]:
    found = _operand_array(made)
    if found is None:
        return
    tensor, array = found
    name = str(getattr(made.node.func, "attr", ""))  # type: ignore[attr-defined]  # a call
    given = made.of(made.argument(0, "dim"))
    if isinstance(given, int) and not isinstance(given, bool):
        best = array.max(given, keepdims=True) if "max" in name else array.min(given, keepdims=True)
        ties = int(((array == best).sum(given) > 1).sum())
        where = f"along dim {given}, in {ties} place{'s' if ties != 1 else ''}, " if ties else ""
    else:
        best = array.max() if "max" in name else array.min()
        ties = int((array == best).sum()) - 1
        where = ""
        if name.startswith("arg") and tensor.ndim > 1:
            place = np.unravel_index(int(made.value.item()), array.shape)
            yield (
                "without dim the index counts in the flattened tensor: it is element "
                f"{[int(i) for i in place]}"
            )
    if ties > 0 and (name.startswith("arg") or where):
        what = "largest" if "max" in name else "smallest"
        yield f"{where}the {what} value stands at several positions: the first is given"


def _sorted(made: Made) -> Iterator[str]:
    found = _operand_array(made)
    name = str(getattr(made.node.func, "attr", ""))  # type: ignore[attr-defined]  # a call
    if found is None or np.unique(found[1]).size == found[1].size:
        return
    if name == "topk":
        yield "there are equal values, and topk() promises no order among their indices"
    elif made.of(made.argument(9, "stable")) is True:
        yield "there are equal values: stable=True keeps them in their old order"
    else:
        yield "there are equal values: only stable=True promises to keep their old order"


def _median(made: Made) -> Iterator[str]:
    found = _operand_array(made)
    if found is not None and found[0].layout.numel % 2 == 0 and found[0].ndim <= 1:
        yield (
            "of an even number of values it is the lower of the two in the middle; "
            "quantile(0.5) takes their mean"
        )


def _deviation(made: Made) -> Iterator[str]:
    found = _operand_array(made)
    call: Any = made.node
    if found is None or any(k.arg in ("correction", "unbiased") for k in call.keywords):
        return
    count = found[0].layout.numel // max(made.value.layout.numel, 1)
    yield (
        f"it divides by {count} - 1 = {count - 1}, the count less one (correction=1); "
        "correction=0 divides by the count, as numpy does"
    )


def _rounded(made: Made) -> Iterator[str]:
    found = _operand_array(made)
    if found is not None and (np.abs(found[1] - np.trunc(found[1])) == 0.5).any():
        half = found[1][np.abs(found[1] - np.trunc(found[1])) == 0.5].reshape(-1)[0]
        yield f"halves go to the even neighbour: {half:g} to {np.rint(half):g}"


def _kink(made: Made) -> Iterator[str]:
    """clamp, relu and their kin where the slope is not unique."""
    if not made.value.requires_grad:
        return
    found = _operand_array(made)
    name = str(getattr(made.node.func, "attr", ""))  # type: ignore[attr-defined]  # a call
    slope = KINKS[name]
    bounds = [0.0] if name in ("relu", "abs") else []
    for position, keyword in ((0, "min"), (1, "max"), (0, "min_val"), (1, "max_val")):
        bound = made.of(made.argument(position, keyword))
        bounds += [float(bound)] if isinstance(bound, int | float) else []
    if name in ("maximum", "minimum") and found is not None:
        other = made.of(made.argument(0, "other"))
        if isinstance(other, Tensor) and (found[1] == _doubles(other)).any():
            yield f"where the operands are equal there is no unique slope: {slope}"
        return
    if found is not None and any((found[1] == bound).any() for bound in bounds):
        yield f"at the edge there is no unique slope: {slope}"


KINKS = {
    "clamp": "clamp() takes 1 at its bounds, and 0 outside of them",
    "clip": "clip() takes 1 at its bounds, and 0 outside of them",
    "relu": "relu() takes 0 at 0",
    "hardtanh": "hardtanh() takes 0 at its bounds",
    "abs": "abs() takes 0 at 0",
    "maximum": "maximum() gives each a half",
    "minimum": "minimum() gives each a half",
}


def _drawn(made: Made) -> Iterator[str]:
    if made.value.layout.numel >= 16:
        yield (
            "from 16 elements on normal numbers are drawn in blocks, so that a seed gives other "
            "numbers than for fewer elements: fix the size as well as the seed"
        )


def _squeezed(made: Made) -> Iterator[str]:
    value = made.of(made.operand)
    call: Any = made.node
    if not isinstance(value, Tensor):
        return
    taken = [dim for dim, size in enumerate(value.shape) if size == 1]
    bare = not call.keywords and len(call.args) == (0 if _receiver(call) is made.operand else 1)
    if bare and len(taken) > 1:
        listed = ", ".join(map(str, taken))
        yield f"squeeze() takes every dimension of size 1, here {listed}; squeeze(dim) only one"
    elif not bare and value.shape == made.value.shape:
        yield f"nothing is squeezed: {made.words(call)} meets a size other than 1, and leaves it"


def _reshaped(made: Made) -> Iterator[str]:
    value = made.of(made.operand)
    if isinstance(value, Tensor) and value.ndim == 2 and value.shape[0] != value.shape[1]:
        if tuple(made.value.shape) == tuple(value.shape[::-1]) and min(value.shape) > 1:
            yield "the elements keep their order, row by row: .t() would swap the dimensions"


def _counted(made: Made) -> Iterator[str]:
    """arange with fractions and an integer dtype, or with a step that does not divide."""
    call: Any = made.node
    numbers = [made.of(argument) for argument in call.args]
    if made.value.dtype.is_integral and any(isinstance(n, float) and n != int(n) for n in numbers):
        first = int(made.value[0].item()) if made.value.layout.numel else 0
        how = (
            f"the bounds are cut to integers first, it starts at {first}"
            if made.value.dtype.name == "int64"
            else "the count is that of the bounds with their fractions"
        )
        yield f"with dtype {made.value.dtype.name} {how}"
    elif len(numbers) == 3 and isinstance(numbers[2], float):
        yield (
            "its length is ceil((end - start) / step) in float64, where rounding may add an "
            "element; linspace(), or arange(n) times the step, counts safely"
        )


def _dropped(made: Made) -> Iterator[str]:
    call: Any = made.node
    if not any(k.arg == "training" for k in call.keywords):
        yield (
            "what is kept is scaled by 1 / (1 - p), so that the mean stays; training=False lets "
            "all through"
        )


def _capital(made: Made) -> Iterator[str]:
    if isinstance(made.of(made.node.args[0] if made.node.args else None), list):  # type: ignore[attr-defined]  # a call
        yield "Tensor() makes the default dtype of anything; tensor() keeps whole numbers whole"


def _contiguous(made: Made) -> Iterator[str]:
    from tensorcli.explain.layout import row_major

    value = made.of(made.operand)
    if not isinstance(value, Tensor) or not value.is_contiguous():
        return
    if tuple(value.layout.strides) != row_major(tuple(value.layout.shape)):
        yield (
            "strides of dimensions of size 1 do not count, so it is contiguous as it is; "
            "clone(memory_format=torch.contiguous_format) gives it the usual strides"
        )


def _cut(made: Made) -> Iterator[str]:
    """A cast to integers."""
    found = _operand_array(made)
    if found is None or not found[0].dtype.is_floating_point or not made.value.dtype.is_integral:
        return
    finite = found[1][np.isfinite(found[1])]
    if finite.size < found[1].size:
        yield "NaN and infinity have no integer: what stands there differs between machines"
    if (finite != np.trunc(finite)).any():
        yield "a cast cuts the fraction off, towards 0; round() goes to the nearest"


RULES: dict[str, Callable[[Made], Iterator[str]]] = {
    **dict.fromkeys(("argmax", "argmin", "max", "min"), _extreme),
    **dict.fromkeys(("sort", "argsort", "topk"), _sorted),
    "median": _median,
    **dict.fromkeys(("std", "var"), _deviation),
    "round": _rounded,
    **dict.fromkeys(KINKS, _kink),
    **dict.fromkeys(("randn", "randn_like", "normal", "normal_"), _drawn),
    "squeeze": _squeezed,
    **dict.fromkeys(("reshape", "view"), _reshaped),
    "arange": _counted,
    "dropout": _dropped,
    "Tensor": _capital,
    "contiguous": _contiguous,
    **dict.fromkeys(("int", "long", "short", "to", "type", "byte", "char"), _cut),
}
