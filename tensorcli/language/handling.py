"""try, raise, assert and with: the exceptions of the language, which limits are not."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from tensorcli.language import limits
from tensorcli.language.assignment import frame_of, store
from tensorcli.language.compiling import (
    Context,
    compiles_statement,
    expression,
    refuse_at,
)
from tensorcli.language.contexts import kind_of
from tensorcli.language.errors import attach
from tensorcli.language.expressions import truth
from tensorcli.language.functions import callable_for
from tensorcli.language.running import now
from tensorcli.language.statements import block

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorcli.language.compiling import Action, Frame


def own_exception(exc: Exception) -> None:
    """Turn what only the machine can throw into a limit: programs do not handle it."""
    if isinstance(exc, RecursionError):
        raise limits.LimitReached("depth", "the program is nested too deeply") from None
    if isinstance(exc, MemoryError):  # numpy raises a class of its own
        raise limits.LimitReached("memory", "out of memory") from None


@compiles_statement(ast.Try)
def try_statement(node: ast.Try, context: Context) -> Action:
    run = try_except(node, context)
    if node.finalbody:
        run = try_finally(run, block(node.finalbody, context))
    return run


def try_except(node: ast.Try, context: Context) -> Action:
    body = block(node.body, context)
    handlers = [compile_handler(handler, context) for handler in node.handlers]
    for handler in node.handlers[:-1]:
        if handler.type is None:
            refuse_at(handler, context, "default 'except:' must be last")
    orelse = block(node.orelse, context) if node.orelse else None
    if not handlers:
        return body

    def run(frame: Frame) -> Any:
        try:
            signal = body(frame)
        except Exception as exc:
            own_exception(exc)
            for matches, handle in handlers:
                if matches(frame, exc):
                    return handle(frame, exc)
            raise
        if orelse is not None and signal is None:
            return orelse(frame)
        return signal

    return run


def compile_handler(
    node: ast.ExceptHandler, context: Context
) -> tuple[Callable[[Frame, Exception], bool], Callable[[Frame, Exception], Any]]:
    """Whether a handler takes an exception, and what it does with it."""
    types = None if node.type is None else expression(node.type, context)
    body = block(node.body, context)
    name, source = node.name, context.source
    here = context.at_module_level
    hops = None if name is None else context.hops(name)

    def matches(frame: Frame, exc: Exception) -> bool:
        if types is None:
            return True
        wanted = types(frame)
        kinds = wanted if isinstance(wanted, tuple) else (wanted,)
        for kind in kinds:
            if not (isinstance(kind, type) and issubclass(kind, Exception)):
                wrong = TypeError(
                    "catching classes that do not inherit from BaseException is not allowed"
                )
                attach(wrong, source, node.type or node)
                raise wrong
        return isinstance(exc, kinds)

    def handle(frame: Frame, exc: Exception) -> Any:
        now.handling.append(exc)
        names = None if name is None else frame if here else frame_of(frame, hops)
        if names is not None:
            names[name] = exc
        try:
            return body(frame)
        finally:
            now.handling.pop()
            if names is not None:
                names.pop(name, None)

    return matches, handle


def try_finally(run: Action, final: Action) -> Action:
    def run_both(frame: Frame) -> Any:
        try:
            signal = run(frame)
        except Exception as exc:
            own_exception(exc)
            now.handling.append(exc)
            try:
                signal = final(frame)
            finally:
                now.handling.pop()
            if signal is not None:
                return signal
            raise
        last = final(frame)
        return signal if last is None else last

    return run_both


@compiles_statement(ast.Raise)
def raise_statement(node: ast.Raise, context: Context) -> Action:
    value = None if node.exc is None else expression(node.exc, context)
    cause = None if node.cause is None else expression(node.cause, context)
    source = context.source

    def run(frame: Frame) -> None:
        exc: Exception
        if value is not None:
            exc = exception_from(value(frame), "exceptions")
            if cause is not None:
                origin = cause(frame)
                reason = None if origin is None else exception_from(origin, "exception causes")
                if isinstance(origin, (Exception, type, type(None))):
                    exc.__cause__ = reason
                elif reason is not None:
                    exc = reason
        elif now.handling:
            raise now.handling[-1]
        else:
            exc = RuntimeError("No active exception to reraise")
        attach(exc, source, node)
        raise exc

    return run


def exception_from(value: Any, role: str) -> Exception:
    """The exception that a raise statement means: an instance, or a type to make one of.

    Of anything else it is the complaint that Python has about it.
    """
    if isinstance(value, type) and issubclass(value, Exception):
        make = callable_for(value)
        if make is not None:
            value = make()
    if isinstance(value, Exception):
        return value
    return TypeError(f"{role} must derive from BaseException")


@compiles_statement(ast.Assert)
def assert_statement(node: ast.Assert, context: Context) -> Action:
    test = truth(node.test, context)
    message = None if node.msg is None else expression(node.msg, context)
    source = context.source

    def run(frame: Frame) -> None:
        if not test(frame):
            exc = AssertionError() if message is None else AssertionError(message(frame))
            attach(exc, source, node)
            raise exc

    return run


@compiles_statement(ast.With)
def with_statement(node: ast.With, context: Context) -> Action:
    return with_items(node.items, node, context)


def with_items(items: list[ast.withitem], node: ast.With, context: Context) -> Action:
    item = items[0]
    value = expression(item.context_expr, context)
    save = None if item.optional_vars is None else store(item.optional_vars, context)
    body = with_items(items[1:], node, context) if len(items) > 1 else block(node.body, context)
    source = context.source

    def run(frame: Frame) -> Any:
        manager = value(frame)
        try:
            kind = kind_of(manager)
            entered = kind.enter(manager)
        except Exception as exc:
            attach(exc, source, item.context_expr, (item.context_expr,), (manager,))
            raise
        # Leaving is ours, not the program's: it happens after limits and interrupts too.
        try:
            if save is not None:
                save(frame, entered)
            return body(frame)
        finally:
            kind.leave(manager)

    return run
