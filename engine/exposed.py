"""Tables of what programs may see of values that are no tensors: attributes, methods, setters.

Keyed by type, entered by whoever defines the type; a program that embeds the engine looks names
up here and nowhere else. It imports nothing, so that every layer may enter its types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ATTRIBUTES: dict[type, Mapping[str, Callable[[Any], Any]]] = {}
METHODS: dict[type, Mapping[str, Callable[..., Any]]] = {}
SETTERS: dict[type, Mapping[str, Callable[[Any, Any], None]]] = {}
# Python's class -> what `type(value)` is for programs, where one class serves several types.
TYPES: dict[type, Callable[[Any], type]] = {}


def expose(
    kind: type,
    *,
    attributes: Mapping[str, Callable[[Any], Any]] | None = None,
    methods: Mapping[str, Callable[..., Any]] | None = None,
    setters: Mapping[str, Callable[[Any, Any], None]] | None = None,
) -> None:
    """Let programs see these names of values of that type."""
    if attributes is not None:
        ATTRIBUTES[kind] = attributes
    if methods is not None:
        METHODS[kind] = methods
    if setters is not None:
        SETTERS[kind] = setters
