"""Views: other orders, other dimensions, broadcasts of the same memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import layout as layouts
from engine.errors import TensorRuntimeError
from engine.kinds import composite, view
from engine.kinds.record import twin
from engine.layout import wrap_dim
from engine.modes import warn_once
from engine.registry import F, attribute, method, ops

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.layout import Layout
    from engine.parameter_types import Dim, Dims, Size, SpreadDims
    from engine.tensor import Tensor


@view(
    vjp=lambda g, dim0, dim1: g.transpose(dim0, dim1),
    aliases=("swapaxes", "swapdims"),
    inplace=True,
    example="transpose(tensor([[1., 2.]]), 0, 1)",
    inplace_number=1,
)
def transpose(input: Layout, dim0: Dim, dim1: Dim) -> Layout:
    """Swap two dimensions. A view: no data moves."""
    a, b = wrap_dim(dim0, input.ndim), wrap_dim(dim1, input.ndim)
    return layouts.swap(input, a, b) if input.ndim else input


@view(vjp=lambda g: g.t(), inplace=True, example="t(tensor([[1., 2.]]))", inplace_number=1)
def t(input: Layout) -> Layout:
    """The transpose of a matrix; a vector or a number stays as it is."""
    if input.ndim > 2:
        raise TensorRuntimeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D"
        )
    return layouts.swap(input, 0, 1) if input.ndim == 2 else input


# The dtypes for which PyTorch has a class such as torch.FloatTensor, and names it.
_WITH_TENSOR_TYPE = (
    "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64",
)  # fmt: skip


def _expand_complaint(x: Tensor, size: tuple[int, ...]) -> None:
    if len(size) < x.ndim:
        named = x.dtype.name in _WITH_TENSOR_TYPE
        kind = f"torch.{x.dtype.title}Tensor" if named else f"CPU{x.dtype.title}Type"
        raise TensorRuntimeError(
            f"expand({kind}{{{list(x.layout.shape)}}}, size={list(size)}): the number of sizes "
            f"provided ({len(size)}) must be greater or equal to the number of dimensions in the "
            f"tensor ({x.ndim})"
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


@view(
    vjp=lambda g, dim: g.squeeze(dim),
    inplace=True,
    example="unsqueeze(tensor([1., 2.]), 0)",
    inplace_number=1,
)
def unsqueeze(input: Layout, dim: Dim) -> Layout:
    """A dimension of size 1 put before ``dim``."""
    return layouts.unsqueeze(input, wrap_dim(dim, input.ndim + 1))


def _squeeze(name: str, node: str, example: str) -> Callable[[Any], Any]:
    return view(
        vjp=lambda g, input_shape: g.reshape(input_shape),
        inplace=True,
        function=False,
        method=False,
        name=name,
        node=node,
        spoken="squeeze",
        inplace_number=3,
        example=example,
    )


@_squeeze("_squeeze_all", "SqueezeBackward0", "squeeze(zeros(1, 3, 1)).shape")
def _squeeze_all(input: Layout) -> Layout:
    """Without any dimension of size 1."""
    return layouts.squeeze(input, range(input.ndim))


@_squeeze("_squeeze_dim", "SqueezeBackward1", "squeeze(zeros(1, 3, 1), 0).shape")
def _squeeze_dim(input: Layout, dim: Dim) -> Layout:
    """Without one dimension, if it has size 1."""
    return layouts.squeeze(input, (wrap_dim(dim, input.ndim),))


@_squeeze("_squeeze_dims", "SqueezeBackward2", "squeeze(zeros(1, 3, 1), (0, 2)).shape")
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
    return form(input) if dim is None else form(input, dim)


@method("squeeze_")
def squeeze_(x: Tensor, dim: Any = None) -> Tensor:
    """``squeeze`` of the tensor itself."""
    form = twin(ops[_squeeze_form(dim)])
    return form(x) if dim is None else form(x, dim)


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


@composite(view="always", function=False, out=False, example="tensor([1.]).expand_as(zeros(2, 3))")
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Broadcast to the shape of ``other``."""
    return input.expand(other.layout.shape)


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
        return ops["alias"].function(input)
    order = [-1] * n
    for origin, place in zip(origins, places, strict=True):
        order[place] = origin
    rest = iter(d for d in range(n) if d not in origins)
    return input.permute(tuple(d if d >= 0 else next(rest) for d in order))


@view(
    vjp=lambda g: g,
    function=False,
    method=False,
    node="AliasBackward0",
    example="alias_copy(tensor([1., 2.]))",
)
def alias(input: Layout) -> Layout:
    """The same memory in the same shape."""
    return input


def _reversed(x: Tensor) -> Tensor:
    return x.permute(tuple(range(x.ndim - 1, -1, -1)))


@attribute("T")
def T(x: Tensor) -> Tensor:
    """All dimensions in reverse order."""
    return _reversed(x)


def _turned(x: Tensor, name: str) -> Tensor | None:
    """The last two dimensions swapped; None for a number, with a warning."""
    if x.ndim == 0:
        spelled = "adjoint()" if name == "adjoint()" else f"Tensor.{name}"
        instead = (
            "This function is the identity in these cases."
            if name == "mT"
            else "Consider using x.conj()."
        )
        warn_once(f"{spelled} is deprecated on 0-D tensors. {instead}")
        return None
    if x.ndim < 2:
        raise TensorRuntimeError(
            f"tensor.{name} is only supported on matrices or batches of matrices. Got "
            f"{x.ndim}-D tensor."
        )
    return x.transpose(-2, -1)


def _conjugated(x: Tensor, name: str) -> Tensor:
    y = _turned(x, name)
    if not x.dtype.is_complex:
        return x if y is None else y
    found: Tensor = F.conj(x if y is None else y)
    return found


@attribute("mT")
def mT(x: Tensor) -> Tensor:
    """The last two dimensions swapped; a number itself."""
    y = _turned(x, "mT")
    return x if y is None else y


@attribute("mH")
def mH(x: Tensor) -> Tensor:
    """The conjugate of the last two dimensions swapped: a lazy view where x is complex."""
    return _conjugated(x, "mH")


@attribute("H")
def H(x: Tensor) -> Tensor:
    """The conjugate transpose of a matrix: a lazy view where x is complex."""
    if x.ndim not in (0, 2):
        batches = " For batches of matrices, consider using tensor.mH" if x.ndim > 2 else ""
        raise TensorRuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {x.ndim}-D tensor.{batches}"
        )
    return _conjugated(x, "H")


@composite(view="always", out=False, example="adjoint(tensor([[1., 2.]]))")
def adjoint(input: Tensor) -> Tensor:
    """The conjugate of the last two dimensions swapped: a lazy view where it is complex."""
    return _conjugated(input, "adjoint()")
