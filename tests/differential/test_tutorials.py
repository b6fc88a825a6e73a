"""The programs of tests/tutorials hold in PyTorch too: what they assert is PyTorch's behaviour.

PyTorch runs them in a process of its own: some refused calls of other tests leave it unable to
take derivatives through torch.func.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

FOLDER = Path(__file__).resolve().parent.parent / "tutorials"
PROGRAMS = sorted(FOLDER.glob("*.tx"))
REFUSED = sorted(FOLDER.glob("refused/*.tx"))

RUNNER = """
import json, pathlib, sys
for path in sys.argv[1:]:
    code = compile(pathlib.Path(path).read_text(encoding="utf-8"), path, "exec")
    try:
        exec(code, {"__name__": "__main__"})
        outcome = None
    except Exception as error:
        outcome = [type(error).__name__, str(error)]
    print("\\0" + json.dumps([path, outcome]))
"""


@pytest.fixture(scope="module")
def outcomes() -> dict[str, list[str] | None]:
    """For each program None, or the class and sentence of the exception that ended it."""
    paths = [str(path) for path in (*PROGRAMS, *REFUSED)]
    ran = subprocess.run(
        [sys.executable, "-c", RUNNER, *paths], capture_output=True, text=True, check=True
    )
    return dict(json.loads(line[1:]) for line in ran.stdout.splitlines() if line[:1] == "\0")


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program(path: Path, outcomes: dict[str, list[str] | None]) -> None:
    assert outcomes[str(path)] is None


@pytest.mark.parametrize("path", REFUSED, ids=lambda path: path.stem)
def test_refusal(path: Path, outcomes: dict[str, list[str] | None]) -> None:
    first, _, _ = path.read_text(encoding="utf-8").partition("\n")
    expected, _, message = first.removeprefix("# ").partition(": ")
    assert outcomes[str(path)] == [expected, message]
