"""The world around a command: streams, terminal, folders, clock; tests put another in its place.

It knows nothing of what is run. Settings are read from `variables` by settings.py.
"""

from __future__ import annotations

import io
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TextIO


class Environment:
    """One replaceable object for everything that a command takes from its surroundings."""

    __slots__ = ("_pictures", "clock", "fixed_width", "stderr", "stdin", "stdout", "variables")

    def __init__(
        self,
        *,
        stdin: TextIO,
        stdout: TextIO,
        stderr: TextIO,
        variables: Mapping[str, str],
        width: int | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.variables = variables
        self.fixed_width = width
        self.clock = clock
        self._pictures: str | None = ""  # not asked yet

    @property
    def is_of_process(self) -> bool:
        """Whether this is the real one: what is done to the process concerns nobody else."""
        return self.variables is os.environ

    def width(self) -> int:
        """The columns of the terminal: COLUMNS, else what the terminal says, else 80."""
        if self.fixed_width is not None:
            return self.fixed_width
        columns = self.variables.get("COLUMNS", "")
        if columns.isdigit() and int(columns) > 0:
            return int(columns)
        for stream in (self.stdout, self.stderr):
            try:
                return os.get_terminal_size(stream.fileno()).columns or 80
            except (OSError, ValueError):
                continue
        return 80

    def pictures(self) -> str | None:
        """The protocol in which the terminal draws pictures, "kitty" or "sixel"; it is asked once.

        Only the process's own terminal is asked: an answer goes to whoever reads its keys.
        """
        if self._pictures == "":
            self._pictures = None
            if self.is_of_process:
                from tensorcli.terminal_pictures import ask

                self._pictures = ask(self.stdin, self.stdout, self.variables)
        return self._pictures

    def colour(self, stream: TextIO, when: str) -> bool:
        """Whether a stream gets colour: the flag, then the variables, then what the stream is."""
        if when != "auto":
            return when == "always"
        if self.variables.get("NO_COLOR"):
            return False
        for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):
            if self.variables.get(name, "0") not in ("", "0"):
                return True
        return is_terminal(stream) and self.variables.get("TERM") != "dumb"

    def config_folder(self) -> str:
        return self._folder("XDG_CONFIG_HOME", ".config")

    def state_folder(self) -> str:
        return self._folder("XDG_STATE_HOME", ".local/state")

    def _folder(self, variable: str, below_home: str) -> str:
        base = self.variables.get(variable, "")
        if not os.path.isabs(base):
            home = self.variables.get("HOME") or os.path.expanduser("~")
            base = os.path.join(home, below_home)
        return os.path.join(base, "tensorcli")


def is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:
        return False  # closed


def _nowhere(mode: str) -> TextIO:
    """A stream in place of one whose descriptor the parent closed; Python then has none at all."""
    stream: TextIO = io.TextIOWrapper(io.FileIO(os.devnull, mode), write_through=True)
    return stream


def of_process() -> Environment:
    """The environment of this process; text that its streams cannot encode is escaped."""
    stdin = sys.stdin or _nowhere("r")
    stdout, stderr = sys.stdout or _nowhere("w"), sys.stderr or _nowhere("w")
    for stream in (stdout, stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    return Environment(stdin=stdin, stdout=stdout, stderr=stderr, variables=os.environ)
