"""The modes that every operation looks at: gradient recording, inference, default dtype, site.

One writer each: the gradient modes are set by tape.py's contexts, ``site`` by whoever evaluates a
program, ``default_dtype`` by set_default_dtype.
"""

from __future__ import annotations

import os
from typing import Any

from engine import dtypes


class Kept:
    """Settings that programs may set and ask for, and that change no number; ``warned`` are the
    warnings given once for all."""

    __slots__ = (
        "deterministic", "matmul_precision", "threads", "warn_always", "warn_only", "warned",
    )  # fmt: skip

    def __init__(self) -> None:
        self.deterministic = False
        self.warn_only = False
        self.warn_always = False
        self.warned: set[str] = set()
        self.matmul_precision = "highest"
        self.threads = 1


class Modes:
    """``grad`` is false inside inference mode as well; ``site`` is opaque to the engine.

    ``check``: every result is verified against its rule. ``watch`` says that one of ``check``,
    ``inference`` and ``recording`` is on, so that the quick paths look at one flag.
    ``observe(node, g, gradients)``, where there is one, is told of each node that a backward pass
    went through, and graphs are kept. ``recording``, where there is one, is told what happens to
    arrays (engine/recording.py).
    """

    __slots__ = (
        "anomaly", "autocast", "autocast_cache", "check", "default_device", "default_dtype", "grad",
        "inference", "kept", "observe", "recording", "sequence", "site", "warn", "watch",
    )  # fmt: skip

    def __init__(self) -> None:
        self.check = bool(os.environ.get("TENSORCLI_CHECK"))
        self.warn: Any = None
        self.reset()

    def reset(self) -> None:
        """Back to the state of a fresh process."""
        self.grad = True
        self.inference = False
        self.watch = self.check
        self.site: Any = None
        self.sequence = 0
        self.default_dtype = dtypes.float32
        self.default_device: Any = None
        self.anomaly: Any = False
        self.autocast: Any = None
        self.autocast_cache = True
        self.observe: Any = None
        self.recording: Any = None
        self.kept = Kept()

    def snapshot(self) -> dict[str, Any]:
        """Everything as it is now, for ``restore``."""
        from copy import copy

        return {name: getattr(self, name) for name in self.__slots__} | {"kept": copy(self.kept)}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Everything as it was at the time of the snapshot."""
        for name, value in snapshot.items():
            setattr(self, name, value)

    def set_inference(self, on: bool) -> None:
        """Enter or leave inference mode (``grad`` is set by the caller)."""
        self.inference = on
        self._look()

    def set_recording(self, recording: Any) -> None:
        """Have what happens to arrays told to ``recording``; None ends it."""
        self.recording = recording
        self._look()

    def _look(self) -> None:
        self.watch = self.inference or self.check or self.recording is not None


state = Modes()


def warn(message: str, category: str = "UserWarning") -> None:
    """Pass a warning to whoever listens; the engine prints nothing."""
    if state.warn is not None:
        state.warn(message, category)


def warn_once(message: str) -> None:
    """As ``warn``, but the first time only, unless the program asked for every time."""
    if state.warn is not None and (state.kept.warn_always or message not in state.kept.warned):
        state.kept.warned.add(message)
        state.warn(message, "UserWarning")
