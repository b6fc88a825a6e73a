"""Nested tuples, lists and dicts of values taken apart and put together again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Tree:
    """The form of a nested value: ``kind`` is its container's type, None for a leaf."""

    __slots__ = ("keys", "kind", "parts")

    def __init__(self, kind: Any = None, parts: tuple[Tree, ...] = (), keys: Any = None):
        self.kind = kind
        self.parts = parts
        self.keys = keys

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Tree)
            and self.kind is other.kind
            and self.keys == other.keys
            and self.parts == other.parts
        )

    __hash__ = None  # type: ignore[assignment]  # nobody keeps forms in a set

    def __repr__(self) -> str:
        return f"TreeSpec({self._text(0)})"

    def _text(self, indent: int) -> str:
        """The form as PyTorch's complaints show it, one part a line."""
        if self.kind is None:
            return "*"
        inner = self.parts[0]._text(indent + 2) if self.parts else ""
        for part in self.parts[1:]:
            inner += f",\n{' ' * (indent + 2)}{part._text(indent + 2)}"
        return f"{self.kind.__name__}, {self.keys!r}, [{inner}]"

    def short(self) -> str:
        """The form as a value with stars for leaves."""
        if self.kind is None:
            return "*"
        parts = [part.short() for part in self.parts]
        if self.kind is dict:
            return f"{{{', '.join(f'{k!r}: {p}' for k, p in zip(self.keys, parts, strict=True))}}}"
        if self.kind is list:
            return f"[{', '.join(parts)}]"
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


LEAF = Tree()


def flatten(value: Any) -> tuple[list[Any], Tree]:
    """The leaves of ``value`` in order, and its form; dicts go by their keys in order."""
    leaves: list[Any] = []
    return leaves, _take_apart(value, leaves)


def _take_apart(value: Any, leaves: list[Any]) -> Tree:
    kind = type(value)
    if kind is tuple or kind is list or hasattr(kind, "_fields"):
        return Tree(kind, tuple([_take_apart(part, leaves) for part in value]))
    if kind is dict:
        keys = list(value)
        return Tree(dict, tuple([_take_apart(value[key], leaves) for key in keys]), keys)
    leaves.append(value)
    return LEAF


def build(form: Tree, leaves: Any) -> Any:
    """The value of that form with those leaves."""
    return _put_together(form, iter(leaves))


def _put_together(form: Tree, leaves: Iterator[Any]) -> Any:
    if form.kind is None:
        return next(leaves)
    parts = [_put_together(part, leaves) for part in form.parts]
    if form.kind is dict:
        return dict(zip(form.keys, parts, strict=True))
    if form.kind is tuple or form.kind is list:
        return form.kind(parts)
    return form.kind(*parts) if hasattr(form.kind, "_fields") else form.kind(parts)


def mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """``value`` with ``change`` applied to its leaves."""
    leaves, form = flatten(value)
    return build(form, [change(leaf) for leaf in leaves])


def spread(value: Any, form: Tree) -> list[Any] | None:
    """One entry per leaf of ``form``: ``value`` has that form, or stands at the root of a part of
    it and holds for all leaves there. None where it fits neither way."""
    if form.kind is None or not isinstance(value, (tuple, list, dict)):
        if form.kind is None and isinstance(value, (tuple, list, dict)):
            return None
        return [value] * count(form)
    items = list(value.values()) if isinstance(value, dict) else list(value)
    if type(value) is not form.kind or len(items) != len(form.parts):
        return None
    found: list[Any] = []
    for item, part in zip(items, form.parts, strict=True):
        below = spread(item, part)
        if below is None:
            return None
        found += below
    return found


def count(form: Tree) -> int:
    """How many leaves a form has."""
    return 1 if form.kind is None else sum(count(part) for part in form.parts)
