"""A text compiled as a whole before anything of it runs: the way into the language."""

from __future__ import annotations

import ast
import gc
from typing import TYPE_CHECKING

from engine.modes import state

# Imported for what they register: how each kind of node is compiled, and what names mean.
from tensorcli.language import (  # noqa: F401
    calls,
    comprehensions,
    definitions,
    expressions,
    handling,
    limits,
    statements,
    tables,
)
from tensorcli.language.compiling import Context, statement
from tensorcli.language.errors import Refused
from tensorcli.language.running import Listener, now
from tensorcli.language.source import TOO_DEEP, Source, parse, refuse

if TYPE_CHECKING:
    from tensorcli.language.compiling import Action, Advice, Frame, Trace, Watch

# From this many statements on, a program's closures are kept from the collector for good: running
# a hundred thousand lines takes 0.6 s if it looks at them and 0.04 s if it does not.
LONG = 2000

__all__ = ["Program", "Refused", "compile_program"]


class Program:
    """A checked program; `run` may be called any number of times, on any scope."""

    __slots__ = ("_steps", "source", "tree")

    def __init__(self, source: Source, tree: ast.Module, steps: list[tuple[int, Action]]) -> None:
        self.source = source
        self.tree = tree
        self._steps = steps

    def run(self, scope: Frame, listener: Listener) -> None:
        """Run in `scope`, the dictionary of the user's names; exceptions pass through.

        Where one happened is noted on it (`errors.where`); `engine.modes.state.site` is the line
        of the statement that was running.
        """
        outer, handled = now.listener, now.handling
        now.listener, now.handling = listener, []
        try:
            for line, action in self._steps:
                state.site = line
                action(scope)
        except RecursionError:
            raise limits.LimitReached("depth", "the program is nested too deeply") from None
        except MemoryError:
            raise limits.LimitReached("memory", "out of memory") from None
        finally:
            now.listener, now.handling = outer, handled


def compile_program(
    text: str | Source,
    file: str | None = None,
    *,
    trace: Trace | None = None,
    watch: Watch | None = None,
    advice: Advice | None = None,
) -> Program:
    """Read, check and compile a text; raises Refused.

    `trace` watches its statements, `watch` its expressions, `advice` looks for surprises.
    """
    limits.secure_stack()
    source = text if isinstance(text, Source) else Source(text, file)
    # Nothing that a compilation makes is garbage: a collector that looks at all of it again and
    # again takes three times as long as the compilation of a hundred thousand lines.
    collecting = gc.isenabled()
    gc.disable()
    try:
        context = Context(source)
        context.trace = trace
        context.watch = watch
        context.advice = advice
        program = _compile(source, context)
        if len(program.tree.body) > LONG:
            gc.freeze()
        return program
    finally:
        if collecting:
            gc.enable()


def _compile(source: Source, context: Context) -> Program:
    tree = parse(source)
    body = tree.body
    try:
        steps = [(node.lineno, statement(node, context)) for node in body[:-1]]
        if body:
            steps.append((body[-1].lineno, statements.last_statement(body[-1], context)))
    except RecursionError:
        refuse("nesting", TOO_DEEP, None)
    return Program(source, tree, steps)
