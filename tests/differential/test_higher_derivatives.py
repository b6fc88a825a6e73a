"""Derivatives of derivatives of random expressions, and the conventions at ties and edges."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("torch")

from tests.differential.agree import differs  # noqa: E402

# Each maps one or two 3 x 3 matrices to one.
UNARY = """
{a}.sin()
{a}.cos()
(-{a}).exp() / 3
{a}.tanh()
{a}.sigmoid()
({a} * {a} + 1).log()
({a} * {a} + 1).sqrt()
({a} * {a} + 1).rsqrt()
1 / ({a} * {a} + 1)
{a}.relu()
{a}.abs()
{a}.atan()
{a}.erf()
{a}.sinh().asinh()
{a}.expm1().log1p()
{a} ** 2
({a} * {a} + 0.5) ** 1.5
{a}.square() - 1
{a}.neg()
{a}.clamp(-0.5, 0.8)
{a}.t()
{a}.flip(0)
{a}.roll(1, 1)
{a}.cumsum(0)
{a}.cumprod(1)
{a}.tril()
{a} - {a}.mean(1, keepdim=True)
{a} / ({a}.norm() + 1)
{a} / ({a}.norm(dim=0, keepdim=True) + 1)
{a} * {a}.sum(0)
{a} * {a}.prod(1, keepdim=True)
{a} + {a}.std(0)
{a} + {a}.var(1, keepdim=True, unbiased=False)
{a} * {a}.amax(0)
{a} - {a}.max(1, keepdim=True).values
{a} + {a}.logsumexp(0)
{a} * {a}.median(1, keepdim=True).values
{a}.sort(1).values
{a}.topk(3, 0).values
{a}.softmax(1)
{a}.log_softmax(0)
F.softplus({a})
F.gelu({a})
F.gelu({a}, approximate='tanh')
F.silu({a})
F.elu({a})
F.leaky_relu({a}, 0.1)
F.logsigmoid({a})
F.layer_norm({a}, (3,))
{a}[[2, 0, 0]]
{a}[:, [1, 1, 2]] * 0.5
{a}.gather(1, k)
{a}.index_select(0, j)
{a}.scatter(1, k, {a} * 2)
{a}.scatter_add(0, k, {a})
{a}.index_add(0, j, {a})
{a}.masked_fill(m, 0.5)
torch.where(m, {a}, {a} * {a})
{a}.reshape(9).view(3, 3).t()
{a}.unsqueeze(0).expand(2, 3, 3).sum(0)
{a}.diagonal() + {a}
{a}.trace() * {a}
torch.cat([{a}[1:], {a}[:1]])
torch.stack([{a}[0], {a}[2], {a}[1]], 1)
F.pad({a}, (1, 0))[:, :3]
{a}.diff(dim=1).sum() * {a}
{a}.pow(3) / 3
torch.linalg.det({a} * 0.1 + e) * {a}
torch.linalg.inv({a} * 0.1 + 2 * e)
torch.linalg.solve({a} * 0.1 + 2 * e, {a})
{a}.lerp({a} * {a}, 0.3)
{a}.addcmul({a}, {a}, value=0.1)
{a}.addcdiv({a}, {a} * {a} + 1)
torch.hypot({a}, {a} * {a} + 1)
{a}.atan2({a} * {a} + 1)
{a}.kron(e)[:3, :3]
{a}.repeat(2, 1)[1:4]
{a}.unfold(0, 3, 1)[0]
{a}.unbind(0)[1] * {a}
torch.tensordot({a}, {a}, 1) * 0.3
torch.einsum('ij,kj->ik', {a}, {a}) * 0.3
""".strip().split("\n")

BINARY = """
{a} + {b}
{a} - {b}
{a} * {b}
{a} / ({b} * {b} + 1)
{a} @ {b} * 0.3
torch.maximum({a}, {b})
torch.minimum({a}, {b})
torch.where({a} > {b}, {a}, {b} * 2)
({a} * {a} + 0.5) ** ({b} * 0.3)
torch.logaddexp({a}, {b})
F.linear({a}, {b}) * 0.3
torch.addmm({a}, {b}, {a}) * 0.3
({a} - {b}).pow(2)
F.mse_loss({a}, {b}) * {a}
F.smooth_l1_loss({a}, {b}, reduction='none')
""".strip().split("\n")

BEFORE = """
x = torch.tensor([[0.3, -0.7, 1.1], [0.9, 0.2, -0.4], [-1.2, 0.6, 0.8]], dtype=torch.float64,
                 requires_grad=True)
w = torch.tensor([[1.3, 0.4, -0.6], [-0.2, 0.7, 0.5], [0.1, -0.9, 1.4]], dtype=torch.float64,
                 requires_grad=True)
v = torch.tensor([[0.5, 1.0, -1.5], [2.0, -0.5, 0.25], [1.0, 0.75, -1.0]], dtype=torch.float64)
e = torch.eye(3, dtype=torch.float64)
k = torch.tensor([[0, 2, 2], [1, 0, 1], [2, 2, 0]])
j = torch.tensor([2, 0, 2])
m = torch.tensor([[True, False, True], [False, False, True], [True, True, False]])
def second(y):
    g = torch.autograd.grad(y.sum(), [x, w], create_graph=True, allow_unused=True,
                            materialize_grads=True)
    s = sum((p * v).sum() for p in g)
    if not s.requires_grad:
        return [t.contiguous() for t in g]
    h = torch.autograd.grad(s, [x, w], create_graph=True, allow_unused=True,
                            materialize_grads=True)
    return [t.detach().contiguous() for t in (*g, *h)]
"""


def expression(rng: random.Random, depth: int) -> str:
    """A random expression of x and w."""
    if depth == 0:
        return rng.choice("xw")
    if rng.random() < 0.7:
        template = rng.choice(UNARY)
        inner = expression(rng, depth - 1)
        if template.count("{a}") > 1 and depth > 1:
            return f"(lambda q: {template.format(a='q')})({inner})"
        return f"({template.format(a=inner)})"
    template = rng.choice(BINARY)
    a, b = expression(rng, depth - 1), expression(rng, rng.randrange(depth))
    return f"(lambda q, r: {template.format(a='q', b='r')})({a}, {b})"


@pytest.mark.parametrize("template", [*UNARY, *BINARY])
def test_each(template: str) -> None:
    body = template.format(a="(x * w)", b="(x - w)")
    found = differs(f"{BEFORE}second({body} * {body})", ulp=1e5, atol=1e-10)
    assert found is None, found


# How far apart two answers may be, in units in the last place and absolutely.
NEAR = {"ulp": 1e6, "atol": 1e-9}


def rounding_decides(body: str, seed: int) -> bool:
    """Whether both agree for inputs that are a few units in the last place away: what they differ
    by is then no other derivative, but dust where there ought to be an exact 0."""
    rng = random.Random(seed)
    for _ in range(20):
        moved = ""
        for t in "xw":
            dust = [[rng.choice((-4, -2, 0, 2, 4)) for _ in range(3)] for _ in range(3)]
            moved += f"{t} = ({t} + 1e-16 * {t} * torch.tensor({dust}, dtype=torch.float64))"
            moved += ".detach().requires_grad_()\n"
        if differs(f"{BEFORE}{moved}second({body})", **NEAR) is None:
            return True
    return False


@pytest.mark.parametrize("seed", range(150))
def test_random(seed: int) -> None:
    rng = random.Random(seed)
    body = expression(rng, rng.randint(3, 6))
    found = differs(f"{BEFORE}second({body})", **NEAR)
    assert found is None or rounding_decides(body, seed), (body, found)


@pytest.mark.parametrize("function", ["F.elu", "F.selu", "F.celu"])
def test_elu_passes_nan_on(function: str) -> None:
    text = f"""
x = torch.tensor([0.0, float("inf"), -1.0, 2.0, float("nan")], requires_grad=True)
w = torch.tensor([float("nan"), 1.0, 2.0, 3.0, 1.0], requires_grad=True)
v = torch.tensor([1.0, float("nan"), 1.0, 2.0, 1.0])
(d,) = torch.autograd.grad({function}(x), x, w, create_graph=True)
(d, *torch.autograd.grad(d, [x, w], v))
"""
    found = differs(text)
    assert found is None, found
