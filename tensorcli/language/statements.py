"""Statements as closures: blocks, expression statements, branches, loops, return, imports."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from engine.modes import state
from tensorcli.language import limits
from tensorcli.language.assignment import store, store_name
from tensorcli.language.attributes import attribute
from tensorcli.language.compiling import (
    BREAK,
    CONTINUE,
    Context,
    compiles_statement,
    expression,
    refuse_at,
    statement,
)
from tensorcli.language.comprehensions import iterator
from tensorcli.language.errors import attach, where
from tensorcli.language.expressions import truth
from tensorcli.language.namespaces import MODULES, Namespace, module
from tensorcli.language.running import Emitted, now
from tensorcli.language.source import refuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorcli.language.compiling import Action, Frame


def block(nodes: Sequence[ast.stmt], context: Context) -> Action:
    """The closure that runs statements one after another and notes the line of each."""
    steps = [(node.lineno, statement(node, context)) for node in nodes]
    if len(steps) == 1:
        return single(*steps[0])

    def run(frame: Frame) -> Any:
        for line, action in steps:
            state.site = line
            signal = action(frame)
            if signal is not None:
                return signal
        return None

    return run


def single(line: int, action: Action) -> Action:
    def run(frame: Frame) -> Any:
        state.site = line
        return action(frame)

    return run


@compiles_statement(ast.Expr)
def expression_statement(node: ast.Expr, context: Context) -> Action:
    if isinstance(node.value, ast.Starred):
        refuse_at(node, context, "can't use starred expression here")
    return emission(node, context, is_last=False)


def last_statement(node: ast.stmt, context: Context) -> Action:
    """The closure of a program's last statement, whose value may be shown in any case."""
    if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Starred):
        if context.advice is None:
            action = emission(node, context, is_last=True)
        else:
            action = context.advice.statement(
                node, context, lambda: emission(node, context, is_last=True)
            )
        return action if context.trace is None else context.trace(node, action)
    return statement(node, context)


def emission(node: ast.Expr, context: Context, is_last: bool) -> Action:
    value = expression(node.value, context)
    if context.inside_function:

        def ignore(frame: Frame) -> None:
            value(frame)

        return ignore
    origin = Emitted(context.source, node, context.loops > 0, is_last)
    if origin.called_name == "backward":
        # Its value is None, but who listens may want to show the gradients.
        return lambda frame: now.listener.value(value(frame), origin)
    if getattr(node.value, "attr", "") == "grad":
        # So may who listens want to say why it is None.
        return lambda frame: now.listener.value(value(frame), origin)

    def emit(frame: Frame) -> None:
        result = value(frame)
        if result is not None:
            now.listener.value(result, origin)

    return emit


@compiles_statement(ast.Pass)
def pass_statement(node: ast.Pass, context: Context) -> Action:
    return lambda frame: None


@compiles_statement(ast.If)
def if_statement(node: ast.If, context: Context) -> Action:
    test, body = truth(node.test, context), block(node.body, context)
    if not node.orelse:

        def run_if(frame: Frame) -> Any:
            return body(frame) if test(frame) else None

        return run_if
    orelse = block(node.orelse, context)

    def run(frame: Frame) -> Any:
        return body(frame) if test(frame) else orelse(frame)

    return run


def loop_body(nodes: Sequence[ast.stmt], context: Context) -> Action:
    context.loops += 1
    body = block(nodes, context)
    context.loops -= 1
    return body


@compiles_statement(ast.For)
def for_statement(node: ast.For, context: Context) -> Action:
    items = iterator(node.iter, context)
    save = store(node.target, context)
    body = loop_body(node.body, context)
    orelse = block(node.orelse, context) if node.orelse else None
    source = context.source
    from tensorcli.language import tensor_bodies  # programs without loops start without it

    known = tensor_bodies.read_body(node, context)
    tests = [truth(test, context) for test in known.tests] if known is not None else []

    def run(frame: Frame) -> Any:
        meter = limits.meter()
        turns = None
        try:
            iteration = items(frame)
            if known is not None:
                from tensorcli.language import repeating

                turns = repeating.turns_of(known, tests, iteration, save)
            for item in iteration:
                meter.credit -= 1
                if meter.credit < 0:
                    meter.refill()
                save(frame, item)
                signal = body(frame) if turns is None else turns.take(frame, item, body)
                if signal is None or signal is CONTINUE:
                    continue
                if signal is BREAK:
                    return None
                return signal
        except Exception as exc:
            if where(exc) is None:
                attach(exc, source, node.iter)
            raise
        finally:
            if turns is not None:
                turns.settle()
        return None if orelse is None else orelse(frame)

    return run


@compiles_statement(ast.While)
def while_statement(node: ast.While, context: Context) -> Action:
    test = truth(node.test, context)
    body = loop_body(node.body, context)
    orelse = block(node.orelse, context) if node.orelse else None
    line = node.lineno

    def run(frame: Frame) -> Any:
        meter = limits.meter()
        while test(frame):
            meter.credit -= 1
            if meter.credit < 0:
                meter.refill()
            signal = body(frame)
            if signal is not None and signal is not CONTINUE:
                return None if signal is BREAK else signal
            state.site = line
        return None if orelse is None else orelse(frame)

    return run


@compiles_statement(ast.Break)
def break_statement(node: ast.Break, context: Context) -> Action:
    if not context.loops:
        refuse_at(node, context, "'break' outside loop")
    return lambda frame: BREAK


@compiles_statement(ast.Continue)
def continue_statement(node: ast.Continue, context: Context) -> Action:
    if not context.loops:
        refuse_at(node, context, "'continue' not properly in loop")
    return lambda frame: CONTINUE


@compiles_statement(ast.Return)
def return_statement(node: ast.Return, context: Context) -> Action:
    if not context.inside_function:
        refuse_at(node, context, "'return' outside function")
    if node.value is None:
        return lambda frame: (None,)
    value = expression(node.value, context)
    return lambda frame: (value(frame),)


@compiles_statement(ast.Nonlocal)
def nonlocal_statement(node: ast.Nonlocal, context: Context) -> Action:
    if not context.inside_function:
        refuse_at(node, context, "nonlocal declaration not allowed at module level")
    for name in node.names:
        if context.hops(name) is None:
            refuse_at(node, context, f"no binding for nonlocal '{name}' found")
    return lambda frame: None


IMPORTABLE = "torch, numpy and math"


@compiles_statement(ast.Import)
def import_statement(node: ast.Import, context: Context) -> Action:
    steps = []
    for alias in node.names:
        root = alias.name.partition(".")[0]
        check_importable(alias, root, context)
        bound = alias.name if alias.asname else root
        steps.append((alias, bound, store_name(alias.asname or root, context)))
    source = context.source

    def run(frame: Frame) -> None:
        for alias, bound, save in steps:
            try:
                found = find_module(alias.name)
                save(frame, found if bound == alias.name else find_module(bound))
            except Exception as exc:
                attach(exc, source, alias)
                raise

    return run


def check_importable(node: ast.AST, root: str, context: Context) -> None:
    if root not in MODULES:
        refuse(
            "construct",
            f"importing '{root}' is not part of the language",
            context.source.span(node),
            f"{IMPORTABLE} can be imported; every torch name is also there without an import",
        )


def find_module(name: str) -> Namespace:
    """A module by its dotted name: one of its own, or an entry in the table of the one before."""
    found = module(name)
    if found is not None:
        return found
    outer, _, last = name.rpartition(".")
    inner = find_module(outer).table.get(last) if outer else None
    if not isinstance(inner, Namespace):
        raise ModuleNotFoundError(f"No module named '{name}'")
    return inner


@compiles_statement(ast.ImportFrom)
def import_from(node: ast.ImportFrom, context: Context) -> Action:
    name = node.module or ""
    if name == "__future__":
        return lambda frame: None
    if node.level:
        refuse(
            "construct",
            "a relative import is not part of the language",
            context.source.span(node),
            f"{IMPORTABLE} can be imported",
        )
    check_importable(node, name.partition(".")[0], context)
    if node.names[0].name == "*":
        return import_star(node, name, context)
    steps = [(alias, store_name(alias.asname or alias.name, context)) for alias in node.names]
    source = context.source

    def run(frame: Frame) -> None:
        try:
            namespace = find_module(name)
        except Exception as exc:
            attach(exc, source, node)
            raise
        for alias, save in steps:
            try:
                save(frame, attribute(namespace, alias.name))
            except AttributeError:
                inner = module(f"{name}.{alias.name}")
                if inner is None:
                    missing = ImportError(f"cannot import name '{alias.name}' from '{name}'")
                    attach(missing, source, alias)
                    raise missing from None
                save(frame, inner)

    return run


def import_star(node: ast.ImportFrom, name: str, context: Context) -> Action:
    if not context.at_module_level:
        refuse_at(node, context, "import * only allowed at module level")

    def run(frame: Frame) -> None:
        for key, value in find_module(name).table.items():
            if not key.startswith("_"):
                frame[key] = value

    return run
