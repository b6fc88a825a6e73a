"""Completion as prompt_toolkit wants it, over the language's own and the commands' names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompt_toolkit.completion import Completer, Completion

from tensorcli import commands
from tensorcli.language.completion import complete

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document


class Completing(Completer):
    """Completes against the names of a session, as they are at that moment."""

    def __init__(self, names: Mapping[str, object]) -> None:
        self._names = names

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        """Candidates for the word before the cursor."""
        text = document.text_before_cursor
        if commands.is_command(text) and " " not in text.strip():
            yield from _commands(text.lstrip()[1:])
            return
        if commands.is_command(text):
            text = text.partition(" ")[2]
        for candidate in complete(text, len(text), self._names):
            yield Completion(
                candidate.text,
                start_position=candidate.start - len(text),
                display_meta=candidate.kind,
            )


def _commands(typed: str) -> Iterable[Completion]:
    for command in commands.available():
        if command.name.startswith(typed):
            yield Completion(command.name, start_position=-len(typed), display_meta=command.summary)
