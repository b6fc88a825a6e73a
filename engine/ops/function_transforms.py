"""torch.func: functions of functions that differentiate them.

Forward-mode derivatives are two backward passes: the gradient is linear in what it starts from,
so its own gradient is the forward derivative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import backward, tape
from engine.errors import TensorRuntimeError
from engine.foreign import exchange
from engine.levels import Level, cut, leads_out, own
from engine.registry import F, function
from engine.tensor import Tensor
from engine.trees import build, flatten, mapped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def _check_argnums(argnums: Any, count: int) -> Any:
    """``argnums`` as numbers from 0, in the form it was given."""
    if type(argnums) is int:
        return _check_argnum(argnums, count)
    if not isinstance(argnums, tuple):
        raise TensorRuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    checked = tuple([_check_argnum(n, count) for n in argnums])
    if not checked:
        raise TensorRuntimeError("argnums must be non-empty")
    if len(set(checked)) != len(checked):
        raise TensorRuntimeError(f"argnums elements must be unique, got {checked}")
    return checked


def _check_argnum(n: Any, count: int) -> int:
    if type(n) is not int:
        raise TensorRuntimeError(f"argnum must be int, got: {type(n)}")
    if not -count <= n < count:
        raise TensorRuntimeError(f"Got argnum={n}, but only {count} positional inputs")
    return n % count


class _Inputs:
    """Arguments some of which are to be differentiated by: ``leaves``, in the form ``form``."""

    __slots__ = ("args", "form", "leaves")

    def __init__(self, args: tuple[Any, ...], argnums: Any, level: Level):
        if argnums is None:
            taken: Any = args
        elif type(argnums) is int:
            taken = args[argnums]
        else:
            taken = tuple([args[n] for n in argnums])
        flat, self.form = flatten(taken)
        for x in flat:
            if not isinstance(x, Tensor):
                raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
        self.leaves = [own(x, level) for x in flat]
        changed = build(self.form, self.leaves)
        if argnums is None:
            self.args = changed
        elif type(argnums) is int:
            self.args = (*args[:argnums], changed, *args[argnums + 1 :])
        else:
            replaced = dict(zip(argnums, changed, strict=True))
            self.args = tuple([replaced.get(i, a) for i, a in enumerate(args)])


def gradients(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], given: Sequence[Tensor], create: bool
) -> list[Tensor]:
    """The gradients of ``outputs``, zeros where they do not depend on an input."""
    roots = [(y, g) for y, g in zip(outputs, given, strict=True) if tape.requires_grad(y)]
    found: list[Tensor | None] = [None] * len(inputs)
    if roots:
        found = backward.run(
            [y for y, _ in roots],
            [g for _, g in roots],
            retain=True,
            create=create,
            inputs=inputs,
            accumulate=False,
        )
    return [F.zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True)]


def _split_aux(result: Any, api: str) -> tuple[Any, Any]:
    if not (isinstance(result, tuple) and len(result) == 2):
        raise TensorRuntimeError(
            f"{api}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return result


_GRAD = "grad_and_value(f)(*args)"


def _grad_and_value(
    f: Any, argnums: Any, has_aux: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Any, Any]:
    """(gradients, value, aux) of ``f``."""
    with Level() as level:
        inputs = _Inputs(args, _check_argnums(argnums, len(args)), level)
        output, aux = f(*inputs.args, **kwargs), None
        if has_aux:
            output, aux = _split_aux(output, _GRAD)
        if not isinstance(output, Tensor):
            raise TensorRuntimeError(
                f"{_GRAD}: Expected f(*args) to return a Tensor, got {type(output)}"
            )
        if output.layout.ndim:
            raise TensorRuntimeError(
                f"{_GRAD}: Expected f(*args) to return a scalar Tensor, got tensor with "
                f"{output.layout.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs "
                "instead?"
            )
        out = leads_out((output,), level)
        start = [F.ones_like(output)] if tape.requires_grad(output) else [output]
        found = gradients((output,), inputs.leaves, start, out)
        value = output if out else output.detach()
        return (
            build(inputs.form, [cut(g, level) for g in found]),
            value,
            mapped(lambda t: cut(t, level), aux),
        )


@function("func.grad")
def grad(func: Any, argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of ``func``, which must return one number."""
    f = exchange.function(func)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found, _, aux = _grad_and_value(f, argnums, has_aux, args, kwargs)
        return (found, aux) if has_aux else found

    return wrapper


@function("func.grad_and_value")
def grad_and_value(func: Any, argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives (gradient, value) of ``func``, which must return one number."""
    f = exchange.function(func)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found, value, aux = _grad_and_value(f, argnums, has_aux, args, kwargs)
        return found, ((value, aux) if has_aux else value)

    return wrapper


def _check_tensors(outputs: list[Any], api: str) -> None:
    if not outputs or (len(outputs) == 1 and outputs[0] is None):
        raise TensorRuntimeError(
            f"{api}: Expected f to be a function that has non-empty output (got output = {outputs})"
        )
    for y in outputs:
        if not isinstance(y, Tensor):
            raise TensorRuntimeError(
                f"{api}: expected f(*primals) to return only tensors, got unsupported type "
                f"{type(y)}"
            )


class _Run:
    """One evaluation of a function, ready to be differentiated."""

    __slots__ = ("aux", "form", "inputs", "level", "outputs")

    def __init__(
        self, level: Level, f: Any, args: tuple[Any, ...], argnums: Any, has_aux: bool, api: str
    ):
        self.level = level
        self.inputs = _Inputs(args, argnums, level)
        result, aux = f(*self.inputs.args), None
        if has_aux:
            result, aux = _split_aux(result, api)
        self.outputs, self.form = flatten(result)
        self.aux = mapped(lambda t: cut(t, level), aux)

    def values(self) -> Any:
        """The outputs as those outside see them."""
        return build(self.form, [cut(y, self.level) for y in self.outputs])

    def pull(self, cotangents: Sequence[Tensor]) -> list[Tensor]:
        """The gradients by the inputs, given those of the outputs."""
        create = leads_out((*self.outputs, *cotangents), self.level)
        return gradients(self.outputs, self.inputs.leaves, cotangents, create)

    def push(self, tangents: Sequence[Tensor]) -> list[Tensor]:
        """The derivatives of the outputs as the inputs move along ``tangents``."""
        starts = [own(F.zeros_like(y), self.level) for y in self.outputs]
        back = gradients(self.outputs, self.inputs.leaves, starts, True)
        create = leads_out((*self.outputs, *tangents), self.level)
        return gradients(back, starts, tangents, create)


_VJP = "vjp(f, *primals)"


def _vjp(
    f: Any, args: tuple[Any, ...], argnums: Any, has_aux: bool
) -> tuple[_Run, Callable[..., Any]]:
    with Level() as level:
        run = _Run(level, f, args, argnums, has_aux, _VJP)
        _check_tensors(run.outputs, _VJP)
        for y in run.outputs:
            if not (y.dtype.is_floating_point or y.dtype.is_complex):
                raise TensorRuntimeError(
                    "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, "
                    f"got Tensor with dtype {y.dtype}"
                )

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: Any = None) -> Any:
        given, form = flatten(cotangents)
        if form != run.form:
            raise TensorRuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {form.short()}, primal output: "
                f"{run.form.short()}"
            )
        starts = [
            backward.implicit_gradient(y, g, at)
            for at, (y, g) in enumerate(zip(run.outputs, given, strict=True))
        ]
        found = [cut(g, level) for g in run.pull(starts)]
        return build(run.inputs.form, found)

    return run, pull


@function("func.vjp")
def vjp(func: Any, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """(outputs, a function from their gradients to those of ``primals``)."""
    run, pull = _vjp(exchange.function(func), primals, None, has_aux)
    return (run.values(), pull, run.aux) if has_aux else (run.values(), pull)


_JVP = "jvp(f, primals, tangents)"


@function("func.jvp")
def jvp(
    func: Any, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> tuple[Any, ...]:
    """(outputs, their derivatives as ``primals`` move along ``tangents``)."""
    if not isinstance(primals, tuple):
        raise TensorRuntimeError(
            f"{_JVP}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    flat, form = flatten(primals)
    moves, moves_form = flatten(tangents)
    if form != moves_form:
        raise TensorRuntimeError(
            f"{_JVP}: Expected primals and tangents to have the same python structure. For "
            "example, if primals is a tuple of 3 tensors, tangents also must be. Got primals with "
            f"structure {form} and tangents with structure {moves_form}"
        )
    for what, values in (("primals", flat), ("tangents", moves)):
        if not values:
            raise TensorRuntimeError(f"{_JVP}: Expected {what} to contain at least one Tensor.")
        for value in values:
            if not isinstance(value, Tensor):
                raise TensorRuntimeError(
                    f"{_JVP}: Expected {what} to only contain Tensors, got {type(value)}"
                )
    for x, v in zip(flat, moves, strict=True):
        if x.layout.shape != v.layout.shape:
            raise TensorRuntimeError(
                "Expected tangent to have the same shape as the primal, but got: tangent.sizes() "
                f"= {list(v.layout.shape)} vs. primal.sizes() = {list(x.layout.shape)}"
            )
    with Level() as level:
        run = _Run(level, exchange.function(func), primals, None, has_aux, _JVP)
        _check_tensors(run.outputs, _JVP)
        if strict and not all(tape.requires_grad(y) for y in run.outputs):
            raise TensorRuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the "
                "inputs. This is not allowed with strict=True."
            )
        moved = [cut(g, level) for g in run.push(moves)]
        derivatives = build(run.form, moved)
        return (run.values(), derivatives, run.aux) if has_aux else (run.values(), derivatives)


@function("func.linearize")
def linearize(func: Any, *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """(outputs, a function from tangents of ``primals`` to derivatives of the outputs)."""
    with Level() as level:
        run = _Run(level, exchange.function(func), primals, None, False, _JVP)

    def push(*tangents: Any) -> Any:
        moves, _ = flatten(tangents)
        return build(run.form, [cut(g, level) for g in run.push(moves)])

    return run.values(), push


def _refuse_complex(api: str, values: Any, what: str) -> None:
    for at, x in enumerate(flatten(values)[0]):
        if isinstance(x, Tensor) and x.dtype.is_complex:
            raise TensorRuntimeError(
                f"{api}: Expected all {what} to be real but received complex tensor at flattened "
                f"input idx: {at}"
            )


def _rows(run: _Run, api: str) -> list[list[Tensor]]:
    """For each output and input the gradients of the output's elements, one below the other."""
    _refuse_complex(api, run.outputs, "outputs")
    found: list[list[Tensor]] = []
    for at, y in enumerate(run.outputs):
        starts = [F.zeros_like(other) for other in run.outputs]
        rows = []
        for element in range(y.layout.numel):
            unit = y.new_zeros((y.layout.numel,))
            unit[element] = 1
            starts[at] = unit.reshape(y.layout.shape)
            rows.append(run.pull(starts))
        if rows:
            found.append([F.stack(list(parts)) for parts in zip(*rows, strict=True)])
        else:
            found.append([x.new_zeros((0, *x.layout.shape)) for x in run.inputs.leaves])
    return found


def _jacobian(
    f: Any, args: tuple[Any, ...], argnums: Any, has_aux: bool, api: str, arrange: Any
) -> Any:
    """All derivatives, for each output in the form of the inputs; ``arrange`` gives them shape."""
    _refuse_complex(api, args, "inputs")
    argnums = None if argnums is None else _check_argnums(argnums, len(args))
    run, _ = _vjp(f, args, argnums, has_aux)
    level = run.level
    blocks = [
        build(
            run.inputs.form,
            [
                cut(arrange(rows, y, x), level)
                for rows, x in zip(row, run.inputs.leaves, strict=True)
            ],
        )
        for row, y in zip(_rows(run, api), run.outputs, strict=True)
    ]
    result = build(run.form, blocks)
    return (result, run.aux) if has_aux else result


def _row_major(rows: Tensor, y: Tensor, x: Tensor) -> Tensor:
    return rows.view((*y.layout.shape, *x.layout.shape))


def _column_major(rows: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """In memory the input's elements come first, as one forward derivative each leaves them."""
    columns = rows.reshape(y.layout.numel, x.layout.numel).t().contiguous()
    wide = columns.view((x.layout.numel, *y.layout.shape)).movedim(0, -1)
    return wide.unflatten(-1, x.layout.shape) if x.layout.ndim else wide.squeeze(-1)


@function("func.jacrev")
def jacrev(
    func: Any,
    argnums: Any = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """A function that gives the Jacobian of ``func``, one row of it after the other."""
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")
    f = exchange.function(func)
    return lambda *args: _jacobian(f, args, argnums, has_aux, "jacrev", _row_major)


@function("func.jacfwd")
def jacfwd(
    func: Any, argnums: Any = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """A function that gives the Jacobian of ``func`` as forward derivatives lay it out."""
    f = exchange.function(func)
    return lambda *args: _jacobian(f, args, argnums, has_aux, "jacfwd", _column_major)


@function("func.hessian")
def hessian(func: Any, argnums: Any = 0) -> Callable[..., Any]:
    """A function that gives the second derivatives of ``func``."""
    return jacfwd(jacrev(func, argnums), argnums)


@function("func.functionalize")
def functionalize(func: Any, *, remove: str = "mutations") -> Callable[..., Any]:
    """``func`` itself: in-place changes need no rewriting here."""
    if remove not in ("mutations", "mutations_and_views"):
        raise TensorRuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}."
            " Valid options are:\n     remove='mutations': all inplace and out= operators will be "
            "removed from the program, and replaced with their out-of-place equivalents.\n"
            "     remove='mutations_and_views': In addition to the above, all aliasing operators "
            "{view} will be replaced with their non-aliasing counterparts, {view}_copy.\n"
        )
    return exchange.function(func)
