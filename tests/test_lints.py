"""Hints at silent surprises: where they appear, what they say, that fixes work; and silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tensorcli.results import HintResult, Result
from tensorcli.session import Session
from tensorcli.settings import Settings
from tests.in_memory import World
from tests.json_schema import mistakes

ROOT = Path(__file__).resolve().parent.parent
LEAF = "w = ones(2, requires_grad=True)\n(w * w).sum().backward()\n"

# program -> [(line, code, fixes)]
SURPRISES: list[tuple[str, list[tuple[int, str, list[str]]]]] = [
    (
        "p = ones(4, 1)\nt = arange(4.)\n(p - t).mean()",
        [(3, "outer-broadcast", ["p.squeeze(1) - t", "p - t.unsqueeze(1)"])],
    ),
    (
        "p = ones(4, 1)\nt = ones(4)\n(p == t).sum()",
        [(3, "outer-broadcast", ["p.squeeze(1) == t", "p == t.unsqueeze(1)"])],
    ),
    (
        "g = zeros(2, 3, 2)\nm = ones(2, 3).bool()\ng[m][:, 1] = 5",
        [(3, "write-to-copy", ["g[m, 1] = 5"])],
    ),
    ("x = zeros(4)\nx[[0, 2]].fill_(3)", [(2, "write-to-copy", ["x[[0, 2]] = 3"])]),
    ("x = zeros(4)\nx[tensor([1])].add_(1)", [(2, "write-to-copy", ["x[tensor([1])] += 1"])]),
    ("x = ones(2, 3).t()\nx.reshape(6)[0] = 5", [(2, "write-to-copy", [])]),
    ("x = zeros(3)\nx[tensor([0, 0, 1])] += 1", [(2, "repeated-index", [])]),
    (
        "a = arange(6.).reshape(2, 3)\na -= a[:, :1]",
        [(2, "overlap", ["a -= a[:, :1].clone()"])],
    ),
    (f"{LEAF}w.grad.clamp(-1, 1)\nw", [(3, "unused-result", ["w.grad.clamp_(-1, 1)"])]),
    ("x = zeros(2)\nfor i in range(3):\n    x.add(1)", [(3, "unused-result", ["x.add_(1)"])]),
    ("x = zeros(2)\nx.masked_fill(x == 0, 5.)\nx", [
        (2, "unused-result", ["x.masked_fill_(x == 0, 5.)"])
    ]),
    ("a = tensor([200], dtype=uint8)\na + 100", [(2, "overflow", ["a.long() + 100"])]),
    ("a = tensor([3], dtype=uint8)\na -= 5", [(2, "overflow", [])]),
    ("arange(1, 25).prod()", [(1, "overflow", [])]),
    ("m = tensor([1, 0], dtype=uint8)\n~m", [(2, "inverted-bits", ["~m.bool()"])]),
    ("tensor([-1., 300.]).to(uint8)", [
        (1, "cast", ["tensor([-1., 300.]).clamp(0, 255).to(uint8)"])
    ]),
    ("tensor([nan]).int()", [(1, "cast", ["tensor([nan]).nan_to_num().int()"])]),
    ("x = 55.0 * tensor([1 / 55.0])\nx.int()", [(2, "cast", ["x.round().int()"])]),
    (
        "x = ones(2, requires_grad=True)\ny = x.long()\nz = x * y.float()",
        [(2, "cast", [])],
    ),
    (
        "x = ones(2, requires_grad=True)\nx = x.to(float64)\nx.sum().backward()\nx.grad",
        [(2, "lost-leaf", ["x = x.detach().to(float64).requires_grad_()"])],
    ),
    (
        f"{LEAF}w = w - 0.1 * w.grad",
        [(3, "lost-leaf", ["with torch.no_grad(): w -= 0.1 * w.grad"])],
    ),
    ("w = ones(2, requires_grad=True) * 0.1\nw.sum().backward()\nw.grad", [(1, "lost-leaf", [])]),
    ("m = ones(2, 3)\ns = sum(m)", [(2, "python-sum", ["m.sum()", "m.sum(0)"])]),
    ("c = zeros(4, 3, 2)\nc[:, [0, 1], :, None]\nc[[1], :, [0, 1]]", [(3, "index-order", [])]),
    ("x = tensor([0., 200.])\nx.softmax(0).log()", [(2, "log-of-small", ["x.log_softmax(0)"])]),
    ("x = tensor([1.])\nx == nan", [(2, "nan-equality", ["x.isnan()"])]),
    (
        "s = zeros(1, dtype=float16)\nfor i in range(3):\n    s += 1",
        [(3, "low-precision-sum", [])],
    ),
    (
        "w = ones(2, requires_grad=True)\nfor i in range(3):\n    (w * w).sum().backward()\n"
        "    with no_grad():\n        w -= 0.1 * w.grad",
        [(3, "accumulated-gradient", [])],
    ),
    ("t = arange(0, 1, 1 / 103)", [(1, "arange-end", ["linspace(0, 1, 104)"])]),
]  # fmt: skip


def hints(text: str) -> list[tuple[int, str, list[str]]]:
    world = World()
    assert world.run("eval", "--json", "--hints", "on", text) == 0, world.out
    found = [json.loads(line) for line in world.out.splitlines()]
    found = [one for one in found if one["kind"] == "hint"]
    assert all(mistakes(one) == [] for one in found)
    return [(one["line"], one["code"], [fix["expr"] for fix in one["fixes"]]) for one in found]


@pytest.mark.parametrize(("text", "expected"), SURPRISES)
def test_surprises(text: str, expected: list[tuple[int, str, list[str]]]) -> None:
    assert hints(text) == expected


@pytest.mark.parametrize(("text", "expected"), [s for s in SURPRISES if s[1][0][2]])
def test_fixes_are_silent(text: str, expected: list[tuple[int, str, list[str]]]) -> None:
    """The program with the first fix in the place of the surprise has no such hint any more."""
    [(number, code, fixes)] = expected
    lines = text.split("\n")
    line = lines[number - 1]
    before = line[: len(line) - len(line.lstrip())]
    if code in ("outer-broadcast", "python-sum", "arange-end", "cast", "inverted-bits", "overflow",
                "log-of-small", "nan-equality"):  # fmt: skip
        lines[number - 1] = f"{before}_ = {fixes[0]}"
    else:
        lines[number - 1] = before + fixes[0]
    assert all(found[1] != code for found in hints("\n".join(lines)))


@pytest.mark.parametrize("text", [s[0] for s in SURPRISES])
def test_a_comment_silences(text: str) -> None:
    quiet = "\n".join(f"{line}  # tensorcli: ignore" for line in text.split("\n"))
    assert hints(quiet) == []


def test_a_setting_silences() -> None:
    text = SURPRISES[0][0]
    for arguments, variables in (
        (["--hints", "off"], {}),
        ([], {"TENSORCLI_HINTS": "off"}),
    ):
        world = World(**variables)
        assert world.run("eval", *arguments, text) == 0
        assert world.err == ""


def test_hints_go_to_standard_error() -> None:
    plain, machine = World(), World()
    assert plain.run("eval", "p = ones(4, 1)", "p - ones(4)") == 0
    assert plain.err == (
        "hint: [4, 1] of `p` with [4] of `ones(4)` gives [4, 4]: every element of one\n"
        "      meets every element of the other (line 2)\n"
        "  fix: p.squeeze(1) - ones(4)   gives shape [4]\n"
        "  fix: p - ones(4).unsqueeze(1)   gives shape [4, 1]\n"
    )
    assert machine.run("eval", "--json", "p = ones(4, 1)", "p - ones(4)") == 0
    assert machine.err == plain.err
    assert [json.loads(line)["kind"] for line in machine.out.splitlines()] == ["tensor"]


def test_narrow() -> None:
    world = World()
    world.environment.fixed_width = 40
    assert world.run("eval", "p = ones(4, 1)", "p - ones(4)") == 0
    assert all(len(line) <= 40 for line in world.err.splitlines() if "fix:" not in line)


SILENT = [
    "x = arange(4.)\n(x[:, None] - x).abs()",
    "x = arange(4.)\nc = x.unsqueeze(1)\nc - x",
    "x = ones(4, 3)\nx - x.mean(1, keepdim=True)",
    "x = ones(4, 4)\nx.sum(1, keepdim=True) * ones(4)",
    "x = zeros(4)\nx[1:3].fill_(2)\nx[1:3][0] = 1\nx.view(2, 2)[0] = 5",
    "x = zeros(4)\nx[[0, 1]] = 5\nx[x == 0] += 1\nx.clone()[0] = 1",
    "a = arange(6.).reshape(2, 3)\na[:, 0] += a[:, 1]\na += a\na -= a.clone()[:, :1]",
    "x = tensor([1., 2.])\nx.exp()\nx.clamp(0, 1)\nx",
    f"{LEAF}with no_grad():\n    w -= 0.1 * w.grad\n    w.grad.zero_()",
    "x = ones(2, requires_grad=True)\nx = x * 2\nx.sum().backward()",
    "tensor([1, 2]) + 5\ntensor([100], dtype=int8) - 50\nsum([tensor(1.), tensor(2.)])",
    "tensor([1.5, 2.9]).int()\ntensor([0., 255.]).to(uint8)\ntensor([True]).long()",
    "arange(0, 1, 0.25)\narange(0, 10, 3)\narange(5.)",
    "l = [zeros(2), zeros(2)]\nl[0][1] = 3\nl[1].add_(1)\nd = {'a': zeros(2)}\nd['a'].mul_(2)",
    "x = zeros(2)\nx.masked_fill(x == 0, 5.)\nx.masked_fill(x == 1, 5.)",
    "x = ones(3)\nx.softmax(0).log()\nx == 1\nx != x",
    "x = ones(3).half()\nx + 1\nx - x\nx + 0\nzeros(3).half() + 0.1",
    "for i in range(2):\n    w = ones(2, requires_grad=True)\n    (w * w).sum().backward()",
    "def f(x):\n    x.append(1)\n    return x\nf([])",
]


@pytest.mark.parametrize("text", SILENT)
def test_silence(text: str) -> None:
    assert hints(text) == []


@pytest.mark.parametrize("path", sorted(ROOT.glob("tests/tutorials/*.tx")), ids=lambda p: p.stem)
def test_tutorials_are_silent(path: Path) -> None:
    world = World()
    world.run("run", str(path))
    assert "hint:" not in world.err


def test_a_loop_is_hinted_at_once() -> None:
    text = "p = ones(4, 1)\nfor i in range(5):\n    q = p - ones(4)"
    assert [found[1] for found in hints(text)] == ["outer-broadcast"]


def test_at_the_prompt_values_are_looked_at() -> None:
    found: list[Result] = []
    session = Session(World().environment, Settings())
    session.run("w = zeros(2)\nw.masked_fill(w == 0, 1.)", found.append, interactive=True)
    assert not any(isinstance(result, HintResult) for result in found)
