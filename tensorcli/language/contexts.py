"""Context managers and decorators by a table keyed by type; knows no `with` statement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorcli.language.attributes import type_name
from tensorcli.language.functions import Function, call, callable_for

if TYPE_CHECKING:
    from collections.abc import Callable


class ContextKind:
    """How values of one type are entered and left; `fresh` makes one that was not entered yet."""

    __slots__ = ("enter", "fresh", "leave")

    def __init__(
        self,
        enter: Callable[[Any], Any],
        leave: Callable[[Any], None],
        fresh: Callable[[Any], Any] | None = None,
    ) -> None:
        self.enter = enter
        self.leave = leave
        self.fresh = fresh


CONTEXTS: dict[type, ContextKind] = {}


def find_kind(kind: type) -> ContextKind | None:
    """How values of a type are entered and left: the engine's contexts are taken as they are."""
    found = CONTEXTS.get(kind)
    if found is None and kind.__module__.startswith("engine.") and hasattr(kind, "__enter__"):
        found = CONTEXTS[kind] = engine_kind(kind)
    return found


def engine_kind(kind: Any) -> ContextKind:
    def leave(value: Any) -> None:
        kind.__exit__(value, None, None, None)

    return ContextKind(kind.__enter__, leave, getattr(kind, "clone", None))


def kind_of(value: object) -> ContextKind:
    """How a value is entered and left; raises TypeError where it is no context manager."""
    kind = find_kind(type(value))
    if kind is None:
        raise TypeError(
            f"'{type_name(value)}' object does not support the context manager protocol"
        )
    return kind


def decorate(wrapper: Any, function: Any) -> Any:
    """`@wrapper` over a function: gradient modes and the program's own functions can be one."""
    if isinstance(function, Function):
        if isinstance(wrapper, type) and find_kind(wrapper) is not None:
            make = callable_for(wrapper)
            # `@torch.no_grad` without parentheses means what it means with them.
            wrapper = wrapper() if make is None else make()
        kind = find_kind(type(wrapper))
        if kind is not None:
            # A mode that was set when it was made (set_grad_enabled) is put back here.
            kind.enter(wrapper)
            kind.leave(wrapper)
            function.contexts = (opener(wrapper, kind), *function.contexts)
            return function
    return call(wrapper, (function,), {})


def opener(wrapper: Any, kind: ContextKind) -> Callable[[], Callable[[], None]]:
    """Enters a fresh context on each call and gives what leaves it: calls may nest."""

    def enter() -> Callable[[], None]:
        context = wrapper if kind.fresh is None else kind.fresh(wrapper)
        own = kind_of(context)
        own.enter(context)
        return lambda: own.leave(context)

    return enter
