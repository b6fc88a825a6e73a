"""Every name that a program may use is one of PyTorch's, and of the same sort."""

from __future__ import annotations

import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from engine import registry  # noqa: E402
from engine.namespace import constants  # noqa: E402
from tests import registry_samples  # noqa: E402, F401  # loads every family


def theirs(name: str) -> Any:
    """What PyTorch has under a dotted name, None where it has nothing."""
    space, _, last = name.rpartition(".")
    module = sys.modules.get(f"torch.{space}" if space else "torch")
    if module is not None:
        return getattr(module, last, None)
    found: Any = torch
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def test_functions() -> None:
    assert not [name for name in registry.functions.names() if not callable(theirs(name))]


def test_methods() -> None:
    assert not [
        name for name in registry.methods.names() if not callable(getattr(torch.Tensor, name, None))
    ]


def test_attributes() -> None:
    assert not [name for name in registry.attributes if not hasattr(torch.Tensor, name)]


def test_constants() -> None:
    known = [name for name in constants if theirs(name.rpartition(".")[0] or "Tensor") is not None]
    missing = [name for name in known if theirs(name) is None and constants[name] is not None]
    assert not missing
