"""The pitfalls of tests/pitfalls are PyTorch's: its errors, its values."""

from __future__ import annotations

import ast
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.differential.agree import compare  # noqa: E402
from tests.pitfall_cases import FILES, IMPORTS, Case, Ran, cases  # noqa: E402

ALL = [case for path in FILES for case in cases(path)]


def theirs(case: Case) -> tuple[tuple[str, str] | None, list[Any]]:
    """PyTorch's error, if the program ends in one, and what the probes give."""
    names: dict[str, Any] = {}
    exec(IMPORTS, names)
    torch.manual_seed(0)
    error = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for statement in ast.parse(case.program).body:
                exec(ast.unparse(statement), names)
        except Exception as exc:
            error = (_kind(exc), str(exc))
        values = []
        for probe in case.probes:
            try:
                values.append(eval(probe, names))
            except NameError:
                values.append(None)  # an explanation
            except Exception as exc:
                values.append((_kind(exc), str(exc)))
    return error, values


def _kind(exc: Exception) -> str:
    return type(exc).__name__.removeprefix("_")


def _plain(value: Any) -> Any:
    """numpy's values as text, which both have alike."""
    return repr(value) if type(value).__module__ == "numpy" or _is_array(value) else value


def _is_array(value: Any) -> bool:
    return type(value).__name__ in ("ndarray", "NDArray", "float32", "float64")


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_pitfall(case: Case) -> None:
    error, values = theirs(case)
    ran = Ran(case)
    ours = [(one.type, one.message) for one in ran.errors]
    assert ours == ([] if error is None else [error])
    for probe, a, b in zip(case.probes, values, ran.values, strict=True):
        if a is None or probe in UNDEFINED.get(case.name, ()):
            continue
        found = compare(_plain(a), _plain(b), ulp=4)
        assert found is None, f"{probe}: {found}"


# What reads memory that it overwrites: PyTorch's own values depend on sizes and processor.
UNDEFINED = {"overlap-sub": ("a",), "overlap-row": ("a",)}
