"""What every test gets: this checkout, the transcript switch, repeatable property tests."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

# Every result is held against its rule (check mode), in the processes that tests start too.
os.environ.setdefault("TENSORCLI_CHECK", "1")
# A background job of a shell ignores ^C, and so would every program that the tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Processes that tests start run this checkout, wherever they run.
os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parent.parent)

try:
    import hypothesis
except ImportError:  # the suite against PyTorch also runs where only torch and pytest are installed
    pass
else:
    hypothesis.settings.register_profile(
        "suite", deadline=None, derandomize=True, max_examples=100, database=None
    )
    hypothesis.settings.load_profile("suite")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the switch that rewrites transcripts to what the program now says."""
    parser.addoption(
        "--update-transcripts",
        action="store_true",
        help="write the actual output into the transcript files and README.md; read the diff",
    )
    parser.addoption(
        "--cases",
        type=int,
        default=5000,
        help="how many random cases a comparison of layout rules with PyTorch draws",
    )
