"""What it costs to have all operations: paid by every start, so it has a budget."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Generous, and in time of the processor: the machine may be busy.
ALL_OPERATIONS_MS = 60
THOUSAND_RECORDS_MS = 15

_IMPORT = """
import time, numpy
start = time.process_time()
import engine.ops
getattr(engine.ops, "load_all", int)()
print((time.process_time() - start) * 1000)
"""

_REGISTER = """
import time
from engine.kinds import pointwise

def exp(input: "Tensor") -> "Tensor":
    '''e raised to each element.'''

start = time.process_time()
for n in range(1000):
    pointwise(
        ufunc="exp", vjp=lambda g, y: g * y, example="exp(ones(2))", name=f"made_{n}", domain=(0, 1)
    )(exp)
print((time.process_time() - start) * 1000)
"""


def quickest(program: str, runs: int = 5) -> float:
    """The least time in milliseconds that a process prints, after one that fills the caches."""
    command = [sys.executable, "-P", "-c", program]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    times = [
        float(
            subprocess.run(
                command, capture_output=True, text=True, check=True, env=environment, timeout=60
            ).stdout
        )
        for _ in range(runs + 1)
    ]
    return min(times[1:])


def test_importing_all_operations() -> None:
    assert quickest(_IMPORT) < ALL_OPERATIONS_MS


def test_a_thousand_registrations() -> None:
    assert quickest(_REGISTER, 3) < THOUSAND_RECORDS_MS
