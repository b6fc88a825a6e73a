"""What eval and run do: read, run each text in a session of its own, write, and say how it went."""

from __future__ import annotations

import os

from tensorcli import results
from tensorcli.diagnostics import Diagnostic
from tensorcli.exit_status import ExitStatus
from tensorcli.options import Request
from tensorcli.render.output import Output, OutputFailed
from tensorcli.settings import SettingError, Settings, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorcli.environment import Environment

LONGEST_TEXT = 100_000_000
"""Bytes of a program: enough for any, and an end to reading /dev/zero."""


def execute(request: Request, environment: Environment | None = None) -> int:
    """Run a request; the exit status."""
    if environment is None:
        from tensorcli.environment import of_process

        environment = of_process()
    try:
        settings = resolve(request.flags, environment)
    except SettingError as error:
        settings = Settings(format=str(request.flags.get("format", "auto")))
        return report(usage_diagnostic(str(error)), ExitStatus.USAGE, settings, environment)
    return execute_with(request, environment, settings)


def run_input(environment: Environment, settings: Settings) -> int:
    """Run standard input as `run -` does."""
    return execute_with(Request("run", ("-",), {}), environment, settings)


def execute_with(request: Request, environment: Environment, settings: Settings) -> int:
    """Run a request whose flags have already become settings."""
    output = Output(environment, settings)
    if settings.memory_limit is not None and environment.is_of_process:
        from tensorcli.language.limits import confine

        confine(settings.memory_limit)
    try:
        status = COMMANDS[request.command](request, output, environment, settings)
        output.flush()
    except OutputFailed as failure:
        return _unwritable(failure, environment)
    return status


def usage_diagnostic(message: str) -> Diagnostic:
    return Diagnostic("usage", "UsageError", message)


def report(
    diagnostic: Diagnostic, status: ExitStatus, settings: Settings, environment: Environment
) -> int:
    """Write one diagnostic that no program caused; the status it leads to."""
    output = Output(environment, settings)
    try:
        output.emit(results.ErrorResult(diagnostic))
        output.flush()
    except OutputFailed as failure:
        return _unwritable(failure, environment)
    return status


def _eval(
    request: Request, output: Output, environment: Environment, settings: Settings
) -> ExitStatus:
    """All expressions are one program, a line or more each."""
    texts = []
    for operand in request.operands:
        if operand != "-":
            # An argument that is not UTF-8 arrives with surrogates, which the language refuses.
            texts.append(operand)
            continue
        text, status = text_of(operand, output, environment)
        if text is None:
            return status
        texts.append(text)
    return _in_session("\n".join(texts), output, environment, settings, eval=True)


def _run(
    request: Request, output: Output, environment: Environment, settings: Settings
) -> ExitStatus:
    """Each file in a session of its own; the status of the first that failed."""
    operands = request.operands or ("-",)
    output.flush_each = True
    first = ExitStatus.OK
    for operand in operands:
        output.file = operand
        text, status = text_of(operand, output, environment)
        if text is not None:
            status = _in_session(text, output, environment, settings, eval=False)
        output.end()
        first = first or status
        if status == ExitStatus.INTERRUPTED:
            return status
    return first


COMMANDS = {"eval": _eval, "run": _run}


def text_of(
    operand: str, output: Output, environment: Environment
) -> tuple[str | None, ExitStatus]:
    """The text of a file, or of standard input for `-`; None once a diagnostic was written."""
    from tensorcli.language.errors import Refused
    from tensorcli.language.source import decode

    try:
        data = _standard_input(environment) if operand == "-" else _contents(operand)
        return decode(data), ExitStatus.OK
    except Refused as refused:
        source = data.decode("utf-8", "replace")
        output.emit(results.ErrorResult(refused.diagnostic, source))
        return None, ExitStatus.INVALID
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message = f"cannot read {'standard input' if operand == '-' else operand}: {reason}"
        output.emit(results.ErrorResult(Diagnostic("file", "OSError", message)))
        return None, ExitStatus.FILE


def _contents(path: str) -> bytes:
    with open(path, "rb") as file:
        return _bounded(file.read(LONGEST_TEXT + 1))


def _standard_input(environment: Environment) -> bytes:
    binary = getattr(environment.stdin, "buffer", None)
    if binary is not None:
        data: bytes = binary.read(LONGEST_TEXT + 1)
        return _bounded(data)
    return environment.stdin.read().encode("utf-8", "surrogatepass")


def _bounded(data: bytes) -> bytes:
    if len(data) > LONGEST_TEXT:
        raise OSError(0, f"longer than {LONGEST_TEXT} bytes")
    return data


def _in_session(
    text: str, output: Output, environment: Environment, settings: Settings, *, eval: bool
) -> ExitStatus:
    from tensorcli.session import Session

    session = Session(environment, settings)
    session.explains = output.is_rich(environment.stdout)
    watches = _watches(text, output, environment, settings)
    try:
        return ExitStatus(session.run(text, output.emit, file=output.file, shows_last=eval))
    finally:
        for stop in watches:
            stop()


def _watches(
    text: str, output: Output, environment: Environment, settings: Settings
) -> list[Callable[[], None]]:
    """What ends the process if the program does not; functions that call each watch off."""
    from tensorcli.session import interrupt_diagnostic, time_limit_diagnostic
    from tensorcli.watchdog import watch, watch_interrupt

    def late() -> ExitStatus:
        diagnostic = time_limit_diagnostic(settings.time_limit, text)
        return _give_up(ExitStatus.LIMIT, diagnostic, text, output)

    def interrupted() -> ExitStatus:
        return _give_up(ExitStatus.INTERRUPTED, interrupt_diagnostic(text), text, output)

    watches = []
    if settings.time_limit is not None:
        watches.append(watch(settings.time_limit, late))
    if environment.is_of_process:
        watches.append(watch_interrupt(interrupted))
    return watches


def _give_up(status: ExitStatus, diagnostic: Diagnostic, text: str, output: Output) -> ExitStatus:
    """In a watchdog's thread: what was recorded goes out, then the reason."""
    try:
        output.emit(results.ErrorResult(diagnostic, text))
        output.end()
    except OutputFailed:
        pass  # there is nobody left to tell
    return status


def _unwritable(failure: OutputFailed, environment: Environment) -> int:
    """A closed pipe is how `| head` ends a program; any other failure is worth a word."""
    _discard(environment)
    if failure.closed:
        return ExitStatus.OK
    try:
        environment.stderr.write(f"tensorcli: {failure.message}\n")
    except OSError:
        pass
    return ExitStatus.FILE


def _discard(environment: Environment) -> None:
    """Let what is left in the buffer go nowhere, so that flushing at exit does not fail again."""
    try:
        descriptor = environment.stdout.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
