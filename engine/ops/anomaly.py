"""Anomaly detection as contexts and functions; checkpoints, which need nothing kept apart here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.foreign import exchange
from engine.modes import state, warn
from engine.registry import function

if TYPE_CHECKING:
    from collections.abc import Callable


class DetectAnomaly:
    """Where a backward pass meets NaN it fails there; used as a context, or set for good."""

    __slots__ = ("before", "check_nan", "mode")

    def __init__(self, mode: bool, check_nan: bool):
        self.mode = mode
        self.check_nan = check_nan
        self.before = state.anomaly

    def __enter__(self) -> None:
        state.anomaly = _anomaly(self.mode, self.check_nan)

    def __exit__(self, *error: object) -> None:
        state.anomaly = self.before

    def __repr__(self) -> str:
        return f"<torch.autograd.anomaly_mode.detect_anomaly object at {id(self):#x}>"


def _anomaly(mode: bool, check_nan: bool) -> Any:
    """What the modes hold: False, "quiet" (no look-out for NaN), or True."""
    return (True if check_nan else "quiet") if mode else False


@function("autograd.detect_anomaly")
def detect_anomaly(check_nan: bool = True) -> DetectAnomaly:
    """A context in which a backward pass that makes NaN fails at the operation that did."""
    warn(
        "Anomaly Detection has been enabled. This mode will increase the runtime and should only "
        "be enabled for debugging."
    )
    return DetectAnomaly(True, check_nan)


@function("autograd.set_detect_anomaly")
def set_detect_anomaly(mode: bool, check_nan: bool = True) -> DetectAnomaly:
    """Set anomaly detection; as a context it is put back at the end."""
    context = DetectAnomaly(mode, check_nan)
    state.anomaly = _anomaly(mode, check_nan)
    return context


@function("is_anomaly_enabled")
def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on."""
    return bool(state.anomaly)


@function("is_anomaly_check_nan_enabled")
def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly detection looks out for NaN."""
    return bool(state.anomaly != "quiet")


@function("utils.checkpoint.checkpoint")
def checkpoint(
    function: Any,
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    determinism_check: str = "default",
    debug: bool = False,
    **kwargs: Any,
) -> Any:
    """``function(*args)``: what PyTorch computes twice to save memory is kept here."""
    if use_reentrant is None:
        warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. "
            "Starting in PyTorch 2.9, calling checkpoint without use_reentrant will raise an "
            "exception. use_reentrant=False is recommended, but if you need to preserve the "
            "current default behavior, you can pass use_reentrant=True. Refer to docs for more "
            "details on the differences between the two variants."
        )
    call: Callable[..., Any] = exchange.function(function)
    return call(*args, **kwargs)
