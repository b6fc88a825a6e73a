"""The prompt: the only package that imports prompt_toolkit, and only on a terminal that has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorcli.environment import is_terminal

if TYPE_CHECKING:
    from tensorcli.environment import Environment
    from tensorcli.repl.loop import Loop
    from tensorcli.settings import Settings


def start(environment: Environment, settings: Settings) -> int:
    """Talk to whoever is at the terminal; without one, run what comes in as `run -` does."""
    if not is_terminal(environment.stdin):
        from tensorcli.execution import run_input

        return run_input(environment, settings)
    return conversation(environment, settings).run()


def conversation(environment: Environment, settings: Settings) -> Loop:
    """A session at the prompt that this terminal can show, not yet begun."""
    from tensorcli.repl.loop import Loop
    from tensorcli.session import Session

    session = Session(environment, settings)
    if is_terminal(environment.stdout) and environment.variables.get("TERM", "dumb") != "dumb":
        from tensorcli.repl.prompt import PromptReader

        reader = PromptReader(session, environment, colour=settings.color)
        return Loop(session, environment, settings, reader)
    from tensorcli.repl.plain_reader import PlainReader

    return Loop(session, environment, settings, PlainReader(environment))
