"""The pitfalls of tests/pitfalls: what is said of each, and that every fix that is offered works.

`pytest --update-transcripts` writes what is said now into the files.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pitfall_cases import FILES, Case, Ran, cases, hinted, mended, outcome

ALL = [(path, case) for path in FILES for case in cases(path)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_said(path: Path, request: pytest.FixtureRequest) -> None:
    found = cases(path)
    texts = [case.text(Ran(case).text) for case in found]
    if request.config.getoption("--update-transcripts"):
        head = path.read_text(encoding="utf-8").partition("### ")[0]
        path.write_text(head + "\n".join(texts), encoding="utf-8")
        return
    for case, text in zip(found, texts, strict=True):
        assert text == case.text(case.shown)


@pytest.mark.parametrize(("path", "case"), ALL, ids=lambda part: getattr(part, "name", part))
def test_fixes_work(path: Path, case: Case) -> None:
    ran = Ran(case)
    for error in ran.errors:
        for fix in error.fixes:
            program = mended(case.program, error, fix.expr)  # type: ignore[attr-defined]  # a fix
            later = [e for e in outcome(program) if e.span and e.span.line <= _line(error)]
            assert not later, f"{program}\n{later[0].message}"
    expected = [error.message for error in ran.errors]
    for hint in ran.hints:
        for fix in hint.fixes:
            program = hinted(case.program, hint, fix.expr)  # type: ignore[attr-defined]  # a fix
            messages = [error.message for error in outcome(program)]
            assert messages in (expected, []), f"{program}\n{messages}"


def _line(error: object) -> int:
    span = error.span  # type: ignore[attr-defined]  # a diagnostic
    assert span is not None
    return int(span.line)


def test_every_mistake_is_explained() -> None:
    """A case with an error says why, or offers what works; `clear` ones need no more."""
    silent = [
        case.name
        for _, case in ALL
        for error in Ran(case).errors
        if not error.notes and not error.fixes
    ]
    assert silent == []
