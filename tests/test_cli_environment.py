"""Colour, folders and settings: which source wins, and what is refused."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tensorcli.environment import Environment
from tensorcli.settings import SettingError, resolve


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def world(variables: dict[str, str], *, terminal: bool = False) -> Environment:
    stdout = Terminal() if terminal else io.StringIO()
    return Environment(stdin=io.StringIO(), stdout=stdout, stderr=stdout, variables=variables)


@pytest.mark.parametrize(
    ("variables", "terminal", "flag", "wanted"),
    [
        ({}, False, "auto", False),
        ({}, True, "auto", True),
        ({"TERM": "dumb"}, True, "auto", False),
        ({"NO_COLOR": "1"}, True, "auto", False),
        ({"NO_COLOR": ""}, True, "auto", True),
        ({"NO_COLOR": "1"}, False, "always", True),
        ({"FORCE_COLOR": "1"}, False, "auto", True),
        ({"FORCE_COLOR": "0"}, False, "auto", False),
        ({"CLICOLOR_FORCE": "1"}, False, "auto", True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, "auto", False),
        ({"FORCE_COLOR": "1"}, True, "never", False),
    ],
)
def test_colour(variables: dict[str, str], terminal: bool, flag: str, wanted: bool) -> None:
    environment = world(variables, terminal=terminal)
    assert environment.colour(environment.stdout, flag) is wanted


def test_width() -> None:
    assert world({"COLUMNS": "44"}).width() == 44
    assert world({"COLUMNS": "0"}).width() == 80


def test_folders() -> None:
    assert world({"HOME": "/h"}).config_folder() == "/h/.config/tensorcli"
    assert world({"HOME": "/h", "XDG_STATE_HOME": "/s"}).state_folder() == "/s/tensorcli"
    assert (
        world({"HOME": "/h", "XDG_STATE_HOME": "s"}).state_folder() == "/h/.local/state/tensorcli"
    )


def settings_file(folder: Path, text: str) -> None:
    (folder / "tensorcli").mkdir()
    (folder / "tensorcli" / "config.toml").write_text(text)


def test_file_then_variable_then_flag(tmp_path: Path) -> None:
    settings_file(tmp_path, 'seed = 1\nshow = "all"\ntime-limit = 2.5\nfull = true\n')
    environment = world({"XDG_CONFIG_HOME": str(tmp_path), "TENSORCLI_SEED": "2"})
    settings = resolve({"show": "none"}, environment)
    assert (settings.seed, settings.show, settings.time_limit) == (2, "none", 2.5)
    assert settings.full is True
    assert settings.format == "auto"


@pytest.mark.parametrize("text", ["sed = 1", "seed = 'x'", "seed = [1]", "seed 1", "full = 2"])
def test_wrong_settings_are_refused(tmp_path: Path, text: str) -> None:
    settings_file(tmp_path, text)
    with pytest.raises(SettingError, match="config.toml"):
        resolve({}, world({"XDG_CONFIG_HOME": str(tmp_path)}))


def test_wrong_variable_is_refused() -> None:
    with pytest.raises(SettingError, match="TENSORCLI_COLOR: 'x' is not one of"):
        resolve({}, world({"TENSORCLI_COLOR": "x", "HOME": "/nowhere"}))
