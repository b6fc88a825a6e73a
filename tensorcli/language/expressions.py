"""Expressions as closures: constants, names, operators, displays, attributes, subscripts, text.

Closures catch exceptions only to note the place: in Python 3.11 a try costs nothing until then.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from tensorcli.language import costs
from tensorcli.language.attributes import attribute, hint_near, type_name
from tensorcli.language.builtins_table import ABSENT
from tensorcli.language.compiling import (
    COMPREHENSION_SCOPE,
    GLOBALS,
    PARENT,
    Context,
    compiles_expression,
    expression,
    refuse_at,
    refuse_construct,
)
from tensorcli.language.errors import add_hint, attach
from tensorcli.language.forms import visible_names
from tensorcli.language.limits import meter
from tensorcli.language.names import MISSING, known_names, lookup
from tensorcli.language.namespaces import Namespace
from tensorcli.language.nesting import check_key
from tensorcli.language.operators import BINARY, COMPARISON, SAFE, UNARY
from tensorcli.language.text_format import convert, format_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorcli.language.compiling import Frame, Value
    from tensorcli.language.source import Source


@compiles_expression(ast.Constant)
def constant(node: ast.Constant, context: Context) -> Value:
    value = node.value
    if isinstance(value, bytes):
        refuse_at(node, context, "bytes are not part of the language", "use a text or a list")
    return lambda frame: value


@compiles_expression(ast.Name)
def name(node: ast.Name, context: Context) -> Value:
    hops = context.hops(node.id)
    if hops is None:
        return global_name(node, context)
    if hops == 0:
        return own_name(node, context)
    return outer_name(node, context, hops)


def own_name(node: ast.Name, context: Context) -> Value:
    key, source = node.id, context.source

    def load(frame: Frame) -> Any:
        try:
            return frame[key]
        except KeyError:
            exc = UnboundLocalError(
                f"cannot access local variable '{key}' where it is not associated with a value"
            )
            attach(exc, source, node)
            raise exc from None

    return load


def outer_name(node: ast.Name, context: Context, hops: int) -> Value:
    key, source = node.id, context.source

    def load(frame: Frame) -> Any:
        for _ in range(hops):
            frame = frame[PARENT]
        try:
            return frame[key]
        except KeyError:
            exc = NameError(
                f"cannot access free variable '{key}' where it is not associated with a value "
                "in enclosing scope"
            )
            attach(exc, source, node)
            raise exc from None

    return load


def global_name(node: ast.Name, context: Context) -> Value:
    key, source = node.id, context.source
    known = context.known.get(key)
    if known is None:
        known = context.known[key] = lookup(key)
    inner = not context.at_module_level
    if known is not MISSING:
        if inner:
            return lambda frame: frame[GLOBALS].get(key, known)
        return lambda frame: frame.get(key, known)

    def load(frame: Frame) -> Any:
        try:
            return frame[GLOBALS][key] if inner else frame[key]
        except KeyError:
            raise unknown_name(key, source, node, frame) from None

    return load


def unknown_name(key: str, source: Source, node: ast.AST, frame: Frame) -> NameError:
    exc = NameError(f"name '{key}' is not defined")
    advice = ABSENT.get(key)
    if advice is not None:
        add_hint(exc, f"{key} is not part of the language: {advice}")
    else:
        hint_near(exc, key, lambda: {*visible_names(frame), *known_names()})
    attach(exc, source, node)
    return exc


@compiles_expression(ast.BinOp)
def binary(node: ast.BinOp, context: Context) -> Value:
    left, right = expression(node.left, context), expression(node.right, context)
    operation, guard, _, _ = BINARY[type(node.op)]
    apply = operation
    source = context.source

    def settle() -> None:
        nonlocal apply
        apply = operation

    if context.advice is not None:
        apply = context.advice.operation(node, context, operation, settle)

    if guard is None:

        def plain(frame: Frame) -> Any:
            a = left(frame)
            b = right(frame)
            try:
                return apply(a, b)
            except Exception as exc:
                attach(exc, source, node, (node.left, node.right), (a, b))
                raise

        return plain

    def guarded(frame: Frame) -> Any:
        a = left(frame)
        b = right(frame)
        try:
            if type(a) not in SAFE and type(b) not in SAFE:
                guard(a, b)
            return apply(a, b)
        except Exception as exc:
            attach(exc, source, node, (node.left, node.right), (a, b))
            raise

    return guarded


@compiles_expression(ast.UnaryOp)
def unary(node: ast.UnaryOp, context: Context) -> Value:
    operand = expression(node.operand, context)
    operation = apply = UNARY[type(node.op)]
    source = context.source

    def settle() -> None:
        nonlocal apply
        apply = operation

    if context.advice is not None:
        apply = context.advice.operation(node, context, operation, settle)
    if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        number = node.operand.value
        if isinstance(number, (int, float, complex)):
            negated = -number
            return lambda frame: negated

    def run(frame: Frame) -> Any:
        a = operand(frame)
        try:
            return apply(a)
        except Exception as exc:
            attach(exc, source, node, (node.operand,), (a,))
            raise

    return run


@compiles_expression(ast.Compare)
def compare(node: ast.Compare, context: Context) -> Value:
    left = expression(node.left, context)
    operands = [node.left, *node.comparators]
    source = context.source
    links = [
        (*COMPARISON[type(op)], expression(comparator, context), operands[i : i + 2])
        for i, (op, comparator) in enumerate(zip(node.ops, node.comparators, strict=True))
    ]

    def chain(frame: Frame) -> Any:
        a = left(frame)
        result: Any = True
        last = len(links) - 1
        for i, (apply, guard, right, nodes) in enumerate(links):
            b = right(frame)
            try:
                if guard is not None:
                    guard(a, b)
                result = apply(a, b)
                if i < last and not result:
                    return result
            except Exception as exc:
                attach(exc, source, node, nodes, (a, b))
                raise
            a = b
        return result

    if len(links) > 1:
        return chain
    operation, guard, right, nodes = links[0]
    apply = operation

    def settle() -> None:
        nonlocal apply
        apply = operation

    if context.advice is not None:
        apply = context.advice.operation(node, context, operation, settle)

    def single(frame: Frame) -> Any:
        a = left(frame)
        b = right(frame)
        try:
            if guard is not None:
                guard(a, b)
            return apply(a, b)
        except Exception as exc:
            attach(exc, source, node, nodes, (a, b))
            raise

    return single


def truth(node: ast.expr, context: Context) -> Value:
    """The closure that decides whether an expression counts as true."""
    value = expression(node, context)
    source = context.source

    def run(frame: Frame) -> bool:
        a = value(frame)
        if a is True or a is False:
            return a is True
        try:
            return bool(a)
        except Exception as exc:
            attach(exc, source, node, (node,), (a,))
            raise

    return run


@compiles_expression(ast.BoolOp)
def boolean(node: ast.BoolOp, context: Context) -> Value:
    stop = isinstance(node.op, ast.Or)
    parts = [(n, expression(n, context)) for n in node.values]
    _, last = parts.pop()
    source = context.source

    def run(frame: Frame) -> Any:
        for operand, value in parts:
            a = value(frame)
            try:
                if bool(a) is stop:
                    return a
            except Exception as exc:
                attach(exc, source, operand, (operand,), (a,))
                raise
        return last(frame)

    return run


@compiles_expression(ast.IfExp)
def conditional(node: ast.IfExp, context: Context) -> Value:
    test, body, orelse = (
        truth(node.test, context),
        expression(node.body, context),
        expression(node.orelse, context),
    )
    return lambda frame: body(frame) if test(frame) else orelse(frame)


def elements(nodes: Sequence[ast.expr], context: Context) -> Value:
    """The closure that makes a list of the values of `nodes`, stars spread out."""
    if not any(isinstance(n, ast.Starred) for n in nodes):
        values = [expression(n, context) for n in nodes]
        return lambda frame: [value(frame) for value in values]
    parts = [
        (n, isinstance(n, ast.Starred), expression(n.value if isinstance(n, ast.Starred) else n,
                                                   context))
        for n in nodes
    ]  # fmt: skip
    source = context.source

    def spread(frame: Frame) -> list[Any]:
        result: list[Any] = []
        for node, starred, value in parts:
            a = value(frame)
            if not starred:
                result.append(a)
                continue
            try:
                if not hasattr(type(a), "__iter__") and not hasattr(type(a), "__getitem__"):
                    raise TypeError(f"Value after * must be an iterable, not {type_name(a)}")
                result += costs.list_of(a)
            except Exception as exc:
                attach(exc, source, node, (node,), (a,))
                raise
        return result

    return spread


@compiles_expression(ast.List)
def list_display(node: ast.List, context: Context) -> Value:
    return elements(node.elts, context)


@compiles_expression(ast.Tuple)
def tuple_display(node: ast.Tuple, context: Context) -> Value:
    values = elements(node.elts, context)
    return lambda frame: tuple(values(frame))


@compiles_expression(ast.Set)
def set_display(node: ast.Set, context: Context) -> Value:
    values = elements(node.elts, context)
    source = context.source

    def run(frame: Frame) -> Any:
        items = values(frame)
        try:
            costs.check_keys(items)
            return set(items)
        except Exception as exc:
            attach(exc, source, node)
            raise

    return run


@compiles_expression(ast.Dict)
def dict_display(node: ast.Dict, context: Context) -> Value:
    pairs = [
        (None if key is None else expression(key, context), expression(value, context), value)
        for key, value in zip(node.keys, node.values, strict=True)
    ]
    source = context.source

    def run(frame: Frame) -> Any:
        result: dict[Any, Any] = {}
        for make_key, make_value, part in pairs:
            key = None if make_key is None else make_key(frame)
            value = make_value(frame)
            try:
                if make_key is not None:
                    check_key(key)
                    result[key] = value
                elif isinstance(value, dict):
                    result.update(value)
                else:
                    raise TypeError(f"'{type(value).__name__}' object is not a mapping")
            except Exception as exc:
                attach(exc, source, part)
                raise
        return result

    return run


@compiles_expression(ast.Attribute)
def attribute_read(node: ast.Attribute, context: Context) -> Value:
    target = expression(node.value, context)
    key, source = node.attr, context.source

    def read(frame: Frame) -> Any:
        value = target(frame)
        try:
            if type(value) is Namespace:
                try:
                    return value.table[key]
                except KeyError:
                    pass
            return attribute(value, key)
        except Exception as exc:
            attach(exc, source, node, (node.value,), (value,))
            raise

    return read


@compiles_expression(ast.Slice)
def slice_display(node: ast.Slice, context: Context) -> Value:
    none: Value = lambda frame: None  # noqa: E731  # one line beside its three uses
    start = none if node.lower is None else expression(node.lower, context)
    stop = none if node.upper is None else expression(node.upper, context)
    step = none if node.step is None else expression(node.step, context)
    return lambda frame: slice(start(frame), stop(frame), step(frame))


def subscriptable(value: Any) -> bool:
    """Whether square brackets mean an element: for type objects Python makes an alias of them."""
    return not isinstance(value, type)


@compiles_expression(ast.Subscript)
def subscript(node: ast.Subscript, context: Context) -> Value:
    if context.advice is not None:
        return context.advice.subscript(node, context, lambda: element_read(node, context))
    return element_read(node, context)


def element_read(node: ast.Subscript, context: Context) -> Value:
    target, index = expression(node.value, context), expression(node.slice, context)
    source = context.source

    def read(frame: Frame) -> Any:
        value = target(frame)
        key = index(frame)
        try:
            if type(value) is dict:
                check_key(key)
            elif not subscriptable(value):
                raise TypeError(f"type '{value.__name__}' is not subscriptable")
            return value[key]
        except Exception as exc:
            attach(exc, source, node, (node.value, node.slice), (value, key))
            raise

    return read


@compiles_expression(ast.NamedExpr)
def named(node: ast.NamedExpr, context: Context) -> Value:
    value = expression(node.value, context)
    key = node.target.id
    if context.kind == COMPREHENSION_SCOPE and key in context.names:
        refuse_at(
            node.target,
            context,
            f"assignment expression cannot rebind comprehension iteration variable '{key}'",
        )
    hops = context.binding_hops(key)
    inner = not context.at_module_level

    def bind(frame: Frame) -> Any:
        result = value(frame)
        if hops is None:
            if inner:
                frame = frame[GLOBALS]
        else:
            for _ in range(hops):
                frame = frame[PARENT]
        frame[key] = result
        return result

    return bind


@compiles_expression(ast.JoinedStr)
def joined_text(node: ast.JoinedStr, context: Context) -> Value:
    parts = [expression(part, context) for part in node.values]
    source = context.source

    def run(frame: Frame) -> str:
        texts = [part(frame) for part in parts]
        try:
            meter().check_text(sum(map(len, texts)))
            return "".join(texts)
        except Exception as exc:
            attach(exc, source, node)
            raise

    return run


@compiles_expression(ast.FormattedValue)
def formatted(node: ast.FormattedValue, context: Context) -> Value:
    value = expression(node.value, context)
    spec = None if node.format_spec is None else expression(node.format_spec, context)
    conversion = "" if node.conversion < 0 else chr(node.conversion)
    source = context.source

    def run(frame: Frame) -> str:
        a = value(frame)
        wanted = "" if spec is None else spec(frame)
        try:
            if conversion:
                a = convert(a, conversion)
            return format_value(a, wanted)
        except Exception as exc:
            attach(exc, source, node.value, (node.value,), (a,))
            raise

    return run


@compiles_expression(ast.Starred)
def starred(node: ast.Starred, context: Context) -> Value:
    refuse_construct(node, context)
