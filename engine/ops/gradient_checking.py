"""autograd.gradcheck and gradgradcheck: derivatives compared with finite differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import backward, tape
from engine.errors import GradcheckError, TensorRuntimeError
from engine.foreign import exchange
from engine.modes import state, warn
from engine.printing import tensor_text
from engine.registry import F, function
from engine.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Function = Callable[..., Any]


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _is_checked(x: Any) -> bool:
    return isinstance(x, Tensor) and tape.requires_grad(x)


def _differentiable(outputs: Any) -> list[Tensor]:
    return [y for y in _as_tuple(outputs) if y.requires_grad]


def _check_inputs(inputs: Sequence[Any]) -> list[Tensor]:
    """The inputs to vary. Raises ValueError if there are none."""
    checked = []
    for at, x in enumerate(inputs):
        if not _is_checked(x):
            continue
        if x.dtype.name not in ("float64", "complex128"):
            warn(
                f"Input #{at} requires gradient and is not a double precision floating point or "
                "complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex. "
            )
        sizes = zip(x.layout.shape, x.layout.strides, strict=True)
        if any(stride == 0 and size > 1 for size, stride in sizes):
            raise TensorRuntimeError(
                f"The {at}th input has a dimension with stride 0. gradcheck only supports inputs "
                "that are non-overlapping to be able to compute the numerical gradients "
                "correctly. You should call .contiguous on the input before passing it to "
                "gradcheck."
            )
        checked.append(x)
    if not checked:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them "
            "have requires_grad=True."
        )
    for x in checked:
        x.retain_grad()
    return checked


def _numerical(f: Function, inputs: Sequence[Any], x: Tensor, eps: float) -> list[Tensor]:
    """For each output of ``f`` the differences by the elements of ``x``, one row each."""
    before = state.grad
    state.grad = False
    try:
        flat = x.detach().reshape(-1).clone()
        if not x.layout.numel:
            return [y.new_zeros((0, y.layout.numel)) for y in f(*inputs)]
        columns: list[list[Tensor]] = []
        for element in range(x.layout.numel):
            moved = _central(f, inputs, x, flat, element, eps)
            if x.dtype.is_complex:
                turned = _central(f, inputs, x, flat, element, eps * 1j)
                moved = [a + b * 1j for a, b in zip(moved, turned, strict=True)]
            columns.append(moved)
        return [F.stack(list(rows)) for rows in zip(*columns, strict=True)]
    finally:
        state.grad = before


def _central(
    f: Function, inputs: Sequence[Any], x: Tensor, flat: Tensor, element: int, step: Any
) -> list[Tensor]:
    """How far each output moves, per unit, as one element moves by ``step`` either way."""
    sides = []
    for sign in (-1, 1):
        moved = flat.clone()
        moved[element] += sign * step
        shifted = moved.reshape(x.layout.shape)
        sides.append([y.clone() for y in f(*[shifted if a is x else a for a in inputs])])
    size = abs(step) * 2
    return [((b - a) / size).reshape(-1) for a, b in zip(*sides, strict=True)]


def _analytical(y: Tensor, inputs: Sequence[Tensor]) -> list[Tensor]:
    """For each input its gradients by the elements of ``y``, one column each."""
    columns: list[list[Tensor]] = [[] for _ in inputs]
    for element in range(y.layout.numel):
        start = F.zeros_like(y).reshape(-1)
        start[element] = 1
        found = backward.run(
            [y], [start.reshape(y.layout.shape)], retain=True, inputs=inputs, accumulate=False
        )
        for column, g, x in zip(columns, found, inputs, strict=True):
            column.append(F.zeros_like(x).reshape(-1) if g is None else g.reshape(-1))
    return [
        F.stack(column, 1) if column else x.new_zeros((x.layout.numel, 0))
        for column, x in zip(columns, inputs, strict=True)
    ]


def _check_part(
    f: Function,
    inputs: Sequence[Any],
    checked: Sequence[Tensor],
    options: tuple[float, float, float],
    part: str,
    complex_outputs: Sequence[int],
) -> None:
    """Compare the real or the imaginary part of all outputs."""
    eps, atol, rtol = options
    numerical = [_numerical(f, inputs, x, eps) for x in checked]
    for i, y in enumerate(f(*inputs)):
        analytical = _analytical(y, checked)
        for j, (a, rows) in enumerate(zip(analytical, numerical, strict=True)):
            n = rows[i]
            if not F.allclose(a, n.to(a.dtype), rtol, atol):
                of = f"While considering the {part} part of complex outputs only, "
                raise GradcheckError(
                    f"{of if i in complex_outputs else ''}Jacobian mismatch for output {i} with "
                    f"respect to input {j},\nnumerical:{tensor_text(n)}\n"
                    f"analytical:{tensor_text(a)}\n"
                )


def _check(func: Function, inputs: tuple[Any, ...], options: tuple[float, float, float]) -> None:
    checked = _check_inputs(inputs)
    outputs = _differentiable(func(*inputs))
    if not outputs:

        def plain(*args: Any) -> list[Tensor]:
            return [y for y in _as_tuple(func(*args)) if not y.dtype.is_integral]

        for x in checked:
            for rows in _numerical(plain, inputs, x, options[0]):
                if bool((rows != 0).any()):
                    raise GradcheckError("Numerical gradient for function expected to be zero")
        return
    places = [k for k, y in enumerate(_as_tuple(func(*inputs))) if y.requires_grad]
    complex_outputs = [i for i, y in enumerate(outputs) if y.dtype.is_complex]

    def part(pick: Callable[[Tensor], Tensor]) -> Function:
        def picked(*args: Any) -> list[Tensor]:
            results = _as_tuple(func(*args))
            return [pick(results[k]) if results[k].dtype.is_complex else results[k] for k in places]

        return picked

    if complex_outputs:
        imaginary = part(lambda y: y.imag)
        _check_part(imaginary, inputs, checked, options, "imaginary", complex_outputs)
    _check_part(part(lambda y: y.real), inputs, checked, options, "real", complex_outputs)


@function("autograd.gradcheck", "autograd.gradcheck.gradcheck")
def gradcheck(
    func: Any,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the gradients of ``func`` are what finite differences say.

    Raises GradcheckError with both Jacobians where they differ, unless ``raise_exception`` is
    false. All elements are tried, in fast mode as well.
    """
    try:
        _check(exchange.function(func), _as_tuple(inputs), (eps, atol, rtol))
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


@function("autograd.gradgradcheck")
def gradgradcheck(
    func: Any,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Whether the derivatives of the gradients are what finite differences say."""
    f = exchange.function(func)
    given = _as_tuple(inputs)
    if grad_outputs is None:
        starts = tuple([F.randn_like(y, requires_grad=True) for y in _differentiable(f(*given))])
    else:
        starts = tuple([g.detach().requires_grad_() for g in _as_tuple(grad_outputs)])
    count = len(starts)

    def gradients(*args: Any) -> tuple[Tensor, ...]:
        before = state.grad
        state.grad = True
        try:
            # Finite differences pass plain tensors for the one they move.
            ready = [
                a.detach().requires_grad_() if _is_checked(b) and not _is_checked(a) else a
                for a, b in zip(args, (*given, *starts), strict=True)
            ]
            outputs = _differentiable(f(*ready[: len(ready) - count]))
            wanted = [x for x in ready[: len(ready) - count] if _is_checked(x)]
            found = backward.run(
                outputs,
                ready[len(ready) - count :],
                retain=True,
                create=True,
                inputs=wanted,
                accumulate=False,
            )
            return tuple([g for g in found if g is not None])
        finally:
            state.grad = before

    return gradcheck(
        gradients, given + starts, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception
    )
