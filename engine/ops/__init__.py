"""All operations, one module per family; a family is imported when one of its names is asked for.

``index`` says which module defines a name; it is generated (scripts/generate) and a test holds it
to the truth.
"""

from __future__ import annotations

from engine import operators, registry
from engine.ops import index

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


registry.use_loader(load)
registry.install(_TABLES["METHODS"], _TABLES["ATTRIBUTES"])
operators.install()
