"""Silent surprises: what a suspicious piece of program did, judged by its values.

Each lint gets the place and the values, and answers a hint or None. A hint is silent where the
program says that it is meant: a None in an index, an unsqueeze, a comment.
"""

from __future__ import annotations

import ast
import math

import numpy as np

from engine.tensor import Tensor
from tensorcli.diagnostics import Diagnostic
from tensorcli.explain.elements import PURE
from tensorcli.explain.precision import FORMATS
from tensorcli.explain.shapes import OPERATORS, short
from tensorcli.explain.trial import MOST_ELEMENTS, Failure, copied, rerun
from tensorcli.language.errors import Where

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from tensorcli.explain.trial import Fix
    from tensorcli.language.compiling import Context

    Hint = Diagnostic | None


def _hint(
    context: Context, node: ast.AST, code: str, message: str, fixes: Iterable[Fix] = ()
) -> Diagnostic:
    return Diagnostic(code, "hint", message, context.source.span(node), fixes=list(fixes))


def _words(context: Context, node: ast.AST) -> str:
    return f"`{short(context.source.segment(node))}`"


def _failure(context: Context, node: ast.AST, *pairs: tuple[ast.AST, object]) -> Failure:
    return Failure(Where(context.source, node, pairs), _frames_names(context))


# -- shapes ----------------------------------------------------------------------------------

RESHAPING = frozenset(
    "unsqueeze view reshape expand repeat broadcast_to view_as reshape_as expand_as t transpose "
    "unflatten meshgrid".split()
)


def _is_meant(context: Context, node: ast.AST, depth: int = 0) -> bool:
    """Whether the words of an operand give it its dimension on purpose."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and part.value is None:
            return True
        if isinstance(part, ast.Attribute) and part.attr in (*RESHAPING, "T", "mT", "H", "newaxis"):
            return True
        if isinstance(part, ast.keyword) and part.arg in ("keepdim", "keepdims"):
            return True
    if not isinstance(node, ast.Name) or depth > 3:
        return False
    made = [
        other.value
        for other in ast.walk(ast.parse(context.source.text))
        if isinstance(other, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == node.id for t in other.targets)
    ]
    return any(_is_meant(context, value, depth + 1) for value in made)


def outer(context: Context, node: Any, a: Any, b: Any) -> Hint:
    """(n, 1) with (n,): an n by n table where n elements were meant."""
    left, right = _sides(node)
    column, row = (a, b) if a.ndim == 2 else (b, a)
    n = row.shape[0]
    if column.shape != (n, 1) or n < 2:
        return None
    if _is_meant(context, left) or _is_meant(context, right):
        return None
    names = [(left, a), (right, b)]
    shapes = " with ".join(f"{list(t.shape)} of {_words(context, p)}" for p, t in names)
    failure = _failure(context, node, *names)
    number = 0 if a is column else 1
    tries = [
        failure.with_parts({number: "{}.squeeze(1)"}),
        failure.with_parts({1 - number: "{}.unsqueeze(1)"}),
    ]
    return _hint(
        context,
        node,
        "outer-broadcast",
        f"{shapes} gives [{n}, {n}]: every element of one meets every element of the other",
        failure.first(tries),
    )


def _sides(node: Any) -> tuple[ast.AST, ast.AST]:
    if isinstance(node, ast.BinOp):
        return node.left, node.right
    if isinstance(node, ast.AugAssign):
        return node.target, node.value
    return node.left, node.comparators[0]


def python_sum(context: Context, node: ast.Call, value: Any, result: Any) -> Hint:
    """Python's sum of a matrix."""
    if not isinstance(value, Tensor) or value.ndim < 2 or not isinstance(result, Tensor):
        return None
    argument = node.args[0]
    failure = _failure(context, node, (argument, value))
    inner = "{0}"
    fixes = failure.first([failure.as_written(inner + ".sum()"),
                           failure.as_written(inner + ".sum(0)")])  # fmt: skip
    return _hint(
        context,
        node,
        "python-sum",
        f"Python's sum() adds up the rows of {_words(context, argument)}: shape "
        f"{list(result.shape)}, not one number",
        fixes,
    )


def between(context: Context, node: ast.Subscript, own: Any, index: Any, result: Any) -> Hint:
    """x[[0, 1], :, [0, 1]]: a slice between two lists sends their dimension to the front."""
    if not isinstance(own, Tensor) or not isinstance(result, Tensor):
        return None
    kinds = ["slice" if isinstance(i, slice) else "list" if _is_list(i) else "" for i in index]
    lists = [at for at, kind in enumerate(kinds) if kind == "list"]
    if len(lists) < 2:
        return None
    if "slice" not in kinds[lists[0] : lists[-1]]:
        return None
    return _hint(
        context,
        node,
        "index-order",
        f"in {_words(context, node)} a slice stands between the lists, so their dimension comes "
        f"first: shape {list(result.shape)}",
    )


def _is_list(index: Any) -> bool:
    return isinstance(index, list) or (isinstance(index, Tensor) and index.ndim > 0)


# -- memory ----------------------------------------------------------------------------------


def overlap(context: Context, node: ast.AugAssign, a: Any, b: Any) -> Hint:
    """a -= a[:, :1]: what is read is overwritten on the way."""
    if a.layout is b.layout and a.offset == b.offset:
        return None
    if not _meet(a, b):
        return None
    failure = _failure(context, node, (node.target, a), (node.value, b))
    return _hint(
        context,
        node,
        "overlap",
        f"{_words(context, node.value)} shows memory of {_words(context, node.target)}, which is "
        "overwritten while it is read",
        failure.first([failure.with_parts({1: "{}.clone()"})]),
    )


def _meet(a: Any, b: Any) -> bool:
    """Whether two tensors over one memory have an element in common."""
    if max(a.layout.numel, b.layout.numel) > MOST_ELEMENTS:
        first, last = a.offset + a.layout.span, b.offset + b.layout.span
        return bool(a.offset < last and b.offset < first)
    return bool(_cells(a) & _cells(b))


def _cells(tensor: Any) -> set[int]:
    """The positions in memory of a tensor's elements."""
    cells = np.array([tensor.offset])
    for size, stride in zip(tensor.layout.shape, tensor.layout.strides, strict=True):
        cells = (cells[:, None] + np.arange(size) * stride).reshape(-1)
    return set(cells.tolist())


def copy(context: Context, node: Any, written: Any, root: Any) -> Hint:
    """x[mask][0] = 1: written into a copy that nobody has."""
    if not isinstance(written, Tensor) or not isinstance(root, Tensor):
        return None
    if written.storage is root.storage or written.layout.numel == 0:
        return None
    target = _written_to(node)
    if target is None:
        return None
    from tensorcli.explain.advice import root_of

    name = root_of(target)
    if name is None or _is_copied_on_purpose(target):
        return None
    why = _why_copied(target)
    owner = _words(context, name)
    return _hint(
        context,
        node,
        "write-to-copy",
        f"{_words(context, target)} is a copy ({why}), so {owner} stays as it is",
        _written_directly(context, node, target, name, root),
    )


def _written_to(node: Any) -> ast.expr | None:
    found: ast.expr | None
    if isinstance(node, ast.Assign):
        found = node.targets[0].value  # type: ignore[attr-defined]  # a subscript
    elif isinstance(node, ast.AugAssign):
        found = node.target.value  # type: ignore[union-attr]  # a subscript
    else:
        found = node.value.func.value
    return found


# Methods that may give a view; any other makes something new by its very name.
VIEWS = frozenset(
    "t transpose view reshape flatten contiguous ravel permute squeeze unsqueeze expand narrow "
    "select diagonal unfold movedim moveaxis swapaxes swapdims view_as reshape_as unflatten "
    "expand_as detach to_contiguous".split()
)


def _is_copied_on_purpose(node: ast.expr) -> bool:
    while isinstance(node, ast.Call | ast.Subscript):
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node.func, ast.Attribute) and node.func.attr in VIEWS:
            node = node.func.value
        else:
            return True
    return False


def _why_copied(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        return "a mask or a list of positions does not make a view"
    name = getattr(getattr(node, "func", None), "attr", "")
    inner = getattr(getattr(node, "func", None), "value", None)
    if isinstance(inner, ast.Subscript) and name not in ("reshape", "flatten", "contiguous"):
        return _why_copied(inner)
    return f"{name}() had to copy, the strides allow no view"


def _written_directly(
    context: Context, node: Any, target: ast.expr, name: ast.expr, root: Any
) -> list[Fix]:
    """The same written into the root: `x[mask, 1] = v`, `x[mask] = 0`."""
    from tensorcli.explain.trial import Fix

    if not isinstance(target, ast.Subscript) or target.value is not name:
        return []
    source = context.source
    owner, inner = source.segment(name), source.segment(target.slice)
    words = ""
    if isinstance(node, ast.Expr):
        call: Any = node.value
        values = {"zero_": "0", "fill_": source.segment(call.args[0]) if call.args else ""}
        signs = {"add_": "+=", "sub_": "-=", "mul_": "*=", "div_": "/="}
        method = call.func.attr
        if values.get(method):
            words = f"{owner}[{inner}] = {values[method]}"
        elif method in signs and len(call.args) == 1 and not call.keywords:
            words = f"{owner}[{inner}] {signs[method]} {source.segment(call.args[0])}"
    else:
        outer_: Any = node.targets[0] if isinstance(node, ast.Assign) else node.target
        rest = source.segment(outer_.slice)
        sign = "=" if isinstance(node, ast.Assign) else f"{OPERATORS[type(node.op).__name__]}="
        if rest.replace(" ", "").startswith(":,"):
            rest = rest.partition(",")[2].strip()
            words = f"{owner}[{inner}, {rest}] {sign} {source.segment(node.value)}"
    if not words:
        return []
    return [Fix(words, None)] if _changes(context, words, name, root) else []


def _changes(context: Context, words: str, name: ast.expr, root: Any) -> bool:
    """Whether the words change a copy of the tensor; only names of the program's text are there."""
    own = copied(root)
    before = None if own.array is None else own.array.copy()
    scope = dict(_frames_names(context))
    text = words.replace(context.source.segment(name), "_root", 1)
    try:
        rerun(text, {**scope, "_root": own})
    except Exception:
        return False
    return before is not None and not np.array_equal(before, own.array)


def _frames_names(context: Context) -> Mapping[str, object]:
    """The names of the program that is running."""
    names: Mapping[str, object] = getattr(context.advice, "names", {})
    return names


def repeated(context: Context, node: ast.AugAssign, own: Any, index: Any) -> Hint:
    """x[i] += 1 with repeats in i: each place is changed once."""
    if not isinstance(own, Tensor) or own.ndim == 0:
        return None
    if isinstance(index, list):
        flat = [i for i in index if type(i) is int]
        count = len(index)
    elif isinstance(index, Tensor) and index.dtype.is_integral and index.dtype.name != "uint8":
        if index.array is None or index.layout.numel > MOST_ELEMENTS:
            return None
        flat = index.array.reshape(-1).tolist()
        count = len(flat)
    else:
        return None
    if len(set(flat)) == count or len(flat) != count:
        return None
    target: Any = node.target
    owner, positions = _words(context, target.value), _words(context, target.slice)
    return _hint(
        context,
        node,
        "repeated-index",
        f"{positions} names some positions of {owner} more than once, and each is changed only "
        "once: index_add_() or index_put_(…, accumulate=True) add up",
    )


# -- results and leaves ----------------------------------------------------------------------

LONE = frozenset("to float double half bfloat16 long int bool detach cpu cuda type".split())


def unused(context: Context, node: ast.Expr, own: Any) -> Hint:
    """w.grad.clamp(-1, 1) alone on a line."""
    call: Any = node.value
    if not isinstance(own, Tensor):
        return None
    from tensorcli.language.attributes import METHODS, inherited

    name = call.func.attr
    methods = inherited(METHODS, Tensor)
    has_twin = methods.get(f"{name}_") is not None and not name.endswith("_")
    if not has_twin and name not in LONE:
        return None
    owner = call.func.value
    where = _words(context, owner)
    fixes: list[Fix] = []
    message = f"the result of {_words(context, call)} is not used: {name}() makes a new tensor"
    if has_twin:
        message += f", {name}_() would change {where}"
        pairs = [(owner, own)]
        failure = _failure(context, call, *pairs)
        if all(_is_pure(a) for a in (*call.args, *(k.value for k in call.keywords))):
            fixes = failure.first([failure.with_parts({}, function=f"{name}_")])
    elif isinstance(owner, ast.Name):
        message += f"; {owner.id} stays as it was"
    return _hint(context, node, "unused-result", message, fixes)


def _is_pure(node: ast.AST) -> bool:
    return all(isinstance(n, PURE) for n in ast.walk(node))


def leaf(context: Context, node: ast.Assign, old: Any, new: Any) -> Hint:
    """x = x.to(…): the name no longer stands for the leaf that gets the gradient."""
    target: Any = node.targets[0]
    name = target.id
    text = context.source.text
    was_leaf = isinstance(old, Tensor) and old.requires_grad and old.is_leaf
    trained = ".backward(" in text if was_leaf else f"{name}.grad" in text
    if not trained or "retain_grad" in text:
        return None
    is_leaf = new.is_leaf and new.requires_grad
    if is_leaf:
        return None
    value = node.value
    if was_leaf:
        return _replaced(context, node, name, old, new)
    if not new.requires_grad or not isinstance(value, ast.BinOp | ast.Call):
        return None
    made = value.left if isinstance(value, ast.BinOp) else getattr(value.func, "value", None)
    if made is None:
        return None
    return _hint(
        context,
        node,
        "lost-leaf",
        f"`{name}` is computed from the leaf that requires_grad=True made, so `{name}.grad` stays "
        f"None: make the values first, then {name}.requires_grad_()",
    )


def _replaced(context: Context, node: ast.Assign, name: str, old: Any, new: Any) -> Hint:
    from tensorcli.explain.trial import Fix

    words = short(context.source.segment(node))
    value = node.value
    fixes: list[Fix] = []
    if isinstance(value, ast.BinOp):
        end = "requires no grad" if not new.requires_grad else "is no leaf"
        message = (
            f"after `{words}` the name `{name}` stands for a new tensor that {end}, so its .grad "
            "stays None: an update changes the leaf in place"
        )
        sign = f"{OPERATORS[type(value.op).__name__]}="
        right = context.source.segment(value.right)
        text = f"with torch.no_grad(): {name} {sign} {right}"
        own = copied(old)
        try:
            own.grad = None if old.grad is None else old.grad.detach().clone()
            rerun(text, {**_frames_names(context), name: own})
            fixes = [Fix(text, tuple(own.shape))]
        except Exception:
            fixes = []
    else:
        what = f"the {new.dtype.name} copy" if new.dtype is not old.dtype else "a copy"
        message = (
            f"after `{words}` the name `{name}` stands for {what}, which is no leaf: backward() "
            "fills the .grad of the tensor that it was before"
        )
        call: Any = value
        inner = context.source.segment(call)
        start = len(context.source.segment(call.func.value))
        text = f"{name} = {name}.detach(){inner[start:]}.requires_grad_()"
        scope = {**_frames_names(context), name: copied(old)}
        try:
            rerun(text, scope)
            made: Any = scope[name]
            fixes = [Fix(text, tuple(made.shape))] if made.is_leaf else []
        except Exception:
            fixes = []
    return _hint(context, node, "lost-leaf", message, fixes)


# -- numbers ---------------------------------------------------------------------------------


def overflow(context: Context, node: Any, a: Any, b: Any, result: Any) -> Hint:
    """Integers that went round."""
    if result.array is None or not 0 < result.layout.numel <= MOST_ELEMENTS:
        return None
    operator = node.op if isinstance(node, ast.BinOp | ast.AugAssign) else None
    exact = _in_doubles(operator, a, b)
    if exact is None:
        return None
    got = np.asarray(result.array, dtype=np.float64)
    bits = 8 * result.dtype.itemsize
    if exact.shape != got.shape:
        return None
    off = np.abs(exact - got) > 2.0 ** (bits - 1)
    if not off.any():
        return None
    at = int(np.flatnonzero(off.reshape(-1))[0])
    true, shown = exact.reshape(-1)[at], result.array.reshape(-1)[at]
    low = 0 if not result.dtype.signed else -(2 ** (bits - 1))
    high = 2**bits - 1 if not result.dtype.signed else 2 ** (bits - 1) - 1
    wider = "int64" if bits < 64 else "float64"
    left, right = _sides(node)
    number = left if isinstance(a, Tensor) or isinstance(node, ast.AugAssign) else right
    fixes: list[Fix] = []
    if isinstance(node, ast.BinOp) and bits < 64:
        failure = _failure(context, node, (left, a), (right, b))
        fixes = failure.first([failure.with_parts({0 if number is left else 1: "{}.long()"})])
    return _hint(
        context,
        node,
        "overflow",
        f"{_words(context, node)} goes beyond {result.dtype.name} ({low} to {high}): "
        f"{true:.0f} became {shown}; {_words(context, number)} in {wider} would hold it",
        fixes,
    )


def _in_doubles(operator: Any, a: Any, b: Any) -> Any:
    apply: dict[type, Callable[[Any, Any], Any]] = {
        ast.Add: np.add,
        ast.Sub: np.subtract,
        ast.Mult: np.multiply,
        ast.Pow: np.power,
    }
    compute = apply.get(type(operator))
    if compute is None:
        return None
    values = []
    for value in (a, b):
        array = value.array if isinstance(value, Tensor) else value
        if array is None or isinstance(value, float | complex):
            return None
        values.append(np.asarray(array, dtype=np.float64))
    return compute(*values)


def product(context: Context, node: ast.Call, own: Any, *rest: Any) -> Hint:
    """x.prod() of integers beyond int64."""
    result = rest[-1]
    if len(rest) != 1 or not isinstance(own, Tensor) or not isinstance(result, Tensor):
        return None
    if not own.dtype.is_integral or own.array is None or own.layout.numel > 1000:
        return None
    if result.ndim or node.keywords:
        return None
    exact = math.prod(own.array.reshape(-1).tolist())
    if exact == int(result.item()):
        return None
    return _hint(
        context,
        node,
        "overflow",
        f"{_words(context, node)} goes beyond {result.dtype.name}: {exact} became {result.item()}; "
        "in float64 it keeps its size",
    )


def inverted(context: Context, node: ast.UnaryOp, value: Any) -> Hint:
    """~ of a uint8 mask."""
    if value.array is None or not 0 < value.layout.numel <= MOST_ELEMENTS:
        return None
    if int(value.array.max()) > 1:
        return None
    failure = _failure(context, node, (node.operand, value))
    return _hint(
        context,
        node,
        "inverted-bits",
        f"~ inverts the bits of {_words(context, node.operand)}, which is uint8: 1 becomes 254; "
        "a mask is bool",
        failure.first([failure.with_parts({0: "{}.bool()"})]),
    )


def cast(context: Context, node: ast.Call, own: Any, *rest: Any) -> Hint:
    """A cast to integers of what they cannot hold, or of 54.9999… that was meant to be 55."""
    result = rest[-1]
    if not isinstance(own, Tensor) or not isinstance(result, Tensor):
        return None
    if not (result.dtype.is_integral and not own.dtype.is_complex and not own.dtype.is_bool):
        return None
    if own.array is None or not 0 < own.layout.numel <= MOST_ELEMENTS:
        return None
    words = _words(context, getattr(node.func, "value", node))
    into = result.dtype.name
    values = np.asarray(own.array).astype(np.float64).reshape(-1)
    finite = values[np.isfinite(values)]
    bits = 8 * result.dtype.itemsize
    low, high = (
        (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if result.dtype.signed else (0.0, 2.0**bits)
    )
    failure = _failure(context, node, (getattr(node.func, "value", node), own))
    if finite.size < values.size:
        message = f"{words} holds NaN or infinities, and {into} has no such values"
        fixes: list[Fix] = failure.first([failure.with_parts({0: "{}.nan_to_num()"})])
        return _hint(context, node, "cast", message, fixes)
    whole = np.trunc(finite)
    out = finite[(whole < low) | (whole >= high)]
    if out.size:
        message = f"{words} holds {out[0]:g}, beyond {into}: it wraps around, or worse"
        limits = f"{low:.0f}, {high - 1:.0f}"
        tries = [failure.with_parts({0: f"{{}}.clamp({limits})"})] if bits < 32 else []
        return _hint(context, node, "cast", message, failure.first(tries))
    if own.dtype.is_integral:
        return None
    near = np.rint(finite)
    cut = (near != whole) & (np.abs(finite - near) <= 1e-5 * np.maximum(np.abs(near), 1.0))
    if cut.any():
        at = int(np.flatnonzero(cut)[0])
        message = (
            f"{words} holds {_repr(finite[at], own)}, and the cast cuts the fraction off: "
            f"{whole[at]:.0f}, not {near[at]:.0f}"
        )
        return _hint(
            context, node, "cast", message, failure.first([failure.with_parts({0: "{}.round()"})])
        )
    if own.requires_grad and _comes_back(context, node):
        message = (
            f"{_words(context, node)} has no gradient, integers have no slope: what is computed "
            "from it counts as a constant"
        )
        return _hint(context, node, "cast", message)
    return None


def _repr(value: float, own: Any) -> str:
    return f"{value:.9g}" if own.dtype.itemsize <= 4 else repr(float(value))


def _comes_back(context: Context, node: ast.Call) -> bool:
    """Whether the integers are made floating-point again further on, as one who meant to round."""
    backs = {"float", "double", "half", "to", "type_as"}
    names = set()
    tree = ast.parse(context.source.text)
    span = context.source.span(node)
    for part in ast.walk(tree):
        if isinstance(part, ast.Assign) and context.source.span(part.value) == span:
            names |= {t.id for t in part.targets if isinstance(t, ast.Name)}
    for part in ast.walk(tree):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            owner = part.func.value
            if part.func.attr in backs and (
                (isinstance(owner, ast.Name) and owner.id in names)
                or context.source.span(owner) == span
            ):
                return True
    return False


def arange(context: Context, node: ast.Call, start: Any, end: Any, step: Any, result: Any) -> Hint:
    """arange with a fractional step whose last element is the end, but for rounding."""
    if not all(type(v) in (int, float) for v in (start, end, step)) or type(step) is int:
        return None
    if not isinstance(result, Tensor) or not step or result.layout.numel < 2:
        return None
    last = start + (result.layout.numel - 1) * step
    if abs(last - end) > 1e-6 * abs(step):
        return None
    from tensorcli.explain.trial import Fix

    count = round((end - start) / step)
    own = context.source.segment(node.func)
    words = f"{own.removesuffix('arange')}linspace({start}, {end}, {count + 1})"
    scope: dict[str, object] = {}
    fixes = []
    try:
        rerun(f"_result = {words}", scope)
        made: Any = scope["_result"]
        fixes = [Fix(words, tuple(made.shape))]
    except Exception:
        fixes = []
    return _hint(
        context,
        node,
        "arange-end",
        f"{_words(context, node)} has {result.layout.numel} elements: the end is left out, but "
        f"rounding let {last:.9g} in. linspace, or arange({count}) times the step, counts safely",
        fixes,
    )


# What a logarithm of something is better computed as: log of a softmax underflows to -inf.
TOGETHER = {"softmax": "log_softmax", "sigmoid": "logsigmoid"}


def logarithm(context: Context, node: ast.Call, own: Any, *rest: Any) -> Hint:
    """log(softmax(x)) where the softmax is 0."""
    result = rest[-1]
    function: Any = node.func
    inner: Any = function.value if len(rest) == 1 and not node.args else node.args[:1] or None
    inner = inner[0] if isinstance(inner, list) else inner
    if not isinstance(inner, ast.Call) or not isinstance(result, Tensor) or result.array is None:
        return None
    name = getattr(inner.func, "attr", None) or getattr(inner.func, "id", "")
    if name not in TOGETHER or np.isfinite(result.array).all():
        return None
    whole, called = context.source.segment(inner), context.source.segment(inner.func)
    together = TOGETHER[name]
    words = called[: len(called) - len(name)] + together + whole[len(called) :]
    if together == "logsigmoid":
        owner = getattr(inner.func, "value", None)
        if inner.args or owner is None:
            return None
        words = f"torch.nn.functional.logsigmoid({context.source.segment(owner)})"
    fixes = []
    if all(_is_pure(n) for n in ast.walk(inner) if n is not inner and n is not inner.func):
        from tensorcli.explain.trial import Fix

        scope = {**_frames_names(context)}
        try:
            rerun(f"_result = {words}", scope)
            made: Any = scope["_result"]
            fixes = [Fix(words, tuple(made.shape))]
        except Exception:
            fixes = []
    return _hint(
        context,
        node,
        "log-of-small",
        f"{name}() underflows to 0 in {_words(context, node)}, and the log of 0 is -inf: "
        f"{together}() computes both at once",
        fixes,
    )


def running_sum(context: Context, node: Any, result: Any) -> Hint:
    """s += x in bfloat16 or float16: it stops growing."""
    if not _is_running_sum(context, node):
        return None
    steps = 2 ** (FORMATS[result.dtype.name][0] + 1)
    return _hint(
        context,
        node,
        "low-precision-sum",
        f"{_words(context, node)} adds up in {result.dtype.name}, in steps that grow with the "
        f"sum: once it is {steps} times what is added, it stands still. Add up in float32",
    )


def _is_running_sum(context: Context, node: Any) -> bool:
    """`s = s + x` or `s += x` in a loop."""
    tree = ast.parse(context.source.text)
    span = context.source.span(node)
    for loop in ast.walk(tree):
        if not isinstance(loop, ast.For | ast.While):
            continue
        for part in ast.walk(loop):
            if isinstance(part, ast.AugAssign) and isinstance(part.op, ast.Add):
                if context.source.span(part) == span and isinstance(part.target, ast.Name):
                    return True
            if isinstance(part, ast.Assign) and isinstance(part.value, ast.BinOp):
                first = part.targets[0]
                sides = (part.value.left, part.value.right)
                same = isinstance(first, ast.Name) and any(
                    isinstance(side, ast.Name) and side.id == first.id for side in sides
                )
                if same and context.source.span(part.value) == span:
                    return isinstance(part.value.op, ast.Add)
    return False


def never_equal(context: Context, node: ast.Compare, a: Any, b: Any) -> Hint:
    """x == nan."""
    left, right = _sides(node)
    is_not = isinstance(node.ops[0], ast.NotEq)
    for own, other, words in ((b, left, right), (a, right, left)):
        number = own.item() if isinstance(own, Tensor) and own.layout.numel == 1 else own
        if isinstance(number, float) and number != number:
            value = a if own is b else b
            failure = _failure(context, node, (other, value))
            template = "~{0}.isnan()" if is_not else "{0}.isnan()"
            return _hint(
                context,
                node,
                "nan-equality",
                f"{_words(context, words)} is NaN, which equals nothing, itself included: "
                f"{_words(context, node)} is {'always' if is_not else 'never'} true",
                failure.first([failure.as_written(template)]),
            )
    return None


def accumulated(context: Context, node: ast.Expr) -> Hint:
    """backward() in a loop whose gradients nothing sets back."""
    text = context.source.text
    if any(word in text for word in ("zero_grad", "grad = None", "grad.zero_", "grad.fill_")):
        return None
    updates = any(
        isinstance(part, ast.AugAssign | ast.Assign)
        and any(isinstance(n, ast.Attribute) and n.attr == "grad" for n in ast.walk(part.value))
        and _in_loop(context, part)
        for part in ast.walk(ast.parse(text))
    )
    if not updates:
        return None
    return _hint(
        context,
        node,
        "accumulated-gradient",
        "backward() adds to .grad, and nothing in this loop sets it back: from the second pass on "
        "each step uses the sum of all gradients so far",
    )


def _in_loop(context: Context, node: ast.AST) -> bool:
    span = context.source.span(node)
    return any(
        isinstance(loop, ast.For | ast.While)
        and any(context.source.span(part) == span for inner in loop.body
                for part in ast.walk(inner) if isinstance(part, ast.stmt))
        for loop in ast.walk(ast.parse(context.source.text))
    )  # fmt: skip


LINTS: dict[str, Callable[..., Hint]] = {
    "outer": outer,
    "sum": python_sum,
    "between": between,
    "overlap": overlap,
    "copy": copy,
    "repeated": repeated,
    "unused": unused,
    "leaf": leaf,
    "overflow": overflow,
    "prod": product,
    "cumprod": lambda *_: None,
    "inverted": inverted,
    "cast": cast,
    "arange": arange,
    "log": logarithm,
    "running_sum": running_sum,
    "never_equal": never_equal,
    "accumulated": accumulated,
}
