"""Sample calls of every operation, read from its record; knows no test and no language.

The example of an op is its first sample, ``samples=`` holds more of the same form. From these come
larger ones for the kinds that take any shape, and variants in other layouts and dtypes.
"""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import engine.ops
from engine import device as devices
from engine import dtypes, errors, registry
from engine.kinds.record import parameters
from engine.namespace import constants
from engine.registry import F, Op, ops
from engine.tensor import Tensor, from_array

if hasattr(engine.ops, "load_all"):
    engine.ops.load_all()

SPACES = ("autograd", "fft", "functional", "init", "linalg", "nn", "signal", "special", "windows")


class Space:
    """``torch`` or one of its modules, as the registry has it."""

    def __init__(self, prefix: str = ""):
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        full = self._prefix + name
        if full in registry.functions:
            return registry.functions[full]
        if full in constants:
            return constants[full]
        if name in SPACES:
            return Space(full + ".")
        raise AttributeError(full)


class Names(dict[str, Any]):
    """What the names in an example stand for: those of ``torch``, bare or after its name."""

    def __missing__(self, name: str) -> Any:
        if name == "torch":
            return Space()
        try:
            return getattr(Space(), name)
        except AttributeError:
            return getattr(builtins, name)


@dataclass(frozen=True, slots=True)
class Sample:
    """One call of an op by one of its spellings."""

    op: Op
    spelling: str
    call: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    about: str = "as given"

    @property
    def changes(self) -> bool:
        """Whether the call changes its first tensor, as names with an underscore behind do."""
        return self.spelling.endswith("_")

    def run(self) -> Any:
        """The result; an error is one too: (type, sentence)."""
        return outcome(self.call, *self.args, **self.kwargs)

    def mapped(self, change: Callable[[Tensor], Any], about: str) -> Sample:
        """The same call with every tensor changed, those in lists and keywords included."""
        return replace(
            self,
            args=tuple(mapped(a, change) for a in self.args),
            kwargs={k: mapped(v, change) for k, v in self.kwargs.items()},
            about=f"{self.about}, {about}",
        )

    def on_meta(self) -> Sample:
        """The same call on the meta device."""
        sample = self.mapped(on_meta, "on meta")
        if self.op.kind == "creation" and not self.tensors:
            return replace(sample, kwargs={**self.kwargs, "device": devices.meta})
        return sample

    @property
    def tensors(self) -> list[Tensor]:
        return tensors_in((self.args, tuple(self.kwargs.values())))


def outcome(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a call gives, from the same random state each time, or its error's type and text."""
    F.manual_seed(0)
    try:
        with np.errstate(all="ignore"):
            return call(*args, **kwargs)
    except Exception as error:
        if type(error) is AssertionError:
            raise
        return Raised(errors.public_type(error), str(error), error)


@dataclass(frozen=True, slots=True)
class Raised:
    """An error as a result."""

    type: str
    text: str
    error: Exception

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Raised) and (self.type, self.text) == (other.type, other.text)

    def __hash__(self) -> int:
        return hash((self.type, self.text))

    def __repr__(self) -> str:
        return f"{self.type}: {self.text}"


def mapped(value: Any, change: Callable[[Tensor], Any]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if value.__class__ in (tuple, list):
        return value.__class__(mapped(item, change) for item in value)
    return value


def tensors_in(value: Any) -> list[Tensor]:
    """The tensors in a value, those in tuples and lists included."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [t for item in value for t in tensors_in(item)]
    return []


def spellings(op: Op) -> list[str]:
    """All names of an op that users may write."""
    names = (*op.names, *op.methods, *op.inplace)
    return [name for name in names if name.rpartition(".")[2][:1] != "_"]


def tested() -> list[Op]:
    """The ops with a spelling or an example of their own; the others are parts of these."""
    return [op for op in registry.ops.values() if op.example or spellings(op)]


def parsed(text: str, op: Op) -> Sample:
    """The call of ``op`` in an example: its arguments evaluated, the rest of the text left out.

    An op that is one case of another has an example that calls the other.
    """
    statements = ast.parse(text).body
    names = Names()
    for statement in statements[:-1]:
        exec(compile(ast.Module([statement], []), "<example>", "exec"), names)

    def value(node: ast.expr) -> Any:
        return eval(
            compile(ast.fix_missing_locations(ast.Expression(node)), "<example>", "eval"), names
        )

    for own in (True, False):
        for node in ast.walk(statements[-1]):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
                return Sample(op, "@", F.matmul, (value(node.left), value(node.right)), {})
            if isinstance(node, ast.Subscript):
                return Sample(
                    op, "[]", operator.getitem, (value(node.value), value(node.slice)), {}
                )
            if not isinstance(node, ast.Call):
                continue
            called, call, receiver = _callable(node.func, op, own)
            if call is not None:
                args = value(ast.Tuple([*receiver, *node.args], ast.Load()))
                kwargs = {str(k.arg): value(k.value) for k in node.keywords}
                return Sample(op, called, call, args, kwargs)
    raise ValueError(f"{text!r} does not call {op.name}")


def _callable(node: ast.expr, op: Op, own: bool) -> tuple[str, Any, list[ast.expr]]:
    """What is called, and the tensor whose method it is; with ``own`` only names of the op."""
    dotted = ast.unparse(node).removeprefix("torch.")
    if dotted in (op.names if own else registry.functions):
        return dotted, registry.functions[dotted], []
    if isinstance(node, ast.Attribute):
        methods = (*op.methods, *op.inplace) if own else registry.methods
        if node.attr in methods:
            return f"Tensor.{node.attr}", registry.methods[node.attr], [node.value]
    return "", None, []


def given(op: Op) -> list[Sample]:
    """The samples that the record holds."""
    return [parsed(text, op) for text in (op.example, *(op.samples or ())) if text]


def samples(op: Op) -> list[Sample]:
    """The record's samples, and larger ones where the kind takes any shape."""
    found = given(op)
    if op.kind in ("pointwise", "reduction"):
        for sample in found[:1]:
            found.append(sample.mapped(enlarged, "enlarged"))
    return found


def enlarged(t: Tensor) -> Tensor:
    """The values of ``t`` repeated to shape [2, 3, 4]; a 0-d tensor stays one."""
    if t.layout.ndim == 0 or t.layout.numel == 0:
        return t
    return from_array(np.resize(t.array, (2, 3, 4)), t.dtype)


def transposed(t: Tensor) -> Tensor:
    """The same elements, the first dimension innermost in memory."""
    if t.layout.ndim < 2:
        return t
    dims = tuple(reversed(range(t.layout.ndim)))
    return t.permute(dims).clone(memory_format=constants["contiguous_format"]).permute(dims)


def stepped(t: Tensor) -> Tensor:
    """The same elements, every second cell of memory in each dimension, one in from the start."""
    if t.layout.ndim == 0:
        return t
    wide = F.zeros(tuple(2 * n + 1 for n in t.layout.shape), dtype=t.dtype)
    part = wide[(slice(1, None, 2),) * t.layout.ndim]
    return part.copy_(t)


def same_layout(t: Tensor) -> Tensor:
    """A copy in memory of its own with the same strides."""
    memory = F.zeros((t.layout.span,), dtype=t.dtype)
    copy = memory.as_strided(t.layout.shape, t.layout.strides).detach()
    if t.array is not None:
        copy.array[...] = t.array
    return copy


def expanded(t: Tensor) -> Tensor:
    """The first slice of each dimension but the last for all of them, by strides of zero."""
    if t.layout.ndim < 2:
        return t
    return t[(slice(0, 1),) * (t.layout.ndim - 1)].expand(t.layout.shape)


def rowwise_expanded(t: Tensor) -> Tensor:
    """The first element of the last dimension for all of them, by a stride of zero."""
    if t.layout.ndim == 0:
        return t
    return t[..., 0:1].expand(t.layout.shape)


def smooth(op: Op, dtype: Any) -> Iterator[Sample]:
    """The samples for derivatives, every number in ``dtype`` and off the kinks.

    The elements are drawn from the op's domain; without one those of the sample are moved a
    little, each by another amount.
    """
    last = None
    for sample in samples(op):
        if op.derivatives and not differentiable_inputs(sample):
            first = sample.tensors[0] if sample.tensors else None
            sample = sample.mapped(lambda t, f=first: t.to(dtype) if t is f else t, "as numbers")
            if isinstance(sample.run(), Raised):
                continue
        if differentiable_inputs(sample):
            last = off_kinks(sample, dtype)
            yield last
    if last is not None:
        for change in (transposed, stepped):
            turned = last.mapped(change, change.__name__)
            if not isinstance(turned.run(), Raised):
                yield turned


def domains(sample: Sample) -> list[tuple[Tensor, Any]]:
    """Every tensor of a sample with the domain of its parameter."""
    op = sample.op
    domain = op.domain
    names = [p.name for p in parameters(op)]
    named = [*zip(names, sample.args, strict=False), *sample.kwargs.items()]
    named += [("", a) for a in sample.args[len(names) :]]
    return [
        (t, domain.get(name) if isinstance(domain, dict) else domain)
        for name, value in named
        for t in tensors_in(value)
    ]


def off_kinks(sample: Sample, dtype: Any) -> Sample:
    """The sample in ``dtype`` with elements from the domain, or its own moved by 0.02 to 0.2."""
    random = np.random.default_rng(0)
    fresh = iter([_drawn(t, domain, dtype, random) for t, domain in domains(sample)])
    return sample.mapped(lambda t: next(fresh), dtype.name)


def _drawn(t: Tensor, domain: Any, dtype: Any, random: np.random.Generator) -> Tensor:
    if not t.dtype.is_floating_point and not t.dtype.is_complex:
        return t
    if isinstance(domain, tuple):
        array = random.uniform(*domain, t.layout.shape)
    else:
        array = np.where(np.isfinite(t.array), t.array, 1.5)
        array = array + random.uniform(0.02, 0.2, t.layout.shape)
    if dtype.is_complex:
        array = array + 1j * random.uniform(0.1, 0.5, t.layout.shape)
    if isinstance(domain, str):
        array = within(domain, array)
    if t.dtype.is_complex and not dtype.is_complex:
        return from_array(array.astype("complex128"))
    return from_array(np.asarray(array, dtype.np), dtype)


def within(domain: Any, array: Any) -> Any:
    """The part of a matrix that its domain lets vary."""
    return MATRICES[domain](array) if isinstance(domain, str) else array


MATRICES: dict[str, Callable[[Any], Any]] = {
    "hermitian": lambda a: (a + a.swapaxes(-1, -2).conj()) / 2,
    "lower": np.tril,
    "upper": np.triu,
}


def differentiable_inputs(sample: Sample) -> list[Tensor]:
    """The tensors of a sample that may require grad."""
    return [t for t in sample.tensors if t.dtype.is_floating_point or t.dtype.is_complex]


def zero_dim(t: Tensor) -> Tensor:
    """The first element as a tensor of no dimensions."""
    return t if t.layout.ndim == 0 else t.reshape(-1)[0].clone()


def emptied(t: Tensor) -> Tensor:
    """The same number of dimensions, the last of size 0."""
    return t if t.layout.ndim == 0 else t[..., :0].clone()


def without_rows(t: Tensor) -> Tensor:
    """The same number of dimensions, the first of size 0."""
    return t if t.layout.ndim == 0 else t[:0].clone()


LAYOUTS = (transposed, stepped, expanded, rowwise_expanded)
SHAPES = (zero_dim, emptied, without_rows)
DTYPES = (
    dtypes.bool_, dtypes.uint8, dtypes.int64, dtypes.float16, dtypes.bfloat16, dtypes.float64,
    dtypes.complex64,
)  # fmt: skip


def variants(op: Op) -> Iterator[Sample]:
    """Every sample, in all layouts, with other shapes and in other dtypes."""
    for sample in samples(op):
        yield sample
        if not sample.tensors:
            continue
        for change in (*LAYOUTS, *SHAPES):
            yield sample.mapped(change, change.__name__)
        yield _mixed(sample)
        for dtype in DTYPES:
            yield sample.mapped(lambda t, d=dtype: converted(t, d), dtype.name)


def converted(t: Tensor, dtype: Any) -> Tensor:
    """``t`` in that dtype; what holds indices or flags is left as it is."""
    if not t.dtype.is_floating_point and t.dtype is not dtypes.complex64:
        return t
    with np.errstate(all="ignore"):
        return t.to(dtype)


def _mixed(sample: Sample) -> Sample:
    """The first tensor transposed, the others as they are."""
    first = sample.tensors[0]
    return sample.mapped(lambda t: transposed(t) if t is first else t, "first transposed")


def on_meta(t: Tensor) -> Tensor:
    """A meta tensor of the same dtype, layout and offset, as lazy as ``t``."""
    cells = t.storage.nbytes // t.dtype.itemsize
    storage = F.empty((cells,), dtype=t.dtype, device=devices.meta)
    shown = storage.as_strided(t.layout.shape, t.layout.strides, t.offset)
    shown = F.conj(shown) if t.is_conj() else shown
    shown = ops["_neg_view"].function(shown) if t.is_neg() else shown
    return shown.requires_grad_(t.requires_grad)


def described(value: Any) -> Any:
    """All that can be seen of a result but its elements and device."""
    if isinstance(value, Tensor):
        layout = value.layout
        return (
            "tensor", str(value.dtype), tuple(layout.shape), layout.strides, value.offset,
            value.requires_grad,
        )  # fmt: skip
    if isinstance(value, (tuple, list)):
        return [described(item) for item in value]
    return value
