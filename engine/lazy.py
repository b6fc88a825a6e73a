"""Memory that shows its elements conjugated or negated: worked out at each look, never stored.

A tensor is such a view because of its memory alone. Kernels get a Shown where they expect an
array: it computes whenever it is read, and what is written through it reaches the memory the
other way round. So no kernel knows of lazy views, and other tensors pay nothing for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from engine.modes import state
from engine.storage import Storage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.layout import Layout
    from engine.tensor import Kind, Tensor

# The two changes; each undoes itself, and neither rounds.
CONJUGATED: np.ufunc = np.conjugate
NEGATED: np.ufunc = np.negative

# Functions of numpy that write into their first argument.
_WRITERS = frozenset((np.copyto, np.put, np.place, np.putmask, np.put_along_axis, np.fill_diagonal))


class Shown(NDArrayOperatorsMixin):
    """What stands for the array of a lazy view: ``held`` seen through ``change``.

    Reading gives a new array with the strides of ``held`` that refuses to be written to: a write
    that would not reach the memory fails.
    """

    __slots__ = ("change", "held")

    def __init__(self, held: Any, change: Any):
        self.held = held
        self.change = change

    def read(self) -> Any:
        """The elements as they are seen, in new memory with the same strides."""
        held = self.held
        if held.flags.c_contiguous:
            return np.asarray(self.change(held))
        size = held.itemsize
        span = 1 + sum((n - 1) * s // size for n, s in zip(held.shape, held.strides, strict=True))
        seen = np.ndarray(held.shape, held.dtype, np.empty(span, held.dtype), 0, held.strides)
        # Not by out=, as numpy 2.4 negates strided float32 wrongly so.
        seen[...] = self.change(held)
        return seen

    def frozen(self) -> Any:
        """As ``read``, refusing writes, which would be lost."""
        seen = self.read()
        seen.flags.writeable = False
        return seen

    def store(self, elements: Any) -> None:
        """Make these the elements that are seen."""
        self[...] = elements

    def change_by(self, write: Callable[[Any], Any]) -> Shown:
        """Let ``write`` change a copy of what is seen, and store that."""
        seen = self.read()
        write(seen)
        self.store(seen)
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        seen = self.read() if copy else self.frozen()
        return seen if dtype is None else seen.astype(dtype, copy=False)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.frozen(), name)

    @property
    def T(self) -> Shown:
        """The same elements with the dimensions turned round."""
        return Shown(self.held.T, self.change)

    @property
    def dtype(self) -> Any:
        return self.held.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.held.shape  # type: ignore[no-any-return]

    def __getitem__(self, key: Any) -> Any:
        part = self.held[key]
        if part.__class__ is np.ndarray and np.may_share_memory(part, self.held):
            return Shown(part, self.change)
        return self.change(part)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.held[key] = self.change(np.asarray(value, self.held.dtype))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        run = getattr(ufunc, method)
        if method == "at" and inputs[0].__class__ is Shown:
            return inputs[0].change_by(lambda seen: run(seen, *_plain(inputs[1:]), **options))
        out = options.pop("out", None)
        if out is None:
            return run(*_plain(inputs), **options)
        into = tuple([o.read() if o.__class__ is Shown else o for o in out])
        run(*_plain(inputs), out=into, **options)
        for o, seen in zip(out, into, strict=True):
            if o.__class__ is Shown:
                o.store(seen)
        return out[0] if len(out) == 1 else out

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, options: dict[str, Any]
    ) -> Any:
        if function in _WRITERS and args[0].__class__ is Shown:
            return args[0].change_by(
                lambda seen: function(seen, *_plain(args[1:]), **_plain(options))
            )
        out = options.get("out")
        if out.__class__ is Shown:
            rest = {name: value for name, value in options.items() if name != "out"}
            return out.change_by(lambda seen: function(*_plain(args), out=seen, **_plain(rest)))
        return function(*_plain(args), **_plain(options))

    def __len__(self) -> int:
        return len(self.held)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.frozen())

    def __bool__(self) -> bool:
        return bool(self.frozen())

    def __int__(self) -> int:
        return int(self.frozen())

    def __float__(self) -> float:
        return float(self.frozen())

    def __complex__(self) -> complex:
        return complex(self.frozen())


def _plain(value: Any) -> Any:
    """Arguments with plain arrays in place of shown ones."""
    if value.__class__ is Shown:
        return value.frozen()
    if value.__class__ in (tuple, list):
        return value.__class__([_plain(part) for part in value])
    if value.__class__ is dict:
        return {name: _plain(part) for name, part in value.items()}
    return value


class Place(NamedTuple):
    """Where a tensor lies."""

    kind: Kind
    layout: Layout
    offset: int
    memory: Storage


class LazyStorage(Storage):
    """The memory ``whole`` seen through ``change``.

    ``origin`` is where the tensor was that was conjugated or negated: by it the way from a base to
    a view of it is found again.
    """

    __slots__ = ("change", "origin", "whole")

    def __init__(self, whole: Storage, change: Any, kind: Kind, layout: Layout, offset: int):
        super().__init__(whole.buffer, whole.nbytes, whole.device)
        self.whole = whole
        self.change = change
        self.origin = Place(kind, layout, offset, whole)

    @property
    def root(self) -> Storage:
        return self.whole.root

    def array(self, kind: Kind, layout: Layout, offset: int) -> Any:
        held = self.whole.array(kind, layout, offset)
        return None if held is None else Shown(held, self.change)


def changed(x: Tensor, change: Any) -> Storage:
    """The memory that shows the elements of ``x`` so changed: without the change where it is
    there already, as it undoes itself."""
    return _through(x.storage, change, x)


def _through(memory: Storage, change: Any, x: Tensor) -> Storage:
    if memory.__class__ is LazyStorage:
        if memory.change is change:
            return memory.whole
        if has(memory, change):
            inner = _through(memory.whole, change, x)
            return LazyStorage(inner, memory.change, x.kind, x.layout, x.offset)
    return LazyStorage(memory, change, x.kind, x.layout, x.offset)


def has(memory: Any, change: Any) -> bool:
    """Whether ``memory`` is seen through ``change``."""
    while memory.__class__ is LazyStorage:
        if memory.change is change:
            return True
        memory = memory.whole
    return False


def is_lazy(x: Tensor) -> bool:
    """Whether the elements of ``x`` are worked out when they are looked at."""
    return x.memory.__class__ is LazyStorage


def alike(a: Tensor, b: Tensor) -> bool:
    """Whether both show one memory, changed in the same way."""
    one, other = a.storage, b.storage
    return one is other or (
        one.root is other.root
        and all(has(one, change) is has(other, change) for change in (CONJUGATED, NEGATED))
    )


def held(x: Tensor) -> Any:
    """The array over the memory of ``x`` as it is."""
    return x.memory.root.array(x.kind, x.layout, x.offset) if is_lazy(x) else x.array


def renew(x: Tensor, memory: Storage) -> None:
    """Put ``x`` over new memory, seen as it was before; its geometry must be set."""
    seen = []
    old = x.memory
    while old.__class__ is LazyStorage:
        seen.append(old.change)
        old = old.whole
    for change in reversed(seen):
        memory = LazyStorage(memory, change, x.kind, x.layout, x.offset)
    show(x, memory)


def show(x: Tensor, memory: Storage) -> Tensor:
    """``x`` over another memory of the same size and geometry."""
    if state.recording is not None:
        state.recording.fail("a lazy view takes part")
    x.memory = memory
    x.array = memory.array(x.kind, x.layout, x.offset)
    return x
