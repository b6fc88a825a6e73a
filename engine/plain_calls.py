"""Plain functions that complain about arguments as operations do, which bind theirs.

They are called as they are; only once a call has failed are its arguments looked at, so that a
call that goes well pays no more than a frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import EngineError
from engine.signature import ArgumentError, Parameter, parameters_of, type_name, wrong
from engine.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

# What PyTorch has written in Python fails there as it fails here: inside.
_IN_PYTHON = ("autograd.", "func.", "nn.", "optim.", "random.", "set_rng_state", "utils.")
_TENSORS = ("Tensor", "Tensor | None")


def complaining(name: str, body: Callable[..., Any]) -> Callable[..., Any]:
    """``body``, or a function that does the same and names an argument that is no tensor."""
    code = getattr(body, "__code__", None)
    if code is None or name.startswith(_IN_PYTHON):
        return body
    names = code.co_varnames[: code.co_argcount]
    notes = body.__annotations__
    wanted = {n: at for at, n in enumerate(names) if notes.get(n) in _TENSORS}
    if not wanted:
        return body

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return body(*args, **kwargs)
        except (AttributeError, TypeError) as error:
            if isinstance(error, EngineError):
                raise
            given = {**dict(zip(names, args, strict=False)), **kwargs}
            for parameter, at in wanted.items():
                value = given.get(parameter)
                if value is None and (parameter not in given or "None" in notes[parameter]):
                    continue
                if not isinstance(value, Tensor):
                    raise _no_tensor(name, body, parameter, at, at < len(args), value) from None
            raise

    call.__name__ = body.__name__
    call.__qualname__ = body.__qualname__
    call.__doc__ = body.__doc__
    call.__module__ = body.__module__
    call.__wrapped__ = body  # type: ignore[attr-defined]  # functions take attributes
    return call


# Functions of a tensor and sizes or dimensions: only their methods take these one by one.
_GATHERED = {
    "broadcast_to": "size",
    "flip": "dims",
    "permute": "dims",
    "reshape": "shape",
    "tile": "dims",
}


def gathering(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """``call``, or one that refuses integers where the function wants a tuple of them.

    The engine itself calls what is behind it, under ``spreading``.
    """
    parameter = _GATHERED.get(name)
    if parameter is None:
        return call

    def gathered(*args: Any, **kwargs: Any) -> Any:
        if len(args) > 1:
            if len(args) > 2:
                raise ArgumentError(
                    f"{name}() takes 2 positional arguments but {len(args)} were given"
                )
            if args[1].__class__ is int:
                found = Parameter(parameter, "Shape", None, False)
                raise wrong(name, found, 2, "tuple of ints", args[1])
        return call(*args, **kwargs)

    gathered.__name__ = name
    gathered.__doc__ = call.__doc__
    gathered.spreading = call  # type: ignore[attr-defined]  # functions take attributes
    return gathered


def _no_tensor(
    name: str, body: Callable[..., Any], parameter: str, at: int, positional: bool, value: Any
) -> Exception:
    found = next(p for p in parameters_of(body) if p.name == parameter)
    if found.name == "x":
        found.name = "input"
    return wrong(name, found, at + 1 if positional else 0, "Tensor", value)


def check_tensor(name: str, parameter: str, position: int, value: Any) -> None:
    """Refuse an argument of a function that is no tensor; a method counts one less."""
    if not isinstance(value, Tensor):
        raise wrong(name, Parameter(parameter, "Tensor", None, False), position, "Tensor", value)


def check_tensors(values: Any) -> None:
    """Refuse a sequence of arguments with one that is no tensor."""
    for at, value in enumerate(values):
        if not isinstance(value, Tensor):
            raise ArgumentError(
                f"expected Tensor as element {at} in argument 0, but got {type_name(value)}"
            )
