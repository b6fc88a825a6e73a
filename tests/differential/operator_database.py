"""PyTorch's own operator database as a source of calls for the comparison with the engine.

The calls are made at run time from the installed PyTorch; nothing of it is kept. This file knows
how to make them and how to bring their arguments over, not what of their results must agree.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import types
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.testing._internal.common_methods_invocations import op_db

from engine import dtypes, layout
from engine.namespace import constants
from engine.registry import attributes, functions, methods
from engine.tensor import Tensor, from_array
from tests.differential import agree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

DTYPES = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.int64,
    torch.int32, torch.uint8, torch.bool,
)  # fmt: skip
DIFFERENTIATED = (torch.float64, torch.float32, torch.complex64)
# Samples are drawn from the first so many of a dtype; some operators have thousands.
CONSIDERED = 32


@contextlib.contextmanager
def brisk() -> Iterator[None]:
    """PyTorch with one thread (the tensors are small: threads only wait for each other) and a
    quick manual_seed (for a GPU that is not there the original formats and keeps the whole
    stack, each time)."""
    threads, seed = torch.get_num_threads(), torch.manual_seed
    torch.set_num_threads(1)
    torch.manual_seed = torch.default_generator.manual_seed
    try:
        yield
    finally:
        torch.manual_seed = seed
        torch.set_num_threads(threads)


class Call(NamedTuple):
    """One sample: an operator, a dtype and which of its samples for it."""

    name: str
    op: Any
    dtype: str
    number: int
    sample: Any
    backward: bool


class Untranslatable(Exception):
    """A sample that holds what the engine has no counterpart of."""


@functools.cache
def operators() -> dict[str, Any]:
    """The database's operators that the engine has, by name and variant."""
    found = {}
    for op in op_db:
        if _known(op.name) and op.dtypes:
            variant = f".{op.variant_test_name}" if op.variant_test_name else ""
            found[op.name + variant] = op
    return found


def missing() -> list[str]:
    """The database's operators that the engine does not have."""
    return sorted({op.name for op in op_db if not _known(op.name)})


def _known(name: str) -> bool:
    tables = functions, methods, attributes
    return any(name in table for table in tables) or _method(name) is not None


def _method(name: str) -> Any:
    """Tensor's method of that name, an operator's or one that only exists in-place."""
    own = getattr(Tensor, name, None) if name.startswith("__") else None
    return own or (methods[f"{name}_"] if f"{name}_" in methods else None)


def ours(op: Any) -> Callable[..., Any]:
    """The engine's counterpart of what the database calls for an operator."""
    if isinstance(op.op, types.FunctionType) and op.op.__module__.startswith("torch.testing."):
        return rebound(op.op)
    if op.name in functions:
        return functions[op.name]
    return methods[op.name] if op.name in methods else _method(op.name)


class _Torch(agree.Facade):
    """``torch`` for the database's own functions."""

    Tensor = Tensor


def rebound(function: Any) -> Any:
    """A function of the database's that finds the engine where it looks for PyTorch."""
    names = {**function.__globals__, "torch": _Torch(), "wrapper_set_seed": _seeded}
    return types.FunctionType(
        function.__code__, names, None, function.__defaults__, function.__closure__
    )


def _seeded(op: Any, *args: Any, **kwargs: Any) -> Any:
    functions["manual_seed"](42)
    return op(*args, **kwargs)


def calls(name: str, most: int, kinds: Iterable[Any] = DTYPES) -> Iterator[Call]:
    """At most ``most`` samples for each dtype, evenly taken from the database's."""
    op = operators()[name]
    for dtype in kinds:
        if dtype not in op.dtypes:
            continue
        backward = dtype in DIFFERENTIATED and op.supports_autograd
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            source = op.sample_inputs("cpu", dtype, backward)
            samples = list(itertools.islice(source, CONSIDERED))
        few = min(most, len(samples))
        for number in (i * len(samples) // few for i in range(few)):
            spelled = str(dtype).removeprefix("torch.")
            yield Call(name, op, spelled, number, samples[number], backward)


def refuses(name: str) -> bool:
    """Whether the database has samples that an operator refuses."""
    return operators()[name].error_inputs_func is not None


def refusals(name: str) -> Iterator[tuple[int, Any]]:
    """The samples that the database says an operator refuses, numbered."""
    op = operators()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        found = list(itertools.islice(op.error_inputs("cpu"), CONSIDERED))
    yield from enumerate(item.sample_input for item in found)


class Conversion:
    """Brings the arguments of one sample over; tensors that share memory share it there too."""

    def __init__(self) -> None:
        self._memory: dict[tuple[int, str], Tensor] = {}
        self._known: dict[int, Tensor] = {}
        self._alive: list[torch.Tensor] = []  # an address means nothing once its tensor is gone

    def __call__(self, value: Any) -> Any:
        """A sample's argument as the engine takes it; tensors keep strides and offset."""
        if isinstance(value, torch.Tensor):
            found = self._known.get(id(value))
            if found is None:
                found = self._known[id(value)] = self._tensor(value)
            return found
        if isinstance(value, torch.dtype):
            return _translated(dtypes.by_name, value)
        if isinstance(value, (torch.memory_format, torch.layout)):
            return _translated(constants, value)
        if isinstance(value, torch.device):
            return str(value)
        if isinstance(value, (tuple, list)):
            if hasattr(value, "_fields"):
                return type(value)(*map(self, value))
            return [self(x) for x in value] if isinstance(value, list) else tuple(map(self, value))
        if isinstance(value, dict):
            return {key: self(item) for key, item in value.items()}
        if isinstance(value, types.FunctionType) and value.__module__.startswith("torch."):
            if value.__name__ in functions:
                return functions[value.__name__]
            full = f"nn.functional.{value.__name__}"
            return functions[full] if full in functions else rebound(value)
        if isinstance(value, (torch.nn.Module, torch.Generator)):
            raise Untranslatable(type(value).__name__)
        return value

    def _tensor(self, t: torch.Tensor) -> Tensor:
        plain = t.detach()
        if plain.layout is not torch.strided or plain.is_quantized or plain.is_meta:
            raise Untranslatable("a tensor without strides or without data")
        if plain.ndim > 64:
            raise Untranslatable("more dimensions than numpy has")
        plain = plain.resolve_conj().resolve_neg()
        name = str(plain.dtype).removeprefix("torch.")
        self._alive.append(plain)
        place = (plain.untyped_storage().data_ptr(), name)
        whole = self._memory.get(place)
        shape, strides = tuple(plain.shape), plain.stride()
        if whole is None or not place[0]:
            found = whole = self._memory[place] = _whole(plain)
            if whole.layout is layout.layout(shape, strides):
                return found.requires_grad_() if t.requires_grad else found
        span = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        if plain.numel() and plain.storage_offset() + span > whole.layout.numel:
            raise Untranslatable("a tensor larger than its memory, left by a failed call")
        found = whole.as_strided(shape, strides, plain.storage_offset()).detach()
        return found.requires_grad_() if t.requires_grad else found


def _whole(plain: torch.Tensor) -> Tensor:
    """The engine's copy of all the memory behind a tensor."""
    dtype = _translated(dtypes.by_name, plain.dtype)
    size = plain.untyped_storage().nbytes() // plain.itemsize
    flat = plain.as_strided((size,), (1,), 0)
    if dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        raw = flat.view(torch.int16 if dtype.itemsize == 2 else torch.int8).numpy().copy()
        return from_array(raw.view(dtype.np), dtype)
    return from_array(flat.numpy().copy(), dtype)


def _translated(table: Any, value: Any) -> Any:
    name = str(value).removeprefix("torch.")
    if name not in table:
        raise Untranslatable(name)
    return table[name]
