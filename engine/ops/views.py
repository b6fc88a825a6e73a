"""Views: other shapes and orders of the same memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import layout as layouts
from engine import tape
from engine.dtypes import DType
from engine.errors import TensorIndexError, TensorRuntimeError
from engine.formats import contiguous_format
from engine.kinds import composite, view
from engine.layout import wrap_dim
from engine.overloads import no_overload
from engine.registry import F, attribute, method, methods, ops
from engine.tensor import kind_of

if TYPE_CHECKING:
    from engine.layout import Layout
    from engine.parameter_types import Dim, Dims, Shape, Size, SpreadDims
    from engine.tensor import Kind, Tensor


@view(
    vjp=lambda g, dim0, dim1: g.transpose(dim0, dim1),
    aliases=("swapaxes", "swapdims"),
    inplace=True,
    example="transpose(tensor([[1., 2.]]), 0, 1)",
)
def transpose(input: Layout, dim0: Dim, dim1: Dim) -> Layout:
    """Swap two dimensions. A view: no data moves."""
    return (
        layouts.swap(input, wrap_dim(dim0, input.ndim), wrap_dim(dim1, input.ndim))
        if input.ndim
        else input
    )


@view(vjp=lambda g: g.t(), inplace=True, example="t(tensor([[1., 2.]]))")
def t(input: Layout) -> Layout:
    """The transpose of a matrix; a vector or a number stays as it is."""
    if input.ndim > 2:
        raise TensorRuntimeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D"
        )
    return layouts.swap(input, 0, 1) if input.ndim == 2 else input


@view(
    vjp=lambda g, input_shape: g.reshape(input_shape),
    name="view",
    function=False,
    node="ViewBackward0",
    example="tensor([1., 2.]).view(2, 1)",
)
def view_shape(input: Layout, size: Size) -> Layout:
    """The same memory in another shape; refused where strides cannot express it."""
    return layouts.view(input, layouts.infer_shape(size, input.numel))


def _expand_complaint(x: Tensor, size: tuple[int, ...]) -> None:
    if len(size) < x.ndim:
        raise TensorRuntimeError(
            f"expand(torch.{x.dtype.title}Tensor{{{list(x.layout.shape)}}}, size={list(size)}): "
            f"the number of sizes provided ({len(size)}) must be greater or equal to the number "
            f"of dimensions in the tensor ({x.ndim})"
        )


@view(
    vjp=lambda g: g,
    complain=_expand_complaint,
    function=False,
    example="tensor([[1.], [2.]]).expand(2, 3)",
)
def expand(input: Layout, size: Size) -> Layout:
    """Broadcast to a larger shape by strides of zero; the gradient is summed back."""
    return layouts.expand(input, size)


@view(
    vjp=lambda g: g,
    complain=_expand_complaint,
    node="ExpandBackward0",
    example="broadcast_to(tensor([1., 2.]), (2, 2))",
)
def broadcast_to(input: Layout, size: Size) -> Layout:
    """Broadcast to a larger shape by strides of zero."""
    return layouts.expand(input, size)


@view(vjp=lambda g, dim: g.squeeze(dim), inplace=True, example="unsqueeze(tensor([1., 2.]), 0)")
def unsqueeze(input: Layout, dim: Dim) -> Layout:
    """A dimension of size 1 put before ``dim``."""
    return layouts.unsqueeze(input, wrap_dim(dim, input.ndim + 1))


def _squeeze(name: str, node: str) -> Any:
    return view(
        vjp=lambda g, input_shape: g.reshape(input_shape),
        inplace=True,
        function=False,
        method=False,
        name=name,
        node=node,
    )


@_squeeze("_squeeze_all", "SqueezeBackward0")
def _squeeze_all(input: Layout) -> Layout:
    """Without any dimension of size 1."""
    return layouts.squeeze(input, range(input.ndim))


@_squeeze("_squeeze_dim", "SqueezeBackward1")
def _squeeze_dim(input: Layout, dim: Dim) -> Layout:
    """Without one dimension, if it has size 1."""
    return layouts.squeeze(input, (wrap_dim(dim, input.ndim),))


@_squeeze("_squeeze_dims", "SqueezeBackward2")
def _squeeze_dims(input: Layout, dim: Dims) -> Layout:
    """Without those of several dimensions that have size 1."""
    return layouts.squeeze(input, layouts.wrap_dims(dim, input.ndim))


def _squeeze_form(dim: Any) -> str:
    if dim is None:
        return "_squeeze_all"
    return "_squeeze_dims" if dim.__class__ in (tuple, list) else "_squeeze_dim"


@composite(view="always", out=False, example="squeeze(zeros(1, 3, 1)).shape")
def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Without the dimensions of size 1, or without those of ``dim`` that have it."""
    form = ops[_squeeze_form(dim)].function
    return form(input) if dim is None else form(input, dim)  # type: ignore[no-any-return]


@method("squeeze_")
def squeeze_(x: Tensor, dim: Any = None) -> Tensor:
    """``squeeze`` of the tensor itself."""
    form = methods[_squeeze_form(dim) + "_"]
    return form(x) if dim is None else form(x, dim)  # type: ignore[no-any-return]


@view(
    vjp=lambda g, dims: g.permute(_inverse(dims)),
    example="permute(zeros(2, 3, 4), (2, 0, 1)).shape",
)
def permute(input: Layout, dims: SpreadDims) -> Layout:
    """The dimensions in another order."""
    if len(dims) != input.ndim:
        raise TensorRuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the "
            f"length of the desired ordering of dimensions i.e. input.dim() = {input.ndim} is not "
            f"equal to len(dims) = {len(dims)}"
        )
    wrapped = tuple(wrap_dim(d, input.ndim) for d in dims)
    if len(set(wrapped)) != len(wrapped):
        raise TensorRuntimeError("permute(): duplicate dims are not allowed.")
    return layouts.permute(input, wrapped)


def _inverse(dims: tuple[int, ...]) -> tuple[int, ...]:
    order = [0] * len(dims)
    for i, d in enumerate(dims):
        order[d % len(dims)] = i
    return tuple(order)


@view(node="SelectBackward0", example="select(tensor([[1., 2.], [3., 4.]]), 0, 1)")
def select(input: Layout, dim: Dim, index: int) -> tuple[Layout, int]:
    """One index of a dimension."""
    if input.ndim == 0:
        raise TensorIndexError("select() cannot be applied to a 0-dim tensor.")
    d = wrap_dim(dim, input.ndim)
    size = input.shape[d]
    if not -size <= index < size:
        raise TensorIndexError(
            f"select(): index {index} out of range for tensor of size {list(input.shape)} at "
            f"dimension {dim}"
        )
    return layouts.select(input, d, index % size)


def _as_strided_gradient(
    g: Tensor,
    input_layout: Layout,
    input_offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    storage_offset: int | None,
) -> Tensor:
    offset = input_offset if storage_offset is None else storage_offset
    return tape.strided_gradient(
        g, input_layout, input_offset, layouts.layout(size, stride), offset
    )


@view(
    vjp=_as_strided_gradient,
    located=True,
    inplace=True,
    example="as_strided(arange(6.), (2, 2), (1, 2))",
)
def as_strided(
    input: Tensor, size: Shape, stride: Shape, storage_offset: int | None = None
) -> tuple[Layout, int]:
    """Any geometry over the storage of ``input``; the offset is absolute.

    Nothing but the bounds of the storage is checked: elements may overlap.
    """
    offset = input.offset if storage_offset is None else storage_offset
    if len(size) != len(stride):
        raise TensorRuntimeError("mismatch in length of strides and shape")
    if any(s < 0 for s in stride):
        raise TensorRuntimeError(
            "as_strided: Negative strides are not supported at the moment, got strides: "
            f"{list(stride)}"
        )
    if any(n < 0 for n in size):
        raise TensorRuntimeError(
            f"Storage size calculation overflowed with sizes={list(size)} and "
            f"strides={list(stride)}"
        )
    if offset < 0:
        raise TensorRuntimeError(f"Tensor: invalid storage offset {offset}")
    layout = layouts.layout(size, stride)
    itemsize = input.dtype.itemsize
    needed = (offset + layout.span) * itemsize
    if layout.numel and needed > input.storage.nbytes:
        raise TensorRuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, "
            f"and itemsize {itemsize} requiring a storage size of {needed} are out of bounds for "
            f"storage of size {input.storage.nbytes}"
        )
    return layout, offset


@view(
    vjp=lambda g, input_shape: g.reshape(input_shape),
    function=False,
    method=False,
    view="no",
    node="UnsafeViewBackward0",
)
def _unsafe_view(input: Layout, size: Size) -> Layout:
    """Another shape of a fresh copy that nobody else holds."""
    return layouts.view(input, size)


@view(
    vjp=lambda g, input_shape: g.reshape(input_shape),
    function=False,
    method=False,
    node="ReshapeAliasBackward0",
)
def _reshape_alias(input: Layout, size: Size) -> Layout:
    """The same memory in another shape, where the tensor is not contiguous."""
    return layouts.view(input, size)


@composite(view="sometimes", out=False, example="reshape(arange(6), (2, 3))")
def reshape(input: Tensor, shape: Size) -> Tensor:
    """Another shape: a view where strides allow it, else a copy."""
    size = layouts.infer_shape(shape, input.layout.numel)
    if layouts.view_strides(input.layout.shape, input.layout.strides, size) is not None:
        name = "view" if input.layout.contiguous else "_reshape_alias"
        return ops[name].function(input, size)  # type: ignore[no-any-return]
    y: Tensor = ops["_unsafe_view"].function(input.clone(memory_format=contiguous_format), size)
    y.base = None
    return y


@view(
    located=True,
    function=False,
    method=False,
    node="ViewBackward0",
)
def _view_dtype(input: Tensor, dtype: DType) -> tuple[Layout, int, Kind]:
    """The same bytes read as another dtype; the last dimension shrinks or grows with its size."""
    layout = input.layout
    old, new = input.dtype.itemsize, dtype.itemsize
    kind = kind_of(dtype, input.device)
    if old == new:
        return layout, input.offset, kind
    if layout.ndim == 0:
        raise TensorRuntimeError(
            f"self.dim() cannot be 0 to view {input.dtype.title} as {dtype.title} (different "
            "element sizes)"
        )
    if layout.strides[-1] != 1:
        raise TensorRuntimeError(
            f"self.stride(-1) must be 1 to view {input.dtype.title} as {dtype.title} (different "
            f"element sizes), but got {layout.strides[-1]}"
        )
    if old > new:
        times = old // new
        shape = (*layout.shape[:-1], layout.shape[-1] * times)
        strides = (*(s * times for s in layout.strides[:-1]), 1)
        return layouts.layout(shape, strides), input.offset * times, kind
    times = new // old
    for what, value in (
        ("size(-1)", layout.shape[-1]),
        ("storage_offset()", input.offset),
        *((f"stride({d})", s) for d, s in enumerate(layout.strides[:-1])),
    ):
        if value % times:
            raise TensorRuntimeError(
                f"self.{what} must be divisible by {times} to view {input.dtype.title} as "
                f"{dtype.title} (different element sizes), but got {value}"
            )
    shape = (*layout.shape[:-1], layout.shape[-1] // times)
    strides = (*(s // times for s in layout.strides[:-1]), 1)
    return layouts.layout(shape, strides), input.offset // times, kind


@method("view")
def view_method(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The same memory in another shape, or read as another dtype."""
    if args and args[0].__class__ is DType or "dtype" in kwargs:
        return ops["_view_dtype"].function(x, *args, **kwargs)  # type: ignore[no-any-return]
    if not args and not kwargs:
        raise no_overload("view", args, kwargs, ("(torch.dtype dtype)", "(tuple of ints size)"))
    return ops["view"].function(x, *args, **kwargs)  # type: ignore[no-any-return]


@composite(view="sometimes", out=False, example="flatten(zeros(2, 3, 4), 1).shape")
def flatten(input: Tensor, start_dim: Dim = 0, end_dim: Dim = -1) -> Tensor:
    """The dimensions from ``start_dim`` to ``end_dim`` made one; a number becomes a vector."""
    first, last = wrap_dim(start_dim, input.ndim), wrap_dim(end_dim, input.ndim)
    if first > last:
        raise TensorRuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    shape = input.layout.shape
    if not shape:
        return input.reshape((1,))
    if first == last:
        return input
    return input.reshape((*shape[:first], numel(shape[first : last + 1]), *shape[last + 1 :]))


@composite(view="sometimes", out=False, example="ravel(tensor([[1., 2.], [3., 4.]]))")
def ravel(input: Tensor) -> Tensor:
    """All elements in a vector; a view where the memory is row-major."""
    return input.contiguous().view((input.layout.numel,))


@composite(view="always", out=False, example="unflatten(arange(6), 0, (2, 3))")
def unflatten(input: Tensor, dim: Dim, sizes: Size) -> Tensor:
    """One dimension split into several; one of ``sizes`` may be -1."""
    d = wrap_dim(dim, input.ndim)
    if not sizes:
        raise TensorRuntimeError("unflatten: sizes must be non-empty")
    if sum(n == -1 for n in sizes) > 1:
        raise TensorRuntimeError(
            "unflatten got an unexpected error:\nonly one dimension can be inferred"
        )
    size = input.layout.shape[d] if input.ndim else 1
    known = numel(tuple(n for n in sizes if n != -1))
    if (known == 0 or size % known) if -1 in sizes else known != size:
        raise TensorRuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {d} "
            f"({size}) in the input tensor"
        )
    full = tuple(size // known if n == -1 else n for n in sizes)
    shape = input.layout.shape
    return input.view((*shape[:d], *full, *shape[d + 1 :]))


@composite(view="always", function=False, out=False, example="tensor([1.]).expand_as(zeros(2, 3))")
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Broadcast to the shape of ``other``."""
    return input.expand(other.layout.shape)


@composite(view="always", function=False, out=False, example="arange(4).view_as(zeros(2, 2))")
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """The same memory in the shape of ``other``."""
    return input.view(other.layout.shape)


@composite(view="sometimes", function=False, out=False, example="arange(4).reshape_as(zeros(2, 2))")
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """Reshaped to the shape of ``other``."""
    return input.reshape(other.layout.shape)


@composite(
    view="always", out=False, aliases=("moveaxis",), example="movedim(zeros(2, 3, 4), 0, 2).shape"
)
def movedim(input: Tensor, source: Dims, destination: Dims) -> Tensor:
    """Dimensions moved to new places; the others keep their order."""
    if len(source) != len(destination):
        raise TensorRuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should "
            "contain the same number of dims as destination "
            f"({list(destination)} dims)"
        )
    n = input.ndim
    origins = [wrap_dim(d, n) for d in source]
    places = [wrap_dim(d, n) for d in destination]
    for what, dims, given in (("source", origins, source), ("destination", places, destination)):
        if len(set(dims)) != len(dims):
            raise TensorRuntimeError(f"movedim: repeated dim in `{what}` ({list(given)})")
    if n == 0:
        return ops["alias"].function(input)  # type: ignore[no-any-return]
    order = [-1] * n
    for origin, place in zip(origins, places, strict=True):
        order[place] = origin
    rest = iter(d for d in range(n) if d not in origins)
    return input.permute(tuple(d if d >= 0 else next(rest) for d in order))


@view(vjp=lambda g: g, function=False, method=False, node="AliasBackward0")
def alias(input: Layout) -> Layout:
    """The same memory in the same shape."""
    return input


def numel(shape: tuple[int, ...]) -> int:
    """The number of elements of a tensor of that shape."""
    n = 1
    for size in shape:
        n *= size
    return n


def _reversed(x: Tensor) -> Tensor:
    return x.permute(tuple(range(x.ndim - 1, -1, -1)))


@attribute("T")
def T(x: Tensor) -> Tensor:
    """All dimensions in reverse order."""
    return _reversed(x)


def _matrices(x: Tensor, name: str) -> Tensor:
    if x.ndim < 2:
        raise TensorRuntimeError(
            f"tensor.{name} is only supported on matrices or batches of matrices. Got "
            f"{x.ndim}-D tensor."
        )
    return x.transpose(-2, -1)


@attribute("mT")
def mT(x: Tensor) -> Tensor:
    """The last two dimensions swapped."""
    return _matrices(x, "mT")


@attribute("mH")
def mH(x: Tensor) -> Tensor:
    """The conjugate of the last two dimensions swapped."""
    y = _matrices(x, "mH")
    return F.conj(y) if x.dtype.is_complex else y  # type: ignore[no-any-return]


@attribute("H")
def H(x: Tensor) -> Tensor:
    """The conjugate transpose of a matrix."""
    if x.ndim not in (0, 2):
        raise TensorRuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {x.ndim}-D tensor."
        )
    if x.ndim == 0:
        return F.conj(x) if x.dtype.is_complex else ops["alias"].function(x)  # type: ignore[no-any-return]
    return mH(x)


@composite(view="always", out=False, example="adjoint(tensor([[1., 2.]]))")
def adjoint(input: Tensor) -> Tensor:
    """The conjugate of the last two dimensions swapped."""
    if input.ndim < 2:
        raise TensorRuntimeError(
            "tensor.adjoint() is only supported on matrices or batches of matrices. Got "
            f"{input.ndim}-D tensor."
        )
    return mH(input)


@view(node="SliceBackward0", example="narrow(arange(5), 0, 1, 3)")
def narrow(input: Layout, dim: Dim, start: int, length: int) -> tuple[Layout, int]:
    """``length`` elements of a dimension, from ``start`` on (negative: counted from the end)."""
    if input.ndim == 0:
        raise TensorRuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise TensorRuntimeError("narrow(): length must be non-negative.")
    d = wrap_dim(dim, input.ndim)
    size = input.shape[d]
    if not -size <= start <= size:
        raise TensorIndexError(
            f"start out of range (expected to be in range of [-{size}, {size}], but got {start})"
        )
    first = start + size if start < 0 else start
    if first + length > size:
        raise TensorRuntimeError(
            f"start ({first}) + length ({length}) exceeds dimension size ({size})."
        )
    return layouts.narrow(input, d, first, length)


def diagonal_layout(input: Layout, offset: int, dim1: int, dim2: int) -> tuple[Layout, int]:
    """The layout of a diagonal, put last, and how far the offset moves."""
    a, b = wrap_dim(dim1, input.ndim), wrap_dim(dim2, input.ndim)
    if a == b:
        raise TensorRuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rows, columns = input.shape[a], input.shape[b]
    if offset >= 0:
        count = max(min(rows, columns - offset), 0)
        move = offset * input.strides[b]
    else:
        count = max(min(rows + offset, columns), 0)
        move = -offset * input.strides[a]
    rest = [d for d in range(input.ndim) if d not in (a, b)]
    shape = (*(input.shape[d] for d in rest), count)
    strides = (*(input.strides[d] for d in rest), input.strides[a] + input.strides[b])
    return layouts.layout(shape, strides), move if count else 0


@view(example="diagonal(tensor([[1., 2.], [3., 4.]]))")
def diagonal(input: Layout, offset: int = 0, dim1: Dim = 0, dim2: Dim = 1) -> tuple[Layout, int]:
    """The diagonal of two dimensions as a last one; ``offset`` counts to the upper right."""
    return diagonal_layout(input, offset, dim1, dim2)


def _unfold_gradient(
    g: Tensor, input_layout: Layout, dimension: int, size: int, step: int
) -> Tensor:
    plain = layouts.contiguous(input_layout.shape)
    return tape.strided_gradient(g, plain, 0, unfold_layout(plain, dimension, size, step), 0)


def unfold_layout(input: Layout, dimension: int, size: int, step: int) -> Layout:
    """The layout of windows of a dimension, the place in the window put last."""
    d = wrap_dim(dimension, input.ndim)
    n = input.shape[d] if input.ndim else 1
    stride = input.strides[d] if input.ndim else 1
    if size < 0:
        raise TensorRuntimeError(f"size is {size} but must be >= 0")
    if size > n:
        raise TensorRuntimeError(
            f"maximum size for tensor at dimension {d} is {n} but size is {size}"
        )
    if step <= 0:
        raise TensorRuntimeError(f"step is {step} but must be > 0")
    if input.ndim == 0:
        return layouts.layout((size,), (1,))
    shape = (*input.shape[:d], (n - size) // step + 1, *input.shape[d + 1 :], size)
    strides = (*input.strides[:d], stride * step, *input.strides[d + 1 :], stride)
    return layouts.layout(shape, strides)


@view(vjp=_unfold_gradient, function=False, example="arange(5).unfold(0, 3, 1)")
def unfold(input: Layout, dimension: Dim, size: int, step: int) -> Layout:
    """All windows of ``size`` elements of a dimension, ``step`` apart; they may overlap."""
    return unfold_layout(input, dimension, size, step)
