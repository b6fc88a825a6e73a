"""A world for command lines that lives in memory; knows nothing of what is run."""

from __future__ import annotations

import io

from tensorcli import entry
from tensorcli.environment import Environment


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class World:
    """An environment in memory; `run` gives the status, the streams keep what was written."""

    def __init__(self, stdin: bytes = b"", *, terminal: bool = False, **variables: str) -> None:
        stream = Terminal if terminal else io.StringIO
        self.stdout, self.stderr = stream(), stream()
        self.environment = Environment(
            stdin=Terminal() if terminal else io.TextIOWrapper(io.BytesIO(stdin)),
            stdout=self.stdout,
            stderr=self.stderr,
            variables={"HOME": "/nowhere", "TERM": "dumb", **variables},
            width=80,
        )

    def run(self, *arguments: str) -> int:
        return entry.run(arguments, self.environment)

    @property
    def out(self) -> str:
        return self.stdout.getvalue()

    @property
    def err(self) -> str:
        return self.stderr.getvalue()
