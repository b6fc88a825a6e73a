"""Optimisers, schedules and clipping give PyTorch's numbers, texts and refusals step by step."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.differential.agree import OURS, compare, differs  # noqa: E402

OPTIMISERS = """
SGD(p, lr=0.05)
SGD(p, lr=0.05, momentum=0.9)
SGD(p, lr=0.05, momentum=0.9, dampening=0.1, weight_decay=0.01)
SGD(p, lr=0.05, momentum=0.9, nesterov=True)
SGD(p, lr=0.01, maximize=True)
SGD(p, lr=torch.tensor(0.05))
SGD([{'params': p[:2]}, {'params': p[2:], 'lr': 0.01}], lr=0.1)
Adam(p, lr=0.01)
Adam(p, lr=0.01, amsgrad=True)
Adam(p, lr=0.01, betas=(0.8, 0.9), eps=1e-6, weight_decay=0.1)
Adam(p, lr=0.01, maximize=True)
AdamW(p, lr=0.01)
AdamW(p, lr=0.01, weight_decay=0.5, amsgrad=True)
RMSprop(p, lr=0.01)
RMSprop(p, lr=0.01, momentum=0.5, centered=True, weight_decay=0.01)
Adagrad(p, lr=0.05)
Adagrad(p, lr=0.05, lr_decay=0.1, weight_decay=0.01, initial_accumulator_value=0.1)
Adadelta(p)
Adadelta(p, lr=0.5, rho=0.8, weight_decay=0.01)
Adamax(p, lr=0.01)
Adamax(p, lr=0.01, weight_decay=0.1)
NAdam(p, lr=0.01)
NAdam(p, lr=0.01, weight_decay=0.1, decoupled_weight_decay=True)
RAdam(p, lr=0.01)
RAdam(p, lr=0.01, weight_decay=0.1)
""".strip().split("\n")

CLASSIC = ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad")


def _train(module: Any, text: str, steps: int, schedule: str = "") -> tuple[list[Any], str]:
    """The losses and parameters on the way of a two-layer net, and the optimiser's text.

    With a ``schedule`` the gradients are clipped too.
    """
    module.manual_seed(0)
    x = module.linspace(-1, 1, 24, dtype=module.float64).reshape(8, 3)
    y = (x**2).sum(1, keepdim=True)
    shapes = [(3, 4), (4,), (4, 1), (1,)]
    p = [
        (module.linspace(-0.7, 0.9, max(n, 2), dtype=module.float64)[:n].reshape(shape))
        for shape in shapes
        for n in [shape[0] * (shape[1] if len(shape) > 1 else 1)]
    ]
    p = [t.clone().requires_grad_() for t in p]
    optimiser = eval(f"torch.optim.{text}", {"torch": module, "p": p})
    scheduler = None
    if schedule:
        names = {"S": module.optim.lr_scheduler, "o": optimiser}
        scheduler = eval(schedule, names)
    seen = []
    for step in range(steps):
        optimiser.zero_grad()
        loss = (((x @ p[0] + p[1]).tanh() @ p[2] + p[3] - y) ** 2).mean()
        loss.backward()
        if scheduler is not None:
            seen.append(module.nn.utils.clip_grad_norm_(p, 0.5))
        optimiser.step()
        if scheduler is not None:
            scheduler.step()
        if step % 20 == 19 or step < 2:
            seen += [loss.detach(), *[t.detach().clone() for t in p]]
    return seen, repr(optimiser)


@pytest.mark.parametrize("text", OPTIMISERS)
def test_training(text: str) -> None:
    theirs, their_text = _train(torch, text, 100)
    ours, our_text = _train(OURS, text, 100)
    assert compare(theirs, ours, ulp=4e3, atol=1e-12) is None
    assert their_text == our_text


@pytest.mark.parametrize(
    "schedule", ["S.StepLR(o, 30)", "S.ExponentialLR(o, 0.98)", "S.CosineAnnealingLR(o, 100)"]
)
@pytest.mark.parametrize("text", [t for t in OPTIMISERS if t.split("(")[0] in CLASSIC])
def test_training_by_schedule(text: str, schedule: str) -> None:
    """Gradients clipped and learning rates scheduled for 100 steps."""
    theirs, _ = _train(torch, text, 100, schedule)
    ours, _ = _train(OURS, text, 100, schedule)
    assert compare(theirs, ours, ulp=4e3, atol=1e-12) is None


BEFORE = """
O = torch.optim
S = torch.optim.lr_scheduler
U = torch.nn.utils
m = torch.tensor([1.0, 2.0], requires_grad=True)
n = torch.tensor([3.0, -4.0], requires_grad=True)
f = torch.tensor([3.0, -4.0])
"""

PROGRAMS = """
O.SGD(m)
O.SGD([])
O.SGD([2.0])
O.SGD([m * 2])
O.SGD([{'params': m}, {'params': [m]}])
O.SGD([m], lr=-1)
O.SGD([m], momentum=-1)
O.SGD([m], weight_decay=-1)
O.SGD([m], nesterov=True)
O.SGD([m], lr=torch.tensor([0.1, 0.2]))
O.SGD([{'lr': 2}])
O.SGD([f]).step()
O.SGD([m], 0.1).state_dict()
O.Adagrad([m], 0.1).state_dict()
O.Adam([m], betas=(1.0, 0.9))
O.Adam([m], eps=-1.0)
O.Adam([m], betas=(1, 0.9))
O.RMSprop([m], alpha=-1.0)
O.Adagrad([m], lr_decay=-1.0)
repr(O.SGD([m], lr=torch.tensor(0.1)))
repr(O.SGD([('a', m)]))
repr(O.AdamW([m]))
S.StepLR(3, 2)
S.StepLR(O.SGD([m], 0.1), 2).state_dict()
S.ConstantLR(O.SGD([m], 0.1), 2.0)
S.LinearLR(O.SGD([m], 0.1), 0.0)
S.LambdaLR(O.SGD([m], 0.1), [abs, abs])
S.StepLR(O.SGD([m], 0.1), 2, last_epoch=3)
S.ReduceLROnPlateau(O.SGD([m], 0.1), mode='x')
U.clip_grad_norm_([m], 1.0)
U.clip_grad_norm_([], 1.0)
U.parameters_to_vector([m, n])
(m * n).sum().backward() or (U.clip_grad_norm_([m, n], 1.0), m.grad, n.grad)
(m * n).sum().backward() or (U.clip_grad_norm_([m, n], 100.0), m.grad, n.grad)
(m * n).sum().backward() or (U.clip_grad_norm_([m, n], 1.0, norm_type=1.0), m.grad, n.grad)
(m * n).sum().backward() or (U.clip_grad_norm_((m, n), 1.0, float('inf')), m.grad)
(m * n).sum().backward() or (U.clip_grad_norm_(m, 1.0), m.grad)
(m * inf).sum().backward() or U.clip_grad_norm_(m, 1.0, error_if_nonfinite=True)
(m * n).sum().backward() or (U.clip_grad_value_([m, n], 1.5), m.grad, n.grad)
repr(torch.nn.Parameter(f))
repr(torch.nn.Parameter(f, requires_grad=False))
str(torch.nn.Parameter())
torch.nn.Parameter(f).requires_grad, torch.nn.Parameter(f).is_leaf
isinstance(torch.nn.Parameter(f), torch.nn.Parameter), isinstance(f, torch.nn.Parameter)
repr(torch.nn.Parameter(f) * 2)
torch.nn.Parameter([1.0])
torch.nn.Parameter(torch.tensor([1]))
""".strip().split("\n")

LONGER = """
o = O.SGD([m], 0.1, momentum=0.9)
m.sum().backward()
o.step()
o.state_dict(), o.state[m]
---
o = O.Adam([m], 0.1)
m.sum().backward()
o.step()
q = O.Adam([n], 0.5)
q.load_state_dict(o.state_dict())
n.sum().backward()
q.step()
n, q.state_dict()
---
O.Adam([n], 0.5).load_state_dict(O.Adam([m, f]).state_dict())
---
O.Adam([n], 0.5).load_state_dict(O.Adam([{'params': [m]}, {'params': [f]}]).state_dict())
---
o = O.SGD([m], 0.1)
def closure():
    o.zero_grad()
    loss = (m * m).sum()
    loss.backward()
    return loss
o.step(closure), m
---
o = O.SGD([m], 0.1)
m.sum().backward()
o.zero_grad(set_to_none=False)
m.grad
---
o = O.SGD([m], 0.1)
m.sum().backward()
o.zero_grad()
m.grad
---
o = O.SGD([m], 0.1)
o.add_param_group({'params': [n], 'lr': 0.5})
len(o.param_groups), repr(o)
---
O.SGD([m], 0.1).add_param_group([n])
---
O.SGD([m], 0.1).add_param_group({'params': {n}})
---
seen = []
o = O.SGD([m], 0.1)
h = o.register_step_pre_hook(lambda o, a, k: seen.append((len(a), k)))
o.register_step_post_hook(lambda o, a, k: seen.append(1))
o.step()
h.remove()
o.step()
seen
---
w = torch.nn.Parameter(f)
with torch.no_grad():
    w.add_(1)
repr(w), f
---
v = torch.tensor([5.0, 6.0, 7.0, 8.0])
U.vector_to_parameters(v, [m, n])
m, n
""".strip().split("\n---\n")

SCHEDULES = """
S.StepLR(o, 3)
S.StepLR(o, 2, gamma=0.5)
S.MultiStepLR(o, [2, 5, 5], gamma=0.5)
S.ExponentialLR(o, 0.9)
S.CosineAnnealingLR(o, 4)
S.CosineAnnealingLR(o, 10, eta_min=0.01)
S.LambdaLR(o, lambda e: 0.95**e)
S.LambdaLR(o, [lambda e: 1 / (e + 1)])
S.MultiplicativeLR(o, lambda e: 0.9)
S.ConstantLR(o, 0.5, 3)
S.LinearLR(o, 0.25, total_iters=4)
S.PolynomialLR(o, 6, 2.0)
""".strip().split("\n")


@pytest.mark.parametrize("program", [*PROGRAMS, *LONGER])
def test_program(program: str) -> None:
    found = differs(BEFORE + program, ulp=4)
    assert found is None, found


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedule(schedule: str) -> None:
    program = f"""
{BEFORE}
o = O.SGD([m], 0.1)
s = {schedule}
seen = [s.get_last_lr()]
for i in range(12):
    o.step()
    s.step()
    seen.append((s.get_last_lr(), o.param_groups[0]['lr'], s.last_epoch))
seen.append({{k: v for k, v in s.state_dict().items() if k != 'lr_lambdas'}})
s.step(3)
(seen, s.get_last_lr(), s.base_lrs)"""
    assert differs(program) is None, differs(program)


def test_plateau() -> None:
    program = f"""
{BEFORE}
o = O.SGD([m], 0.1)
s = S.ReduceLROnPlateau(o, factor=0.5, patience=1, cooldown=1)
seen = []
for loss in [1.0, 0.9, 0.95, 0.93, 0.92, 0.91, 0.5, 0.6, 0.6, 0.6, 0.6, 0.6]:
    s.step(loss)
    seen.append(s.get_last_lr())
seen"""
    assert differs(program) is None, differs(program)
