"""why(x): view or copy, through which chain of operations, and what made a copy necessary.

The chain is read from the expression that made the tensor, and its steps are done once more;
nothing is told of a chain that does not come to the same layout again, or whose steps could have
effects.
"""

from __future__ import annotations

import ast

from engine import modes
from engine.tensor import Tensor
from tensorcli.explain import customs
from tensorcli.explain.layout import first_break, row_major, seen, view_of
from tensorcli.explain.merging import blocking, gaps
from tensorcli.explain.names import sharing_names
from tensorcli.explain.shapes import short
from tensorcli.explain.stepping import marked
from tensorcli.language.compiling import Context, expression
from tensorcli.language.functions import Function
from tensorcli.language.limits import LimitReached
from tensorcli.language.running import now
from tensorcli.language.source import Source
from tensorcli.value_results import ViewStep, WhyResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


MOST_ELEMENTS = 10_000_000
"""Chains over larger tensors are not done again."""

# What may be done once more without anybody noticing: no draws, nothing in place.
PURE = frozenset(
    "t T mT H mH transpose permute view reshape flatten unflatten ravel squeeze unsqueeze expand "
    "expand_as broadcast_to narrow select diagonal movedim moveaxis swapaxes swapdims unfold "
    "as_strided contiguous clone detach to half float double bfloat16 int long bool type type_as "
    "repeat tile flip roll rot90 index_select gather take masked_select repeat_interleave "
    "view_as reshape_as real imag chunk split unbind hsplit vsplit dsplit tensor_split adjoint "
    "add sub mul div neg abs exp relu cat stack hstack vstack data numpy "
    "transpose_ positive view_as_real view_as_complex conj conj_physical resolve_conj resolve_neg "
    "atleast_1d atleast_2d atleast_3d requires_grad_".split()
) - {"transpose_", "requires_grad_"}

ALWAYS_COPIES = {
    "clone": "clone() always copies",
    "repeat": "repeat() writes the elements out; expand() would be a view",
    "tile": "tile() writes the elements out; expand() would be a view",
    "repeat_interleave": "repeat_interleave() writes the elements out",
    "flip": "flip() needs a negative stride, which tensors cannot have",
    "rot90": "rot90() needs a negative stride, which tensors cannot have",
    "roll": "roll() needs an order that no strides describe",
    "cat": "cat() brings several memories together",
    "stack": "stack() brings several memories together",
    "index_select": "the chosen places need not be evenly apart, as strides are",
    "gather": "the chosen places need not be evenly apart, as strides are",
    "take": "the chosen places need not be evenly apart, as strides are",
    "resolve_conj": "resolve_conj() writes the conjugates out",
    "resolve_neg": "resolve_neg() writes the negated numbers out",
    "masked_select": "how many elements a mask takes is not known before",
}


def explain(
    tensor: Tensor,
    text: str,
    names: Mapping[str, object],
    source: Source,
    node: ast.expr,
) -> WhyResult:
    """What a tensor shares its memory with, and why that is so."""
    steps = chain(tensor, names, source, node)
    base = view_of(tensor, names)
    shares = tuple(name for name in sharing_names(tensor, names) if name != text)
    if base in (None, "a temporary") and _began_with(steps, shares):
        # Its base has no name, but the chain began with a variable that is a view of it too.
        base = steps[0].text
    copies = [step for step in steps if step.outcome == "copy"]
    last = next((s for s in reversed(steps) if s.outcome != "same"), None)
    size = tensor.layout.numel * tensor.dtype.itemsize
    made = _made(node, source, names)
    others = _other_names(tensor, text, names)
    if base is not None:
        verdict = "view"
    elif others:
        verdict = "same"
    elif last is not None and last.outcome == "copy":
        verdict = "copy"
    else:
        verdict = "own"
    return WhyResult(
        name=text,
        verdict=verdict,
        view_of=base,
        bytes=size,
        reason=_reason(verdict, base, shares, copies, others, seen(tensor)) or _new(tensor, made),
        notes=() if made is None else customs.notes(tensor, made[1], made[0], names),
        steps=steps,
        shares=shares,
    )


def _reason(
    verdict: str,
    base: str | None,
    shares: Sequence[str],
    copies: list[ViewStep],
    other_names: list[str],
    change: str | None,
) -> str:
    if other_names:
        others = " and ".join(other_names)
        return f"{others} is the same tensor by another name: what changes one changes both"
    if verdict == "view":
        whose = (
            "the memory of a temporary"
            if base in (None, "a temporary")
            else f"the memory of {base}"
        )
        if change is not None:
            return f"it shows {whose} {change}, worked out at each look; nothing was copied"
        return f"it shows {whose}, with strides and an offset of its own; nothing was copied"
    if verdict == "copy" and copies:
        return copies[-1].reason
    return f"{' and '.join(shares)} show{'s' if len(shares) == 1 else ''} it too" if shares else ""


def _made(
    node: ast.expr, source: Source, names: Mapping[str, object]
) -> tuple[Source, ast.expr] | None:
    """The expression behind a name, or behind a part of a pair that has one."""
    for _ in range(3):
        part = isinstance(node, ast.Attribute) and node.attr in ("values", "indices")
        name = node.value if part else node  # type: ignore[attr-defined]  # an attribute
        if not isinstance(name, ast.Name):
            break
        found = definition(name.id, source, node.lineno, names)
        if found is None:
            return None
        source, node = found
    return source, node


def _new(tensor: Tensor, made: tuple[Source, ast.expr] | None) -> str:
    """Why a tensor has memory of its own."""
    if made is None:
        return ""
    source, node = made
    words = f"`{short(source.segment(node))}`"
    return f"{words} {'gives new values' if not isinstance(node, ast.Name) else 'has its own'}"


def _lazily(before: Tensor, after: Tensor) -> str:
    """What a step that only changes how the memory is seen does."""
    was, now_seen = seen(before), seen(after)
    if was == now_seen:
        return ""
    if now_seen is None:
        return f"no longer {was}: the memory is shown as it is"
    return f"{now_seen} at each look; the memory stays as it is"


def _began_with(steps: Sequence[ViewStep], shares: Sequence[str]) -> bool:
    """Whether a chain of views began with a variable that shares the memory."""
    return bool(steps) and steps[0].text in shares and all(s.outcome != "copy" for s in steps)


def _other_names(tensor: Tensor, text: str, names: Mapping[str, object]) -> list[str]:
    return [name for name, value in names.items() if value is tensor and name not in (text, "_")]


# -- chains ----------------------------------------------------------------------------------


def chain(
    tensor: Tensor, names: Mapping[str, object], source: Source, node: ast.expr
) -> tuple[ViewStep, ...]:
    """The operations that led to a tensor, from what they began with; empty if not known."""
    if isinstance(node, ast.Name):
        made = definition(node.id, source, node.lineno, names)
        if made is None:
            return ()
        source, node = made
    with_steps = _links(node)
    if with_steps is None:
        return ()
    root, links = with_steps
    if not links and isinstance(root, ast.Name):
        return ()
    try:
        return _evaluated(tensor, names, source, root, links)
    except (Exception, LimitReached):  # what cannot be done again is not told
        return ()


def definition(
    name: str, source: Source, before: int, names: Mapping[str, object]
) -> tuple[Source, ast.expr] | None:
    """The expression of the last assignment of a name above a line; None if there are several ways
    to it."""
    found: ast.expr | None = None
    try:
        tree = ast.parse(source.text)
    except SyntaxError:
        return None
    for statement in tree.body:
        if statement.lineno >= before:
            break
        is_plain = (
            isinstance(statement, ast.Assign)
            and len(statement.targets) == 1
            and isinstance(statement.targets[0], ast.Name)
        )
        if is_plain and isinstance(statement, ast.Assign):
            target = statement.targets[0]
            assert isinstance(target, ast.Name)
            if target.id == name:
                found = statement.value
        elif name in _stored(statement):
            found = None
    if found is not None:
        return source, found
    for text in reversed(earlier_texts()):
        older = Source(text)
        made = _last_of(name, older)
        if made is not None:
            return older, made
    return None


def earlier_texts() -> list[str]:
    """What the session ran before the text that is running."""
    replay = None if now.replay is None else now.replay()
    return [] if replay is None else list(replay.texts[:-1])


def _last_of(name: str, source: Source) -> ast.expr | None:
    try:
        tree = ast.parse(source.text)
    except SyntaxError:
        return None
    for statement in reversed(tree.body):
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ast.Name) and target.id == name:
                return statement.value
    return None


def _stored(statement: ast.stmt) -> set[str]:
    return {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }


def _links(node: ast.expr) -> tuple[ast.expr, list[ast.expr]] | None:
    """The operations from the innermost out, each on the one before; None if one has effects."""
    links: list[ast.expr] = []
    while True:
        inner = _operand(node)
        if inner is None:
            return node, links[::-1]
        if name_of_step(node) not in PURE and not isinstance(node, ast.Subscript):
            return node, links[::-1]
        links.append(node)
        node = inner


def _operand(node: ast.expr) -> ast.expr | None:
    if isinstance(node, ast.Subscript | ast.Attribute):
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        receiver = node.func.value
        is_module = isinstance(receiver, ast.Name) and receiver.id in ("torch", "F", "np")
        return (node.args[0] if node.args else None) if is_module else receiver
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
        return node.args[0]
    return None


def name_of_step(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        function = node.func
        return str(getattr(function, "attr", None) or getattr(function, "id", ""))
    return node.attr if isinstance(node, ast.Attribute) else ""


def _evaluated(
    tensor: Tensor,
    names: Mapping[str, object],
    source: Source,
    root: ast.expr,
    links: list[ast.expr],
) -> tuple[ViewStep, ...]:
    if not all(map(_is_pure, (*links, root))) or any(
        isinstance(names.get(n.id), Function)
        for link in (*links, root)
        for n in ast.walk(link)
        if isinstance(n, ast.Name)
    ):
        return ()
    context = Context(source)
    value: Any = names.get(root.id) if isinstance(root, ast.Name) else None
    if value is None:
        value = _source_value(tensor, root, links, names, source)
        if value is None:
            return ()
    grad, modes.state.grad = modes.state.grad, False
    try:
        steps = (
            [_step(source.segment(root), "source", value, "")] if isinstance(value, Tensor) else []
        )
        for link in links:
            inner = _operand(link)
            assert inner is not None
            run = expression(marked(link, [inner], [" v"]), context)
            before, value = value, run({**names, " v": value})
            if isinstance(value, Tensor) and isinstance(before, Tensor):
                if value.layout.numel > MOST_ELEMENTS:
                    return ()
                text = _short_text(source, link, inner)
                outcome, reason = judged(link, before, value, names, source)
                steps.append(_step(text, outcome, value, reason))
            elif isinstance(value, Tensor):
                steps.append(_step(source.segment(link), "source", value, ""))
    finally:
        modes.state.grad = grad
    same = (
        isinstance(value, Tensor)
        and value.dtype is tensor.dtype
        and value.layout.shape == tensor.layout.shape
        and value.layout.strides == tensor.layout.strides
    )
    return tuple(steps) if same else ()


# What arguments of a step may call.
LOOKS = frozenset("size dim numel stride len int min max sum range tuple list".split())

FRESH = frozenset(
    "zeros ones empty full rand randn arange tensor linspace eye zeros_like ones_like".split()
)


def _is_pure(node: ast.expr) -> bool:
    """Whether nothing in an expression has effects."""
    return not any(
        isinstance(n, ast.NamedExpr)
        or (isinstance(n, ast.Call) and name_of_step(n) not in PURE | LOOKS | FRESH)
        for n in ast.walk(node)
    )


def _source_value(
    tensor: Tensor,
    root: ast.expr,
    links: list[ast.expr],
    names: Mapping[str, object],
    source: Source,
) -> Any:
    """A tensor like the one the chain began with, where that was made on the spot."""
    if not isinstance(root, ast.Call) or not links:
        return None
    name = name_of_step(root)
    if name not in FRESH:
        return None
    from engine.registry import functions

    state = functions["get_rng_state"]()
    try:
        return expression(root, Context(source))(dict(names))
    finally:
        functions["set_rng_state"](state)


def _short_text(source: Source, link: ast.expr, inner: ast.expr) -> str:
    """The part of the text that is this step: `.t()`, `[0]`, `reshape(…, 6)`."""
    whole, part = source.segment(link), source.segment(inner)
    if whole.startswith(part):
        return whole[len(part) :]
    return whole.replace(part, "…", 1) if len(part) > 12 else whole


def _step(text: str, outcome: str, value: Tensor, reason: str) -> ViewStep:
    layout = value.layout
    size = layout.numel * value.dtype.itemsize
    return ViewStep(
        text, outcome, tuple(layout.shape), tuple(layout.strides), value.offset, size, reason
    )


def judged(
    node: ast.expr, before: Tensor, after: Tensor, names: Mapping[str, object], source: Source
) -> tuple[str, str]:
    """View, copy, same or new, and the reason where it is a copy."""
    if after is before:
        return "same", _reason_same(node, before)
    if after.storage.root is before.storage.root:
        return "view", _lazily(before, after)
    name = name_of_step(node)
    if isinstance(node, ast.Subscript):
        return "copy", _gathering(node, names)
    if name in ALWAYS_COPIES:
        return "copy", ALWAYS_COPIES[name]
    if name == "contiguous":
        return "copy", _not_contiguous(before)
    if name in ("reshape", "flatten", "ravel", "reshape_as"):
        return "copy", _not_mergeable(before, after)
    if after.dtype is not before.dtype:
        return "copy", f"{before.dtype.name} and {after.dtype.name} have other bits"
    if str(after.device) != str(before.device):
        return "copy", f"it moves from {before.device} to {after.device}"
    return "new", ""


def _reason_same(node: ast.expr, before: Tensor) -> str:
    name = name_of_step(node)
    if name == "contiguous":
        return "it is contiguous already"
    if name in ("to", "float", "half", "double", "bfloat16", "int", "long", "bool", "type"):
        return f"it is {before.dtype.name} already"
    return ""


def _not_contiguous(before: Tensor) -> str:
    shape, strides = before.layout.shape, before.layout.strides
    dim = first_break(shape, strides)
    if dim is None:
        return "contiguous() copies what does not lie in row-major order"
    return f"dim {dim} has stride {strides[dim]}, row-major order needs {row_major(shape)[dim]}"


def _not_mergeable(before: Tensor, after: Tensor) -> str:
    shape, strides = before.layout.shape, before.layout.strides
    gap = blocking(shape, strides, after.layout.shape) or next(iter(gaps(shape, strides)), None)
    return "no strides give this shape" if gap is None else gap.text


def _gathering(node: ast.Subscript, names: Mapping[str, object]) -> str:
    """Which part of a subscript takes elements one by one."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for part in parts:
        if isinstance(part, ast.List):
            return "a list of places gathers; only numbers, slices, None and ... are views"
        value = names.get(part.id) if isinstance(part, ast.Name) else None
        if isinstance(value, Tensor):
            assert isinstance(part, ast.Name)
            kind = "a mask" if value.dtype.is_bool else "places in a tensor"
            return f"{part.id} is {kind}: it gathers; only numbers, slices, None and ... are views"
        if isinstance(part, ast.Compare):
            return "a mask gathers; only numbers, slices, None and ... are views"
    return "places in a tensor or list gather; only numbers, slices, None and ... are views"
