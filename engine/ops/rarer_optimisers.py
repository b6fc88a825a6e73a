"""torch.optim's rarer optimisers: Adadelta, Adamax, NAdam, RAdam."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.optimising import Optimizer, advanced, check, count, decayed, number, real, zeros
from engine.registry import F, function

if TYPE_CHECKING:
    from engine.tensor import Tensor


class Adadelta(Optimizer):
    """Steps scaled by running averages of the gradient's square and of the steps' own."""

    __slots__ = ()

    def __init__(
        self,
        params: Any,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        check(lr=lr, rho=rho, eps=eps, weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "rho": rho,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "capturable": capturable,
                "foreach": foreach,
                "differentiable": differentiable,
            },
        )

    def update(self, p: Tensor, g: Tensor, group: dict[str, Any]) -> None:
        kept = self.kept(p, step=count, square_avg=zeros, acc_delta=zeros)
        advanced(kept)
        lr, rho, eps = number(group["lr"]), group["rho"], group["eps"]
        g = decayed(p, g, group, lr)
        p, g, square, moved = real(p, g, kept["square_avg"], kept["acc_delta"])
        square.mul_(rho).addcmul_(g, g, value=1 - rho)
        scale = square.add(eps).sqrt_()
        step = moved.add(eps).sqrt_()
        step.div_(scale).mul_(g)
        moved.mul_(rho).addcmul_(step, step, value=1 - rho)
        p.add_(step, alpha=-lr)


class Adamax(Optimizer):
    """Adam with the greatest gradient so far in place of the average square."""

    __slots__ = ()

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        check(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def update(self, p: Tensor, g: Tensor, group: dict[str, Any]) -> None:
        kept = self.kept(p, step=count, exp_avg=zeros, exp_inf=zeros)
        step = advanced(kept)
        lr, (beta1, beta2) = number(group["lr"]), group["betas"]
        g = decayed(p, g, group, lr)
        p, g, average, greatest = real(p, g, kept["exp_avg"], kept["exp_inf"])
        average.lerp_(g, 1 - beta1)
        greatest.copy_(F.maximum(greatest.mul_(beta2), g.abs().add_(group["eps"])))
        p.addcdiv_(average, greatest, value=-(lr / (1 - beta1**step)))


def _one(p: Tensor) -> Tensor:
    return F.ones((), dtype=F.get_default_dtype())


class NAdam(Optimizer):
    """Adam with Nesterov momentum."""

    __slots__ = ()

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        check(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay, momentum_decay=momentum_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
            },
        )

    def update(self, p: Tensor, g: Tensor, group: dict[str, Any]) -> None:
        kept = self.kept(p, step=count, mu_product=_one, exp_avg=zeros, exp_avg_sq=zeros)
        step = advanced(kept)
        lr, (beta1, beta2) = number(group["lr"]), group["betas"]
        g = decayed(p, g, group, lr)
        p, g, average, square = real(p, g, kept["exp_avg"], kept["exp_avg_sq"])
        decay = group["momentum_decay"]
        mu = beta1 * (1.0 - 0.5 * (0.96 ** (step * decay)))
        mu_next = beta1 * (1.0 - 0.5 * (0.96 ** ((step + 1) * decay)))
        kept["mu_product"].mul_(mu)
        product = kept["mu_product"].item()
        average.lerp_(g, 1 - beta1)
        square.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        scale = square.div(1 - beta2**step).sqrt().add_(group["eps"])
        p.addcdiv_(g, scale, value=-lr * (1.0 - mu) / (1.0 - product))
        p.addcdiv_(average, scale, value=(-lr * mu_next) / (1.0 - product * mu_next))


class RAdam(Optimizer):
    """Adam that scales by the average square only once it has seen enough of it."""

    __slots__ = ()

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        check(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "decoupled_weight_decay": decoupled_weight_decay,
                "differentiable": differentiable,
            },
        )

    def update(self, p: Tensor, g: Tensor, group: dict[str, Any]) -> None:
        kept = self.kept(p, step=count, exp_avg=zeros, exp_avg_sq=zeros)
        step = advanced(kept)
        lr, (beta1, beta2) = number(group["lr"]), group["betas"]
        g = decayed(p, g, group, lr)
        p, g, average, square = real(p, g, kept["exp_avg"], kept["exp_avg_sq"])
        average.lerp_(g, 1 - beta1)
        square.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        move = average / (1 - beta1**step) * lr
        rest = 1 - beta2**step
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * (beta2**step) / rest
        if length > 5.0:
            ratio = (length - 4) * (length - 2) * longest
            ratio /= (longest - 4) * (longest - 2) * length
            move = move * (rest**0.5 / square.sqrt().add_(group["eps"])) * ratio**0.5
        p.add_(move, alpha=-1.0)


for _kind in (Adadelta, Adamax, NAdam, RAdam):
    function(f"optim.{_kind.__name__}")(_kind)
