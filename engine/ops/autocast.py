"""torch.autocast as context manager and decorator, its switches, and GradScaler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import dtypes
from engine.autocasting import forget_casts
from engine.device import device
from engine.errors import TensorRuntimeError
from engine.exposed import expose
from engine.modes import state, warn
from engine.optimising import Optimizer
from engine.registry import F, function
from engine.signature import ArgumentError, type_name
from engine.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.dtypes import DType

_LOW = (dtypes.bfloat16, dtypes.float16)
# The dtype that each kind of device autocasts to unless told otherwise.
_preferred: dict[str, DType] = {"cpu": dtypes.bfloat16, "cuda": dtypes.float16}
_depth = 0


def _enter(dtype: DType | None) -> DType | None:
    """Switch to ``dtype`` (None: off); what was on before."""
    global _depth
    _depth += 1
    before: DType | None = state.autocast
    state.autocast = dtype
    return before


def _leave(before: DType | None) -> None:
    global _depth
    _depth -= 1
    state.autocast = before
    if not _depth:
        forget_casts()


class autocast:  # noqa: N801 - PyTorch's spelling
    """Products run in a low precision inside, what loses too much there in float32."""

    __slots__ = ("cache", "device_type", "dtype", "enabled", "held")

    def __init__(
        self,
        device_type: Any,
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if device_type not in _preferred:
            device(device_type)
            raise TensorRuntimeError(
                f"User specified an unsupported autocast device_type '{device_type}'"
            )
        self.device_type = device_type
        self.dtype = _preferred[device_type] if dtype is None else dtype
        self.enabled = bool(enabled)
        self.cache = True if cache_enabled is None else cache_enabled
        self.held: list[tuple[Any, bool]] = []
        if self.enabled and device_type == "cuda":
            warn("CUDA is not available or torch_xla is imported. Disabling autocast.")
            self.enabled = False
        if self.enabled and device_type == "cpu" and self.dtype not in _LOW:
            warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast.\nCPU "
                "Autocast only supports dtypes of torch.bfloat16, torch.float16 currently."
            )
            self.enabled = False

    def clone(self) -> autocast:
        """One that has not been entered."""
        fresh: autocast = object.__new__(autocast)
        fresh.device_type, fresh.dtype = self.device_type, self.dtype
        fresh.enabled, fresh.cache, fresh.held = self.enabled, self.cache, []
        return fresh

    def __enter__(self) -> autocast:
        if self.device_type == "cpu":
            cached = state.autocast_cache
            self.held.append((_enter(self.dtype if self.enabled else None), cached))
            state.autocast_cache = self.cache
        return self

    def __exit__(self, *error: object) -> None:
        if self.device_type == "cpu":
            before, state.autocast_cache = self.held.pop()
            _leave(before)

    def __call__(self, body: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return body(*args, **kwargs)

        return wrapped


function("autocast", "amp.autocast")(autocast)


@function("is_autocast_enabled")
def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether autocast is on for a kind of device, cuda unless named."""
    return device_type == "cpu" and state.autocast is not None


@function("get_autocast_dtype")
def get_autocast_dtype(device_type: str) -> DType:
    """The dtype that autocast uses, or would use."""
    if not isinstance(device_type, str):
        raise ArgumentError(
            "get_autocast_dtype(): argument 'device_type' (position 1) must be str, not "
            f"{type_name(device_type)}"
        )
    device(device_type)  # refuses a name that is none
    if device_type == "cpu" and state.autocast is not None:
        return state.autocast
    return _preferred.get(device_type, dtypes.float16)


@function("set_autocast_enabled")
def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Switch autocast on or off."""
    if device_type == "cpu":
        state.autocast = _preferred["cpu"] if enabled else None


@function("is_autocast_cache_enabled")
def is_autocast_cache_enabled() -> bool:
    """Whether a weight is cast only once inside autocast."""
    return bool(state.autocast_cache)


@function("clear_autocast_cache")
def clear_autocast_cache() -> None:
    """Forget the casts of weights made so far."""
    forget_casts()


@function("amp.is_autocast_available")
def is_autocast_available(device_type: str) -> bool:
    """Whether there is autocast for a kind of device."""
    return device_type in _preferred


class GradScaler:
    """Scales losses up, so that small gradients survive a low precision, and gradients back down.

    A step whose gradients are not all finite is left out, and the scale reduced.
    """

    __slots__ = (
        "backoff", "enabled", "found", "good", "growth", "interval", "seen_scale", "start",
        "stepped",
    )  # fmt: skip

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        if enabled and device == "cuda":
            warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.")
            enabled = False
        self.enabled = enabled
        if enabled:
            if growth_factor <= 1.0:
                raise AssertionError("The growth factor must be > 1.0.")
            if backoff_factor >= 1.0:
                raise AssertionError("The backoff factor must be < 1.0.")
        self.start = float(init_scale)
        self.seen_scale: Tensor | None = None
        self.growth = growth_factor
        self.backoff = backoff_factor
        self.interval = growth_interval
        self.good = 0
        # By optimiser: whether a gradient was not finite; and which have made their step.
        self.found: dict[int, bool] = {}
        self.stepped: set[int] = set()

    def scale(self, outputs: Any) -> Any:
        """A loss, or several, times the scale."""
        if not self.enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self.present()
        if isinstance(outputs, (list, tuple)):
            return type(outputs)([self.scale(y) for y in outputs])
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def present(self) -> Tensor:
        """The scale as a tensor."""
        if self.seen_scale is None:
            self.seen_scale = F.full((), self.start, dtype=dtypes.float32)
        return self.seen_scale

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients by the scale; once per step."""
        if not self.enabled:
            return
        self._check_used("unscale_")
        if id(optimizer) in self.stepped:
            raise TensorRuntimeError("unscale_() is being called after step().")
        if id(optimizer) in self.found:
            raise TensorRuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        self._unscale(optimizer)

    def _unscale(self, optimizer: Optimizer) -> None:
        inverse = self.present().double().reciprocal().float()
        found = False
        for group in optimizer.param_groups:
            for p in group["params"]:
                g = None if p.ag is None else p.ag.grad
                if g is not None:
                    found = found or not bool(F.isfinite(g).all())
                    with_grad, state.grad = state.grad, False
                    g.mul_(inverse)
                    state.grad = with_grad
        self.found[id(optimizer)] = found

    def _check_used(self, name: str) -> None:
        if self.seen_scale is None:
            raise AssertionError(
                f"Attempted {name} but _scale is None.  This may indicate your script did not use "
                "scaler.scale(loss or outputs) earlier in the iteration."
            )

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """The optimiser's step, unless a gradient is not finite."""
        if not self.enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise TensorRuntimeError(
                "Closure use is not currently supported if GradScaler is enabled."
            )
        self._check_used("step")
        if id(optimizer) in self.stepped:
            raise TensorRuntimeError("step() has already been called since the last update().")
        if id(optimizer) not in self.found:
            self._unscale(optimizer)
        result = None if self.found[id(optimizer)] else optimizer.step(*args, **kwargs)
        self.stepped.add(id(optimizer))
        return result

    def update(self, new_scale: Any = None) -> None:
        """Let the scale shrink after a step left out, grow after enough good ones."""
        if not self.enabled:
            return
        self._check_used("update")
        scale = self.present()
        if new_scale is not None:
            scale.fill_(new_scale)
        elif not self.found:
            raise AssertionError("No inf checks were recorded prior to update.")
        elif any(self.found.values()):
            scale.mul_(self.backoff)
            self.good = 0
        else:
            self.good += 1
            if self.good == self.interval:
                scale.mul_(self.growth)
                self.good = 0
        self.found = {}
        self.stepped = set()

    def get_scale(self) -> float:
        """The scale as a number."""
        if not self.enabled:
            return 1.0
        return self.start if self.seen_scale is None else self.seen_scale.item()

    def is_enabled(self) -> bool:
        """Whether it scales at all."""
        return self.enabled

    def state_dict(self) -> dict[str, Any]:
        """The scale and how it moves."""
        if not self.enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self.growth,
            "backoff_factor": self.backoff,
            "growth_interval": self.interval,
            "_growth_tracker": self.good,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where another scaler stood."""
        if not self.enabled:
            return
        if not state_dict:
            raise TensorRuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        self.start = state_dict["scale"]
        if self.seen_scale is not None:
            self.seen_scale.fill_(self.start)
        self.growth = state_dict["growth_factor"]
        self.backoff = state_dict["backoff_factor"]
        self.interval = state_dict["growth_interval"]
        self.good = state_dict["_growth_tracker"]

    def __repr__(self) -> str:
        return f"<torch.amp.grad_scaler.GradScaler object at {id(self):#x}>"


expose(
    GradScaler,
    methods={
        "scale": GradScaler.scale,
        "unscale_": GradScaler.unscale_,
        "step": GradScaler.step,
        "update": GradScaler.update,
        "get_scale": GradScaler.get_scale,
        "state_dict": GradScaler.state_dict,
        "load_state_dict": GradScaler.load_state_dict,
        "is_enabled": GradScaler.is_enabled,
        "get_growth_factor": lambda scaler: scaler.growth,
        "get_backoff_factor": lambda scaler: scaler.backoff,
        "get_growth_interval": lambda scaler: scaler.interval,
    },
)
function("amp.GradScaler", "cuda.amp.GradScaler")(GradScaler)
