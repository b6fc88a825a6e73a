"""The explanations that follow values through a program: graph, explain_backward, check_grad …"""

from __future__ import annotations

from tensorcli.explain.arguments import refuse_arguments, tensor_argument
from tensorcli.language.forms import visible_names
from tensorcli.language.names import SPECIAL_FORMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tensorcli.language.compiling import Frame
    from tensorcli.language.forms import Form
    from tensorcli.results import Result


def _graph(form: Form, frame: Frame) -> Result:
    from tensorcli.explain import graph

    format = form.keywords.get("format") or (form.args[1] if len(form.args) == 2 else None)
    if format is None:
        tensor = tensor_argument(form, frame, exactly=1)
        return graph.explain(tensor, visible_names(frame), form.span.line)
    tensor = tensor_argument(form, frame, exactly=None, keywords=("format",))
    return graph.document(tensor, visible_names(frame), format.value(frame), form.span.line)


def _explain_backward(form: Form, frame: Frame) -> Result | None:
    from engine.errors import FreedGraphError
    from tensorcli.explain import again, steps

    tensor = tensor_argument(form, frame, exactly=1)
    runner = again.replay()
    if runner is None:
        return None
    argument, names, line = form.args[0], visible_names(frame), form.span.line
    source = form.source if len(runner.texts) == 1 else None
    try:
        return steps.explain(tensor, argument.text, names, source, line, rerun=False)
    except FreedGraphError:
        watcher = again.Upto(runner.texts, argument)
        again.run(watcher, runner)
        if not watcher.found:
            raise
    value, names = watcher.value, watcher.names
    return steps.explain(value, argument.text, names, source, line, rerun=True)


def _check_grad(form: Form, frame: Frame) -> Result | None:
    from tensorcli.explain import again, differences

    tensor = tensor_argument(form, frame, exactly=1)
    runner = again.replay()
    if runner is None:
        return None
    return differences.explain(tensor, form.args[0], runner, form.span.line)


def _trace_nan(form: Form, frame: Frame) -> Result | None:
    from tensorcli.explain import again, provenance

    tensor = tensor_argument(form, frame, exactly=1)
    runner = again.replay()
    if runner is None:
        return None
    return provenance.explain(tensor, form.args[0], runner, form.span.line)


def _shape(form: Form, frame: Frame) -> Any:
    from tensorcli.explain import dry

    refuse_arguments(form, most=None)
    if len(form.args) != 1:
        raise TypeError(f"shape() takes one expression, {len(form.args)} were given")
    return dry.shape(form.args[0], frame, form.span.line)


def _holes(form: Form, frame: Frame) -> Result:
    from tensorcli.explain import dry
    from tensorcli.language.holes import names_in

    argument = form.args[0]
    return dry.holes(argument, names_in(argument.node), frame, form.span.line)


SPECIAL_FORMS["?"] = _holes
SPECIAL_FORMS.update(
    graph=_graph,
    explain_backward=_explain_backward,
    check_grad=_check_grad,
    trace_nan=_trace_nan,
    shape=_shape,
)
