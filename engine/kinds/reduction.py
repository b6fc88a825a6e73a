"""Reductions over dimensions: one rule for dims, keepdim and dtype; results are contiguous."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes, tape
from engine import layout as layouts
from engine.errors import DtypeNotImplementedError, TensorIndexError
from engine.kinds.deriving import Recorder
from engine.kinds.record import make_op, parameters
from engine.kinds.results import cast, result, store_out
from engine.layout import wrap_dims
from engine.modes import state
from engine.signature import bind
from engine.tensor import Kind, Tensor, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.dtypes import DType
    from engine.layout import Layout
    from engine.registry import Op


def SAME(dtype: DType) -> DType:
    """The input's dtype."""
    return dtype


def TO_INT64(dtype: DType) -> DType:
    """int64 for integers and booleans (sums and products)."""
    return dtypes.int64 if dtype.category <= dtypes.INT else dtype


def TO_BOOL(dtype: DType) -> DType:
    """bool, or uint8 for uint8, as all and any give."""
    return dtypes.uint8 if dtype is dtypes.uint8 else dtypes.bool_


class _Plan:
    __slots__ = ("axes", "cast", "kind", "layout")

    def __init__(self, axes: Any, cast_to: Kind | None, kind: Kind, layout: Layout):
        self.axes = axes
        self.cast = cast_to
        self.kind = kind
        self.layout = layout


def reduction(
    *,
    kernel: Callable[..., Any],
    gives: Callable[[DType], DType] = SAME,
    vjp: Any = None,
    takes: str = "bifc",
    refuse: Callable[[DType], None] | None = None,
    empty: str | None = None,
    **record: Any,
) -> Callable[[Any], Any]:
    """An op over dimensions with parameters (input, dim=None, keepdim=False, …, *, dtype=None).

    ``kernel(xp, array, axes, *rest)`` reduces ``axes`` (a tuple, or None for all) of an array in
    the compute dtype; ``rest`` are the parameters other than dim, keepdim and dtype. ``gives``
    maps the input's dtype to the result's. ``empty``: PyTorch refuses to reduce a dimension of
    size 0 with a sentence about this op.
    """

    def decorate(body: Any) -> Any:
        return make_op(
            body,
            "reduction",
            lambda op: _build(op, kernel, gives, takes, refuse, empty),
            vjp=vjp,
            **record,
        )

    return decorate


def reduced_shape(shape: tuple[int, ...], dims: tuple[int, ...], keepdim: bool) -> tuple[int, ...]:
    """``shape`` with ``dims`` (wrapped) of size 1 or gone."""
    if keepdim:
        return tuple([1 if d in dims else n for d, n in enumerate(shape)])
    return tuple([n for d, n in enumerate(shape) if d not in dims])


def _make_plan(
    x: Tensor, dim: Any, keepdim: bool, dtype: DType | None, options: tuple[Any, ...]
) -> _Plan:
    name, gives, takes, refuse, empty = options
    layout = x.layout
    if refuse is not None:
        refuse(dtype or x.dtype)
    if "bifc"[(dtype or x.dtype).category] not in takes:
        raise DtypeNotImplementedError(
            f'"{name}" not implemented for \'{(dtype or x.dtype).title}\''
        )
    dims = tuple(range(layout.ndim)) if dim is None or dim == () else wrap_dims(dim, layout.ndim)
    if empty is not None:
        for d in dims:
            if layout.ndim and layout.shape[d] == 0:
                raise TensorIndexError(
                    f"{empty}: Expected reduction dim {d} to have non-zero size."
                )
    shape = reduced_shape(layout.shape, dims, keepdim)
    final = dtype or gives(x.dtype)
    base = final if final.category >= x.dtype.category else x.dtype
    compute = dtypes.compute_dtype(base)
    axes = None if len(dims) == layout.ndim else dims
    cast_to = None if compute is x.dtype else kind_of(compute, x.kind.device)
    return _Plan(axes, cast_to, kind_of(final, x.kind.device), layouts.contiguous(shape))


def _build(op: Op, kernel: Any, gives: Any, takes: str, refuse: Any, empty: Any) -> Any:
    name = op.name.rpartition(".")[2]
    ps = parameters(op)
    names = [p.name for p in ps]
    at_dim, at_keep = names.index("dim"), names.index("keepdim")
    at_dtype = names.index("dtype") if "dtype" in names else -1
    rest = [i for i, n in enumerate(names) if i and n not in ("dim", "keepdim", "dtype")]
    recorder = Recorder(op)
    plans: dict[Any, _Plan] = {}
    options = (name, gives, takes, refuse, empty)
    defaults = [p.default for p in ps[1:]]

    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and args[0].__class__ is Tensor:
            return compute([args[0], *defaults])
        out = kwargs.pop("out", None)
        y = compute(bind(name, ps, args, kwargs))
        return y if out is None else store_out(out, y, name)

    def compute(values: list[Any]) -> Tensor:
        x = values[0]
        dtype = values[at_dtype] if at_dtype >= 0 else None
        key = (x.kind, x.layout, values[at_dim], values[at_keep], dtype)
        plan = plans.get(key)
        if plan is None:
            plan = plans[key] = _make_plan(x, values[at_dim], values[at_keep], dtype, options)
        array = x.array
        if array is not None:
            if plan.cast is not None:
                array = cast(array, plan.cast)
            array = kernel(plan.kind.xp, array, plan.axes, *[values[i] for i in rest])
        y = result(array, plan.kind, plan.layout)
        if state.grad and (x.ag is not None or x.base is not None):
            node = recorder.record(values, y)
            if node is not None:
                tape.attach(y, node)
        return y

    return call
