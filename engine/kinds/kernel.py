"""Operations with a rule and a kernel of their own: the general kind.

The body is the rule: from bound arguments it works out dtype and layout, and returns what it
``made`` together with a function of the array module that computes it. On meta that function is
never called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import device as devices
from engine import layout as layouts
from engine import lazy, tape
from engine.dtypes import compute_dtype
from engine.errors import DtypeError, TensorTypeError
from engine.kinds.deriving import Recorder
from engine.kinds.record import beside_tensors, body_caller, make_op, parameters, spoken_name
from engine.kinds.results import (
    cast,
    check_apart,
    check_destination,
    check_partial_overlap,
    common_device,
    result,
    store_out,
    write,
)
from engine.modes import state
from engine.recording import REDOES, Departed
from engine.return_types import named
from engine.signature import Parameter, bind, wrong
from engine.storage import make_room
from engine.tensor import Kind, Tensor, kind_of, wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from engine.dtypes import DType
    from engine.layout import Layout
    from engine.registry import Op


class Made:
    """A result to be: dtype, layout and the function of ``xp`` that computes its array.

    ``into(xp, array)``, where there is one, changes an array that holds the input; ``apart``
    are tensors whose memory must not be the destination's then.
    """

    __slots__ = ("apart", "dtype", "into", "layout", "run")

    def __init__(
        self,
        dtype: DType,
        layout: Layout,
        run: Callable[[Any], Any],
        into: Callable[[Any, Any], None] | None = None,
        apart: tuple[Tensor, ...] = (),
    ):
        self.apart = apart
        self.dtype = dtype
        self.layout = layout
        self.run = run
        self.into = into


def made(dtype: DType, shape: tuple[int, ...] | Layout, run: Callable[[Any], Any]) -> Made:
    """A result of that dtype and shape (contiguous) or layout, computed by ``run(xp)``."""
    layout = layouts.contiguous(shape) if isinstance(shape, tuple) else shape
    return Made(dtype, layout, run)


def altered(
    input: Tensor,
    into: Callable[[Any, Any], None],
    layout: Layout | None = None,
    apart: tuple[Tensor, ...] = (),
) -> Made:
    """``input`` with some elements changed by ``into(xp, array)``: in a copy of it, laid out
    row-major or as ``layout`` says, or in its own memory by the in-place twin, which refuses
    ``apart`` tensors that share it."""

    def run(xp: Any) -> Any:
        array = xp.array(input.array, order="C")
        into(xp, array)
        return array

    made_layout = layout or layouts.contiguous(input.layout.shape)
    return Made(input.dtype, made_layout, run, into, apart)


def working(t: Tensor, dtype: DType | None = None) -> Any:
    """The tensor's array in the dtype to compute in: that of ``dtype`` (its own), low precision
    widened to float32."""
    wanted = compute_dtype(dtype or t.dtype)
    if t.dtype is wanted:
        return t.array
    return cast(t.array, kind_of(wanted, t.kind.device))


def kernel(
    *,
    vjp: Any = None,
    inplace: bool = False,
    fields: tuple[str, ...] = (),
    out: bool = True,
    same_out: str = "",
    overlapping: bool = False,
    constant: tuple[int, ...] = (),
    **record: Any,
) -> Callable[[Any], Any]:
    """An op whose body returns one Made, or a tuple of them.

    ``constant`` are the numbers of those parts of a tuple that no gradient flows through.

    ``same_out`` is PyTorch's sentence for an ``out`` of another dtype where none is converted,
    filled with ``y`` and ``out``; such an ``out`` must share no memory with the operands either.
    ``overlapping``: in place it takes a destination whose elements share memory, as fill_ does.
    ``fields`` name the parts of a tuple (the result then is a ``return_types`` tuple). A result
    of several parts run together shares one computation: its ``run`` may return a list that the
    others index.
    """

    def decorate(body: Any) -> Any:
        return make_op(
            body,
            "kernel",
            lambda op: _build(op, fields, out, constant, same_out),
            (lambda op: _build_inplace(op, overlapping)) if inplace else None,
            vjp=vjp,
            inplace=inplace,
            **record,
        )

    return decorate


def tensors_among(values: list[Any]) -> list[Tensor]:
    """The tensors in bound arguments, those in tuples included."""
    found: list[Tensor] = []
    for v in values:
        if isinstance(v, Tensor):
            found.append(v)
        elif v.__class__ is tuple:
            found.extend(t for t in v if isinstance(t, Tensor))
    return found


def compute(name: str, run: Any, values: list[Any]) -> Any:
    """Run the rule and the kernel: a tensor, or a tuple of them; not recorded."""
    inputs = tensors_among(values)
    device = common_device(name, inputs) if inputs else devices.cpu
    planned = run(values)
    if planned.__class__ is Made:
        return _realise(planned, device)
    shared: dict[int, Any] = {}
    return tuple([_realise(p, device, shared, at) for at, p in enumerate(planned)])


def _realise(plan: Any, device: Any, shared: dict[int, Any] | None = None, at: int = 0) -> Any:
    if plan.__class__ is not Made:
        return plan
    kind: Kind = kind_of(plan.dtype, device)
    if device is devices.meta:
        return result(None, kind, plan.layout)
    make_room(kind, plan.layout)
    if shared is None:
        array = plan.run(kind.xp)
    else:
        key = id(plan.run)
        if key not in shared:
            shared[key] = plan.run(kind.xp)
        array = shared[key]
        if array.__class__ in (tuple, list):
            array = array[at]
    return result(array, kind, plan.layout)


def _build(
    op: Op,
    fields: tuple[str, ...],
    takes_out: bool,
    constant: tuple[int, ...],
    same_out: str,
) -> Any:
    name = spoken_name(op)
    ps = parameters(op)
    run = body_caller(op)
    recorder = Recorder(op) if op.derivatives is not None else None
    returns = named(name, fields) if fields else None

    def call(*args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None) if takes_out else None
        values = bind(name, ps, args, kwargs)
        y = compute(name, run, values)
        if state.recording is not None:
            _tell(op, run, values, y)
        if recorder is not None and state.grad:
            attach_recorded(recorder, values, y, constant)
        if out is not None:
            if same_out and isinstance(out, Tensor):
                _check_out(out, y, values, same_out)
            y = store_parts(out, y, name, tensors_among(values))
        return returns(y) if returns is not None else y

    return call


def _with_arrays(values: Sequence[Any], arrays: Iterator[Any]) -> list[Any]:
    """``values`` with other arrays in the places of their tensors."""
    return [
        wrap(next(arrays), v.kind, v.layout)
        if isinstance(v, Tensor)
        else tuple(_with_arrays(v, arrays))
        if v.__class__ is tuple
        else v
        for v in values
    ]


def _tell(op: Op, run: Any, values: list[Any], y: Any) -> None:
    """Tell whoever records how ``y`` comes from arrays: by the rule and the kernel once more."""
    if op.data_dependent:
        state.recording.fail("a result's shape depends on values")
        return
    name = spoken_name(op)
    arrays = [t.array for t in tensors_among(values)]

    single = y.__class__ is Tensor
    layouts_then = [part.layout for part in ((y,) if single else y)]

    def again(*given: Any) -> Any:
        z = compute(name, run, _with_arrays(values, iter(given)))
        parts = (z,) if single else z
        if any(p.layout is not then for p, then in zip(parts, layouts_then, strict=True)):
            raise Departed  # a mask that chooses more or fewer
        return z.array if single else [part.array for part in parts]

    key = (op.name, beside_tensors(values))
    if single:
        state.recording.computed(y, again, arrays, None, key, REDOES)
    else:
        state.recording.computed_parts(y, again, arrays, key)


def _tell_change(op: Op, values: list[Any], x: Tensor, overlapping: bool) -> None:
    """The same for an op that changed ``x`` in place."""
    given = tensors_among(values)
    arrays = [t.array for t in given[1:]]

    def again(*others: Any) -> None:
        *rest, own = others
        change(op, None, _with_arrays(values, iter((own, *rest))), overlapping)

    key = (op.name, "in place", beside_tensors(values))
    state.recording.changed(x, key, again, arrays, REDOES)


def _check_out(out: Tensor, y: Tensor, values: list[Any], sentence: str) -> None:
    if out.dtype is not y.dtype:
        raise DtypeError(sentence.format(y=y.dtype, out=out.dtype))
    tape.check_overlap(out)
    for operand in tensors_among(values):
        check_apart(out, operand)


def attach_recorded(
    recorder: Recorder, values: list[Any], y: Any, constant: tuple[int, ...] = ()
) -> None:
    """Record the call and make its node the maker of every differentiable result."""
    node = recorder.record(values, y)
    if node is None:
        return
    if y.__class__ is Tensor:
        if y.dtype.is_floating_point or y.dtype.is_complex:
            tape.attach(y, node)
        return
    for nr, part in enumerate(y):
        if nr not in constant and (part.dtype.is_floating_point or part.dtype.is_complex):
            tape.attach(part, node, nr)


def store_parts(out: Any, y: Any, name: str, operands: Sequence[Any] = ()) -> Any:
    """A result, or each of several, in its destination."""
    if y.__class__ is Tensor:
        return store_out(out, y, name, operands)
    if not isinstance(out, (tuple, list)) or not all(isinstance(o, Tensor) for o in out):
        raise wrong(name, Parameter("out", "Tensors", None, True), 0, "tuple of Tensors", out)
    if len(out) != len(y):
        raise TensorTypeError(f"expected tuple of {len(y)} elements but got {len(out)}")
    pairs = zip(out, y, strict=True)
    return tuple([store_out(o, part, name, operands, nr) for nr, (o, part) in enumerate(pairs)])


def _build_inplace(op: Op, overlapping: bool) -> Any:
    name = spoken_name(op)
    ps = parameters(op)
    recorder = Recorder(op) if op.derivatives is not None else None

    def call(*args: Any, **kwargs: Any) -> Any:
        values = bind(name + "_", ps, args, kwargs)
        return change(op, recorder, values, overlapping)

    return call


def change(
    op: Op, recorder: Recorder | None, values: list[Any], overlapping: bool = False
) -> Tensor:
    """Do the op on ``values[0]`` in place: refuse, compute, write, record."""
    x: Tensor = values[0]
    recorded = (
        recorder is not None
        and state.grad
        and any(tape.requires_grad(t) for t in tensors_among(values))
    )
    tape.check_inplace(x, recorded)
    if not overlapping:
        tape.check_overlap(x)
    planned = body_caller(op)(values)
    if planned.__class__ is Made and planned.into is not None:
        common_device(op.name, tensors_among(values))
        check_destination(x, x.kind, planned.layout.shape, recorded, overlapping)
        for other in planned.apart:
            check_apart(x, other)
        before = recorder.before_write(values) if recorded and recorder is not None else values
        into, xp, array = planned.into, x.kind.xp, x.array
        if array.__class__ is lazy.Shown:
            array.change_by(lambda seen: into(xp, seen))
        elif array is not None:
            into(xp, array)
    else:
        y = compute(op.name, lambda _: planned, values)
        check_destination(x, y.kind, y.layout.shape, recorded, overlapping)
        for other in tensors_among(values[1:]):
            check_partial_overlap(x, other)
        before = recorder.before_write(values) if recorded and recorder is not None else values
        write(x, y)
    tape.bump(x)
    if state.recording is not None:
        _tell_change(op, values, x, overlapping)
    if recorded and recorder is not None:
        node = recorder.record(before, x)
        if node is not None:
            date_back(node, x)
            tape.rebase(x, node)
    return x


def date_back(node: tape.Node, x: Tensor) -> None:
    """Operands that share the memory of ``x`` were kept as they were before the write: going
    backward through them is an error, as it is in PyTorch."""
    names = node.gradient.saved_names
    for at, (name, kept) in enumerate(zip(names, node.saved, strict=False)):
        if name != "y" and kept.__class__ is Tensor and kept.counter is x.counter:
            versions = list(node.versions)
            versions[at] -= 1
            node.versions = tuple(versions)
