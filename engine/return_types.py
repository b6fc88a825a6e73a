"""Named tuples such as ``torch.return_types.max``: tuples with field names and PyTorch's text."""

from __future__ import annotations

from typing import Any


class Named(tuple[Any, ...]):
    """A tuple whose parts have names; ``type_name`` is "max", ``fields`` ("values", "indices")."""

    __slots__ = ()

    type_name = ""
    fields: tuple[str, ...] = ()
    _fields: tuple[str, ...] = ()

    def field(self, name: str) -> Any:
        """The part of that name. Raises KeyError."""
        if name not in self.fields:
            raise KeyError(name)
        return self[self.fields.index(name)]

    def __getattr__(self, name: str) -> Any:
        if name in self.fields:
            return self[self.fields.index(name)]
        raise AttributeError(name)

    def __repr__(self) -> str:
        parts = ",\n".join(f"{n}={v!r}" for n, v in zip(self.fields, self, strict=True))
        return f"torch.return_types.{self.type_name}(\n{parts})"


_types: dict[tuple[str, tuple[str, ...]], type[Named]] = {}


def named(name: str, fields: tuple[str, ...]) -> type[Named]:
    """The return type of that name and those fields."""
    found = _types.get((name, fields))
    if found is None:
        found = _types[name, fields] = type(
            f"torch.return_types.{name}",
            (Named,),
            {"__slots__": (), "type_name": name, "fields": fields, "_fields": fields},
        )
    return found
