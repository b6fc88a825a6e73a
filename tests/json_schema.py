"""As much of JSON Schema as the schema file uses; knows nothing of tensorcli."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PATH = Path(__file__).resolve().parent.parent / "tensorcli" / "render" / "schema_1.json"
SCHEMA: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))

TYPES: dict[str, Any] = {
    "null": type(None),
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "string": str,
    "array": list,
    "object": dict,
}

KNOWN = {
    "$ref", "$defs", "$schema", "title", "description", "type", "const", "enum", "oneOf", "allOf",
    "properties", "required", "additionalProperties", "items",
}  # fmt: skip


def mistakes(value: Any, rule: dict[str, Any] = SCHEMA, path: str = "record") -> list[str]:
    """What in a value is not as the rule says; an empty list where it is valid."""
    assert set(rule) <= KNOWN, set(rule) - KNOWN
    if "$ref" in rule:
        return mistakes(value, SCHEMA["$defs"][rule["$ref"].rpartition("/")[2]], path)
    found = [m for part in rule.get("allOf", []) for m in mistakes(value, part, path)]
    if "oneOf" in rule:
        tries = [mistakes(value, part, path) for part in rule["oneOf"]]
        if sum(not one for one in tries) != 1:
            found.append(f"{path}: {sum(not one for one in tries)} alternatives fit: {tries}")
    if "type" in rule and not _has_type(value, rule["type"]):
        return [*found, f"{path}: {value!r} is no {rule['type']}"]
    if ("const" in rule and value != rule["const"]) or value not in rule.get("enum", [value]):
        found.append(f"{path}: {value!r} is not what it must be")
    if isinstance(value, list) and "items" in rule:
        for i, item in enumerate(value):
            found += mistakes(item, rule["items"], f"{path}[{i}]")
    if isinstance(value, dict):
        found += _member_mistakes(value, rule, path)
    return found


def _member_mistakes(value: dict[str, Any], rule: dict[str, Any], path: str) -> list[str]:
    properties = rule.get("properties", {})
    found = [f"{path}: no {name}" for name in rule.get("required", []) if name not in value]
    if rule.get("additionalProperties") is False:
        found += [f"{path}: {name} is unknown" for name in value if name not in properties]
    for name, part in properties.items():
        if name in value:
            found += mistakes(value[name], part, f"{path}.{name}")
    return found


def _has_type(value: Any, names: str | list[str]) -> bool:
    for name in [names] if isinstance(names, str) else names:
        if isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool)):
            return True
    return False
