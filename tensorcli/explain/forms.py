"""The explanations as special forms of the language; here grads() and broadcast(a, b…)."""

from __future__ import annotations

from tensorcli.explain import (  # noqa: F401 - they register their explanations
    tracing_forms,
    value_forms,
)
from tensorcli.explain.arguments import refuse_arguments
from tensorcli.language.forms import visible_names
from tensorcli.language.names import SPECIAL_FORMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tensorcli.language.compiling import Frame
    from tensorcli.language.forms import Form
    from tensorcli.results import Result


def _grads(form: Form, frame: Frame) -> Result:
    from tensorcli.explain import gradients

    refuse_arguments(form, most=0)
    return gradients.explain(visible_names(frame), form.span.line)


def _broadcast(form: Form, frame: Frame) -> Result:
    from tensorcli.explain import broadcasting

    refuse_arguments(form, most=None)
    if not form.args:
        raise TypeError("broadcast() takes tensors or shapes, none was given")
    shapes = [
        (argument.text, _shape(argument.text, argument.value(frame))) for argument in form.args
    ]
    return broadcasting.explain(shapes, form.span.line)


def _shape(text: str, value: object) -> tuple[int, ...]:
    """The shape of a tensor or a number, or a tuple or list that is one."""
    from engine.tensor import Tensor

    if isinstance(value, Tensor):
        return value.layout.shape
    if isinstance(value, int | float | complex):
        return ()
    if isinstance(value, tuple | list) and all(type(size) is int and size >= 0 for size in value):
        return tuple(value)
    raise TypeError(f"broadcast() takes tensors or shapes, '{text}' is neither")


SPECIAL_FORMS.update(grads=_grads, broadcast=_broadcast)
