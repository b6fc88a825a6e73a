"""What only a real process shows: closed pipes, full disks, signals, the watchdog."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
COMMAND = [sys.executable, "-P", "-m", "tensorcli"]
ENVIRONMENT = {"PATH": os.defpath, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", "HOME": "/nowhere"}


def start(*arguments: str, **options: object) -> subprocess.Popen[str]:
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    return subprocess.Popen(
        [*COMMAND, *arguments],
        text=True,
        env=ENVIRONMENT,
        **{**streams, **options},  # type: ignore[call-overload]  # options of Popen
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


def test_a_closed_pipe_ends_quietly() -> None:
    process = start("eval", "while True: print('y')")
    assert process.stdout is not None
    assert process.stdout.readline() == "y\n"
    process.stdout.close()
    assert process.wait(timeout=30) == 0
    assert process.stderr is not None
    assert process.stderr.read() == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_said() -> None:
    with open("/dev/full", "w") as full:
        status, _, err = finish(start("eval", "1", stdout=full))
    assert (status, err) == (4, "tensorcli: cannot write: No space left on device\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["eval", "--help"], ["ops"]])
def test_a_full_disk_is_said_by_every_command(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        status, _, err = finish(start(*arguments, stdout=full))
    assert (status, err) == (4, "tensorcli: cannot write: No space left on device\n")


def test_interrupted() -> None:
    process = start("run", "--json", "-", stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("print('begun')\nwhile True: pass\n")
    process.stdin.close()
    process.stdin = None
    assert '"begun"' in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    status, out, err = finish(process)
    assert status == 130
    assert '"code":"interrupted"' in out
    assert out.endswith('{"schema":1,"kind":"end","file":"-"}\n')
    assert err == ""


def test_the_watchdog_ends_a_kernel_that_does_not_come_back() -> None:
    product = " @ ".join(["x"] * 200)
    text = f"print(1)\nx = torch.ones(2000, 2000)\ny = {product}"
    begun = time.monotonic()
    status, out, err = finish(start("eval", "--time-limit", "0.2", text))
    assert status == 6
    assert out == "1\n"
    assert err.startswith("LimitError: ran longer than 0.2 s\n")
    assert time.monotonic() - begun < 10


def test_a_kernel_that_does_not_come_back_is_interrupted() -> None:
    text = "x = torch.ones(8000, 8000)\nprint(1)\ny = x @ x"
    process = start("run", "--json", "-", stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(text)
    process.stdin.close()
    process.stdin = None
    assert '"text":"1"' in process.stdout.readline()
    time.sleep(0.1)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    status, out, err = finish(process)
    assert status == 130
    assert '"code":"interrupted"' in out
    assert out.endswith('{"schema":1,"kind":"end","file":"-"}\n')
    assert err == ""
    assert time.monotonic() - begun < 4


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs RLIMIT_DATA")
def test_what_kernels_take_unasked_is_limited() -> None:
    text = "x = ones(1).expand(10 ** 9)\nx.kthvalue(3)"
    status, _, err = finish(start("eval", "--memory-limit", "200M", text))
    assert status == 6
    assert err.startswith("LimitError: out of memory\n")
    status, out, _ = finish(
        start("eval", "--memory-limit", "200M", "x = ones(1000, 1000)\n(x @ x).sum()")
    )
    assert (status, out) == (0, "tensor(1.0000e+09)\n")


def test_a_shell_that_asks_for_completions_gets_them() -> None:
    asking = {
        "_TENSORCLI_COMPLETE": "complete_bash",
        "COMP_WORDS": "tensorcli e",
        "COMP_CWORD": "1",
    }
    process = subprocess.run(
        COMMAND,
        env={**ENVIRONMENT, **asking},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert process.stdout.split() == ["eval"]


def test_missing_standard_streams_do_no_harm() -> None:
    closing = f'exec "{sys.executable}" -P -m tensorcli eval "1 + unknown" >&- 2>&- <&-'
    process = subprocess.run(["sh", "-c", closing], env=ENVIRONMENT, timeout=30, check=False)
    assert process.returncode == 1


def test_an_argument_that_is_not_utf8_is_refused() -> None:
    process = subprocess.run(
        [*(part.encode() for part in COMMAND), b"eval", b"'\xff'"],
        env=ENVIRONMENT,
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert process.returncode == 3
    assert b"SyntaxError" in process.stderr
    assert b"Traceback" not in process.stderr


def test_ascii_streams_escape_what_they_cannot_write() -> None:
    environment = {**ENVIRONMENT, "PYTHONIOENCODING": "ascii"}
    process = subprocess.run(
        [*COMMAND, "eval", "--rich", "'é'", "ones(1)"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert process.stdout.startswith("'\\xe9'\ntensor([1.])\nfloat32 [1] - cpu - 4 B")


def test_every_operation_is_known_before_any_is_used() -> None:
    """Families are imported when their names are used; what lists names must not wait for that."""
    status, out, _ = finish(start("ops", "matmul"))
    assert status == 0
    assert out.startswith("matmul(")
    status, out, _ = finish(start("ops"))
    assert out.count("\n") > 500
    _, _, err = finish(start("eval", "torch.linalg.eigvalz(1)"))
    assert "did you mean" in err
    script = (
        "from tensorcli.language.completion import complete\n"
        "from engine.tensor import Tensor\n"
        "import tensorcli.language.program\n"
        "for text in ('torch.linalg.eigv', 'x.unsq', 'torch.unsqueeze(d'):\n"
        "    print([c.text for c in complete(text, len(text), {'x': Tensor()})])\n"
    )
    command = [sys.executable, "-P", "-c", script]
    found = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    assert "eigvalsh" in found.stdout
    assert "'unsqueeze'" in found.stdout
    assert "'dim='" in found.stdout


@pytest.mark.parametrize("change", ["x.grad = None", "x.data = ones(2)", "x.requires_grad = False"])
def test_an_attribute_may_be_set_before_it_is_read(change: str) -> None:
    """The module that knows an attribute is loaded by whatever asks for it first."""
    assert finish(start("eval", f"x = zeros(2, requires_grad=True); {change}")) == (0, "", "")


def test_an_attribute_that_cannot_be_set_has_its_owner_named() -> None:
    _, _, err = finish(start("eval", "x = zeros(2); x.shape = 3"))
    told = "AttributeError: attribute 'shape' of 'torch._C.TensorBase' objects is not writable"
    assert err.startswith(told)
