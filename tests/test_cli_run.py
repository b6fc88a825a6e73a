"""eval and run from end to end in this process: exit statuses, streams, what is shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.in_memory import World


def out(*arguments: str, stdin: bytes = b"") -> str:
    world = World(stdin)
    assert world.run(*arguments) == 0, world.err
    assert world.err == ""
    return world.out


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str | bytes], str]:
    """A function that writes a program file and gives its name."""

    def write(text: str | bytes) -> str:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.tx"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


STATUSES = [
    ("x = 1", 0, ""),
    ("raise ValueError('no')", 1, "ValueError: no"),
    ("unknown", 1, "NameError: name 'unknown' is not defined"),
    ("(1, 2).nothing", 1, "AttributeError: 'tuple' object has no attribute 'nothing'"),
    ("1 // 0", 1, "ZeroDivisionError"),
    ("x = ", 3, "SyntaxError: invalid syntax"),
    ("class A: pass", 3, "SyntaxError: a class definition is not part of the language"),
    ("import os", 3, "SyntaxError: "),
    ("print(1)\nyield 3", 3, "SyntaxError"),
    ("(" * 10_000 + ")" * 10_000, 3, "SyntaxError: the text is nested too deeply"),
    ("x = '\0'", 3, "SyntaxError"),
    ("assert 1 > 2, 'smaller'", 5, "AssertionError: smaller"),
    ("raise AssertionError('by hand')", 5, "AssertionError: by hand"),
    ("zeros(10**15)", 6, "LimitError: "),
    ("x = [0] * 10**15", 6, "LimitError: "),
    ("10 ** 10 ** 10", 6, "LimitError: "),
    ("x = 'a' * 10**12", 6, "LimitError: "),
    ("def f(n):\n    return f(n)\nf(1)", 6, "LimitError: "),
    (
        "try:\n    zeros(10**15)\nexcept Exception:\n    pass\nfinally:\n    print(1)",
        6,
        "LimitError",
    ),
]


@pytest.mark.parametrize(("text", "status", "message"), STATUSES, ids=range(len(STATUSES)))
def test_exit_statuses(text: str, status: int, message: str) -> None:
    world = World()
    assert world.run("eval", text) == status, world.err
    assert world.err.startswith(message)
    assert world.out == ""
    assert "Traceback" not in world.err


def test_files_that_cannot_be_read(program: Callable[[str | bytes], str], tmp_path: Path) -> None:
    world = World()
    assert world.run("run", str(tmp_path / "missing.tx")) == 4
    assert "No such file or directory" in world.err
    assert World().run("run", str(tmp_path)) == 4
    world = World()
    assert world.run("run", program(b"x = '\xff'")) == 3
    assert world.err.startswith("SyntaxError: the text is not UTF-8")


def test_the_first_failing_file_gives_the_status(program: Callable[[str | bytes], str]) -> None:
    world = World()
    files = [program("print(1)"), program("assert 0"), program("x = "), program("print(2)")]
    assert world.run("run", *files) == 5
    assert world.out == "1\n2\n"


def test_every_file_has_a_session_of_its_own(program: Callable[[str | bytes], str]) -> None:
    world = World()
    assert world.run("run", program("x = 1"), program("x")) == 1
    assert world.err.startswith("NameError")


def test_limits_by_flag() -> None:
    loop = "while True:\n    pass"
    for flag, message in (
        ("--time-limit=0.05", "ran longer than 0.05 s"),
        ("--step-limit=1000", "more than 1000 loop steps"),
    ):
        world = World()
        assert world.run("eval", loop, flag) == 6
        assert message in world.err
    world = World()
    assert world.run("eval", "--output-limit=100", "while True:\n    print('line')") == 6
    assert len(world.out) <= 100


def test_text_comes_from_standard_input() -> None:
    assert out(stdin=b"1 + 1\r\nprint('a')\n") == "2\na\n"
    assert out("run", "-", stdin=b"1 + 1") == "2\n"
    assert out("run", stdin=b"1 + 1") == "2\n"
    assert out("eval", "x = 2", "-", "x", stdin=b"x += 1\n") == "3\n"
    assert out(stdin="﻿'é'".encode()) == "'é'\n"


def test_arguments_of_eval_are_one_program() -> None:
    assert out("eval", "x = 2", "x * 3", "if x:", "    print('yes')") == "6\nyes\n"


def test_errors_name_the_line() -> None:
    world = World()
    assert world.run("eval", "x = 2", "y = x +  z") == 1
    assert world.err == (
        "NameError: name 'z' is not defined\n --> expression:2:10\n2 | y = x +  z\n  |          ^\n"
    )


SHOWN = [
    ("1; 2", (), "1\n2\n"),
    ("x = 1", (), ""),
    ("for i in range(2): i", (), ""),
    ("if 1: 5", (), "5\n"),
    ("try:\n    6\nfinally:\n    7", (), "6\n7\n"),
    ("def f():\n    3\nf()", (), ""),
    ("None", (), ""),
    ("1; 2", ("--show=last",), "2\n"),
    ("1\nprint(3)\nx = 2", ("--show=last",), "3\n"),
    ("1\nprint(3)\n2", ("--show=none",), "3\n"),
    ("for i in range(2): i", ("--show=all",), "0\n1\n"),
    ("x = zeros(2)\nx.add_(1)", (), "tensor([1., 1.])\n"),
    ("x = zeros(2)\nx.add_(1)\nx = 0", (), ""),
    ("x = zeros(2)\nx.add_(1)\nx = 0", ("--show=all",), "tensor([1., 1.])\n"),
]


@pytest.mark.parametrize(("text", "flags", "wanted"), SHOWN)
def test_which_values_are_shown(text: str, flags: tuple[str, ...], wanted: str) -> None:
    assert out("eval", *flags, text) == wanted


def test_run_does_not_show_its_last_value_in_any_case() -> None:
    assert out("run", "-", stdin=b"x = zeros(2)\nx.add_(1)") == ""


def test_settings_from_variables_and_wrong_ones() -> None:
    world = World(TENSORCLI_SHOW="none")
    assert (world.run("eval", "1"), world.out) == (0, "")
    world = World(TENSORCLI_SHOW="no")
    assert world.run("eval", "1") == 2
    assert world.err.startswith("UsageError: TENSORCLI_SHOW: 'no' is not one of")


def test_control_characters_reach_pipes_only() -> None:
    assert out("eval", "print('\\x1b[31m')") == "\x1b[31m\n"
    world = World(terminal=True)
    assert world.run("eval", "print('\\x1b[31m')") == 0
    assert world.out == "\\x1b[31m\n"


def test_integers_too_long_to_write_are_the_programs_mistake() -> None:
    world = World()
    assert world.run("eval", "2 ** 100000") == 1
    assert world.err.startswith("ValueError: Exceeds the limit")


def test_faults_of_ours_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorcli import results, session
    from tensorcli.render import plain

    def broken(*arguments: object, **named: object) -> None:
        raise KeyError("inside")

    monkeypatch.setattr(session, "compile_program", broken)
    world = World()
    assert world.run("eval", "1") == 1
    assert world.err == "InternalError: internal fault: KeyError: 'inside'\n"
    monkeypatch.undo()
    monkeypatch.delitem(plain.TEXTS, results.ValueResult)
    world = World()
    assert world.run("eval", "try:", "    1", "except Exception:", "    pass") == 1
    assert world.err.startswith("InternalError: internal fault: KeyError")
    world = World(TENSORCLI_DEBUG="1")
    assert world.run("eval", "1") == 1
    assert "Traceback" in world.err
