"""What is no program: each refusal names the construct, its place and what to do instead."""

from __future__ import annotations

import pytest

from tensorcli.language.errors import Refused
from tensorcli.language.program import compile_program

# text -> code, part of the message, (line, column, end line, end column)
REFUSED = {
    "class A:\n    pass": ("construct", "a class definition", (1, 1, 2, 9)),
    "x = 1\nclass A(B): x = 1": ("construct", "a class definition", (2, 1, 2, 18)),
    "async def f(): pass": ("construct", "an async function", (1, 1, 1, 20)),
    "def f():\n    yield 1": ("construct", "a generator function", (2, 5, 2, 12)),
    "def f():\n    x = yield": ("construct", "a generator function", (2, 9, 2, 14)),
    "def f():\n    yield from x": ("construct", "a generator function", (2, 5, 2, 17)),
    "def f():\n    global x\n    x = 1": ("construct", "a global statement", (2, 5, 2, 13)),
    "match x:\n    case 1: pass": ("construct", "a match statement", (1, 1, 2, 17)),
    "try:\n    pass\nexcept* ValueError:\n    pass": (
        "construct", "an except* clause", (1, 1, 4, 9)),
    "[x async for x in y]": ("construct", "an async loop", (1, 14, 1, 15)),
    "b'abc'": ("syntax", "bytes", (1, 1, 1, 7)),
    "import os": ("construct", "importing 'os'", (1, 8, 1, 10)),
    "import torch, sys": ("construct", "importing 'sys'", (1, 15, 1, 18)),
    "import os.path as p": ("construct", "importing 'os'", (1, 8, 1, 20)),
    "from os import system": ("construct", "importing 'os'", (1, 1, 1, 22)),
    "from . import x": ("construct", "a relative import", (1, 1, 1, 16)),
    "from builtins import eval": ("construct", "importing 'builtins'", (1, 1, 1, 26)),
    "def f():\n    import subprocess": ("construct", "importing 'subprocess'", (2, 12, 2, 22)),
    "def f():\n    from math import *": ("syntax", "import *", None),
    "return 1": ("syntax", "'return' outside function", (1, 1, 1, 9)),
    "break": ("syntax", "'break' outside loop", (1, 1, 1, 6)),
    "continue": ("syntax", "'continue' not properly in loop", (1, 1, 1, 9)),
    "for i in x:\n    def f():\n        break": (
        "syntax", "'break' outside loop", (3, 9, 3, 14)),
    "for i in x:\n    pass\nelse:\n    break": ("syntax", "'break' outside loop", (4, 5, 4, 10)),
    "nonlocal x": ("syntax", "nonlocal declaration not allowed at module level", (1, 1, 1, 11)),
    "def f():\n    nonlocal x": ("syntax", "no binding for nonlocal 'x' found", (2, 5, 2, 15)),
    "def f(a, a): pass": ("syntax", "duplicate argument 'a'", (1, 10, 1, 11)),
    "*a, *b = x": ("syntax", "multiple starred", (1, 1, 1, 7)),
    "*a = x": ("syntax", "starred assignment target", (1, 1, 1, 3)),
    "*a": ("syntax", "can't use starred expression here", (1, 1, 1, 3)),
    "[i := 0 for i in x]": ("syntax", "cannot rebind comprehension", (1, 2, 1, 3)),
    "try:\n    pass\nexcept:\n    pass\nexcept ValueError:\n    pass": (
        "syntax", "default 'except:' must be last", None),
    "1 +": ("syntax", "invalid syntax", (1, 4, 1, 5)),
    "x = (1,\n": ("syntax", "'(' was never closed", (1, 5, 1, 6)),
    "if x\n    y": ("syntax", "expected ':'", None),
    "  x": ("syntax", "unexpected indent", None),
    "é = 'ü' $": ("syntax", "invalid", None),
    "日本 = [1, 2, 3 4]": ("syntax", "", (1, 13, 1, 16)),
    "f(a=1, 2)": ("syntax", "positional argument follows keyword argument", None),
    "f(a=1, a=2)": ("syntax", "keyword argument repeated", None),
    "1 = x": ("syntax", "cannot assign to literal", None),
    "f() = 1": ("syntax", "cannot assign to function call", None),
    "None = 1": ("syntax", "cannot assign to None", None),
    "x = 1\0": ("encoding", "a null character", (1, 6, 1, 7)),
    "'\ud800'": ("encoding", "half a surrogate pair", (1, 2, 1, 3)),
    "(" * 10_000 + ")" * 10_000: ("nesting", "nested too deeply", None),
    "-" * 50_000 + "1": ("nesting", "nested too deeply", None),
    "+".join(["1"] * 50_000): ("nesting", "nested too deeply", None),
    "x" + ".y" * 30_000: ("nesting", "nested too deeply", None),
    "9" * 10_000: ("syntax", "integer", None),
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED, ids=[text[:30] for text in REFUSED])
def test_refusal(text: str) -> None:
    code, message, span = REFUSED[text]
    with pytest.raises(Refused) as caught:
        compile_program(text)
    diagnostic = caught.value.diagnostic
    assert diagnostic.code == code
    assert message in diagnostic.message
    assert diagnostic.type == "SyntaxError"
    if span is not None:
        assert diagnostic.span is not None
        assert diagnostic.span.key() == span
    if code == "construct":
        assert diagnostic.notes, "a refused construct comes with what to do instead"


def test_nothing_runs_before_the_whole_text_is_checked() -> None:
    scope: dict[str, object] = {}
    with pytest.raises(Refused):
        compile_program("x = 1\nclass A: pass").run(scope, None)  # type: ignore[arg-type]  # never reached
    assert scope == {}


@pytest.mark.parametrize(
    "text", ["", "\n\n", "# only a comment", "\ufeffx = 1", "x = 1\r\ny = 2\r"]
)
def test_odd_but_valid_texts(text: str) -> None:
    compile_program(text)
