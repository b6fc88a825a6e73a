"""torch.autograd.functional: Jacobians, Hessians and their products of functions of tensors.

Forward derivatives are two backward passes; what every complaint says of strict mode is
PyTorch's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import backward, tape
from engine.errors import TensorNotImplementedError, TensorRuntimeError
from engine.foreign import exchange
from engine.modes import state
from engine.registry import F, function
from engine.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_OUTPUTS = "outputs of the user-provided function"


def _as_tuple(value: Any, what: str, api: str) -> tuple[bool, tuple[Tensor, ...]]:
    """Whether ``value`` is several tensors, and all of them."""
    several = isinstance(value, tuple)
    parts = tuple(value) if several else (value,)
    for at, part in enumerate(parts):
        if not isinstance(part, Tensor):
            which = f"value at index {at}" if several else f"given {what}"
            raise TypeError(
                f"The {what} given to {api} must be either a Tensor or a tuple of Tensors but the "
                f"{which} has type {type(part)}."
            )
    return several, parts


def _unpacked(values: Sequence[Any], several: bool) -> Any:
    return tuple(values) if several else values[0]


def _prepared(inputs: Sequence[Tensor], create: bool, needed: bool) -> tuple[Tensor, ...]:
    """New tensors for the inputs, connected to them if derivatives are to be differentiable."""
    return tuple(
        [
            x.view_as(x) if create and tape.requires_grad(x) else x.detach().requires_grad_(needed)
            for x in inputs
        ]
    )


def _finished(values: Sequence[Tensor], create: bool) -> tuple[Tensor, ...]:
    return tuple(values) if create else tuple([v.detach() for v in values])


def _check_vector(v: Sequence[Tensor], other: Sequence[Tensor], several: bool) -> None:
    if len(other) != len(v):
        if several:
            raise TensorRuntimeError(
                f"v is a tuple of invalid length: should be {len(other)} but got {len(v)}."
            )
        raise TensorRuntimeError("The given v should contain a single Tensor.")
    for at, (a, b) in enumerate(zip(v, other, strict=True)):
        if a.layout.shape != b.layout.shape:
            entry = f"Entry {at} in " if several else ""
            raise TensorRuntimeError(
                f"{entry}v has invalid size: should be {b.shape} but got {a.shape}."
            )


_INDEPENDENT = {
    "outputs": "Output {i} of the user-provided function does not require gradients. The outputs "
    "must be computed in a differentiable manner from the input when running in strict mode.",
    "grad_inputs": "The gradient with respect to input {i} is independent of the inputs of the "
    "user-provided function. This is not allowed in strict mode.",
    "jacobian": "While computing the hessian, found that the jacobian of the user-provided "
    "function with respect to input {i} is independent of the input. This is not allowed in "
    "strict mode. You should ensure that your function is twice differentiable and that the "
    "jacobian depends on the inputs (this would be violated by a linear function for example).",
    "hessian": "The hessian of the user-provided function with respect to input {i} is "
    "independent of the input. This is not allowed in strict mode. You should ensure that your "
    "function is thrice differentiable and that the hessian depends on the inputs.",
}


def _check_recorded(values: Sequence[Tensor | None], what: str, strict: bool) -> None:
    """In strict mode, refuse values that are no function of the inputs."""
    if not strict:
        return
    for i, value in enumerate(values):
        if value is None:
            raise TensorRuntimeError(
                f"The output of the user-provided function is independent of input {i}. This is "
                "not allowed in strict mode."
            )
        if not tape.requires_grad(value):
            raise TensorRuntimeError(_INDEPENDENT[what].replace("{i}", str(i)))


_MISSING = {
    "back": "The output of the user-provided function is independent of input {i}. This is not "
    "allowed in strict mode.",
    "back_trick": "The gradient with respect to the input is independent of entry {i} in the "
    "grad_outputs when using the double backward trick to compute forward mode gradients. This "
    "is not allowed in strict mode.",
    "double_back": "The jacobian of the user-provided function is independent of input {i}. This "
    "is not allowed in strict mode.",
    "double_back_trick": "The hessian of the user-provided function is independent of entry {i} "
    "in the grad_jacobian. This is not allowed in strict mode as it prevents from using the "
    "double backward trick to replace forward mode AD.",
}


def _filled(
    found: Sequence[Tensor | None], like: Sequence[Tensor], strict: bool, create: bool, stage: str
) -> list[Tensor]:
    """Zeros in place of missing gradients; strict mode refuses them."""
    filled = []
    for i, (g, x) in enumerate(zip(found, like, strict=True)):
        if g is None:
            if strict:
                raise TensorRuntimeError(_MISSING[stage].replace("{i}", str(i)))
            g = F.zeros_like(x)
        elif strict and create and not tape.requires_grad(g):
            what = "hessian" if "double" in stage else "jacobian"
            raise TensorRuntimeError(
                f"The {what} of the user-provided function is independent of input {i}. This is "
                "not allowed in strict mode when create_graph=True."
            )
        filled.append(g)
    return filled


def _gradients(
    outputs: Sequence[Tensor | None],
    inputs: Sequence[Tensor],
    given: Sequence[Tensor] | None = None,
    create: bool = False,
    retain: bool = False,
) -> list[Tensor | None]:
    """The gradients by ``inputs``, None where nothing leads there."""
    roots: list[Tensor] = []
    starts: list[Tensor] = []
    for at, y in enumerate(outputs):
        if y is not None and tape.requires_grad(y):
            roots.append(y)
            starts.append(
                backward.implicit_gradient(y, None if given is None else given[at], len(starts))
            )
    if not roots:
        return [None] * len(inputs)
    return backward.run(
        roots, starts, retain=retain or create, create=create, inputs=inputs, accumulate=False
    )


class _Call:
    """A function called on inputs prepared for differentiation, recording on."""

    __slots__ = ("inputs", "outputs", "several_inputs", "several_outputs", "v")

    def __init__(
        self,
        func: Any,
        inputs: Any,
        api: str,
        create: bool,
        strict: bool,
        v: Any = None,
        v_for: str | None = None,
    ):
        self.several_inputs, parts = _as_tuple(inputs, "inputs", api)
        self.inputs = _prepared(parts, create, True)
        self.v: tuple[Tensor, ...] | None = None
        if v_for == "inputs":
            self._take_vector(v, api, create)
        result = exchange.function(func)(*self.inputs)
        self.several_outputs, self.outputs = _as_tuple(result, _OUTPUTS, api)
        _check_recorded(self.outputs, "outputs", strict)
        if v_for == "outputs":
            self._take_vector_for_outputs(v, api, create)

    def _take_vector(self, v: Any, api: str, create: bool) -> None:
        if v is None:
            if len(self.inputs) != 1 or self.inputs[0].layout.numel != 1:
                whose = "the input to the user-provided function is a single Tensor with a single"
                raise TensorRuntimeError(f"The vector v can only be None if {whose} element.")
            return
        _, given = _as_tuple(v, "v", api)
        self.v = _prepared(given, create, False)
        _check_vector(self.v, self.inputs, self.several_inputs)

    def _take_vector_for_outputs(self, v: Any, api: str, create: bool) -> None:
        if v is None:
            if len(self.outputs) != 1 or self.outputs[0].layout.numel != 1:
                raise TensorRuntimeError(
                    "The vector v can only be None if the user-provided function returns a single "
                    "Tensor with a single element."
                )
            return
        _, given = _as_tuple(v, "v", api)
        self.v = _prepared(given, create, False)
        _check_vector(self.v, self.outputs, self.several_outputs)

    def answer(self, found: Sequence[Tensor], create: bool, like_inputs: bool) -> tuple[Any, Any]:
        several = self.several_inputs if like_inputs else self.several_outputs
        return (
            _unpacked(_finished(self.outputs, create), self.several_outputs),
            _unpacked(_finished(found, create), several),
        )


class _Recording:
    """Recording on inside."""

    __slots__ = ("before",)

    def __enter__(self) -> None:
        self.before = state.grad
        state.grad = True

    def __exit__(self, *error: object) -> None:
        state.grad = self.before


@function("autograd.functional.vjp")
def vjp(
    func: Any, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(outputs, gradients of ``v`` · outputs by the inputs)."""
    with _Recording():
        call = _Call(func, inputs, "vjp", create_graph, strict, v, "outputs")
    found = _gradients(call.outputs, call.inputs, call.v, create_graph)
    with _Recording():
        filled = _filled(found, call.inputs, strict, create_graph, "back")
        return call.answer(filled, create_graph, True)


@function("autograd.functional.jvp")
def jvp(
    func: Any, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(outputs, their derivatives as the inputs move along ``v``)."""
    with _Recording():
        call = _Call(func, inputs, "jvp", create_graph, strict, v, "inputs")
        starts = [F.zeros_like(y).requires_grad_() for y in call.outputs]
        back = _gradients(call.outputs, call.inputs, starts, True)
        _check_recorded(back, "grad_inputs", strict)
        found = _gradients(back, starts, call.v, create_graph)
        filled = _filled(found, call.outputs, strict, create_graph, "back_trick")
        return call.answer(filled, create_graph, False)


def _check_single(outputs: Sequence[Tensor], several: bool, api: str) -> None:
    if several:
        raise TensorRuntimeError(f"The function given to {api} should return a single Tensor")
    if outputs[0].layout.numel != 1:
        raise TensorRuntimeError(
            f"The Tensor returned by the function given to {api} should contain a single element"
        )


@function("autograd.functional.vhp")
def vhp(
    func: Any, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(output, ``v`` times the Hessian)."""
    with _Recording():
        call = _Call(func, inputs, "vhp", create_graph, strict, v, "inputs")
        _check_single(call.outputs, call.several_outputs, "vhp")
        back = _gradients(call.outputs, call.inputs, None, True)
        _check_recorded(back, "jacobian", strict)
        found = _gradients(back, call.inputs, call.v, create_graph)
        filled = _filled(found, call.inputs, strict, create_graph, "double_back")
        return call.answer(filled, create_graph, True)


@function("autograd.functional.hvp")
def hvp(
    func: Any, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(output, the Hessian times ``v``)."""
    with _Recording():
        call = _Call(func, inputs, "hvp", create_graph, strict, v, "inputs")
        _check_single(call.outputs, call.several_outputs, "hvp")
        back = _gradients(call.outputs, call.inputs, None, True)
        _check_recorded(back, "jacobian", strict)
        starts = [F.zeros_like(x).requires_grad_() for x in call.inputs]
        second = _gradients(back, call.inputs, starts, True)
        _check_recorded(back, "hessian", strict)
        found = _gradients(second, starts, call.v, create_graph)
        filled = _filled(found, call.inputs, strict, create_graph, "double_back_trick")
        return call.answer(filled, create_graph, True)


_HINT = (
    'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function '
    'has more outputs than inputs, "forward-mode" tends to be more performant. Otherwise, '
    'prefer to use "reverse-mode".'
)
_JACOBIAN = "torch.autograd.functional.jacobian: "


def _check_strategy(strategy: str, create: bool, strict: bool, vectorize: bool) -> None:
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(_HINT)
    if strategy == "reverse-mode":
        return
    for given, name in ((create, "create_graph"), (strict, "strict")):
        if given:
            text = (
                f'{_JACOBIAN}`{name}=True` and `strategy="forward-mode"` are not supported '
                f'together (yet). Please either set `{name}=False` or `strategy="reverse-mode"`.'
            )
            raise (TensorNotImplementedError(text) if given is create else TensorRuntimeError(text))
    if not vectorize:
        raise TensorNotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly "
            "implemented for `vectorize=True`."
        )


@function("autograd.functional.jacobian")
def jacobian(
    func: Any,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The derivatives of every output element by every input element.

    One tensor of shape outputs + inputs; nested tuples where there are several of either.
    """
    _check_strategy(strategy, create_graph, strict, vectorize)
    with _Recording():
        call = _Call(func, inputs, "jacobian", create_graph, strict)
        if vectorize and strict:
            raise TensorRuntimeError(
                f"{_JACOBIAN}`strict=True` and `vectorized=True` are not supported together. "
                "Please either set `strict=False` or `vectorize=False`."
            )
        blocks = [
            _unpacked(_finished(_block(call, i, strict, create_graph), create_graph),
                      call.several_inputs)
            for i in range(len(call.outputs))
        ]  # fmt: skip
        return _unpacked(blocks, call.several_outputs)


def _block(call: _Call, i: int, strict: bool, create: bool) -> list[Tensor]:
    """The derivatives of output ``i`` by each input."""
    y = call.outputs[i]
    rows: list[list[Tensor]] = [[] for _ in call.inputs]
    for element in range(y.layout.numel):
        one = y.reshape(-1)[element]
        found = _gradients((one,), call.inputs, None, create, True)
        for at, (row, g, x) in enumerate(zip(rows, found, call.inputs, strict=True)):
            if g is None:
                if strict:
                    raise TensorRuntimeError(
                        f"Output {i} of the user-provided function is independent of input {at}. "
                        "This is not allowed in strict mode."
                    )
                g = F.zeros_like(x)
            elif strict and create and not tape.requires_grad(g):
                raise TensorRuntimeError(
                    "The jacobian of the user-provided function is independent of input "
                    f"{i}. This is not allowed in strict mode when create_graph=True."
                )
            row.append(g)
    return [
        F.stack(row).view((*y.layout.shape, *x.layout.shape))
        for row, x in zip(rows, call.inputs, strict=True)
    ]


@function("autograd.functional.hessian")
def hessian(
    func: Any,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a function that returns one number."""
    several, parts = _as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    inner = _gradient_function(exchange.function(func), strict)
    found = jacobian(inner, parts, create_graph, strict, vectorize, outer_jacobian_strategy)
    return found if several else found[0][0]


def _gradient_function(f: Callable[..., Any], strict: bool) -> Callable[..., tuple[Tensor, ...]]:
    def single(*inputs: Tensor) -> Tensor:
        y = f(*inputs)
        several, parts = _as_tuple(y, _OUTPUTS, "hessian")
        _check_recorded(parts, "outputs", strict)
        _check_single(parts, several, "hessian")
        return parts[0].squeeze()

    def gradient(*inputs: Tensor) -> tuple[Tensor, ...]:
        found: tuple[Tensor, ...] = jacobian(single, inputs, create_graph=True)
        _check_recorded(found, "jacobian", strict)
        return found

    return gradient
