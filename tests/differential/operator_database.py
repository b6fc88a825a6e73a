"""PyTorch's own operator database as a source of calls: each sample is run in PyTorch and in the
engine, forward and backward, and everything that can be seen of the results is compared.

The calls are made at run time from the installed PyTorch; nothing of it is kept.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

from engine import dtypes, errors, layout, modes
from engine.namespace import constants
from engine.registry import functions, methods
from engine.tensor import Tensor, from_array
from tests.differential import agree

if TYPE_CHECKING:
    from collections.abc import Iterator

DTYPES = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.int64,
    torch.int32, torch.uint8, torch.bool,
)  # fmt: skip
DIFFERENTIATED = (torch.float64, torch.float32, torch.complex64)

# Relative and absolute tolerance by dtype: PyTorch's own for comparing two of its backends.
TOLERANCES = {
    "float64": (1e-7, 1e-7),
    "complex128": (1e-7, 1e-7),
    "float32": (1.3e-5, 1e-4),
    "complex64": (1.3e-5, 1e-4),
    "float16": (1e-3, 1e-3),
    "bfloat16": (1.6e-2, 1e-2),
}


class Call(NamedTuple):
    """One sample: an operator, a dtype and which of its samples for it."""

    name: str
    dtype: Any
    number: int
    sample: Any
    backward: bool


def operators() -> dict[str, Any]:
    """The database's operators that the engine has, by name and variant."""
    found = {}
    for op in op_db:
        if ours(op.name) is not None:
            variant = f".{op.variant_test_name}" if op.variant_test_name else ""
            found[op.name + variant] = op
    return found


def missing() -> list[str]:
    """The database's operators that the engine does not have."""
    return sorted({op.name for op in op_db if ours(op.name) is None})


@functools.cache
def ours(name: str) -> Any:
    """The engine's function or method of that name, None if there is none."""
    if name in functions:
        return functions[name]
    return methods[name] if name in methods else None


def calls(name: str, op: Any, most: int) -> Iterator[Call]:
    """At most ``most`` samples for each dtype, evenly taken from the database's."""
    for dtype in DTYPES:
        if dtype not in op.dtypes:
            continue
        backward = dtype in DIFFERENTIATED and op.supports_autograd
        torch.manual_seed(0)
        samples = list(itertools.islice(op.sample_inputs("cpu", dtype, backward), 60))
        step = max(1, len(samples) // most)
        for number in range(0, len(samples), step):
            yield Call(name, dtype, number, samples[number], backward)


def convert(value: Any) -> Any:
    """A sample's argument as the engine takes it; tensors keep strides and offset."""
    if isinstance(value, torch.Tensor):
        return tensor(value)
    if isinstance(value, torch.dtype):
        return dtypes.by_name[str(value).removeprefix("torch.")]
    if isinstance(value, (torch.memory_format, torch.layout)):
        return constants[str(value).removeprefix("torch.")]
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
        return type(value)(convert(item) for item in value)
    if isinstance(value, dict):
        return {key: convert(item) for key, item in value.items()}
    return value


def tensor(t: torch.Tensor) -> Tensor:
    """The engine's copy of a tensor: the same memory, geometry and requires_grad."""
    plain = t.detach().resolve_conj().resolve_neg()
    if plain.layout is not torch.strided:
        raise Untranslatable("a sparse tensor")
    name = str(plain.dtype).removeprefix("torch.")
    span = 0
    if plain.numel():
        span = 1 + sum((n - 1) * s for n, s in zip(plain.shape, plain.stride(), strict=True))
    flat = plain.as_strided((span,), (1,), plain.storage_offset())
    if name not in dtypes.by_name:
        raise Untranslatable(name)
    dtype = dtypes.by_name[name]
    if dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        raw = flat.view(torch.int16 if dtype.itemsize == 2 else torch.int8).numpy().copy()
        array = raw.view(dtype.np)
    else:
        array = flat.numpy().copy()
    whole = from_array(array, dtype)
    again = whole
    shape, strides = tuple(plain.shape), plain.stride()
    if whole.layout is not layout.layout(shape, strides):
        again = whole.as_strided(shape, strides).detach()
    if t.requires_grad:
        again.requires_grad_()
    return again


class Untranslatable(Exception):
    """A sample that holds what the engine has no counterpart of."""


def difference(call: Call) -> str | None:
    """What differs between PyTorch's result of a call and the engine's, or None."""
    sample = call.sample
    op = _operator(call.name)
    try:
        arguments = convert((sample.input, *sample.args))
        options = convert(sample.kwargs)
    except (Untranslatable, KeyError):
        return None
    theirs, refused = _try(lambda: op(sample.input, *sample.args, **sample.kwargs))
    mine, wrong = _try(lambda: ours(op.name)(*arguments, **options))
    modes.state.reset()
    if refused is not None or wrong is not None:
        return _errors_differ(refused, wrong)
    found = _compare(theirs, mine)
    if found is not None or not call.backward:
        return found
    return _gradients_differ(sample, arguments, options, theirs, mine)


@functools.cache
def _operator(name: str) -> Any:
    return operators()[name]


def _try(work: Any) -> tuple[Any, Exception | None]:
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            functions["manual_seed"](0)
            return work(), None
    except Exception as error:
        return None, error


def _errors_differ(theirs: Exception | None, mine: Exception | None) -> str | None:
    a = None if theirs is None else type(theirs).__name__.removeprefix("_")
    b = None if mine is None else errors.public_type(mine)
    if a == b:
        return None
    return f"error {a} ({theirs}) and {b} ({mine})"[:400]


def _compare(theirs: Any, mine: Any) -> str | None:
    if isinstance(theirs, torch.Tensor):
        if not isinstance(mine, Tensor):
            return f"{theirs!r} and {mine!r}"
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
        return _values_differ(theirs, mine)
    if isinstance(theirs, (tuple, list)):
        if not isinstance(mine, (tuple, list)) or len(theirs) != len(mine):
            return f"{theirs!r} and {mine!r}"
        for a, b in zip(theirs, mine, strict=True):
            found = _compare(a, b)
            if found is not None:
                return found
    return None


def _values_differ(theirs: torch.Tensor, mine: Tensor) -> str | None:
    a, b = agree._array(theirs), agree._array(mine)
    rtol, atol = TOLERANCES.get(mine.dtype.name, (0.0, 0.0))
    if rtol == 0.0:
        return None if np.array_equal(a, b) else f"values {a.tolist()} and {b.tolist()}"[:400]
    with np.errstate(all="ignore"):
        near = np.isclose(b, a, rtol=rtol, atol=atol, equal_nan=True)
    if np.all(near):
        return None
    return f"values {a[~near][:4]} and {b[~near][:4]}" if near.ndim else f"values {a} and {b}"


def _gradients_differ(sample: Any, arguments: Any, options: Any, theirs: Any, mine: Any) -> Any:
    pairs = [
        (a, b)
        for a, b in zip(_flat(theirs), _flat(mine), strict=True)
        if a.requires_grad and a.dtype.is_floating_point | a.dtype.is_complex
    ]
    leaves = [
        (a, b)
        for a, b in zip(
            _flat((sample.input, sample.args, sample.kwargs)),
            _flat((arguments, options)),
            strict=True,
        )
        if a.requires_grad
    ]
    if not pairs or not leaves:
        return None
    torch.manual_seed(1)
    seeds = [torch.randn_like(a) for a, _ in pairs]
    given, refused = _try(
        lambda: torch.autograd.grad(
            [a for a, _ in pairs], [a for a, _ in leaves], seeds, allow_unused=True
        )
    )
    got, wrong = _try(
        lambda: functions["autograd.grad"](
            [b for _, b in pairs],
            [b for _, b in leaves],
            [tensor(s) for s in seeds],
            allow_unused=True,
        )
    )
    if refused is not None or wrong is not None:
        found = _errors_differ(refused, wrong)
        return None if found is None else f"backward: {found}"
    for a, b in zip(given, got, strict=True):
        if (a is None) != (b is None):
            return f"gradient {a} and {b}"
        found = None if a is None else _compare(a, b)
        if found is not None:
            return f"gradient: {found}"
    return None


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (torch.Tensor, Tensor)):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [t for item in value for t in _flat(item)]
    return []
