"""Shape, stride and offset arithmetic on integers; no arrays, no dtypes.

Layouts are interned, so that caches may be keyed by them cheaply. Nothing depends on two equal
layouts being one object: identity is only ever a fast path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import BroadcastError, DimError, ShapeError, TensorRuntimeError, ViewError

if TYPE_CHECKING:
    from collections.abc import Sequence

_INTERN_LIMIT = 1 << 16


class Size(tuple[int, ...]):
    """A shape as PyTorch's torch.Size: a tuple whose slices and sums are shapes too."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        item = tuple.__getitem__(self, index)
        return Size(item) if index.__class__ is slice else item

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, tuple):
            kind = type(other).__name__
            raise TypeError(f"can only concatenate tuple (not {kind}) to torch.Size")
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Any:
        if not isinstance(other, tuple):
            return NotImplemented
        return Size(tuple.__add__(other, self))

    def __mul__(self, times: Any) -> Any:
        return Size(tuple.__mul__(self, times))

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    __str__ = __repr__

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        n = 1
        for size in self:
            n *= size
        return n


Size.__name__ = "torch.Size"  # what Python's own errors call it

# What numpy's arrays can have.
MOST_DIMS = 64
_MOST_CELLS = 2**59


def _too_large(shape: tuple[int, ...]) -> bool:
    """Whether numpy takes an empty shape for one that no memory holds: it multiplies the rest."""
    cells = 1
    for n in shape:
        cells *= n or 1
    return cells > _MOST_CELLS


class Layout:
    """Shape and strides (in elements) with what follows from them.

    ``contiguous`` is PyTorch's notion: strides of size-1 dimensions do not matter and an empty
    tensor is contiguous. ``plain`` says that numpy, left alone, gives a result of just these
    strides: contiguous, with canonical strides, at least one dimension.
    """

    __slots__ = (
        "_dense", "contiguous", "indexed", "memo", "ndim", "numel", "overlaps", "plain", "shape",
        "size", "strides",
    )  # fmt: skip

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...]):
        self.shape = shape
        self.strides = strides
        self.size = Size(shape)
        self.ndim = len(shape)
        self.numel = self.size.numel()
        if self.ndim > MOST_DIMS:
            raise TensorRuntimeError(f"only tensors with up to {MOST_DIMS} dims are supported")
        if self.numel == 0 and _too_large(shape):
            raise TensorRuntimeError(
                f"Storage size calculation overflowed with sizes={list(shape)}"
            )
        canonical = contiguous_strides(shape)
        self.contiguous = (
            strides == canonical or self.numel == 0 or _same_order(shape, strides, canonical)
        )
        self.plain = strides == canonical and self.ndim > 0
        self.overlaps = self.numel > 1 and any(
            stride == 0 and size > 1 for size, stride in zip(shape, strides, strict=True)
        )
        self.memo: dict[Any, Any] = {}
        # The plans of indices, by the one module that makes them.
        self.indexed: dict[Any, Any] | None = None
        self._dense: bool | None = None

    @property
    def dense(self) -> bool:
        """Whether the elements fill one run of memory, each once, in some order."""
        if self._dense is None:
            self._dense = is_dense(self.shape, self.strides)
        return self._dense

    @property
    def span(self) -> int:
        """How many elements of memory lie between the first and the last one, both included."""
        if self.numel == 0:
            return 0
        return 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))

    def __repr__(self) -> str:
        return f"Layout({list(self.shape)}, strides={self.strides})"

    def __reduce__(self) -> tuple[Any, Any]:
        return layout, (tuple(self.shape), self.strides)


_layouts: dict[tuple[tuple[int, ...], tuple[int, ...]], Layout] = {}
_contiguous: dict[tuple[int, ...], Layout] = {}


def layout(shape: tuple[int, ...], strides: tuple[int, ...]) -> Layout:
    """The layout of that shape and those strides."""
    key = (shape, strides)
    found = _layouts.get(key)
    if found is None:
        if len(_layouts) > _INTERN_LIMIT:
            _layouts.clear()
            _contiguous.clear()
        found = _layouts[key] = Layout(tuple(shape), strides)
    return found


def contiguous(shape: tuple[int, ...]) -> Layout:
    """The row-major layout of that shape."""
    found = _contiguous.get(shape)
    if found is None:
        found = _contiguous[shape] = layout(shape, contiguous_strides(shape))
    return found


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides; sizes of zero count as one, as in PyTorch."""
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= size if size > 1 else 1
    return tuple(strides[::-1])


def channels_last_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of NCHW (or NCDHW) data stored with the channel innermost."""
    n = len(shape)
    order = [0, *range(2, n), 1]
    return strides_along(shape, order)


def strides_along(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Dense strides where ``order`` lists the dimensions from outermost to innermost."""
    strides = [0] * len(shape)
    step = 1
    for dim in reversed(order):
        strides[dim] = step
        step *= shape[dim] if shape[dim] > 1 else 1
    return tuple(strides)


def _same_order(shape: Sequence[int], strides: Sequence[int], wanted: Sequence[int]) -> bool:
    return all(size == 1 or s == w for size, s, w in zip(shape, strides, wanted, strict=True))


def is_channels_last(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """PyTorch's is_channels_last_contiguous for 4-d and 5-d tensors."""
    if len(shape) not in (4, 5):
        return False
    step = 1
    for dim in (1, *range(len(shape) - 1, 1, -1), 0):
        if shape[dim] != 1:
            if strides[dim] != step:
                return False
            step *= shape[dim]
    return True


def suggests_channels_last(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """PyTorch's suggest_memory_format: strides ordered as channels-last ones are, gaps allowed."""
    n = len(shape)
    if n not in (4, 5) or strides[1] == 0:
        return False
    least = 0
    for dim in (1, *range(n - 1, 1, -1), 0):
        if shape[dim] == 0 or strides[dim] < least or (dim == 0 and least == strides[1]):
            return False
        least = strides[dim] * max(shape[dim], 1)
    return True


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """PyTorch's is_non_overlapping_and_dense."""
    if len(shape) == 1:
        return shape[0] < 2 or strides[0] == 1
    dims = sorted(range(len(shape)), key=lambda d: (1, 0) if shape[d] < 2 else (0, strides[d]))
    step = 1
    for dim in dims:
        if shape[dim] < 2:
            return True
        if strides[dim] != step:
            return False
        step *= shape[dim]
    return True


def may_overlap(layout: Layout) -> bool:
    """Whether several elements may share a cell: a stride that others' extents reach over."""
    reach = 0
    for stride, size in sorted(zip(layout.strides, layout.shape, strict=True)):
        if size > 1:
            if stride <= reach:
                return layout.numel > 0
            reach += stride * (size - 1)
    return False


def wrap_dim(dim: int, ndim: int) -> int:
    """A dimension number counted from the front; a 0-d tensor accepts 0 and -1.

    Raises DimError when out of range.
    """
    span = ndim if ndim > 0 else 1
    if -span <= dim < span:
        return dim + span if dim < 0 else dim
    raise DimError(dim, ndim)


def wrap_dims(dims: Sequence[int], ndim: int) -> tuple[int, ...]:
    """Several dimension numbers; a repeated one is refused."""
    wrapped = []
    for dim in dims:
        d = wrap_dim(dim, ndim)
        if d in wrapped:
            raise TensorRuntimeError(f"dim {d} appears multiple times in the list of dims")
        wrapped.append(d)
    return tuple(wrapped)


def broadcast_shapes(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape two shapes broadcast to. Raises BroadcastError, dimension counted in the result."""
    if a == b:
        return a
    n = max(len(a), len(b))
    result = [0] * n
    for i in range(1, n + 1):
        x = a[-i] if i <= len(a) else 1
        y = b[-i] if i <= len(b) else 1
        if x != y and x != 1 and y != 1:
            raise BroadcastError(a, b, n - i, (x, y))
        result[-i] = y if x == 1 else x
    return tuple(result)


def elementwise(operands: Sequence[Layout], shape: tuple[int, ...]) -> Layout:
    """The layout of an element-wise result of ``operands`` broadcast to ``shape``.

    PyTorch's TensorIterator rule: contiguous when all are; equal dense strides are kept;
    otherwise dimensions are ordered by the operands' strides, ambiguous ones left in place.
    """
    if all(o.shape == shape for o in operands):
        if all(o.contiguous for o in operands):
            return contiguous(shape)
        if len(shape) == 4 and all(is_channels_last(o.shape, o.strides) for o in operands):
            return layout(shape, channels_last_strides(shape))
        first = operands[0]
        if all(o.dense and o.strides == first.strides for o in operands):
            return first
    n = len(shape)
    order = iteration_order([_broadcast_strides(o, shape) for o in operands], shape)
    if order == list(range(n - 1, -1, -1)):
        return contiguous(shape)
    strides = [0] * n
    step = 1
    for dim in order:
        strides[dim] = step
        step *= shape[dim]
    return layout(shape, tuple(strides))


def _broadcast_strides(operand: Layout, shape: tuple[int, ...]) -> tuple[int, ...]:
    lead = len(shape) - operand.ndim
    return (0,) * lead + tuple(
        0 if size == 1 and shape[lead + d] != 1 else stride
        for d, (size, stride) in enumerate(zip(operand.shape, operand.strides, strict=True))
    )


def iteration_order(strides: list[tuple[int, ...]], shape: tuple[int, ...]) -> list[int]:
    """Dimensions from innermost to outermost, by insertion sort over pairwise comparisons."""
    n = len(shape)
    perm = list(range(n - 1, -1, -1))
    for i in range(1, n):
        high = i
        for low in range(i - 1, -1, -1):
            verdict = _compare(perm[low], perm[high], strides, shape)
            if verdict > 0:
                perm[low], perm[high] = perm[high], perm[low]
                high = low
            elif verdict < 0:
                break
    return perm


def _compare(p: int, q: int, strides: list[tuple[int, ...]], shape: tuple[int, ...]) -> int:
    for s in strides:
        if s[p] == 0 or s[q] == 0:
            continue
        if s[p] < s[q]:
            return -1
        if s[p] > s[q] or shape[p] > shape[q]:
            return 1
    return 0


def infer_shape(shape: Sequence[int], numel: int) -> tuple[int, ...]:
    """``shape`` with one -1 filled in. Raises ShapeError when the element count does not fit."""
    known = 1
    hole = -1
    for d, size in enumerate(shape):
        if size == -1:
            if hole >= 0:
                raise TensorRuntimeError("only one dimension can be inferred")
            hole = d
        elif size < 0:
            raise TensorRuntimeError(
                f"invalid shape dimension {size} at index {d} of shape {list(shape)}"
            )
        else:
            known *= size
    if hole < 0:
        if known != numel:
            raise ShapeError(tuple(shape), numel)
        return tuple(shape)
    if known == 0 and numel == 0:
        raise TensorRuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the "
            "unspecified dimension size -1 can be any value and is ambiguous"
        )
    if known == 0 or numel % known:
        raise ShapeError(tuple(shape), numel)
    return (*shape[:hole], numel // known, *shape[hole + 1 :])


def view_strides(
    shape: tuple[int, ...], strides: tuple[int, ...], new: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Strides that show the same memory in shape ``new``, or None when no strides can.

    PyTorch's chunk rule: old dimensions are grouped from the right into runs of evenly spaced
    elements; each run must be filled exactly by new dimensions.
    """
    if not shape:
        return (1,) * len(new)
    if 0 in shape:
        if shape == new:
            return strides
        return contiguous_strides(new)
    result = [0] * len(new)
    at = len(new) - 1
    base = strides[-1]
    chunk = filled = 1
    for d in range(len(shape) - 1, -1, -1):
        chunk *= shape[d]
        if d > 0 and (shape[d - 1] == 1 or strides[d - 1] == chunk * base):
            continue
        while at >= 0 and (filled < chunk or new[at] == 1):
            result[at] = filled * base
            filled *= new[at]
            at -= 1
        if filled != chunk:
            return None
        if d > 0:
            base = strides[d - 1]
            chunk = filled = 1
    return tuple(result) if at < 0 else None


def view(old: Layout, new: tuple[int, ...]) -> Layout:
    """``old`` seen in shape ``new`` (no -1 in it). Raises ViewError when a copy would be needed."""
    strides = view_strides(old.shape, old.strides, new)
    if strides is None:
        raise ViewError(new, old.shape, old.strides)
    return layout(new, strides)


def permute(old: Layout, dims: Sequence[int]) -> Layout:
    """``old`` with its dimensions in the order ``dims``."""
    return layout(tuple(old.shape[d] for d in dims), tuple(old.strides[d] for d in dims))


def swap(old: Layout, a: int, b: int) -> Layout:
    """``old`` with two dimensions exchanged."""
    dims = list(range(old.ndim))
    dims[a], dims[b] = b, a
    return permute(old, dims)


def unsqueeze(old: Layout, dim: int) -> Layout:
    """``old`` with a dimension of size 1 put before ``dim`` (0 to ndim)."""
    stride = old.shape[dim] * old.strides[dim] if dim < old.ndim else 1
    return layout(
        (*old.shape[:dim], 1, *old.shape[dim:]), (*old.strides[:dim], stride, *old.strides[dim:])
    )


def squeeze(old: Layout, dims: Sequence[int]) -> Layout:
    """``old`` without those of ``dims`` that have size 1."""
    keep = [d for d in range(old.ndim) if d not in dims or old.shape[d] != 1]
    return permute(old, keep)


def expand(old: Layout, sizes: Sequence[int]) -> Layout:
    """``old`` broadcast to ``sizes`` (-1 keeps a size) by strides of zero."""
    extra = len(sizes) - old.ndim
    if extra < 0:
        raise TensorRuntimeError(
            f"expand(torch.tensor{{{list(old.shape)}}}, size={list(sizes)}): the number of sizes "
            f"provided ({len(sizes)}) must be greater or equal to the number of dimensions in "
            f"the tensor ({old.ndim})"
        )
    shape = [0] * len(sizes)
    strides = [0] * len(sizes)
    for d in range(len(sizes) - 1, -1, -1):
        at = d - extra
        size = old.shape[at] if at >= 0 else 1
        if at >= 0:
            stride = old.strides[at]
        else:
            stride = shape[d + 1] * strides[d + 1] if d + 1 < len(sizes) else 1
        wanted = sizes[d]
        if wanted == -1:
            if at < 0:
                raise TensorRuntimeError(
                    f"The expanded size of the tensor ({wanted}) isn't allowed in a leading, "
                    f"non-existing dimension {d}"
                )
            wanted = size
        if old.ndim == 0:
            stride = 0
        if wanted != size:
            if size != 1:
                raise TensorRuntimeError(
                    f"The expanded size of the tensor ({wanted}) must match the existing size "
                    f"({size}) at non-singleton dimension {d}.  Target sizes: {list(sizes)}.  "
                    f"Tensor sizes: {list(old.shape)}"
                )
            stride = 0
        shape[d], strides[d] = wanted, stride
    return layout(tuple(shape), tuple(strides))


def select(old: Layout, dim: int, index: int) -> tuple[Layout, int]:
    """``old`` at one index (0 to size-1) of ``dim``, and how far the offset moves."""
    return (
        layout(old.shape[:dim] + old.shape[dim + 1 :], old.strides[:dim] + old.strides[dim + 1 :]),
        index * old.strides[dim],
    )


def narrow(old: Layout, dim: int, start: int, length: int, step: int = 1) -> tuple[Layout, int]:
    """``length`` elements of ``dim`` from ``start``, every ``step``-th; layout and offset move."""
    return (
        layout(
            (*old.shape[:dim], length, *old.shape[dim + 1 :]),
            (*old.strides[:dim], old.strides[dim] * step, *old.strides[dim + 1 :]),
        ),
        start * old.strides[dim],
    )


def joined(parts: Sequence[Layout], shape: tuple[int, ...]) -> Layout:
    """The layout of several tensors joined to ``shape``: channels-last where all suggest it."""
    if len(shape) in (4, 5) and all(suggests_channels_last(p.shape, p.strides) for p in parts):
        return layout(shape, channels_last_strides(shape))
    return contiguous(shape)


def preserved(old: Layout) -> Layout:
    """The layout of a copy that preserves the format: dense strides are kept."""
    return old if old.contiguous or old.dense else elementwise([old], old.shape)


def needs_sum(shape: tuple[int, ...], target: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """Which dimensions of ``shape`` to sum (keeping them) to come back to ``target``, and how
    many leading ones to drop."""
    lead = len(shape) - len(target)
    dims = [*range(lead)]
    dims += [d + lead for d, size in enumerate(target) if size == 1 and shape[d + lead] != 1]
    return tuple(dims), lead
