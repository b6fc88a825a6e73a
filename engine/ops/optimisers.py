"""torch.optim's optimisers: one class each, whose ``update`` is the rule for one parameter.

The rules go by the same operations in the same order as PyTorch's for single tensors, so that
training gives the same digits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.optimising import Optimizer, advanced, check, count, decayed, number, real, zeros
from engine.registry import F, function

if TYPE_CHECKING:
    from engine.tensor import Tensor


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum if wanted."""

    __slots__ = ()

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        check(lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
                "foreach": foreach,
                "differentiable": differentiable,
                "fused": fused,
            },
        )

    def update(self, p: Tensor, g: Tensor, group: dict[str, Any]) -> None:
        if group["weight_decay"] != 0:
            g = g.add(p, alpha=group["weight_decay"])
        momentum = group["momentum"]
        if momentum != 0:
            kept = self.kept(p)
            buffer = kept.get("momentum_buffer")
            if buffer is None:
                buffer = kept["momentum_buffer"] = g.detach().clone()
            else:
                buffer.mul_(momentum).add_(g, alpha=1 - group["dampening"])
            g = g.add(buffer, alpha=momentum) if group["nesterov"] else buffer
        p.add_(g, alpha=-number(group["lr"]))


class Adam(Optimizer):
    """Steps scaled by running averages of the gradient and of its square."""

    __slots__ = ()

    counts = True

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ):
        check(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay)
        if not all(isinstance(beta, float) for beta in betas):
            raise ValueError("betas must be either both floats or both Tensors")
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
                "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )

    def update(self, p: Tensor, g: Tensor, group: dict[str, Any]) -> None:
        kept = self.kept(p, step=count, exp_avg=zeros, exp_avg_sq=zeros)
        if group["amsgrad"] and "max_exp_avg_sq" not in kept:
            kept["max_exp_avg_sq"] = zeros(p)
        step = advanced(kept)
        lr = number(group["lr"])
        g = decayed(p, g, group, lr)
        beta1, beta2 = group["betas"]
        p, g, average, square = real(p, g, kept["exp_avg"], kept["exp_avg_sq"])
        average.lerp_(g, 1 - beta1)
        square.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        root = (1 - beta2**step) ** 0.5
        if group["amsgrad"]:
            (largest,) = real(kept["max_exp_avg_sq"])
            largest.copy_(F.maximum(largest, square))
            square = largest
        scale = (square.sqrt() / root).add_(group["eps"])
        p.addcdiv_(average, scale, value=-(lr / (1 - beta1**step)))


class AdamW(Adam):
    """Adam with decoupled weight decay."""

    __slots__ = ()

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )


class RMSprop(Optimizer):
    """Steps scaled by a running average of the gradient's square."""

    __slots__ = ()

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        check(lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "alpha": alpha,
                "eps": eps,
                "centered": centered,
                "weight_decay": weight_decay,
                "capturable": capturable,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
            },
        )

    def update(self, p: Tensor, g: Tensor, group: dict[str, Any]) -> None:
        first: dict[str, Any] = {"step": count, "square_avg": zeros}
        if group["momentum"] > 0:
            first["momentum_buffer"] = zeros
        if group["centered"]:
            first["grad_avg"] = zeros
        kept = self.kept(p, **first)
        kept["step"].add_(1)
        lr, alpha = number(group["lr"]), group["alpha"]
        g = decayed(p, g, group, lr)
        p, g, square = real(p, g, kept["square_avg"])
        square.mul_(alpha).addcmul_(g, g, value=1 - alpha)
        if group["centered"]:
            (mean,) = real(kept["grad_avg"])
            mean.lerp_(g, 1 - alpha)
            scale = square.addcmul(mean, mean, value=-1).sqrt_()
        else:
            scale = square.sqrt()
        scale.add_(group["eps"])
        if group["momentum"] > 0:
            (buffer,) = real(kept["momentum_buffer"])
            buffer.mul_(group["momentum"]).addcdiv_(g, scale)
            p.add_(buffer, alpha=-lr)
        else:
            p.addcdiv_(g, scale, value=-lr)


class Adagrad(Optimizer):
    """Steps scaled by the sum of the gradient's squares so far."""

    __slots__ = ()

    counts = True

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        check(
            lr=lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "eps": eps,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "fused": fused,
            },
        )
        # PyTorch makes what it keeps at once here, not at the first step.
        for group in self.param_groups:
            for p in group["params"]:
                self._kept(p, group)

    def _kept(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        start = group["initial_accumulator_value"]
        value = complex(start, start) if p.dtype.is_complex else start
        return self.kept(p, step=count, sum=lambda p: F.full_like(p, value))

    def update(self, p: Tensor, g: Tensor, group: dict[str, Any]) -> None:
        kept = self._kept(p, group)
        step = advanced(kept)
        lr = number(group["lr"])
        g = decayed(p, g, group, lr)
        rate = lr / (1 + (step - 1) * group["lr_decay"])
        p, g, total = real(p, g, kept["sum"])
        total.addcmul_(g, g, value=1)
        p.addcdiv_(g, total.sqrt().add_(group["eps"]), value=-rate)


for _kind in (Optimizer, SGD, Adam, AdamW, RMSprop, Adagrad):
    function(f"optim.{_kind.__name__}")(_kind)
