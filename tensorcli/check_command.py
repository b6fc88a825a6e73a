"""What `tensorcli check` does: run programs without data, show what each line makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine import storage
from tensorcli import results
from tensorcli.execution import text_of
from tensorcli.exit_status import ExitStatus
from tensorcli.language import limits
from tensorcli.language.errors import Refused
from tensorcli.language.program import compile_program
from tensorcli.language.running import now
from tensorcli.render.output import Output, OutputFailed
from tensorcli.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorcli.environment import Environment
    from tensorcli.settings import Settings

SECONDS = 20.0
"""How long a program may take where no limit was set."""


def check(files: Sequence[str], environment: Environment, settings: Settings) -> int:
    """Check each file; the status of the first in which something was wrong."""
    output = Output(environment, settings)
    output.flush_each = True
    first = ExitStatus.OK
    try:
        for operand in files:
            output.file = operand
            text, status = text_of(operand, output, environment)
            if text is not None:
                status = _check(text, output, environment, settings)
            output.end()
            first = first or status
    except OutputFailed as failure:
        if not failure.closed:
            environment.stderr.write(f"{failure.message}\n")
        return ExitStatus.OK if failure.closed else ExitStatus.FILE
    return first


def _check(text: str, output: Output, environment: Environment, settings: Settings) -> ExitStatus:
    from tensorcli.explain import checking
    from tensorcli.explain.raised import diagnostic_of

    session = Session(environment, settings)
    now.files = settings.files
    storage.ask_before(limits.charge_bytes)
    try:
        compile_program(text)
    except Refused as refused:
        output.emit(results.ErrorResult(refused.diagnostic, text))
        return ExitStatus.INVALID
    with np.errstate(all="ignore"):
        result, error = checking.check(text, session.seed, settings.time_limit or SECONDS)
    output.emit(result)
    if error is None:
        return ExitStatus.OK
    output.emit(results.ErrorResult(diagnostic_of(error), text))
    return ExitStatus.ASSERTION
