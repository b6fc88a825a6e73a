"""Pitfalls: small programs with what is to be said of them, in tests/pitfalls/*.txt.

A case begins with `### name`; its program follows, then lines `? expression` to be evaluated in
the state that the program left, then what a terminal of 80 columns shows of all that, each line
behind a `|`. Everything random begins with seed 0.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from tensorcli.diagnostics import Diagnostic, Span
from tensorcli.render.output import Output
from tensorcli.results import ErrorResult, HintResult, Result, TensorResult, ValueResult
from tensorcli.session import Session
from tensorcli.settings import Settings
from tests.in_memory import World

FOLDER = Path(__file__).resolve().parent / "pitfalls"
FILES = sorted(FOLDER.glob("*.txt"))
IMPORTS = "import torch\nimport torch.nn.functional as F\nimport numpy as np\nimport math\n"
SEEDED = Settings(seed=0)


class Case:
    """One pitfall of a file."""

    def __init__(self, block: str) -> None:
        head, _, body = block.partition("\n")
        lines = body.rstrip().split("\n")
        self.name = head.strip()
        self.program = "\n".join(one for one in lines if one[:1] not in ("|", "?")).rstrip()
        self.probes = [line[2:] for line in lines if line.startswith("? ")]
        self.shown = "\n".join(line[2:] for line in lines if line[:1] == "|").rstrip()

    def text(self, shown: str) -> str:
        """The case as the file has it, with that output."""
        probes = "".join(f"? {probe}\n" for probe in self.probes)
        output = "".join(f"| {line}".rstrip() + "\n" for line in shown.rstrip().split("\n"))
        return f"### {self.name}\n{self.program}\n{probes}{output if shown.strip() else ''}"


def cases(path: Path) -> list[Case]:
    """All cases of a file."""
    blocks = re.split(r"^### ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [Case(block) for block in blocks[1:]]


class Ran:
    """What running a case gave: all diagnostics, the value of each probe, and the text."""

    def __init__(self, case: Case) -> None:
        world = World(terminal=True)
        world.environment.fixed_width = 80
        world.environment.stderr = world.stdout
        self.output = Output(world.environment, Settings())
        self.session = Session(world.environment, SEEDED)
        self.session.explains = True
        self.session.run(IMPORTS, lambda result: None)
        self.found = self._run(case.program)
        self.errors = [r.diagnostic for r in self.found if isinstance(r, ErrorResult)]
        self.hints = [r.diagnostic for r in self.found if isinstance(r, HintResult)]
        self.values: list[Any] = []
        for probe in case.probes:
            world.stdout.write(f"? {probe}\n")
            self.values.append(self._value(self._run(probe)))
        self.text = world.out.rstrip()

    def _run(self, text: str) -> list[Result]:
        found: list[Result] = []

        def emit(result: Result) -> None:
            found.append(result)
            self.output.emit(result)

        self.session.run(text, emit, shows_last=True)
        return found

    @staticmethod
    def _value(results: list[Result]) -> Any:
        for result in results:
            if isinstance(result, ErrorResult):
                return result.diagnostic.type, result.diagnostic.message
            if isinstance(result, TensorResult | ValueResult):
                return result.value
        return None


def replaced(text: str, span: Span, words: str) -> str:
    """A text with other words at a place."""
    lines = text.split("\n")
    before = [*lines[: span.line - 1], lines[span.line - 1][: span.column - 1]]
    after = [lines[span.end_line - 1][span.end_column - 1 :], *lines[span.end_line :]]
    return "\n".join(before) + words + "\n".join(after)


def mended(program: str, diagnostic: Diagnostic, expr: str) -> str:
    """The program up to its error, and then a fix; or with a line of it as a fix would have it."""
    place = re.search(r"  # (moved before )?line (\d+)$", expr)
    span = diagnostic.span
    assert span is not None
    lines = program.split("\n")
    if place is not None:
        number, words = int(place.group(2)) - 1, expr[: place.start()]
        indent = lines[number][: len(lines[number]) - len(lines[number].lstrip())]
        if place.group(1):
            del lines[span.line - 1]
            return "\n".join([*lines[:number], indent + words, *lines[number:]])
        lines[number] = indent + words
        return "\n".join(lines)
    for node in ast.parse(program).body:
        if node.lineno <= span.line <= (node.end_lineno or 0):
            if node.lineno == span.line and not hasattr(node, "body"):
                return "\n".join([*lines[: node.lineno - 1], expr])
            break
    line = lines[span.line - 1]
    lines[span.line - 1] = line[: len(line) - len(line.lstrip())] + expr
    return "\n".join(lines)


def hinted(program: str, diagnostic: Diagnostic, expr: str) -> str:
    """The program with a hint's fix in place of what it is about."""
    span = diagnostic.span
    assert span is not None
    return replaced(program, span, expr)


def outcome(program: str) -> list[Diagnostic]:
    """The error that a program ends in, or nothing."""
    found: list[Result] = []
    session = Session(World().environment, SEEDED)
    session.run(IMPORTS, lambda result: None)
    session.run(program, found.append, shows_last=True)
    return [result.diagnostic for result in found if isinstance(result, ErrorResult)]
