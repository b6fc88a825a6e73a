"""Calls as closures: of methods without a bound method, of names, with keywords and stars."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from tensorcli.language.attributes import COMPLAINTS, METHODS, attribute, inherited, type_name
from tensorcli.language.compiling import (
    GLOBALS,
    Context,
    compiles_expression,
    expression,
    refuse_at,
)
from tensorcli.language.costs import list_of
from tensorcli.language.errors import attach
from tensorcli.language.forms import Argument, Form
from tensorcli.language.functions import PLAIN_CALLABLES, Function, call, called_name, invoke
from tensorcli.language.names import BUILTINS, SPECIAL_FORMS
from tensorcli.language.namespaces import Namespace

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorcli.language.compiling import Frame, Value


@compiles_expression(ast.Call)
def call_expression(node: ast.Call, context: Context) -> Value:
    function = node.func
    if isinstance(function, ast.Name) and function.id in SPECIAL_FORMS:
        return form_call(node, function.id, context)
    if context.advice is not None:
        return context.advice.call(node, context, lambda: ordinary_call(node, context))
    return ordinary_call(node, context)


def ordinary_call(node: ast.Call, context: Context) -> Value:
    names = [k.arg for k in node.keywords if k.arg is not None]
    for keyword in node.keywords:
        if keyword.arg is not None and names.count(keyword.arg) > 1:
            refuse_at(keyword, context, f"keyword argument repeated: {keyword.arg}")
    simple = not node.keywords and not any(isinstance(a, ast.Starred) for a in node.args)
    if isinstance(node.func, ast.Attribute):
        if simple and len(node.args) <= 2:
            return short_method_call(node, node.func, context)
        return method_call(node, node.func, context)
    if simple and len(node.args) <= 3:
        return short_call(node, context)
    return long_call(node, context)


def form_call(node: ast.Call, key: str, context: Context) -> Value:
    """A special form, unless the user has taken its name, which is known when it is reached."""
    ordinary = ordinary_call(node, context)
    if context.hops(key) is not None or key in BUILTINS:
        return ordinary
    if any(isinstance(a, ast.Starred) for a in node.args) or not all(k.arg for k in node.keywords):
        return ordinary
    source = context.source
    form = Form(
        source,
        node,
        key,
        tuple(Argument(source, a, expression(a, context)) for a in node.args),
        {
            k.arg: Argument(source, k.value, expression(k.value, context))
            for k in node.keywords
            if k.arg is not None
        },
    )
    inner = not context.at_module_level

    def run(frame: Frame) -> Any:
        if key in (frame[GLOBALS] if inner else frame):
            return ordinary(frame)
        try:
            return SPECIAL_FORMS[key](form, frame)
        except Exception as exc:
            attach(exc, source, node)
            raise

    return run


def short_call(node: ast.Call, context: Context) -> Value:
    """A call with up to three positional arguments."""
    target = expression(node.func, context)
    values = [expression(a, context) for a in node.args]
    source = context.source
    count = len(values)
    first, second, third = (*values, target, target, target)[:3]

    if count == 0:

        def none(frame: Frame) -> Any:
            function = target(frame)
            try:
                kind = type(function)
                if kind is Function:
                    return invoke(function, ())
                if kind in PLAIN_CALLABLES:
                    return function()
                return call(function, (), {})
            except Exception as exc:
                attach(exc, source, node)
                raise

        return none

    if count == 1:

        def one(frame: Frame) -> Any:
            function = target(frame)
            a = first(frame)
            try:
                kind = type(function)
                if kind is Function:
                    return invoke(function, (a,))
                if kind in PLAIN_CALLABLES:
                    return function(a)
                return call(function, (a,), {})
            except Exception as exc:
                attach(exc, source, node, node.args, (a,))
                raise

        return one

    if count == 2:

        def two(frame: Frame) -> Any:
            function = target(frame)
            a = first(frame)
            b = second(frame)
            try:
                kind = type(function)
                if kind is Function:
                    return invoke(function, (a, b))
                if kind in PLAIN_CALLABLES:
                    return function(a, b)
                return call(function, (a, b), {})
            except Exception as exc:
                attach(exc, source, node, node.args, (a, b))
                raise

        return two

    def three(frame: Frame) -> Any:
        function = target(frame)
        a = first(frame)
        b = second(frame)
        c = third(frame)
        try:
            return call(function, (a, b, c), {})
        except Exception as exc:
            attach(exc, source, node, node.args, (a, b, c))
            raise

    return three


def arguments(
    node: ast.Call, context: Context
) -> Callable[[Frame, Any], tuple[tuple[Any, ...], dict[str, Any]]]:
    """The closure that computes all arguments of a call to the given function."""
    starred = any(isinstance(a, ast.Starred) for a in node.args)
    plain = None if starred else [expression(a, context) for a in node.args]
    spread = spread_arguments(node, context) if starred else None
    keywords = [(k.arg, expression(k.value, context), k) for k in node.keywords]
    source = context.source

    def run(frame: Frame, function: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if plain is not None:
            args = tuple([value(frame) for value in plain])
        else:
            args = tuple(spread(frame, function))  # type: ignore[misc]  # one of the two is made
        kwargs: dict[str, Any] = {}
        for name, value, part in keywords:
            item = value(frame)
            if name is None:
                try:
                    add_keywords(kwargs, item, called_name(function, source.segment(node.func)))
                except Exception as exc:
                    attach(exc, source, part.value, (part.value,), (item,))
                    raise
            elif name in kwargs:
                called = called_name(function, source.segment(node.func))
                twice = TypeError(f"{called} got multiple values for keyword argument '{name}'")
                attach(twice, source, part)
                raise twice
            else:
                kwargs[name] = item
        return args, kwargs

    return run


def spread_arguments(node: ast.Call, context: Context) -> Callable[[Frame, Any], list[Any]]:
    """The closure that computes positional arguments some of which have a star."""
    parts = [
        (True, expression(a.value, context), a.value)
        if isinstance(a, ast.Starred)
        else (False, expression(a, context), a)
        for a in node.args
    ]
    source = context.source

    def run(frame: Frame, function: Any) -> list[Any]:
        args: list[Any] = []
        for starred, value, part in parts:
            item = value(frame)
            if not starred:
                args.append(item)
                continue
            try:
                if not hasattr(type(item), "__iter__") and not hasattr(type(item), "__getitem__"):
                    called = called_name(function, source.segment(node.func))
                    name = type_name(item)
                    raise TypeError(f"{called} argument after * must be an iterable, not {name}")
                args += list_of(item)
            except Exception as exc:
                attach(exc, source, part, (part,), (item,))
                raise
        return args

    return run


def add_keywords(kwargs: dict[str, Any], more: Any, called: str) -> None:
    """Add the items of `**more`."""
    if not isinstance(more, dict):
        raise TypeError(f"{called} argument after ** must be a mapping, not {type_name(more)}")
    for key in more:
        if not isinstance(key, str):
            raise TypeError("keywords must be strings")
        if key in kwargs:
            raise TypeError(f"{called} got multiple values for keyword argument '{key}'")
    kwargs.update(more)


def long_call(node: ast.Call, context: Context) -> Value:
    target = expression(node.func, context)
    values = arguments(node, context)
    source = context.source
    nodes = operand_nodes(node)

    def run(frame: Frame) -> Any:
        function = target(frame)
        args, kwargs = values(frame, function)
        try:
            return call(function, args, kwargs)
        except Exception as exc:
            attach(exc, source, node, nodes, (*args, *kwargs.values()))
            raise

    return run


def operand_nodes(node: ast.Call) -> tuple[ast.expr, ...]:
    """The nodes of the arguments, if each stands for one value."""
    starred = any(isinstance(a, ast.Starred) for a in node.args)
    if starred or not all(k.arg for k in node.keywords):
        return ()
    return (*node.args, *(k.value for k in node.keywords))


def find_method(value: Any, key: str) -> Any:
    """The function of the method `key` of a value's type, or None: it may be an attribute."""
    return inherited(METHODS, type(value)).get(key)


def reword(exc: Exception, key: str, method: Any, value: Any, given: int) -> None:
    """Let a complaint about the arguments of a method count them as methods do."""
    if isinstance(exc, TypeError) and type(value) in COMPLAINTS:
        COMPLAINTS[type(value)](exc, key, method, given)


def short_method_call(node: ast.Call, function: ast.Attribute, context: Context) -> Value:
    """A method call with up to two positional arguments."""
    target = expression(function.value, context)
    values = [expression(a, context) for a in node.args]
    key, source = function.attr, context.source
    first, second = (*values, target, target)[:2]
    nodes = (function.value, *node.args)

    def resolve(value: Any) -> tuple[bool, Any]:
        """Whether the function takes the object, and the function."""
        try:
            if type(value) is not Namespace:
                method = find_method(value, key)
                if method is not None:
                    return True, method
            return False, attribute(value, key)
        except Exception as exc:
            attach(exc, source, function, (function.value,), (value,))
            raise

    def finish(called: Any, args: tuple[Any, ...]) -> Any:
        try:
            if type(called) in PLAIN_CALLABLES:
                return called(*args)
            return call(called, args, {})
        except Exception as exc:
            attach(exc, source, node, node.args, args)
            raise

    if len(values) == 0:

        def none(frame: Frame) -> Any:
            value = target(frame)
            try:
                method = METHODS[type(value)][key]
            except KeyError:
                takes_object, method = resolve(value)
                if not takes_object:
                    return finish(method, ())
            try:
                return method(value)
            except Exception as exc:
                reword(exc, key, method, value, 0)
                attach(exc, source, node, nodes, (value,))
                raise

        return none

    if len(values) == 1:

        def one(frame: Frame) -> Any:
            value = target(frame)
            method: Any
            try:
                if type(value) is Namespace:
                    takes_object, method = False, value.table[key]
                else:
                    takes_object, method = True, METHODS[type(value)][key]
            except KeyError:
                takes_object, method = resolve(value)
            a = first(frame)
            if not takes_object:
                return finish(method, (a,))
            try:
                return method(value, a)
            except Exception as exc:
                reword(exc, key, method, value, 1)
                attach(exc, source, node, nodes, (value, a))
                raise

        return one

    def two(frame: Frame) -> Any:
        value = target(frame)
        method: Any
        try:
            if type(value) is Namespace:
                takes_object, method = False, value.table[key]
            else:
                takes_object, method = True, METHODS[type(value)][key]
        except KeyError:
            takes_object, method = resolve(value)
        a = first(frame)
        b = second(frame)
        if not takes_object:
            return finish(method, (a, b))
        try:
            return method(value, a, b)
        except Exception as exc:
            reword(exc, key, method, value, 2)
            attach(exc, source, node, nodes, (value, a, b))
            raise

    return two


def method_call(node: ast.Call, function: ast.Attribute, context: Context) -> Value:
    target = expression(function.value, context)
    values = arguments(node, context)
    key, source = function.attr, context.source
    nodes = operand_nodes(node)

    def run(frame: Frame) -> Any:
        value = target(frame)
        kind = type(value)
        try:
            method = None if kind is Namespace else find_method(value, key)
            called = attribute(value, key) if method is None else method
        except Exception as exc:
            attach(exc, source, function, (function.value,), (value,))
            raise
        args, kwargs = values(frame, called)
        try:
            if method is not None:
                return method(value, *args, **kwargs)
            return call(called, args, kwargs)
        except Exception as exc:
            if method is not None:
                reword(exc, key, method, value, len(args))
                operands = (function.value, *nodes) if nodes else ()
                attach(exc, source, node, operands, (value, *args, *kwargs.values()))
            else:
                attach(exc, source, node, nodes, (*args, *kwargs.values()))
            raise

    return run
