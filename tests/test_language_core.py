"""What a session gets from a program: values with their places, operands of errors, contexts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine.modes import state
from tensorcli.language import attributes, contexts, errors, functions, names, namespaces
from tensorcli.language.forms import Form, visible_names
from tensorcli.language.program import compile_program
from tensorcli.language.running import Emitted


class Heard:
    def __init__(self) -> None:
        self.values: list[tuple[object, Emitted]] = []
        self.prints: list[tuple[str, int]] = []

    def value(self, value: object, statement: Emitted) -> None:
        self.values.append((value, statement))

    def print(self, text: str, line: int) -> None:
        self.prints.append((text, line))


class Box:
    """Stands for a tensor: operators, an attribute that can be set, a method, elements."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.log: list[str] = []

    def __add__(self, other: Any) -> Box:
        return Box(self.value + getattr(other, "value", other))

    def __iadd__(self, other: Any) -> Box:
        self.value += getattr(other, "value", other)
        self.log.append("iadd")
        return self

    def __getitem__(self, key: Any) -> Box:
        return Box(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.log.append(f"set {key}")


class Mode:
    """Stands for a gradient mode."""

    def __init__(self, log: list[str]) -> None:
        self.log = log


def _set_value(box: Box, value: Any) -> None:
    box.value = value


@pytest.fixture(autouse=True)
def _tables() -> Iterator[None]:
    attributes.ATTRIBUTES[Box] = {"value": lambda box: box.value}
    attributes.SETTERS[Box] = {"value": _set_value}
    attributes.METHODS[Box] = {"plus_": Box.__iadd__, "plus": Box.__add__}
    contexts.CONTEXTS[Mode] = contexts.ContextKind(
        lambda mode: mode.log.append("enter"), lambda mode: mode.log.append("leave")
    )
    yield
    for table in (attributes.ATTRIBUTES, attributes.SETTERS, attributes.METHODS):
        table.pop(Box, None)
    contexts.CONTEXTS.pop(Mode, None)


def run(text: str, **scope: Any) -> tuple[Heard, dict[str, Any]]:
    heard = Heard()
    compile_program(text).run(scope, heard)
    return heard, scope


def failed(text: str, **scope: Any) -> tuple[Exception, errors.Where]:
    with pytest.raises(Exception) as caught:  # noqa: PT011  # any error of a program
        run(text, **scope)
    place = errors.where(caught.value)
    assert place is not None
    return caught.value, place


def test_values_are_told_where_interactive_python_prints_them() -> None:
    heard, _ = run(
        "1\nNone\nx = 2\nif x:\n    3\nfor i in [4, 5]:\n    i\n"
        "def f():\n    6\n    return 7\nf()\n"
        "try:\n    8\nfinally:\n    9\nlambda: 0\n'last'"
    )
    told = [(value, s.line, s.in_loop, s.is_last) for value, s in heard.values]
    told = [t for t in told if t[1] != 16]
    assert told == [
        (1, 1, False, False), (3, 5, False, False), (4, 7, True, False), (5, 7, True, False),
        (7, 11, False, False), (8, 13, False, False), (9, 15, False, False),
        ("last", 17, False, True),
    ]  # fmt: skip


def test_what_is_quiet() -> None:
    heard, _ = run("x.plus_(1)\nx.plus(1)\nmanual_seed(0)\nx.value.real", x=Box(1),
                   manual_seed=functions.GUARDED_CALLS[int])  # fmt: skip
    quiet = {s.line: s.is_quiet for _, s in heard.values}
    assert quiet == {1: True, 2: False, 3: True, 4: False}
    assert heard.values[1][1].span.key() == (2, 1, 2, 10)


def test_print_tells_the_innermost_line() -> None:
    heard, _ = run("def f():\n    print('a', end='')\n\nf()\nprint(1, 2)")
    assert heard.prints == [("a", 2), ("1 2\n", 5)]


def test_the_site_is_the_statements_line_also_after_a_call() -> None:
    seen: list[object] = []
    run(
        "def f():\n    g()\n    x = 1\n    return x\n\ny = f() + g()\n",
        g=attributes.Method(seen, "g", lambda seen: seen.append(state.site) or 0),
    )
    assert seen == [2, 6]


def test_operands_of_an_operator() -> None:
    exc, place = failed("x = 1\ny = [1]\n(x +\n  y)")
    assert isinstance(exc, TypeError)
    assert place.span.key() == (3, 2, 4, 4)
    assert [(o.text, o.value) for o in place.operands] == [("x", 1), ("y", [1])]
    assert place.operands[1].span.key() == (4, 3, 4, 4)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1, 2][k]", [("[1, 2]", [1, 2]), ("k", 5)]),
        ("int(word)", [("word", "a b")]),
        ("int(word, k)", [("word", "a b"), ("k", 5)]),
        ("word.index('z')", [("word", "a b"), ("'z'", "z")]),
        ("word.index('z', k, end=k)", [("word", "a b"), ("'z'", "z"), ("k", 5), ("k", 5)]),
        ("-word", [("word", "a b")]),
        ("word < k", [("word", "a b"), ("k", 5)]),
        ("1 < k < word", [("k", 5), ("word", "a b")]),
        ("k.missing", [("k", 5)]),
        ("word += k", [("word", "a b"), ("k", 5)]),
        ("k[0] = 1", [("k", 5), ("0", 0), ("1", 1)]),
        ("for i in k: pass", [("k", 5)]),
    ],
)
def test_operands(text: str, expected: list[tuple[str, object]]) -> None:
    _, place = failed(text, word="a b", k=5)
    assert [(o.text, o.value) for o in place.operands] == expected


def test_columns_are_characters() -> None:
    _, place = failed("変数 = '日本'; 変数 + 1")
    assert place.span.key() == (1, 12, 1, 18)
    assert place.operands[0].text == "変数"


def test_calls_that_led_to_an_error() -> None:
    _, place = failed("def f(x):\n    return 1 / x\ndef g(x):\n    return f(x)\ng(0)")
    assert place.span.line == 2
    assert [span.line for span in place.calls] == [4, 5]


def test_an_error_in_a_function_of_an_earlier_text() -> None:
    scope: dict[str, Any] = {}
    compile_program("\n\ndef f(x):\n    return 1 / x", "first").run(scope, Heard())
    _, place = failed("f(0)", **scope)
    assert place.source.file == "first"
    assert place.operands[1].text == "x"


def test_near_names_are_hinted() -> None:
    exc, _ = failed("flavour = 1\nflavor")
    assert errors.hints(exc) == ("did you mean flavour?",)
    exc, _ = failed("'a'.uper()")
    assert "upper" in errors.hints(exc)[0]


def test_attributes_go_through_tables() -> None:
    _, scope = run(
        "x.value += 1\ny = x.value\nx.value = 7\nz = x.value\nx[0] += 5\nx += 1", x=Box(1)
    )
    assert (scope["y"], scope["z"]) == (2, 7)
    assert scope["x"].log == ["set 0", "iadd"]
    exc, place = failed("x.log", x=Box(1))
    assert str(exc) == "'Box' object has no attribute 'log'"
    assert place.span.key() == (1, 1, 1, 6)


def test_in_place_operators_keep_the_object() -> None:
    box = Box(1)
    _, scope = run("y = x\ny += 2", x=box)
    assert scope["y"] is box
    assert box.value == 3


def test_with_enters_and_leaves() -> None:
    log: list[str] = []
    _, scope = run("with mode as m, mode:\n    x = 1", mode=Mode(log))
    assert log == ["enter", "enter", "leave", "leave"]
    log.clear()
    failed("with mode:\n    1 / 0", mode=Mode(log))
    assert log == ["enter", "leave"]
    log.clear()
    run("def f():\n    with mode:\n        return 1\nf()", mode=Mode(log))
    assert log == ["enter", "leave"]


def test_modes_decorate_functions() -> None:
    log: list[str] = []
    _, scope = run("@mode\ndef f(n):\n    return f(n - 1) if n else 0\nx = f(1)", mode=Mode(log))
    assert log == ["enter", "leave", "enter", "enter", "leave", "leave"]
    assert scope["x"] == 0


def test_special_forms_get_sources_and_closures() -> None:
    def handler(form: Form, frame: Any) -> object:
        first = form.args[0]
        values = [first.value(frame) for _ in range(2)]
        return first.text, first.span.key(), values, sorted(visible_names(frame)), form.keywords

    names.SPECIAL_FORMS["inspect_it"] = handler
    try:
        heard, scope = run(
            "x = 1\ndef f(y):\n    return inspect_it(x + y)\nz = f(2)\ninspect_it(x, k=1)[0]\n"
            "inspect_it = len\nw = inspect_it([1, 2])"
        )
    finally:
        del names.SPECIAL_FORMS["inspect_it"]
    text, span, values, visible, _ = scope["z"]
    assert (text, span, values) == ("x + y", (3, 23, 3, 28), [3, 3])
    assert visible == ["f", "x", "y"]
    assert heard.values[0][0] == "x"
    assert scope["w"] == 2


def test_a_program_runs_again_on_another_scope() -> None:
    program = compile_program("def f(): return base\nx = f() + 1")
    for base in (1, 10):
        scope: dict[str, Any] = {"base": base}
        program.run(scope, Heard())
        assert scope["x"] == base + 1


def test_program_functions_are_callables_for_the_engine() -> None:
    _, scope = run("def f(a, b=2, *c): return a, b, c\ng = lambda: 5")
    assert scope["f"](1) == (1, 2, ())
    assert scope["f"](1, b=3) == (1, 3, ())
    assert scope["g"]() == 5
    assert repr(scope["f"]) == "<function f>"


def test_torch_is_a_module_and_bare_names() -> None:
    heard, scope = run(
        "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
        "from torch.nn import functional\nfrom torch import float32 as f\n"
        "f is torch.float32 is float32\nF is functional is nn.functional is torch.nn.functional"
    )
    assert [value for value, _ in heard.values] == [True, True]
    exc, _ = failed("import torch\ntorch.nothing_here")
    assert str(exc) == "module 'torch' has no attribute 'nothing_here'"
    exc, _ = failed("import torch.nothing_here")
    assert type(exc) is ModuleNotFoundError
    assert str(exc) == "No module named 'torch.nothing_here'"


def test_builtins_keep_pythons_meaning() -> None:
    _, scope = run("x = sum([1, 2]), max(1, 2), abs(-1), all([1]), any([0]), round(1.5), pow(2, 3)")
    assert scope["x"] == (3, 2, 1, True, False, 2, 8)


def test_every_clash_of_a_builtin_with_torch_is_pythons() -> None:
    torch = torch_table()
    clashes = sorted(name for name in names.BUILTINS if name in torch)
    assert {"abs", "all", "any", "max", "min", "pow", "round", "sum", "float", "int"} & set(clashes)
    for name in clashes:
        assert names.lookup(name) is names.BUILTINS[name]
        assert torch[name] is not names.BUILTINS[name]


def torch_table() -> Any:
    namespace = namespaces.module("torch")
    assert namespace is not None
    return namespace.table


def test_an_explanations_name_is_torchs_after_a_dot() -> None:
    for name in names.SPECIAL_FORMS:
        assert names.lookup(name) is names.MISSING
