"""The language: source, check, closures, names and limits; imports nothing by itself."""

from __future__ import annotations
