"""Ops with several signatures under one name, and PyTorch's complaint when none fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.signature import ArgumentError, Parameter, bind, type_name
from engine.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable


def no_overload(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], overloads: tuple[str, ...]
) -> ArgumentError:
    """The error for arguments that fit none of ``overloads``, PyTorch's own signature texts."""
    got = [_described(a) for a in args] + [f"{k}={_described(v)}" for k, v in kwargs.items()]
    if kwargs and not args:
        got.append("")  # a trailing comma, as PyTorch has it there
    listed = "".join(f" * {signature}\n" for signature in overloads)
    return ArgumentError(
        f"{name}() received an invalid combination of arguments - got ({', '.join(got)}), but "
        f"expected one of:\n{listed}"
    )


def _described(value: Any) -> str:
    if isinstance(value, Tensor):
        return "Tensor"
    if isinstance(value, (tuple, list)) and value:
        inside = ", ".join(type_name(v) for v in value)
        return f"{type(value).__name__} of ({inside}{',' if len(value) == 1 else ''})"
    return type_name(value)


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
            raise no_overload(name, args, kwargs, overloads) from None
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
