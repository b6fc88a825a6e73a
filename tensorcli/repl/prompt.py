"""The prompt of a capable terminal: history, completion, colours, many lines."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.filters import Condition, has_completions, has_selection
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.lexers import DynamicLexer, Lexer, PygmentsLexer, SimpleLexer
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style

from tensorcli import __version__
from tensorcli.commands import is_command
from tensorcli.repl.completeness import indentation, needs_more
from tensorcli.repl.completing import Completing

if TYPE_CHECKING:
    from prompt_toolkit.history import History
    from prompt_toolkit.input import Input
    from prompt_toolkit.key_binding import KeyPressEvent
    from prompt_toolkit.output import Output

    from tensorcli.environment import Environment
    from tensorcli.session import Session

PROMPT = ">>> "
CONTINUATION = "... "
GREETING = f"tensorcli {__version__} · :help lists commands, Tab completes, Ctrl-D leaves"

# Colours of the sixteen that every terminal has, so that its own scheme decides what they are.
STYLE = Style.from_dict(
    {
        "prompt": "ansicyan",
        "continuation": "ansibrightblack",
        "pygments.keyword": "ansiblue",
        "pygments.keyword.constant": "ansimagenta",
        "pygments.literal.number": "ansimagenta",
        "pygments.literal.string": "ansigreen",
        "pygments.comment": "ansibrightblack italic",
        "pygments.operator.word": "ansiblue",
        "pygments.name.builtin": "ansicyan",
        "pygments.name.decorator": "ansicyan",
    }
)


class PromptReader:
    """Reads with prompt_toolkit; `input` and `output` are the terminal unless a test says."""

    def __init__(
        self,
        session: Session,
        environment: Environment,
        *,
        colour: str = "auto",
        input: Input | None = None,
        output: Output | None = None,
    ) -> None:
        self._environment = environment
        self._greeted = False
        coloured = environment.colour(environment.stdout, colour)
        self._prompt: PromptSession[str] = PromptSession(
            FormattedText([("class:prompt", PROMPT)]),
            multiline=True,
            prompt_continuation=FormattedText([("class:continuation", CONTINUATION)]),
            history=history(environment),
            completer=Completing(session.names),
            complete_while_typing=False,
            lexer=DynamicLexer(self._lexer) if coloured else None,
            style=STYLE,
            color_depth=None if coloured else ColorDepth.DEPTH_1_BIT,
            key_bindings=_keys(),
            include_default_pygments_style=False,
            enable_history_search=True,
            enable_suspend=True,
            input=input,
            output=output,
        )
        self._python: Lexer | None = None

    def read(self) -> str:
        """One complete input; EOFError at the end, KeyboardInterrupt when it was called off."""
        if not self._greeted:
            self._greeted = True
            self._environment.stdout.write(GREETING + "\n")
            self._environment.stdout.flush()
        return self._prompt.prompt()

    def _lexer(self) -> Lexer:
        """Highlighting from the first key on: pygments is not loaded to show an empty line."""
        if self._python is None:
            if not self._prompt.default_buffer.text:
                return SimpleLexer()
            from pygments.lexers.python import PythonLexer

            self._python = PygmentsLexer(PythonLexer)
        return self._python


def history(environment: Environment) -> History:
    """The file in the state folder, or memory where that cannot be written."""
    folder = environment.state_folder()
    path = os.path.join(folder, "history")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with open(path, "ab"):
            os.chmod(path, 0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=~has_selection & ~Condition(_choosing))
    def _(event: KeyPressEvent) -> None:
        """Run what is complete, else go on in a new line, indented as the last one asks."""
        buffer = event.current_buffer
        text = buffer.text
        finished = not buffer.document.text_after_cursor.strip()
        if is_command(text) or not needs_more(text) and (finished or "\n" not in text):
            buffer.validate_and_handle()
        else:
            before = buffer.document.text_before_cursor
            buffer.insert_text("\n" + indentation(before))

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        """A new line, whatever there is so far."""
        event.current_buffer.insert_text("\n")

    @keys.add("tab", filter=~has_completions & Condition(_in_indentation))
    def _(event: KeyPressEvent) -> None:
        """Four blanks where a line has nothing yet to complete."""
        event.current_buffer.insert_text("    ")

    return keys


def _choosing() -> bool:
    """Whether a completion is selected in the menu: Enter then takes it."""
    from prompt_toolkit.application import get_app

    state = get_app().current_buffer.complete_state
    return state is not None and state.current_completion is not None


def _in_indentation() -> bool:
    from prompt_toolkit.application import get_app

    line = get_app().current_buffer.document.current_line_before_cursor
    return not line.strip()
