"""Definitions of functions: def, lambda, and the decorators that are gradient modes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from engine.modes import state
from tensorcli.language.assignment import store_name
from tensorcli.language.compiling import (
    FUNCTION_SCOPE,
    GLOBALS,
    Context,
    bound_names,
    compiles_expression,
    compiles_statement,
    expression,
    refuse_at,
    walk_scope,
)
from tensorcli.language.contexts import decorate
from tensorcli.language.errors import attach
from tensorcli.language.functions import Function, Parameters
from tensorcli.language.statements import block

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorcli.language.compiling import Action, Frame, Value


def parameters_of(node: ast.arguments, context: Context) -> Parameters:
    positional = [*node.posonlyargs, *node.args]
    seen: set[str] = set()
    for part in [*positional, *node.kwonlyargs, *filter(None, (node.vararg, node.kwarg))]:
        if part.arg in seen:
            refuse_at(part, context, f"duplicate argument '{part.arg}' in function definition")
        seen.add(part.arg)
    return Parameters(
        tuple(part.arg for part in positional),
        len(node.posonlyargs),
        tuple(part.arg for part in node.kwonlyargs),
        node.vararg.arg if node.vararg else None,
        node.kwarg.arg if node.kwarg else None,
    )


def defaults_of(
    node: ast.arguments, context: Context
) -> Callable[[Frame], tuple[tuple[Any, ...], dict[str, Any]]]:
    """The closure that computes default values, once, where the function is defined."""
    positional = [expression(d, context) for d in node.defaults]
    keywords = [
        (part.arg, expression(default, context))
        for part, default in zip(node.kwonlyargs, node.kw_defaults, strict=True)
        if default is not None
    ]

    def run(frame: Frame) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (
            tuple([value(frame) for value in positional]),
            {name: value(frame) for name, value in keywords},
        )

    return run


def inner_context(
    name: str, parameters: Parameters, body: list[ast.stmt] | list[ast.expr], context: Context
) -> Context:
    """The scope of a function: its parameters and what its body binds are its own."""
    outer = {
        name for node in walk_scope(body) if isinstance(node, ast.Nonlocal) for name in node.names
    }
    qualname = f"{context.qualname}.<locals>.{name}" if context.qualname else name
    names = {*parameters.names, *bound_names(body)} - outer
    return Context(context.source, FUNCTION_SCOPE, context, names, outer, qualname)


def function_maker(
    name: str, node: ast.FunctionDef | ast.Lambda, run: Value, inner: Context, context: Context,
    parameters: Parameters,
) -> Value:  # fmt: skip
    defaults = defaults_of(node.args, context)
    qualname = inner.qualname
    here = context.at_module_level
    from tensorcli.language import tensor_bodies  # programs without functions start without it

    known = tensor_bodies.read_function(node, parameters.names, inner)

    def make(frame: Frame) -> Function:
        positional, keywords = defaults(frame)
        globals_ = frame if here else frame[GLOBALS]
        made = Function(name, qualname, parameters, run, globals_, frame, positional, keywords)
        made.body = known
        return made

    return make


@compiles_expression(ast.Lambda)
def lambda_expression(node: ast.Lambda, context: Context) -> Value:
    parameters = parameters_of(node.args, context)
    inner = inner_context("<lambda>", parameters, [node.body], context)
    run = expression(node.body, inner)
    return function_maker("<lambda>", node, run, inner, context, parameters)


@compiles_statement(ast.FunctionDef)
def function_definition(node: ast.FunctionDef, context: Context) -> Action:
    decorators = [(d, expression(d, context)) for d in node.decorator_list]
    parameters = parameters_of(node.args, context)
    inner = inner_context(node.name, parameters, node.body, context)
    body = body_value(node.body, inner)
    make = function_maker(node.name, node, body, inner, context, parameters)
    save = store_name(node.name, context)
    source = context.source

    def run(frame: Frame) -> None:
        wrappers = [(d, value(frame)) for d, value in decorators]
        function: Any = make(frame)
        for place, wrapper in reversed(wrappers):
            try:
                function = decorate(wrapper, function)
            except Exception as exc:
                attach(exc, source, place)
                raise
        save(frame, function)

    return run


def body_value(nodes: list[ast.stmt], inner: Context) -> Value:
    """The closure that runs a body and gives what it returns."""
    only = nodes[0] if len(nodes) == 1 and inner.trace is None else None
    if isinstance(only, ast.Return) and only.value is not None:
        line, value = only.lineno, expression(only.value, inner)

        def run_return(frame: Frame) -> Any:
            state.site = line
            return value(frame)

        return run_return
    body = block(nodes, inner)

    def run(frame: Frame) -> Any:
        signal = body(frame)
        return None if signal is None else signal[0]

    return run
