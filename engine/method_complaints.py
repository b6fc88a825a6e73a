"""Complaints about a method's arguments in the words PyTorch has for methods.

An operation is one function here, called as ``torch.add(x, y)`` and as ``x.add(y)``; whoever calls
it as a method has the complaint reworded afterwards, so that a call that goes well pays nothing.
"""

from __future__ import annotations

from typing import Any

from engine.signature import ArgumentError

# Methods that PyTorch has written in Python: they count the tensor, and have another name.
_IN_PYTHON = frozenset(
    "backward istft lu norm register_hook split stft unflatten unique unique_consecutive".split()
)


def reword(error: TypeError, name: str, method: Any, given: int) -> None:
    """Let ``error`` say what is wrong with a call of the tensor method ``name``.

    ``given`` counts the positional arguments, the tensor not among them. Only complaints about
    this very call are reworded.
    """
    text = str(error)
    if error.__class__ is ArgumentError:
        if name in _IN_PYTHON and text.startswith((f"{name}() takes", f"{name}() got an")):
            error.args = (f"Tensor.{text}",)
        elif text.startswith(f"{name}()") and error.as_method:
            error.args = (error.as_method,)
        return
    trace = error.__traceback__
    code = getattr(method, "__code__", None)
    if code is None or trace is None or trace.tb_next is not None:
        return  # raised inside the method, not by the call of it
    _, found, complaint = text.partition("() ")
    if not found:
        return
    if name in _IN_PYTHON:
        error.args = (f"Tensor.{name}() {complaint}",)
    elif complaint.startswith("takes"):
        error.args = (_takes(name, method, given),)
    else:
        error.args = (f"{name}() {complaint}",)


def _takes(name: str, method: Any, given: int) -> str:
    code = method.__code__
    most = code.co_argcount - 1
    least = most - len(method.__defaults__ or ())
    if not most and not code.co_kwonlyargcount:
        return f"TensorBase.{name}() takes no arguments ({given} given)"
    count = f"{most} positional argument{'s' if most != 1 else ''}"
    if least != most:
        count = f"from {least} to {most} positional arguments"
    return f"{name}() takes {count} but {given} {'was' if given == 1 else 'were'} given"
