"""Evaluates expressions in PyTorch and in the engine and says where they differ.

An expression may be preceded by statements (``x = …; x[0] = 1; x``). ``torch`` and the bare names
of its functions are bound to PyTorch's and to the engine's.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch

import engine.ops  # noqa: F401
from engine import dtypes, errors, formats, modes
from engine.registry import functions
from engine.tensor import Tensor


class Facade:
    """``torch`` as the engine has it: functions by attribute, dtypes, memory formats."""

    def __init__(self, prefix: str = ""):
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        found = functions.get(self._prefix + name)
        if found is not None:
            return found
        if name in dtypes.by_name:
            return dtypes.by_name[name]
        if name in dtypes.ALIASES:
            return dtypes.ALIASES[name]
        if hasattr(formats, name):
            return getattr(formats, name)
        if name == "bool":
            return dtypes.bool_
        return Facade(f"{self._prefix}{name}.")


class _Names(dict[str, Any]):
    """Names of a program; unknown ones are taken from ``source``."""

    def __init__(self, source: Any):
        super().__init__(torch=source, nan=float("nan"), inf=float("inf"))
        self._source = source

    def __missing__(self, name: str) -> Any:
        if name in __builtins__:  # type: ignore[operator]
            return __builtins__[name]  # type: ignore[index]
        return getattr(self._source, name)


def run(program: str, source: Any) -> Any:
    """The value of a program's last expression, or the exception that it raised."""
    names = _Names(source)
    statements, _, last = program.rpartition(";")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if statements:
                exec(statements, names)  # noqa: S102
            return eval(last.strip(), names)  # noqa: S307
    except Exception as error:
        return error


def differences(program: str, ulp: int = 2) -> str:
    """What differs between PyTorch's and the engine's result; empty if nothing does."""
    modes.state.reset()
    torch.manual_seed(0)
    return _compare(run(program, torch), run(program, Facade()), ulp)


def _compare(theirs: Any, ours: Any, ulp: int) -> str:
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        return _compare_errors(theirs, ours)
    if isinstance(theirs, torch.Tensor):
        return _compare_tensors(theirs, ours, ulp)
    if isinstance(theirs, (tuple, list)) and not isinstance(theirs, torch.Size):
        if not isinstance(ours, (tuple, list)) or len(theirs) != len(ours):
            return f"{theirs!r} against {ours!r}"
        found = [_compare(t, o, ulp) for t, o in zip(theirs, ours, strict=True)]
        return "; ".join(f for f in found if f)
    same = str(theirs) == str(ours) if isinstance(theirs, torch.dtype) else theirs == ours
    both_nan = theirs != theirs and ours != ours
    return "" if same or both_nan else f"{theirs!r} against {ours!r}"


def _compare_errors(theirs: Any, ours: Any) -> str:
    if not isinstance(theirs, Exception):
        return f"torch gives a value, engine raised {type(ours).__name__}: {ours}"
    if not isinstance(ours, Exception):
        return f"torch raised {type(theirs).__name__}: {theirs}; engine gives a value"
    names = (type(theirs).__name__.lstrip("_"), errors.public_type(ours))
    first = str(theirs).split("\n")[0].strip(), str(ours).split("\n")[0].strip()
    if names[0] != names[1] or first[0] != first[1]:
        return f"{names[0]}: {first[0]} against {names[1]}: {first[1]}"
    return ""


def _compare_tensors(theirs: torch.Tensor, ours: Any, ulp: int) -> str:
    if not isinstance(ours, Tensor):
        return f"tensor against {ours!r}"
    node = ours.grad_fn  # type: ignore[attr-defined]
    facts = {
        "dtype": (str(theirs.dtype), str(ours.dtype)),
        "shape": (tuple(theirs.shape), tuple(ours.shape)),
        "stride": (theirs.stride(), ours.layout.strides),
        "offset": (theirs.storage_offset(), ours.offset),
        "requires_grad": (theirs.requires_grad, ours.requires_grad),  # type: ignore[attr-defined]
        "grad_fn": (
            theirs.grad_fn.name().rpartition("::")[2] if theirs.grad_fn else None,
            node.name if node else None,
        ),
    }
    found = [f"{what} {t} against {o}" for what, (t, o) in facts.items() if t != o]
    if not found and theirs.device.type != "meta":
        found += _compare_values(theirs, ours, ulp)
    return "; ".join(found)


def _compare_values(theirs: torch.Tensor, ours: Tensor, ulp: int) -> list[str]:
    plain = theirs.detach().resolve_conj().resolve_neg()
    if plain.dtype.is_floating_point or plain.dtype.is_complex:
        wide = torch.complex128 if plain.dtype.is_complex else torch.float64
        a = plain.to(wide).numpy()
        b = np.asarray(ours.array).astype(a.dtype)
        eps = torch.finfo(plain.dtype).eps
        close = np.isclose(a, b, rtol=ulp * eps, atol=0, equal_nan=True)
    else:
        a, b = plain.numpy(), np.asarray(ours.array)
        close = np.asarray(a == b)
    return [] if close.all() else [f"values {a.tolist()} against {b.tolist()}"]
