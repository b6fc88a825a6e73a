"""Autocast runs in the dtypes that PyTorch runs in; the scaler of gradients moves as PyTorch's."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from tests.differential.agree import differs  # noqa: E402

BEFORE = """
def ramp(*shape):
    n = 1
    for size in shape:
        n *= size
    return (torch.arange(n) % 7 / 8 + 0.125).reshape(shape)
a, b, v, B = ramp(3, 3), ramp(9).flip(0).reshape(3, 3), ramp(3), ramp(2, 3, 3)
im, w, im1, im3 = ramp(1, 2, 5, 5), ramp(2, 2, 3, 3), ramp(1, 2, 5), ramp(1, 2, 4, 4, 4)
pd = a @ a.t() + torch.eye(3)
t = torch.tensor([0, 1, 2])
p = ramp(2, 2).requires_grad_()
"""
LOW = (
    "a, b, v, B, im, w, im1, im3, pd = [x.bfloat16() for x in (a, b, v, B, im, w, im1, im3, pd)]\n"
)

EXPRESSIONS = """
torch.mm(a,b)
a@b
torch.matmul(a,v)
torch.mv(a,v)
torch.dot(v,v)
torch.vdot(v,v)
torch.bmm(B,B)
torch.addmm(a,a,b)
torch.addmv(v,a,v)
torch.addbmm(a,B,B)
torch.baddbmm(B,B,B)
torch.addr(a,v,v)
torch.outer(v,v)
torch.inner(a,b)
torch.einsum('ij,jk->ik',a,b)
torch.tensordot(a,b)
torch.kron(a,b)
torch.chain_matmul(a,b)
torch.linalg.multi_dot([a,b])
torch.linalg.vecdot(a,b)
torch.linalg.matrix_power(a,2)
F.linear(a,b)
F.linear(a,b,v)
F.conv1d(im1,w[:,:,0])
F.conv2d(im,w)
F.conv_transpose2d(im,w)
F.prelu(a,v[:1])
F.scaled_dot_product_attention(B,B,B)
a.softmax(1)
a.log_softmax(1)
F.layer_norm(a,(3,))
F.gelu(a)
a.exp()
a.sum()
a.prod()
a.prod(0)
a.cumprod(0)
a.norm()
a.std()
a.pow(2)
a+b
a.trace()
a.quantile(0.5)
a.nanquantile(0.5)
torch.polar(a,b)
torch.linalg.inv(a)
torch.linalg.solve(a,b)
torch.linalg.svdvals(a)
torch.linalg.qr(a)[0]
torch.linalg.cholesky(pd)
torch.linalg.norm(a)
torch.linalg.vector_norm(a)
torch.linalg.matrix_norm(a)
torch.pinverse(a)
torch.inverse(a)
torch.linalg.matrix_exp(a)
F.mse_loss(a,b)
F.l1_loss(a,b)
F.smooth_l1_loss(a,b)
F.huber_loss(a,b)
F.cross_entropy(a,t)
F.nll_loss(a,t)
F.kl_div(a,b)
F.binary_cross_entropy(a.clamp(0,1),b.clamp(0,1))
F.binary_cross_entropy_with_logits(a,b)
F.cosine_embedding_loss(a,b,torch.ones(3))
F.hinge_embedding_loss(a,b)
F.margin_ranking_loss(a,b,b)
F.triplet_margin_loss(a,b,b)
F.poisson_nll_loss(a,b)
F.soft_margin_loss(a,b)
F.multi_margin_loss(a,t)
F.multilabel_margin_loss(a,torch.zeros(3,3,dtype=torch.int64))
F.multilabel_soft_margin_loss(a,b)
F.gaussian_nll_loss(a,b,b)
F.cosine_similarity(a,b)
F.pairwise_distance(a,b)
torch.fft.fft(a)
torch.fft.rfft(a)
F.avg_pool2d(im,2)
F.avg_pool3d(im3,2)
F.max_pool3d(im3,2)
F.max_pool2d(im,2)
F.adaptive_avg_pool3d(im3,1)
F.adaptive_avg_pool2d(im,1)
torch.cat([a,b.bfloat16()])
torch.stack([a,b.bfloat16()])
a.index_copy(0,t,b.bfloat16())
torch.where(a>0.5,a,b)
torch.dist(a,b)
torch.renorm(a,2,0,1.)
torch.cross(a,b)
a.sigmoid()
a.logsumexp(0)
F.embedding(t,a)
torch.addcmul(a,a,b)
torch.atan2(a,b)
torch.triangular_solve(a,b)[0]
torch.cholesky_solve(a,pd)
torch.matrix_power(a,2)
torch.clamp(a,0,1)
""".strip().split("\n")


@pytest.mark.parametrize("low", [False, True])
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_dtype(expression: str, low: bool) -> None:
    program = f"""{BEFORE}{LOW if low else ""}
with torch.autocast('cpu', dtype=torch.bfloat16):
    y = {expression}
y.dtype"""
    assert differs(program) is None, differs(program)


PROGRAMS = """
with torch.autocast('cpu'):
    y = p @ p
y.sum().backward()
y, p.grad
---
with torch.autocast('cpu', dtype=torch.float16):
    y = (p @ p).exp() + p
y
---
with torch.autocast('cpu', dtype=torch.bfloat16):
    with torch.autocast('cpu', enabled=False):
        y = p @ p
    z = p @ p
y.dtype, z.dtype, (p @ p).dtype
---
with torch.autocast('cpu', dtype=torch.bfloat16):
    y = torch.mm(p.double(), p.double())
y
---
with torch.autocast('cpu', dtype=torch.bfloat16):
    y = torch.mm(p.double(), p)
y
---
with torch.autocast('cpu', dtype=torch.bfloat16):
    h = torch.nn.functional.linear(p, p, p[0]).relu()
    loss = torch.nn.functional.mse_loss(h, p)
loss.backward()
h, loss, p.grad
---
with torch.autocast('cpu', dtype=torch.bfloat16):
    seen = [torch.is_autocast_enabled('cpu'), torch.is_autocast_enabled()]
    seen.append(torch.get_autocast_dtype('cpu'))
seen, torch.is_autocast_enabled('cpu')
---
with torch.autocast('cpu', dtype=torch.float32):
    y = p @ p
y
---
f = torch.autocast('cpu', dtype=torch.bfloat16)(lambda: p @ p)
f().dtype, (p @ p).dtype
---
torch.autocast(3)
---
with torch.amp.autocast('cuda'):
    y = p @ p
y
---
s = torch.amp.GradScaler('cpu', init_scale=8.0, growth_interval=2)
o = torch.optim.SGD([p], lr=0.1)
seen = []
for i in range(6):
    o.zero_grad()
    loss = (p * p).sum() * (inf if i == 2 else 1)
    s.scale(loss).backward()
    if i % 2:
        s.unscale_(o)
    seen.append(p.grad.clone())
    s.step(o)
    s.update()
    seen.append((s.get_scale(), p.detach().clone()))
seen, s.state_dict(), s.is_enabled()
---
s = torch.amp.GradScaler('cpu')
o = torch.optim.SGD([p], lr=0.1)
s.scale((p * p).sum()).backward()
s.unscale_(o)
s.unscale_(o)
---
torch.amp.GradScaler('cpu').update()
---
torch.amp.GradScaler('cpu').scale(3)
---
s = torch.amp.GradScaler()
s.scale(p), s.get_scale(), s.is_enabled(), s.state_dict()
""".strip().split("\n---\n")


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program: str) -> None:
    found = differs(BEFORE + program)
    assert found is None, found
