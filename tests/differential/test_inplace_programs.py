"""Random programs of views and in-place operations: the whole observable state equals PyTorch's."""

from __future__ import annotations

import random
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import engine.ops  # noqa: E402, F401 - fills the registry
from engine.registry import functions  # noqa: E402

PROGRAMS = 1_500

VIEWS = ("t", "first", "tail", "row", "even", "expand", "column")
WRITES = (
    "mul_w", "add_w", "add_k", "copy_w", "copy_k", "mul_2", "exp_", "zero_", "set_row", "add_t",
)  # fmt: skip
FRESH = ("mul", "add", "exp", "detach", "clone")


def make_program(rng: random.Random) -> list[tuple[str, int, int]]:
    """A list of (step, index of the tensor it starts from, index of another)."""
    steps: list[tuple[str, int, int]] = []
    count = 1
    for _ in range(rng.randint(2, 9)):
        kind = rng.random()
        if kind < 0.4:
            steps.append((rng.choice(VIEWS), rng.randrange(count), 0))
            count += 1
        elif kind < 0.8:
            steps.append((rng.choice(WRITES), rng.randrange(count), rng.randrange(count)))
        elif kind < 0.95:
            steps.append((rng.choice(FRESH), rng.randrange(count), 0))
            count += 1
        else:
            steps.append(("no_grad_view", rng.randrange(count), 0))
            count += 1
    return steps


class Run:
    """One library's run of a program; ``log`` is everything that could be observed."""

    def __init__(self, tensor: Any, no_grad: Any, start: str):
        self.no_grad = no_grad
        self.x = tensor([[1.0, 2.0, 3.0, 4.0], [0.5, 1.5, 2.5, 3.5], [2.0, 0.25, 1.0, 3.0]])
        self.w = tensor(1.5)
        self.k = tensor(0.75)
        self.log: list[Any] = []
        if start != "plain":
            self.x.requires_grad_()
        if start != "constant":
            self.w.requires_grad_()
        self.tensors = [self.x * self.k if start == "product" else self.x.clone()]

    def view(self, step: str, t: Any) -> Any:
        if step == "t":
            return t.t()
        if step == "first":
            return t[0:1]
        if step == "tail":
            return t[..., 1:]
        if step == "row":
            return t[0]
        if step == "even":
            return t[::2]
        if step == "column":
            return t[..., 0]
        return t.unsqueeze(0).expand(2, *t.shape)

    def write(self, step: str, t: Any, other: Any) -> None:
        w, k = self.w, self.k
        if step == "mul_w":
            t.mul_(w)
        elif step == "add_w":
            t.add_(w)
        elif step == "add_k":
            t.add_(k)
        elif step == "copy_w":
            t.copy_(w * 2)
        elif step == "copy_k":
            t.copy_(k)
        elif step == "mul_2":
            t.mul_(2.0)
        elif step == "exp_":
            t.mul_(0.1).exp_()
        elif step == "zero_":
            t.zero_()
        elif step == "set_row":
            t[0] = w
        else:
            t.add_(other.clone() if entangled(t, other) else other)

    def fresh(self, step: str, t: Any) -> Any:
        if step == "mul":
            return t * self.w
        if step == "add":
            return t + self.w
        if step == "exp":
            return (t * 0.1).exp()
        return t.detach() if step == "detach" else t.clone()

    def step(self, step: str, at: int, other: int) -> None:
        t = self.tensors[at]
        if step in VIEWS:
            self.tensors.append(self.view(step, t))
        elif step == "no_grad_view":
            with self.no_grad():
                self.tensors.append(t[..., :1])
        elif step in FRESH:
            self.tensors.append(self.fresh(step, t))
        else:
            self.write(step, t, self.tensors[other])

    def run(self, program: list[tuple[str, int, int]]) -> None:
        for step in program:
            try:
                self.step(*step)
            except (RuntimeError, IndexError) as error:
                self.log.append((step[0], isinstance(error, IndexError), str(error)))
                if step[0] not in WRITES:
                    return
        self.state()
        total = None
        try:
            for j, t in enumerate(self.tensors):
                part = t.sum() * (j + 1)
                total = part if total is None else total + part
            total.backward()
        except RuntimeError as error:
            # What comes next names the maker of the value, by a view's node if that still lives.
            self.log.append(("backward", str(error).partition(", which is output")[0]))
        self.log.append([None if t.grad is None else t.grad.tolist() for t in (self.x, self.w)])

    def state(self) -> None:
        for t in self.tensors:
            name = _maker(t)
            leaf = None if isinstance(name, str) and " " in name else t.is_leaf
            self.log.append((t.tolist(), t._version, t.requires_grad, leaf, name))


def _maker(t: Any) -> Any:
    try:
        node = t.grad_fn
    except RuntimeError as error:
        return str(error)
    if node is None:
        return None
    return node.name() if callable(node.name) else node.name


def entangled(t: Any, other: Any) -> bool:
    """Whether one may read what the other writes: PyTorch then reads and writes in turn, without
    a promise, where one of them has gaps."""
    return other is not t and not (t.is_contiguous() and other.is_contiguous())


def outcome(tensor: Any, no_grad: Any, start: str, program: list[tuple[str, int, int]]) -> Run:
    run = Run(tensor, no_grad, start)
    run.run(program)
    return run


def differences(seed: int, count: int) -> list[str]:
    """The programs that end otherwise than in PyTorch."""
    rng = random.Random(seed)
    found = []
    for number in range(count):
        start = rng.choice(("product", "clone", "plain", "constant"))
        program = make_program(rng)
        theirs = outcome(torch.tensor, torch.no_grad, start, program)
        ours = outcome(functions["tensor"], functions["no_grad"], start, program)
        if not same(ours.log, theirs.log):
            found.append(f"{number}: {start} {program}\n  ours   {ours.log}\n  theirs {theirs.log}")
    return found


def same(a: Any, b: Any) -> bool:
    """Equal up to rounding."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or abs(a - b) <= 1e-5 * max(abs(a), abs(b), 1.0) or (a != a and b != b)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def test_programs() -> None:
    found = differences(0, PROGRAMS)
    assert not found, "\n".join(found[:5])
