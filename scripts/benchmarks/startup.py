"""How long small commands take, as ratios to `python -c "import numpy"` in interleaved runs.

Each row runs its command and the yardstick in turn; the figure is the ratio of the medians. The
first run of each is not counted: it writes bytecode.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

PROGRAM = """\
import torch
x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
y = torch.arange(4.0).reshape(2, 2)
z = (x * y).sum()
z.backward()
print(x.grad)
w = x.detach() @ y.t()
print(w.shape, w.stride())
print(w.mean(dim=0))
w.t()
"""

TENSORCLI = [sys.executable, "-P", str(ROOT / "tensorcli" / "__main__.py")]
NUMPY = [sys.executable, "-c", "import numpy"]

# row -> command, standard input, the ratio to reach.
ROWS: dict[str, tuple[list[str], str, float]] = {
    "--version": ([*TENSORCLI, "--version"], "", 0.5),
    'eval "1+1"': ([*TENSORCLI, "eval", "1+1"], "", 1.0),
    'eval "ones(2,3) * 2"': ([*TENSORCLI, "eval", "ones(2, 3) * 2"], "", 1.0),
    'eval --json "ones(2,3)"': ([*TENSORCLI, "eval", "--json", "ones(2, 3)"], "", 1.0),
    "run, ten lines": ([*TENSORCLI, "run", "-"], PROGRAM, 1.0),
}


def seconds(command: list[str], text: str) -> float:
    """The wall time of one process. Raises where it fails."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    # Uncompiled, a thousand lines take 20 ms: the commands' own bytecode must be kept.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start = time.perf_counter()
    subprocess.run(
        command, input=text.encode(), env=environment, check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=15)
    pairs = parser.parse_args().pairs
    print(f"{'command':<26}{'ms':>8}{'numpy ms':>10}{'ratio':>8}{'target':>8}")
    for name, (command, text, target) in ROWS.items():
        seconds(command, text), seconds(NUMPY, "")
        times = [(seconds(command, text), seconds(NUMPY, "")) for _ in range(pairs)]
        ours, numpys = (statistics.median(column) * 1000 for column in zip(*times, strict=True))
        print(f"{name:<26}{ours:>8.1f}{numpys:>10.1f}{ours / numpys:>8.2f}{target:>8.2f}")


if __name__ == "__main__":
    main()
