"""Gradient modes as context managers, decorators and functions; the one writer of the modes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import TensorTypeError
from engine.modes import state
from engine.registry import function

if TYPE_CHECKING:
    from collections.abc import Callable


class GradMode:
    """Sets (grad, inference) on entry and puts back what was there on exit.

    ``wanted`` None leaves a flag as it is. Used as a decorator, every call enters a clone.
    """

    __slots__ = ("held", "inference", "wanted")

    def __init__(self, wanted: bool | None, inference: bool | None = None):
        self.wanted = wanted
        self.inference = inference
        self.held: list[tuple[bool, bool]] = []

    def clone(self) -> GradMode:
        """One that has not been entered."""
        return GradMode(self.wanted, self.inference)

    def __enter__(self) -> None:
        self.held.append((state.grad, state.inference))
        _set(self.wanted, self.inference)

    def __exit__(self, *error: object) -> None:
        _set(*self.held.pop())

    def __call__(self, body: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return body(*args, **kwargs)

        return wrapped


class no_grad(GradMode):  # noqa: N801 - PyTorch's spelling
    """Nothing is recorded inside."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(False)

    def clone(self) -> GradMode:
        return no_grad()


class enable_grad(GradMode):  # noqa: N801
    """Operations are recorded inside, also within no_grad."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(True)

    def clone(self) -> GradMode:
        return enable_grad()


class inference_mode(GradMode):  # noqa: N801
    """Nothing is recorded and results have no version counter; ``mode=False`` undoes it."""

    __slots__ = ("mode",)

    def __init__(self, mode: Any = True):
        self.mode = mode
        super().__init__(not mode, bool(mode))

    def clone(self) -> GradMode:
        return inference_mode(self.mode)


class set_grad_enabled(GradMode):  # noqa: N801
    """Sets the mode at once; as a context manager puts it back at the end."""

    __slots__ = ("before",)

    def __init__(self, mode: Any):
        if mode.__class__ is not bool:
            raise TensorTypeError(
                "set_grad_enabled(): argument 'enabled' (position 1) must be bool, not "
                f"{type(mode).__name__}"
            )
        super().__init__(mode)
        self.before = (state.grad, state.inference)
        _set(mode, None)

    def clone(self) -> GradMode:
        return GradMode(self.wanted)

    def __enter__(self) -> None:
        self.held.append(self.before)
        _set(self.wanted, None)

    def __call__(self, body: Callable[..., Any]) -> Callable[..., Any]:
        _set(*self.before)
        return super().__call__(body)


def _set(grad: bool | None, inference: bool | None) -> None:
    if inference is not None:
        state.set_inference(inference)
    if grad is not None:
        state.grad = grad and not state.inference


function("no_grad", "autograd.no_grad", "autograd.grad_mode.no_grad")(no_grad)
function("enable_grad", "autograd.enable_grad", "autograd.grad_mode.enable_grad")(enable_grad)
function("inference_mode", "autograd.inference_mode", "autograd.grad_mode.inference_mode")(
    inference_mode
)
function("set_grad_enabled", "autograd.set_grad_enabled", "autograd.grad_mode.set_grad_enabled")(
    set_grad_enabled
)


@function("is_grad_enabled")
def is_grad_enabled() -> bool:
    """Whether operations are recorded now."""
    return state.grad


@function("is_inference_mode_enabled")
def is_inference_mode_enabled() -> bool:
    """Whether inference mode is on."""
    return state.inference
