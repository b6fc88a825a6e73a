"""Explanations: what they say of layouts, gradients, precision and failed operations."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tensorcli.results import ErrorResult, Result
from tensorcli.session import Session
from tensorcli.settings import Settings
from tests.in_memory import World


def record(text: str, kind: str) -> dict[str, Any]:
    """The last object of that kind that a program gives."""
    world = World()
    world.run("eval", "--json", text)
    found = [json.loads(line) for line in world.out.splitlines()]
    matching = [one for one in found if one["kind"] == kind]
    assert matching, found
    return dict(matching[-1])


def shown(text: str, *, width: int = 80, status: int = 0) -> str:
    """What a terminal without colours gets."""
    world = World(terminal=True)
    world.environment.fixed_width = width
    assert world.run("eval", text) == status, world.err
    return world.out + world.err


def test_layout_of_a_view() -> None:
    found = record("x = arange(6).view(2, 3)\ny = x.t()\nlayout(y)", "layout")
    assert (found["shape"], found["stride"], found["contiguous"]) == ([3, 2], [1, 3], False)
    assert (found["first_break"], found["contiguous_strides"]) == (1, [2, 1])
    assert (found["name"], found["line"]) == ("y", 3)
    assert "x" in found["shares"]
    assert found["bytes"] == 48


def test_layout_in_text() -> None:
    text = shown("x = zeros(2, 3)\ny = x.t()\nlayout(y)")
    assert text == (
        "shape        [3, 2]  float32, cpu\n"
        "strides      (1, 3)\n"
        "offset       0\n"
        "contiguous   no: dim 1 has stride 3, row-major order needs 1\n"
        "memory       24 B\n"
        "view of      x\n"
        "shared with  x\n"
        "positions    0 3\n"
        "             1 4\n"
        "             2 5\n"
        "walk         0 3 1 4 2 5\n"
        "made by   shape  strides\n"
        "x        [2, 3]   (3, 1)\n"
        ".t()     [3, 2]   (1, 3)  view\n"
    )


def test_the_line_under_a_tensor() -> None:
    text = shown("x = zeros(2, 3)\ny = x.t()\ny")
    assert text.splitlines()[-1] == (
        "float32 [3, 2] · strides (1, 3) · not contiguous · view of x · cpu · 24 B"
    )
    assert shown("tensor([1., float('nan')])").endswith("cpu · 8 B · NaN!\n")
    assert "requires grad" in shown("zeros(1, requires_grad=True)")
    assert "grad by MulBackward0" in shown("zeros(1, requires_grad=True) * 2")
    assert "view of a temporary" in shown("zeros(2, 3).t()")


def test_the_line_wraps_when_narrow() -> None:
    lines = shown("x = zeros(2, 3)\nx.t()", width=40).splitlines()
    assert all(len(line) <= 40 for line in lines)


GRADIENTS = "w = tensor([1., 2.], requires_grad=True)\n(w * w).sum().backward()"


def test_the_table_after_backward() -> None:
    assert shown(GRADIENTS) == (
        "leaf  shape   value    grad   norm  times\nw       [2]  1 .. 2  2 .. 4  4.472      1\n"
    )
    world = World()
    assert world.run("eval", GRADIENTS) == 0
    assert world.out == ""  # nobody asked, and nobody is at a terminal


def test_gradients_when_asked() -> None:
    text = f"{GRADIENTS}\n(w * 3).sum().backward()\nb = zeros(1, requires_grad=True)\ngrads()"
    w, b = record(text, "gradients")["rows"]
    assert (w["name"], w["shape"], w["accumulated"]) == ("w", [2], 2)
    assert (w["gradient"]["minimum"], w["gradient"]["maximum"]) == (5.0, 7.0)
    assert (b["name"], b["gradient"], b["accumulated"]) == ("b", None, None)


def test_gradients_of_leaves_in_lists_and_inside_functions() -> None:
    made = "zeros(1, requires_grad=True)"
    text = f"p = [{made}, {{'a': 1}}]\nq = {{'k': {made}}}\ngrads()"
    assert [row["name"] for row in record(text, "gradients")["rows"]] == ["p[0]", "q['k']"]


def test_precision_table() -> None:
    text = "precision(tensor([1., 1.001, 70000., 1e-9], dtype=torch.float64), torch.float16)"
    [row] = record(text, "precision")["rows"]
    assert row == {
        "dtype": "float16",
        "count": 4,
        "exact": 1,
        "max_absolute": pytest.approx(2.34375e-05, rel=1e-3),
        "max_relative": 1.0,
        "max_ulp": pytest.approx(0.024, rel=1e-2),
        "overflowed": 1,
        "subnormal": 0,
        "zeroed": 1,
        "sqnr_db": pytest.approx(95.6, abs=0.1),
    }


def test_precision_of_all_narrower_dtypes() -> None:
    rows = record("precision(ones(2))", "precision")["rows"]
    names = ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]
    assert [row["dtype"] for row in rows] == names
    assert all(row["exact"] == 2 for row in rows)


def test_broadcast() -> None:
    text = "a = ones(10, 2, 3)\nbroadcast(a, (3,), 2.5)"
    assert shown(text) == (
        "a       [10, 2, 3]\n(3,)           [3]\n2.5             []\nresult  [10, 2, 3]\n"
    )
    assert shown("a = ones(10, 2, 3)\nbroadcast(a, ones(4, 3))") == (
        "a           [10, 2, 3]\n"
        "ones(4, 3)      [4, 3]\n"
        "                 ^ dimension 1: sizes must be equal or 1\n"
    )


LOSSY = [
    (
        "x = tensor([0.1, 0.5])\nx.to(torch.bfloat16)",
        "float32 to bfloat16",
        "1 of 2 values changed",
    ),
    ("x = tensor([0.1])\nx.half()", "float32 to float16", "1 of 1"),
    ("tensor([0.1, 70000.], dtype=float16)", "literal to float16", "1 overflowed"),
    ("a = tensor(1., dtype=bfloat16)\na + tensor(0.001, dtype=bfloat16)", "exact result", "1 of 1"),
]


@pytest.mark.parametrize(("text", "what", "how"), LOSSY)
def test_the_line_after_a_loss(text: str, what: str, how: str) -> None:
    found = shown(text)
    assert what in found
    assert how in found


@pytest.mark.parametrize(
    "text",
    [
        "x = tensor([0.5])\nx.half()",
        "tensor([1., 2.], dtype=bfloat16) + tensor([1., 2.], dtype=bfloat16)",
        "tensor([0.1]) + tensor([0.2])",
        "x = tensor([1, 2])\nx.float()",
    ],
)
def test_nothing_is_said_where_nothing_is_lost(text: str) -> None:
    assert "values changed" not in shown(text)


def error(text: str) -> dict[str, Any]:
    return record(text, "error")


@pytest.mark.parametrize(
    ("text", "fixes"),
    [
        ("x = ones(2, 3)\nx + ones(2)", {"x + ones(2).unsqueeze(1)": [2, 3]}),
        (
            "x = ones(2, 3)\nx @ x",
            {"x @ x.t()": [2, 2], "x.t() @ x": [3, 3], "x * x": [2, 3]},
        ),
        (
            "x = ones(2, 3)\n(x * 2) @ (x + 1)",
            {
                "(x * 2) @ (x + 1).t()": [2, 2],
                "(x * 2).t() @ (x + 1)": [3, 3],
                "(x * 2) * (x + 1)": [2, 3],
            },
        ),
        (
            "x = ones(2, 3)\nx.t().view(-1)",
            {"x.t().reshape(-1)": [6], "x.t().contiguous().view(-1)": [6]},
        ),
        (
            "x = ones(2, 3)\nx.t().view(3, -1, 1)\nx.t().view((6,))",
            {"x.t().reshape((6,))": [6], "x.t().contiguous().view((6,))": [6]},
        ),
        ("x = ones(2, 3)\nx + ones(5, 7)", {}),
        (
            "m = ones(2, 2, dtype=float64)\nm @ ones(2, 2)",
            {
                "m @ ones(2, 2).to(torch.float64)": [2, 2],
                "m.to(torch.float32) @ ones(2, 2)": [2, 2],
            },
        ),
    ],
)  # fmt: skip
def test_fixes_were_tried_and_work(text: str, fixes: dict[str, list[int]]) -> None:
    found = {fix["expr"]: fix["shape"] for fix in error(text)["fixes"]}
    assert found == fixes
    before = text.rpartition("\n")[0]
    for expression, shape in found.items():
        assert record(f"{before}\n{expression}", "tensor")["shape"] == shape


def test_a_shape_mismatch_in_text() -> None:
    world = World()
    assert world.run("eval", "x = ones(2, 3)", "y = x + ones(2)") == 1
    assert world.err == (
        "RuntimeError: The size of tensor a (3) must match the size of tensor b (2) "
        "at non-singleton dimension 1\n"
        " --> expression:2:5\n"
        "2 | y = x + ones(2)\n"
        "  |     ~^^^~~~~~~~\n"
        "  |     |   shape [2], float32\n"
        "  |     shape [2, 3], float32\n"
        "    x        [2, 3]\n"
        "    ones(2)     [2]\n"
        "                 ^\n"
        "  note: sizes are matched from the right and must be equal or 1: in dimension 1\n"
        "        of the result, 3 of `x` meets 2 of `ones(2)`\n"
        "  fix: x + ones(2).unsqueeze(1)   gives shape [2, 3]\n"
    )


LABELS = [
    ("x = ones(2, 3)\nx.t().view(-1)", [(2, "shape [3, 2], strides (1, 3), float32")]),
    ("x = ones(3).expand(2, 3)\nx.add_(1)", [(2, "shape [2, 3], strides (0, 1), float32")]),
    ("x = ones(2, requires_grad=True)\nx.add_(1)", [(2, "shape [2], leaf that requires grad")]),
    (
        "x = ones(2, requires_grad=True)\ny = x.exp()\ny.add_(1)\ny.sum().backward()",
        [
            (4, "shape [], by SumBackward0"),
            (2, "ExpBackward0 kept a value here, changed since"),
            (3, "changed here"),
        ],
    ),
    (
        "x = ones(2, requires_grad=True)\ny = x.exp().sum()\ny.backward()\ny.backward()",
        [
            (4, "shape [], by SumBackward0"),
            (2, "ExpBackward0 kept a value here, freed since"),
            (3, "freed here"),
        ],
    ),
]


def test_a_terminal_gets_whole_words() -> None:
    lines = shown("ones(2, 3) + ones(2)", width=40, status=1).splitlines()
    assert lines[:4] == [
        "RuntimeError: The size of tensor a (3)",
        "              must match the size of",
        "              tensor b (2) at",
        "              non-singleton dimension 1",
    ]
    assert all(len(line) <= 48 for line in lines)  # a fix stays in one piece


@pytest.mark.parametrize(("text", "labels"), LABELS)
def test_labels(text: str, labels: list[tuple[int, str]]) -> None:
    assert [(label["line"], label["text"]) for label in error(text)["labels"]] == labels


def test_lines_of_earlier_inputs_are_not_lines_of_this_one() -> None:
    world = World()
    session = Session(world.environment, Settings())
    found: list[Result] = []
    session.run("x = ones(2, requires_grad=True)\ny = x.exp().sum()\ny.backward()", found.append)
    session.run("y.backward()", found.append)
    [failed] = [result for result in found if isinstance(result, ErrorResult)]
    assert [label.text for label in failed.diagnostic.labels] == ["shape [], by SumBackward0"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("layout()", "layout() takes a tensor, 0 arguments were given"),
        ("layout(3)", "layout() explains a tensor, '3' is a int"),
        ("layout(x=zeros(1))", "layout() takes"),
        ("graph(ones(1))", "graph() draws what was recorded, and nothing was"),
        ("broadcast()", "broadcast() takes tensors or shapes"),
        ("broadcast(ones(1), 'a')", "broadcast() takes tensors or shapes, ''a'' is neither"),
        ("grads(1)", "grads() takes no arguments"),
        ("precision(ones(1), 3)", "precision() takes dtypes after the tensor, not '3'"),
        ("precision(arange(3))", "precision() takes a floating-point tensor, not int64"),
        ("precision(ones(1), torch.int8)", "precision() compares floating-point dtypes, not int8"),
    ],
)
def test_wrong_calls_of_explanations(text: str, message: str) -> None:
    found = error(text)
    assert found["type"] == "TypeError"
    assert found["message"].startswith(message)
    assert found["line"] == 1


def test_a_name_of_the_users_own_wins() -> None:
    assert record("layout = lambda x: 7\nlayout(3)", "value")["value"] == 7
