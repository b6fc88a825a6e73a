"""Complex numbers: their parts, polar form, conjugates, and views as pairs of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes, lazy, tape
from engine import layout as layouts
from engine.dtypes import COMPLEX, FLOAT, DType, complex_of, real_of
from engine.errors import TensorNotImplementedError, TensorRuntimeError
from engine.kinds import composite, pointwise, view
from engine.kinds.conjugate import conj as conjugate
from engine.kinds.record import twin
from engine.registry import F, attribute, function, method, ops
from engine.tensor import Tensor, kind_of

if TYPE_CHECKING:
    from engine.layout import Layout
    from engine.storage import Storage
    from engine.tensor import Kind


def _is_conj(x: Tensor) -> bool:
    return lazy.has(x.memory, lazy.CONJUGATED)


@view(
    located=True,
    method=False,
    vjp=lambda g: F.view_as_complex(g.contiguous()),
    example="view_as_real(tensor([1+2j]))",
)
def view_as_real(input: Tensor) -> tuple[Layout, int, Any]:
    """Complex numbers as pairs (real, imaginary) along a new last dimension. A view."""
    if not input.dtype.is_complex:
        raise TensorRuntimeError("view_as_real is only supported for complex tensors")
    if _is_conj(input):
        raise TensorRuntimeError(
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate "
            "tensor so you can view it as real, use self.resolve_conj(); however, be warned that "
            "the resulting tensor will NOT alias the original."
        )
    shape, strides = input.layout.shape, input.layout.strides
    layout = layouts.layout((*shape, 2), (*[2 * s for s in strides], 1))
    return layout, 2 * input.offset, kind_of(real_of(input.dtype), input.device)


@view(
    located=True,
    method=False,
    vjp=lambda g: F.view_as_real(g),
    example="view_as_complex(tensor([[1., 2.]]))",
)
def view_as_complex(input: Tensor) -> tuple[Layout, int, Any]:
    """Pairs along the last dimension (size 2, stride 1) as complex numbers. A view."""
    if input.dtype is dtypes.float16:
        raise TensorNotImplementedError(
            "view_as_complex of float16 would be complex32, which is not among the dtypes here: "
            "convert to float32 first"
        )
    if input.dtype not in (dtypes.float32, dtypes.float64):
        raise TensorRuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a "
            f"tensor of scalar type: {input.dtype.title}"
        )
    shape, strides = input.layout.shape, input.layout.strides
    if not shape:
        raise TensorRuntimeError("Input tensor must have one or more dimensions")
    if shape[-1] != 2:
        raise TensorRuntimeError("Tensor must have a last dimension of size 2")
    if strides[-1] != 1:
        raise TensorRuntimeError("Tensor must have a last dimension with stride 1")
    if any(s % 2 and n != 1 for n, s in zip(shape[:-1], strides[:-1], strict=True)):
        raise TensorRuntimeError(
            "Tensor must have a stride divisible by 2 for all but last dimension"
        )
    if input.offset % 2:
        raise TensorRuntimeError("Tensor must have a storage_offset divisible by 2")
    layout = layouts.layout(shape[:-1], tuple([s // 2 for s in strides[:-1]]))
    return layout, input.offset // 2, kind_of(complex_of(input.dtype), input.device)


def _pairs(input: Tensor) -> Tensor:
    return F.view_as_real(F.conj(input) if _is_conj(input) else input)


@function("real")
def real(input: Tensor) -> Tensor:
    """The real part: a view of complex numbers, a real tensor itself."""
    if not input.dtype.is_complex:
        return input
    return _pairs(input).select(-1, 0)


@function("imag")
def imag(input: Tensor) -> Tensor:
    """The imaginary part, a view. Raises RuntimeError for a real tensor."""
    if not input.dtype.is_complex:
        raise TensorRuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    pairs = _pairs(input)
    return (ops["_neg_view"].function(pairs) if _is_conj(input) else pairs).select(-1, 1)


attribute("real", lambda x, value: real(x).copy_(value))(real)
attribute("imag", lambda x, value: imag(x).copy_(value))(imag)


@pointwise(
    kernel=lambda xp, x: xp.conj(x) if x.dtype.kind == "c" else xp.array(x),
    promote=lambda common: (common, common),
    takes="bifcu8",
    number_strides="always",
    vjp=lambda g: conjugate(g),
    function=False,
    method=False,
    named_inplace=False,
    node="ConjPhysicalBackward0",
    example="conj_physical(tensor([1+2j]))",
)
def conjugated_copy(input: Tensor) -> Tensor:
    """The complex conjugates, as new numbers."""


@composite(example="conj_physical(tensor([1+2j]))")
def conj_physical(input: Tensor) -> Tensor:
    """The complex conjugates, as new numbers; a real tensor is returned as it is."""
    return ops["conjugated_copy"].function(input) if input.dtype.is_complex else input


@method("conj_physical_")
def conj_physical_(input: Tensor) -> Tensor:
    """The complex conjugates in place; a real tensor counts as changed, too."""
    return twin(ops["conjugated_copy"])(input)


@view(
    located=True,
    function=False,
    method=False,
    node="ConjBackward0",
    vjp=lambda g: F.conj(g),
    example="conj(tensor([1+2j]))",
)
def _conj(input: Tensor) -> tuple[Layout, int, Kind, Storage]:
    """The complex conjugates: a view, conjugated at each look."""
    return input.layout, input.offset, input.kind, lazy.changed(input, lazy.CONJUGATED)


@view(
    located=True,
    function=False,
    method=False,
    node="NegViewBackward0",
    vjp=lambda g: -g,
    example="imag(tensor([1+2j]).conj())",
)
def _neg_view(input: Tensor) -> tuple[Layout, int, Kind, Storage]:
    """The negated elements: a view, negated at each look."""
    return input.layout, input.offset, input.kind, lazy.changed(input, lazy.NEGATED)


@composite(out=False, view="always", example="conj(tensor([1+2j]))")
def conj(input: Tensor) -> Tensor:
    """The complex conjugates: a lazy view, conjugated whenever it is looked at.

    What is written through it reaches the memory conjugated. A real tensor is returned as it is.
    """
    if not input.dtype.is_complex:
        return input
    if input.device.type == "cuda":  # lazy views are made of numpy's arrays
        return F.conj_physical(input)
    return ops["_conj"].function(input)


@composite(out=False, view="sometimes", example="resolve_conj(tensor([1+2j]).conj())")
def resolve_conj(input: Tensor) -> Tensor:
    """A copy that holds the numbers of a lazy conjugate; any other tensor itself."""
    return input.clone() if _is_conj(input) else input


@composite(out=False, view="sometimes", example="resolve_neg(tensor([1+2j]).conj().imag)")
def resolve_neg(input: Tensor) -> Tensor:
    """A copy that holds the numbers of a lazily negated view; any other tensor itself."""
    return input.clone() if lazy.has(input.memory, lazy.NEGATED) else input


@composite(out=False, example="is_conj(tensor(1j).conj())")
def is_conj(input: Tensor) -> bool:
    """Whether the tensor is a lazy view that conjugates what its memory holds."""
    return _is_conj(input)


@composite(out=False, example="is_neg(tensor(1j).conj().imag)")
def is_neg(input: Tensor) -> bool:
    """Whether the tensor is a lazy view that negates what its memory holds."""
    return lazy.has(input.memory, lazy.NEGATED)


def _reach(x: Tensor, memory: Storage, place: Any) -> Tensor:
    """The view at ``place`` (dtype, layout, offset, memory) of ``x``, which stands for a base over
    ``memory`` and lies as that does."""
    target = place.memory
    if target is not memory:
        if target.__class__ is lazy.LazyStorage:
            x = _toggled(_reach(x, memory, target.origin), target.change)
        elif memory.__class__ is lazy.LazyStorage:
            x = _toggled(x, memory.change)
    layout = place.layout
    if x.dtype.is_complex and not place.kind.dtype.is_complex:
        whole = _of_pairs(layout, place.offset)
        x = F.view_as_real(x if whole is None else _strided(x, *whole))
    elif place.kind is not x.kind:
        pairs = (*[2 * s for s in layout.strides], 1)
        x = F.view_as_complex(x.as_strided((*layout.shape, 2), pairs, 2 * place.offset))
    return _strided(x, layout.shape, layout.strides, place.offset)


def _strided(x: Tensor, shape: Any, strides: Any, offset: int) -> Tensor:
    there = x.layout.shape == shape and x.layout.strides == strides and x.offset == offset
    return x if there else x.as_strided(shape, strides, offset)


def _of_pairs(layout: Layout, offset: int) -> tuple[Any, Any, int] | None:
    """Shape, strides and offset of complex numbers whose parts are so laid out."""
    shape, strides = layout.shape, layout.strides
    even = offset % 2 == 0 and all(s % 2 == 0 for s in strides[:-1])
    if not shape or shape[-1] != 2 or strides[-1] != 1 or not even:
        return None
    return shape[:-1], tuple([s // 2 for s in strides[:-1]]), offset // 2


def _toggled(x: Tensor, change: Any) -> Tensor:
    return F.conj(x) if change is lazy.CONJUGATED else ops["_neg_view"].function(x)


tape.reach_by(_reach)


def _angles(common: DType) -> tuple[DType, DType]:
    if common.category == COMPLEX:
        return common, real_of(common)
    if common.category < FLOAT:
        return common, _default()
    return (dtypes.float32 if common.low else common), common


def _default() -> DType:
    from engine.modes import state

    return state.default_dtype


def _angle(xp: Any, x: Any) -> Any:
    if x.dtype.kind == "c":
        return xp.angle(x)
    if x.dtype.kind == "f":
        return xp.where(xp.isnan(x), x, xp.where(x < 0, x.dtype.type(xp.pi), x.dtype.type(0)))
    return xp.where(x < 0, xp.pi, 0.0)


def _angle_slope(g: Tensor, input: Tensor) -> Tensor:
    if not input.dtype.is_complex:
        return F.zeros_like(g)
    re, im = F.real(input), F.imag(input)
    square = re * re + im * im
    zero = (re == 0) & (im == 0)
    return F.complex(F.where(zero, 0, g * (-im / square)), F.where(zero, 0, g * (re / square)))


@pointwise(
    kernel=_angle,
    number_strides=lambda input: "contiguous" if input.dtype.is_complex else "operand",
    promote=_angles,
    vjp=_angle_slope,
    inplace=False,
    example="angle(tensor([1+1j]))",
)
def angle(input: Tensor) -> Tensor:
    """The angle in radians: of real numbers 0, or pi where negative."""


def _check_pair(a: Tensor, b: Tensor) -> None:
    if (
        a.dtype.category != FLOAT
        or b.dtype.category != FLOAT
        or dtypes.bfloat16 in (a.dtype, b.dtype)
    ):
        raise TensorRuntimeError(
            "Expected both inputs to be Half, Float or Double tensors but got "
            f"{a.dtype.title} and {b.dtype.title}"
        )
    if a.dtype is not b.dtype:
        raise TensorRuntimeError(
            f"Expected object of scalar type {a.dtype.title} but got scalar type "
            f"{b.dtype.title} for second argument"
        )


def _joined(common: DType) -> tuple[DType, DType]:
    return common, complex_of(common)


def _pair(xp: Any, a: Any, b: Any) -> Any:
    a, b = xp.broadcast_arrays(a, b)
    y = xp.empty(a.shape, "complex128" if a.dtype == "float64" else "complex64")
    y.real, y.imag = a, b
    return y


@pointwise(
    kernel=_pair,
    refuse=_check_pair,
    promote=_joined,
    vjp={"real": lambda g: F.real(g), "imag": lambda g: F.imag(g)},
    method=False,
    inplace=False,
    example="complex(tensor([1.]), tensor([2.]))",
)
def complex(real: Tensor, imag: Tensor) -> Tensor:
    """Complex numbers from real and imaginary parts."""


def _turn_slope(g: Tensor, y: Tensor) -> Tensor:
    return F.real(g * conjugate(y * 1j))


@pointwise(
    kernel=lambda xp, r, a: _pair(xp, r * xp.cos(a), r * xp.sin(a)),
    refuse=_check_pair,
    promote=_joined,
    vjp={"abs": lambda g, y: F.real(g * conjugate(y.sgn())), "angle": _turn_slope},
    method=False,
    inplace=False,
    example="polar(tensor([1.]), tensor([3.14159]))",
)
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Complex numbers from absolute values and angles."""
