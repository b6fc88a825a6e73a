"""From values to explanations: results that say why; knows the engine, renders nothing."""

from __future__ import annotations
