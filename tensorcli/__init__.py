"""The command line of tensorcli; importing it loads nothing, so that --version is instant."""

from __future__ import annotations

__version__ = "0.1.0"
