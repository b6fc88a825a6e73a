"""Guards for what Python does by recursion in C: comparing and hashing nested containers."""

from __future__ import annotations

from typing import Any

from tensorcli.language import limits

_NESTING = frozenset((list, tuple, dict, set, frozenset))
# C recursion of comparisons and hashes takes a few hundred bytes of stack a level.
DEEPEST = 5_000


def check_nested(value: object) -> None:
    """Charge for every container inside `value`, as often as it is reached, and bound their depth.

    Shared parts are counted each time: comparing and hashing walk them each time too.
    """
    if not isinstance(value, (list, tuple, dict, set, frozenset)):
        return
    meter = limits.meter()
    pending: list[tuple[Any, int]] = [(value, 1)]
    while pending:
        container, depth = pending.pop()
        parts = container.values() if type(container) is dict else container
        if _NESTING.isdisjoint(map(type, parts)):
            continue
        if depth > DEEPEST:
            limits.reached("depth", f"containers nested more than {DEEPEST} deep")
        inner = [part for part in parts if type(part) in _NESTING]
        meter.charge_steps(len(inner))
        pending.extend([(part, depth + 1) for part in inner])


def check_key(key: object) -> None:
    """Guard the hash of a dictionary key or set element."""
    if isinstance(key, (tuple, frozenset)):
        check_nested(key)
