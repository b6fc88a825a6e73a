"""All operations, one module per family; importing this enters them in the registry."""

from __future__ import annotations

from engine import operators, registry
from engine.ops import (
    arithmetic,
    autograd,
    copying,
    creation,
    gathering,
    matrix,
    reductions,
    scattering,
    views,
)

__all__ = [
    "arithmetic",
    "autograd",
    "copying",
    "creation",
    "gathering",
    "matrix",
    "reductions",
    "scattering",
    "views",
]

registry.install()
operators.install()
