"""backward, grad, hooks, modes and nodes do what PyTorch's do, in the same words."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from tests.differential.agree import differs  # noqa: E402

BEFORE = """
G = torch.autograd
x = torch.tensor([-1.0, 0.0], requires_grad=True)
m = torch.tensor([1.0, 2.0], requires_grad=True)
u = torch.tensor([3.0, 4.0], requires_grad=True)
i = torch.tensor([1, 2])
k = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
seen = []
def name(n):
    return n.name() if callable(n.name) else n.name
"""

PROGRAMS = """
G.backward([m.sum()], [None]) or m.grad
G.backward([m.sum(), (u * m).sum()]) or (m.grad, u.grad)
G.backward((m * 2, u.sum()), (torch.ones(2), None)) or (m.grad, u.grad)
G.backward([m.sum(), m * 2])
G.backward(m * 2, torch.tensor([1.0, 5.0])) or m.grad
G.backward(m.sum(), inputs=[u]) or (m.grad, u.grad)
G.backward((m * u).sum(), inputs=u) or (m.grad, u.grad)
G.backward(()) or m.grad
G.grad(m.sum(), 2)
G.grad(2, m)
G.grad(m * 2, m)
G.grad(m * 2, m, torch.ones(3))
G.grad(m * 2, m, torch.ones(2))
G.grad([(m * u).sum(), m.sum()], [m, u])
G.grad((m * u).sum(), [u, m, u])
G.grad((m * 2).sum(), torch.ones(2))
G.grad((m * 2).sum(), u)
G.grad((m * 2).sum(), [m, u])
G.grad((m * 2).sum(), [m, u], allow_unused=True)
G.grad((m * 2).sum(), [m, u], materialize_grads=True)
G.grad((m * 2).sum(), m, allow_unused=False, materialize_grads=True)
G.grad(m * 2, m, torch.eye(2), is_grads_batched=True)
G.grad(m * u, [m, u], torch.eye(2), is_grads_batched=True)
G.grad((m * u).sum(), [m, u], grad_outputs=[torch.tensor(2.0), torch.tensor(3.0)])
G.grad([m.sum(), m.prod()], m, grad_outputs=[torch.tensor(2.0)])
G.grad(m.sum(), [])
m.sum().backward(inputs=i)
m.sum().backward(inputs=[m, u.detach()])
G.grad((m**3).sum(), m, create_graph=True)
G.grad(G.grad((m**3).sum(), m, create_graph=True)[0].sum(), m)
G.grad((m * 1j).sum(), m)
G.grad((k * k.conj()).real.sum(), k)
G.grad(k.abs().sum(), k)
m.sum().backward(inputs=[])
m.sum().backward(torch.tensor(3.0)) or m.grad
m.sum().backward() or m.sum().backward() or m.grad
m.backward()
torch.ones(2).sum().backward()
(m * 2).backward(torch.ones(2, dtype=torch.int64)) or m.grad
(m * 2).backward(torch.ones(3))
(m.exp().sum()).backward(retain_graph=True) or m.grad
m.detach().retain_grad()
m.retain_grad() or m.retains_grad
m.detach().register_hook(print)
i.requires_grad_()
torch.tensor([1.0], requires_grad=True).requires_grad_(False).requires_grad
(m * 2).requires_grad_(False)
torch.set_grad_enabled(1)
torch.inference_mode()(lambda: torch.ones(2).is_inference())()
torch.no_grad()(lambda: (m * 2).requires_grad)()
torch.no_grad()(torch.enable_grad()(lambda: (m * 2).requires_grad))()
torch.is_grad_enabled()
torch.is_inference_mode_enabled()
torch.is_anomaly_enabled()
torch.is_anomaly_check_nan_enabled()
(m * 2).is_leaf, m.is_leaf, i.is_leaf
(m * 2).output_nr, m.unbind()[1].output_nr
(m * 2).detach_().requires_grad
m[:1].detach_()
name((m * 2).grad_fn), [nr for _, nr in (m * 2).grad_fn.next_functions]
[name(n) if n is not None else n for n, _ in (m * 2 + u).grad_fn.next_functions]
(m * 2).grad_fn.next_functions[0][0].variable
[name(n) if n is not None else n for n, _ in (i + u).grad_fn.next_functions]
m.exp().grad_fn._saved_result
m.sin().grad_fn._saved_self
(m * u).grad_fn._saved_other
(m * u).grad_fn.metadata, (m * u).grad_fn.requires_grad
G.grad(F.leaky_relu(m, 0.1).sum(), m, create_graph=True)
G.grad(F.hardtanh(m).sum(), m, create_graph=True)
G.grad(F.softplus(m).sum(), m, create_graph=True)
G.grad(F.gelu(m).sum(), m, create_graph=True)
G.grad(F.elu(m).sum(), m, create_graph=True)
G.grad(F.threshold(m, 0.1, 2.0).sum(), m, create_graph=True)
G.grad(m.softmax(0)[0], m, create_graph=True)
G.grad(m.log_softmax(0)[0], m, create_graph=True)
G.grad(F.mse_loss(m, u), [m, u], create_graph=True)
G.grad(F.huber_loss(m, u), [m, u], create_graph=True)
G.grad(F.smooth_l1_loss(m, u), [m, u], create_graph=True)
G.grad(G.grad(F.leaky_relu(m, 0.1).sum(), m, create_graph=True)[0].sum(), m)
F.soft_margin_loss(m, u)
F.nll_loss(m.reshape(1, 2), torch.tensor([0]), weight=u)
F.cross_entropy(m.reshape(1, 2), torch.tensor([0]), weight=u)
F.nll_loss(m.reshape(1, 2, 1, 1), torch.tensor([[[0]]]), weight=u)
F.binary_cross_entropy(m / 3, u.detach() / 5, weight=u)
F.binary_cross_entropy_with_logits(m, u.detach(), weight=u)
F.binary_cross_entropy_with_logits(m, u.detach(), pos_weight=u)
F.multi_margin_loss(m.reshape(1, 2), torch.tensor([0]), weight=u)
F.batch_norm(m.reshape(1, 2), u, u)
F.batch_norm(torch.empty(0, requires_grad=True), None, None, training=True)
torch.no_grad()(lambda: F.soft_margin_loss(m, u))()
(m // 2).sum().backward()
torch.heaviside(m, u).sum().backward()
torch.bernoulli(m / 2, 0.5).sum().backward()
m.scatter(0, i - 1, u, reduce='add').sum().backward()
torch.bincount(i, m).sum().backward()
torch.binomial(m, u / 5).sum().backward()
torch.igamma(m, u).sum().backward()
torch.special.zeta(m + 1, u).sum().backward()
m.unique().sum().backward()
torch.geqrf(m.reshape(1, 2))[0].sum().backward()
torch.linalg.ldl_factor(m[:1].reshape(1, 1))[0].sum().backward()
torch.native_channel_shuffle(m.reshape(1, 2, 1), 1).sum().backward()
torch.native_channel_shuffle(m.reshape(1, 2, 1), 1)
G.grad(F.hardsigmoid(m).sum(), m, create_graph=True)
G.grad(G.grad(F.hardsigmoid(m).sum(), m, create_graph=True)[0].sum(), m)
G.grad(G.grad(F.multi_margin_loss(m.reshape(1, 2), i[:1]), m, create_graph=True)[0].sum(), m)
G.grad(G.grad(torch.pdist(m.reshape(2, 1)).sum(), m, create_graph=True)[0].sum(), m)
G.grad(m.tanh().sum(), m, create_graph=True)
G.grad(m.sigmoid().sum(), m, create_graph=True)
G.grad(F.glu(m).sum(), m, create_graph=True)
G.grad(F.avg_pool1d(m.reshape(1, 2), 2).sum(), m, create_graph=True)
G.grad(F.max_pool1d(m.reshape(1, 2), 2).sum(), m, create_graph=True)
G.grad(F.max_pool2d(m.reshape(1, 1, 2), (1, 2)).sum(), m, create_graph=True)
G.grad(F.pad(m.reshape(1, 2), (1, 1), 'reflect').sum(), m, create_graph=True)
G.grad(F.conv1d(m.reshape(1, 2), u.reshape(1, 1, 2)).sum(), [m, u], create_graph=True)
G.grad(F.layer_norm(m, (2,), u).sum(), u, create_graph=True)
G.grad(F.embedding(i - 1, m.reshape(2, 1)).sum(), m, create_graph=True)
G.grad(F.interpolate(m.reshape(1, 1, 2), 4).sum(), m, create_graph=True)
G.grad(m[0] ** 2, m, create_graph=True)
G.grad((m[1:] ** 2).sum(), m, create_graph=True)
G.grad((m.reshape(1, 2).diagonal() ** 2).sum(), m, create_graph=True)
G.grad((m.narrow(0, 0, 1) ** 2).sum(), m, create_graph=True)
G.grad((m.unbind()[0] ** 2).sum(), m, create_graph=True)
G.grad((m.unsqueeze(0)[..., 1] ** 3).sum(), m, create_graph=True)
G.grad(G.grad((m[..., 1:] ** 3).sum(), m, create_graph=True)[0].sum(), m, create_graph=True)
G.grad((m * m).mean(), m, create_graph=True)
G.grad(m.mean(), m, create_graph=True)
torch.trapezoid(m, u), torch.cumulative_trapezoid(m, u)
torch.diff(m, n=0, prepend=u)
torch.take_along_dim(m, torch.tensor([-1, 3, -4]), 0)
torch.utils.checkpoint.checkpoint(lambda a: a.sin(), m, use_reentrant=False)
""".strip().split("\n")

LONGER = """
with G.set_detect_anomaly(True):
    x.sqrt().sum().backward()
(x.grad,)
---
with G.set_detect_anomaly(True, check_nan=False):
    x.sqrt().sum().backward()
x.grad
---
with G.detect_anomaly():
    seen.append(torch.is_anomaly_enabled())
seen, torch.is_anomaly_enabled()
---
h = m.register_hook(lambda g: g * 2)
m.sum().backward()
h.remove()
m.sum().backward()
m.grad
---
y = m * 2
y.register_hook(lambda g: seen.append(g))
y.register_hook(lambda g: g * 10)
y.retain_grad()
y.sum().backward()
seen, y.grad, m.grad
---
m.register_hook(lambda g: g.tolist())
m.sum().backward()
---
a, b = m * 1, u * 1
a.retain_grad() or b.retain_grad()
s = (a + b).sum()
s.retain_grad()
s.backward()
a.grad.mul_(7) and s.grad.mul_(5)
a.grad, b.grad, s.grad, a.grad.stride()
---
s = m.sum()
s.register_hook(lambda g: g.mul_(3))
s.backward()
u.sum().backward()
m.grad, u.grad
---
one = torch.ones(1, requires_grad=True)
y = one * 1
y.register_hook(lambda g: g.mul_(3))
y.sum().backward()
u.sum().backward()
one.grad, u.grad
---
def first(g):
    g[0] = 5
y = m * 1
y.register_hook(first)
y.sum().backward()
u.sum().backward()
m.grad, u.grad
---
t = torch.tensor(2.0, requires_grad=True)
y = t * 1
y.grad_fn.register_prehook(lambda g: (g[0].mul_(3),))
y.backward()
u.sum().backward()
t.grad, u.grad
---
t = torch.tensor(2.0, requires_grad=True)
t.backward()
t.grad.mul_(4)
u.sum().backward()
t.grad, u.grad
---
t = torch.tensor(2.0, requires_grad=True)
t.register_hook(lambda g: g.mul_(3))
t.backward()
u.sum().backward()
t.grad, u.grad
---
m.register_hook(lambda g: g.double())
m.sum().backward()
---
y = m * 2
y.register_hook(lambda g: g.reshape(1, 2))
y.sum().backward()
---
m.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad * 1))
m.sum().backward()
(m * 3).sum().backward()
seen
---
(m * 2).register_post_accumulate_grad_hook(print)
---
y = m * 2
y.grad_fn.register_prehook(lambda g: (g[0] * 3,))
y.sum().backward()
m.grad
---
y = m * u
y.grad_fn.register_hook(lambda gi, go: (gi[0] * 3, gi[1]))
y.sum().backward()
m.grad, u.grad
---
y = m * u
h = y.grad_fn.register_hook(lambda gi, go: seen.append((gi, go)))
y.sum().backward()
h.remove()
(m * u).sum().backward()
seen
---
y = m * 2
y.grad_fn.register_prehook(lambda g: seen.append('prehook'))
y.grad_fn.register_hook(lambda gi, go: seen.append('hook'))
y.register_hook(lambda g: seen.append('of the tensor'))
y.sum().backward()
seen
---
y = m.exp()
y.sum().backward()
y.sum().backward()
---
y = m.exp()
y.sum().backward()
y.grad_fn._saved_result
---
y = m.exp()
y.mul_(2)
y.sum().backward()
---
with torch.no_grad():
    y = m * 2
y.requires_grad
---
with torch.no_grad():
    m.add_(1)
m, m._version
---
m.add_(1)
---
torch.set_grad_enabled(False)
y = m * 2
torch.set_grad_enabled(True)
y.requires_grad, (m * 2).requires_grad
---
with torch.set_grad_enabled(False):
    y = m * 2
y.requires_grad, torch.is_grad_enabled()
---
with torch.inference_mode():
    y = m * 2
    y.add_(1)
y.is_inference(), y.requires_grad
---
with torch.inference_mode():
    y = torch.ones(2)
y.add_(1)
---
with torch.inference_mode():
    y = torch.ones(2)
m * y
---
with torch.inference_mode():
    y = torch.ones(2)
y._version
---
with torch.inference_mode():
    y = torch.ones(2)
y.requires_grad_()
---
with torch.inference_mode():
    y = torch.ones(2)
(y + 1).is_inference(), y.clone().is_inference(), y[0].is_inference()
---
with torch.inference_mode():
    y = m * 1
y.sum().backward()
---
with torch.no_grad():
    v = m[:1]
v.mul_(2)
---
y = m * 1
with torch.no_grad():
    v = y[0]
y.mul_(2)
v[::2]
---
a, b = m.clone().unbind()
a.mul_(2)
---
m.grad = torch.ones(3)
---
m.grad = torch.ones(2, dtype=torch.float64)
---
m.grad = 3
---
m.grad = torch.ones(2)
m.sum().backward()
m.grad
---
m.data = torch.tensor([5.0, 6.0])
m, m.is_leaf
---
m.requires_grad = 2
---
i.requires_grad = True
---
y = m * 2
y.requires_grad = False
---
g = torch.autograd.graph.get_gradient_edge(m * 2)
g.output_nr, name(g.node)
---
torch.autograd.graph.get_gradient_edge(i)
---
y = torch.ones(2)
torch.autograd.graph.increment_version(y)
y._version
""".strip().split("\n---\n")


@pytest.mark.parametrize("program", [*PROGRAMS, *LONGER])
def test_program(program: str) -> None:
    found = differs(BEFORE + program, ulp=4)
    assert found is None, found
