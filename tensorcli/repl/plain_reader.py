"""Reads lines from a terminal that can do nothing but lines, such as an editor's shell window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorcli.repl.completeness import needs_more

if TYPE_CHECKING:
    from tensorcli.environment import Environment

PROMPT = ">>> "
CONTINUATION = "... "


class PlainReader:
    """Whole inputs, put together from lines."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def read(self) -> str:
        """One complete input; EOFError at the end, KeyboardInterrupt when it was called off."""
        text = self._line(PROMPT)
        try:
            while text[:1] != ":" and needs_more(text):
                text += "\n" + self._line(CONTINUATION)
        except EOFError:
            pass  # what there is of it is run, and the next read says that it was the end
        return text

    def _line(self, prompt: str) -> str:
        stdout = self._environment.stdout
        stdout.write(prompt)
        stdout.flush()
        try:
            line = self._environment.stdin.readline()
        except KeyboardInterrupt:
            stdout.write("\n")
            raise
        if not line:
            stdout.write("\n")
            raise EOFError
        return line.removesuffix("\n").removesuffix("\r")
