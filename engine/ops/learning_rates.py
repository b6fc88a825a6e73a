"""torch.optim.lr_scheduler: rules that change an optimiser's learning rates step by step."""

from __future__ import annotations

from math import cos, pi
from typing import TYPE_CHECKING, Any

from engine.exposed import expose
from engine.foreign import exchange
from engine.modes import warn
from engine.registry import function, functions
from engine.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable


def _optimizer_type() -> Any:
    return functions["optim.Optimizer"]


class LRScheduler:
    """Counts steps and sets the learning rate of every group at each.

    ``options`` are the rule's own numbers; a rule gives the next rates from the present ones.
    """

    __slots__ = (
        "base_lrs", "calls", "initial", "last_epoch", "last_lr", "optimizer", "options",
    )  # fmt: skip

    def __init__(self, optimizer: Any, last_epoch: int, **options: Any):
        if not isinstance(optimizer, _optimizer_type()):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        self.options = options
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                lr = group["lr"]
                group.setdefault("initial_lr", lr.clone() if isinstance(lr, Tensor) else lr)
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming "
                    "scheduler with last_epoch >= 0.\nThis typically happens when:\n1. You're "
                    "trying to resume training from a checkpoint but haven't properly loaded the "
                    "optimizer state\n2. You're using last_epoch >= 0 for a fresh training run "
                    "(not recommended)"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.calls = 0
        optimizer.stepped = False
        self.initial = True
        self.step()
        self.initial = False

    def step(self, epoch: int | None = None) -> None:
        """Set the rates of the next epoch; to be called after the optimiser's step."""
        if self.calls == 1 and not self.optimizer.stepped:
            warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch "
                "1.1.0 and later, you should call them in the opposite order: `optimizer.step()` "
                "before `lr_scheduler.step()`.  Failure to do this will result in PyTorch skipping "
                "the first value of the learning rate schedule. See more details at "
                "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
            )
        self.calls += 1
        if epoch is None:
            self.last_epoch += 1
            values = self.next_rates()
        else:
            warn(
                "The epoch parameter in `scheduler.step()` was not necessary and is being "
                "deprecated where possible. Please use `scheduler.step()` to step the scheduler. "
                "During the deprecation, if epoch is different from None, the closed form is used "
                "instead of the new chainable form, where available. Please open an issue if you "
                "are unable to replicate your use case: "
                "https://github.com/pytorch/pytorch/issues/new/choose."
            )
            self.last_epoch = epoch
            values = self.closed_form()
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(lr)
            else:
                group["lr"] = lr
        self.last_lr = self.rates()

    def rates(self) -> list[Any]:
        """The present rates."""
        return [
            lr.clone() if isinstance(lr, Tensor) else lr
            for lr in [group["lr"] for group in self.optimizer.param_groups]
        ]

    def next_rates(self) -> list[Any]:
        """The rates of this epoch, from those of the last one."""
        raise NotImplementedError

    def closed_form(self) -> list[Any]:
        """The rates of this epoch, from the first ones."""
        return self.next_rates()

    def get_last_lr(self) -> list[Any]:
        """The rates set last."""
        return self.last_lr

    def get_lr(self) -> list[Any]:
        """The rates that a step would set now."""
        warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.")
        return self.next_rates()

    def state_dict(self) -> dict[str, Any]:
        """Where the schedule stands, and its options."""
        return {
            **self.options,
            "base_lrs": self.base_lrs,
            "last_epoch": self.last_epoch,
            "_step_count": self.calls,
            "_is_initial": False,
            "_get_lr_called_within_step": False,
            "_last_lr": self.last_lr,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where another schedule stood."""
        given = dict(state_dict)
        self.base_lrs = given.pop("base_lrs", self.base_lrs)
        self.last_epoch = given.pop("last_epoch", self.last_epoch)
        self.calls = given.pop("_step_count", self.calls)
        self.last_lr = given.pop("_last_lr", self.last_lr)
        self.options.update({k: v for k, v in given.items() if k in self.options})

    def scaled(self, factor: float) -> list[Any]:
        """The present rates times a factor."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def based(self, factor: float) -> list[Any]:
        """The first rates times a factor."""
        return [lr * factor for lr in self.base_lrs]

    def __repr__(self) -> str:
        return f"<torch.optim.lr_scheduler.{type(self).__name__} object at {id(self):#x}>"


def _lambdas(optimizer: Any, given: Any) -> list[Callable[[int], float]]:
    count = len(optimizer.param_groups)
    if not isinstance(given, (list, tuple)):
        return [exchange.function(given)] * count
    if len(given) != count:
        raise ValueError(f"Expected {count} lr_lambdas, but got {len(given)}")
    return [exchange.function(f) for f in given]


class LambdaLR(LRScheduler):
    """The first rate times a function of the epoch."""

    __slots__ = ("lambdas",)

    def __init__(self, optimizer: Any, lr_lambda: Any, last_epoch: int = -1):
        self.lambdas = _lambdas(optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def next_rates(self) -> list[Any]:
        pairs = zip(self.base_lrs, self.lambdas, strict=True)
        return [lr * f(self.last_epoch) for lr, f in pairs]


class MultiplicativeLR(LRScheduler):
    """The present rate times a function of the epoch."""

    __slots__ = ("lambdas",)

    def __init__(self, optimizer: Any, lr_lambda: Any, last_epoch: int = -1):
        self.lambdas = _lambdas(optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def next_rates(self) -> list[Any]:
        if self.initial:
            return self.rates()
        pairs = zip(self.optimizer.param_groups, self.lambdas, strict=True)
        return [group["lr"] * f(self.last_epoch) for group, f in pairs]


class StepLR(LRScheduler):
    """Times ``gamma`` every ``step_size`` epochs."""

    __slots__ = ()

    def __init__(self, optimizer: Any, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        super().__init__(optimizer, last_epoch, step_size=step_size, gamma=gamma)

    def next_rates(self) -> list[Any]:
        if self.last_epoch == 0 or self.last_epoch % self.options["step_size"] != 0:
            return self.rates()
        return self.scaled(self.options["gamma"])

    def closed_form(self) -> list[Any]:
        return self.based(self.options["gamma"] ** (self.last_epoch // self.options["step_size"]))


class MultiStepLR(LRScheduler):
    """Times ``gamma`` at each of the epochs listed."""

    __slots__ = ()

    def __init__(self, optimizer: Any, milestones: Any, gamma: float = 0.1, last_epoch: int = -1):
        counted: dict[int, int] = {}
        for epoch in milestones:
            counted[epoch] = counted.get(epoch, 0) + 1
        super().__init__(optimizer, last_epoch, milestones=counted, gamma=gamma)

    def next_rates(self) -> list[Any]:
        times = self.options["milestones"].get(self.last_epoch)
        return self.rates() if times is None else self.scaled(self.options["gamma"] ** times)

    def closed_form(self) -> list[Any]:
        milestones = self.options["milestones"]
        times = sum(n for epoch, n in milestones.items() if epoch <= self.last_epoch)
        return self.based(self.options["gamma"] ** times)


class ConstantLR(LRScheduler):
    """Times ``factor`` until ``total_iters`` epochs have gone by."""

    __slots__ = ()

    def __init__(
        self, optimizer: Any, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ):
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        super().__init__(optimizer, last_epoch, factor=factor, total_iters=total_iters)

    def next_rates(self) -> list[Any]:
        if self.last_epoch == 0:
            return self.scaled(self.options["factor"])
        if self.last_epoch != self.options["total_iters"]:
            return self.rates()
        return self.scaled(1.0 / self.options["factor"])

    def closed_form(self) -> list[Any]:
        factor = self.options["factor"]
        over = self.last_epoch >= self.options["total_iters"]
        return self.based(factor + over * (1 - factor))


class LinearLR(LRScheduler):
    """From ``start_factor`` to ``end_factor`` times the rate in even steps."""

    __slots__ = ()

    def __init__(
        self,
        optimizer: Any,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ):
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal "
                "to 1."
            )
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        super().__init__(
            optimizer,
            last_epoch,
            start_factor=start_factor,
            end_factor=end_factor,
            total_iters=total_iters,
        )

    def next_rates(self) -> list[Any]:
        start, total = self.options["start_factor"], self.options["total_iters"]
        if self.last_epoch == 0:
            return self.scaled(start)
        if self.initial or self.last_epoch > total:
            return self.rates()
        rise = self.options["end_factor"] - start
        return self.scaled(1.0 + rise / (total * start + (self.last_epoch - 1) * rise))

    def closed_form(self) -> list[Any]:
        start, total = self.options["start_factor"], self.options["total_iters"]
        rise = self.options["end_factor"] - start
        return self.based(start + rise * min(total, self.last_epoch) / total)


class ExponentialLR(LRScheduler):
    """Times ``gamma`` every epoch."""

    __slots__ = ()

    def __init__(self, optimizer: Any, gamma: float, last_epoch: int = -1):
        super().__init__(optimizer, last_epoch, gamma=gamma)

    def next_rates(self) -> list[Any]:
        return self.rates() if self.initial else self.scaled(self.options["gamma"])

    def closed_form(self) -> list[Any]:
        return self.based(self.options["gamma"] ** self.last_epoch)


class PolynomialLR(LRScheduler):
    """Down to zero in ``total_iters`` epochs along a power."""

    __slots__ = ()

    def __init__(
        self, optimizer: Any, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ):
        super().__init__(optimizer, last_epoch, total_iters=total_iters, power=power)

    def next_rates(self) -> list[Any]:
        total, epoch = self.options["total_iters"], self.last_epoch
        if self.initial or epoch > total:
            return self.rates()
        ratio = (1.0 - epoch / total) / (1.0 - (epoch - 1) / total)
        return self.scaled(ratio ** self.options["power"])

    def closed_form(self) -> list[Any]:
        total = self.options["total_iters"]
        return self.based((1.0 - min(total, self.last_epoch) / total) ** self.options["power"])


class CosineAnnealingLR(LRScheduler):
    """Along a cosine from the first rate to ``eta_min`` in ``T_max`` epochs, and back."""

    __slots__ = ()

    def __init__(
        self,
        optimizer: Any,
        T_max: int,  # noqa: N803 - PyTorch's spelling
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ):
        super().__init__(optimizer, last_epoch, T_max=T_max, eta_min=eta_min)

    def next_rates(self) -> list[Any]:
        half, least, epoch = self.options["T_max"], self.options["eta_min"], self.last_epoch
        if self.initial:
            return self.rates()
        groups = self.optimizer.param_groups
        if (epoch - 1 - half) % (2 * half) == 0:
            return [
                group["lr"] + (base - least) * (1 - cos(pi / half)) / 2
                for base, group in zip(self.base_lrs, groups, strict=True)
            ]
        ratio = (1 + cos(pi * epoch / half)) / (1 + cos(pi * (epoch - 1) / half))
        return [ratio * (group["lr"] - least) + least for group in groups]

    def closed_form(self) -> list[Any]:
        least = self.options["eta_min"]
        angle = pi * self.last_epoch / self.options["T_max"]
        return [least + (base - least) * (1 + cos(angle)) / 2 for base in self.base_lrs]


class ReduceLROnPlateau(LRScheduler):
    """Times ``factor`` when a measure has not got better for ``patience`` epochs."""

    __slots__ = ("bad", "best", "cooling", "min_lrs")

    def __init__(
        self,
        optimizer: Any,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ):
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if not isinstance(optimizer, _optimizer_type()):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        count = len(optimizer.param_groups)
        if isinstance(min_lr, (list, tuple)):
            if len(min_lr) != count:
                raise ValueError(f"expected {count} min_lrs, got {len(min_lr)}")
            self.min_lrs = list(min_lr)
        else:
            self.min_lrs = [min_lr] * count
        self.optimizer = optimizer
        self.options = {
            "factor": factor,
            "patience": patience,
            "cooldown": cooldown,
            "eps": eps,
            "mode": mode,
            "threshold": threshold,
            "threshold_mode": threshold_mode,
        }
        self.base_lrs = []
        self.calls = 0
        self.last_epoch = 0
        self.last_lr = self.rates()
        self.best = float("inf") if mode == "min" else -float("inf")
        self.bad = self.cooling = 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Note the measure of an epoch."""
        options = self.options
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current):
            self.best = current
            self.bad = 0
        else:
            self.bad += 1
        if self.cooling > 0:
            self.cooling -= 1
            self.bad = 0
        if self.bad > options["patience"]:
            for group, least in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
                old = float(group["lr"])
                new = max(old * options["factor"], least)
                if old - new > options["eps"]:
                    group["lr"] = new
            self.cooling = options["cooldown"]
            self.bad = 0
        self.last_lr = self.rates()

    def _is_better(self, value: float) -> bool:
        threshold = self.options["threshold"]
        relative = self.options["threshold_mode"] == "rel"
        if self.options["mode"] == "min":
            return value < (self.best * (1.0 - threshold) if relative else self.best - threshold)
        return value > (self.best * (threshold + 1.0) if relative else self.best + threshold)


expose(
    LRScheduler,
    attributes={
        "optimizer": lambda scheduler: scheduler.optimizer,
        "last_epoch": lambda scheduler: scheduler.last_epoch,
        "base_lrs": lambda scheduler: scheduler.base_lrs,
    },
    methods={
        "step": lambda scheduler, *args, **kwargs: scheduler.step(*args, **kwargs),
        "get_last_lr": LRScheduler.get_last_lr,
        "get_lr": LRScheduler.get_lr,
        "state_dict": LRScheduler.state_dict,
        "load_state_dict": LRScheduler.load_state_dict,
    },
)
for _kind in (
    LRScheduler, LambdaLR, MultiplicativeLR, StepLR, MultiStepLR, ConstantLR, LinearLR,
    ExponentialLR, PolynomialLR, CosineAnnealingLR, ReduceLROnPlateau,
):  # fmt: skip
    function(f"optim.lr_scheduler.{_kind.__name__}")(_kind)
