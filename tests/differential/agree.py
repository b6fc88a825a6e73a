"""Evaluate one program text in PyTorch and in the engine and compare all that can be seen.

It knows nothing of the language: names are looked up by Python, in a facade over the registry.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import torch

import engine.ops  # noqa: F401  # enters the operations in the registry
from engine import errors, exposed, modes
from engine.namespace import constants
from engine.registry import functions
from engine.tape import AccumulateGrad, Node
from engine.tensor import Tensor

MODULES = (
    "amp", "autograd", "checkpoint", "fft", "func", "functional", "graph", "init", "linalg",
    "lr_scheduler", "nn", "optim", "signal", "special", "utils", "windows",
)  # fmt: skip


class Facade:
    """``torch`` as the engine has it."""

    def __init__(self, prefix: str = ""):
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        full = self._prefix + name
        if full in functions:
            return functions[full]
        if full in constants:
            return constants[full]
        if name in MODULES:
            return Facade(full + ".")
        raise AttributeError(f"module 'torch' has no attribute '{full}'")


OURS = Facade()


def _exposed(value: Any, name: str) -> Any:
    """What a program sees of a value of the engine's under that name."""
    getter = exposed.ATTRIBUTES.get(type(value), {}).get(name)
    if getter is not None:
        return getter(value)
    method = exposed.METHODS.get(type(value), {}).get(name)
    if method is None:
        raise AttributeError(f"'{type(value).__name__}' object has no attribute '{name}'")
    return functools.partial(method, value)


for _kind in (Node, AccumulateGrad):
    _kind.__getattr__ = _exposed  # type: ignore[union-attr]  # only here; programs use the tables


def _namespace(module: Any) -> dict[str, Any]:
    inf = float("inf")
    return {"torch": module, "F": module.nn.functional, "inf": inf, "nan": inf - inf}


def run(text: str, module: Any) -> Any:
    """The value of the last line of ``text`` (an expression); lines before it are executed.

    An error is the result too: (type's name, first line of the message).
    """
    *before, last = text.strip().split("\n")
    names = _namespace(module)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            exec("\n".join(before), names)
            return eval(last.strip(), names)
    except Exception as error:
        kind = errors.public_type(error) if module is not torch else type(error).__name__
        kind = kind.removeprefix("_")  # torch.linalg.LinAlgError is _LinAlgError to itself
        return kind, str(error).split("\n")[0]
    finally:
        if module is not torch:
            modes.state.grad = True


def _dtype(value: Any) -> str:
    return str(value.dtype)


def _array(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        value = value.detach().resolve_conj().resolve_neg()
        if value.dtype in (torch.bfloat16, torch.float8_e5m2, torch.float8_e4m3fn):
            return value.float().numpy()
        return value.numpy(force=True)
    array = value.array
    return array.astype(np.float32) if value.kind.opaque else array


def _spacing(a: Any, dtype: str) -> Any:
    """One unit in the last place of ``a``."""
    digits = {"torch.float16": 11, "torch.bfloat16": 8, "torch.float32": 24, "torch.float64": 53}
    least = {"torch.float16": -24, "torch.bfloat16": -133, "torch.float32": -149}
    _, exponent = np.frexp(np.where(np.isfinite(a), np.abs(a.astype(np.float64)), 1.0))
    exponent = np.maximum(exponent - digits[dtype], least.get(dtype, -1074))
    return np.ldexp(1.0, exponent)


def _parts(array: Any, dtype: str) -> list[tuple[Any, str]]:
    if dtype.startswith("torch.complex"):
        real = "torch.float32" if dtype == "torch.complex64" else "torch.float64"
        return [(array.real, real), (array.imag, real)]
    return [(array, dtype)]


def _differ(theirs: Any, ours: Any, dtype: str, ulp: float, atol: float) -> str | None:
    whole = np.abs(theirs)
    for (a, kind), (b, _) in zip(_parts(theirs, dtype), _parts(ours, dtype), strict=True):
        if kind not in ("torch.float16", "torch.bfloat16", "torch.float32", "torch.float64"):
            same = np.array_equal(a, b)
        else:
            with np.errstate(all="ignore"):
                x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
                scale = whole if dtype.startswith("torch.complex") else x
                near = np.abs(x - y) <= ulp * _spacing(np.asarray(scale), kind) + atol
            same = bool(np.all(near | (x == y) | (np.isnan(x) & np.isnan(y))))
        if not same:
            return f"values {theirs.tolist()} and {ours.tolist()}"
    return None


def _node(value: Any) -> Any:
    node = value.grad_fn
    if node is None:
        return None
    if isinstance(value, torch.Tensor):
        return type(node).__name__
    return node.name.rpartition("::")[2]


def compare(theirs: Any, ours: Any, ulp: float = 2, atol: float = 0.0) -> str | None:
    """What differs between PyTorch's value and the engine's, or None."""
    if isinstance(theirs, torch.Tensor):
        if not isinstance(ours, Tensor):
            return f"{theirs!r} and {ours!r}"
        for what, a, b in (
            ("dtype", _dtype(theirs), _dtype(ours)),
            ("shape", tuple(theirs.shape), tuple(ours.layout.shape)),
            ("strides", theirs.stride(), ours.layout.strides),
            ("requires_grad", theirs.requires_grad, ours.requires_grad),
            ("grad_fn", _node(theirs), _node(ours)),
        ):
            if a != b:
                return f"{what} {a} and {b}"
        if theirs.is_meta:
            return None
        return _differ(_array(theirs), _array(ours), _dtype(theirs), ulp, atol)
    if isinstance(theirs, (tuple, list)) and not isinstance(theirs, torch.Size):
        if not isinstance(ours, (tuple, list)) or len(theirs) != len(ours):
            return f"{theirs!r} and {ours!r}"
        for a, b in zip(theirs, ours, strict=True):
            found = compare(a, b, ulp, atol)
            if found is not None:
                return found
        return None
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return compare([*theirs], [*ours]) or compare(
            [*theirs.values()], [*ours.values()], ulp, atol
        )
    if isinstance(theirs, (torch.dtype, torch.device, torch.Size, torch.layout)):
        return None if str(theirs) == str(ours) else f"{theirs} and {ours}"
    if isinstance(theirs, float) and theirs != theirs and ours != ours:
        return None
    return None if type(theirs) is type(ours) and theirs == ours else f"{theirs!r} and {ours!r}"


def differs(text: str, ulp: float = 2, atol: float = 0.0) -> str | None:
    """What differs when ``text`` runs in both, or None."""
    return compare(run(text, torch), run(text, OURS), ulp, atol)


def agree(text: str, ulp: float = 2, atol: float = 0.0) -> None:
    """Assert that ``text`` gives the same in both."""
    found = differs(text, ulp, atol)
    assert found is None, f"{text}\n  PyTorch and engine: {found}"
