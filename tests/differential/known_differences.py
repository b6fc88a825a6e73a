"""The differences from PyTorch that are known, with their reasons; nothing else may differ.

An entry that no longer differs fails the suite, so that it goes when the difference goes.
"""

from __future__ import annotations

# "operator", "operator/dtype" (results and gradients) or "operator/refusal" (error samples).
KNOWN: dict[str, str] = {}

# In float16 and bfloat16 PyTorch rounds between the steps of these, we only at their end; values
# may be a few roundings of the largest one apart.
ROUNDED_BETWEEN: set[str] = set()


def reason(name: str, part: str) -> str | None:
    """Why that part of an operator differs, None if it must not."""
    return KNOWN.get(f"{name}/{part}") or (None if part == "refusal" else KNOWN.get(name))
