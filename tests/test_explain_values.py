"""Explanations of one value: views and copies, bits, whole computations, summaries, pictures."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

from engine.dtypes import by_name
from engine.errors import ViewError
from engine.numeric_limits import finfo
from engine.registry import functions
from tensorcli.explain.bits import table
from tensorcli.explain.merging import blocking
from tensorcli.session import Session
from tensorcli.settings import Settings
from tests.in_memory import World
from tests.json_schema import mistakes


def record(text: str, kind: str) -> dict[str, Any]:
    """The last object of that kind; every object must be as the schema says."""
    world = World()
    world.run("eval", "--json", text)
    found = [json.loads(line) for line in world.out.splitlines()]
    assert [mistakes(one) for one in found] == [[] for _ in found]
    matching = [one for one in found if one["kind"] == kind]
    assert matching, found
    return dict(matching[-1])


def shown(text: str, *flags: str, width: int = 80, terminal: bool = True, **variables: str) -> str:
    world = World(b"", terminal=terminal, **variables)
    world.environment.fixed_width = width
    assert world.run("eval", *flags, text) == 0, world.err
    return world.out


# -- views and copies


CHAINS = [
    ("x = zeros(2, 3)\ny = x.t()\nwhy(y)", "view", "x", ["source", "view"]),
    ("x = zeros(2, 3)\nwhy(x.t().reshape(6))", "copy", None, ["source", "view", "copy"]),
    ("x = zeros(2, 3)\nwhy(x.reshape(6))", "view", "x", ["source", "view"]),
    ("x = zeros(2, 3)\nwhy(x.contiguous())", "same", None, ["source", "same"]),
    ("x = zeros(2, 3)\nwhy(x.detach())", "view", "x", ["source", "view"]),
    ("x = zeros(2, 3)\nwhy(x.data)", "view", "x", ["source", "view"]),
    ("x = zeros(2, 3).t()\nwhy(x[0])", "view", "x", ["source", "view"]),
    (
        "x = zeros(2, 3)\nwhy(x.t()[0].clone().view(1, 2))",
        "view",
        "a temporary",
        ["source", "view", "view", "copy", "view"],
    ),
    ("x = zeros(2, 3)\nwhy(x[:, 1])", "view", "x", ["source", "view"]),
    ("x = zeros(2, 3)\nwhy(x[[0, 1]])", "copy", None, ["source", "copy"]),
    ("x = zeros(2, 3)\nm = x == 0\nwhy(x[m])", "copy", None, ["source", "copy"]),
    ("x = zeros(2, 3)\nwhy(x.flip(0))", "copy", None, ["source", "copy"]),
    ("x = zeros(2, 3)\nwhy(x.half())", "copy", None, ["source", "copy"]),
    ("x = zeros(2, 3)\nwhy(torch.flatten(x.t()))", "copy", None, ["source", "view", "copy"]),
    ("x = zeros(2, 3)\nx = x + 1\nwhy(x)", "own", None, []),
    ("x = zeros(2, 3)\nfor i in range(2): x = x.t()\nwhy(x)", "view", "a temporary", []),
    ("x = rand(3).uniform_()\nwhy(x)", "own", None, []),
]


@pytest.mark.parametrize(("text", "verdict", "base", "outcomes"), CHAINS)
def test_why(text: str, verdict: str, base: str | None, outcomes: list[str]) -> None:
    found = record(text, "why")
    assert found["verdict"] == verdict
    assert found["view_of"] == base
    assert [step["outcome"] for step in found["steps"]] == outcomes
    copies = [step for step in found["steps"] if step["outcome"] == "copy"]
    assert all(step["reason"] for step in copies)


def test_two_names_of_one_tensor() -> None:
    found = record("x = zeros(2, 3)\ny = x\nwhy(y)", "why")
    assert found["reason"] == "x is the same tensor by another name: what changes one changes both"


def test_a_rebound_name_is_not_taken_for_the_old_one() -> None:
    assert record("x = zeros(2, 3)\ny = x.t()\nx = zeros(5)\nwhy(y)", "why")["steps"] == []


def test_a_chain_is_done_again_without_effects() -> None:
    text = "manual_seed(0)\ny = rand(2, 3).t()\n{}rand(1)"
    plain = record(text.format(""), "tensor")["data"]
    assert record(text.format("why(y)\n"), "tensor")["data"] == plain


WHY = """\
z is a copy of 24 B
  because  dims 0 and 1 cannot be merged: a step of dim 0 must be as long as dim
           1, 2 * 3 = 6, and it is 1
  made by       shape  strides
  x            [2, 3]   (3, 1)
  .t()         [3, 2]   (1, 3)        view
  .reshape(6)     [6]     (1,)  copy, 24 B
"""
WHY_NARROW = """\
y is a view of x
  because  it shows the memory of x,
           with strides and an offset of
           its own; nothing was copied
  made by   shape  strides
  x        [2, 3]   (3, 1)
  .t()     [3, 2]   (1, 3)  view
  shared with  x
"""


def test_why_in_text() -> None:
    assert shown("x = zeros(2, 3)\nz = x.t().reshape(6)\nwhy(z)") == WHY
    assert shown("x = zeros(2, 3)\ny = x.t()\nwhy(y)", width=40) == WHY_NARROW


def test_layout_draws_the_order_in_memory() -> None:
    found = record("x = arange(24).view(2, 3, 4)[:, 1:, ::2]\nlayout(x)", "layout")
    assert found["positions"] == [4, 6, 8, 10, 16, 18, 20, 22]
    assert [step["outcome"] for step in found["steps"]] == ["source", "view", "view"]
    assert record("layout(zeros(100, 100).t())", "layout")["positions"] is None
    text = shown("x = arange(24).view(2, 3, 4)[:, 1:, ::2]\nlayout(x)")
    assert "positions     4  6\n              8 10\n\n             16 18\n" in text
    assert "walk         4 6 8 10 16 18 20 22\n" in text


def test_the_gap_is_found_exactly_where_view_fails() -> None:
    draw = random.Random(1)
    failed = 0
    for _ in range(300):
        shape = [draw.choice((1, 2, 3, 4)) for _ in range(draw.randint(1, 4))]
        x = functions["zeros"](*shape)
        dims = list(range(len(shape)))
        draw.shuffle(dims)
        x = x.permute(*dims)
        left, wanted = x.numel(), []
        while left > 1:
            wanted.append(draw.choice([n for n in range(2, left + 1) if left % n == 0]))
            left //= wanted[-1]
        gap = blocking(tuple(x.shape), x.stride(), wanted)
        try:
            x.view(*wanted) if wanted else x.view(())
            assert gap is None
        except ViewError:
            failed += 1
            assert gap is not None
            assert gap.stride != gap.wanted
    assert failed > 50


def test_a_refused_view_names_the_two_dims() -> None:
    note = record("x = zeros(2, 3, 4)\nx.transpose(1, 2).view(2, 12)", "error")["notes"][0]
    assert "dims 1 and 2 cannot be merged" in note
    assert "3 * 4 = 12, and it is 1" in note


# -- bits


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_bits_and_neighbours_are_numpys(dtype: str) -> None:
    draw = random.Random(3)
    values = [0.0, 1.0, -1.0, 0.1, 60000.0, 6e-8, *(draw.gauss(0, 10) for _ in range(9))]
    rows = record(f"bits(tensor({values}, dtype={dtype}))", "bits")["rows"]
    kind = np.dtype(dtype).type
    for value, row in zip(values, rows, strict=True):
        number = kind(value)
        raw = int.from_bytes(number.tobytes(), "little")
        assert "".join(bits for _, bits in row["fields"]) == f"{raw:0{8 * number.nbytes}b}"
        below, above = np.nextafter(number, kind(-np.inf)), np.nextafter(number, kind(np.inf))
        assert row["below"] == float(below)
        assert row["above"] == ("inf" if np.isinf(above) else float(above))
        if row["kind"] != "zero":
            assert row["spacing"] == float(np.spacing(np.abs(number)))


def test_bits_in_text() -> None:
    assert shown("bits(tensor([1., -0.1], dtype=bfloat16))") == (
        "bfloat16: sign exponent mantissa\n"
        "[0]  0 01111111 0000000  1.0\n"
        "     normal · times 2^0 · spacing 0.0078125 · below 0.99609375 · above 1.0078125\n"
        "[1]  1 01111011 1001101  -0.10009765625\n"
        "     normal · times 2^-4 · spacing 0.00048828125 · below -0.100585938\n"
        "       above -0.099609375\n"
    )
    narrow = shown("bits(tensor([1., -0.1], dtype=bfloat16))", width=40)
    assert all(len(line) <= 40 for line in narrow.splitlines())


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("bits(tensor(True))", [["value", "00000001"]]),
        ("bits(tensor(-1, dtype=int8))", [["sign", "1"], ["value", "1111111"]]),
        ("bits(tensor(200, dtype=uint8))", [["value", "11001000"]]),
    ],
)
def test_bits_of_integers(text: str, fields: list[list[str]]) -> None:
    assert record(text, "bits")["rows"][0]["fields"] == fields


def test_the_table_of_dtypes_is_finfo() -> None:
    for row in table().rows:
        info = finfo(by_name[row.dtype])
        assert (info.eps, info.max, info.tiny) == (row.eps, row.max, row.smallest_normal)
        assert sum(row.bits) == info.bits
    assert [line[:8] for line in shown("dtypes()").splitlines()] == [
        *("dtype   ", "float64 ", "float32 ", "float16 ", "bfloat16", "float8_e", "float8_e"),
    ]


# -- whole computations


def run_of(text: str) -> dict[str, Any]:
    return dict(record(text, "precision_run")["runs"][0])


def causes(text: str) -> dict[str, str]:
    return {step["text"]: step["cause"] for step in run_of(text)["steps"]}


LOOP = "def f(x):\n    s = tensor({})\n    for i in range({}):\n        s = s + x\n    return s\n"
CAUSES = [
    ("a = tensor(1.)\nb = tensor(0.001)\nprecision(a + b, bfloat16)", "a + b", "absorption"),
    ("a = tensor(1.01)\nb = tensor(1.)\nprecision(a - b, bfloat16)", "a - b", "cancellation"),
    ("a = tensor(300.)\nprecision(a * a, float16)", "a * a", "overflow"),
    ("a = tensor(1e-5)\nprecision(a * a, float16)", "a * a", "underflow"),
    ("a = tensor(12.)\nprecision(a.exp(), float16)", "a.exp()", "overflow"),
    ("a = tensor(0.3)\nprecision(a.exp(), float16)", "a.exp()", "rounding"),
    ("a = tensor(0.5)\nprecision(a * 2, float16)", "a * 2", "exact"),
    (LOOP.format("0.", 100) + "precision(f(tensor(0.01)), bfloat16)", "s + x", "accumulation"),
    (LOOP.format("256.", 9) + "precision(f(tensor(1.)), bfloat16)", "s + x", "absorption"),
    ("precision(tensor(1e5) * 2, float16)", "tensor(1e5)", "overflow"),
]


@pytest.mark.parametrize(("text", "operation", "cause"), CAUSES)
def test_causes(text: str, operation: str, cause: str) -> None:
    assert causes(text)[operation] == cause


def test_absorption_is_told_with_the_spacing() -> None:
    text = "a = tensor(1.)\nb = tensor(0.001)\nprecision(a + b, bfloat16)"
    [step] = [step for step in run_of(text)["steps"] if step["text"] == "a + b"]
    assert step["reason"] == (
        "bfloat16 1 and 0.000999451: the spacing at 1 is 0.0078125, so 0.000999451 is lost"
    )


def test_the_gradient_is_run_too() -> None:
    text = "w = tensor([1e-4, 2.], requires_grad=True)\nprecision((w * w * 1e-4).sum(), float16)"
    found = run_of(text)
    [[name, lost]] = found["gradients"]
    assert (name, lost["count"], lost["zeroed"]) == ("w", 2, 1)
    steps = {step["text"]: step for step in found["steps"]}
    assert steps["w * w"]["gradient"] is not None


def test_a_run_leaves_no_trace() -> None:
    text = (
        "manual_seed(0)\nw = ones(2, requires_grad=True)\nx = zeros(2)\n"
        "def f():\n    print('heard')\n    x.add_(1)\n    return (w * x * rand(2)).sum()\n"
        "{}(x, w.grad, rand(2))"
    )
    quiet = record(text.format(""), "value")
    asked = text.format("precision(f(), float16)\n")
    loud = record(asked, "value")
    assert {**loud, "line": 0} == {**quiet, "line": 0}
    world = World()
    assert world.run("eval", "--json", asked) == 0
    assert "heard" not in world.out


def test_a_loop_that_converges_is_measured_as_a_whole() -> None:
    text = (
        "def f():\n    w = tensor([0.])\n    for i in range(60):\n"
        "        w = w - 0.2 * (w - 3)\n    return w\nprecision(f(), bfloat16)"
    )
    steps = {step["text"]: step for step in run_of(text)["steps"]}
    assert steps["w - 3"]["times"] == 60
    assert 0 < steps["w - 3"]["total"] < 0.1


def test_a_prompt_knows_what_was_typed_before() -> None:
    session = Session(World().environment, Settings())
    found: list[Any] = []
    session.run("x = zeros(2, 3)\ndef f(a):\n    return (a @ x).sum() / 3", found.append)
    session.run("y = x.t()", found.append)
    session.run("why(y)", found.append)
    assert [step.outcome for step in found[-1].steps] == ["source", "view"]
    session.run("precision(f(x.t() + 1), bfloat16)", found.append)
    assert [step.text for step in found[-1].runs[0].steps][-1] == "f(x.t() + 1)"


def test_what_a_dtype_cannot_do_is_said() -> None:
    assert "not implemented" in run_of("a = ones(2)\nprecision(a * 2, float8_e5m2)")["error"]


def test_a_tensor_that_was_only_made_is_compared_as_it_is() -> None:
    assert record("precision(tensor([0.1]), bfloat16)", "precision")["rows"][0]["exact"] == 0
    assert record("x = ones(2)\nprecision(x)", "precision")["rows"][0]["sqnr_db"] is None


RUN = """\
bfloat16  1 where float64 gives 1.001, 0.0999 % off
  operation  line  own error   so far       cause
  b             3    0.00055  0.00055    rounding
  a + b         3      0.001    0.001  absorption
  absorption in a + b: bfloat16 1 and 0.000999451: the spacing at 1 is
                       0.0078125, so 0.000999451 is lost
"""
RUN_NARROW = """\
bfloat16  1 where float64 gives 1.001,
          0.0999 % off
  operation  own error       cause
  b            0.00055    rounding
  a + b          0.001  absorption
  absorption in a + b:
    bfloat16 1 and 0.000999451: the
    spacing at 1 is 0.0078125, so
    0.000999451 is lost
"""


def test_a_run_in_text() -> None:
    text = "a = tensor(1.)\nb = tensor(0.001)\nprecision(a + b, bfloat16)"
    assert shown(text) == RUN
    assert shown(text, width=40) == RUN_NARROW


def test_the_command() -> None:
    world = World()
    program = ("a = torch.tensor(1.)", "b = a + 0.001", "print(1)", "b - a")
    assert world.run("precision", *program, "--dtypes", "bfloat16", "--json") == 0, world.err
    [line] = world.out.splitlines()
    found = json.loads(line)
    assert mistakes(found) == []
    assert (found["kind"], found["line"], found["text"]) == ("precision_run", 4, "b - a")
    steps = {step["text"]: step["cause"] for step in found["runs"][0]["steps"]}
    assert steps == {"a + 0.001": "absorption", "b - a": "cancellation"}


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("1 + ",), 3, "SyntaxError"),
        (("x = 3",), 2, "UsageError: the program does not end in an expression"),
        (("1 + 1",), 1, "TypeError: precision() found no operation on floating-point tensors\n"),
        (("ones(2) * 2", "--dtypes", "half"), 2, "UsageError: 'half' is not one of float64"),
        (("ones(2) @ ones(3)",), 1, "RuntimeError"),
    ],
)
def test_wrong_uses_of_the_command(arguments: tuple[str, ...], status: int, message: str) -> None:
    world = World()
    found = world.run("precision", *arguments)
    assert world.err.startswith(message)
    assert found == status


# -- summaries and pictures


def test_summary() -> None:
    found = record(
        "x = tensor([0., 1., 2., 3., float('nan'), float('inf')])\nsummary(x)", "summary"
    )
    wanted = {"minimum": 0.0, "maximum": 3.0, "mean": 1.5, "zeros": 1, "nan": 1, "inf": 1}
    assert {name: found[name] for name in wanted} == wanted
    assert found["deviation"] == pytest.approx(np.std([0, 1, 2, 3], ddof=1))
    assert sum(found["counts"]) == 4


def test_large_tensors_are_sampled_and_say_so() -> None:
    found = record("summary(ones(2_000_001))", "summary")
    assert found["sampled"] < found["count"] == 2_000_001
    assert "a sample of" in shown("summary(ones(2_000_001))")
    assert record("summary(ones(1500, 1500).t())", "summary")["sampled"] <= 1_000_000


@pytest.mark.parametrize("text", ["summary(ones(0))", "summary(ones(3, device='meta'))"])
def test_summaries_without_values(text: str) -> None:
    assert record(text, "summary")["minimum"] is None


SUMMARY = """\
shape     [4, 5]  float32, cpu
strides   (1, 4), not contiguous
elements  20, 80 B
range     0 .. 19
mean      9.5, deviation 5.916
zeros     1
spread    █████▄██▄█▄█  2 2 2 2 2 1 2 2 1 2 1 1
gradient  none required
"""


def test_summary_in_text() -> None:
    text = shown("summary(arange(20.).view(5, 4).t())")
    assert [line for line in text.splitlines() if not line.startswith("spread")] == [
        line for line in SUMMARY.splitlines() if not line.startswith("spread")
    ]
    narrow = shown("summary(arange(20.).view(5, 4).t())", width=40)
    assert all(len(line) <= 40 for line in narrow.splitlines())


def test_the_line_under_a_long_tensor_tells_its_spread() -> None:
    line = shown("arange(40.)").splitlines()[-2:]
    assert "0 .. 39 · mean 19.5 ± 11.69" in " ".join(line)
    assert "% zero" in " ".join(line)
    assert "mean" not in shown("arange(4.)")


PICTURES = [
    "hist(arange(20.))",
    "plot(arange(20.))",
    "plot([tensor(1.), 2, 0.5])",
    "heatmap(arange(12.).view(3, 4))",
    "hist(tensor([1., float('nan')]))",
    "plot(ones(1))",
    "plot([float('nan'), 1., float('inf'), 2.])",
    "heatmap(tensor([[float('nan'), 1.]]))",
    "hist(randn(5), bins=3)",
    "plot(arange(1000.))",
    "heatmap(rand(200, 300))",
]


@pytest.mark.parametrize("text", PICTURES)
def test_pictures_are_for_terminals(text: str) -> None:
    assert shown(text, terminal=False) == ""
    for width in (80, 40, 20):
        drawn = shown(text, width=width)
        assert drawn
        if width >= 40:
            assert all(len(line) <= width for line in drawn.splitlines()), drawn
    assert shown(text, TENSORCLI_ASCII="1").isascii()
    assert shown(text[:-1] + ", ascii=True)").isascii()
    kind = {"hist": "histogram"}.get(text.partition("(")[0], text.partition("(")[0])
    assert record(text, kind)


def test_a_heat_map_is_colours_where_there_are_some() -> None:
    drawn = shown("heatmap(arange(12.).view(3, 4))", "--color", "always")
    assert drawn.count("▀") == 8
    assert "▀" not in shown("heatmap(arange(12.).view(3, 4))", "--color", "never")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("plot(ones(2, 2))", "plot() takes a vector or a list of numbers, 'ones(2, 2)' has"),
        ("plot('a')", "plot() takes a vector or a list of numbers, not ''a''"),
        ("heatmap(ones(2, 2, 2))", "heatmap() takes a matrix, not a tensor of shape [2, 2, 2]"),
        ("hist(ones(3), bins=0)", "hist() takes bins from 1 to 1000"),
        ("hist(ones(3), color=1)", "hist() takes no keyword 'color'"),
        ("bits('a')", "bits() takes a tensor, ''a'' is a str"),
        ("bits(tensor(1j))", "bits() takes real numbers, not complex64"),
        ("why(3)", "why() explains a tensor, '3' is a int"),
        ("dtypes(1)", "dtypes() takes no arguments"),
        ("precision(...)", "precision(...) explains the expression above it"),
    ],
)
def test_wrong_calls(text: str, message: str) -> None:
    found = record(text, "error")
    assert found["type"] == "TypeError"
    assert found["message"].startswith(message)


def test_functions_see_the_copies() -> None:
    text = (
        "w = tensor([0.1, 0.3])\nf = lambda x: (x * w).sum()\n"
        "@no_grad()\ndef g(x):\n    return x @ w\n"
        "x = ones(2)\nprecision(f(x) + g(x), bfloat16)"
    )
    found = run_of(text)
    assert found["error"] is None
    assert [step["text"] for step in found["steps"]][:4] == ["w", "x * w", "(x * w).sum()", "g(x)"]


@pytest.mark.parametrize(
    ("before", "used"),
    [
        ("o = torch.optim.SGD([w], lr=0.1)", "o.step()"),
        ("o = iter([w, w])", "next(o)"),
    ],
)
def test_what_a_rerun_would_change_is_left_alone(before: str, used: str) -> None:
    text = f"w = ones(2, requires_grad=True)\n{before}\nprecision([{used}, w * 2][1], bfloat16)"
    found = record(text, "error")
    assert found["message"] == "precision() runs a computation on copies, and 'o' cannot be copied"


def test_a_chain_with_effects_is_not_told() -> None:
    text = "s = [3, 2]\nx = zeros(2, 3)\ny = x.view(s.pop(), 3)\nwhy(y)\nlen(s)"
    assert record(text, "why")["steps"] == []
    assert record(text, "value")["value"] == 1


def test_long_operations_are_named_without_their_operands() -> None:
    text = "a = ones(3)\nprecision(torch.softmax(a * 1.1 + a * 2.2, dim=-1).sum(0), float16)"
    shorts = [step["short"] for step in run_of(text)["steps"]]
    assert shorts[-2:] == ["torch.softmax(…, dim=-1)", "….sum(0)"]


def test_a_long_line_is_not_bent() -> None:
    """The groups of a straight line are a straight line, but for the rounding of their sizes."""
    found = record("plot(arange(200.))", "plot")
    values = found["values"]
    steps = [b - a for a, b in zip(values, values[1:], strict=False)]
    half = len(steps) // 2
    assert abs(sum(steps[:half]) - sum(steps[half:])) < 4
