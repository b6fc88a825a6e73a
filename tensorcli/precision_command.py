"""`tensorcli precision "expr" --dtypes …`: a whole program in low precision, against float64."""

from __future__ import annotations

import ast

from tensorcli import results
from tensorcli.diagnostics import Diagnostic
from tensorcli.execution import report, usage_diagnostic
from tensorcli.exit_status import ExitStatus
from tensorcli.render.output import Output, OutputFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorcli.environment import Environment
    from tensorcli.settings import Settings

SHOWN = (results.Finding, results.PrecisionResult, results.ErrorResult)
"""What people asked for; the values of the program itself are none of it."""


def show(
    expressions: Sequence[str], dtypes: str, environment: Environment, settings: Settings
) -> int:
    """Run the lines as one program whose last expression is explained; the exit status."""
    from tensorcli.explain.precision import FORMATS

    names = [name.strip().removeprefix("torch.") for name in dtypes.split(",") if name.strip()]
    for name in names:
        if name not in FORMATS:
            known = ", ".join(FORMATS)
            message = f"'{name}' is not one of {known}."
            return report(usage_diagnostic(message), ExitStatus.USAGE, settings, environment)
    from tensorcli.session import Session

    text = "\n".join(expressions)
    line = _last_expression(text)
    if line == 0:
        message = "the program does not end in an expression, whose precision could be told"
        return report(usage_diagnostic(message), ExitStatus.USAGE, settings, environment)
    # The session's own form explains the program above it, so that places stay as they were.
    asked = f"{text}\nprecision(...{''.join(f', torch.{name}' for name in names)})"
    output = Output(environment, settings)

    def emit(result: results.Result) -> None:
        if isinstance(result, results.ErrorResult):
            place = result.diagnostic.span
            if place is not None and place.line > text.count("\n") + 1:
                old = result.diagnostic
                result = results.ErrorResult(Diagnostic(old.code, old.type, old.message))
        if isinstance(result, SHOWN):
            if not isinstance(result, results.ErrorResult):
                result.line = line
            output.emit(result)

    try:
        status = Session(environment, settings).run(asked, emit)
        output.flush()
    except OutputFailed as failure:
        return ExitStatus.OK if failure.closed else ExitStatus.FILE
    return status


def _last_expression(text: str) -> int:
    """The line of the last expression, 0 if the text ends in another statement.

    A text that cannot be read has 1: it is for the session to refuse.
    """
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return 1
    return body[-1].lineno if body and isinstance(body[-1], ast.Expr) else 0
