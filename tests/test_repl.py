"""The prompt, by keys typed into it: what is evaluated, what is shown, what never ends it."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from tensorcli.environment import Environment
from tensorcli.repl.completing import Completing
from tensorcli.repl.loop import Loop
from tensorcli.repl.plain_reader import PlainReader
from tensorcli.repl.prompt import PromptReader, history
from tensorcli.session import Session
from tensorcli.settings import Settings

ROOT = Path(__file__).resolve().parent.parent


class World:
    """An environment in memory, with what was written to it."""

    def __init__(self, folder: Path, stdin: str = "") -> None:
        self.out, self.err = StringIO(), StringIO()
        self.environment = Environment(
            stdin=StringIO(stdin),
            stdout=self.out,
            stderr=self.err,
            variables={"XDG_STATE_HOME": str(folder), "TERM": "dumb"},
            width=80,
        )
        self.settings = Settings(format="plain", seed=0)
        self.session = Session(self.environment, self.settings)

    def type(self, keys: str) -> str:
        """What the prompt writes when these keys are typed, until Ctrl-D at the end."""
        with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
            pipe.send_text(keys + "\x04")
            reader = PromptReader(self.session, self.environment)
            assert Loop(self.session, self.environment, self.settings, reader).run() == 0
        return self.out.getvalue().partition("\n")[2]

    def read(self) -> str:
        """What a terminal of lines shows for the lines of standard input."""
        reader = PlainReader(self.environment)
        assert Loop(self.session, self.environment, self.settings, reader).run() == 0
        return self.out.getvalue()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


ENTER, NEW_LINE, TAB, CTRL_C = "\r", "\x1b\r", "\t", "\x03"


def test_a_value_is_shown(world: World) -> None:
    assert world.type("1 + 1" + ENTER) == "2\n"


def test_the_latest_value_is_underscore(world: World) -> None:
    shown = world.type("6 * 7" + ENTER + "x = _ + 1" + ENTER + "_" + ENTER + "x" + ENTER)
    assert shown.split() == ["42", "x", "=", "43", "42", "43"]


def test_explanations_prefer_other_names_to_underscore(world: World) -> None:
    typed = "torch.ones(2, 3)" + ENTER + "x = _" + ENTER + "y = x.t()" + ENTER + ":layout y" + ENTER
    assert re.search(r"view of +x\n", world.type(typed))


def test_an_assignment_shows_one_line(world: World) -> None:
    shown = world.type("x = torch.ones(3)" + ENTER + "y = torch.zeros(9, 9).t()[1:]" + ENTER)
    first, second = shown.splitlines()
    assert first == "x = tensor([1., 1., 1.])"
    assert second.startswith("y : float32 [8, 9]")
    assert "not contiguous" in second


def test_a_block_goes_on_until_a_blank_line_and_indents_itself(world: World) -> None:
    shown = world.type("for i in range(2):" + ENTER + "print(i)" + ENTER + "\x7f" * 4 + ENTER)
    assert shown == "0\n1\n"


def test_an_open_bracket_goes_on(world: World) -> None:
    assert world.type("(1 +" + ENTER + "2)" + ENTER) == "3\n"


def test_errors_keep_the_prompt_alive(world: World) -> None:
    shown = world.type(
        "torch.ones(2) + torch.ones(3)"
        + ENTER
        + "x = ="
        + ENTER
        + "raise ValueError('mine')"
        + ENTER
        + "1"
        + ENTER
    )
    assert shown == "1\n"
    errors = world.err.getvalue()
    assert "The size of tensor a (2) must match" in errors
    assert "SyntaxError" in errors
    assert "ValueError: mine" in errors


def test_control_c_drops_the_line(world: World) -> None:
    assert world.type("1 + " + CTRL_C + "2" + ENTER) == "2\n"


def test_tab_completes_names_attributes_and_commands(world: World) -> None:
    world.session.run("temperature = torch.ones(2)", lambda result: None)

    def candidates(text: str) -> list[str]:
        found = Completing(world.session.names).get_completions(
            Document(text, len(text)), CompleteEvent()
        )
        return [completion.text for completion in found]

    assert "temperature" in candidates("1 + temp")
    assert "requires_grad" in candidates("temperature.requ")
    assert "arange" in candidates("torch.ara")
    assert candidates(":lay") == ["layout"]
    assert "temperature" in candidates(":layout temp")
    assert not [name for name in candidates("temperature.") if name.startswith("_")]


def test_tab_at_the_start_of_a_line_indents(world: World) -> None:
    assert world.type("if True:" + NEW_LINE + TAB + "3" + ENTER + ENTER) == "3\n"


def test_commands(world: World) -> None:
    world.type("x = 3" + ENTER + ":vars" + ENTER + ":reset" + ENTER + ":vars" + ENTER)
    assert re.search(r"(?m)^x +3$", world.out.getvalue())
    assert "no names yet" in world.out.getvalue()


def test_layout_command_is_the_call(world: World) -> None:
    shown = world.type("x = torch.ones(2, 3).t()" + ENTER + ":layout x" + ENTER)
    assert "(1, 3)" in shown


def test_an_unknown_command_is_a_mistake(world: World) -> None:
    assert world.type(":nonsense" + ENTER + "1" + ENTER) == "1\n"
    assert "no command :nonsense" in world.err.getvalue()


def test_quit_leaves(world: World) -> None:
    assert world.type(":quit" + ENTER + "1" + ENTER) == ""


def test_help_lists_every_command_and_shows_pages(world: World) -> None:
    shown = world.type(":help" + ENTER + ":help exp" + ENTER)
    assert ":layout X" in shown
    assert "exp(input" in shown
    assert "Tensor.exp_" in shown


def test_the_page_of_a_setting_leaves_it(world: World) -> None:
    pages = ("set_default_dtype", "set_printoptions", "set_num_threads", "set_autocast_enabled")
    ask = "torch.tensor([0.1]).dtype, torch.get_num_threads(), torch.is_autocast_enabled('cpu')"
    shown = world.type("".join(f":help {page}{ENTER}" for page in pages) + ask + ENTER)
    assert "(torch.float32, 1, False)" in shown


def test_a_page_leaves_no_trace(tmp_path: Path) -> None:
    before, after = "torch.manual_seed(1)" + ENTER, "torch.rand(1)" + ENTER
    plain = World(tmp_path).type(before + after)
    with_page = World(tmp_path).type(before + ":help exp" + ENTER + after)
    assert with_page.splitlines()[-1] == plain.splitlines()[-1]


def test_pasted_prompts(world: World) -> None:
    pasted = "\x1b[200~>>> x = 2\n>>> x + 1\n3\n\x1b[201~"
    assert world.type(pasted + ENTER).splitlines()[0] == "3"


def test_history_is_kept_for_its_owner_only(world: World, tmp_path: Path) -> None:
    world.type("1 + 41" + ENTER)
    kept = tmp_path / "tensorcli" / "history"
    assert "+1 + 41" in kept.read_text()
    assert kept.stat().st_mode & 0o077 == 0


def test_without_a_place_for_history(tmp_path: Path) -> None:
    (tmp_path / "tensorcli").write_text("in the way")
    world = World(tmp_path)
    assert type(history(world.environment)).__name__ == "InMemoryHistory"
    assert world.type("1" + ENTER) == "1\n"


def test_a_terminal_of_lines(tmp_path: Path) -> None:
    world = World(tmp_path, "x = 2\nfor i in range(2):\n    print(i)\n\nx +\n1 + 1")
    shown = world.read()
    assert shown.startswith(">>> x = 2\n>>> ... ... 0\n1\n")
    assert "SyntaxError" in world.err.getvalue()
    assert shown.endswith(">>> 2\n>>> \n")


class Terminal:
    """The program in a real pseudo-terminal."""

    def __init__(self, folder: Path) -> None:
        self._leader, follower = pty.openpty()
        environment = {
            **{name: os.environ[name] for name in ("PATH", "PYTHONPATH")},
            "XDG_STATE_HOME": str(folder),
            "TERM": "xterm",
            "COLUMNS": "80",
            "LC_ALL": "C.UTF-8",
            "PROMPT_TOOLKIT_NO_CPR": "1",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tensorcli"],
            stdin=follower,
            stdout=follower,
            stderr=follower,
            env=environment,
            start_new_session=True,
        )
        os.close(follower)
        self.seen = ""
        self._at = 0

    def send(self, keys: str) -> None:
        os.write(self._leader, keys.encode())

    def wait_for(self, text: str, seconds: float = 10) -> None:
        """Read until the text appears after what was waited for before."""
        end = time.monotonic() + seconds
        while text not in self.seen[self._at :]:
            ready, _, _ = select.select([self._leader], [], [], max(0, end - time.monotonic()))
            assert ready, f"{text!r} did not appear in {self.seen[self._at :]!r}"
            self.seen += os.read(self._leader, 65536).decode(errors="replace")
        self._at = self.seen.index(text, self._at) + len(text)

    def close(self) -> int:
        """The exit status; ends the program if it has not left."""
        try:
            return self.process.wait(timeout=10)
        finally:
            self.process.kill()
            os.close(self._leader)


def test_in_a_real_terminal(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    terminal.wait_for(">>> ")
    terminal.send("x = torch.arange(3.)\r")
    terminal.wait_for("tensor([0., 1., 2.])")
    terminal.send("while True: pass\r\r")
    time.sleep(0.5)
    os.kill(terminal.process.pid, signal.SIGINT)
    terminal.wait_for("interrupted")
    terminal.send("x.sum() * 14\r")
    terminal.wait_for("tensor(42.)")
    terminal.wait_for(">>> ")
    terminal.send("\x04")
    assert terminal.close() == 0
