"""Mistakes of every kind: the note names the culprit, the first fix is the one that is wanted.

Each fix is run in the place of the expression that failed, and gives the shape that it states.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tensorcli.results import ErrorResult, Result
from tensorcli.session import Session
from tensorcli.settings import Settings
from tests.in_memory import World
from tests.json_schema import mistakes

# (what is there, the line that fails, words of a note, the first fix)
MISTAKES: list[tuple[str, str, str, str | None]] = [
    # broadcasting
    ("a = ones(2, 3); b = ones(2)", "a + b", "3 of `a` meets 2 of `b`", "a + b.unsqueeze(1)"),
    ("a = ones(2, 3); b = ones(2)", "add(a, b)", "meets 2 of `b`", "add(a, b.unsqueeze(1))"),
    ("a = ones(2, 3); b = ones(2)", "a > b", "meets 2 of `b`", "a > b.unsqueeze(1)"),
    ("a = ones(2, 3); b = ones(3, 2)", "a * b", "dimension 1", "a * b.t()"),
    ("a = ones(2, 3); b = ones(5)", "a - b", "3 of `a` meets 5 of `b`", None),
    ("a = ones(2, 3); b = ones(2)", "where(a > 0, a, b)", "`b`", "where(a > 0, a, b.unsqueeze(1))"),
    ("a = ones(1, 3); b = ones(4, 1)", "a.mul_(b)", "stays so in an in-place", "a = a.mul(b)"),
    # products
    ("a = ones(2, 3)", "a @ a", "last size of `a` (3)", "a @ a.t()"),
    ("a = ones(2, 3)", "matmul(a, a)", "dim 0 of `a` (2)", "matmul(a, a.t())"),
    ("a = ones(2, 3)", "a.mm(a)", "last size", "a.mm(a.t())"),
    ("a = ones(2, 3); v = ones(2)", "a @ v", "`v` (2)", "a.t() @ v"),
    ("a = ones(2, 3); v = ones(3)", "mm(a, v)", "two matrices", "matmul(a, v)"),
    ("a = ones(5, 2, 3)", "bmm(a, a)", "dim 1 of `a` (2)", "bmm(a, a.mT)"),
    ("a = ones(5, 2, 3); b = ones(3, 2)", "bmm(a, b)", "two batches", "matmul(a, b)"),
    ("c = ones(3); a = ones(2, 3)", "addmm(c, a, a)", "last size", "addmm(c, a.t(), a)"),
    ("a = ones(3); s = tensor(2.)", "a @ s", "`s` has 0", "a * s"),
    ("x = ones(4, 3); w = ones(3, 5)", "F.linear(x, w)", "[out, in]", "F.linear(x, w.t())"),
    ("x = ones(4, 3); w = ones(5, 3); b = ones(3)", "F.linear(x, w, b)", "bias has one",
     "F.linear(x, w, None)"),
    (
        "a = ones(2, 3); b = ones(2, 3)",
        'einsum("ij,jk->ik", a, b)',
        "the letter j stands for one size (or 1), here it is 3 in `a`, 2 in `b`",
        'einsum("ij,kj->ik", a, b)',
    ),
    ("a = ones(2, 3)", 'einsum("ijk->i", a)', "", 'einsum("ij->i", a)'),
    ("a = ones(2, 3)", 'einsum("ij->k", a)', "", 'einsum("ij->", a)'),
    (
        "x = ones(8, 8, 3); w = ones(6, 3, 3, 3)",
        "F.conv2d(x, w)",
        "channels of `x`",
        "F.conv2d(x.permute(2, 0, 1), w)",
    ),
    (
        "x = ones(1, 3, 2, 2); w = ones(6, 3, 3, 3)",
        "F.conv2d(x, w)",
        "does not fit",
        "F.conv2d(x, w, padding=1)",
    ),
    # joining
    ("a = ones(2, 3); b = ones(2, 4)", "cat([a, b])", "only dimension 0", "cat([a, b], dim=1)"),
    ("a = ones(2, 3); b = ones(3)", "cat([a, b])", "stack() makes", "cat([a, b.unsqueeze(0)])"),
    ("a = ones(2, 3); b = ones(2, 4)", "stack([a, b])", "same", "cat([a, b], dim=1)"),
    ("a = tensor(1.)", "cat([a, a])", "", "stack([a, a])"),
    ("a = ones(2, 3)", "cat(a, a)", "one list", "cat([a, a])"),
    ("a = ones(2, 3); b = ones(3, 3)", "hstack([a, b])", "only dimension 1", "vstack([a, b])"),
    # other shapes
    ("a = ones(2, 3)", "a.view(4, 2)", "`a` has 6 elements, 4 * 2 is 8", "a.view(-1, 2)"),
    ("a = ones(2, 3)", "a.reshape(4, -1)", "4 does not divide", "a.reshape(3, -1)"),
    ("a = ones(2, 3).t()", "a.view(6)", "dims 0 and 1", "a.reshape(6)"),
    ("a = ones(2)", "a.expand(2, 3)", "only a size of 1", "a.unsqueeze(1).expand(2, 3)"),
    ("a = ones(2, 3)", "a.expand(4, 3)", "only a size of 1", "a.expand(-1, 3)"),
    ("a = arange(12)", "a.as_strided((3,), (4,), 5)", "5 + 2*4 = 13",
     "a.as_strided((3,), (4,), 3)"),
    # dimensions and elements
    ("a = ones(2, 3)", "a.sum(2)", "`a` has 2 dimensions", "a.sum(-1)"),
    ("a = ones(2, 3)", "a.softmax(dim=2)", "0 to 1", "a.softmax(dim=-1)"),
    ("a = ones(2, 3)", "a[2]", "dim 0 of `a` has size 2", "a[-1]"),
    ("a = ones(2, 3); i = tensor([1, 2])", "a[i]", "size 2", "a[i - 1]"),
    ("a = ones(2, 3)", "a[0, 1, 2]", "the brackets name 3", "a[0, 1]"),
    ("a = ones(2, 3); i = tensor([2., 1.])", "a[:, i]", "`i` is float32", "a[:, i.long()]"),
    ("a = ones(2, 3); m = ones(3).bool()", "a[m]", "as many dimensions as it has", "a[:, m]"),
    ("a = ones(2, 3)", "a[[0, 1], [0, 1, 2]]", "in pairs", "a[[0, 1]][:, [0, 1, 2]]"),
    ("a = ones(2, 3)", "a[0] = ones(2)", "only a size of 1", None),
    ("a = ones(2, 3)", "a[:, 0] = ones(3)", "only a size of 1", "a[:, 0] = ones(3)[:2]"),
    ("a = ones(2, 3); i = tensor([0, 1])", "a.gather(1, i)", "`a`: 2",
     "a.gather(1, i.unsqueeze(1))"),
    ("a = ones(2, 3); i = tensor([[0]])", "a.scatter(1, i, tensor([[1]]))", "does not convert",
     "a.scatter(1, i, tensor([[1]]).to(torch.float32))"),
    ("e = ones(5, 2); i = tensor([1, 5])", "F.embedding(i, e)", "`e` has 5",
     "F.embedding(i - 1, e)"),
    # targets
    ("l = ones(3, 4); t = ones(3)", "F.cross_entropy(l, t)", "int64",
     "F.cross_entropy(l, t.long())"),
    ("l = ones(3, 4); t = ones(3, 1).long()", "F.cross_entropy(l, t)", "[3, 1]",
     "F.cross_entropy(l, t.squeeze(1))"),
    ("l = ones(2, 5, 4); t = ones(2, 5).long()", "F.cross_entropy(l, t)", "[2, 5]",
     "F.cross_entropy(l.transpose(1, 2), t)"),
    ("l = ones(3, 4); t = tensor([1, 2, 4])", "F.cross_entropy(l, t)", "`t` holds 4",
     "F.cross_entropy(l, t - 1)"),
    ("l = ones(3, 1); t = ones(3)", "F.binary_cross_entropy_with_logits(l, t)", "same place",
     "F.binary_cross_entropy_with_logits(l, t.unsqueeze(1))"),
    # dtypes and devices
    ("a = ones(2, 2); b = ones(2, 2).double()", "a @ b", "`b` is float64",
     "a.to(torch.float64) @ b"),
    ("a = ones(2).half(); b = ones(2)", "allclose(a, b)", "`a` is float16",
     "allclose(a.to(torch.float32), b)"),
    ("a = tensor([1, 2])", "a.mean()", "fractions", "a.float().mean()"),
    ("a = tensor([1, 2])", "a.softmax(0)", "int64", "a.float().softmax(0)"),
    ("m = tensor([True])", "1 - m", "~ inverts it", "~m"),
    ("a = tensor([1, 2])", "a += 0.5", "`a` stays int64", "a = a + 0.5"),
    ("a = tensor([1, 2])", "a.div_(2)", "`a` stays int64", "a = a.div(2)"),
    ("a = ones(2)", "where(a, 1., 0.)", "a condition is bool", "where(a.bool(), 1., 0.)"),
    ('a = ones(2); b = ones(2, device="meta")', "a + b", "`b` is on meta", 'a.to("meta") + b'),
    ("a = ones(2)", "a.cuda()", "on the CPU", "a.cpu()"),
    # numbers and truth
    ("a = ones(2, 2)", "a.item()", "4 elements", "a.tolist()"),
    ("a = ones(2)", "float(a)", "2 elements", "float(a[0])"),
    ("a = ones(2)", "bool(a == a)", "2 truth values", "torch.equal(a, a)"),
    ("a = ones(2)", "0 < a < 2", "element by element", "(0 < a) & (a < 2)"),
    ("a = ones(2)", "(a > 0) and (a < 2)", "element by element", "(a > 0) & (a < 2)"),
    ("a = ones(2)", "not a", "2 truth values", "not a.all()"),
    ("a = ones(2)", "max(a, 1 - a)", "Python's max()", "torch.maximum(a, 1 - a)"),
    ("", "tensor([[1, 2], [3]])", "row 1 has 1", "tensor([[1, 2], [3, 0]])"),
    ("a = ones(2)", "tensor([a, a])", "stack()", "stack([a, a])"),
    # words
    ("", "torch.zeross(2)", "did you mean zeros?", "torch.zeros(2)"),
    ("", "torch.arrange(0, 10, 3)", "did you mean arange", "torch.arange(0, 10, 3)"),
    ("", "aranges(3, dtype=float32)", "did you mean arange", "arange(3, dtype=float32)"),
    ("", "torch.Arange(3)", "range or arange", "torch.arange(3)"),  # range() needs its start
    ("a = ones(2, 3)", "a.sums(1).exp()", "did you mean sum?", "a.sum(1).exp()"),
    ("a = ones(2, 3)", "(a * 2).sums(dim=0)", "did you mean sum?", "(a * 2).sum(dim=0)"),
    ("", "math.sqr(4)", "did you mean sqrt", "math.sqrt(4)"),
    ("a = ones(2)", "torch.softmx(a.add(1), 0)", "mean softmax?", "torch.softmax(a.add(1), 0)"),
    ("", "torch.zeross(900, 900)", "did you mean zeros?", "torch.zeros(900, 900)"),
    ("x, w = ones(3, 4), ones(4, 2)", "x @ w.t()", "the last size of `x` (4)", "x @ w"),
    ("a = ones(2)", "a.shap", "did you mean shape?", "a.shape"),
    ("a = ones(2, 3)", "a.sum(dims=1)", "no keyword 'dims'", "a.sum(dim=1)"),
    ("", "zeros(2, dtyp=float64)", "", "zeros(2, dtype=float64)"),
    ("", "tensor([1.], require_grad=True)", "", "tensor([1.], requires_grad=True)"),
    ("", "tensor(1., 2.)", "in one list", "tensor([1., 2.])"),
    ("", "zeros(2.)", "", "zeros(2)"),
    ("a = np.arange(3)", "torch.from_numpy(a[::-1])", "runs backwards",
     "torch.from_numpy(a[::-1].copy())"),
    # the graph
    ("w = ones(2, requires_grad=True)", "w += 1", "is a leaf", "with torch.no_grad(): w += 1"),
    ("w = ones(2, requires_grad=True)", "w[0] = 1", "is a leaf", "with torch.no_grad(): w[0] = 1"),
    ("w = ones(2, requires_grad=True)", "w.backward()", "one number", "w.sum().backward()"),
    ("w = ones(2, requires_grad=True)", "w.numpy()", "out of the graph", "w.detach().numpy()"),
    ("", "ones(2).long().requires_grad_()", "slopes", "ones(2).long().float().requires_grad_()"),
    ("w = ones(2)", "w.sum().backward()", "nothing that `w.sum()`",
     "w.requires_grad_(); w.sum().backward()"),
    ("w = ones(2, requires_grad=True)", "w.argmax().backward()", "positions", None),
    ("w = ones(2, requires_grad=True); h = w.long()", "h.sum().backward()", "cast to integers",
     None),
    ("w = ones(2, requires_grad=True); h = w.detach()", "(h * 2).sum().backward()", "`w.detach()`",
     "h = w  # line 3"),
    ("w = ones(2, requires_grad=True)\nwith no_grad(): h = w * 2", "h.sum().backward()",
     "inside no_grad()", None),
    ("w = ones(2, requires_grad=True)", "w.grad.zero_()", "until the first backward()",
     "w.grad = None"),
    ("x = ones(2, 1).expand(2, 3)", "x += 1", "stride 0 in dim 1", "x = x + 1"),
    ("x = ones(4, requires_grad=True) * 2\na, b = x.chunk(2)", "a.add_(1)", "several views",
     "a = a.add(1)"),
    ("x = ones(2, requires_grad=True) * 2\nwith no_grad(): v = x[1:]", "v.add_(1)",
     "inside no_grad()", "with torch.no_grad(): v.add_(1)"),
    ("with inference_mode(): z = ones(2)\nw = ones(2, requires_grad=True)", "w * z",
     "inside inference_mode()", "w * z.clone()"),
    ("w = ones(2, requires_grad=True); h = w.half()", "h.requires_grad = False", "no leaf",
     "h.detach()"),
    ("x = ones(2, requires_grad=True)\ny = ones(2, requires_grad=True)",
     "autograd.grad(x.sum(), y)", "no path", "autograd.grad(x.sum(), y, allow_unused=True)"),
]  # fmt: skip


def records(text: str, status: int) -> list[dict[str, Any]]:
    world = World()
    assert world.run("eval", "--json", "--hints", "off", text) == status, world.out
    found = [json.loads(line) for line in world.out.splitlines()]
    assert all(mistakes(one) == [] for one in found)
    return found


@pytest.mark.parametrize(("before", "line", "note", "fix"), MISTAKES)
def test_mistakes(before: str, line: str, note: str, fix: str | None) -> None:
    imports = "import torch.nn.functional as F\nimport numpy as np\n"
    found = records(f"{imports}{before}\n{line}", 1)[-1]
    assert found["kind"] == "error"
    assert note in " ".join(found["notes"]), found["notes"]
    expressions = [one["expr"] for one in found["fixes"]]
    assert (expressions[0] if expressions else None) == fix
    for one in found["fixes"]:
        shown = records(f"{imports}{before}\n{one['expr']}", 0)
        if one["shape"] is not None and shown and shown[-1]["kind"] == "tensor":
            assert shown[-1]["shape"] == one["shape"]


BLAMED = """x = ones(2, requires_grad=True)
y = x * 2
z = y * y
{change}
z.sum().backward()"""


@pytest.mark.parametrize(
    ("change", "fix"),
    [
        ("y.add_(1)", "y = y.add(1)  # line 4"),
        ("y += 1", "y = y + 1  # line 4"),
        ("y[0] = 5", "y = y.clone(); y[0] = 5  # line 4"),
        ("v = y.detach(); v.zero_()", "v = y.detach().clone()  # line 4"),
    ],
)
def test_a_kept_value_was_changed(change: str, fix: str) -> None:
    found = records(BLAMED.format(change=change), 1)[-1]
    culprit = change.rpartition("; ")[2]
    [note] = found["notes"]
    assert note == (
        f"`y`, kept by `y * y` on line 3 for its derivative, was changed by `{culprit}` on line 4"
    )
    expressions = [one["expr"] for one in found["fixes"]]
    assert expressions[:1] == [fix] or culprit == "v.zero_()"
    assert [(one["line"], one["text"]) for one in found["labels"]][-2:] == [
        (3, "MulBackward0 kept a value here, changed since"),
        (4, "changed here"),
    ]


def test_a_kept_value_was_changed_inside_a_function() -> None:
    text = (
        "def f(x):\n    h = x.tanh()\n    h.mul_(2)\n    return h.sum()\n"
        "f(ones(2, requires_grad=True)).backward()"
    )
    found = records(text, 1)[-1]
    assert found["notes"] == [
        "`h`, kept by `x.tanh()` on line 2 for its derivative, was changed by `h.mul_(2)` on line 3"
    ]
    assert found["fixes"] == [{"expr": "h = h.mul(2)  # line 3", "shape": None}]


def test_a_step_between_two_backward_passes() -> None:
    text = (
        "w = ones(1, requires_grad=True)\nh = w * w\na = h.sum()\nb = (h * h).sum()\n"
        "a.backward(retain_graph=True)\nwith no_grad():\n    w -= w.grad\nb.backward()"
    )
    found = records(text, 1)[-1]
    assert "changed by `w -= w.grad` on line 7" in found["notes"][0]
    assert found["fixes"][0]["expr"] == "b.backward()  # moved before line 6"


def test_culprits_in_earlier_inputs() -> None:
    found: list[Result] = []
    session = Session(World().environment, Settings())
    for text in ("x = ones(3, requires_grad=True)", "y = x.exp()", "y += 1", "y.sum().backward()"):
        session.run(text, found.append, interactive=True)
    [failed] = [result for result in found if isinstance(result, ErrorResult)]
    assert failed.diagnostic.notes == (
        "`y`, kept by `x.exp()` for its derivative, was changed by `y += 1` in an earlier input",
    )
    assert [fix.expr for fix in failed.diagnostic.fixes] == ["y = y + 1  # in an earlier input"]  # type: ignore[attr-defined]  # fixes


def test_a_freed_graph() -> None:
    text = "x = ones(2, requires_grad=True)\ny = x.exp().sum()\ny.backward()\ny.backward()"
    found = records(text, 1)[-1]
    assert found["notes"] == [
        "what `x.exp()` on line 2 had kept for its derivative was freed by `y.backward()` on line 3"
    ]
    assert found["fixes"] == [{"expr": "y.backward(retain_graph=True)  # line 3", "shape": None}]


def test_a_graph_freed_in_a_loop() -> None:
    text = (
        "x = ones(2, requires_grad=True)\nh = x.exp()\n"
        "for i in range(3):\n    (h * i).sum().backward()"
    )
    found = records(text, 1)[-1]
    assert "in an earlier pass through this line" in found["notes"][0]
    assert found["fixes"][0]["expr"].startswith("(h * i).sum().backward(retain_graph=True)")


def test_the_program_is_left_alone() -> None:
    """Tries and reruns print nothing, keep the generator, and change no tensor."""
    text = (
        "manual_seed(3)\nx = ones(2, requires_grad=True)\ny = x.exp()\nprint('once')\n"
        "try:\n    y.add_(1)\n    y.sum().backward()\nexcept RuntimeError:\n    pass\n"
        "rand(1)\ny.sum().backward()"
    )
    found = records(text, 1)
    assert [one["kind"] for one in found] == ["value", "print", "tensor", "tensor", "error"][
        1:
    ] or [one["kind"] for one in found].count("print") == 1


def test_functions_of_the_program_are_not_run_again() -> None:
    text = "seen = []\ndef f(a, b):\n    seen.append(1)\n    return a + b\nf(ones(2), ones(3))"
    assert records(text, 1)[-1]["kind"] == "error"


def test_shapes_stand_under_each_other() -> None:
    world = World()
    assert world.run("eval", "a = ones(10, 2, 3); bias = ones(12)", "a + bias") == 1
    assert "    a     [10, 2,  3]\n    bias         [12]\n                  ^^\n" in world.err


@pytest.mark.parametrize("width", [80, 40])
@pytest.mark.parametrize(("before", "line", "note", "fix"), MISTAKES[::7])
def test_widths(before: str, line: str, note: str, fix: str | None, width: int) -> None:
    world = World(terminal=True)
    world.environment.fixed_width = width
    world.run("eval", "import torch.nn.functional as F; import numpy as np", before or "0", line)
    ours = world.err.partition(" | ")[2].splitlines()  # below the message, which has long words
    texts = [text for text in ours if "fix:" not in text and " | " not in text]
    assert all(len(text) <= width for text in texts), texts


REMARKS = [
    ("a = ones(2, 3, 4)", "a.t()", "`a` has 3", "a.mT"),
    ("a = ones(2, 3)", "a.permute(0, 0)", "each of the 2 dimensions", "a.permute(0, 1)"),
    ("p = tensor([2.]); t = ones(1)", "F.binary_cross_entropy(p, t)", "raw scores",
     "F.binary_cross_entropy_with_logits(p, t)"),
    ("a = ones(5, 3)", "a.split([1, 3])", "add up", "a.split([1, 4])"),
    ("i = tensor([0, 3])", "F.one_hot(i, 3)", "at least 4 classes", "F.one_hot(i, 4)"),
    ("a = ones(2, 2)", "linalg.inv(a)", "depend on each other", "linalg.pinv(a)"),
    ("x = ones(2, 3)", "F.layer_norm(x, [2])", "last sizes of `x`", "F.layer_norm(x, [3])"),
    ("s = tensor(3.)", "len(s)", "single number", "s.numel()"),
    ("a = ones(2, 3)", "b, c, d = a", "into 2 parts, and there are 3 names",
     "b, c, d = a.unbind(1)"),
    ("loss = tensor(1.).item()", "loss.backward()", "since `loss = tensor(1.).item()` on line 3",
     None),
    ("x = [1., 2.]", "x.shape", "a list of numbers", "torch.tensor(x).shape"),
    ("m = ones(2, 3).max(1)", "m.sum()", "a pair, values and indices", "m.values.sum"),
    ("m = ones(2, 3).max(1)", "ones(2) - m", "a pair", "ones(2) - m.values"),
    ("x = ones(2, 3)", "x.shape()", "a value, not a function", "x.shape"),
    ("x = ones(2, 3)", "x.size[0]", "must be called", "x.size(0)"),
    ("x = ones(2)", "x + [1, 2]", "not a tensor", "x + torch.tensor([1, 2])"),
    ("x = ones(2, 3)", "x.sum(0, 1)", "one tuple", "x.sum((0, 1))"),
    ("x = ones(2)", "x.to('float64')", "the dtype is torch.float64", "x.to(torch.float64)"),
    ("a = ones(3); b = ones(4)", "F.mse_loss(a, b)", "compares what is in the same place", None),
]  # fmt: skip


@pytest.mark.parametrize(("before", "line", "note", "fix"), REMARKS)
def test_remarks(before: str, line: str, note: str, fix: str | None) -> None:
    test_mistakes(before, line, note, fix)
