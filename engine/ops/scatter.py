"""The scatter family: writing, adding and reducing along one dimension, index by index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import indices, scalars
from engine.errors import TensorRuntimeError
from engine.kinds import altered, composite, kernel
from engine.kinds.missing import NODE, no_derivative
from engine.kinds.record import twin
from engine.kinds.targets import check_scattered
from engine.overloads import no_overload
from engine.registry import method, ops
from engine.tensor import Tensor

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.parameter_types import Dim, Scalar

_FORMS = (
    "(int dim, Tensor index, Tensor src)",
    "(int dim, Tensor index, Tensor src, *, str reduce)",
    "(int dim, Tensor index, Number value)",
    "(int dim, Tensor index, Number value, *, str reduce)",
)


def _written(input: Tensor, d: int, index: Tensor, source: Any, store: Any) -> Made:
    """``input`` after ``store(xp, array, keys, values)``; ``source`` is a tensor or an element."""

    def into(xp: Any, array: Any) -> None:
        if not index.layout.numel:
            return
        if array.ndim == 0:
            array = array.reshape(1)
        at = index.array if index.ndim else index.array.reshape(1)
        values = source
        if isinstance(source, Tensor):
            values = source.array if source.ndim else source.array.reshape(1)
            values = values[tuple([slice(n) for n in at.shape])]
        store(xp, array, indices.grid(xp, at, d, array.shape[d]), values)

    sources = (source,) if isinstance(source, Tensor) else ()
    return altered(input, into, None, (index, *sources))


def is_low(array: Any) -> bool:
    """Whether the array is of a float narrower than float32; integers are not of kind f or V."""
    return array.dtype.kind in "fV" and array.dtype.itemsize < 4


def _store(xp: Any, array: Any, keys: Any, values: Any) -> None:
    array[keys] = values


def _add(xp: Any, array: Any, keys: Any, values: Any) -> None:
    indices.accumulate(xp, "add", array, keys, values, is_low(array))


def _multiply(xp: Any, array: Any, keys: Any, values: Any) -> None:
    indices.accumulate(xp, "multiply", array, keys, values, is_low(array))


@kernel(
    same_out="Expected out tensor to have dtype {y.cpp}, but got {out.cpp} instead",
    vjp={
        "input": lambda g, dim, index: g.scatter(dim, index, 0),
        "src": lambda g, dim, index, src_shape: indices.check_whole(
            g.gather(dim, index), src_shape, "ScatterBackward0"
        ),
    },
    inplace=True,
    function=False,
    method=False,
    node="ScatterBackward0",
)
def _scatter_source(input: Tensor, dim: Dim, index: Tensor, src: Tensor) -> Made:
    """Elements of ``src`` at the places that ``index`` names."""
    return _written(input, check_scattered(input, dim, index, src, "scatter"), index, src, _store)


@kernel(
    same_out="Expected out tensor to have dtype {y.cpp}, but got {out.cpp} instead",
    vjp={"input": lambda g, dim, index: g.scatter(dim, index, 0)},
    inplace=True,
    function=False,
    method=False,
    node="ScatterBackward1",
    example="scatter(zeros(1, 3), 1, tensor([[2, 0]]), 1.)",
)
def _scatter_number(input: Tensor, dim: Dim, index: Tensor, value: Scalar) -> Made:
    """A number at the places that ``index`` names."""
    d = check_scattered(input, dim, index, None, "scatter")
    return _written(input, d, index, scalars.element(value, input.dtype), _store)


_STORES = {"add": _add, "multiply": _multiply}


@kernel(
    vjp=dict.fromkeys(("input", "source"), no_derivative("scatter")),
    inplace=True,
    function=False,
    method=False,
    node=NODE,
    example="scatter(ones(1, 3), 1, tensor([[2, 2]]), tensor([[3., 4.]]), reduce='multiply')",
)
def _scatter_reduced(input: Tensor, dim: Dim, index: Tensor, source: Any, *, reduce: str) -> Made:
    """Elements added or multiplied at the places that ``index`` names."""
    tensor = source if isinstance(source, Tensor) else None
    d = check_scattered(input, dim, index, tensor, "scatter")
    if reduce not in _STORES:
        raise TensorRuntimeError("reduce argument must be either add or multiply.")
    values = scalars.element(source, input.dtype) if tensor is None else source
    return _written(input, d, index, values, _STORES[reduce])


def _form(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[str, list[Any], dict[str, Any]]:
    """The internal op that a call of ``scatter`` means, with its arguments."""
    rest = dict(kwargs)
    given = list(args)
    for key in ("dim", "index"):
        if key in rest:
            given.append(rest.pop(key))
    source = next((rest.pop(k) for k in ("src", "value") if k in rest), None)
    if source is not None:
        given.append(source)
    if len(given) != 3 or not isinstance(given[2], (Tensor, bool, int, float, complex)):
        raise no_overload(name, args, kwargs, _FORMS)
    if rest.get("reduce") is not None:
        return "_scatter_reduced", given, rest
    rest.pop("reduce", None)
    return ("_scatter_source" if isinstance(given[2], Tensor) else "_scatter_number"), given, rest


@composite(out=False, example="scatter(zeros(1, 3), 1, tensor([[2, 0]]), tensor([[1., 2.]]))")
def scatter(
    input: Tensor,
    dim: Any = None,
    index: Any = None,
    src: Any = None,
    *,
    value: Any = None,
    reduce: Any = None,
    out: Any = None,
) -> Tensor:
    """``input`` with elements of ``src``, or a number, where ``index`` says along ``dim``.

    Of several elements for one place one stays; ``reduce`` adds or multiplies instead.
    """
    args = tuple([v for v in (dim, index, src) if v is not None])
    options = {"value": value, "reduce": reduce, "out": out}
    given = {k: v for k, v in options.items() if v is not None}
    form, found, rest = _form("scatter", args, given)
    return ops[form].function(input, *found, **rest)


@method("scatter_")
def scatter_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """``scatter`` of the tensor itself."""
    form, found, rest = _form("scatter_", args, kwargs)
    return twin(ops[form])(x, *found, **rest)


@kernel(
    same_out="Expected out tensor to have dtype {y.cpp}, but got {out.cpp} instead",
    vjp={
        "input": lambda g: g,
        "src": lambda g, dim, index, src_shape: indices.check_whole(
            g.gather(dim, index), src_shape, "ScatterAddBackward0"
        ),
    },
    inplace=True,
    example="scatter_add(zeros(1, 3), 1, tensor([[2, 2]]), tensor([[1., 2.]]))",
)
def scatter_add(input: Tensor, dim: Dim, index: Tensor, src: Tensor) -> Made:
    """``input`` with the elements of ``src`` added where ``index`` says along ``dim``."""
    return _written(input, check_scattered(input, dim, index, src, "scatter"), index, src, _add)
