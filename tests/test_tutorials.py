"""Runs the programs of tests/tutorials: what an introduction to tensors and gradients teaches.

Each file asserts its results itself. Those in `refused/` name in their first line the error that
their last line ends in, as PyTorch words it. tests/differential runs the same files in PyTorch.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "tutorials"
PROGRAMS = sorted(FOLDER.glob("*.tx"))
REFUSED = sorted(FOLDER.glob("refused/*.tx"))


@pytest.fixture(scope="module")
def records() -> dict[str, list[dict[str, object]]]:
    """What `run --json` says of every program, each in a fresh session of one process."""
    process = subprocess.run(
        [sys.executable, "-P", "-m", "tensorcli", "run", "--json", *PROGRAMS, *REFUSED],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
    )
    found: dict[str, list[dict[str, object]]] = {}
    for line in process.stdout.splitlines():
        record = json.loads(line)
        found.setdefault(record["file"], []).append(record)
    return found


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program(path: Path, records: dict[str, list[dict[str, object]]]) -> None:
    assert records[str(path)][-1]["kind"] == "end"
    errors = [
        f"line {record['line']}: {record['type']}: {record['message']}"
        for record in records[str(path)]
        if record["kind"] == "error"
    ]
    assert not errors


@pytest.mark.parametrize("path", REFUSED, ids=lambda path: path.stem)
def test_refusal(path: Path, records: dict[str, list[dict[str, object]]]) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    expected, _, message = lines[0].removeprefix("# ").partition(": ")
    *_, error, end = records[str(path)]
    assert (error["kind"], end["kind"]) == ("error", "end")
    assert (error["type"], error["message"]) == (expected, message)
    assert error["line"] == len(lines)
