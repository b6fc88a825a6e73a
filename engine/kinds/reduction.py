"""Reductions over dimensions: one rule for dims, keepdim and dtype; results are contiguous."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes, tape
from engine import layout as layouts
from engine.errors import (
    DtypeError,
    DtypeNotImplementedError,
    TensorIndexError,
    TensorRuntimeError,
)
from engine.kinds.deriving import Recorder
from engine.kinds.record import make_op, parameters
from engine.kinds.results import cast, finish, result, store_out, tell
from engine.layout import wrap_dims
from engine.modes import state
from engine.overloads import bind_overloaded, no_overload
from engine.signature import REQUIRED
from engine.storage import BIG, ask
from engine.tensor import Kind, Tensor, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.dtypes import DType
    from engine.layout import Layout
    from engine.registry import Op


_new = object.__new__


def SAME(dtype: DType) -> DType:
    """The input's dtype."""
    return dtype


def TO_INT64(dtype: DType) -> DType:
    """int64 for integers and booleans (sums and products)."""
    return dtypes.int64 if dtype.category <= dtypes.INT else dtype


def TO_FLOAT(dtype: DType) -> DType:
    """The default dtype for integers and booleans."""
    return state.default_dtype if dtype.category <= dtypes.INT else dtype


def TO_BOOL(dtype: DType) -> DType:
    """bool, or uint8 for uint8, as all and any give."""
    return dtypes.uint8 if dtype is dtypes.uint8 else dtypes.bool_


class _Plan:
    __slots__ = ("axes", "cast", "kind", "layout", "room", "small")

    def __init__(self, axes: Any, cast_to: Kind | None, kind: Kind, layout: Layout, room: int):
        self.axes = axes
        self.cast = cast_to
        self.kind = kind
        self.layout = layout
        self.room = room
        self.small: Any = None


class _Rule:
    """The static part of one reduction."""

    __slots__ = (
        "convert", "empty", "gives", "keepdim_alone", "kernel", "name", "no_dims", "out_dtype",
        "overloads", "prepare", "refuse", "shortcut", "small", "stub", "takes",
        "takes_empty",
    )  # fmt: skip

    kernel: Any
    prepare: Any
    shortcut: Any
    small: Any
    overloads: tuple[str, ...]
    keepdim_alone: bool
    out_dtype: str
    name: str
    stub: str
    gives: Callable[[DType], DType]
    takes: str
    takes_empty: bool
    refuse: Callable[[DType, DType | None], None] | None
    empty: Any
    convert: bool
    no_dims: str


def reduction(
    *,
    kernel: Callable[..., Any],
    gives: Callable[[DType], DType] = SAME,
    vjp: Any = None,
    takes: str = "bifcu",
    takes_empty: bool = False,
    stub: str | None = None,
    refuse: Callable[[DType, DType | None], None] | None = None,
    empty: bool | Callable[[str, Layout, tuple[int, ...] | None], None] = True,
    convert: bool = True,
    prepare: Callable[[Any, Any], Any] | None = None,
    shortcut: Callable[[Any, Any, Any, Kind], Any] | None = None,
    small: Callable[[Layout, Kind], Any] | None = None,
    no_dims: str = "all",
    overloads: tuple[str, ...] = (),
    keepdim_alone: bool = False,
    out_dtype: str = "",
    **record: Any,
) -> Callable[[Any], Any]:
    """An op over dimensions with parameters (input, dim, keepdim, …, *, dtype), some of them.

    ``kernel(xp, array, axes, *rest)`` reduces ``axes`` (a tuple, or None for all) of an array;
    ``rest`` are the parameters other than dim, keepdim and dtype. ``gives`` maps the input's
    dtype to the result's, to which the array is converted first if ``convert`` (low precision to
    float32 instead), after ``prepare(xp, array)``. ``takes`` lists the categories accepted,
    u for the wide unsigned integers and 8 for float8; others are refused with ``stub``'s name,
    except among empty tensors if ``takes_empty``.
    ``small(layout, kind)`` may give a function from a small array of that layout to the 0-d
    array of its full reduction.
    ``shortcut(xp, array, axes, kind)`` may give the result of an array that would have to be
    converted, or None. ``refuse(input's dtype, dtype)`` may raise before. ``empty`` false: a
    dimension of size 0 cannot be reduced; a function says so in words of its own. ``no_dims``
    says what an empty tuple of dimensions reduces: "all", "none", or "kept": all, and only with
    keepdim. ``overloads`` are PyTorch's signatures where a call without dim is one of its own;
    it takes no keepdim unless ``keepdim_alone``. ``out_dtype`` is the sentence, with ``wanted``,
    ``given`` and ``cpp``, for an out= tensor of another dtype than the result's, where such a
    one is refused.
    """

    def decorate(body: Any) -> Any:
        def build(op: Op) -> Any:
            rule = _Rule()
            rule.name = op.name.rpartition(".")[2]
            rule.stub = stub or f"{rule.name}_cpu"
            rule.gives = gives
            rule.takes = takes
            rule.takes_empty = takes_empty
            rule.refuse = refuse
            rule.empty = empty
            rule.convert = convert
            rule.no_dims = no_dims
            rule.kernel = kernel
            rule.prepare = prepare
            rule.shortcut = shortcut
            rule.small = small
            rule.overloads = overloads
            rule.keepdim_alone = keepdim_alone
            rule.out_dtype = out_dtype
            return _build(op, rule)

        return make_op(body, "reduction", build, vjp=vjp, **record)

    return decorate


def reduced_shape(shape: tuple[int, ...], dims: tuple[int, ...], keepdim: bool) -> tuple[int, ...]:
    """``shape`` with ``dims`` (wrapped) of size 1 or gone."""
    if keepdim:
        return tuple([1 if d in dims else n for d, n in enumerate(shape)])
    return tuple([n for d, n in enumerate(shape) if d not in dims])


def check_not_empty(name: str, layout: Layout, dims: tuple[int, ...] | None) -> None:
    """Refuse to reduce a dimension of size 0 where there is no identity; None is all of them."""
    if layout.numel:
        return
    if dims is None:
        raise TensorRuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify "
            "the reduction dim with the 'dim' argument."
        )
    for d in dims:
        if layout.ndim and layout.shape[d] == 0:
            raise TensorIndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")


def check_takes(takes: str, stub: str, dtype: DType) -> None:
    """Refuse a dtype that PyTorch's kernel ``stub`` is not made for."""
    if (
        "bifc"[dtype.category] not in takes
        or (dtype.name in ("uint16", "uint32", "uint64") and "u" not in takes)
        or (dtype.name.startswith("float8") and "8" not in takes)
    ):
        raise DtypeNotImplementedError(f"\"{stub}\" not implemented for '{dtype.title}'")


def _make_plan(x: Tensor, dim: Any, keepdim: bool, dtype: DType | None, rule: _Rule) -> _Plan:
    layout = x.layout
    if rule.refuse is not None:
        rule.refuse(x.dtype, dtype)
    if dim == () and rule.no_dims == "kept" and not keepdim and layout.ndim and layout.numel:
        # torch 2.13 keeps the dimensions inside logsumexp and then cannot store the result.
        raise TensorRuntimeError(
            f"output with shape [] doesn't match the broadcast shape {[1] * layout.ndim}"
        )
    if dim is None or (dim == () and rule.no_dims != "none"):
        dims = tuple(range(layout.ndim))
    else:
        dims = wrap_dims(dim if dim.__class__ is tuple else (dim,), layout.ndim)
    if rule.empty is False:
        check_not_empty(rule.name, layout, None if dim is None or dim == () else dims)
    elif rule.empty is not True:
        rule.empty(rule.name, layout, None if dim is None else dims)
    final = dtype or rule.gives(x.dtype)
    if layout.numel or not rule.takes_empty:
        check_takes(rule.takes, rule.stub, final if rule.convert else x.dtype)
    shape = reduced_shape(layout.shape, dims, keepdim)
    compute = dtypes.compute_dtype(final if rule.convert else x.dtype)
    axes = None if len(dims) >= layout.ndim else dims
    cast_to = None if compute is x.dtype else kind_of(compute, x.kind.device)
    kind = kind_of(final, x.kind.device)
    reduced = layouts.contiguous(shape)
    room = reduced.numel * kind.dtype.itemsize
    if cast_to is not None:  # of an expanded tensor the cast is as large as its shape
        room += layout.numel * compute.itemsize
    return _Plan(axes, cast_to, kind, reduced, room if x.array is not None and room > BIG else 0)


def _build(op: Op, rule: _Rule) -> Any:
    name = rule.name
    kernel, prepare, shortcut = rule.kernel, rule.prepare, rule.shortcut
    overloads, out_dtype = rule.overloads, rule.out_dtype
    ps = parameters(op)
    names = [p.name for p in ps]
    at_dim = names.index("dim") if "dim" in names else -1
    at_keep = names.index("keepdim") if "keepdim" in names else -1
    at_dtype = names.index("dtype") if "dtype" in names else -1
    rest = [i for i, n in enumerate(names) if i and n not in ("dim", "keepdim", "dtype")]
    recorder = Recorder(op)
    plans: dict[Any, Any] = {}
    defaults = [p.default for p in ps[1:]]
    strict = bool(overloads) and not rule.keepdim_alone
    out_alone = strict and "Tensor out" in overloads[0]
    optional = REQUIRED not in defaults

    def call(*args: Any, **kwargs: Any) -> Any:
        if optional and len(args) == 1 and not kwargs and args[0].__class__ is Tensor:
            x = args[0]
            return compute([x, *defaults], (x.kind, x.layout, state.default_dtype))
        out = kwargs.pop("out", None)
        values = bind_overloaded(name, ps, args, kwargs, overloads)
        if (
            strict
            and values[at_dim] is None
            and _lacks_dim(args, kwargs, out is not None and not out_alone)
        ):
            raise no_overload(name, args, kwargs, overloads)
        if out is None:
            return compute(values)
        if rule.gives is TO_INT64 and values[at_dtype] is None and isinstance(out, Tensor):
            values[at_dtype] = out.dtype
        y = compute(values)
        if out_dtype and isinstance(out, Tensor) and out.dtype is not y.dtype:
            raise DtypeError(_about_out(out_dtype, y.dtype, out.dtype))
        return store_out(out, y, name)

    def plan_of(values: list[Any]) -> Any:
        x = values[0]
        dim = values[at_dim] if at_dim >= 0 else None
        keepdim = at_keep >= 0 and values[at_keep]
        dtype = values[at_dtype] if at_dtype >= 0 else None
        key = (x.kind, x.layout, dim, keepdim, dtype, state.default_dtype)
        plan = plans.get(key)
        if plan is None:
            plan = plans[key] = _make_plan(x, dim, keepdim, dtype, rule)
        return plan

    def reduce(plan: _Plan, array: Any, more: Sequence[Any]) -> Any:
        if plan.room:
            ask(plan.room)
        xp = plan.kind.xp
        if prepare is not None:
            array = prepare(xp, array)
        if plan.cast is not None:
            reduced = None
            if shortcut is not None:
                reduced = shortcut(xp, array, plan.axes, plan.kind)
            if reduced is not None:
                return reduced
            array = cast(array, plan.cast)
        return kernel(xp, array, plan.axes, *more)

    def compute(values: list[Any], key: Any = None) -> Tensor:
        """``key`` stands for a call with all defaults, whose plan is found by less."""
        x = values[0]
        if key is None:
            plan = plan_of(values)
        else:
            plan = plans.get(key)
            if plan is None:
                plan = plans[key] = plan_of(values)
                if rule.small is not None and plan.cast is None and x.array is not None:
                    plan.small = rule.small(x.layout, x.kind)
            if plan.small is not None:
                y: Tensor = _new(Tensor)
                y.array = plan.small(x.array)
                y.kind = plan.kind
                y.layout = plan.layout
                y.offset = 0
                y.base = None
                y.ag = None
                y.origin = 0
                y.memory = None
                y.counter = None
                if state.grad and (x.ag is not None or x.base is not None):
                    recorder.record_first(values, y)
                if state.watch:
                    finish(y, plan.small, (x.array,))
                return y
        more = [values[i] for i in rest] if rest else ()
        array = x.array
        if array is not None:
            array = reduce(plan, array, more)
        y = result(array, plan.kind, plan.layout)
        if state.recording is not None:
            tell(y, (plan, *more), lambda array: reduce(plan, array, more), (x,), (x.array,))
        if state.grad and (x.ag is not None or x.base is not None):
            node = recorder.record(values, y)
            if node is not None:
                tape.attach(y, node)
        return y

    return call


def _about_out(sentence: str, wanted: DType, given: DType) -> str:
    return sentence.format(wanted=wanted.title, given=given.title, cpp=given.cpp)


def _lacks_dim(args: tuple[Any, ...], kwargs: dict[str, Any], out: bool) -> bool:
    """Whether keepdim or out came without a dim, which no overload takes."""
    if len(args) > 1 or "dim" in kwargs or "axis" in kwargs:
        return False
    return out or "keepdim" in kwargs or "keepdims" in kwargs
