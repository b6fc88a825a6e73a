"""Small tensors, tapes and programs: ratios to PyTorch eager in one interleaved run.

Each row times the same work in both, turn by turn, and gives the ratio of the medians; below 1 is
ahead of PyTorch. It needs torch in the environment that runs it.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

import torch

import engine.ops  # noqa: F401 - fills the registry
from engine.registry import functions
from tensorcli.environment import of_process
from tensorcli.session import Session
from tensorcli.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# row -> the ratio to reach.
TARGETS = {
    "add": 0.6,
    "mul": 0.6,
    "exp": 0.6,
    "add a number": 0.6,
    "matmul": 0.6,
    "sum": 0.9,
    "t": 0.5,
    "slice": 0.5,
    "mul, recorded": 0.7,
    "matmul, recorded": 0.7,
    "(w*b).sum().backward()": 0.35,
    "ten operations and backward": 0.45,
    "1,000 SGD steps, 2-16-1 tanh": 0.35,
    "1e5 nodes and backward": 0.5,
    "1e5 statements, parse to run": 1.2,
}

TRAINING = """\
import torch
torch.manual_seed(0)
x = torch.randn(32, 2)
y = x[:, :1] * x[:, 1:]
w1 = torch.randn(2, 16, requires_grad=True)
b1 = torch.zeros(16, requires_grad=True)
w2 = torch.randn(16, 1, requires_grad=True)
b2 = torch.zeros(1, requires_grad=True)
for step in range(1000):
    h = torch.tanh(x @ w1 + b1)
    loss = ((h @ w2 + b2 - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for p in [w1, b1, w2, b2]:
            p -= 0.05 * p.grad
            p.grad = None
"""

STATEMENTS = "import torch\nx = torch.ones(3, 4)\n" + "y = x + 1.0\n" * 100_000

# Seconds of one library's turn.
BATCH = 0.02


def _tensors(make: Any) -> dict[str, Callable[[], object]]:
    """The rows that call the library itself, for either library's ``torch.tensor``."""
    data = [[0.1 * i + j for i in range(4)] for j in range(3)]
    x, y, w = make(data), make(data), make(data, requires_grad=True)
    square = make([row[:3] for row in data])
    w_square = make([row[:3] for row in data], requires_grad=True)

    def ten() -> object:
        z = w
        for _ in range(5):
            z = z * y + x
        return z.sum().backward()

    def deep() -> object:
        z = w
        for _ in range(50_000):
            z = z * 1.0001 + 0.0001
        return z.sum().backward()

    return {
        "add": lambda: x + y,
        "mul": lambda: x * y,
        "exp": lambda: x.exp(),
        "add a number": lambda: x + 2.0,
        "matmul": lambda: square @ x,
        "sum": lambda: x.sum(),
        "t": lambda: x.t(),
        "slice": lambda: x[1:3],
        "mul, recorded": lambda: w * y,
        "matmul, recorded": lambda: w_square @ x,
        "(w*b).sum().backward()": lambda: (w * y).sum().backward(),
        "ten operations and backward": ten,
        "1e5 nodes and backward": deep,
    }


def _ours(text: str) -> Callable[[], object]:
    def run() -> object:
        status = Session(of_process(), Settings()).run(text, _ignore)
        assert status == 0, text
        return status

    return run


def _ignore(result: object) -> None: ...


def _python(text: str) -> Callable[[], object]:
    return lambda: exec(compile(text, "<program>", "exec"), {})  # noqa: S102 - our own text


def rows() -> Iterator[tuple[str, Callable[[], object], Callable[[], object]]]:
    """Each row's name and its work in tensorcli and in PyTorch."""
    ours, theirs = _tensors(functions["tensor"]), _tensors(torch.tensor)
    for name in ours:
        yield name, ours[name], theirs[name]
    yield "1,000 SGD steps, 2-16-1 tanh", _ours(TRAINING), _python(TRAINING)
    yield "1e5 statements, parse to run", _ours(STATEMENTS), _python(STATEMENTS)


def measure(a: Callable[[], object], b: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Median seconds of both, taken in turns after one run of each."""
    # The first call makes closures and caches; batches are long enough to forget the other library.
    once = max(min(_once(work, 1) for _ in range(3)) for work in (a, b))
    count = max(1, int(BATCH / once))
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds if count > 1 else max(3, rounds // 4)):
        times[0].append(_once(a, count))
        times[1].append(_once(b, count))
    return statistics.median(times[0]), statistics.median(times[1])


def _once(work: Callable[[], object], count: int) -> float:
    gc.collect(0)
    start = time.perf_counter()
    for _ in range(count):
        work()
    return (time.perf_counter() - start) / count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--row", default="", help="only rows with this text")
    arguments = parser.parse_args()
    # As the command's entry sets the collector; for both libraries alike.
    gc.freeze()
    gc.set_threshold(20_000, 50, 1_000)
    print(f"{'':32}{'tensorcli':>12}{'PyTorch':>12}{'ratio':>8}{'target':>8}")
    late = 0
    for name, ours, theirs in rows():
        if arguments.row not in name:
            continue
        a, b = measure(ours, theirs, arguments.rounds)
        ratio, target = a / b, TARGETS[name]
        late += ratio > min(1.3 * target, max(1.0, target))
        flag = "" if ratio <= target else " *" if ratio <= 1.3 * target else " **"
        print(f"{name:32}{_time(a):>12}{_time(b):>12}{ratio:8.2f}{target:8.2f}{flag}", flush=True)
    print("* above its target, ** above 1.3 times its target")
    return 1 if late else 0


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.2f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"


if __name__ == "__main__":
    sys.exit(main())
