"""All operations, one module per family; a family is imported when one of its names is asked for.

``index`` says which module defines a name; it is generated (scripts/generate) and a test holds it
to the truth.
"""

from __future__ import annotations

from typing import Any

from engine import operators, registry
from engine.ops import index
from engine.tensor import Tensor

_TABLES = {
    table: {name: module for module, names in listed.items() for name in names.split()}
    for table, listed in (
        ("FUNCTIONS", index.FUNCTIONS),
        ("METHODS", index.METHODS),
        ("ATTRIBUTES", index.ATTRIBUTES),
        ("OPS", index.OPS),
    )
}


def load(table: str, name: str) -> bool:
    """Import the module that defines ``name``; whether there is one."""
    module = _TABLES[table].get(name)
    if module is None:
        return False
    __import__(f"engine.ops.{module}")
    return True


def load_all() -> None:
    """Import every family, for those who need all records."""
    for module in {m for table in _TABLES.values() for m in table.values()}:
        __import__(f"engine.ops.{module}")


# Defined by engine.ops.exchange, which is imported when the first of them is used.
_PROTOCOLS = "len iter bool int float complex index contains repr format reversed"


def _first_use(name: str) -> Any:
    def first_use(x: Tensor, *args: Any) -> Any:
        __import__("engine.ops.exchange")  # which puts the real ones in the place of these
        return getattr(Tensor, name)(x, *args)

    return first_use


registry.use_loader(load, _TABLES.__getitem__)
for _protocol in _PROTOCOLS.split():
    setattr(Tensor, f"__{_protocol}__", _first_use(f"__{_protocol}__"))
registry.install(_TABLES["METHODS"], _TABLES["ATTRIBUTES"])
operators.install()
