"""Every operator of PyTorch's own database that the engine has gives what PyTorch gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

torch = pytest.importorskip("torch")
pytest.importorskip("torch.testing._internal.common_methods_invocations")

from tests.differential import operator_database as database  # noqa: E402
from tests.differential.known_differences import DEPENDING, KNOWN, UNSETTLED, reason  # noqa: E402
from tests.differential.operator_differences import (  # noqa: E402
    difference,
    refusal_difference,
)

SAMPLES = 2


@pytest.fixture(autouse=True, scope="module")
def _brisk() -> Iterator[None]:
    with database.brisk():
        yield


@pytest.mark.parametrize("name", database.operators())
def test_results_and_gradients(name: str) -> None:
    """Dtype, shape, strides, values and gradients; a known difference must still be there."""
    parts: dict[str, list[str]] = {}
    for call in database.calls(name, SAMPLES):
        found = difference(call)
        parts.setdefault(call.dtype, []).extend([f"sample {call.number}: {found}"] if found else [])
    _judge(name, parts)


@pytest.mark.parametrize("name", [n for n in database.operators() if database.refuses(n)])
def test_refusals(name: str) -> None:
    """What PyTorch refuses the engine refuses with an exception of the same type."""
    if name in UNSETTLED:
        pytest.skip(UNSETTLED[name])
    found = [(number, refusal_difference(name, s)[0]) for number, s in database.refusals(name)]
    _judge(name, {"refusal": [f"sample {number}: {text}" for number, text in found if text]})


def test_known_differences_are_of_operators() -> None:
    """An entry for an operator that there is not would never be missed."""
    assert {key.split("/")[0] for key in KNOWN} <= set(database.operators())


def _judge(name: str, parts: dict[str, list[str]]) -> None:
    parts = {part: texts for part, texts in parts.items() if f"{name}/{part}" not in UNSETTLED}
    excused = {part: reason(name, part) for part in parts}
    wrong = [f"{part} {t}" for part, texts in parts.items() if not excused[part] for t in texts]
    assert not wrong, "PyTorch and engine: " + "\n".join(wrong)
    gone = {part for part, why in excused.items() if why and not parts[part]}
    gone -= {part for part in gone if f"{name}/{part}" in DEPENDING}
    if name in KNOWN:
        gone = gone if len(gone) == len(excused) else set()
    assert not gone, f"no longer different, take {name} ({', '.join(gone)}) from the table"
    if any(excused.values()):
        pytest.xfail(next(filter(None, excused.values())))
