"""The explanations as special forms of the language: layout(x), grads(), graph(y) …"""

from __future__ import annotations

from tensorcli.explain import tracing_forms  # noqa: F401 - registers its explanations
from tensorcli.explain.arguments import refuse_arguments, tensor_argument
from tensorcli.language.forms import visible_names
from tensorcli.language.names import SPECIAL_FORMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tensorcli.language.compiling import Frame
    from tensorcli.language.forms import Form
    from tensorcli.results import Result


def _layout(form: Form, frame: Frame) -> Result:
    from tensorcli.explain import layout

    tensor = tensor_argument(form, frame, exactly=1)
    return layout.explain(tensor, form.args[0].text, visible_names(frame), form.span.line)


def _grads(form: Form, frame: Frame) -> Result:
    from tensorcli.explain import gradients

    refuse_arguments(form, most=0)
    return gradients.explain(visible_names(frame), form.span.line)


def _precision(form: Form, frame: Frame) -> Result:
    from engine.dtypes import DType
    from tensorcli.explain import precision

    tensor = tensor_argument(form, frame, exactly=None)
    wanted = []
    for argument in form.args[1:]:
        dtype = argument.value(frame)
        if not isinstance(dtype, DType):
            raise TypeError(f"precision() takes dtypes after the tensor, not '{argument.text}'")
        wanted.append(dtype)
    return precision.explain(tensor, wanted, form.span.line)


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


SPECIAL_FORMS.update(
    layout=_layout, grads=_grads, precision=_precision, broadcast=_broadcast
)
