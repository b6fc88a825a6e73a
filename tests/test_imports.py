"""What a process did not import: start-up is paid by every command, so it is held here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

NEVER_EARLY = {"cupy", "torch", "asyncio", "inspect", "unittest", "concurrent", "urllib", "http"}
INTERACTIVE = {"typer", "click", "prompt_toolkit", "pygments", "pydantic", "argparse"}

# Command line (after `tensorcli`), standard input, what must not be among the loaded modules.
CASES = {
    "version": (["--version"], "", {"numpy", "engine", "rich", *INTERACTIVE, *NEVER_EARLY}),
    "eval": (
        ["eval", "1 + 1"],
        "",
        {"rich", "scipy", "ml_dtypes", "safetensors", "json", *INTERACTIVE, *NEVER_EARLY},
    ),
    "eval of tensors": (
        ["eval", "(tensor([1., 2.]) * 2).sum()"],
        "",
        {"rich", "scipy", "ml_dtypes", "safetensors", *INTERACTIVE, *NEVER_EARLY},
    ),
    "standard input": (
        ["run", "-"],
        "x = torch.ones(2)\nprint(x)\n",
        {"rich", "scipy", "ml_dtypes", "safetensors", *INTERACTIVE, *NEVER_EARLY},
    ),
    "json": (
        ["eval", "--json", "ones(2)"],
        "",
        {"rich", "scipy", "ml_dtypes", "safetensors", *INTERACTIVE, *NEVER_EARLY},
    ),
    "error": (
        ["eval", "ones(2) + ones(3)"],
        "",
        {"rich", "scipy", "ml_dtypes", "safetensors", *INTERACTIVE, *NEVER_EARLY},
    ),
}


def loaded(arguments: list[str], stdin: str) -> set[str]:
    """The top-level names of the modules that a command loads (`-X importtime` names each)."""
    process = subprocess.run(
        [sys.executable, "-P", "-X", "importtime", "-m", "tensorcli", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"},
        timeout=60,
    )
    lines = [line for line in process.stderr.splitlines() if line.startswith("import time:")]
    assert lines, process.stderr
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


@pytest.fixture(scope="module")
def numpy_alone() -> set[str]:
    """What numpy loads for itself: no doing of ours."""
    process = subprocess.run(
        [sys.executable, "-P", "-X", "importtime", "-c", "import numpy"],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in process.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines} - {"numpy"}


@pytest.mark.parametrize("case", CASES)
def test_not_imported(case: str, numpy_alone: set[str]) -> None:
    arguments, stdin, unwanted = CASES[case]
    assert not (loaded(arguments, stdin) - numpy_alone) & unwanted
