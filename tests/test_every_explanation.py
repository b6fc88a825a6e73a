"""Every kind of result in every rendering: at 80 and 40 columns, for terminals, as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from tensorcli import findings, results, value_results
from tensorcli.explain import checking
from tensorcli.render import plain, rich
from tensorcli.render.json import record
from tensorcli.session import Session
from tensorcli.settings import Settings
from tests.in_memory import World
from tests.json_schema import mistakes

LEAF = "weights = torch.tensor([[1., 2.], [3., 4.]], requires_grad=True)\n"
LOSS = f"{LEAF}loss = (weights @ weights.t()).exp().log().sum()\n"
BORN = "x = torch.tensor([0., 4.], requires_grad=True)\ny = torch.where(x > 0, x.log(), x)\n"
LONG = "activations_of_the_second_layer = torch.arange(12.).view(3, 4).t()\n"

# A program for each class of result; those of a kind with many faces have several.
EXAMPLES: dict[type, list[str]] = {
    results.TensorResult: ["torch.arange(6.).view(2, 3).t() * 1e-3", LOSS + "loss"],
    results.ValueResult: ["(1, [2.5, torch.ones(2)], {'a': torch.float32})"],
    results.PrintResult: ["print('some words that go on for more than forty columns')"],
    results.WarningResult: ["F.mse_loss(torch.ones(3, 1), torch.ones(3))"],
    results.HintResult: [
        "pred = torch.ones(4, 1)\ntarget = torch.ones(4)\nd = pred - target",
        "activations = torch.zeros(4)\nactivations[[0, 2]].fill_(3)",
    ],
    results.ErrorResult: [
        "inputs = torch.ones(4, 3)\nweight = torch.ones(5, 3)\ninputs @ weight",
        "torch.zeross(2)",
        LOSS + "loss.backward()\nloss.backward()",
        "x = [",
    ],
    results.LayoutResult: [LONG + "layout(activations_of_the_second_layer)"],
    results.GradientsResult: [LOSS + "loss.backward()\ngrads()", LEAF + "grads()"],
    results.PrecisionResult: [
        "x = torch.linspace(0.1, 70000, 50)\nprecision(x)",
        "torch.tensor([0.1, 1e-9, 7e4]).half()",
    ],
    results.BroadcastResult: [
        "rows = torch.ones(4, 1)\nbroadcast(rows, torch.ones(3))",
        "broadcast(torch.ones(4, 2), torch.ones(3))",
    ],
    value_results.WhyResult: [
        LONG + "why(activations_of_the_second_layer.reshape(12))",
        "m = torch.tensor([0.5], dtype=torch.float16) + torch.tensor(2., dtype=torch.float64)\n"
        "why(m)",
    ],
    value_results.BitsResult: ["bits(torch.tensor([0.1, -2.0, 1e-40]))", "bits(3)"],
    value_results.DtypesResult: ["dtypes()"],
    value_results.PrecisionRunResult: [
        LEAF + "precision((weights * 1e4).softmax(1).log().sum(), torch.float16, torch.bfloat16)"
    ],
    value_results.SummaryResult: [
        "s = torch.tensor([[1., float('nan')], [0., float('inf')]])\nsummary(s)",
        LONG + "summary(activations_of_the_second_layer)",
    ],
    value_results.HistogramResult: ["hist(torch.arange(100.) ** 2)", "hist(torch.ones(3), bins=4)"],
    value_results.PlotResult: ["plot((torch.arange(200.) / 10).sin())", "plot([3., 2., 1.5])"],
    value_results.HeatmapResult: ["heatmap(torch.arange(600.).view(20, 30))"],
    findings.GraphResult: [LOSS + "graph(loss)"],
    findings.GraphDocument: [
        LOSS + f"graph(loss, format='{kind}')" for kind in ("dot", "svg", "mermaid", "html")
    ],
    findings.BackwardResult: [LOSS + "loss.backward()\nexplain_backward(loss)"],
    findings.AbsentGradient: [LEAF + "weights.grad", LEAF + "w = weights.double()\nw.grad"],
    findings.GradientCheckResult: [LOSS + "check_grad(loss)"],
    findings.ProvenanceResult: [BORN + "y.sum().backward()\ntrace_nan(x.grad)"],
    findings.CheckResult: [
        "x = torch.ones(4, 3)\ny = x @ torch.ones(3, 2)\nz = y + torch.ones(5)",
        LOSS + "print(loss.item())",
    ],
    findings.ShapeResult: ["shape(torch.ones(2, 3) @ torch.ones(3, 4))"],
    findings.HolesResult: ["zeros(3, 4) @ ? + zeros(5)"],
}


def concrete(kind: type = results.Result) -> Iterator[type]:
    """All classes of results that can occur."""
    below = kind.__subclasses__()
    if not below:
        yield kind
    for one in below:
        yield from concrete(one)


def made(kind: type, program: str) -> list[results.Result]:
    """The results of that class that a program gives at a terminal."""
    if kind is findings.CheckResult:  # what `tensorcli check` does with a file
        text = f"import torch\n{program}"
        return [checking.check(text, 0, 20.0)[0]]
    found: list[results.Result] = []
    session = Session(World(terminal=True).environment, Settings(seed=0))
    session.explains = True
    session.run("import torch\nimport torch.nn.functional as F", found.append)
    session.run(program, found.append, shows_last=True)
    return [one for one in found if type(one) is kind]


def test_every_class_has_an_example() -> None:
    assert {kind.__name__ for kind in concrete()} == {kind.__name__ for kind in EXAMPLES}


ALL = [(kind, program) for kind, programs in EXAMPLES.items() for program in programs]
EACH = pytest.mark.parametrize(
    ("kind", "program"), ALL, ids=lambda part: getattr(part, "__name__", "")
)

# What has a width of its own: a tensor's text, lines of the program and what is marked in them,
# tried words, the documents of a graph; and the sentence of an error in a pipe.
OWN_WIDTH = (results.TensorResult, results.ValueResult, results.PrintResult,
             findings.GraphDocument)  # fmt: skip
SOURCE = re.compile(r"^\s*\d* \| |^ --> |^\s*fix: |^\s*fix  ")


def too_wide(text: str, width: int, program: str) -> list[str]:
    """Lines beyond the width that are no words of the program."""
    return [
        line
        for line in text.splitlines()
        if len(line) > width
        and not SOURCE.match(line)
        and re.sub(r"^ *\d* *", "", line) not in program
    ]


@EACH
@pytest.mark.parametrize("width", [80, 40])
def test_plain(kind: type, program: str, width: int) -> None:
    found = made(kind, program)
    assert found
    for result in found:
        text = plain.text(result, width)
        assert "\x1b" not in text
        assert bool(text.strip()) is not getattr(kind, "is_picture", False)
        if kind is results.ErrorResult:  # whose sentence is one line, exactly as PyTorch has it
            text = text.replace(result.diagnostic.message, "")  # type: ignore[attr-defined]  # so
        if kind not in OWN_WIDTH:
            assert too_wide(text, width, program) == []


@EACH
@pytest.mark.parametrize("width", [80, 40])
def test_rich(kind: type, program: str, width: int) -> None:
    for result in made(kind, program):
        text = rich.text(result, width, None, False)
        assert text.strip()
        if kind not in OWN_WIDTH:
            assert too_wide(text, width, program) == []
        coloured = rich.text(result, width, None, True)
        assert re.sub(r"\x1b\[[\d;]*m", "", coloured).split() == text.split() or (
            kind is value_results.HeatmapResult  # colours are its values
        )


@EACH
def test_json(kind: type, program: str) -> None:
    for result in made(kind, program):
        text = record(result, None, False)
        assert "\n" not in text
        assert "\x1b" not in text
        assert mistakes(json.loads(text)) == []
