"""Runs one call of the operator database in PyTorch and in the engine and says what differs:
dtype, shape, strides, values, requires_grad, the gradients, or the error.
"""

from __future__ import annotations

import difflib
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from engine import errors, modes
from engine.registry import functions
from engine.tensor import Tensor, from_array
from tests.differential import agree
from tests.differential.known_differences import ROUNDED_BETWEEN
from tests.differential.operator_database import (
    Call,
    Conversion,
    Untranslatable,
    operators,
    ours,
    rebound,
)

if TYPE_CHECKING:
    from collections.abc import Callable

# Relative and absolute tolerance by dtype: PyTorch's own for comparing two of its backends.
TOLERANCES = {
    "float64": (1e-7, 1e-7),
    "complex128": (1e-7, 1e-7),
    "float32": (1.3e-5, 1e-4),
    "complex64": (1.3e-5, 1e-4),
    "float16": (1e-3, 1e-3),
    "bfloat16": (1.6e-2, 1e-2),
}

# What these return is memory that nobody has written.
UNINITIALISED = {
    "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided",
    "resize_", "resize_as_",
}  # fmt: skip
# Where equal keys end up is not defined unless the order is asked to be stable.
UNSTABLE = {"argsort", "sort"}


def difference(call: Call) -> str | None:
    """What differs between PyTorch's result of a call and the engine's, or None."""
    try:
        return _difference(call)
    finally:
        modes.state.reset()


def _difference(call: Call) -> str | None:
    sample, op = call.sample, call.op
    bring = Conversion()
    try:
        arguments, options = bring((sample.input, *sample.args)), bring(sample.kwargs)
    except Untranslatable:
        return None
    theirs, refused = attempt(lambda: op(sample.input, *sample.args, **sample.kwargs))
    mine, wrong = attempt(lambda: ours(op)(*arguments, **options))
    if refused is not None or wrong is not None:
        return kinds_differ(refused, wrong)
    if call.op.name in UNSTABLE:
        return _compare(theirs, mine, False) or _compare(*_keys(sample, theirs, mine), True)
    process = sample.output_process_fn_grad
    free = process.__code__.co_code != _SAME
    loose = call.op.name in ROUNDED_BETWEEN
    found = _compare(theirs, mine, call.op.name not in UNINITIALISED and not free, loose)
    if found is not None:
        return found
    if free:
        theirs, mine = process(theirs), rebound(process)(mine)
        found = _compare(theirs, mine, True)
    if found is not None or not call.backward:
        return found
    leaves = _leaves((sample.input, sample.args, sample.kwargs), (arguments, options))
    return _gradients_differ(leaves, theirs, mine)


def _keys(sample: Any, theirs: Any, mine: Any) -> tuple[Any, Any]:
    """What an order that may be any among equal keys must agree in: the keys in that order."""
    if isinstance(theirs, tuple):
        return theirs[0], mine[0]
    if theirs.ndim == 0:
        return theirs, mine
    dim = sample.args[0] if sample.args else sample.kwargs.get("dim", -1)
    keys = agree._array(sample.input)
    first, second = (np.take_along_axis(keys, agree._array(y), dim) for y in (theirs, mine))
    return torch.tensor(first), from_array(second)


_SAME = (lambda x: x).__code__.co_code


def refusal_difference(name: str, sample: Any) -> tuple[str | None, float]:
    """What differs in the refusal of a sample, and how alike the two messages are, 0 to 1."""
    op = operators()[name]
    bring = Conversion()
    try:
        arguments, options = bring((sample.input, *sample.args)), bring(sample.kwargs)
    except Untranslatable:
        return None, 1.0
    _, refused = attempt(lambda: op(sample.input, *sample.args, **sample.kwargs))
    _, wrong = attempt(lambda: ours(op)(*arguments, **options))
    modes.state.reset()
    if refused is None:
        return kinds_differ(refused, wrong), 1.0
    a, b = (str(e).split("\n")[0] for e in (refused, wrong))
    return kinds_differ(refused, wrong), difflib.SequenceMatcher(None, a, b).ratio()


def attempt(work: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """What ``work`` returns or raises, both generators at their start."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            functions["manual_seed"](0)
            return work(), None
    except Exception as error:
        return None, error


def kinds_differ(theirs: Exception | None, mine: Exception | None) -> str | None:
    """Whether two errors are of different types (None: no error)."""
    a = None if theirs is None else type(theirs).__name__.removeprefix("_")
    b = None if mine is None else errors.public_type(mine)
    if a == b:
        return None
    return f"error {a} ({theirs}) and {b} ({mine})"[:400]


def _compare(theirs: Any, mine: Any, values: bool, loose: bool = False) -> str | None:
    if isinstance(theirs, torch.Tensor):
        return _tensors_differ(theirs, mine, values, loose)
    if isinstance(theirs, (tuple, list)) and not isinstance(theirs, torch.Size):
        if not isinstance(mine, (tuple, list)) or len(theirs) != len(mine):
            return f"{theirs!r} and {mine!r}"[:400]
        pairs = zip(theirs, mine, strict=True)
        return next(filter(None, (_compare(a, b, values, loose) for a, b in pairs)), None)
    if isinstance(theirs, (bool, int, float, complex, str)):
        same = type(theirs) is type(mine) and (theirs == mine or theirs != theirs)
        return None if same else f"{theirs!r} and {mine!r}"
    if isinstance(theirs, (torch.Size, torch.dtype)):
        return None if str(theirs) == str(mine) else f"{theirs} and {mine}"
    return None


def _tensors_differ(theirs: torch.Tensor, mine: Any, values: bool, loose: bool) -> str | None:
    if not isinstance(mine, Tensor):
        return f"{theirs!r} and {mine!r}"[:400]
    if theirs.layout is not torch.strided:
        return None
    for what, a, b in (
        ("dtype", str(theirs.dtype), str(mine.dtype)),
        ("shape", tuple(theirs.shape), mine.layout.shape),
        ("strides", theirs.stride(), mine.layout.strides),
        ("requires_grad", theirs.requires_grad, mine.requires_grad),
    ):
        if a != b:
            return f"{what} {a} and {b}"
    return _values_differ(theirs, mine, loose) if values else None


def _values_differ(theirs: torch.Tensor, mine: Tensor, loose: bool) -> str | None:
    a, b = agree._array(theirs), agree._array(mine)
    rtol, atol = TOLERANCES.get(mine.dtype.name, (0.0, 0.0))
    if loose and mine.dtype.name in ("float16", "bfloat16") and a.size:
        rtol, atol = 4 * rtol, 4 * rtol * float(np.max(np.abs(a)))
    with np.errstate(all="ignore"):
        near = np.isclose(b, a, rtol=rtol, atol=atol, equal_nan=True) if rtol else np.equal(a, b)
    if np.all(near):
        return None
    return f"values {a[~near][:4]} and {b[~near][:4]}" if near.ndim else f"values {a} and {b}"


def _gradients_differ(
    leaves: list[tuple[torch.Tensor, Tensor]], theirs: Any, mine: Any
) -> str | None:
    pairs = [(a, b) for a, b in zip(_flat(theirs), _flat(mine), strict=True) if a.requires_grad]
    if not pairs or not leaves:
        return None
    torch.manual_seed(1)
    seeds = [torch.randn_like(a) for a, _ in pairs]
    given, refused = attempt(
        lambda: torch.autograd.grad(
            [a for a, _ in pairs], [a for a, _ in leaves], seeds, allow_unused=True
        )
    )
    bring = Conversion()
    got, wrong = attempt(
        lambda: functions["autograd.grad"](
            [b for _, b in pairs],
            [b for _, b in leaves],
            [bring(s) for s in seeds],
            allow_unused=True,
        )
    )
    if refused is not None or wrong is not None:
        found = kinds_differ(refused, wrong)
        return None if found is None else f"backward: {found}"
    for a, b in zip(given, got, strict=True):
        if (a is None) != (b is None):
            return f"gradient {a} and {b}"[:400]
        found = None if a is None else _compare(a, b, True)
        if found is not None:
            return f"gradient: {found}"
    return None


def _leaves(theirs: Any, mine: Any) -> list[tuple[torch.Tensor, Tensor]]:
    pairs = zip(_flat(theirs), _flat(mine), strict=True)
    return [(a, b) for a, b in pairs if a.requires_grad]


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (torch.Tensor, Tensor)):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [t for item in value for t in _flat(item)]
    return []
