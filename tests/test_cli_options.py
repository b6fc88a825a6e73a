"""The quick parser and the typer app agree on every command line, and on what is wrong."""

from __future__ import annotations

import io
import sys

import pytest

from tensorcli import cli, entry, execution, options
from tensorcli.environment import Environment
from tensorcli.options import Request
from tests.in_memory import World

# Command lines of eval and run: what both parsers must make of them. None: wrong usage.
LINES: list[tuple[list[str], Request | None]] = [
    (["eval", "1+1"], Request("eval", ("1+1",), {})),
    (["eval", "a = 1", "a + 1"], Request("eval", ("a = 1", "a + 1"), {})),
    (["eval", "-x + 1"], Request("eval", ("-x + 1",), {})),
    (["eval", "-1"], Request("eval", ("-1",), {})),
    (["eval", "-", "x"], Request("eval", ("-", "x"), {})),
    (["eval", ""], Request("eval", ("",), {})),
    (["eval", "--", "--x", "-h"], Request("eval", ("--x", "-h"), {})),
    (["eval", "--json", "1"], Request("eval", ("1",), {"format": "json"})),
    (["eval", "1", "--json"], Request("eval", ("1",), {"format": "json"})),
    (["eval", "--json", "--json", "1"], Request("eval", ("1",), {"format": "json"})),
    (["eval", "--plain", "1"], Request("eval", ("1",), {"format": "plain"})),
    (["eval", "--rich", "1"], Request("eval", ("1",), {"format": "rich"})),
    (["eval", "--seed", "7", "1"], Request("eval", ("1",), {"seed": 7})),
    (["eval", "--seed=-7", "1"], Request("eval", ("1",), {"seed": -7})),
    (["eval", "--seed", "-7", "1"], Request("eval", ("1",), {"seed": -7})),
    (["eval", "--seed", "1", "--seed", "2", "1"], Request("eval", ("1",), {"seed": 2})),
    (["eval", "--color", "never", "1"], Request("eval", ("1",), {"color": "never"})),
    (["eval", "--show=all", "1"], Request("eval", ("1",), {"show": "all"})),
    (["eval", "--full", "1"], Request("eval", ("1",), {"full": True})),
    (["eval", "--no-files", "1"], Request("eval", ("1",), {"files": False})),
    (["eval", "--time-limit", "1.5", "1"], Request("eval", ("1",), {"time_limit": 1.5})),
    (["eval", "--memory-limit", "1K", "1"], Request("eval", ("1",), {"memory_limit": 1024})),
    (["eval", "--memory-limit=1.5GiB", "1"], Request("eval", ("1",), {"memory_limit": 3 << 29})),
    (["eval", "--step-limit", "9", "1"], Request("eval", ("1",), {"step_limit": 9})),
    (["eval", "--output-limit", "64MB", "1"], Request("eval", ("1",), {"output_limit": 64 << 20})),
    (["run", "a.tx"], Request("run", ("a.tx",), {})),
    (["run", "a.tx", "-", "b"], Request("run", ("a.tx", "-", "b"), {})),
    (["run", "--", "-odd"], Request("run", ("-odd",), {})),
    (["run"], Request("run", (), {})),
    (["run", "a", "--seed", "3", "b"], Request("run", ("a", "b"), {"seed": 3})),
    ([], Request("run", ("-",), {})),
    (["--json"], Request("run", (), {"format": "json"})),
    (["--seed=3", "a.tx"], Request("run", ("a.tx",), {"seed": 3})),
    (["a.tx", "--json"], Request("run", ("a.tx",), {"format": "json"})),
    (["./program"], Request("run", ("./program",), {})),
    (["eval"], None),
    (["eval", "--json"], None),
    (["eval", "--jsn", "1"], None),
    (["eval", "--json=1", "1"], None),
    (["eval", "--json", "--plain", "1"], None),
    (["eval", "--seed"], None),
    (["eval", "--seed", "x", "1"], None),
    (["eval", "--seed", "1_0", "1"], None),
    (["eval", "--seed", "", "1"], None),
    (["eval", "--color", "blue", "1"], None),
    (["eval", "--show", "some", "1"], None),
    (["eval", "--time-limit", "0", "1"], None),
    (["eval", "--time-limit", "nan", "1"], None),
    (["eval", "--memory-limit", "lots", "1"], None),
    (["eval", "--step-limit", "-1", "1"], None),
    (["run", "-x"], None),
    (["run", "--time", "1", "a"], None),
    (["evaluate", "1"], None),
]  # fmt: skip


def environment() -> Environment:
    return Environment(
        stdin=io.StringIO(), stdout=io.StringIO(), stderr=io.StringIO(), variables={}, width=80
    )


@pytest.mark.parametrize(
    ("line", "wanted"), LINES, ids=[" ".join(line) or "nothing" for line, _ in LINES]
)
def test_both_parsers_agree(
    line: list[str], wanted: Request | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Request] = []

    def remember(request: Request, environment: Environment) -> int:
        seen.append(request)
        return 0

    monkeypatch.setattr(execution, "execute", remember)
    assert options.parse(line) == wanted
    world = environment()
    status = cli.run(line, world)
    if wanted is None:
        assert (status, seen) == (2, [])
        assert "UsageError" in world.stdout.getvalue() + world.stderr.getvalue()
    else:
        assert (status, seen) == (0, [wanted])


def test_every_flag_is_in_both_tables() -> None:
    assert cli.HELP.keys() == options.SWITCHES.keys() | options.VALUED.keys()
    for flag, (value_name, _) in cli.HELP.items():
        assert (value_name is None) == (flag in options.SWITCHES)


def test_help_names_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["run", "--help"], environment()) == 0
    text = capsys.readouterr().out
    assert all(flag in text for flag in cli.HELP)


def test_wrong_usage_is_an_object_in_json() -> None:
    world = environment()
    assert entry.run(["eval", "--json", "--nope", "1"], world) == 2
    assert '"kind":"error"' in world.stdout.getvalue()
    assert '"code":"usage"' in world.stdout.getvalue()
    assert world.stderr.getvalue() == ""


def test_run_without_a_file_does_not_wait_for_a_keyboard() -> None:
    world = World(terminal=True)
    assert world.run("run") == 2
    assert world.err.startswith("UsageError: Missing argument")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["--version"]) == 0
    first = capsys.readouterr().out
    world = environment()
    assert cli.run(["--version"], world) == 0
    assert world.stdout.getvalue() == first


def test_ordinary_command_lines_never_load_typer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorcli.cli", None)
    monkeypatch.setattr(execution, "execute", lambda request, environment: 0)
    assert entry.run(["eval", "--json", "--seed", "3", "-x"], environment()) == 0
