"""What it costs to have all operations: paid by every start, so it has a budget."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Generous, in time of the processor, and in units of what importing numpy takes: the machine may be
# busy, and slow.
ALL_OPERATIONS = 1.0
THOUSAND_RECORDS = 0.25

_NUMPY = """
import time
start = time.process_time()
import numpy
print((time.process_time() - start) * 1000)
"""

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


def taken(program: str) -> float:
    """The time in milliseconds that a process prints."""
    command = [sys.executable, "-P", "-c", program]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment, timeout=60
    )
    return float(done.stdout)


def ratio(program: str, runs: int = 5) -> float:
    """Its time to that of importing numpy, the least of some runs turn by turn, after one of each
    that fills the caches."""
    pairs = [(taken(program), taken(_NUMPY)) for _ in range(runs + 1)][1:]
    return min(time for time, _ in pairs) / min(numpy for _, numpy in pairs)


def test_importing_all_operations() -> None:
    assert ratio(_IMPORT) < ALL_OPERATIONS


def test_a_thousand_registrations() -> None:
    assert ratio(_REGISTER) < THOUSAND_RECORDS
