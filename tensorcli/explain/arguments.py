"""The arguments of explanations: a tensor first, and complaints about everything else."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from engine.tensor import Tensor
    from tensorcli.language.compiling import Frame
    from tensorcli.language.forms import Form


def tensor_argument(
    form: Form, frame: Frame, exactly: int | None, keywords: tuple[str, ...] = ()
) -> Tensor:
    """The first argument, which must be a tensor."""
    from engine.tensor import Tensor

    if not form.args or (exactly is not None and len(form.args) != exactly):
        takes = "a tensor" if exactly is not None else "a tensor and dtypes"
        raise TypeError(f"{form.name}() takes {takes}, {len(form.args)} arguments were given")
    refuse_arguments(form, most=None, keywords=keywords)
    value = form.args[0].value(frame)
    if not isinstance(value, Tensor):
        kind = type(value).__name__
        raise TypeError(f"{form.name}() explains a tensor, '{form.args[0].text}' is a {kind}")
    return value


def refuse_arguments(form: Form, most: int | None, keywords: tuple[str, ...] = ()) -> None:
    """Complain of keywords that are not among those, and of more arguments than `most`."""
    for name in form.keywords:
        if name not in keywords:
            raise TypeError(f"{form.name}() takes no keyword '{name}'")
    if most is not None and len(form.args) > most:
        raise TypeError(f"{form.name}() takes no arguments")
