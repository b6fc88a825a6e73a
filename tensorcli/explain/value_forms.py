"""The explanations of one value as special forms: why(x), bits(x), summary(x), precision(…) …"""

from __future__ import annotations

import ast

from tensorcli.explain.arguments import refuse_arguments, tensor_argument
from tensorcli.language.forms import visible_names
from tensorcli.language.names import SPECIAL_FORMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from engine.dtypes import DType
    from engine.tensor import Tensor
    from tensorcli.language.compiling import Frame
    from tensorcli.language.forms import Form
    from tensorcli.results import Result


def _why(form: Form, frame: Frame) -> Result:
    from tensorcli.explain import views

    tensor = tensor_argument(form, frame, exactly=1)
    argument = form.args[0]
    return views.explain(tensor, argument.text, visible_names(frame), form.source, argument.node)


def _layout(form: Form, frame: Frame) -> Result:
    from tensorcli.explain import layout, views

    tensor = tensor_argument(form, frame, exactly=1)
    argument, names = form.args[0], visible_names(frame)
    steps = views.chain(tensor, names, form.source, argument.node)
    return layout.explain(tensor, argument.text, names, form.span.line, steps)


def _bits(form: Form, frame: Frame) -> Result:
    from tensorcli.explain import bits

    value = _only_value(form, frame)
    return bits.explain(_as_tensor(value, form))


def _dtypes(form: Form, frame: Frame) -> Result:
    from tensorcli.explain import bits

    if form.args or form.keywords:
        raise TypeError("dtypes() takes no arguments")
    return bits.table()


def _summary(form: Form, frame: Frame) -> Result:
    from tensorcli.explain import summaries

    return summaries.summarise(tensor_argument(form, frame, exactly=1), form.args[0].text)


def _hist(form: Form, frame: Frame) -> Result:
    from tensorcli.explain import summaries

    options = _options(form, frame, bins=None, ascii=False)
    bins = options["bins"]
    if bins is not None and not (type(bins) is int and 0 < bins <= 1000):
        raise TypeError("hist() takes bins from 1 to 1000")
    tensor = _as_tensor(_first(form, frame), form)
    return summaries.hist(tensor, form.args[0].text, bins, bool(options["ascii"]))


def _plot(form: Form, frame: Frame) -> Result:
    from tensorcli.explain import summaries

    options = _options(form, frame, ascii=False)
    text = form.args[0].text if form.args else ""
    values = summaries.numbers(_first(form, frame), text)
    return summaries.plot(values, text, bool(options["ascii"]))


def _heatmap(form: Form, frame: Frame) -> Result:
    from tensorcli.explain import summaries

    options = _options(form, frame, ascii=False)
    tensor = _as_tensor(_first(form, frame), form)
    return summaries.heatmap(tensor, form.args[0].text, bool(options["ascii"]))


def _precision(form: Form, frame: Frame) -> Result:
    from tensorcli.explain import precision

    refuse_arguments(form, most=None)
    wanted = [_dtype(argument.text, argument.value(frame)) for argument in form.args[1:]]
    if form.args and _is_ellipsis(form.args[0].node):
        return _program(form, wanted)
    if form.args and not isinstance(form.args[0].node, ast.Name | ast.Constant):
        found = _computation(form, frame, wanted)
        if found is not None:
            return found
    return precision.explain(tensor_argument(form, frame, exactly=None), wanted, form.span.line)


def _computation(form: Form, frame: Frame, wanted: list[DType]) -> Result | None:
    """The run of the whole expression; None where it only makes or names a tensor."""
    from tensorcli.explain import rounding

    node = form.args[0].node
    computation = rounding.Computation(
        form.source, (), node, visible_names(frame), rounding.definitions(form.source)
    )
    return rounding.explain(computation, wanted)


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _program(form: Form, wanted: list[DType]) -> Result:
    """`precision(..., dtype)`: all that stands above in the text, up to the last expression."""
    from tensorcli.explain import rounding

    above = [n for n in ast.parse(form.source.text).body if n.lineno < form.node.lineno]
    if not above or not isinstance(above[-1], ast.Expr):
        raise TypeError("precision(...) explains the expression above it, and there is none")
    computation = rounding.Computation(form.source, above[:-1], above[-1].value, {}, {})
    found = rounding.explain(computation, wanted)
    if found is None:
        raise TypeError("precision() found no operation on floating-point tensors")
    return found


def _dtype(text: str, value: object) -> DType:
    from engine.dtypes import DType

    if not isinstance(value, DType):
        raise TypeError(f"precision() takes dtypes after the tensor, not '{text}'")
    return value


def _only_value(form: Form, frame: Frame) -> Any:
    if len(form.args) != 1 or form.keywords:
        raise TypeError(f"{form.name}() takes a tensor, {len(form.args)} arguments were given")
    return form.args[0].value(frame)


def _first(form: Form, frame: Frame) -> Any:
    if len(form.args) != 1:
        raise TypeError(f"{form.name}() takes one argument, {len(form.args)} were given")
    return form.args[0].value(frame)


def _as_tensor(value: object, form: Form) -> Tensor:
    """A tensor, or a number or a list of numbers as one."""
    from engine.registry import functions
    from engine.tensor import Tensor

    if isinstance(value, Tensor):
        return value
    if isinstance(value, int | float | bool | list | tuple):
        made: Tensor = functions["tensor"](value)
        return made
    kind = type(value).__name__
    raise TypeError(f"{form.name}() takes a tensor, '{form.args[0].text}' is a {kind}")


def _options(form: Form, frame: Frame, **defaults: Any) -> dict[str, Any]:
    """The values of a form's keywords; raises TypeError for others."""
    for name in form.keywords:
        if name not in defaults:
            raise TypeError(f"{form.name}() takes no keyword '{name}'")
    given = {name: argument.value(frame) for name, argument in form.keywords.items()}
    return {**defaults, **given}


SPECIAL_FORMS.update(
    why=_why,
    layout=_layout,
    bits=_bits,
    dtypes=_dtypes,
    summary=_summary,
    hist=_hist,
    plot=_plot,
    heatmap=_heatmap,
    precision=_precision,
)
