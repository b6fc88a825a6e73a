"""Prints how far the engine agrees with PyTorch over its operator database; for developers.

Usage: conformance [--samples N] [NAME...], NAME an operator or the beginning of a group such as
``linalg``. Known differences count as differences here; the suite is what knows them.
"""

from __future__ import annotations

import argparse
import collections
import sys

from tests.differential import operator_database as database
from tests.differential.operator_differences import difference, refusal_difference

Counts = collections.defaultdict[str, list[int]]


def main() -> int:
    """Run the chosen operators; print the differences and then the score by group."""
    parser = argparse.ArgumentParser(prog="conformance", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--samples", type=int, default=2, metavar="N", help="for each dtype")
    chosen = parser.parse_args()
    counts: Counts = collections.defaultdict(lambda: [0, 0])
    likeness: list[float] = []
    with database.brisk():
        _run(chosen, counts, likeness)
    _report(counts, likeness)
    return 0


def _run(chosen: argparse.Namespace, counts: Counts, likeness: list[float]) -> None:
    for name in _selected(chosen.names):
        for call in database.calls(name, chosen.samples):
            _note(counts, name, f"{call.dtype} sample {call.number}", difference(call))
        if database.refuses(name):
            for number, sample in database.refusals(name):
                found, alike = refusal_difference(name, sample)
                likeness.append(alike)
                _note(counts, name, f"refusal {number}", found)
                if found is None and alike < 0.5:
                    print(f"{name} refusal {number}: another message ({alike:.0%} alike)")


def _selected(names: list[str]) -> list[str]:
    if not names:
        return list(database.operators())
    return [
        name
        for name, op in database.operators().items()
        if any(wanted in (name, op.name) or name.startswith(f"{wanted}.") for wanted in names)
    ]


def _note(counts: Counts, name: str, part: str, found: str | None) -> None:
    count = counts[_group(name)]
    count[0] += found is None
    count[1] += 1
    if found is not None:
        print(f"{name} {part}: {' '.join(found.split())}")


def _group(name: str) -> str:
    head, dot, rest = name.partition(".")
    if head == "nn":
        return "nn.functional"
    return head if dot and rest and head in ("fft", "linalg", "special", "signal") else "torch"


def _report(counts: Counts, likeness: list[float]) -> None:
    for group, (right, of) in sorted(counts.items()):
        print(f"{group:<16}{right:>7} of {of:<7}{right / of:.2%}")
    right, of = (sum(column) for column in zip(*counts.values(), strict=True))
    print(f"{'all':<16}{right:>7} of {of:<7}{right / of:.2%}")
    if likeness:
        print(f"messages of refusals: {sum(likeness) / len(likeness):.0%} alike on average")


if __name__ == "__main__":
    sys.exit(main())
