"""The command line as a typer app: the one definition of commands, flags and help.

entry.py answers ordinary eval and run command lines without loading this; both read the tables of
options.py, and a parity test holds them together. A mistake on the command line is a diagnostic
like any other, in json too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer
from typer.core import TyperCommand
from typer.main import get_command

from tensorcli import __version__, options
from tensorcli.environment import Environment, of_process
from tensorcli.exit_status import ExitStatus
from tensorcli.options import Request
from tensorcli.settings import SettingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tensorcli.options import FlagValue

    Command = Callable[[Environment, Any, dict[str, FlagValue]], int]

# Click's classes, wherever this version of typer keeps them.
UsageError: Any = typer.BadParameter.__mro__[1]
ClickException: Any = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="tensorcli",
    help="A tensor calculator for the shell and an autograd REPL with PyTorch's semantics.",
    epilog="Without a command: the REPL on a terminal, otherwise standard input is run.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# flag -> (what its value is called, help); those without a value name are switches.
HELP: dict[str, tuple[str | None, str]] = {
    "--json": (None, "JSON Lines, one object per result."),
    "--plain": (None, "Plain text, as a pipe gets it."),
    "--rich": (None, "Text as a terminal gets it."),
    "--color": ("WHEN", "Colour: always, never, or auto (only on a terminal)."),
    "--show": ("WHICH", "Which values are shown: last, all or none."),
    "--hints": ("WHEN", "Hints at silent surprises: auto, on (in JSON too) or off."),
    "--seed": ("N", "Seed the generator, for every file afresh."),
    "--trace-nan": (None, "Say where the first NaN or infinity was born."),
    "--full": (None, "All elements of large tensors in JSON."),
    "--no-files": (None, "No load() and save() in programs."),
    "--time-limit": ("SECONDS", "How long a program may run."),
    "--memory-limit": ("SIZE", "How much memory it may use, such as 500M."),
    "--step-limit": ("N", "How many loop steps and calls it may take."),
    "--output-limit": ("SIZE", "How much it may write."),
}

# An expression may begin with a minus; a character that no argument can hold hides it from click.
_HIDDEN = "\0"


class ProgramCommand(TyperCommand):
    """Takes arguments such as `-x + 1` for the expressions they are."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, hide_expressions(args, self.name or ""))


def hide_expressions(arguments: Sequence[str], command: str) -> list[str]:
    """The arguments with the expressions that begin with a minus out of click's sight."""
    hidden: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            hidden += [argument, *rest]
        elif argument in options.VALUED:
            hidden += [argument, *[value for value in [next(rest, None)] if value is not None]]
        elif argument.startswith("-") and options.is_expression(argument, command):
            hidden.append(_HIDDEN + argument)
        else:
            hidden.append(argument)
    return hidden


def _parameter_name(flag: str) -> str:
    return flag.lstrip("-").replace("-", "_")


def _flag_parameters(flags: Sequence[str]) -> list[Parameter]:
    parameters = []
    for flag in flags:
        metavar, text = HELP[flag]
        option = typer.Option(flag, help=text, metavar=metavar, show_default=False)
        kind: Any = bool if metavar is None else str | None
        default = False if metavar is None else None
        parameters.append(
            Parameter(
                _parameter_name(flag),
                Parameter.KEYWORD_ONLY,
                default=default,
                annotation=Annotated[kind, option],
            )
        )
    return parameters


def flag_values(given: dict[str, Any]) -> dict[str, FlagValue]:
    """The settings that flags stand for; raises UsageError for values that they cannot have."""
    flags: dict[str, FlagValue] = {}
    for flag in HELP:
        value = given.get(_parameter_name(flag))
        if value is None or value is False:
            continue
        if flag in options.SWITCHES:
            setting, meaning = options.SWITCHES[flag]
            if flags.get(setting, meaning) != meaning:
                raise UsageError(f"{flag} and --{flags[setting]} exclude each other.")
            flags[setting] = meaning
        else:
            setting, convert = options.VALUED[flag]
            try:
                flags[setting] = convert(value)
            except ValueError as error:
                raise UsageError(f"Invalid value for '{flag}': {error}") from None
    return flags


def _command(
    name: str, operands: Parameter | None, flags: Sequence[str], text: str
) -> Callable[[Command], Command]:
    """Register a function(environment, operands, flags) as a command with those flags."""

    def register(function: Command) -> Command:
        def callback(context: typer.Context, **given: Any) -> int:
            values = given.pop("operands", None)
            return function(context.obj, values, flag_values(given))

        first = Parameter("context", Parameter.POSITIONAL_ONLY, annotation=typer.Context)
        rest = [] if operands is None else [operands]
        parameters = [first, *rest, *_flag_parameters(flags)]
        parameters = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in parameters]
        callback.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # functions take attributes
        callback.__annotations__ = {p.name: p.annotation for p in parameters}
        app.command(name, cls=ProgramCommand, help=text)(callback)
        return function

    return register


def _operands(kind: Any, metavar: str, text: str, default: Any) -> Parameter:
    argument = typer.Argument(metavar=metavar, help=text, show_default=False)
    return Parameter(
        "operands", Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, argument]
    )


@_command(
    "eval",
    _operands(list[str], "EXPR", "Lines of one program; - reads standard input.", ...),
    tuple(HELP),
    "Evaluate expressions, or whole programs, given as arguments.",
)
def _eval(environment: Environment, operands: list[str], flags: dict[str, FlagValue]) -> int:
    expressions = tuple(operand.removeprefix(_HIDDEN) for operand in operands)
    return _execute(Request("eval", expressions, flags), environment)


@_command(
    "run",
    _operands(list[str] | None, "FILE", "Programs; - reads standard input.", None),
    tuple(HELP),
    "Run program files, each in a session of its own.",
)
def _run(environment: Environment, operands: list[str] | None, flags: dict[str, FlagValue]) -> int:
    if not operands and environment.stdin.isatty():
        raise UsageError("Missing argument 'FILE'; - reads standard input.")
    return _execute(Request("run", tuple(operands or ()), flags), environment)


@_command(
    "repl",
    None,
    ("--color", "--seed", "--no-files", "--time-limit", "--memory-limit"),
    "Type programs at a prompt.",
)
def _repl(environment: Environment, operands: None, flags: dict[str, FlagValue]) -> int:
    from tensorcli import repl
    from tensorcli.settings import resolve

    return int(repl.start(environment, resolve(flags, environment)))


@_command(
    "ops",
    _operands(str | None, "NAME", "An operation, such as matmul.", None),
    ("--json", "--plain", "--rich", "--color"),
    "List the operations, or describe one.",
)
def _ops(environment: Environment, operands: str | None, flags: dict[str, FlagValue]) -> int:
    from tensorcli import ops_command
    from tensorcli.settings import resolve

    return ops_command.show(operands, environment, resolve(flags, environment))


@app.command(
    "precision",
    cls=ProgramCommand,
    help="Run a computation in several dtypes, and say where its errors arise.",
)
def _precision(
    context: typer.Context,
    expressions: Annotated[list[str], typer.Argument(metavar="EXPR", help="Lines of one program.")],
    dtypes: Annotated[
        str, typer.Option("--dtypes", metavar="NAMES", help="Such as float16,bfloat16.")
    ] = "",
    json: Annotated[bool, typer.Option("--json", help=HELP["--json"][1])] = False,
    plain: Annotated[bool, typer.Option("--plain", help=HELP["--plain"][1])] = False,
    rich: Annotated[bool, typer.Option("--rich", help=HELP["--rich"][1])] = False,
    color: Annotated[
        str | None, typer.Option("--color", metavar="WHEN", help=HELP["--color"][1])
    ] = None,
    seed: Annotated[str | None, typer.Option("--seed", metavar="N", help=HELP["--seed"][1])] = None,
) -> int:
    from tensorcli import precision_command
    from tensorcli.settings import resolve

    environment: Environment = context.obj
    flags = flag_values({"json": json, "plain": plain, "rich": rich, "color": color, "seed": seed})
    texts = [expression.removeprefix(_HIDDEN) for expression in expressions]
    return precision_command.show(texts, dtypes, environment, resolve(flags, environment))


@_command(
    "check",
    _operands(list[str], "FILE", "Programs; - reads standard input.", ...),
    ("--json", "--plain", "--rich", "--color", "--seed", "--time-limit", "--memory-limit"),
    "Run programs without data: the shape and cost of each line, and the first error.",
)
def _check(environment: Environment, operands: list[str], flags: dict[str, FlagValue]) -> int:
    from tensorcli import check_command
    from tensorcli.settings import resolve

    return int(check_command.check(operands, environment, resolve(flags, environment)))


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if version:
        context.obj.stdout.write(f"tensorcli {__version__}\n")
        raise typer.Exit(0)
    if context.invoked_subcommand is None:
        raise UsageError("Missing command.")


def _execute(request: Request, environment: Environment) -> int:
    from tensorcli.execution import execute

    return execute(request, environment)


def run(arguments: Sequence[str], environment: Environment | None = None) -> int:
    """The exit status of any command line."""
    if environment is None:
        environment = of_process()
    arguments = list(arguments)
    if not arguments and environment.stdin.isatty():
        arguments = ["repl"]
    arguments = options.with_command(arguments)
    try:
        status = get_command(app).main(
            args=arguments, prog_name="tensorcli", standalone_mode=False, obj=environment
        )
    except ClickException as error:
        return _usage(error.format_message(), arguments, environment)
    except SettingError as error:
        return _usage(str(error), arguments, environment)
    except typer.Abort:
        return ExitStatus.INTERRUPTED
    return int(status or 0)


def _usage(message: str, arguments: Sequence[str], environment: Environment) -> int:
    from tensorcli.execution import report, usage_diagnostic
    from tensorcli.settings import Settings

    settings = Settings(format="json" if "--json" in arguments else "auto")
    command = arguments[0] if arguments[0] in HELP_COMMANDS else ""
    note = f"tensorcli {command + ' ' if command else ''}--help lists what there is"
    diagnostic = usage_diagnostic(message).with_more(notes=[note])
    return report(diagnostic, ExitStatus.USAGE, settings, environment)


HELP_COMMANDS = frozenset({"eval", "run", "repl", "ops", "precision", "check"})
