"""Three renderings of the same results; only rich.py may import rich."""

from __future__ import annotations
