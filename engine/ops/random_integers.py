"""Random integers, with PyTorch's numbers for PyTorch's seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes, formats
from engine import random as generators
from engine.draws import arranged, chosen
from engine.errors import TensorTypeError, TensorValueError
from engine.kinds.creation import bind_creation, creation, finish_creation
from engine.kinds.kernel import Made, made
from engine.kinds.sizes import check_sizes
from engine.ops.random import OPTIONS, in_place
from engine.overloads import no_overload
from engine.registry import function, method, ops
from engine.signature import Parameter, bind, parameters_of
from engine.tensor import Tensor

if TYPE_CHECKING:
    from engine.dtypes import DType
    from engine.formats import MemoryFormat
    from engine.layout import Layout
    from engine.parameter_types import Scalar, Shape
    from engine.random import Generator


def _integers(
    dtype: DType, layout: Layout, generator: Generator | None, low: int, high: int
) -> Made:
    return made(
        dtype,
        layout,
        lambda xp: arranged(
            generators.randint(chosen(generator), layout.numel, low, high, dtype.name), layout
        ),
    )


def _up_to(
    high: int, size: Shape, *, generator: Generator | None = None, dtype: DType | None = None
) -> None: ...


def _between(
    low: int,
    high: int,
    size: Shape,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
) -> None: ...


_UP_TO: tuple[Parameter, ...] = parameters_of(_up_to)
_BETWEEN: tuple[Parameter, ...] = parameters_of(_between)
_RANDINT_TEXTS = tuple(
    f"({bounds}, tuple of ints size, *, {generator}Tensor out = None, {OPTIONS}"
    for bounds in ("int high", "int low, int high")
    for generator in ("torch.Generator generator, ", "")
)


@function("randint", forms=_RANDINT_TEXTS)
def randint(*args: Any, **kwargs: Any) -> Tensor:
    """Integers from ``low`` (0) up to ``high``, not included; int64 unless ``dtype`` is given."""
    given = len(args) + sum(k in kwargs for k in ("low", "high", "size"))
    if given not in (2, 3):
        raise no_overload("randint", args, kwargs, _RANDINT_TEXTS)
    values, shared = bind_creation("randint", _UP_TO if given == 2 else _BETWEEN, args, kwargs)
    low, high, size, generator, dtype = (0, *values) if given == 2 else values
    check_word(low, high)
    out = shared.out
    found = dtype or (out.dtype if out is not None else dtypes.int64)
    layout = check_sizes(size, found)
    return finish_creation(
        "randint", _integers(found, layout, generator, low, high), found, shared, dtype
    )


def check_word(*bounds: int) -> None:
    """Refuse bounds that no int64 holds."""
    for bound in bounds:
        if not -(2**63) <= bound < 2**63:
            raise TensorValueError("Overflow when unpacking long long")


def _like_up_to(
    input: Tensor,
    high: Scalar,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    memory_format: MemoryFormat | None = None,
) -> None: ...


def _like_between(
    input: Tensor,
    low: Scalar,
    high: Scalar,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    memory_format: MemoryFormat | None = None,
) -> None: ...


_LIKE_UP_TO: tuple[Parameter, ...] = parameters_of(_like_up_to)
_LIKE_BETWEEN: tuple[Parameter, ...] = parameters_of(_like_between)
_LIKE_TEXTS = tuple(
    f"(Tensor input, {bounds}, *, {generator}torch.memory_format memory_format = None, {OPTIONS}"
    for bounds in ("int low, int high", "int high", "Tensor high")
    for generator in ("torch.Generator generator, ", "")
)


def _is_bound(value: Any) -> bool:
    """Whether a bound is an integer, or a tensor of one number that is real."""
    if isinstance(value, Tensor):
        return value.layout.numel == 1 and not value.dtype.is_complex
    return value.__class__ in (int, bool)


@function("randint_like", forms=_LIKE_TEXTS)
def randint_like(*args: Any, **kwargs: Any) -> Tensor:
    """Integers in the tensor's shape, dtype and device."""
    given = len(args) + sum(k in kwargs for k in ("input", "low", "high"))
    if given not in (2, 3):
        raise no_overload("randint_like", args, kwargs, _LIKE_TEXTS)
    form = _LIKE_UP_TO if given == 2 else _LIKE_BETWEEN
    values, shared = bind_creation("randint_like", form, args, kwargs, False)
    if given == 2:
        values.insert(1, 0)
    input, low, high, generator, dtype, memory_format = values
    if not all(_is_bound(bound) for bound in (low, high)):
        raise no_overload("randint_like", args, kwargs, _LIKE_TEXTS)
    check_word(int(low), int(high))
    found = dtype or input.dtype
    shared.device = shared.device or input.device
    layout = formats.with_format(input.layout, memory_format)
    planned = _integers(found, layout, generator, int(low), int(high))
    return finish_creation("randint_like", planned, found, shared, dtype)


@creation(method=False, example="manual_seed(0); randperm(4)")
def randperm(n: int, *, generator: Generator | None = None, dtype: DType | None = None) -> Made:
    """A random order of the integers from 0 to n - 1."""
    found = dtype or dtypes.int64
    layout = check_sizes((n,), found)
    from engine import scalars

    if n and not found.is_bool:
        scalars.element(n, found)
    return made(found, layout, lambda xp: generators.randperm(chosen(generator), n, found.name))


def _random_signature(*, generator: Generator | None = None) -> None: ...


def _random_to(to: int, *, generator: Generator | None = None) -> None: ...


def _random_from_to(from_: int, to: int | None, *, generator: Generator | None = None) -> None: ...


_RANDOM: tuple[Parameter, ...] = parameters_of(_random_signature)
_RANDOM_TO: tuple[Parameter, ...] = parameters_of(_random_to)
_RANDOM_FROM_TO: tuple[Parameter, ...] = parameters_of(_random_from_to)
_RANDOM_FROM_TO[0].name = "from"
_RANDOM_TEXTS = (
    "(*, torch.Generator generator = None)",
    "(int from, int to, *, torch.Generator generator = None)",
    "(int to, *, torch.Generator generator = None)",
)


def _random(name: str, node: str, example: str) -> None:
    @in_place(name, node, example=example)
    def body(input: Tensor, draw: Any, generator: Generator | None = None) -> Made:
        layout = input.layout
        return made(
            input.dtype,
            layout,
            lambda xp: arranged(draw(chosen(generator), layout.numel, input.dtype.name), layout),
        )


_random("_random_all", "RandomBackward2", "zeros(3).random_()")
_random("_random_to", "RandomBackward1", "zeros(3).random_(10)")
_random("_random_from_to", "RandomBackward0", "zeros(3).random_(5, 10)")


def _drawn(generator: Generator, n: int, dtype: str) -> Any:
    return generators.random_(generator, n, dtype)


def _drawn_from(low: int, to: int | None) -> Any:
    if to is None:
        return lambda generator, n, dtype: generators.random_from(generator, n, low, dtype)
    return lambda generator, n, dtype: generators.random_from_to(generator, n, low, to, dtype)


@method("random_")
def random_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Integers from ``from`` (0) up to ``to``, or over the range that the dtype holds."""
    given = len(args) + sum(k in kwargs for k in ("from", "to"))
    try:
        if given == 0:
            (generator,) = bind("random_", _RANDOM, args, kwargs)
            name, draw = "_random_all", _drawn
        elif given == 1:
            to, generator = bind("random_", _RANDOM_TO, args, kwargs)
            name, draw = "_random_to", _drawn_from(0, to)
        else:
            low, to, generator = bind("random_", _RANDOM_FROM_TO, args, kwargs)
            name, draw = "_random_from_to", _drawn_from(low, to)
    except TensorTypeError:
        raise no_overload("random_", args, kwargs, _RANDOM_TEXTS) from None
    op = ops[name]
    assert op.build_inplace is not None
    done: Tensor = op.build_inplace(op)(x, draw, generator)
    return done
