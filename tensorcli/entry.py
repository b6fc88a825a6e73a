"""The console script: quick for eval and run, everything else goes to the typer app.

Numpy's import is most of the time that `tensorcli eval "1+1"` takes, and typer's would double it
(64 ms against 188 when measured), so ordinary command lines never load typer.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from tensorcli.environment import Environment
    from tensorcli.options import Request


COMPLETION = "_TENSORCLI_COMPLETE"
"""A shell asks for completions by setting this; typer answers."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and end the process."""
    try:
        status = run(sys.argv[1:] if arguments is None else arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        status = 130
    except OSError as error:
        status = report_stream(error) if error.filename is None else report_fault(error)
    except Exception as fault:
        status = report_fault(fault)
    leave(status)


def report_stream(error: OSError) -> int:
    """Help, a version or a list that could not be written; results have a ring of their own."""
    if isinstance(error, BrokenPipeError):
        return 0
    try:
        sys.stderr.write(f"tensorcli: cannot write: {error.strerror}\n")
    except (OSError, ValueError, AttributeError):
        pass  # no standard error to write to
    return 4


def report_fault(fault: Exception) -> int:
    """The outermost ring: a fault of ours is one line, its traceback only for who asks for it."""
    if os.environ.get("TENSORCLI_DEBUG"):
        import traceback

        traceback.print_exception(fault)
    try:
        sys.stderr.write(f"InternalError: internal fault: {type(fault).__name__}: {fault}\n")
    except (OSError, ValueError, AttributeError):
        pass  # no standard error to write to
    return 1


def run(arguments: Sequence[str], environment: Environment | None = None) -> int:
    """The exit status of a command line."""
    if list(arguments) == ["--version"]:
        from tensorcli import __version__

        print(f"tensorcli {__version__}")
        return 0
    request = None
    if COMPLETION in os.environ:
        from tensorcli import cli

        return cli.run(arguments, environment)
    if list(arguments) in ([], ["repl"]) and _has_keyboard(environment):
        return _converse(environment)
    if arguments or not _has_keyboard(environment):
        from tensorcli import options

        request = options.parse(arguments)
        if request is not None and not request.operands and _has_keyboard(environment):
            request = None  # nobody types a program into `tensorcli run` by intention
    if request is None:
        from tensorcli import cli

        return cli.run(arguments, environment)
    return _execute(request, environment)


def _execute(request: Request, environment: Environment | None) -> int:
    if environment is not None:
        from tensorcli.execution import execute

        return execute(request, environment)
    prepare_imports()
    from tensorcli import execution, session  # noqa: F401 - the session's imports are the long ones

    settle_collector()
    return execution.execute(request)


def _converse(environment: Environment | None) -> int:
    """The prompt as it is without flags: typer would add half to the time until it shows."""
    prompt_of_process = environment is None
    if environment is None:
        prepare_imports()
        from tensorcli.environment import of_process

        environment = of_process()
    from tensorcli import repl
    from tensorcli.settings import SettingError, resolve

    try:
        conversation = repl.conversation(environment, resolve({}, environment))
    except SettingError:
        from tensorcli import cli

        return cli.run(["repl"], environment)  # says what is wrong
    if prompt_of_process:
        settle_collector()
    return conversation.run()


def prepare_imports() -> None:
    """What makes numpy's import cheap: no collections while it runs, one BLAS thread at load.

    Starting BLAS's threads costs more than a small program; the engine may raise their number
    when a product is large, unless the variable was the user's own.
    """
    import gc
    import warnings

    gc.disable()
    if not os.environ.get("TENSORCLI_DEBUG"):
        # What PyTorch warns of is a result; what numpy and scipy warn of is nobody's business.
        warnings.simplefilter("ignore")
    if "OPENBLAS_NUM_THREADS" not in os.environ:
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        os.environ["TENSORCLI_BLAS_THREADS"] = "auto"


def settle_collector() -> None:
    """Take what was imported out of the collector's sight, and let graphs grow in peace.

    The thresholds are those measured to bring a graph node from 2.3 to 1.4 µs.
    """
    import gc

    gc.freeze()
    gc.set_threshold(20000, 50, 1000)
    gc.enable()


def leave(status: int) -> NoReturn:
    """Flush and end at once: tearing the interpreter down takes 10 ms that nobody needs."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass  # closed, or a full disk: reported while writing, if there was where to
    os._exit(status)


def _has_keyboard(environment: Environment | None) -> bool:
    stdin = sys.stdin if environment is None else environment.stdin
    return stdin is not None and stdin.isatty()
