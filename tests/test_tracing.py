"""Explanations that follow values: graphs, backward passes, checked gradients, NaN, dry runs."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from tests.in_memory import World
from tests.json_schema import mistakes


def record(text: str, kind: str, *, flags: tuple[str, ...] = (), status: int = 0) -> dict[str, Any]:
    """The last object of that kind; all that a program gives is as the schema says."""
    world = World()
    assert world.run("eval", "--json", *flags, text) == status, world.out
    found = [json.loads(line) for line in world.out.splitlines()]
    assert [mistakes(one) for one in found] == [[] for _ in found]
    matching = [one for one in found if one["kind"] == kind]
    assert matching, found
    return dict(matching[-1])


def shown(text: str, *, width: int = 80, terminal: bool = False, status: int = 0) -> str:
    """The text that a pipe gets (or a terminal without colours)."""
    world = World(terminal=terminal)
    world.environment.fixed_width = width
    assert world.run("eval", text) == status, world.err
    return world.out


def fits(text: str, width: int) -> bool:
    return all(len(line) <= width for line in text.splitlines())


# -- graphs ----------------------------------------------------------------------------------

NET = (
    "w = ones(3, requires_grad=True)\nb = zeros(1, requires_grad=True)\n"
    "x = arange(6.).reshape(2, 3)\nh = x * w + b\ny = (h * h).sum()\n"
)


def test_graph() -> None:
    assert shown(NET + "graph(y)") == (
        "SumBackward0  [] · is y · line 5\n"
        "  MulBackward0  [2, 3] · line 5 · keeps h\n"
        "    AddBackward0  [2, 3] · is h · line 4\n"
        "      MulBackward0  [2, 3] · line 4 · keeps x\n"
        "        w  [3] · leaf\n"
        "      b  [1] · leaf\n"
        "    AddBackward0  [2, 3] · is h · line 4 · as above\n"
        "48 B kept for backward\n"
    )
    assert fits(shown(NET + "graph(y)", width=40), 40)
    found = record(NET + "graph(y)", "graph")
    assert found["saved_bytes"] == 48
    assert [row["name"] for row in found["rows"] if row["operation"] == "leaf"] == ["w", "b"]
    assert found["rows"][1]["saved"][0] == {
        "role": "other", "shape": [2, 3], "dtype": "float32", "bytes": 24, "name": "h",
    }  # fmt: skip


def test_a_freed_graph_says_so() -> None:
    assert "freed" in shown(NET + "y.backward()\ngraph(y)")


def test_a_long_graph_is_cut() -> None:
    long = "x = ones(1, requires_grad=True)\nfor i in range(5000): x = x * 2\ngraph(x)"
    text = shown(long, width=60)
    assert text.endswith("\n...\n")
    assert fits(text, 60)


@pytest.mark.parametrize("format", ["dot", "mermaid", "svg", "html"])
def test_graph_documents(format: str) -> None:
    text = shown(f"{NET}graph(y, format='{format}')")
    assert record(f"{NET}graph(y, '{format}')", "graph_document")["text"] == text
    assert "MulBackward0" in text
    assert "w [3]" in text
    assert "line 4" in text
    if format == "svg":
        root = ElementTree.fromstring(text)
        boxes = [one for one in root if one.tag.endswith("rect")]
        lines = [one for one in root if one.tag.endswith("line")]
        assert (len(boxes), len(lines)) == (6, 6)


def test_a_graph_of_no_known_format() -> None:
    assert record(NET + "graph(y, 'png')", "error", status=1)["type"] == "ValueError"


# -- backward --------------------------------------------------------------------------------


@pytest.mark.parametrize("before", ["", "y.backward()\n"])
def test_explain_backward(before: str) -> None:
    found = record(f"{NET}{before}explain_backward(y)", "backward")
    assert [step["operation"] for step in found["steps"]] == [
        "SumBackward0", "MulBackward0", "AddBackward0", "MulBackward0",
    ]  # fmt: skip
    add = found["steps"][2]
    assert (add["line"], add["code"], add["incoming"]) == (4, "h = x * w + b", [2, 3])
    assert add["arrivals"] == 2
    assert add["outgoing"][1]["to"] == "b"
    assert (add["outgoing"][1]["summed"], add["outgoing"][1]["shape"]) == ([0, 1], [1])
    ends = {one["to"]: one["value"] for one in found["leaves"]}
    assert ends == {"w": "[18, 34, 58]", "b": "[30]"}
    assert found["rerun"] is bool(before)


def test_explain_backward_leaves_gradients_alone() -> None:
    text = f"{NET}h.retain_grad()\ny.backward(retain_graph=True)\nexplain_backward(y)\n"
    assert record(text + "w.grad", "tensor")["data"] == [18, 34, 58]
    assert record(text + "h.grad", "tensor")["data"] == [[0, 2, 4], [6, 8, 10]]


def test_explain_backward_in_text() -> None:
    text = shown(NET + "explain_backward(y)")
    assert " 3  AddBackward0  line 4: h = x * w + b\n" in text
    assert "    to    b  [1]  [30]  (summed over dims 0, 1 of [2, 3]: it was broadcast)\n" in text
    assert fits(text, 80)
    assert fits(shown(NET + "explain_backward(y)", width=40), 46)


# -- gradients beside differences ------------------------------------------------------------


def test_check_grad_agrees() -> None:
    found = record(NET + "check_grad(y)", "gradient_check")
    assert [(row["name"], row["compared"], row["agrees"]) for row in found["rows"]] == [
        ("w", 3, True), ("b", 1, True),
    ]  # fmt: skip
    assert found["value"] == 55.0
    assert record(NET + "check_grad(y)\nw.grad is None", "value")["value"] is True


def test_check_grad_of_the_latest_step_of_a_loop() -> None:
    text = (
        "w = randn(3, 2, requires_grad=True)\nx = randn(4, 3)\nfor i in range(3):\n"
        "    loss = tanh(x @ w).pow(2).mean()\n    loss.backward()\n"
        "    with no_grad():\n        w -= 0.5 * w.grad\n        w.grad = None\ncheck_grad(loss)"
    )
    [row] = record(text, "gradient_check")["rows"]
    assert (row["compared"], row["agrees"]) == (6, True)
    assert row["gradient"] == pytest.approx(row["difference"], rel=1e-2, abs=1e-4)


def test_check_grad_finds_a_path_that_was_not_recorded() -> None:
    text = "c = tensor([2., 3.], requires_grad=True)\ny = (c * c.detach()).sum()\ncheck_grad(y)"
    [row] = record(text, "gradient_check")["rows"]
    assert not row["agrees"]
    assert row["difference"] == pytest.approx(2 * row["gradient"], rel=1e-2)
    text = "c = ones(1, requires_grad=True)\nd = ones(1, requires_grad=True)\n"
    rows = record(text + "check_grad((c.detach() * d).sum())", "gradient_check")["rows"]
    assert [(row["name"], row["agrees"]) for row in rows] == [("c", False), ("d", True)]
    assert "detach" in rows[0]["note"]


def test_check_grad_takes_any_slope_at_a_kink() -> None:
    text = "c = tensor([0., 1.], requires_grad=True)\ncheck_grad(relu(c).sum())"
    assert all(row["agrees"] for row in record(text, "gradient_check")["rows"])


def test_check_grad_of_what_is_not_finite() -> None:
    text = "c = zeros(1, requires_grad=True)\ny = c.log().sum()\ncheck_grad(y)"
    [row] = record(text, "gradient_check")["rows"]
    assert (row["compared"], row["difference"]) == (0, None)
    assert "trace_nan(y)" in row["note"]


def test_check_grad_in_text() -> None:
    for width in (80, 40):
        text = shown(NET + "check_grad(y)", width=width)
        assert fits(text, width)
        assert "agrees" in text


# -- .grad is None ---------------------------------------------------------------------------

LEAF = "x = tensor([1., 2.], requires_grad=True)\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{LEAF}x.grad", ["no backward() has run yet"]),
        (f"{LEAF}h = x * 2\nh.sum().backward()\nh.grad", ["no leaf", "line 2", "retain_grad"]),
        (f"{LEAF}x = x.double()\nx.sum().backward()\nx.grad", ["`x = x.double()`", "line 2"]),
        (f"{LEAF}d = (x * 2).detach()\nd.grad", ["detach() ends the graph", "line 2"]),
        (f"{LEAF}with no_grad():\n    d = x * 2\nd.grad", ["no_grad()", "line 3"]),
        (f"{LEAF}n = x.long()\nn.grad", ["int64 numbers have no slope"]),
        (
            f"{LEAF}z = ones(2, requires_grad=True)\n(x.detach() + z).sum().backward()\nx.grad",
            ["no backward() has come here", "x.detach", "line 3"],
        ),
    ],
)
def test_why_there_is_no_gradient(text: str, words: list[str]) -> None:
    found = " ".join(shown(text, terminal=True).split())
    assert "grad is None" in found
    assert all(word in found for word in words), found
    assert "is None" not in shown(text)  # nobody is at a terminal
    assert fits(shown(text, terminal=True, width=40), 46)


def test_the_table_says_why_a_gradient_is_missing() -> None:
    rows = record(f"{LEAF}grads()", "gradients")["rows"]
    assert rows[0]["reason"] == "no backward() has run yet"


# -- NaN and Inf -----------------------------------------------------------------------------

BORN = [
    ("x = tensor([4., -1.])\ny = x.sqrt() + 1\n", "y", "NaN", 2, "x.sqrt()", [1], "-1 is negative"),
    ("x = zeros(2)\ny = x / x\n", "y", "NaN", 2, "x / x", [0], "0 / 0"),
    ("x = zeros(2)\nx /= 0\n", "x", "NaN", 2, "x /= 0", [0], "0 / 0"),
    ("y = tensor([0., 1.]).log()\n", "y", "Inf", 1, "tensor([0., 1.]).log()", [0], "-inf"),
    ("y = tensor([90.]).exp()\n", "y", "Inf", 1, "tensor([90.]).exp()", [0], "exp(88.72)"),
    ("y = tensor([70000.]).half()\n", "y", "Inf", 1, "tensor([70000.]).half()", [0], "65504"),
    ("y = tensor([-8.]) ** (1 / 3)\n", "y", "NaN", 1, "tensor([-8.]) ** (1 / 3)", [0], "fraction"),
    ("y = zeros(0).mean()\n", "y", "NaN", 1, "zeros(0).mean()", [], "no elements"),
    ("y = ones(1).std()\n", "y", "NaN", 1, "ones(1).std()", [], "correction"),
    ("y = tensor([inf, 1.]) * 0\n", "y", "NaN", 1, "tensor([inf, 1.]) * 0", [0], "0 * inf"),
    (
        "def f(t):\n    return t / t.sum()\ny = f(zeros(2)) * 2\n",
        "y", "NaN", 2, "t / t.sum()", [0], "0 / 0",
    ),
    (
        "s = full((1, 2), -inf)\ny = s.softmax(1)\n",
        "y", "NaN", 2, "s.softmax(1)", [0, 0], "nothing but -inf",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "of", "what", "line", "born", "index", "reason"), BORN)
def test_where_it_was_born(
    text: str, of: str, what: str, line: int, born: str, index: list[int], reason: str
) -> None:
    found = record(f"{text}trace_nan({of})", "provenance")
    origin = found["origins"][-1]
    assert (origin["what"], origin["line"], origin["text"]) == (what, line, born)
    assert (origin["index"], origin["phase"]) == (index, "forward")
    assert reason in origin["reason"] + str(origin["cure"])


def test_a_nan_by_way_of_an_infinity_names_both() -> None:
    text = "h = (ones(2) * 70000).half()\nq = h - h\ntrace_nan(q)"
    first, second = record(text, "provenance")["origins"]
    assert (first["what"], first["line"], second["what"], second["line"]) == ("Inf", 1, "NaN", 2)


WHERE = (
    "x = tensor([0., 4.], requires_grad=True)\ny = where(x > 0, x.log(), 0.)\ny.sum().backward()\n"
)


def test_a_nan_of_the_backward_pass() -> None:
    [origin] = record(f"{WHERE}trace_nan(x.grad)", "provenance")["origins"]
    assert (origin["phase"], origin["operation"], origin["line"]) == ("backward", "LogBackward0", 2)
    assert origin["index"] == [0]
    assert "where() gives the branch that it does not take gradient 0" in origin["reason"]


def test_a_fix_that_was_tried() -> None:
    [origin] = record(f"{WHERE}trace_nan(x.grad)", "provenance")["origins"]
    fixed = "y = where(x > 0, torch.where(x > 0, x, 1.0).log(), 0.)"
    assert origin["fix"] == fixed
    assert record(WHERE.replace("y = where(x > 0, x.log(), 0.)", fixed) + "x.grad", "tensor")[
        "data"
    ] == [0, 0.25]
    found = record("x = tensor([0., -200.])\ny = x.softmax(0).log()\ntrace_nan(y)", "provenance")
    assert found["origins"][0]["fix"] == "y = x.log_softmax(0)"
    found = record("x = zeros(2)\ny = x / x\ntrace_nan(y)", "provenance")
    assert found["origins"][0]["fix"] is None


def test_each_leaf_has_its_own_origin() -> None:
    text = (
        f"{WHERE}z = tensor([0., 4.], requires_grad=True)\nm = z > 0\na = z.sqrt()\n"
        "where(m, a, zeros(2)).sum().backward()\ntrace_nan(z.grad)"
    )
    [origin] = record(text, "provenance")["origins"]
    assert (origin["operation"], origin["line"]) == ("SqrtBackward0", 6)


def test_a_nan_that_an_optimiser_step_brought() -> None:
    text = (
        "w = tensor([1., 2.], requires_grad=True)\nopt = torch.optim.SGD([w], lr=0.1)\n"
        "for i in range(3):\n    opt.zero_grad()\n    loss = (tensor([3., 0.]) * w).sqrt().sum()\n"
        "    loss.backward()\n    opt.step()\ntrace_nan(loss)"
    )
    found = record(text, "provenance")
    assert (found["origins"][0]["operation"], found["origins"][0]["line"]) == ("SqrtBackward0", 5)
    assert found["path"][0]["text"] == "opt.step()"


def test_nothing_to_trace() -> None:
    assert shown("trace_nan(ones(2))") == "ones(2)  has no NaN and no Inf\n"


def test_the_flag() -> None:
    found = record(WHERE, "provenance", flags=("--trace-nan",))
    assert found["origins"][0]["operation"] == "LogBackward0"
    world = World()
    assert world.run("eval", "--trace-nan", "1 + 1") == 0
    assert world.out == "2\n"
    text = "x = full((2,), -inf)\ny = x.softmax(0)\nassert not y.isnan().any()"
    found = record(text, "provenance", flags=("--trace-nan",), status=5)
    assert found["origins"][-1]["line"] == 2


def test_provenance_in_text() -> None:
    text = shown(f"{WHERE}trace_nan(x.grad)")
    assert text.startswith("x.grad  1 NaN among 2 values\nfirst NaN of the backward pass, line 2:")
    for width in (80, 40):
        assert fits(shown(f"{WHERE}trace_nan(x.grad)", width=width), width)


# -- without data ----------------------------------------------------------------------------


def test_shape() -> None:
    found = record("x = randn(10, 20)\nshape((x @ zeros(20, 30)).t())", "shape")
    assert (found["shape"], found["stride"], found["dtype"]) == ([30, 10], [1, 30], "float32")
    assert (found["bytes"], found["operations"]) == (1200, 12000)
    assert shown("shape(zeros(10**6, 10**6) + 1)") == (
        "[1000000, 1000000] float32 · strides (1000000, 1) · 3.64 TiB · 1 T flop\n"
    )
    inside = "w = ones(3, 4)\ndef f(a):\n    return shape(a @ w)\nf(ones(2, 3))"
    assert record(inside, "shape")["shape"] == [2, 4]


def test_shape_changes_nothing() -> None:
    text = "x = zeros(2)\nmanual_seed(1)\na = rand(1)\nmanual_seed(1)\nshape(x.add_(rand(2)))\n"
    assert record(f"{text}x", "tensor")["data"] == [0, 0]
    assert record(f"{text}rand(1) == a", "tensor")["data"] == [True]


def test_shape_of_what_fails() -> None:
    found = record("shape(zeros(3) + zeros(4))", "error", status=1)
    assert (found["code"], found["column"]) == ("broadcast", 7)


@pytest.mark.parametrize(
    ("text", "first", "result"),
    [
        ("zeros(3, 4) @ ? + zeros(5)", [[4, 5]], [3, 5]),
        ("? @ zeros(4, 5)", [[4]], [5]),
        ("x = zeros(2, 3, 8, 8)\ncat([x, ?], dim=1)", [[2, "n", 8, 8]], [2, "n+3", 8, 8]),
        ("linear(zeros(2, 5), ?, zeros(7))", [[7, 5]], [2, 7]),
        ("zeros(2, 3) @ ? @ ? @ zeros(6)", [[3], [6]], [2]),
    ],
)
def test_holes(text: str, first: list[list[Any]], result: list[Any]) -> None:
    text = text.replace("linear", "torch.nn.functional.linear")
    fits_found = record(text, "holes")["fits"]
    if text.count("?") == 1:
        assert fits_found[0] == {"holes": first, "result": result}
    else:
        assert fits_found


def test_holes_in_text() -> None:
    assert shown("zeros(3, 4) @ ? + zeros(5)").startswith("? = [4, 5] · gives [3, 5]\n")
    assert shown("zeros(3) @ zeros(4) @ ?") == "no shape fits in zeros(3) @ zeros(4) @ ?\n"
    assert shown("'a?'  # why?") == "'a?'\n"


@pytest.mark.parametrize("text", ["x?", "y = zeros(2) + ?", "?x", "f(?", "é = ?"])
def test_question_marks_that_are_no_holes(text: str) -> None:
    assert record(text, "error", status=3)["code"] == "syntax"


PROGRAM = """\
# a net
x = torch.randn(64, 784)
w = torch.randn(784, 10, requires_grad=True)
def net(x):
    return torch.relu(x @ w)
for i in range(3):
    loss = net(x).sum()
    loss.backward()
t = x.t()
n = x.shape[0]
"""


def checked(tmp_path: Path, text: str, *flags: str, status: int = 0, width: int = 80) -> World:
    path = tmp_path / "program.tx"
    path.write_text(text, encoding="utf-8")
    world = World()
    world.environment.fixed_width = width
    assert world.run("check", *flags, str(path)) == status, world.out + world.err
    return world


def check_record(tmp_path: Path, text: str, status: int = 0) -> dict[str, Any]:
    world = checked(tmp_path, text, "--json", status=status)
    found = [json.loads(line) for line in world.out.splitlines()]
    assert [mistakes(one) for one in found] == [[] for _ in found]
    assert found[-1]["kind"] == "end"
    assert (found[-2]["kind"] == "error") is bool(status)
    return dict(found[0])


def test_check(tmp_path: Path) -> None:
    found = check_record(tmp_path, PROGRAM)
    rows = {row["line"]: row for row in found["rows"]}
    assert [row["text"] for row in found["rows"]] == PROGRAM.splitlines()
    assert (rows[2]["shape"], rows[2]["bytes"]) == ([64, 784], 200704)
    assert (rows[5]["shape"], rows[5]["times"]) == ([64, 10], 3)
    assert rows[5]["operations"] == 3 * (2 * 64 * 784 * 10 + 640)
    assert rows[9]["stride"] == [1, 784]
    assert rows[9]["contiguous"] is False
    assert rows[10]["note"] == "n 64"
    assert found["real"] is False
    assert found["operations"] > rows[5]["operations"]
    assert 200704 + 2 * 31360 <= found["peak"] < 2 * 200704


def test_check_stops_at_the_first_error(tmp_path: Path) -> None:
    text = "x = zeros(10**6, 10**6)\ny = x @ zeros(3)\nz = 1\n"
    found = check_record(tmp_path, text, status=5)
    assert [row["shape"] for row in found["rows"]] == [[10**6, 10**6], None, None]
    world = checked(tmp_path, text, status=5)
    assert "size mismatch" in world.err
    assert "program.tx:2:5" in world.err


def test_check_of_a_program_that_looks_at_values(tmp_path: Path) -> None:
    text = "a = tensor([1., 2.])\nif a.sum() > 2:\n    b = a[a > 1]\n"
    found = check_record(tmp_path, text)
    assert found["real"] is True
    assert found["rows"][-1]["shape"] == [1]
    assert "line 2 `a.sum() > 2` looks at values" in found["note"]


def test_check_in_text(tmp_path: Path) -> None:
    text = checked(tmp_path, PROGRAM).out
    assert " 9  t = x.t()" in text
    assert "t [784, 64] float32 · strides (1, 784)" in text
    assert "peak memory" in text.splitlines()[-1]
    narrow = checked(tmp_path, "x = zeros(2)\ny = x.t()\n", width=40).out
    assert fits(narrow, 40)


def test_check_of_files_that_are_none(tmp_path: Path) -> None:
    checked(tmp_path, "x = (", status=3)
    world = World()
    assert world.run("check", str(tmp_path / "missing.tx")) == 4
