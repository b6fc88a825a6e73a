"""Loops done from a recording leave everything as loops do that are run statement by statement."""

from __future__ import annotations

import random
import signal
import textwrap
import threading
from typing import Any

import pytest

from engine.tensor import Tensor
from tensorcli import results
from tensorcli.exit_status import ExitStatus
from tensorcli.language import repeating
from tensorcli.render import plain
from tensorcli.session import Session
from tensorcli.settings import Settings
from tests.in_memory import World

SETUP = """\
import torch
import torch.nn.functional as F
torch.manual_seed(0)
x = torch.randn(8, 3)
y = x[:, :1] * x[:, 1:2]
w1 = torch.randn(3, 4, requires_grad=True)
b1 = torch.zeros(4, requires_grad=True)
w2 = torch.randn(4, 1, requires_grad=True)
b2 = torch.zeros(1, requires_grad=True)
params = [w1, b1, w2, b2]
labels = torch.arange(8) % 4
total = torch.zeros(4)
lr = 0.05
"""

# name -> (statements, whether turns are expected to be done from the record)
PROGRAMS: dict[str, tuple[str, bool]] = {
    "gradients dropped": (
        """
        for step in range(100):
            h = torch.tanh(x @ w1 + b1)
            loss = ((h @ w2 + b2 - y) ** 2).mean()
            loss.backward()
            with torch.no_grad():
                for p in [w1, b1, w2, b2]:
                    p -= 0.05 * p.grad
                    p.grad = None
        """,
        True,
    ),
    "gradients dropped first": (
        """
        for step in range(100):
            for p in params:
                p.grad = None
            loss = F.mse_loss(torch.relu(x @ w1 + b1) @ w2 + b2, y)
            loss.backward()
            with torch.no_grad():
                for p in params:
                    p.sub_(lr * p.grad)
        """,
        True,
    ),
    "gradients zeroed, inside a function": (
        """
        def model(x):
            return torch.sigmoid(F.linear(x, w1.T, b1)) @ w2 + b2
        def train(turns):
            for _ in range(turns):
                loss = (model(x) - y).abs().sum() / 8
                loss.backward()
                with torch.no_grad():
                    for p in params:
                        p.sub_(p.grad, alpha=lr)
                        p.grad.zero_()
            return loss
        last = train(90)
        """,
        True,
    ),
    "gradients that add up": (
        """
        for i in range(80):
            loss = (w1 * w1).sum()
            loss.backward()
        """,
        True,
    ),
    "a schedule, and prints now and then": (
        """
        for step in range(200):
            loss = (F.softmax(x @ w1, dim=1)[:, 0] - y[:, 0]).pow(2).mean()
            loss.backward()
            if step % 60 == 59:
                print(step, loss.item())
                lr = lr * 0.5
            with torch.no_grad():
                w1 -= lr * w1.grad
                w1.grad = None
        """,
        True,
    ),
    "scores and classes": (
        """
        for i in range(80):
            loss = F.cross_entropy(F.linear(x, w1.T, b1), labels)
            loss.backward()
            with torch.no_grad():
                w1 -= 0.01 * w1.grad
                b1.sub_(0.01 * b1.grad)
            w1.grad = None
            b1.grad = None
        """,
        True,
    ),
    "the largest of each row, a running mean": (
        """
        for i in range(80):
            best = (x @ w1).max(1)[0]
            best.sum().backward()
            with torch.no_grad():
                total.mul_(0.9).add_(w1.grad.sum(0), alpha=0.1)
                w1 -= total
                w1.grad = None
        """,
        True,
    ),
    "views written to": (
        """
        a = torch.zeros(4, 4)
        for i in range(60):
            b = a.t()
            b += 1
            c = a[1:3]
            c *= 1.5
            d = a @ b
        """,
        True,
    ),
    "few turns": ("for i in range(12):\n    total += 1\n", False),
    "the loop's variable as a number": ("for i in range(60):\n    total += i\n", False),
    "a number that changes": (
        "k = 0.5\nfor i in range(60):\n    total += k\n    k = k * 0.5\n",
        False,
    ),
    "a tensor that is rebound": ("for i in range(60):\n    total = total * 1.5\n", False),
    "random numbers": ("for i in range(60):\n    total += torch.randn(4)\n", False),
    "dropout": (
        "for i in range(60):\n    total += F.dropout(total + 1, 0.5)\n",
        False,
    ),
    "a value that is read": (
        "s = []\nfor i in range(60):\n    total += 1\n    s.append(total.sum().item())\n",
        False,
    ),
    "a condition on a tensor": (
        "for i in range(60):\n    total += 1\n    if total.sum() > 100:\n        break\n",
        False,
    ),
    "a hook": (
        """
        seen = []
        w1.register_hook(lambda g: seen.append(g.sum().item()))
        for i in range(60):
            (w1 * w1).sum().backward()
        """,
        False,
    ),
    "a break": (
        """
        for i in range(100):
            total += 1
            if i == 70:
                break
        """,
        True,
    ),
    "a warning each time": (
        """
        for i in range(60):
            h = w1 * 2
            total += 1
            h.grad
        """,
        False,
    ),
}


def state_of(session: Session) -> dict[str, Any]:
    """Everything that a program leaves behind, to the bit."""
    found: dict[str, Any] = {}
    for name, value in session.names.items():
        values = value if isinstance(value, list) else [value]
        found[name] = [_state(v) if isinstance(v, Tensor) else _plain(v) for v in values]
    return found


def _plain(value: object) -> object:
    return value if isinstance(value, (int, float)) else type(value).__name__


def _state(t: Tensor) -> tuple[Any, ...]:
    ag = t.ag
    facts = (t.array.tobytes(), t.layout, t.dtype, t.offset, t.origin, t.version and t.version.n)
    if ag is None:
        return facts
    grad = None if ag.grad is None else _state(ag.grad)
    return (*facts, ag.requires_grad, ag.node and ag.node.name, grad, ag.times)


class Outcome:
    """What a program told and left, and how many turns of its loops were done from records."""

    def __init__(
        self, text: str, monkeypatch: pytest.MonkeyPatch, repeats: bool, **settings: Any
    ) -> None:
        self.told: list[Any] = []
        self.turns = 0
        settle = repeating.Turns.settle

        def counting(turns: repeating.Turns) -> None:
            self.turns += turns._skipped
            settle(turns)

        with monkeypatch.context() as patch:
            patch.setattr(repeating.Turns, "settle", counting)
            if not repeats:
                patch.setattr(repeating, "turns_of", lambda *_: None)
            session = Session(World().environment, Settings(seed=0, **settings))
            status = session.run(text, self.hear)
        self.left = (status, self.told, state_of(session))

    def hear(self, result: results.Result) -> None:
        if isinstance(result, results.ErrorResult):
            self.told.append((result.diagnostic.message, result.diagnostic.span))
        elif isinstance(result, (results.PrintResult, results.WarningResult)):
            self.told.append((type(result).__name__, plain.text(result)))
        elif result.shown:
            self.told.append(type(result).__name__)


def both(text: str, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> tuple[Outcome, Outcome]:
    """The same program with and without records."""
    first = Outcome(text, monkeypatch, True, **settings)
    second = Outcome(text, monkeypatch, False, **settings)
    assert second.turns == 0
    return first, second


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_ways_leave_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, expected = PROGRAMS[name]
    repeated, run = both(SETUP + textwrap.dedent(text), monkeypatch)
    assert repeated.left == run.left
    assert (repeated.turns > 0) is expected


@pytest.mark.parametrize("at", ["at", "at + 0", "at[:1]", "(at + 0).clone()"])
def test_an_index_that_leaves_its_range_is_found_by_the_body(
    at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"""
    import torch
    table = torch.zeros(50)
    at = torch.zeros(1, dtype=torch.int64)
    for i in range(90):
        row = table.index_select(0, {at})
        at += 1
    """
    repeated, run = both(textwrap.dedent(text), monkeypatch)
    assert repeated.left == run.left
    ((message, span),) = repeated.told
    assert "index out of range" in message
    assert span.line == 6


def test_an_interrupt_finds_the_names_of_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """^C at any moment: what the program left is what some number of whole turns leaves."""
    text = SETUP + textwrap.dedent(
        """
        for i in range(10_000_000):
            seen = total * 1
            total += 1
        """
    )
    for delay in (0.2, 0.21, 0.23, 0.26):
        timer = threading.Timer(delay, signal.raise_signal, [signal.SIGINT])
        timer.start()
        session = Session(World().environment, Settings(seed=0))
        try:
            status = session.run(text, lambda result: None)
        finally:
            timer.join()
        names: Any = session.names
        assert status == ExitStatus.INTERRUPTED
        assert names["i"] > 1000
        assert names["seen"].tolist() == [names["i"]] * 4
        assert names["total"].tolist() in ([names["i"]] * 4, [names["i"] + 1] * 4)
        assert names["total"].version.n in (names["i"], names["i"] + 1)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_values_before_a_break_are_those_of_the_turn_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = SETUP + textwrap.dedent(
        """
        for i in range(100):
            if i == 70:
                break
            seen = total * 2
            total += 1
        """
    )
    repeated, run = both(text, monkeypatch)
    assert repeated.turns > 0
    assert repeated.left == run.left


def test_turns_count_against_the_limit_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    text = SETUP + textwrap.dedent(
        """
        def grown(t):
            return t * 1.01
        for i in range(100):
            for k in range(3):
                total.copy_(grown(total) + 1)
        """
    )
    for limit in (500, 690, 700, 710, 800):
        repeated, run = both(text, monkeypatch, step_limit=limit)
        assert repeated.turns > 0
        assert repeated.left[0] == run.left[0], limit


def test_interactive_values_are_told_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    text = SETUP + "for i in range(50):\n    total.add_(1)\n"
    repeated, run = both(text, monkeypatch, format="json")
    assert repeated.turns == 0
    assert repeated.left == run.left


# Pieces of random loop bodies; {t}, {u} are names of tensors of shape (4, 3), {s} of a number.
_EXPRESSIONS = (
    "{t} + {u}", "{t} * {u}", "{t} - 0.5", "2 * {t}", "{t} / 3", "-{t}", "torch.tanh({t})",
    "{t}.sigmoid()", "F.relu({t})", "{t} ** 2", "{t}.exp()", "{t} @ {u}.T @ {u}", "{t}.abs()",
    "{t}.clamp(-1, 1)", "{t} - {t}.mean()", "{t} * {u}.sum(1, keepdim=True)", "{t}[1:3].sum()",
    "{t}.t().contiguous().t()", "torch.where({t} > 0, {t}, {u})", "{t}.softmax(1)", "{t}.cumsum(0)",
    "torch.stack([{t}, {u}]).amax(0)", "{t}.max(0)[0]", "{t}.clone()", "{t}.reshape(3, 4).T",
    "{t}.expand(2, 4, 3).sum(0)", "torch.cat([{t}, {u}])[2:6]", "{t}.sin()", "F.softplus({t})",
    "F.layer_norm({t}, (3,))", "F.cross_entropy({t}, labels)", "F.mse_loss({t}, {u})",
    "torch.addmm({t}, {u}, square)", "{t}.var(0)", "{t}.std(1, keepdim=True)", "{t}.norm()",
    "{t}.prod(1, keepdim=True)", "{t}.logsumexp(1, keepdim=True)", "{t}.masked_fill({u} > 0, 0.5)",
    "{t}.argmax(1).unsqueeze(1)", "{t}.gather(1, {u}.argmax(1, keepdim=True))", "{t}[:, 0:1]",
    "{t}[labels]", "F.linear({t}, square)", "{t}.sort(0)[0]", "{t}.topk(2, dim=1)[0].sum()",
    "({t} > {u}) * {t}", "F.gelu({t})", "{t}.median()", "torch.maximum({t}, {u})", "{t}.relu()",
    "{t}.unsqueeze(0).squeeze()", "{t}.flip(0)", "torch.outer({t}[0], {u}[1]).sum()",
)  # fmt: skip
_CHANGES = (
    "kept.add_({t}, alpha=0.001)", "kept.mul_(0.99)", "kept += 0.01 * {t}", "kept.t().mul_(0.999)",
    "kept[1:3] *= 0.99", "kept.copy_(kept * 0.9)", "kept.lerp_({t}, 0.01)", "kept.clamp_(-2, 2)",
    "kept[0].fill_(0.5)", "kept.zero_()", "kept.sub_({t}.mean())", "kept.tanh_()",
)  # fmt: skip


def _random_loop(rng: random.Random) -> str:
    names = ["a", "b", "leaf"]
    lines = []
    for at in range(rng.randint(1, 6)):
        expression = rng.choice(_EXPRESSIONS)
        made = f"v{at}"
        t, u = rng.choice(names), rng.choice(names)
        # Whatever its shape, the result is brought to that of all names.
        lines.append(f"{made} = ({expression.format(t=t, u=u)}) * one")
        names.append(made)
    differentiates = rng.random() < 0.7
    if differentiates:
        lines += [f"loss = ({names[-1]} * leaf).mean()", "loss.backward()"]
    lines.append("with torch.no_grad():")
    for _ in range(rng.randint(1, 3)):
        lines.append("    " + rng.choice(_CHANGES).format(t=rng.choice(names)))
    if differentiates:
        lines += ["    leaf -= 0.01 * leaf.grad", f"    {_forgotten(rng)}"]
    if rng.random() < 0.3:
        lines.append("if turn % 13 == 12:\n        print(turn, kept.sum().item())")
    body = "".join(f"    {line}\n" for line in lines)
    return f"{_FUZZ_SETUP}for turn in range(48):\n{body}"


def _forgotten(rng: random.Random) -> str:
    return rng.choice(["leaf.grad = None", "leaf.grad.zero_()", "leaf.grad.mul_(0.5)"])


_FUZZ_SETUP = """\
import torch
import torch.nn.functional as F
torch.manual_seed(3)
one = torch.ones(4, 3)
a, b, kept = torch.randn(4, 3), torch.randn(4, 3), torch.randn(4, 3)
leaf = torch.randn(4, 3, requires_grad=True)
labels, square = torch.tensor([2, 0, 1, 1]), torch.randn(3, 3)
"""


def test_random_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    repeated_loops = 0
    for _ in range(120):
        text = _random_loop(rng)
        repeated, run = both(text, monkeypatch)
        assert repeated.left == run.left, text
        repeated_loops += repeated.turns > 0
    assert repeated_loops > 100
