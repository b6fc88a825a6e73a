"""Which value a name has that the user has not bound: the tables, in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tensorcli.language.compiling import Frame
    from tensorcli.language.forms import Form


class Missing:
    """Stands for no value."""

    __slots__ = ()


MISSING = Missing()

# Searched in this order: Python's builtins, then bare torch names. Special forms come between
# them, but are recognised only where they are called.
BUILTINS: dict[str, object] = {"__name__": "__main__"}
BARE_NAMES: list[Mapping[str, object]] = []
SPECIAL_FORMS: dict[str, Callable[[Form, Frame], Any]] = {}


def lookup(name: str) -> object:
    """The value of a name that the program did not bind, or MISSING."""
    value = BUILTINS.get(name, MISSING)
    if value is MISSING and name not in SPECIAL_FORMS:
        for table in BARE_NAMES:
            value = table.get(name, MISSING)
            if value is not MISSING:
                break
    return value


def known_names() -> Iterator[str]:
    """Every name that has a meaning before the program binds any."""
    yield from BUILTINS
    yield from SPECIAL_FORMS
    for table in BARE_NAMES:
        yield from table
