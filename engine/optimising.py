"""What all optimisers of torch.optim have in common: groups of parameters, state, steps.

It knows no rule: that is the ``update`` of a class derived from Optimizer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import tape
from engine.exposed import expose
from engine.foreign import exchange
from engine.hooks import HookHandle
from engine.modes import state, warn
from engine.printing import tensor_text
from engine.registry import F
from engine.tensor import Tensor, wrap

if TYPE_CHECKING:
    from collections.abc import Callable


def _type_name(value: Any) -> str:
    return f"torch.{value.dtype.title}Tensor" if isinstance(value, Tensor) else type(value).__name__


class Optimizer:
    """Parameters in groups with their options, and what is kept about each parameter.

    Raises ValueError for an empty list, a tensor that is no leaf or one that is in two groups,
    TypeError for what is no tensor.
    """

    __slots__ = ("after", "before", "defaults", "param_groups", "state", "stepped")

    # Whether an update computes with the number of steps, which is another one each time.
    counts = False

    def __init__(self, params: Any, defaults: dict[str, Any]):
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                f"dicts, but got {_type_name(params)}"
            )
        self.defaults = defaults
        self.param_groups: list[dict[str, Any]] = []
        self.state: dict[Tensor, dict[str, Any]] = {}
        self.before: dict[int, Any] = {}
        self.after: dict[int, Any] = {}
        self.stepped = False
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)
        defaults.setdefault("differentiable", False)

    def add_param_group(self, param_group: Any) -> None:
        """Optimise more parameters, with options of their own."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        given = param_group["params"]
        if isinstance(given, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead."
            )
        params = [given] if isinstance(given, Tensor) else list(given)
        if params and all(isinstance(p, tuple) and len(p) == 2 for p in params):
            param_group["param_names"] = [name for name, _ in params]
            params = [p for _, p in params]
        param_group["params"] = params
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {_type_name(p)}"
                )
            if tape.node_of(p) is not None and not (p.ag is not None and p.ag.retains):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            param_group.setdefault(name, default)
        if len({id(p) for p in params}) != len(params):
            warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will cause an error; see github.com/pytorch/pytorch/issues/40967 for more "
                "information"
            )
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if any(id(p) in known for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def step(self, closure: Any = None) -> Any:
        """Change every parameter that has a gradient; ``closure`` works the loss out anew."""
        for hook in list(self.before.values()):
            hook(self, (self,), {})
        loss = None
        recording = state.grad
        try:
            if closure is not None:
                state.grad = True
                loss = exchange.function(closure)()
            state.grad = False
            for group in self.param_groups:
                for p in group["params"]:
                    g = None if p.ag is None else p.ag.grad
                    if g is None:
                        continue
                    if group["maximize"]:
                        g = -g
                    if self.counts and state.recording is not None:
                        self._tell_update(p, g, group)
                    else:
                        self.update(p, g, group)
        finally:
            state.grad = recording
        self.stepped = True
        for hook in list(self.after.values()):
            hook(self, (self,), {})
        return loss

    def update(self, p: Tensor, g: Tensor, group: dict[str, Any]) -> None:
        """Change one parameter by its gradient."""
        raise NotImplementedError

    def _tell_update(self, p: Tensor, g: Tensor, group: dict[str, Any]) -> None:
        """Update, and tell whoever records to do that again as a whole."""
        recording, kind, layout = state.recording, g.kind, g.layout
        state.set_recording(None)
        try:
            self.update(p, g, group)
        finally:
            state.set_recording(recording)

        def again(gradient: Any) -> None:
            recorded, state.grad = state.grad, False
            try:
                self.update(p, wrap(gradient, kind, layout), group)
            finally:
                state.grad = recorded

        changed = [p, *[v for v in self.state[p].values() if isinstance(v, Tensor)]]
        recording.updated(changed, ("update", id(self), id(p)), again, (g.array,))

    def kept(self, p: Tensor, **first: Callable[[Tensor], Any]) -> dict[str, Any]:
        """What is kept about a parameter, made from ``first`` at its first update."""
        found = self.state.get(p)
        if found is None:
            found = self.state[p] = {name: make(p) for name, make in first.items()}
        return found

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients; ``set_to_none=False`` fills them with zeros instead."""
        for group in self.param_groups:
            for p in group["params"]:
                g = None if p.ag is None else p.ag.grad
                if g is None:
                    continue
                if set_to_none:
                    p.grad = None
                    continue
                if tape.node_of(g) is not None:
                    g.detach_()
                else:
                    g.requires_grad_(False)
                g.zero_()

    def register_step_pre_hook(self, hook: Any) -> HookHandle:
        """Call ``hook(optimiser, args, kwargs)`` before each step."""
        return HookHandle(self.before, exchange.function(hook))

    def register_step_post_hook(self, hook: Any) -> HookHandle:
        """Call ``hook(optimiser, args, kwargs)`` after each step."""
        return HookHandle(self.after, exchange.function(hook))

    def state_dict(self) -> dict[str, Any]:
        """The options and what is kept, with numbers in place of the parameters."""
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            packed = {k: v for k, v in group.items() if k != "params"}
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            groups.append(packed)
        return {
            "state": {numbers[id(p)]: kept for p, kept in self.state.items()},
            "param_groups": groups,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what another optimiser's ``state_dict`` gave."""
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        by_number: dict[int, Tensor] = {}
        for old, group in zip(saved, self.param_groups, strict=True):
            if len(old["params"]) != len(group["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of "
                    "optimizer's group"
                )
            by_number.update(zip(old["params"], group["params"], strict=True))
        self.state = {
            by_number[number]: {k: _copied(v) for k, v in kept.items()}
            for number, kept in state_dict["state"].items()
        }
        self.param_groups = [
            {**{k: v for k, v in old.items() if k != "params"}, "params": group["params"]}
            for old, group in zip(saved, self.param_groups, strict=True)
        ]

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for i, group in enumerate(self.param_groups):
            lines = [f"    {k}: {_text(group[k])}\n" for k in sorted(group) if k != "params"]
            text += f"\nParameter Group {i}\n{''.join(lines)}"
        return text + ")"


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else value


def _text(value: Any) -> str:
    if not isinstance(value, Tensor):
        return str(value)
    return tensor_text(value) if value.layout.ndim else str(value.item())


def _set_groups(optimizer: Optimizer, value: Any) -> None:
    optimizer.param_groups = value


expose(
    Optimizer,
    attributes={
        "param_groups": lambda optimizer: optimizer.param_groups,
        "state": lambda optimizer: optimizer.state,
        "defaults": lambda optimizer: optimizer.defaults,
    },
    methods={
        "add_param_group": Optimizer.add_param_group,
        "step": Optimizer.step,
        "zero_grad": Optimizer.zero_grad,
        "state_dict": Optimizer.state_dict,
        "load_state_dict": Optimizer.load_state_dict,
        "register_step_pre_hook": Optimizer.register_step_pre_hook,
        "register_step_post_hook": Optimizer.register_step_post_hook,
    },
    setters={"param_groups": _set_groups},
)

_CHECKED = {
    "lr": "learning rate",
    "eps": "epsilon value",
    "momentum": "momentum value",
    "weight_decay": "weight_decay value",
    "alpha": "alpha value",
    "lr_decay": "lr_decay value",
    "initial_accumulator_value": "initial_accumulator_value value",
    "momentum_decay": "momentum_decay value",
}


def check(**options: Any) -> None:
    """Refuse options below zero, in the order given."""
    lr = options.get("lr")
    if isinstance(lr, Tensor) and lr.layout.numel != 1:
        raise ValueError("Tensor lr must be 1-element")
    for name, value in options.items():
        if name == "betas":
            for i, beta in enumerate(value):
                if not 0.0 <= beta < 1.0:
                    raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
        elif name == "rho":
            if not 0.0 <= value <= 1.0:
                raise ValueError(f"Invalid rho value: {value}")
        elif not 0.0 <= value:
            raise ValueError(f"Invalid {_CHECKED[name]}: {_text(value)}")


def number(value: Any) -> Any:
    """A learning rate as a number."""
    return value.item() if isinstance(value, Tensor) else value


def count(p: Tensor) -> Tensor:
    """The number of steps so far, in the default dtype or better."""
    return F.tensor(0.0, dtype=F.get_default_dtype())  # type: ignore[no-any-return]  # from F


def zeros(p: Tensor) -> Tensor:
    return F.zeros_like(p)  # type: ignore[no-any-return]  # from F


def advanced(kept: dict[str, Any]) -> float:
    kept["step"].add_(1)
    return kept["step"].item()  # type: ignore[no-any-return]  # a float tensor's


def real(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Complex tensors as pairs of real numbers."""
    if not tensors[0].dtype.is_complex:
        return tensors
    return tuple([F.view_as_real(t) for t in tensors])


def decayed(p: Tensor, g: Tensor, group: dict[str, Any], lr: float) -> Tensor:
    """The gradient with weight decay; decoupled decay shrinks the parameter at once."""
    decay = group["weight_decay"]
    if decay == 0:
        return g
    if group.get("decoupled_weight_decay"):
        p.mul_(1 - lr * decay)
        return g
    return g.add(p, alpha=decay)
