"""Ops with several signatures under one name, and PyTorch's complaint when none fits.

Every complaint comes in two wordings: a method counts and lists its arguments without the tensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import signature
from engine.signature import ArgumentError, Parameter, bind, type_name
from engine.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable


def no_overload(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], overloads: tuple[str, ...]
) -> ArgumentError:
    """The error for arguments that fit none of ``overloads``, PyTorch's own signature texts."""
    error = ArgumentError(_listing(name, args, kwargs, overloads))
    if any("Tensor input" in text for text in overloads):  # else a method's own texts
        error.as_method = _listing(name, args[1:], kwargs, _of_method(overloads))
    return error


def texts_of(name: str) -> tuple[str, ...]:
    """The signatures of an operation that has several, none for one that has not."""
    # Imported when a call has failed: no process that runs well pays for these texts.
    from engine.overload_texts import SIGNATURES

    return SIGNATURES.get(name) or SIGNATURES.get(name.removesuffix("_"), ())


def _listing(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], overloads: tuple[str, ...]
) -> str:
    got = [_described(a) for a in args] + [f"{k}={_described(v)}" for k, v in kwargs.items()]
    if len(overloads) == 1 and len(_pieces(overloads[0])) == len(got):
        got = _marked(overloads[0], args, kwargs)
    if kwargs and not args:
        got.append("")  # a trailing comma, as PyTorch has it there
    start = f"{name}() received an invalid combination of arguments - got ({', '.join(got)}), but "
    if len(overloads) == 1:
        return f"{start}expected {overloads[0]}"
    listed = "".join(f" * {text}\n{_reason(text, args, kwargs)}" for text in overloads)
    return f"{start}expected one of:\n{listed}"


def _of_method(overloads: tuple[str, ...]) -> tuple[str, ...]:
    """The signatures of the method: without the tensor and without ``out``."""
    kept = [t for t in overloads if "Tensor input" in t and "out_dtype" not in t]
    return tuple([_without_tensor(t) for t in kept]) or overloads


def _without_tensor(text: str) -> str:
    text = text.replace("Tensor input, ", "", 1).replace("(Tensor input)", "()")
    for out in ("*, Tensor out = None)", "*, tuple of Tensors out = None)", "Tensor out = None)"):
        if text.endswith(out):
            text = text.removesuffix(out).removesuffix(", ") + ")"
    return text


def _pieces(text: str) -> list[str]:
    return text[1:-1].split(", ")


def _reason(text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Why a signature of as many parameters as there are arguments did not fit."""
    pieces = _pieces(text)
    if len(pieces) != len(args) + len(kwargs):
        return ""
    names = {p.partition(" = ")[0].rpartition(" ")[2] for p in pieces}
    unknown = [k for k in kwargs if k not in names]
    if unknown:
        return (
            "      didn't match because some of the keywords were incorrect: "
            f"{', '.join(unknown)}\n"
        )
    marked = ", ".join(_marked(text, args, kwargs)) + (", " if kwargs and not args else "")
    return f"      didn't match because some of the arguments have invalid types: ({marked})\n"


def _marked(text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """The arguments' types, those that do not fit between exclamation marks."""
    kinds = [p.partition(" = ")[0].rpartition(" ")[0] for p in _pieces(text)]
    named = {
        p.partition(" = ")[0].rpartition(" ")[2]: k
        for p, k in zip(_pieces(text), kinds, strict=True)
    }
    given = [("", a, kind) for a, kind in zip(args, kinds, strict=False)]
    given += [(f"{k}=", v, named.get(k, "")) for k, v in kwargs.items()]
    return [
        f"{start}{_contents(v)}" if type_name(v) == kind else f"!{start}{_contents(v)}!"
        for start, v, kind in given
    ]


def _described(value: Any) -> str:
    return "Tensor" if isinstance(value, Tensor) else type_name(value)


def _contents(value: Any) -> str:
    """The type with the types inside: "list of [int]"."""
    if value.__class__ not in (tuple, list):
        return _described(value)
    inside = ", ".join(_described(v) for v in value)
    if value.__class__ is list:
        return f"list of [{inside}]"
    return f"tuple of ({inside}{',' if len(value) == 1 else ''})"


def _fits_count(text: str, count: int) -> bool:
    pieces = [p for p in _pieces(text) if p not in ("", "*")]
    return sum(" = " not in p for p in pieces) <= count <= len(pieces)


def _sentence(
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    overloads: tuple[str, ...],
    plain: str,
) -> str:
    """PyTorch complains plainly where one signature only takes as many arguments."""
    count = len(args) + len(kwargs)
    if sum(_fits_count(text, count) for text in overloads) == 1:
        return plain
    return _listing(name, args, kwargs, overloads)


def reworded(
    error: ArgumentError,
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    overloads: tuple[str, ...] = (),
) -> ArgumentError:
    """A complaint about one signature, as it reads where there are several."""
    overloads = overloads or texts_of(name)
    if not overloads:
        return error
    alone = _of_method(overloads)
    only = len(alone) == 1 < len(overloads) and "Number beta" not in alone[0]
    plain = str(error)
    told = ArgumentError(_sentence(name, args, kwargs, overloads, plain), error.parameter)
    method = error.as_method or plain
    told.as_method = method if only else _sentence(name, args[1:], kwargs, alone, method)
    return told


signature.use_rewording(reworded)


def bind_overloaded(
    name: str,
    parameters: tuple[Parameter, ...],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    overloads: tuple[str, ...],
) -> list[Any]:
    """As ``bind``; what does not fit is refused with the list of overloads, if there are any."""
    try:
        return bind(name, parameters, args, kwargs)
    except ArgumentError as error:
        if overloads and error.parameter not in (parameters[0].name, "keepdim"):
            raise reworded(error, name, args, kwargs, overloads) from None
        raise


def first_that_binds(
    name: str,
    candidates: list[Callable[..., Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    overloads: tuple[str, ...],
) -> Any:
    """Call the first of ``candidates`` whose parameters take the arguments."""
    first: ArgumentError | None = None
    for candidate in candidates:
        try:
            return candidate(*args, **kwargs)
        except ArgumentError as error:
            first = first or error
    if first is not None and first.parameter == "input" and len(args) + len(kwargs) < 2:
        raise first
    raise no_overload(name, args, kwargs, overloads)
