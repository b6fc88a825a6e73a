"""An operation that failed, tried again in other words: on copies of its operands, never on them.

The operands are evaluated already, so that a try repeats one operation and none of the program's
effects. A fix exists only if its try went through.
"""

from __future__ import annotations

import ast
import re

from engine import modes
from engine.registry import functions
from engine.tape import requires_grad, shown_node
from engine.tensor import Tensor
from tensorcli.language import limits
from tensorcli.language.errors import Operand, Refused
from tensorcli.language.functions import Function
from tensorcli.language.program import compile_program
from tensorcli.language.running import Silence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from tensorcli.diagnostics import Span
    from tensorcli.language.errors import Where
    from tensorcli.language.source import Source

TWICE_TURNED = (".t().t()", ".mT.mT", ".T.t()", ".T.mT")
"""Two transpositions on end, which leave a matrix as it was."""

MOST = 3
"""Fixes shown for one mistake; more would be a list to choose from, not an answer."""

MOST_ELEMENTS = 10_000
"""Larger operands are tried without their data."""

MOST_PARTS = 32
"""Elements of a list that are looked at one by one."""

# What an attempt may raise: it does not work, or this build lacks an operation.
UNFIT = (Exception, limits.LimitReached)


class Fix:
    """An expression that was tried in place of the one that failed, and the shape it gives."""

    __slots__ = ("expr", "shape")

    def __init__(self, expr: str, shape: tuple[int, ...] | None) -> None:
        self.expr = expr
        self.shape = shape

    def __repr__(self) -> str:
        return f"Fix({self.expr!r}, {self.shape!r})"


class Part(Operand):
    """An operand, or an element of one that was written as a list or a tuple."""

    __slots__ = ("node",)

    def __init__(self, source: Source, node: ast.AST, value: object) -> None:
        super().__init__(source.span(node), source.segment(node), value)
        self.node = node

    @property
    def tight(self) -> bool:
        """Whether a method call may follow the text without parentheses."""
        kinds = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.List)
        return isinstance(self.node, kinds) or self.text[:1] == "("


class Failure:
    """The operation that failed, its operands, and the session's names around it."""

    __slots__ = ("names", "node", "parts", "source", "statement", "tried")

    def __init__(self, where: Where, names: Mapping[str, object]) -> None:
        self.source = where.source
        self.node = where.node
        self.names = names
        # An element that is assigned to is a whole statement when it is tried again.
        self.statement: ast.AST = getattr(where.node, "statement", where.node)
        self.parts = [
            part for node, value in where.pairs for part in _parts(where.source, node, value)
        ]
        self.tried: dict[str, Fix | None] = {}

    @property
    def tensors(self) -> list[tuple[int, Any]]:
        """(number of the part, tensor)."""
        return [(i, p.value) for i, p in enumerate(self.parts) if isinstance(p.value, Tensor)]

    @property
    def operation(self) -> str:
        """The last name of what was called, `getitem`, `setitem`, or the operator's class."""
        node = self.node
        if isinstance(node, ast.Call):
            function = node.func
            name = getattr(function, "attr", None) or getattr(function, "id", "")
            return str(name)
        if isinstance(node, ast.Subscript):
            return "getitem" if isinstance(node.ctx, ast.Load) else "setitem"
        if isinstance(node, ast.BinOp | ast.AugAssign):
            return type(node.op).__name__
        return type(node).__name__

    def number_of(self, node: ast.AST | None) -> int | None:
        """The number of the part that stands at a node."""
        return next((i for i, part in enumerate(self.parts) if part.node is node), None)

    def argument(self, position: int, keyword: str | None = None) -> int | None:
        """The number of the part that is an argument of the call, the object of a method first."""
        node = self.node
        if not isinstance(node, ast.Call):
            return None
        given: list[ast.expr] = list(node.args)
        if isinstance(node.func, ast.Attribute) and self.number_of(node.func.value) is not None:
            given.insert(0, node.func.value)
        if position < len(given):
            return self.number_of(given[position])
        named = (k.value for k in node.keywords if k.arg == keyword)
        return self.number_of(next(named, None)) if keyword is not None else None

    def tensor_at(self, position: int, keyword: str | None = None) -> int | None:
        """The same for an argument that is a tensor."""
        number = self.argument(position, keyword)
        is_tensor = number is not None and isinstance(self.parts[number].value, Tensor)
        return number if is_tensor else None

    def with_parts(self, changes: Mapping[int, str], **more: str) -> Fix | None:
        """Try the operation with some parts changed: `{}` in a template is the part itself.

        `function` names another function or method, `keyword` is added to the call, `renamed`
        (`old=new`) calls a keyword by another name.
        """
        return self._attempt(self._edited(changes, True, more), self._edited(changes, False, more))

    def words(self, changes: Mapping[int, str], **more: str) -> str:
        """What `with_parts` would try, for who tries it in another way."""
        return self._edited(changes, True, more)

    def as_written(self, template: str) -> Fix | None:
        """Try other words for the whole operation; `{0}`, `{1}` … in them are its parts."""
        marks = [_mark(i) for i in range(len(self.parts))]
        spaced = re.sub(r"(, |.|^)\{(\d+)\}(?=(.|$))", lambda m: _words(m, self.parts), template)
        return self._attempt(spaced.format(), template.format(*marks))

    def assigned(self, number: int, function: str) -> Fix | None:
        """Try `x = x.add(1)` for `x.add_(1)`, the part of that number being `x`."""
        name = self.parts[number].text
        more = {"function": function}
        shown = f"{name} = {self._edited({}, True, more)}"
        return self._attempt(shown, f"{_mark(number)} = {self._edited({}, False, more)}")

    def inside(self, prefix: str, number: int = 0) -> Fix | None:
        """Try the statement with words before it: `with torch.no_grad(): `, `x = x.clone(); `."""
        marked = prefix.replace(f"{self.parts[number].text} = {self.parts[number].text}.", (
            f"{_mark(number)} = {_mark(number)}."
        )) if self.parts else prefix  # fmt: skip
        return self._attempt(
            prefix + self._edited({}, True, {}), marked + self._edited({}, False, {})
        )

    def prepared(self, name: str, prefix: str) -> Fix | None:
        """Try the expression as it stands after words about one of its names, on a copy of it."""
        return self.instead(name, prefix + self._text)

    def instead(self, name: str, text: str) -> Fix | None:
        """Try a statement about one name, on a copy of it."""
        scope = {**self.names, name: copied(self.names[name])}
        try:
            rerun(text, scope)
        except UNFIT:
            return None
        return Fix(text, None)

    def elsewhere(self, text: str) -> Fix | None:
        """Try an expression around the failing one, on copies of the tensors that it names."""
        value = evaluated(text, self.names, UNTRIED)
        if value is UNTRIED:
            return None
        return Fix(text, value.layout.shape if isinstance(value, Tensor) else None)

    def first(self, tries: Iterable[Fix | None], most: int = MOST) -> list[Fix]:
        """The first few that worked, each once."""
        found: dict[str, Fix] = {}
        for fix in tries:
            if fix is not None:
                found.setdefault(fix.expr, fix)
                if len(found) == most:
                    break
        return list(found.values())

    def _edited(self, changes: Mapping[int, str], shown: bool, more: Mapping[str, str]) -> str:
        """The text of the operation with its parts changed, or with marks in their place."""
        edits: list[tuple[int, int, str]] = []
        start = self.source.span(self.statement)
        for i, part in enumerate(self.parts):
            template = changes.get(i)
            if shown and template is None:
                continue
            inner = part.text if shown else _mark(i)
            first, last = self._range(start, part.span)
            if shown and template is not None and "{}" in template:
                bare = template == "{}" or not template.startswith("{}")
                inner = inner if part.tight or bare else f"({inner})"
                first, last = _with_parentheses(self._text, first, last)
            filled = inner if template is None else template.format(inner)
            for twice in TWICE_TURNED if shown else ():
                filled = filled.removesuffix(twice)
            edits.append((first, last, filled))
        node = self.node
        if "function" in more and isinstance(node, ast.Call):
            first, last = self._range(start, self.source.span(node.func))
            name = self.operation
            edits.append((last - len(name), last, more["function"]))
        if "renamed" in more and isinstance(node, ast.Call):
            old, _, new = more["renamed"].partition("=")
            for keyword in node.keywords:
                if keyword.arg == old:
                    first, _ = self._range(start, self.source.span(keyword))
                    edits.append((first, first + len(old), new))
        if "keyword" in more and isinstance(node, ast.Call):
            last = self._range(start, self.source.span(node))[1] - 1
            comma = ", " if node.args or node.keywords else ""
            edits.append((last, last, comma + more["keyword"]))
        text = self._text
        for first, last, new in sorted(edits, reverse=True):
            text = text[:first] + new + text[last:]
        return text

    @property
    def calls_own_function(self) -> bool:
        """Whether a try would run a function of the program, and with it all that it does."""
        root: Any = getattr(self.node, "func", None)
        while isinstance(root, ast.Attribute):
            root = root.value
        known = self.names.get(root.id) if isinstance(root, ast.Name) else None
        return isinstance(known, Function)

    @property
    def _text(self) -> str:
        return self.source.segment(self.statement)

    def _range(self, start: Span, span: Span) -> tuple[int, int]:
        """Where a place lies in the text of the statement."""

        def offset(line: int, column: int) -> int:
            lines = range(start.line, line)
            return sum(len(self.source.line(n)) + 1 for n in lines) + column - start.column

        return offset(span.line, span.column), offset(span.end_line, span.end_column)

    def _attempt(self, shown: str, text: str) -> Fix | None:
        if shown == self._text or self.calls_own_function:
            return None
        if text not in self.tried:
            shape = self._shape_of(text)
            self.tried[text] = None if shape is UNTRIED else Fix(shown, shape)
        return self.tried[text]

    def _shape_of(self, text: str) -> Any:
        """The shape that the words give on copies of the operands, UNTRIED where they fail."""
        try:
            copies = _together([part.value for part in self.parts])
            scope = {**self.names, **{_mark(i): copy for i, copy in enumerate(copies)}}
            body = ast.parse(text).body
            is_expression = len(body) == 1 and isinstance(body[0], ast.Expr)
            rerun(f"_result = {text}" if is_expression else text, scope)
            value = scope["_result"] if is_expression else scope.get(_mark(0))
        except UNFIT:
            return UNTRIED
        if isinstance(value, Tensor):
            return value.layout.shape
        return None


UNTRIED: Any = ("untried",)


def _words(found: re.Match[str], parts: Sequence[Part]) -> str:
    """A part's text in a template, in parentheses where what is around it would take it apart."""
    before, number, after = found.groups()
    part = parts[int(number)]
    alone = before in ("(", "[", ", ", "") and after in (")", "]", ",", "")
    bare = part.tight or isinstance(part.node, ast.Constant) or alone
    text = part.text.replace("{", "{{").replace("}", "}}")
    return before + (text if bare else f"({text})")


def _mark(number: int) -> str:
    return f"_part{number}"


def evaluated(text: str, names: Mapping[str, object], fallback: Any = None) -> Any:
    """The value of an expression on copies of the tensors that it names; nothing else changes."""
    used = {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}
    scope = {name: copied(value) if name in used else value for name, value in names.items()}
    state = functions["get_rng_state"]()
    try:
        rerun(f"_result = {text}", scope)
    except UNFIT:
        return fallback
    finally:
        functions["set_rng_state"](state)
    return scope["_result"]


def rerun(text: str, scope: dict[str, object]) -> None:
    """Run a text in a scope unheard, leaving the modes as they are."""
    state = modes.state
    kept = {name: getattr(state, name) for name in type(state).__slots__}
    state.warn = None
    try:
        compile_program(text).run(scope, Silence())
    except Refused as refused:
        raise SyntaxError(str(refused)) from None
    finally:
        for name, value in kept.items():
            setattr(state, name, value)


def _parts(source: Source, node: ast.AST, value: object) -> Iterator[Part]:
    """An operand, or the elements of a list or tuple that was written out."""
    if isinstance(node, ast.List | ast.Tuple) and isinstance(value, list | tuple):
        written = len(node.elts) == len(value) <= MOST_PARTS
        if written and not any(isinstance(n, ast.Starred | ast.Slice) for n in node.elts):
            for element, item in zip(node.elts, value, strict=True):
                yield from _parts(source, element, item)
            return
        if written and not any(isinstance(n, ast.Starred) for n in node.elts):
            for element, item in zip(node.elts, value, strict=True):
                if not isinstance(element, ast.Slice):
                    yield from _parts(source, element, item)
            return
    if not isinstance(node, ast.Slice):
        yield Part(source, node, value)


def _with_parentheses(text: str, start: int, stop: int) -> tuple[int, int]:
    """Take in the parentheses right around a stretch of text, which the tree does not know."""
    while start > 0 and text[start - 1] == "(" and text[stop : stop + 1] == ")":
        if start > 1 and (text[start - 2].isalnum() or text[start - 2] in "_])"):
            break  # these belong to a call
        start, stop = start - 1, stop + 1
    return start, stop


def _together(values: list[object]) -> list[Any]:
    """Copies of values; what shares memory goes on sharing it, as far as one holds the others."""
    made: dict[int, Any] = {}
    held: dict[int, tuple[Any, Any]] = {}
    tensors = [value for value in values if isinstance(value, Tensor)]
    for tensor in sorted(tensors, key=lambda t: -t.layout.span):
        whole, copy = held.get(id(tensor.storage), (None, None))
        at = 0 if whole is None else tensor.offset - whole.offset
        inside = whole is not None and 0 <= at <= whole.layout.span - tensor.layout.span
        plain = not requires_grad(tensor) and tensor.dtype is getattr(whole, "dtype", None)
        if whole is tensor:
            made[id(tensor)] = copy
        elif inside and plain and copy.layout.strides == whole.layout.strides:
            layout = tensor.layout
            made[id(tensor)] = copy.as_strided(layout.shape, layout.strides, at)
        else:
            made[id(tensor)] = copied(tensor)
        held.setdefault(id(tensor.storage), (tensor, made[id(tensor)]))
    return [made[id(value)] if isinstance(value, Tensor) else copied(value) for value in values]


def copied(value: object) -> Any:
    """A value that can be worked on without the program noticing; tensors keep their strides."""
    if isinstance(value, Tensor):
        return _copied_tensor(value)
    if type(value) in (list, tuple) and len(value) <= MOST_ELEMENTS:  # type: ignore[arg-type]  # sized
        items = [copied(item) for item in value]  # type: ignore[attr-defined]  # a list or tuple
        return items if type(value) is list else tuple(items)
    return value


def _copied_tensor(tensor: Any) -> Any:
    if tensor.is_inference() and not modes.state.inference:
        return _in_inference_mode(tensor)
    copy = without_data(tensor)
    recorded, is_leaf = requires_grad(tensor), shown_node(tensor) is None
    with_data = tensor.array is not None and tensor.layout.numel <= MOST_ELEMENTS
    if with_data and not tensor.layout.overlaps:
        copy = functions["empty_strided"](
            tensor.layout.shape, tensor.layout.strides, dtype=tensor.dtype
        )
        copy.copy_(tensor.detach())
    elif with_data:
        copy = tensor.detach().clone()
    if recorded and modes.state.grad:
        copy.requires_grad_()
        if not is_leaf:
            copy = copy.clone()
    return copy


def _in_inference_mode(tensor: Any) -> Any:
    """A copy that is refused where the tensor is."""
    scope: dict[str, object] = {"_part0": tensor}
    rerun("with torch.inference_mode(): _part1 = _part0.clone()", scope)
    return scope["_part1"]


def without_data(value: object) -> Any:
    """A tensor of the same dtype, shape and strides on the meta device; None if there is none."""
    if not isinstance(value, Tensor):
        return None
    try:
        return functions["empty_strided"](
            value.layout.shape, value.layout.strides, dtype=value.dtype, device="meta"
        )
    except UNFIT:
        return None
