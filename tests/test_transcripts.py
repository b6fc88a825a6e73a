"""Runs the transcripts: command lines and what they print, in tests/transcripts and README.md.

A transcript is a text file. A line that starts with `$ ` is a command for sh, the lines up to the
next one are its output, standard error included, as a pipe gets it; a last line `[exit 3]` stands
for an exit status other than 0. Text above the first command is a comment. In README.md the fenced
blocks marked `console` are transcripts. A line of output that is `...` alone stands for any lines.

The commands of one file run in order in one empty folder that holds the examples of scripts/.
`pytest --update-transcripts` writes the actual output into the files.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from difflib import unified_diff
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "transcripts"
FENCE = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)


def shell(folder: Path) -> dict[str, str]:
    """An environment of its own for the commands, with `tensorcli` and `scripts/…` at hand."""
    commands = folder / ".bin"
    commands.mkdir()
    launcher = commands / "tensorcli"
    launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m tensorcli "$@"\n')
    launcher.chmod(0o755)
    examples = folder / "scripts"
    examples.mkdir()
    for path in sorted((ROOT / "scripts").iterdir()):
        if path.suffix in (".tx", ".sh"):
            shutil.copy(path, examples)
    shutil.copy(launcher, examples / "tensorcli")
    return {
        "PATH": f"{commands}:{os.defpath}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        "LC_ALL": "C.UTF-8",
        "COLUMNS": "80",
        "TERM": "dumb",
    }


def run(command: str, folder: Path, environment: dict[str, str]) -> str:
    """What the command prints, and its exit status unless 0."""
    process = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
        check=False,
    )
    text = process.stdout.decode()
    if text and not text.endswith("\n"):
        text += "\n"
    return text + (f"[exit {process.returncode}]\n" if process.returncode else "")


def replay(transcript: str, folder: Path, environment: dict[str, str]) -> str:
    """The transcript with the output that its commands have now."""
    blocks = re.split(r"^(?=\$ )", transcript, flags=re.MULTILINE)
    result = blocks[:1]
    for block in blocks[1:]:
        command, _, expected = block.partition("\n")
        while command.endswith("\\"):  # a command that goes on in the next line
            more, _, expected = expected.partition("\n")
            command += "\n" + more
        trailing = "\n" * (len(expected) - len(expected.rstrip("\n")) - 1)
        actual = run(command[2:], folder, environment)
        pattern = re.escape(expected.rstrip("\n") + "\n" if expected.strip() else "")
        if re.fullmatch(re.sub(r"(?m)^\\.\\.\\.\n", r"(?:.*\n)*?", pattern), actual):
            result.append(block)
        else:
            result.append(f"{command}\n{actual}{trailing}")
    return "".join(result)


def check(path: Path, text: str, actual: str, update: bool) -> None:
    """Compare, or rewrite the file."""
    if actual == text:
        return
    if update:
        path.write_text(actual, encoding="utf-8")
        return
    lines = text.splitlines(), actual.splitlines()
    pytest.fail("\n".join(unified_diff(*lines, "expected", "actual", n=2, lineterm="")))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_transcript(path: Path, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.search(r"^\$ ", text, re.MULTILINE), "a transcript without a command"
    actual = replay(text, tmp_path, shell(tmp_path))
    check(path, text, actual, pytestconfig.getoption("update_transcripts"))


def test_readme(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    path = ROOT / "README.md"
    text = path.read_text(encoding="utf-8")
    environment = shell(tmp_path)
    actual = FENCE.sub(lambda match: replay(match[0], tmp_path, environment), text)
    check(path, text, actual, pytestconfig.getoption("update_transcripts"))
