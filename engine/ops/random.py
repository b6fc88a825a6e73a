"""Random tensors, with PyTorch's numbers for PyTorch's seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine import draws, dtypes, formats
from engine import layout as layouts
from engine import random as generators
from engine.draws import arranged, chosen
from engine.dtypes import DType
from engine.errors import (
    DtypeNotImplementedError,
    TensorRuntimeError,
    TensorTypeError,
    TensorValueError,
)
from engine.kinds.creation import creation
from engine.kinds.kernel import Made, kernel, made
from engine.kinds.missing import NODE, no_derivative
from engine.kinds.sizes import check_sizes
from engine.modes import state
from engine.overloads import no_overload
from engine.random import Generator
from engine.registry import function, method, ops
from engine.signature import ArgumentError, parameters_of, type_name
from engine.tensor import Tensor, from_array

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.formats import MemoryFormat
    from engine.layout import Layout
    from engine.parameter_types import Shape, Size

OPTIONS = (
    "torch.dtype dtype = None, torch.layout layout = None, torch.device device = None, bool "
    "pin_memory = False, bool requires_grad = False)"
)


def _check_kernel(kernel_name: str, dtype: DType) -> None:
    if dtype.category < dtypes.FLOAT or dtype.name.startswith("float8"):
        raise DtypeNotImplementedError(f"\"{kernel_name}\" not implemented for '{dtype.title}'")


def _zeros(g: Tensor) -> Tensor:
    return g.new_zeros(g.layout.shape)


# The generator


@function("manual_seed", "random.manual_seed")
def manual_seed(seed: Any) -> Generator:
    """Start the generator again from a seed."""
    value = int(seed)
    return draws.default.manual_seed(value)


@function("seed", "random.seed")
def seed() -> int:
    """Start the generator again from the system's entropy; gives the seed."""
    return draws.default.seed()


@function("initial_seed", "random.initial_seed")
def initial_seed() -> int:
    """The seed that the generator was started from."""
    return draws.default.initial_seed()


@function("get_rng_state", "random.get_rng_state")
def get_rng_state() -> Tensor:
    """The generator's state as 5056 bytes."""
    return from_array(draws.default.get_state())


@function("set_rng_state", "random.set_rng_state")
def set_rng_state(new_state: Tensor) -> None:
    """Put the generator into a state that ``get_rng_state`` gave."""
    if not isinstance(new_state, Tensor):
        raise TensorTypeError(f"expected a torch.ByteTensor, but got {type_name(new_state)}")
    if new_state.array is None:
        raise TensorTypeError("RNG state must be a torch.ByteTensor")
    draws.default.set_state(new_state.array)


def new_generator(device: Any = None) -> Generator:
    """A generator of its own, in PyTorch's first state."""
    if device is not None and str(device).partition(":")[0] != "cpu":
        raise TensorRuntimeError(
            "Cannot get CUDA generator without ATen_cuda library. PyTorch splits its backend into "
            "two shared libraries: a CPU library and a CUDA library; this error has occurred "
            "because you are trying to use some CUDA functionality, but the CUDA library has not "
            "been loaded"
        )
    return Generator()


def seeded(generator: Generator, seed: Any) -> Generator:
    """``Generator.manual_seed``: integers only."""
    if not isinstance(seed, int):
        raise TensorRuntimeError(f"manual_seed expected a long, but got {type_name(seed)}")
    return generator.manual_seed(seed)


def state_of(generator: Generator) -> Tensor:
    """A generator's state as a tensor of bytes."""
    return from_array(generator.get_state())


def put_state(generator: Generator, new_state: Tensor) -> Generator:
    """Put a generator into a state."""
    generator.set_state(new_state.array)
    return generator


# New tensors


def _uniform(dtype: DType, layout: Layout, generator: Generator | None) -> Made:
    _check_kernel("check_uniform_bounds", dtype)
    return made(
        dtype,
        layout,
        lambda xp: arranged(
            generators.uniform(chosen(generator), layout.numel, dtype.name), layout
        ),
    )


def _normal(
    dtype: DType, layout: Layout, generator: Generator | None, mean: float = 0.0, std: float = 1.0
) -> Made:
    if not std >= 0:
        raise TensorRuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    _check_kernel("normal_kernel_cpu", dtype)

    def run(xp: Any) -> Any:
        flat = generators.normal(
            chosen(generator), layout.numel, dtype.name, mean, std, contiguous=layout.contiguous
        )
        return arranged(flat, layout)

    return made(dtype, layout, run)


@creation(method=False, example="manual_seed(0); rand(3)")
def rand(size: Size, *, generator: Generator | None = None, dtype: DType | None = None) -> Made:
    """Numbers drawn evenly from [0, 1)."""
    found = dtype or state.default_dtype
    return _uniform(found, check_sizes(size, found), generator)


@creation(method=False, example="manual_seed(0); randn(3)")
def randn(size: Size, *, generator: Generator | None = None, dtype: DType | None = None) -> Made:
    """Numbers from the standard normal distribution."""
    found = dtype or state.default_dtype
    return _normal(found, check_sizes(size, found), generator)


@creation(method=False, out=False, example="rand_like(zeros(3))")
def rand_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    memory_format: MemoryFormat | None = None,
) -> Made:
    """Evenly drawn numbers in the tensor's shape, dtype and device."""
    layout = formats.with_format(input.layout, memory_format)
    return _uniform(dtype or input.dtype, layout, generator)


@creation(method=False, out=False, example="randn_like(zeros(3))")
def randn_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
    memory_format: MemoryFormat | None = None,
) -> Made:
    """Normal numbers in the tensor's shape, dtype and device."""
    layout = formats.with_format(input.layout, memory_format)
    return _normal(dtype or input.dtype, layout, generator)


# Draws in place of the elements


def in_place(name: str, node: str, **more: Any) -> Callable[[Any], Any]:
    """An op that only has an in-place form, whose gradient to the old elements is zero."""

    def decorate(body: Any) -> Any:
        op = kernel(
            vjp={"input": _zeros},
            function=False,
            method=False,
            inplace=True,
            out=False,
            name=name,
            node=node,
            **more,
        )(body)
        # "from" is no name that a Python parameter can have.
        op.parameters = parameters_of(body)
        for p in op.parameters:
            if p.name == "from_":
                p.name = "from"
        return op

    return decorate


@in_place("uniform", "UniformBackward0", example="zeros(3).uniform_(-1, 1)")
def uniform(
    input: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None
) -> Made:
    """Numbers drawn evenly from [from, to)."""
    dtype, layout = input.dtype, input.layout
    _check_kernel("check_uniform_bounds", dtype)
    return made(
        dtype,
        layout,
        lambda xp: arranged(
            generators.uniform(chosen(generator), layout.numel, dtype.name, from_, to), layout
        ),
    )


@in_place("normal", "NormalBackward0", example="zeros(3).normal_()")
def normal_(
    input: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Made:
    """Normal numbers of that mean and standard deviation."""
    return _normal(input.dtype, input.layout, generator, mean, std)


def _check_continuous(name: str, dtype: DType, spelled: str) -> None:
    if not dtype.is_floating_point:
        raise TensorRuntimeError(
            f"{name} distribution is a continuous probability distribution. dtype must be a "
            f"floating point but you specified {spelled}"
        )


@in_place("exponential", "ExponentialBackward0", example="zeros(3).exponential_()")
def exponential(input: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Made:
    """Numbers from the exponential distribution of rate ``lambd``."""
    dtype, layout = input.dtype, input.layout
    _check_continuous("Exponential", dtype, dtype.title)
    return made(
        dtype,
        layout,
        lambda xp: arranged(
            generators.exponential(chosen(generator), layout.numel, dtype.name, lambd), layout
        ),
    )


@in_place("cauchy", "CauchyBackward0", example="zeros(3).cauchy_()")
def cauchy(
    input: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None
) -> Made:
    """Numbers from the Cauchy distribution."""
    dtype, layout = input.dtype, input.layout
    if not sigma > 0:
        raise TensorRuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    spelled = {"int64": "long int", "int16": "short int"}
    _check_continuous("Cauchy", dtype, spelled.get(dtype.name, dtype.cpp))
    return made(
        dtype,
        layout,
        lambda xp: arranged(
            generators.cauchy(chosen(generator), layout.numel, dtype.name, median, sigma), layout
        ),
    )


@in_place("log_normal", "LogNormalBackward0", example="zeros(3).log_normal_()")
def log_normal(
    input: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None
) -> Made:
    """Numbers whose logarithms are normal."""
    dtype, layout = input.dtype, input.layout
    if not std > 0:
        raise TensorRuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    if not dtype.is_floating_point:
        raise DtypeNotImplementedError(f"\"log_normal_cpu\" not implemented for '{dtype.title}'")
    return made(
        dtype,
        layout,
        lambda xp: arranged(
            generators.log_normal(chosen(generator), layout.numel, dtype.name, mean, std), layout
        ),
    )


@in_place("geometric", "GeometricBackward0", example="zeros(3).geometric_(0.5)")
def geometric(input: Tensor, p: float, *, generator: Generator | None = None) -> Made:
    """How many trials of probability ``p`` it takes to succeed."""
    dtype, layout = input.dtype, input.layout
    if not 0 < p < 1:
        raise TensorRuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if dtype.is_bool or dtype.is_complex:
        raise DtypeNotImplementedError(f"\"geometric_cpu\" not implemented for '{dtype.title}'")
    return made(
        dtype,
        layout,
        lambda xp: arranged(
            generators.geometric(chosen(generator), layout.numel, dtype.name, p), layout
        ),
    )


@in_place("_bernoulli_number", "BernoulliBackward2", example="zeros(3).bernoulli_(0.5)")
def _bernoulli_number(input: Tensor, p: float = 0.5, *, generator: Generator | None = None) -> Made:
    dtype, layout = input.dtype, input.layout
    if not 0 <= p <= 1:
        raise TensorRuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    if dtype.is_complex:
        raise DtypeNotImplementedError(
            f"\"bernoulli_scalar_cpu_\" not implemented for '{dtype.title}'"
        )
    return made(
        dtype,
        layout,
        lambda xp: arranged(
            generators.bernoulli_scalar(chosen(generator), layout.numel, p, dtype.name), layout
        ),
    )


@in_place(
    "_bernoulli_tensor",
    "BernoulliBackward1",
    example="zeros(2).bernoulli_(tensor([0., 1.]))",
    domain=(0.1, 0.9),
)
def _bernoulli_tensor(input: Tensor, p: Tensor, *, generator: Generator | None = None) -> Made:
    layout = input.layout
    spread = layouts.expand(p.layout, layout.shape)
    assert spread is not None
    return _by_probability(input.dtype, layout, p, generator)


def _by_probability(dtype: DType, layout: Layout, p: Tensor, generator: Generator | None) -> Made:
    if not p.dtype.is_floating_point:
        raise DtypeNotImplementedError(
            f"\"bernoulli_tensor_cpu_p_\" not implemented for '{p.dtype.title}'"
        )

    def run(xp: Any) -> Any:
        order = layouts.iteration_order([layout.strides], layout.shape)[::-1]
        probabilities = np.broadcast_to(p.array, layout.shape).transpose(order).reshape(-1)
        flat = generators.bernoulli_p(chosen(generator), probabilities, dtype.name)
        return arranged(flat, layout)

    return made(dtype, layout, run)


@method("bernoulli_")
def bernoulli_(x: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Ones with probability ``p``, a number or a tensor of them, zeros else."""
    name = "_bernoulli_tensor" if isinstance(p, Tensor) else "_bernoulli_number"
    op = ops[name]
    assert op.build_inplace is not None
    done: Tensor = op.build_inplace(op)(x, p, generator=generator)
    return done


@kernel(
    vjp=_zeros,
    function=False,
    method=False,
    name="_bernoulli",
    node="BernoulliBackward0",
    example="bernoulli(tensor([0., 1.]))",
    domain=(0.1, 0.9),
)
def _bernoulli(input: Tensor, *, generator: Generator | None = None) -> Made:
    layout = layouts.contiguous(input.layout.shape)
    return _by_probability(input.dtype, layout, input, generator)


@kernel(
    vjp=no_derivative("bernoulli"),
    function=False,
    method=False,
    name="_bernoulli_p",
    node=NODE,
    example="bernoulli(zeros(3), 0.5)",
)
def _bernoulli_p(input: Tensor, p: float, *, generator: Generator | None = None) -> Made:
    return _bernoulli_number.body(_Shaped(input), p, generator=generator)


class _Shaped:
    """The dtype of a tensor and the contiguous layout of its shape."""

    __slots__ = ("dtype", "layout")

    def __init__(self, t: Tensor):
        self.dtype = t.dtype
        self.layout = layouts.contiguous(t.layout.shape)


@method("bernoulli")
@function("bernoulli")
def bernoulli(*args: Any, **kwargs: Any) -> Tensor:
    """Ones with the probabilities that the elements give (or ``p``), zeros else."""
    given = len(args) > 1 or "p" in kwargs
    call = ops["_bernoulli_p" if given else "_bernoulli"].function
    try:
        drawn: Tensor = call(*args, **kwargs)
    except ArgumentError as error:
        raise ArgumentError(
            str(error).replace("_bernoulli_p", "bernoulli").replace("_bernoulli", "bernoulli"),
            error.parameter,
        ) from None
    return drawn


# Draws whose parameters are tensors


def _normal_of(mean: Any, std: Any, dtype: DType, generator: Generator | None, device: Any) -> Made:
    shapes = [t.layout.shape for t in (mean, std) if isinstance(t, Tensor)]
    shape = shapes[0]
    for other in shapes[1:]:
        shape = layouts.broadcast_shapes(shape, other)
    layout = layouts.contiguous(shape)
    if isinstance(std, Tensor) and std.dtype.is_complex:
        raise TensorRuntimeError("normal expects standard deviation to be non-complex")
    if not isinstance(std, Tensor) and not std >= 0:
        raise TensorRuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    _check_kernel("normal_kernel_cpu", dtype)

    def run(xp: Any) -> Any:
        flat = [
            np.broadcast_to(t.array, shape).reshape(-1) if isinstance(t, Tensor) else t
            for t in (mean, std)
        ]
        return generators.normal_tensors(
            chosen(generator), layout.numel, dtype.name, flat[0], flat[1]
        )

    return made(dtype, layout, run)


@kernel(
    vjp={"mean": _zeros},
    function=False,
    method=False,
    name="_normal_1",
    node="NormalBackward1",
    example="normal(tensor([0., 10.]))",
)
def _normal_1(mean: Tensor, std: float = 1.0, *, generator: Generator | None = None) -> Made:
    return _normal_of(mean, std, mean.dtype, generator, None)


@kernel(
    vjp={"std": _zeros},
    function=False,
    method=False,
    name="_normal_2",
    node="NormalBackward2",
    example="normal(0., tensor([1., 10.]))",
)
def _normal_2(mean: float, std: Tensor, *, generator: Generator | None = None) -> Made:
    return _normal_of(mean, std, std.dtype, generator, None)


@kernel(
    vjp={"mean": _zeros, "std": _zeros},
    function=False,
    method=False,
    name="_normal_3",
    node="NormalBackward3",
    example="normal(tensor([0., 10.]), tensor([1., 2.]))",
)
def _normal_3(mean: Tensor, std: Tensor, *, generator: Generator | None = None) -> Made:
    return _normal_of(mean, std, mean.dtype, generator, None)


@creation(method=False, name="_normal_size", function=False, example="normal(0., 1., (3,))")
def _normal_size(
    mean: float,
    std: float,
    size: Shape,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
) -> Made:
    found = dtype or state.default_dtype
    return _normal(found, check_sizes(size, found), generator, mean, std)


_NORMAL_TEXTS = (
    "(Tensor mean, Tensor std, *, torch.Generator generator = None, Tensor out = None)",
    "(Tensor mean, float std = 1, *, torch.Generator generator = None, Tensor out = None)",
    "(float mean, Tensor std, *, torch.Generator generator = None, Tensor out = None)",
    "(float mean, float std, tuple of ints size, *, torch.Generator generator = None, Tensor out "
    f"= None, {OPTIONS}",
)


@function("normal")
def normal(*args: Any, **kwargs: Any) -> Tensor:
    """Normal numbers; mean and deviation are numbers (with a ``size``) or tensors."""
    mean = args[0] if args else kwargs.get("mean")
    std = args[1] if len(args) > 1 else kwargs.get("std", 1.0)
    if isinstance(mean, Tensor):
        name = "_normal_3" if isinstance(std, Tensor) else "_normal_1"
    else:
        name = "_normal_2" if isinstance(std, Tensor) else "_normal_size"
    try:
        drawn: Tensor = ops[name].function(*args, **kwargs)
    except ArgumentError:
        raise no_overload("normal", args, kwargs, _NORMAL_TEXTS) from None
    return drawn


@kernel(vjp=_zeros, method=False, node="PoissonBackward0", example="poisson(tensor([2., 9.]))")
def poisson(input: Tensor, generator: Generator | None = None) -> Made:
    """Poisson numbers of the rates that the elements give."""
    layout = layouts.contiguous(input.layout.shape)
    if not input.dtype.is_floating_point:
        raise DtypeNotImplementedError(f"\"poisson_cpu\" not implemented for '{input.dtype.title}'")
    return made(
        input.dtype,
        layout,
        lambda xp: generators.poisson(chosen(generator), input.array.reshape(-1)),
    )


@kernel(
    vjp=dict.fromkeys(("count", "prob"), no_derivative("binomial")),
    node=NODE,
    method=False,
    example="binomial(tensor([10.]), tensor([0.5]))",
)
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Made:
    """How many of ``count`` trials of probability ``prob`` succeed."""
    for t, name in ((count, "count"), (prob, "prob")):
        if not t.dtype.is_floating_point:
            raise TensorValueError(
                f"binomial only supports floating-point dtypes for {name}, got: {t.dtype.title}"
            )
    shape = layouts.broadcast_shapes(count.layout.shape, prob.layout.shape)

    def run(xp: Any) -> Any:
        counts, probs = [np.broadcast_to(t.array, shape).reshape(-1) for t in (count, prob)]
        return generators.binomial(chosen(generator), counts, probs)

    return made(count.dtype, shape, run)


@kernel(example="multinomial(tensor([0., 3., 1.]), 2)")
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Made:
    """Places drawn by the weights in the rows; without replacement each at most once."""
    if input.ndim not in (1, 2):
        raise TensorRuntimeError("prob_dist must be 1 or 2 dim")
    if not input.dtype.is_floating_point:
        raise TensorRuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {input.dtype.title}"
        )
    if num_samples <= 0:
        raise TensorRuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > input.layout.shape[-1]:
        raise TensorRuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    shape = (*input.layout.shape[:-1], num_samples)

    def run(xp: Any) -> Any:
        weights = input.array.reshape(-1, input.layout.shape[-1])
        return generators.multinomial(
            chosen(generator), weights, num_samples, replacement=replacement
        )

    return made(dtypes.int64, shape, run)
