"""Gradients of reductions, extrema, order statistics and running sums are PyTorch's."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tests.differential.agree import agree  # noqa: E402

INPUTS = {
    "a": "torch.tensor([[1., 2., -3.], [4., .5, 2.]], dtype=torch.float64)",
    "t": "torch.tensor([[1., 2., -3.], [4., .5, 2.]], dtype=torch.float64).t()",
    "ties": "torch.tensor([[1., 2., 2.], [2., .5, 1.]], dtype=torch.float64)",
    "zeros": "torch.tensor([[0., 2., 0.], [3., 0., 1.]], dtype=torch.float64)",
    "z": "torch.zeros(2, 3, dtype=torch.float64)",
    "n": "torch.tensor([[1., nan, -3.], [4., .5, 2.]], dtype=torch.float64)",
    "v": "torch.tensor([3., -1., 2., 5.], dtype=torch.float64)",
    "s": "torch.tensor(1.5, dtype=torch.float64)",
    "c": "torch.tensor([[1. + 2j, 2., -3. - 1j], [4.j, .5, 2.]], dtype=torch.complex128)",
}

# An expression in x | the names of its inputs.
CASES = """
x.sum()|a s v t c
x.sum(0)|a t c
x.sum((0,1),keepdim=True)|a t
x.sum(-1,dtype=torch.float32)|a
x.mean()|a s v t c
x.mean(0)|a t c
x.mean(1,True)|a
x.prod()|a s v zeros c z
x.prod(0)|a zeros c
x.prod(1,True)|a zeros z
x.std()|a ties v c z
x.std(0)|a c t
x.std(1,unbiased=False,keepdim=True)|a z
x.std(correction=2)|a
x.var()|a c s
x.var(0,correction=5)|a
x.var(0,correction=2)|a ties
x.var((0,1),keepdim=True)|a
torch.var_mean(x,1)[0]|a c
torch.var_mean(x,1)[1]|a c
torch.var_mean(x)[0]+torch.var_mean(x)[1]|a
torch.std_mean(x,1)[0]|a
sum(torch.std_mean(x,0))|a z
x.norm()|a z c
x.norm(1)|a zeros c
x.norm(3)|a zeros
x.norm(0)|a
x.norm(inf)|a ties c
x.norm(-inf)|a ties
x.norm(0.5)|a
x.norm(1.5,1)|a zeros
x.norm(2,1)|a zeros c
x.norm(2,(0,1),True)|a
x.norm(dim=0,p=2,dtype=torch.float64)|a
x.logsumexp(0)|a c
x.logsumexp((0,1))|a
x.logsumexp(1,True)|a
x.amax()|a ties s n
x.amax(0)|a ties n
x.amin((0,1))|a ties
x.amax(1,True)|ties
torch.aminmax(x).min|a ties
torch.aminmax(x,dim=1).max+torch.aminmax(x,dim=1).min|a ties
x.max()|a ties n s
x.min()|a ties
x.max(0)[0]|a ties n
x.max(1,True).values|a ties
x.min(1)[0]|a ties s
x.max(x*2)|a ties
x.median()|a ties v n
x.median(0)[0]|a ties
x.nanmedian()|a n
x.nanmedian(1)[0]|a n
x.mode(1)[0]|a ties
x.kthvalue(2)[0]|a ties
x.kthvalue(2,1,True)[0]|a
x.nansum()|a n
x.nansum(0)|n
x.nanmean(1)|n
x.cumsum(0)|a v c s
x.cumsum(-1)|a
x.cumprod(0)|a v zeros c s
x.cumprod(1)|a zeros z c
x.cummax(1)[0]|a ties n
x.cummin(0)[0]|a ties
x.logcumsumexp(1)|a v
x.logcumsumexp(0)|c
x.sort(1)[0]|a ties s
x.sort(0,descending=True)[0]|a ties
x.msort()|a v
x.topk(2)[0]|a ties v
x.topk(2,0,False)[0]|a
x.quantile(0.3)|a v ties
x.quantile(0.5,1)|a
x.quantile(torch.tensor([.2,.7],dtype=torch.float64),0,True)|a
x.nanquantile(0.4,1)|n
torch.dist(x,x*3+1)|a
torch.dist(x,torch.ones(3,dtype=torch.float64),1)|a
torch.dist(x,torch.ones(3,dtype=torch.float64),3)|a
torch.dist(x,torch.ones(3,dtype=torch.float64),inf)|a
x.renorm(2,0,1.5)|a zeros
x.renorm(1,1,1.5)|a
x.diff()|a v
x.diff(n=2,dim=-1)|a v
torch.trapezoid(x)|a v
torch.trapezoid(x,torch.tensor([0.,1.,3.],dtype=torch.float64))|a
torch.cumulative_trapezoid(x,dx=2.)|a
torch.cov(x)|a v
torch.corrcoef(x)|a
x.clone().cumsum_(0)|a
x.clone().cumprod_(0)|a zeros
(x*1).cumsum_(1)|a
x.sum(dtype=torch.float32)|a
""".strip().split("\n")

PROGRAM = """
x = ({source}).clone().detach().requires_grad_()
y = {expression}
w = torch.arange(1., y.numel() + 1, dtype=y.dtype).reshape(y.shape)
l = (y * w).sum()
l = (l.real + 2 * l.imag) if l.dtype.is_complex else l
l.backward()
x.grad
"""


def _cases() -> list[tuple[str, str]]:
    split = [case.split("|") for case in CASES]
    return [(expression, name) for expression, names in split for name in names.split()]


@pytest.mark.parametrize(("expression", "name"), _cases())
def test_gradient(expression: str, name: str) -> None:
    agree(PROGRAM.format(source=INPUTS[name], expression=expression), ulp=1e5, atol=1e-9)
