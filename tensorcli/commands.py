"""The REPL's `:commands`, as data in and data out; knows no terminal.

A command is a line that begins with a colon. What it comes to is one of the outcomes below, and
whoever reads lines carries it out. Commands that explain are calls of the language: `:layout x`
evaluates `layout(x)`, so that scripts can do all that a prompt can.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorcli import reference
from tensorcli.language import names
from tensorcli.language.value_text import repr_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorcli.session import Session


@dataclass(frozen=True, slots=True)
class Evaluate:
    """Run this text as if it had been typed."""

    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """Show rows of words; the first column is what the row is about."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    empty: str = ""
    """What to say where there are no rows."""


@dataclass(frozen=True, slots=True)
class Page:
    """Show the reference page of an operation."""

    entry: reference.Entry


@dataclass(frozen=True, slots=True)
class Note:
    """Say one sentence."""

    text: str


@dataclass(frozen=True, slots=True)
class Mistake:
    """The line is no command; say why."""

    text: str


@dataclass(frozen=True, slots=True)
class Leave:
    """End the prompt."""


Outcome = Evaluate | Table | Page | Note | Mistake | Leave


@dataclass(frozen=True, slots=True)
class Command:
    """One command: how it is called, what it does in half a line, and doing it."""

    name: str
    argument: str
    summary: str
    act: Callable[[Session, str], Outcome]

    @property
    def usage(self) -> str:
        """As it stands in the list of commands; an argument in brackets may be left out."""
        return f":{self.name} {self.argument}".rstrip()


def _help(session: Session, argument: str) -> Outcome:
    if argument:
        return _page(argument)
    rows = tuple((command.usage, command.summary) for command in available())
    return Table(("command", "what it does"), rows)


def _page(name: str) -> Outcome:
    entry = reference.find(name)
    if entry is None:
        near = ", ".join(reference.near(name))
        return Mistake(f"no operation is called '{name}'" + (f"; near it: {near}" if near else ""))
    return Page(entry)


def _ops(session: Session, argument: str) -> Outcome:
    if argument and reference.find(argument) is not None:
        return _page(argument)
    rows = tuple((entry.name, entry.summary) for entry in reference.search(argument))
    return Table(("operation", "what it does"), rows, f"no operation speaks of '{argument}'")


def _vars(session: Session, argument: str) -> Outcome:
    rows = tuple(
        (name, describe(value)) for name, value in session.names.items() if name[:1] != "_"
    )
    return Table(("name", "value"), rows, "no names yet")


def describe(value: object) -> str:
    """A value in one line: dtype and shape of a tensor, the text of anything else."""
    from engine.tensor import Tensor

    if isinstance(value, Tensor):
        gradient = ", requires grad" if value.requires_grad else ""
        return f"{value.dtype.name} {list(value.shape)}{gradient}"
    text = repr_of(value).replace("\n", " ")
    return text if len(text) <= 60 else text[:57] + "..."


def _reset(session: Session, argument: str) -> Outcome:
    session.reset()
    return Note("names, modes and the generator are as at the start")


def _leave(session: Session, argument: str) -> Outcome:
    return Leave()


def _calling(form: str, needs_argument: bool) -> Callable[[Session, str], Outcome]:
    """A command that is a call of the explanation of that name."""

    def act(session: Session, argument: str) -> Outcome:
        if needs_argument and not argument:
            return Mistake(f":{form} needs an argument, such as :{form} x")
        return Evaluate(f"{form}({argument})")

    return act


COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        Command("help", "[NAME]", "this list, or the reference page of an operation", _help),
        Command("ops", "[WORD]", "the operations, or those that speak of a word", _ops),
        Command("vars", "", "your names and what they hold", _vars),
        Command("layout", "X", "how a tensor lies in memory", _calling("layout", True)),
        Command("why", "X", "whether this is a view or a copy, and why", _calling("why", True)),
        Command("broadcast", "A, B", "how shapes are matched", _calling("broadcast", True)),
        Command(
            "precision", "X", "what other dtypes would lose of it", _calling("precision", True)
        ),
        Command("bits", "X", "sign, exponent and mantissa of each element", _calling("bits", True)),
        Command("dtypes", "", "what the floating-point dtypes hold", _calling("dtypes", False)),
        Command("summary", "X", "range, mean, spread, zeros, NaN", _calling("summary", True)),
        Command("hist", "X", "how often values occur, as bars", _calling("hist", True)),
        Command("plot", "X", "a vector or a list of losses as a line", _calling("plot", True)),
        Command("heatmap", "X", "a matrix in colours", _calling("heatmap", True)),
        Command("grads", "", "the gradients of your leaves", _calling("grads", False)),
        Command("graph", "Y", "how a value came about", _calling("graph", True)),
        Command("check_grad", "Y", "gradients against differences", _calling("check_grad", True)),
        Command(
            "explain_backward",
            "Y",
            "the backward pass, step by step",
            _calling("explain_backward", True),
        ),
        Command("trace_nan", "X", "where its NaN and Inf were born", _calling("trace_nan", True)),
        Command("shape", "EXPR", "what it would make, not computed", _calling("shape", True)),
        Command("reset", "", "forget names, modes and the generator's state", _reset),
        Command("quit", "", "leave (so does Ctrl-D)", _leave),
    )
}
SHORT = {"h": "help", "?": "help", "q": "quit", "exit": "quit", "finfo": "dtypes"}
_EXPLANATIONS = {
    "layout",
    "why",
    "broadcast",
    "precision",
    "grads",
    "graph",
    "check_grad",
    "explain_backward",
    "trace_nan",
    "shape",
}


def available() -> list[Command]:
    """The commands of this build: an explanation that the language lacks is none."""
    return [
        command
        for command in COMMANDS.values()
        if command.name not in _EXPLANATIONS or command.name in names.SPECIAL_FORMS
    ]


def is_command(text: str) -> bool:
    """Whether a line is for this module; no statement of the language begins with a colon."""
    return text.lstrip()[:1] == ":"


def perform(session: Session, text: str) -> Outcome:
    """What a command line comes to."""
    word, _, argument = text.strip()[1:].strip().partition(" ")
    name = SHORT.get(word, word) or "help"
    command = next((command for command in available() if command.name == name), None)
    if command is None:
        return Mistake(f"there is no command :{word}; :help lists them")
    return command.act(session, argument.strip())
