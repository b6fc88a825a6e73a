"""Results as plain text: PyTorch's for tensors, Python's for the rest; what a pipe gets."""

from __future__ import annotations

from tensorcli import results
from tensorcli.render.lines import plain_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tensorcli.render.lines import Line


def text(result: results.Result, width: int = 80, file: str | None = None) -> str:
    """A result as text, final newline included."""
    return TEXTS.get(type(result), _lines)(result, width, file)


def _tensor(result: results.TensorResult, width: int, file: str | None) -> str:
    from engine.printing import tensor_text

    return tensor_text(result.value) + "\n"


def _value(result: results.ValueResult, width: int, file: str | None) -> str:
    from tensorcli.language.value_text import repr_of

    return repr_of(result.value) + "\n"


def _print(result: results.PrintResult, width: int, file: str | None) -> str:
    return result.text


def _error(result: results.ErrorResult, width: int, file: str | None) -> str:
    from tensorcli.render.snippet import diagnostic_lines

    return plain_text(diagnostic_lines(result.diagnostic, result.source, file, width))


def _lines(result: Any, width: int, file: str | None) -> str:
    if getattr(result, "is_picture", False):
        return ""  # pictures are for terminals
    return plain_text(explanation_lines(result, width, file))


def explanation_lines(result: Any, width: int, file: str | None) -> list[Line]:
    """The lines of what is text in pieces: explanations and warnings."""
    if isinstance(result, results.WarningResult):
        from tensorcli.render.snippet import warning_lines

        return warning_lines(result.message, result.line, file, width)
    if isinstance(result, results.HintResult):
        from tensorcli.render.snippet import hint_lines

        return hint_lines(result.diagnostic, file, width)
    if isinstance(result, results.Finding):
        from tensorcli.value_results import Explanation

        if isinstance(result, Explanation):
            from tensorcli.render import values

            return values.LINES[type(result)](result, width)
        from tensorcli.render import findings

        return findings.LINES[type(result)](result, width)
    from tensorcli.render import explanation

    return explanation.LINES[type(result)](result, width)


# Results whose text is the same however wide the terminal is.
OF_ANY_WIDTH = frozenset({results.TensorResult, results.ValueResult, results.PrintResult})

TEXTS: dict[type, Callable[[Any, int, str | None], str]] = {
    results.TensorResult: _tensor,
    results.ValueResult: _value,
    results.PrintResult: _print,
    results.ErrorResult: _error,
    results.WarningResult: _lines,
    results.HintResult: _lines,
    **dict.fromkeys(results.EXPLANATIONS, _lines),
}
