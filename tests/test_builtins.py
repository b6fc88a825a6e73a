"""Builtins, methods and math of the language against Python's own: values, types and errors."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

from tensorcli.language import limits
from tensorcli.language.builtins_table import ABSENT, BUILTINS
from tensorcli.language.program import compile_program


class Heard:
    """Keeps what a program's expression statements gave."""

    def __init__(self) -> None:
        self.values: list[object] = []

    def value(self, value: object, statement: object) -> None:
        self.values.append(value)

    def print(self, text: str, line: int) -> None:
        self.values.append(text)


def outcome(run: object) -> tuple[object, ...]:
    try:
        value = run()  # type: ignore[operator]
    except Exception as error:
        return type(error), str(error)
    return repr(value), type(value)


def ours(text: str) -> object:
    heard = Heard()
    compile_program("import math").run(scope := {}, heard)
    compile_program(text).run(scope, heard)
    return heard.values[0] if heard.values else None


CALLS = [
    line
    for line in Path(__file__).with_name("python_calls.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]


@pytest.fixture(autouse=True)
def _plenty() -> None:
    limits.use(limits.Limits())


@pytest.mark.parametrize("text", CALLS)
def test_like_python(text: str) -> None:
    expected = outcome(lambda: eval(text, {"math": math}))
    assert outcome(lambda: ours(text)) == expected


def test_absent_names_are_pythons_and_not_ours() -> None:
    import builtins

    assert not [name for name in ABSENT if name in BUILTINS]
    missing = set(ABSENT) - set(dir(builtins)) - {"exit", "quit", "help"}
    assert not missing


# Text of a program -> the kind of limit that it reaches.
HOSTILE = {
    "sum(range(10**12))": "steps",
    "max(range(10**12))": "steps",
    "any(x < 0 for x in range(10**12))": "steps",
    "all(range(1, 10**12))": "steps",
    "list(range(10**12))": "memory",
    "tuple(range(10**12))": "memory",
    "set(range(10**12))": "memory",
    "sorted(range(10**12))": "memory",
    "dict(enumerate(range(10**12)))": "steps",
    "dict([range(10**12)])": "memory",
    "dict.fromkeys if False else list(map(str, range(10**12)))": "steps",
    "list(zip(range(10**12)))": "steps",
    "next(filter(None, map(int, ('0' for _ in range(10**12)))))": "steps",
    "next(filter(bool, (0 for i in range(10**9))))": "steps",
    "'a' * 10**12": "text",
    "[0] * 10**12": "memory",
    "(0,) * 10**12": "memory",
    "10**10**10": "integer",
    "pow(10, 10**10)": "integer",
    "pow(3, 10**50000, 10**50000 + 1)": "integer",
    "1 << 10**12": "integer",
    "int('9' * 10**6)": "integer",
    "round(5, -(10**10))": "integer",
    "math.factorial(10**9)": "integer",
    "math.factorial(10**6)": "integer",
    "math.comb(10**9, 10**8)": "integer",
    "math.perm(10**9, 10**8)": "integer",
    "math.prod(range(1, 10**12))": "memory",
    "math.fsum(range(10**12))": "memory",
    "math.dist(range(10**12), range(10**12))": "memory",
    "math.lcm(*[10**50000 + i for i in range(20)])": "steps",
    "f'{1:10000000000}'": "text",
    "f'{1.5:.1000000000f}'": "text",
    "format('a', '٩٩٩٩٩٩٩٩٩٩')": "text",
    "'{:{}}'.format(1, 10**10)": "text",
    "'%10000000000d' % 1": "text",
    "'%.1000000000f' % 1.5": "text",
    "'%*d' % (10**10, 1)": "text",
    "'a'.zfill(10**12)": "text",
    "'a'.ljust(10**12)": "text",
    "'a'.center(10**12)": "text",
    "'\\t'.expandtabs(10**12)": "text",
    "('a' * 10**5).join(['b'] * 10**3)": "text",
    "('a' * 10**5).replace('a', 'b' * 10**5)": "text",
    "('a' * 10**5).replace('', 'b' * 10**5)": "text",
    "[].extend(range(10**12))": "memory",
    "{1}.union(range(10**12))": "memory",
    "{1}.issuperset(range(10**12))": "memory",
    "set().update(range(10**12))": "memory",
    "{}.update(zip(range(10**12), range(10**12)))": "steps",
    "range(10**12).index(0.5)": "steps",
    "range(10**12).count(0.5)": "steps",
    "[*range(10**12)]": "memory",
    "print(*range(10**12))": "memory",
}


@pytest.fixture
def _strict() -> None:
    limits.use(limits.Limits(steps=100_000, memory=10**9, text=10**6, integer_bits=1_000_000))


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.usefixtures("_strict")
def test_hostile_calls_reach_limits(text: str) -> None:
    with pytest.raises(limits.LimitReached) as reached:
        ours(text)
    assert reached.value.kind == HOSTILE[text]


def nested_program(statement: str, count: int = 100_000) -> str:
    return f"a = ()\nfor i in range({count}):\n    a = (a,)\n{statement}"


@pytest.mark.parametrize(
    "statement", ["{a}", "{a: 1}", "set([a])", "{}.get(a)", "{1}.add(a)", "sorted([a, a])"]
)
def test_deep_values_are_no_keys(statement: str) -> None:
    with pytest.raises(limits.LimitReached) as reached:
        ours(nested_program(statement))
    assert reached.value.kind == "depth"


@pytest.mark.parametrize("lazy", ["map(str, m)", "zip(m)", "enumerate(m)", "filter(None, m)"])
def test_lazy_iterators_nest_to_a_bound(lazy: str) -> None:
    with pytest.raises(limits.LimitReached) as reached:
        ours(f"m = [1]\nfor i in range(100000):\n    m = {lazy}\nlist(m)")
    assert reached.value.kind == "depth"


def test_deep_values_print() -> None:
    text = ours(nested_program("str(a)", 10**6))
    assert isinstance(text, str)
    # The innermost is `()`; every other is `(…,)`.
    assert text == "(" * (10**6 + 1) + ")" + ",)" * 10**6


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("a = []\na.append(a)\nstr(a)", "[[...]]"),
        ("a = {}\na['x'] = a\nstr(a)", "{'x': {...}}"),
        ("a = []\nb = (a, 1)\na.append(b)\nrepr(b)", "([(...)], 1)"),
        ("a = [1]\nstr([a, a])", "[[1], [1]]"),
        ("a = []\ne = ValueError(a)\na.append(e)\nrepr(e)", "ValueError([...])"),
    ],
)
def test_cyclic_values_print(program: str, expected: str) -> None:
    text = ours(program)
    assert text == expected if "..." not in expected else str(text).startswith(expected[:3])


def test_shared_parts_reach_the_text_limit() -> None:
    limits.use(limits.Limits(text=10**5))
    with pytest.raises(limits.LimitReached):
        ours("a = [1]\nfor i in range(60):\n    a = [a, a]\nstr(a)")


def test_equal_hashes_look_at_the_clock() -> None:
    limits.use(limits.Limits(time=0.3))
    modulus = sys.hash_info.modulus
    with pytest.raises(limits.LimitReached) as reached:
        ours(f"set([i * {modulus} for i in range(50000)])")
    assert reached.value.kind == "time"


@pytest.mark.parametrize(
    "program",
    [
        "().__class__",
        "'{0.__class__}'.format(1)",
        "'{0[0]}'.format([1])",
        "'{a.real}'.format(a=1)",
        "getattr((), '__class__')",
        "type(lambda: 1)(1)",
        "type('X', (), {})",
        "type(iter([]))()",
        "str.upper",
        "type(1).mro()",
        "(x for x in []).gi_frame",
        "ValueError('a').__traceback__",
        "len.__self__",
        "(lambda: 1).__globals__",
        "list(map(getattr, [()], ['__class__']))",
        "sorted([()], key=lambda v: getattr(v, '__class__'))",
        "'%(a.b)s' % {'a': 1}",
    ],
)
def test_nothing_leads_into_python(program: str) -> None:
    with pytest.raises((AttributeError, TypeError, ValueError, KeyError)):
        ours(program)
