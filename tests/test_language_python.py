"""Programs without tensors mean what they mean in Python: same names, same output, same errors."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import pytest

from tensorcli.language.errors import where
from tensorcli.language.program import compile_program


class Heard:
    """A listener that keeps the printed text and the values of expression statements."""

    def __init__(self) -> None:
        self.text = ""
        self.values: list[object] = []

    def value(self, value: object, statement: Any) -> None:
        self.values.append(value)

    def print(self, text: str, line: int) -> None:
        self.text += text


def ours(text: str) -> tuple[dict[str, Any], str, str, int | None]:
    scope: dict[str, Any] = {}
    heard = Heard()
    error, line = "", None
    program = compile_program(text)
    try:
        program.run(scope, heard)
    except Exception as exc:
        error = f"{type(exc).__name__}: {exc}"
        place = where(exc)
        assert place is not None, "every error of a program has a place"
        line = place.span.line
    return scope, heard.text, error, line


def pythons(text: str) -> tuple[dict[str, Any], str, str, int | None]:
    scope: dict[str, Any] = {"__name__": "__main__"}
    error, line = "", None
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            exec(compile(text, "<program>", "exec"), scope)
        except Exception as exc:
            error = f"{type(exc).__name__}: {exc}"
            traceback = exc.__traceback__
            while traceback is not None:
                if traceback.tb_frame.f_code.co_filename == "<program>":
                    line = traceback.tb_lineno
                traceback = traceback.tb_next
    return scope, out.getvalue(), error, line


def plain(scope: dict[str, Any]) -> dict[str, str]:
    """The names that hold data, with the text of their values."""
    kinds = (int, float, complex, str, list, tuple, dict, set, frozenset, range, slice, type(None))
    return {
        name: repr(value)
        for name, value in scope.items()
        if isinstance(value, kinds) and not name.startswith("__") and "<function" not in repr(value)
    }


def check(text: str) -> None:
    scope, printed, error, line = ours(text)
    expected_scope, expected_printed, expected_error, expected_line = pythons(text)
    assert error == expected_error
    assert printed == expected_printed
    assert plain(scope) == plain(expected_scope)
    assert line == expected_line


EXPRESSIONS = """
1 + 2 * 3
7 // 2, 7 % 2, -7 // 2, -7 % 2, 7 / 2
2 ** 10, 2 ** -1, (-2) ** 3
-3, +3, ~3, not 3
1 << 4, 256 >> 2, 6 & 3, 6 | 3, 6 ^ 3
1.5e3, 1j * 1j, 0x1F, 0b11, 1_000
"a" + "b", "ab" * 3, 3 * "ab", "a" "b"
[1] + [2], [1, 2] * 2, (1,) + (2,)
1 < 2 < 3, 1 < 2 > 3, 3 > 2 > 1 > 0
1 == 1.0, 1 != 2, "a" < "b", [1, 2] < [1, 3]
1 is 1, None is None, [] is not []
2 in [1, 2], 3 not in (1, 2), "a" in "abc", 1 in {1: 2}, 5 in range(10)
0.5 in range(3), 2.0 in range(3)
1 and 2, 0 and 2, 0 or 3, 1 or 2, None or 0 or ""
1 if True else 2, 1 if [] else 2
[1, 2, 3][0], [1, 2, 3][-1], [1, 2, 3][1:], [1, 2, 3][::-1]
"hello"[1:3], (1, 2, 3)[:2], {"a": 1}["a"]
{1: "a", **{2: "b"}, 3: "c"}
[*range(3), 4, *[5, 6]], (*"ab",), {*[1, 2], 3}
{1, 2, 2, 3} == {3, 2, 1}, {1, 2} | {3}, {1, 2} & {2}, {1, 2} - {2}
[x * x for x in range(5)]
[x for x in range(10) if x % 2 if x > 3]
[(x, y) for x in range(3) for y in range(x)]
[[x * y for x in range(3)] for y in range(3)]
{x: x * x for x in range(3)}, {x % 2 for x in range(5)}
sum(x for x in range(5)), list(x for x in "abc")
[x for x, in [(1,), (2,)]], [a + b for a, b in [(1, 2), (3, 4)]], [b for a, *b in [(1, 2, 3)]]
(lambda x: x + 1)(2), (lambda *a, **k: (a, k))(1, b=2), (lambda: 5)()
(lambda x, y=2, *z, k=3, **m: (x, y, z, k, m))(1, 2, 3, k=4, q=5)
[f(3) for f in [lambda x: x + 1, lambda x: x * 2]]
[f() for f in [lambda: i for i in range(3)]]
[f() for f in [lambda i=i: i for i in range(3)]]
f"{1 + 1}", f"{'a'!r:>6}", f"{3.14159:.2f}", f"{10:>{4}}|", f"{1}{2}", f"{{}}", f"{1=}"
f"{'x' + 'y'}{[1, 2]}", f"{1:04d} {255:x} {1e6:,}"
"%d %s %.2f" % (1, "a", 2.5), "%5s|%-5s|" % ("a", "b"), "%(a)d" % {"a": 1}
"{} {}".format(1, 2), "{1} {0}".format(1, 2), "{a:>3}".format(a=1)
len("abc"), len([1, 2]), abs(-3), min(3, 1, 2), max([1, 5, 2]), sum([1, 2, 3], 10)
sorted([3, 1, 2]), sorted("bca", reverse=True), sorted([-2, 1], key=abs)
list(map(lambda x: x * 2, [1, 2])), list(filter(None, [0, 1, 2])), list(zip([1, 2], "ab"))
list(enumerate("ab", 1)), list(reversed([1, 2])), list(range(0, 10, 3))
any([0, 1]), all([1, 0]), any(x > 2 for x in range(5)), round(2.567, 2), divmod(7, 3)
int("12"), float("1.5"), str(12), bool([]), complex(1, 2), list("ab"), tuple([1]), dict(a=1)
isinstance(1, int), isinstance(1, (str, float)), isinstance(True, int), callable(len)
"abc".upper(), " a ".strip(), "a,b".split(","), "-".join(["a", "b"]), "abc".replace("b", "x")
"abc".startswith("a"), "abc".find("c"), "abc".index("b"), "aXb".lower(), "a b".title()
[1, 2, 2].count(2), [1, 2].index(2), (1, 2).index(2), {1: 2}.get(1), {1: 2}.get(3, 4)
list({1: 2}.items()), list({1: 2}.keys()), list({1: 2}.values())
(1).bit_length(), (2.0).is_integer(), (1 + 2j).real, (1 + 2j).conjugate(), (3).real
chr(97), ord("a"), hex(255), bin(5), oct(8), pow(2, 3), pow(2, 3, 5)
(y := 5) + y, [y := 1, y ** 2]
[last := x for x in range(3)], [n for x in range(3) if (n := x * 2) > 1]
... is Ellipsis, None, True, False
1_0.5, 1e400, -0.0, 1e-7, 123456789012345678901234567890
"\\n\\t\\x41\\u00e9", 'it''s', r"\\n", "é" + "日本"
type(1) is int, type(1).__name__, type([]) == list
print(1, "a", [2], sep="-", end="!\\n"), print(), print("a", end="")
slice(1, 2), [1, 2, 3][slice(1, None)], range(5)[1:3]
(1, 2) == (1, 2), (1, 2) < (1, 3), [] == (), {"a": [1]} == {"a": [1]}
max("a", "b", key=lambda c: -ord(c)), min([], default=0), sum([[1], [2]], [])
next(iter([1, 2])), next(iter([]), 5), list(iter(range(2)))
1 if 0 else 2 if 0 else 3, (1, (2, (3,))), [[]], {}, ()
not 1 == 2, not (1 and 0), 1 - -1, --1, 2 ** 3 ** 2, -2 ** 2
[i for i in range(5)][-2:], [i for i in [j for j in range(3)]]
[(i, j) for i in range(2) for j in range(2) if i != j], [x for x in [1, 2] for x in [x, x + 1]]
"yes" if any(c.isdigit() for c in "a1") else "no"
dict(zip("ab", range(2))), dict([(1, 2)]), {**{}}, {i: [j for j in range(i)] for i in range(3)}
"a" * 0, [0] * -1, 5 // 0.3, 5 % 0.3, float("inf") - float("inf")
""".strip().splitlines()

FAILING = """
1 / 0
1 // 0, 2
1 % 0
1 + "a"
"a" + 1
[1] + (2,)
[1][5]
{}["a"]
{}[1, 2]
"a"[10]
(1,)[1.5]
undefined
undefined_function(1)
None.foo
(1).foo
"a".foo()
[].appendd(1)
1()
"a"(1)
None()
[1, 2](0)
len(1)
len()
len([], [])
int("x")
float("x")
int([])
abs("a")
sum(["a"])
max([])
next(iter([]))
sorted([1, "a"])
[1] < ["a"]
1 < "a"
-"a"
~1.5
not_defined + 1
{[]: 1}
{[1], 2}
{(1, []): 2}
[x for x in 5]
[*5]
(lambda x: x)()
(lambda x: x)(1, 2)
(lambda x, y: x)(1)
(lambda x, y, z: x)()
(lambda x, y=1: x)(1, 2, 3)
(lambda: 0)(1)
(lambda *, k: k)()
(lambda *, k, m: k)()
(lambda *, k: k)(1)
(lambda *, k: k)(1, k=2)
(lambda x, /: x)(x=1)
(lambda x: x)(y=1)
(lambda x: x)(1, x=1)
range(1.5)
range(0, 1, 0)
"a".join([1])
"abc".index("z")
[].pop()
{}.popitem()
[1].index(2)
[].remove(1)
2 ** "a"
"%d" % "a"
f"{1:q}"
f"{1.5:d}"
1 in 5
"a" in 1
1 in "a"
5[0]
None[0]
(lambda: 0)[0]
print(1, sepp=2)
print(1, sep=2)
isinstance(1, 2)
int(1, 2, 3)
round("a")
divmod(1, 0)
pow(0, -1)
0 ** -1
1 << -1
chr(-1)
ord("ab")
dict([1])
dict([(1, 2, 3)])
complex("x")
[1, 2][[1]]
str.foo
int.foo
list(5)
tuple(None)
sum(5)
zip(1)
map(1)
enumerate(1)
1 .real.foo
""".strip().splitlines()


pytestmark = pytest.mark.filterwarnings("ignore::SyntaxWarning")


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_value_as_in_python(expression: str) -> None:
    check(f"result = {expression}\nprint(result)")


@pytest.mark.parametrize("expression", FAILING)
def test_error_as_in_python(expression: str) -> None:
    check(f"before = 1\nresult = {expression}\n")


def read_programs() -> dict[str, str]:
    """The programs of the file beside this one, each under a line `=== name`."""
    text = (Path(__file__).parent / "language_programs.txt").read_text(encoding="utf-8")
    parts = [part.partition("\n") for part in text.split("=== ")[1:]]
    return {name: program for name, _, program in parts}


PROGRAMS = read_programs()


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_as_in_python(name: str) -> None:
    check(PROGRAMS[name])


def test_compound_statements_nest() -> None:
    depth = 15
    lines = ["    " * i + f"for i{i} in range(1):" for i in range(depth)]
    lines.append("    " * depth + "done = True")
    check("\n".join(lines))
