"""Heat maps as pictures: the two protocols, and the question to the terminal."""

from __future__ import annotations

import base64
import os
import pty
import re
import select
import subprocess
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import pytest

from tensorcli.explain.summaries import heatmap
from tensorcli.render import images
from tensorcli.terminal_pictures import QUESTION, protocol_in

ROOT = Path(__file__).resolve().parent.parent


def result() -> object:
    from engine.registry import functions

    values = [[0.0, 1.0, 2.0], [3.0, 4.0, float("nan")]]
    return heatmap(functions["tensor"](values), "x", False)


def test_kitty_carries_the_pixels() -> None:
    text = images.kitty(result())  # type: ignore[arg-type]  # a heat map
    pieces = re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b", text)
    assert all(len(data) <= images.CHUNK for _, data in pieces)
    assert [head[-3:] for head, _ in pieces] == ["m=1"] * (len(pieces) - 1) + ["m=0"]
    head = dict(part.split("=") for part in pieces[0][0].split(","))
    assert (head["a"], head["f"], head["o"]) == ("T", "24", "z")
    width, height = int(head["s"]), int(head["v"])
    data = zlib.decompress(base64.standard_b64decode("".join(data for _, data in pieces)))
    pixels = np.frombuffer(data, np.uint8).reshape(height, width, 3)
    assert (width, height) == (480, 320)
    assert pixels[0, 0].tolist() == [0, 0, 95]
    assert pixels[-1, -1].tolist() == [255, 0, 0]
    assert pixels[-1, width // 2].tolist() == [255, 255, 215]


def decoded(text: str) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """The colours' numbers of a sixel picture."""
    body = text[text.index("q") + 1 : text.rindex("\x1b")]
    size = re.match(r'"1;1;(\d+);(\d+)', body)
    assert size is not None
    width, height = map(int, size.groups())
    grid = np.full((height, width), -1, dtype=np.int64)
    body = re.sub(r"#\d+;2;\d+;\d+;\d+", "", body[size.end() :])
    for number, band in enumerate(body.split("-")):
        for one in band.split("$"):
            colour = re.match(r"#(\d+)", one)
            assert colour is not None
            x = 0
            for count, sign in re.findall(r"(?:!(\d+))?([?-~])", one[colour.end() :]):
                for bit in range(6):
                    if (ord(sign) - 63) >> bit & 1:
                        grid[number * 6 + bit, x : x + int(count or 1)] = int(colour.group(1))
                x += int(count or 1)
    return grid


def test_sixel_carries_the_colours() -> None:
    found = result()
    grid = decoded(images.sixel(found))  # type: ignore[arg-type]  # a heat map
    assert np.array_equal(grid, images.enlarged(images.levels(found)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "protocol"),
    [
        ("\x1b_Gi=31;OK\x1b\\\x1b[?62;c", "kitty"),
        ("\x1b_Gi=31;ENOTSUP\x1b\\\x1b[?62;4;22c", "sixel"),
        ("\x1b[?62;4c", "sixel"),
        ("\x1b[?1;2c", None),
        ("\x1b[?64;14;44c", None),
        ("", None),
    ],
)
def test_answers(answer: str, protocol: str | None) -> None:
    assert protocol_in(answer) == protocol


@pytest.mark.parametrize(
    ("answer", "sign"),
    [
        (b"\x1b_Gi=31;OK\x1b\\\x1b[?62;c", b"\x1b_Ga=T"),
        (b"\x1b[?62;4c", b"\x1bP0;1;0q"),
        (b"\x1b[?1;2c", "\u2580".encode()),
        (None, "\u2580".encode()),
    ],
)
def test_a_terminal_is_asked(answer: bytes | None, sign: bytes) -> None:
    """The other end of a terminal answers, or does not."""
    text = talk("heatmap(torch.arange(6.).view(2, 3))", answer)
    assert QUESTION.encode() in text
    assert sign in text
    assert b"[2, 3]" in text


def test_it_is_asked_only_for_pictures() -> None:
    assert QUESTION.encode() not in talk("torch.ones(2)", None)


def talk(program: str, answer: bytes | None) -> bytes:
    """What a command writes to its terminal, which answers so."""
    parent, child = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "tensorcli", "eval", program],
        stdin=child, stdout=child, stderr=child, cwd=ROOT, env=environment, close_fds=True,
    )  # fmt: skip
    os.close(child)
    found, asked, end = b"", False, time.monotonic() + 30
    while time.monotonic() < end:
        if not select.select([parent], [], [], 0.1)[0]:
            if process.poll() is not None:
                break
            continue
        try:
            part = os.read(parent, 65536)
        except OSError:  # the child is gone
            break
        found += part
        if not asked and QUESTION.encode() in found and answer is not None:
            asked = True
            os.write(parent, answer)
    process.wait(10)
    os.close(parent)
    return found
