"""Completion: names, attributes, arguments and modules, without running anything."""

from __future__ import annotations

import pytest

from tensorcli.language.completion import complete
from tensorcli.language.program import compile_program
from tensorcli.language.running import Silence


@pytest.fixture(scope="module")
def names() -> dict[str, object]:
    scope: dict[str, object] = {}
    compile_program(
        "import torch\nimport math as m\nword = 'a'\nwords = [1]\n_hidden = 1\n"
        "def scale(vector, factor=2, *, offset=0): pass\n"
    ).run(scope, Silence())
    return scope


def texts(text: str, names: dict[str, object]) -> list[str]:
    return [c.text for c in complete(text, len(text), names)]


CASES = {
    "wo": ["word", "words"],
    "x = wor": ["word", "words"],
    "_h": ["_hidden"],
    "word.start": ["startswith"],
    "words.app": ["append"],
    "words . ins": ["insert"],
    "m.sqr": ["sqrt"],
    "torch.zer": ["zeros"],
    "nonl": ["nonlocal"],
    "print(wor": ["word", "words"],
    "f(word.upp": ["upper"],
    "scale(fac": ["factor="],
    "scale(words, off": ["offset="],
    "scale(abs(1), off": ["offset="],
    "import nump": ["numpy"],
    "from nump": ["numpy"],
    "from math import sq": ["sqrt"],
    "from math import pi, sq": ["sqrt"],
    "import torch.nn.func": ["torch.nn.functional"],
    # What stands before the dot is no chain of names, or unknown.
    "words[0].": [],
    "f().": [],
    "unknown_thing.": [],
    "1.": [],
    "word.nothing.": [],
    # Texts and comments.
    "'wo": [],
    "# wo": [],
    "'''a\nwo": [],
    "'it''s' + wo": ["word", "words"],
    "'\\'' + wo": ["word", "words"],
}


@pytest.mark.parametrize("text", CASES)
def test_candidates(text: str, names: dict[str, object]) -> None:
    found = texts(text, names)
    if text.startswith(("torch.", "nonl")):
        assert set(CASES[text]) <= set(found)
    else:
        assert found == CASES[text]


def test_start_is_where_the_word_begins(names: dict[str, object]) -> None:
    assert {c.start for c in complete("x = word.up", 11, names)} == {9}


def test_what_stands_after_the_cursor_does_not_count(names: dict[str, object]) -> None:
    assert [c.text for c in complete("wo + 1", 2, names)] == ["word", "words"]


def test_no_private_names_unless_asked(names: dict[str, object]) -> None:
    assert "_hidden" not in texts("", names)
    assert "__name__" not in texts("word.", names)


def test_nothing_typed_offers_the_users_names(names: dict[str, object]) -> None:
    assert texts("", names) == ["m", "scale", "torch", "word", "words"]
