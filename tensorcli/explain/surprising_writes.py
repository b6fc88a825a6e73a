"""Surprises in memory and graph: writes into copies, unused results, lost leaves, old gradients."""

from __future__ import annotations

import ast

import numpy as np

from engine.tensor import Tensor
from tensorcli.explain.hints import failure_of, hint_at, is_pure, names_around, quoted
from tensorcli.explain.shapes import OPERATORS, short
from tensorcli.explain.trial import MOST_ELEMENTS, copied, rerun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tensorcli.explain.hints import Hint
    from tensorcli.explain.trial import Fix
    from tensorcli.language.compiling import Context


def overlap(context: Context, node: ast.AugAssign, a: Any, b: Any) -> Hint:
    """a -= a[:, :1]: what is read is overwritten on the way."""
    if a.layout is b.layout and a.offset == b.offset:
        return None
    if not _meet(a, b):
        return None
    failure = failure_of(context, node, (node.target, a), (node.value, b))
    return hint_at(
        context,
        node,
        "overlap",
        f"{quoted(context, node.value)} shows memory of {quoted(context, node.target)}, which is "
        "overwritten while it is read: what comes out depends on the order of the work, in "
        "PyTorch on the size and the processor",
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
    if written.storage.root is root.storage.root or written.layout.numel == 0:
        return None
    target = _written_to(node)
    if target is None:
        return None
    from tensorcli.explain.advice import root_of

    name = root_of(target)
    if name is None or _is_copied_on_purpose(target):
        return None
    why = _why_copied(target)
    owner = quoted(context, name)
    return hint_at(
        context,
        node,
        "write-to-copy",
        f"{quoted(context, target)} is a copy ({why}), so {owner} stays as it is",
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
    scope = dict(names_around(context))
    text = words.replace(context.source.segment(name), "_root", 1)
    try:
        rerun(text, {**scope, "_root": own})
    except Exception:
        return False
    return before is not None and not np.array_equal(before, own.array)


def expanded(context: Context, node: Any, own: Any, index: Any) -> Hint:
    """x.expand(3, 4)[0, 1] = 5: all that expand() repeats is one cell."""
    if not isinstance(own, Tensor):
        return None
    shape, strides = own.layout.shape, own.layout.strides
    cells = [d for d, (s, n) in enumerate(zip(strides, shape, strict=True)) if s == 0 and n > 1]
    indices = index if isinstance(index, tuple) else (index,)
    plain = all(type(i) is int or isinstance(i, slice) for i in indices)
    if not plain or not any(d < len(indices) and _is_part(indices[d], shape[d]) for d in cells):
        return None
    target: Any = node.targets[0] if isinstance(node, ast.Assign) else node.target
    name, words = context.source.segment(target.value), context.source.segment(node)
    fixes: list[Fix] = []
    if is_pure(node.value):
        from tensorcli.explain.trial import Fix

        text = f"{name} = {name}.clone(); {words}"
        scope = {**names_around(context), name: own}
        try:
            rerun(text, scope)
            fixes = [Fix(text, tuple(shape))]
        except Exception:
            fixes = []
    return hint_at(
        context,
        node,
        "expanded-write",
        f"{quoted(context, target.value)} has stride 0 in dim {cells[0]}, as expand() makes it: "
        f"the {shape[cells[0]]} elements along it are one cell, and all of them are changed",
        fixes,
    )


def _is_part(index: Any, size: int) -> bool:
    return type(index) is int or len(range(*index.indices(size))) < size


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
    owner, positions = quoted(context, target.value), quoted(context, target.slice)
    return hint_at(
        context,
        node,
        "repeated-index",
        f"{positions} names some positions of {owner} more than once, and each is changed only "
        "once: index_add_() or index_put_(…, accumulate=True) add up",
    )


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
    if isinstance(owner, ast.Name) and not node.col_offset and not _is_read_later(context, node):
        return None
    where = quoted(context, owner)
    fixes: list[Fix] = []
    message = f"the result of {quoted(context, call)} is not used: {name}() makes a new tensor"
    if has_twin:
        message += f", {name}_() would change {where}"
        pairs = [(owner, own)]
        failure = failure_of(context, call, *pairs)
        if all(is_pure(a) for a in (*call.args, *(k.value for k in call.keywords))):
            fixes = failure.first([failure.with_parts({}, function=f"{name}_")])
    elif isinstance(owner, ast.Name):
        message += f"; {owner.id} stays as it was"
    return hint_at(context, node, "unused-result", message, fixes)


def _is_read_later(context: Context, node: ast.Expr) -> bool:
    """Whether the tensor is used below for anything but to show the same operation of it."""
    call: Any = node.value
    name, method = call.func.value.id, call.func.attr
    for other in ast.parse(context.source.text).body:
        if other.lineno <= node.lineno:
            continue
        shown: Any = other.value if isinstance(other, ast.Expr) else None
        if getattr(getattr(shown, "func", None), "attr", None) == method:
            continue
        if any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(other)):
            return True
    return False


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
    return hint_at(
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
            rerun(text, {**names_around(context), name: own})
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
        scope = {**names_around(context), name: copied(old)}
        try:
            rerun(text, scope)
            made: Any = scope[name]
            fixes = [Fix(text, tuple(made.shape))] if made.is_leaf else []
        except Exception:
            fixes = []
    return hint_at(context, node, "lost-leaf", message, fixes)


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
    steps = any(
        isinstance(part, ast.Expr)
        and isinstance(part.value, ast.Call)
        and getattr(part.value.func, "attr", "") == "step"
        and not part.value.args
        and _in_loop(context, part)
        for part in ast.walk(ast.parse(text))
    )
    if not updates and not (steps and "torch.optim" in text):
        return None
    return hint_at(
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
