"""The scripts that set themselves up: quiet and quick when ready, clear when they cannot."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "scripts" / "tensorcli"


@pytest.fixture(scope="module")
def environment() -> ModuleType:
    """scripts/environment.py as a module."""
    spec = importlib.util.spec_from_file_location("environment", ROOT / "scripts/environment.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    """A folder that passes for a finished environment: this interpreter, and the stamps."""
    folder = tmp_path / "venv"
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    for name in ("base", "test", "oracle"):
        (folder / f"ready-{name}").write_text(f"{ROOT}\n")
    return folder


def run(
    *command: object, venv: Path, stdin: str = "", cwd: Path = ROOT, **variables: str
) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a script with that environment."""
    process = subprocess.run(
        [str(word) for word in command],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "TENSORCLI_VENV": str(venv), **variables},
        timeout=60,
    )
    return process.returncode, process.stdout, process.stderr


def test_a_ready_environment_is_used_without_a_word(ready: Path) -> None:
    assert run(SCRIPT, "eval", "1 + 1", venv=ready) == (0, "2\n", "")


def test_status_arguments_and_input_pass_through(ready: Path) -> None:
    status, out, _ = run(SCRIPT, "eval", "'a  b'", "assert False", venv=ready)
    assert (status, out) == (5, "'a  b'\n")
    assert run(SCRIPT, "run", "-", venv=ready, stdin="2 * 3\n") == (0, "6\n", "")


def test_from_another_folder_and_through_links(ready: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(SCRIPT)
    second = tmp_path / "folder" / "second"
    second.parent.mkdir()
    second.symlink_to(Path("..") / "link")
    (tmp_path / "numpy.py").write_text("raise SystemExit('not this one')")
    assert run(second, "eval", "ones(1)", venv=ready, cwd=tmp_path) == (0, "tensor([1.])\n", "")


def test_no_interpreter_is_said(tmp_path: Path) -> None:
    status, out, err = run(SCRIPT, "eval", "1", venv=tmp_path / "venv", PYTHON="python2.7")
    assert (status, out) == (69, "")
    assert "needs Python 3.11 or newer" in err


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "venv").mkdir()
    precious = tmp_path / "venv" / "precious"
    precious.touch()
    python = sys.executable
    status, out, err = run(SCRIPT, "eval", "1", venv=tmp_path / "venv", PYTHON=python)
    assert (status, out) == (69, "")
    assert "was not made by these scripts" in err
    assert precious.exists()


def test_what_makes_an_environment_ready(environment: ModuleType, ready: Path) -> None:
    assert environment.is_ready(ready, "base")
    stamp = ready / "ready-base"
    before = (ROOT / "pyproject.toml").stat().st_mtime - 1
    os.utime(stamp, (before, before))
    assert not environment.is_ready(ready, "base")
    stamp.write_text("/another/checkout\n")
    assert not environment.is_ready(ready, "base")
    stamp.write_text(f"{ROOT}\n")
    assert environment.is_ready(ready, "base")
    (ready / "bin" / "python").unlink()
    assert not environment.is_ready(ready, "base")


@pytest.mark.parametrize("arguments", [[], ["folder", "nonsense"], ["a", "base", "more"]])
def test_wrong_usage(environment: ModuleType, arguments: list[str]) -> None:
    assert environment.main(arguments) == 2
