"""When Enter runs a text, how lines are indented, what a pasted prompt stands for."""

from __future__ import annotations

import pytest

from tensorcli.repl.completeness import (
    assigned_names,
    indentation,
    needs_more,
    without_prompts,
)


@pytest.mark.parametrize(
    "text",
    [
        "x = (1,",
        "zeros(2,",
        "[1, 2",
        "def f(x):",
        "def f(x):\n    return x",
        "for i in range(3): print(i)",
        "with torch.no_grad():\n    y = x",
        "@torch.no_grad()",
        "if x:\n    y\nelse:",
        "'''text",
        "x = 1 + \\",
        "try:\n    x",
    ],
)
def test_goes_on(text: str) -> None:
    assert needs_more(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "x",
        "x = (1,\n2)",
        "def f(x):\n    return x\n",
        "for i in range(3): print(i)\n",
        "x = 1\ny = 2",
        "for i in range(3):\n    print(i)\nx",
        "x )",
        "1 +* 2",
        "x = = 1",
        "class",
        "\0",
        "(" * 10_000,
        "'text",
        "9" * 5000,
        "'\\d'",
    ],
)
def test_runs(text: str) -> None:
    assert not needs_more(text)


@pytest.mark.parametrize(
    ("text", "blanks"),
    [
        ("x", ""),
        ("for i in x:", "    "),
        ("for i in x:\n    y", "    "),
        ("for i in x:\n    if y:", "        "),
        ("def f(x):\n    return x", ""),
        ("def f(x):\n        return x", "    "),
        ("returns", ""),
    ],
)
def test_indentation(text: str, blanks: str) -> None:
    assert indentation(text) == blanks


def test_pasted_prompts_are_dropped_with_the_answers_between_them() -> None:
    pasted = ">>> x = torch.ones(2)\n>>> for i in range(2):\n...     print(i)\n...\n0\n1\n>>> x"
    assert without_prompts(pasted) == "x = torch.ones(2)\nfor i in range(2):\n    print(i)\n\nx"
    assert without_prompts("x >>> 2") == "x >>> 2"
    assert without_prompts("x = '>>> '") == "x = '>>> '"


def test_assigned_names() -> None:
    text = "a = b = 1\n(c, [d, *e]) = x\nf: int = 2\ng += 1\nx.grad = None\nx[0] = 1\na = 3\n"
    assert assigned_names(text) == ["a", "b", "c", "d", "e", "f", "g"]
    assert assigned_names("for i in x:\n    y = 1") == []
    assert assigned_names("a = ") == []
