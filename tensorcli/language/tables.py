"""Puts the tables of builtins, methods and modules where names and attributes are looked up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import foreign, registry
from engine.dtypes import DType
from engine.modes import state
from engine.tensor import Tensor
from tensorcli.language import (
    attributes,
    builtins_table,
    file_functions,
    functions,
    limits,
    math_table,
    method_tables,
    names,
    namespaces,
    operators,
    torch_table,
    torch_values,
)
from tensorcli.language.running import now
from tensorcli.language.value_text import print_text

if TYPE_CHECKING:
    from collections.abc import Iterator


def print_(*args: Any, sep: Any = " ", end: Any = "\n", flush: Any = False, **unknown: Any) -> None:
    """The program's print: the text goes to whoever listens."""
    for name in unknown:
        raise TypeError(f"'{name}' is an invalid keyword argument for print()")
    text = print_text(args, sep, end)
    limits.meter().charge_output(len(text))
    line = state.site
    now.listener.print(text, line if isinstance(line, int) else 0)


# What Python's complaints about its arguments call it.
print_.__name__ = print_.__qualname__ = "print"


def _function_name(function: functions.Function) -> str:
    return function.name


def _wrap_array(array: Any) -> Any:
    """What a tensor's numpy() gives: programs see no bare array."""
    from tensorcli.language import numpy_table

    return numpy_table.adopt(array)


def _make_numpy() -> namespaces.Namespace:
    from tensorcli.language import numpy_table

    return namespaces.Namespace("numpy", numpy_table.NUMPY)


def _reword(error: TypeError, name: str, method: Any, given: int) -> None:
    from engine.method_complaints import reword  # imported when a call has failed

    reword(error, name, method, given)


# Modules that are there without an import, as the tutorials' first lines would have it.
ALWAYS_THERE = {"torch": "torch", "F": "torch.nn.functional", "np": "numpy", "math": "math"}


class Modules(dict[str, Any]):
    """Name -> module, made when the name is first asked for."""

    def __missing__(self, name: str) -> Any:
        if name not in ALWAYS_THERE:
            raise KeyError(name)
        found = self[name] = namespaces.module(ALWAYS_THERE[name])
        return found

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in ALWAYS_THERE else default

    def __iter__(self) -> Iterator[str]:
        return iter(ALWAYS_THERE)


def install() -> None:
    """Fill the tables; once, when the language is first imported."""
    names.BUILTINS.update(builtins_table.BUILTINS)
    names.BUILTINS.update(builtins_table.attribute_functions(attributes.attribute))
    names.BUILTINS["print"] = print_
    functions.GUARDED_CALLS.update(builtins_table.GUARDED_CALLS)
    attributes.METHODS.update(method_tables.METHODS)
    attributes.ATTRIBUTES.update(method_tables.ATTRIBUTES)
    attributes.ATTRIBUTES[functions.Function] = {"__name__": _function_name}
    attributes.METHODS.update(torch_values.METHODS)
    attributes.ATTRIBUTES.update(torch_values.ATTRIBUTES)
    attributes.METHODS[Tensor] = registry.methods
    attributes.ATTRIBUTES[Tensor] = registry.attributes
    attributes.SETTERS[Tensor] = registry.setters
    attributes.OWNERS[Tensor] = "torch._C.TensorBase"
    attributes.COMPLAINTS[Tensor] = _reword
    operators.SAFE.update((Tensor, DType))
    namespaces.register("math", lambda: namespaces.Namespace("math", math_table.MATH))
    namespaces.register("numpy", _make_numpy)
    foreign.exchange.wrap = _wrap_array
    foreign.exchange.function = functions.caller
    names.BARE_NAMES.append(Modules())
    names.BARE_NAMES.append(file_functions.BARE)
    torch_table.install(names.BARE_NAMES)


install()
