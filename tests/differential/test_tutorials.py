"""The programs of tests/tutorials hold in PyTorch too: what they assert is PyTorch's behaviour."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

FOLDER = Path(__file__).resolve().parent.parent / "tutorials"


def run_in_pytorch(path: Path) -> None:
    code = compile(path.read_text(encoding="utf-8"), str(path), "exec")
    exec(code, {"__name__": path.stem})


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.tx")), ids=lambda path: path.stem)
def test_program(path: Path) -> None:
    run_in_pytorch(path)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("refused/*.tx")), ids=lambda path: path.stem)
def test_refusal(path: Path) -> None:
    first, _, _ = path.read_text(encoding="utf-8").partition("\n")
    expected, _, message = first.removeprefix("# ").partition(": ")
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the type is compared by its name
        run_in_pytorch(path)
    assert (type(caught.value).__name__, str(caught.value)) == (expected, message)
