"""Modules as the program sees them: names with tables behind them; knows no Python module."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Namespace:
    """A module of the language, such as `torch.nn.functional`: a name and a table, nothing else.

    The table is a plain mapping from names to values; what is not in it does not exist.
    """

    __slots__ = ("name", "table")

    def __init__(self, name: str, table: Mapping[str, object]) -> None:
        self.name = name
        self.table = table

    def __repr__(self) -> str:
        return f"<module '{self.name}'>"


# Dotted module name -> a function that makes its Namespace. Whoever owns a table registers it; it
# is made on the first import of that name, so a program that never says numpy never pays for it.
MODULES: dict[str, Callable[[], Namespace]] = {}
_made: dict[str, Namespace] = {}


def register(name: str, make: Callable[[], Namespace]) -> None:
    """Let programs import `name`; `make` is called on its first use."""
    MODULES[name] = make
    _made.pop(name, None)


def module(name: str) -> Namespace | None:
    """The namespace of that dotted name, or None if there is no such module."""
    found = _made.get(name)
    if found is None:
        make = MODULES.get(name)
        if make is None:
            return None
        found = _made[name] = make()
    return found
