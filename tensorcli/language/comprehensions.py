"""Comprehensions and generator expressions: a frame for each run, each step counted."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from tensorcli.language import limits
from tensorcli.language.assignment import store
from tensorcli.language.compiling import (
    COMPREHENSION_SCOPE,
    GLOBALS,
    PARENT,
    Context,
    compiles_expression,
    expression,
    refuse_construct,
)
from tensorcli.language.errors import attach
from tensorcli.language.expressions import truth
from tensorcli.language.nesting import check_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorcli.language.compiling import Frame, Store, Value


class Level:
    """One `for … in … if …` of a comprehension."""

    __slots__ = ("conditions", "items", "store")

    def __init__(self, items: Value, store: Store, conditions: list[Value]) -> None:
        self.items = items
        self.store = store
        self.conditions = conditions


def iterator(node: ast.expr, context: Context) -> Value:
    """The closure that starts an iteration over an expression."""
    value = expression(node, context)
    source = context.source

    def run(frame: Frame) -> Iterator[Any]:
        a = value(frame)
        try:
            return iter(a)
        except Exception as exc:
            attach(exc, source, node, (node,), (a,))
            raise

    return run


def compile_levels(
    node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, context: Context
) -> tuple[Value, list[Level], Context]:
    """The first iterable, which belongs to the scope around, and the levels with their scope."""
    names = {
        n.id
        for generator in node.generators
        for n in ast.walk(generator.target)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    inner = Context(context.source, COMPREHENSION_SCOPE, context, names, (), context.qualname)
    first = iterator(node.generators[0].iter, context)
    levels = []
    for index, generator in enumerate(node.generators):
        if generator.is_async:
            refuse_construct(generator.target, context, "AsyncFor")
        items = first if index == 0 else iterator(generator.iter, inner)
        conditions = [truth(condition, inner) for condition in generator.ifs]
        levels.append(Level(items, store(generator.target, inner), conditions))
    return first, levels, inner


def own_frame(context: Context) -> Callable[[Frame], Frame]:
    """How a comprehension in this scope makes its frame."""
    if context.at_module_level:
        return lambda frame: {GLOBALS: frame, PARENT: frame}
    return lambda frame: {GLOBALS: frame[GLOBALS], PARENT: frame}


def steps(
    levels: list[Level], items: Iterator[Any], frame: Frame, depth: int = 0
) -> Iterator[None]:
    """Run through the levels, yielding whenever the innermost one has an element to compute."""
    level = levels[depth]
    save, conditions = level.store, level.conditions
    innermost = depth + 1 == len(levels)
    meter = limits.meter()
    for item in items:
        meter.credit -= 1
        if meter.credit < 0:
            meter.refill()
        save(frame, item)
        for condition in conditions:
            if not condition(frame):
                break
        else:
            if innermost:
                yield
            else:
                yield from steps(levels, levels[depth + 1].items(frame), frame, depth + 1)


@compiles_expression(ast.ListComp)
def list_comprehension(node: ast.ListComp, context: Context) -> Value:
    first, levels, inner = compile_levels(node, context)
    element = expression(node.elt, inner)
    make_frame = own_frame(context)

    def run(frame: Frame) -> Any:
        items = first(frame)
        local = make_frame(frame)
        return [element(local) for _ in steps(levels, items, local)]

    return run


@compiles_expression(ast.SetComp)
def set_comprehension(node: ast.SetComp, context: Context) -> Value:
    first, levels, inner = compile_levels(node, context)
    element = expression(node.elt, inner)
    make_frame = own_frame(context)
    source = context.source

    def run(frame: Frame) -> Any:
        items = first(frame)
        local = make_frame(frame)
        result = set()
        for _ in steps(levels, items, local):
            value = element(local)
            try:
                check_key(value)
                result.add(value)
            except Exception as exc:
                attach(exc, source, node.elt, (node.elt,), (value,))
                raise
        return result

    return run


@compiles_expression(ast.DictComp)
def dict_comprehension(node: ast.DictComp, context: Context) -> Value:
    first, levels, inner = compile_levels(node, context)
    make_key, make_value = expression(node.key, inner), expression(node.value, inner)
    make_frame = own_frame(context)
    source = context.source

    def run(frame: Frame) -> Any:
        items = first(frame)
        local = make_frame(frame)
        result = {}
        for _ in steps(levels, items, local):
            key = make_key(local)
            value = make_value(local)
            try:
                check_key(key)
                result[key] = value
            except Exception as exc:
                attach(exc, source, node.key, (node.key,), (key,))
                raise
        return result

    return run


@compiles_expression(ast.GeneratorExp)
def generator_expression(node: ast.GeneratorExp, context: Context) -> Value:
    first, levels, inner = compile_levels(node, context)
    element = expression(node.elt, inner)
    make_frame = own_frame(context)

    def genexpr(items: Iterator[Any], local: Frame) -> Iterator[Any]:
        for _ in steps(levels, items, local):
            yield element(local)

    return lambda frame: genexpr(first(frame), make_frame(frame))
