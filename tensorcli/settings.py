"""What a person can set, and from where: a file, the environment, a flag, the later the stronger.

It knows the names of settings and what their values may be, not what they do.
"""

from __future__ import annotations

import os

from tensorcli import options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tensorcli.environment import Environment
    from tensorcli.options import FlagValue


class SettingError(Exception):
    """A settings file or a variable holds what cannot be used; the message says where."""


class Settings:
    """The settings of one command. None: not set, and whoever needs the value has a default."""

    __slots__ = (
        "ascii",
        "color",
        "files",
        "format",
        "full",
        "hints",
        "memory_limit",
        "output_limit",
        "seed",
        "show",
        "step_limit",
        "time_limit",
        "trace_nan",
    )

    def __init__(
        self,
        *,
        ascii: bool = False,
        format: str = "auto",
        color: str = "auto",
        show: str | None = None,
        hints: str = "auto",
        seed: int | None = None,
        full: bool = False,
        files: bool = True,
        time_limit: float | None = None,
        memory_limit: int | None = None,
        step_limit: int | None = None,
        output_limit: int | None = None,
        trace_nan: bool = False,
    ) -> None:
        self.ascii = ascii
        self.format = format
        self.color = color
        self.show = show
        self.hints = hints
        self.seed = seed
        self.full = full
        self.files = files
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.step_limit = step_limit
        self.output_limit = output_limit
        self.trace_nan = trace_nan


def _format(text: str) -> str:
    if text not in ("auto", "plain", "rich", "json"):
        raise ValueError(f"'{text}' is not one of 'auto', 'plain', 'rich', 'json'.")
    return text


def _boolean(text: str) -> bool:
    value = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}.get(
        text.lower()
    )
    if value is None:
        raise ValueError(f"'{text}' is neither true nor false.")
    return value


# The settings that a file or TENSORCLI_<NAME> may give; numbers are checked like the flags'.
READERS: dict[str, Callable[[str], FlagValue]] = {
    "ascii": _boolean,
    "format": _format,
    "full": _boolean,
    "files": _boolean,
    "trace_nan": _boolean,
    **dict(options.VALUED.values()),
}


def resolve(flags: Mapping[str, FlagValue], environment: Environment) -> Settings:
    """The settings in force: those of the file, then the variables, then the flags."""
    values = _from_file(os.path.join(environment.config_folder(), "config.toml"))
    values.update(_from_variables(environment.variables))
    values.update(flags)
    return Settings(**values)  # type: ignore[arg-type]  # READERS has checked name and value


def _from_variables(variables: Mapping[str, str]) -> dict[str, FlagValue]:
    values: dict[str, FlagValue] = {}
    for name, reader in READERS.items():
        variable = f"TENSORCLI_{name.upper()}"
        text = variables.get(variable)
        if text:
            values[name] = _checked(reader, text, variable)
    return values


def _from_file(path: str) -> dict[str, FlagValue]:
    if not os.path.exists(path):
        return {}
    import tomllib

    try:
        with open(path, "rb") as file:
            table = tomllib.load(file)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingError(f"{path}: {error}") from None
    values: dict[str, FlagValue] = {}
    for name, value in table.items():
        key = name.replace("-", "_")
        if key not in READERS:
            raise SettingError(f"{path}: there is no setting '{name}'")
        text = str(value).lower() if isinstance(value, bool) else str(value)
        values[key] = _checked(READERS[key], text, f"{path}: {name}")
    return values


def _checked(reader: Callable[[str], FlagValue], text: str, place: str) -> FlagValue:
    try:
        return reader(text)
    except ValueError as error:
        raise SettingError(f"{place}: {error}") from None
