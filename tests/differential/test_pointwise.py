"""Element-wise operations as PyTorch has them: values, dtypes, strides, nodes and refusals."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tests.differential.agree import agree  # noqa: E402

NAMES = """
x = torch.tensor([1., -2.])
i = torch.tensor([1, -2, 3])
b = torch.tensor([True, False])
u = torch.tensor([1, 200], dtype=torch.uint8)
c = torch.tensor([1+2j, -3j])
h = torch.tensor([1., -2.], dtype=torch.float16)
g = torch.tensor([1., 2.], requires_grad=True)
k = torch.tensor([1], dtype=torch.uint16)
"""

EXPRESSIONS = """
torch.add(1,x)
torch.mul(2,x)
torch.sub(2,x)
torch.div(2,x)
torch.pow(2,x)
torch.remainder(2,x)
torch.floor_divide(2,x)
torch.atan2(x,2)
torch.maximum(x,2)
torch.bitwise_and(i,2)
torch.bitwise_and(2,i)
torch.logical_and(b,True)
torch.add(1,2)
torch.mul(1,2)
u+300
u==300
u==-56
u<300
u+1.5
b+b
b-b
b-1
1-b
-b
abs(b)
abs(u)
-u
b*b
b/b
b//b
i//0
i%0
i.div(0,rounding_mode='trunc')
i.fmod(0)
x//0
i/0
i**-1
i**2.0
i**-1.0
i**torch.tensor(-1)
2**i
0**i
torch.tensor([0])**0
i.pow(2.5)
b**2
b**b
2**b
torch.add(x,1,alpha=2)
torch.add(i,1,alpha=2.5)
torch.add(b,b,alpha=2)
torch.add(x,1,alpha=True)
torch.add(i,i,alpha=True)
torch.add(x,1,alpha=2j)
torch.sub(b,b)
c<c
c<1
c//1
c%2
c.floor()
i.ceil()
b.ceil()
i.round()
b.round()
torch.round(x,decimals=2)
torch.round(i,decimals=2)
i.sqrt()
b.sqrt()
i.sign()
b.sign()
c.sign()
b.exp()
b.square()
b.reciprocal()
i.rsqrt()
i.trunc()
i.frac()
i.sigmoid()
b.relu()
i.relu()
c.relu()
(g**2)
(g**g)
(2**g)
(2-g)
(2/g)
(g%2)
(g%g)
(2%g)
(g//2)
(g//g)
g.div(2,rounding_mode='floor')
g.div(g,rounding_mode='floor')
g.fmod(2)
g.fmod(g)
g.lerp(g,0.5)
g.lerp(g,g)
g.clamp(0,1)
g.clamp(g,g)
g.clamp(0)
g.clamp(max=0)
g.clamp_min(0)
g.clamp_min(g)
g.round(decimals=2)
g.clip(0,1)
(g-2)
(g*2)
(g/2)
(abs(g))
g.square()
torch.rsub(g,2)
torch.rsub(g,g)
torch.true_divide(g,2)
g.add(g,alpha=2)
g.sigmoid()
g.logit()
g.float_power(2)
g.xlogy(2)
torch.xlogy(2,g)
g.xlogy(g)
g.ceil()
g.sign()
g.maximum(g)
torch.fmax(g,g)
g.nan_to_num()
g.ge(1)
g.heaviside(g)
g.copysign(2.)
g.copysign(g)
g.ldexp(g)
g.sgn()
g.hypot(g)
g.nextafter(g)
g.addcmul(g,g)
g.frexp()
i.neg()
c.abs()
c.neg()
c.clamp(0,1)
x.clamp()
x.clamp(1,0)
x.clamp(float('nan'),1)
i.clamp(0.5,2)
i.clamp(0,2)
u.clamp(-1,300)
b.clamp(0,1)
b.clamp(False,True)
torch.clamp(torch.tensor([float('nan')]),0,1)
x.clamp(min=torch.tensor([0.]),max=torch.tensor([1.]))
x.clamp(torch.zeros(3),torch.zeros(2))
x.clamp(torch.zeros(3))
i.clamp(torch.tensor([0.5]))
x.clamp_min(0.5)
i.clamp_min(0.5)
x.clamp_min(float('nan'))
i.clamp_max(1.5)
x.maximum(torch.tensor([0,1]))
c.maximum(c)
b.maximum(b)
torch.maximum(torch.tensor([float('nan'),1.]),torch.tensor([1.,float('nan')]))
torch.fmax(torch.tensor([float('nan'),1.]),torch.tensor([1.,float('nan')]))
b.fmax(b)
b&i
i&1.5
x&x
i&True
b&1
~b
~i
~x
b^True
i<<2
i>>1
i<<-1
i<<64
i<<70
i>>64
x<<1
b<<1
1<<i
i.bitwise_left_shift(1.5)
x.bitwise_not()
x.logical_and(i)
c.logical_or(c)
x.logical_not()
i.logical_xor(b)
x.isnan()
i.isnan()
c.isnan()
c.isinf()
i.isinf()
x.isfinite()
torch.isclose(x,i[:2])
torch.isclose(x,x)
torch.isclose(x,x,rtol=-1)
torch.isclose(x,x,atol=-1)
torch.isclose(i,i,rtol=0.5)
torch.allclose(x,i[:2])
torch.allclose(x,torch.zeros(3))
torch.equal(x,i)
torch.equal(x,i[:2])
torch.equal(x,x.double())
torch.equal(torch.zeros(2),torch.zeros(3))
torch.equal(x,1)
x.lerp(x,2)
x.lerp(i[:2],0.5)
i.lerp(i,0.5)
torch.lerp(x,x,x.double())
torch.addcmul(x,x,x,value=2)
torch.addcmul(i,i,i,value=2.5)
torch.addcmul(i,i,i)
torch.addcmul(b,b,b)
torch.addcmul(x,i[:2],x)
torch.addcdiv(i,i,i)
torch.addcdiv(x,x,x,value=2)
torch.addcdiv(x,2,x)
torch.hypot(i,i)
torch.atan2(i,i)
torch.atan2(c,c)
torch.copysign(i,-1)
torch.copysign(x,-0.0)
torch.heaviside(x,i[:2])
torch.heaviside(x,x)
torch.logaddexp(i,i)
torch.logaddexp(x,x)
torch.logaddexp(c,c)
torch.nan_to_num(i)
torch.nan_to_num(torch.tensor([float('nan'),float('inf')]),posinf=3)
torch.nan_to_num(torch.tensor([float('nan'),float('inf'),-float('inf')],dtype=torch.half))
torch.xlogy(i,i)
torch.xlogy(i,2)
torch.sinc(i)
torch.deg2rad(i)
torch.rad2deg(b)
torch.rad2deg(c)
torch.real(x)
torch.imag(x)
torch.imag(c)
torch.conj(c)
torch.angle(x)
torch.angle(i)
torch.angle(c)
torch.polar(x,x)
torch.polar(i,i)
torch.complex(x,x)
torch.complex(x,x.double())
torch.complex(i,i)
torch.view_as_real(c)
torch.view_as_real(x)
torch.view_as_complex(x)
torch.view_as_complex(i[:2])
torch.float_power(i,2)
torch.float_power(2,i)
torch.float_power(x,0.5)
torch.float_power(c,2)
torch.gcd(i,i)
torch.gcd(x,x)
torch.lcm(i,torch.tensor([2,3,0]))
torch.frexp(i)
torch.frexp(x.double())
torch.ldexp(x,i[:2])
torch.ldexp(i,i)
torch.nextafter(x,x+1)
torch.nextafter(i,i)
torch.signbit(x)
torch.signbit(i)
torch.signbit(u)
torch.signbit(c)
torch.signbit(b)
torch.sgn(c)
torch.sgn(i)
torch.sgn(b)
torch.erf(i)
torch.erf(c)
torch.lgamma(i)
torch.erfinv(torch.tensor([-1.,1.,2.,0.5]))
torch.polygamma(2,x)
torch.polygamma(-1,x)
torch.mvlgamma(torch.tensor([3.,4.]),2)
torch.mvlgamma(torch.tensor([0.5,4.]),2)
torch.igamma(torch.tensor([1.,2.]),torch.tensor([1.,2.]))
torch.i0(i)
torch.sigmoid(c)
torch.logit(x,eps=0.1)
torch.logit(i)
torch.square(u)
torch.remainder(c,c)
torch.abs(c.to(torch.complex128))
torch.positive(b)
torch.positive(i)
torch.exp2(i)
torch.expm1(c)
torch.log1p(c)
torch.floor(u)
torch.round(torch.tensor([0.5,1.5,2.5,-0.5]))
torch.round(torch.tensor([1234.5678]),decimals=-2)
torch.round(torch.tensor([1.2345],dtype=torch.half),decimals=2)
torch.trunc(c)
torch.frac(torch.tensor([1.5,-2.5]))
torch.frac(c)
torch.is_nonzero(x)
torch.is_nonzero(x[0])
torch.isreal(c)
torch.isposinf(i)
torch.isposinf(c)
torch.isneginf(c)
torch.true_divide(i,i)
i.div(i,rounding_mode='x')
i.div(2,rounding_mode='floor')
i.div(2,rounding_mode='trunc')
i.div(2.,rounding_mode='trunc')
x.div(x,rounding_mode=None)
c.div(c,rounding_mode='floor')
c.div(c,rounding_mode='trunc')
b.div(b,rounding_mode='trunc')
-k
k+1
k*k
k//2
k-1
k/2
k.abs()
k.sqrt()
k**2
k==1
k<1
k&1
k<<1
k%2
k.fmod(2)
k.maximum(k)
k.clamp(0)
k.logical_and(k)
k.logical_not()
k.sign()
k.floor()
k.round()
~k
"""

STRIDES = """
torch.tensor([[1.], [2.], [3.]]).t() + 1
torch.tensor([[1., 2., 3.]]).t().abs()
torch.tensor([[1., 2., 3.]]).t().isinf()
torch.tensor([[1, 2, 3]]).t().isfinite()
torch.tensor([[1., 2., 3.], [4., 5., 6.]]).t() * 2
2 ** torch.tensor([[1., 2., 3.]]).t()
torch.tensor([[1., 2., 3.]]).t() ** 2
torch.tensor([[1., 2., 3.]]).t().clamp(0, 1)
torch.tensor([[1., 2., 3.]]).t().rad2deg()
torch.tensor([[1+1j, 2j], [3j, 4j]]).t().angle()
torch.tensor([[1+1j, 2j], [3j, 4j]]).t().abs()
1 - torch.tensor([[1., 2., 3.], [4., 5., 6.]]).t()
torch.tensor([[1., 2., 3.], [4., 5., 6.]]).t() + torch.tensor([1., 2.])
torch.zeros(2, 0, 3) + torch.zeros(3)
"""

IN_PLACE = """
x.add_(1, alpha=2)
x.sub_(x)
i.add_(1.5)
i.div_(2)
i.div_(2, rounding_mode='floor')
i.floor_divide_(2)
i.pow_(-1)
i.pow_(0.5)
b.add_(1)
b.square_()
x.eq_(1)
x.logical_not_()
i.sigmoid_()
x.bitwise_and_(1)
x[:1].add_(torch.zeros(2))
x.clamp_(b)
u.clamp_(-1, 300)
x.float_power_(2)
x.double().float_power_(2)
c.abs_()
h.mul_(x)
h.add_(1e10)
x.mul_(1j)
x.copysign_(-1)
c.sgn_()
x.relu_()
x.nan_to_num_()
x.lerp_(x + 1, 0.5)
x.addcmul_(x, x, value=0.5)
h.bitwise_right_shift_(torch.zeros(3))
c.ge_(torch.zeros(3))
g.mul_(2)
g.add(0).mul_(g)
"""

# Operands of other dtypes are rounded to the half type first, the last number of a product not.
HALF = """
0.1 * h
torch.mul(0.1, h)
h * 0.1
h / 0.3
0.3 / h
h + 0.1
h - torch.tensor(0.1)
h % 0.3
h == 0.1
h.bfloat16() ** 3
h.bfloat16() == 0.1
h.bfloat16() * 0.1 + 0.3
h.bfloat16().abs().rsqrt()
h.abs().logit()
torch.lerp(h, h + 1, 0.3)
torch.special.entr(h.abs())
torch.special.ndtr(x)
"""


def lines(table: str) -> list[str]:
    return [line for line in table.split("\n") if line]


@pytest.mark.parametrize("expression", lines(EXPRESSIONS))
def test_expression(expression: str) -> None:
    agree(NAMES + expression)


@pytest.mark.parametrize("expression", lines(STRIDES))
def test_strides(expression: str) -> None:
    agree(expression)


@pytest.mark.parametrize("expression", lines(IN_PLACE))
def test_in_place(expression: str) -> None:
    agree(NAMES + expression)


@pytest.mark.parametrize("expression", lines(HALF))
def test_half(expression: str) -> None:
    agree(NAMES + expression, ulp=0)


MAPPED = """
x.apply_(lambda v: v * 2)
i.apply_(lambda v: v / 2)
b.apply_(lambda v: not v)
g.apply_(lambda v: v)
x.map_(x + 1, lambda a, b: a * b)
x.map_(i[:2], lambda a, b: a)
x.map2_(x + 1, x, lambda a, b, c: a * b + c)
torch.zeros(2, 3).t().apply_(lambda v: v + 1)
"""


@pytest.mark.parametrize("expression", lines(MAPPED))
def test_mapped(expression: str) -> None:
    agree(NAMES + expression)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", ["3.0", "[3.0]"])
@pytest.mark.parametrize("number", ["1e10", "1e39", "1e-9", "1.001", "65519.0"])
def test_numbers_on_either_side_of_low_precision(dtype: str, shape: str, number: str) -> None:
    """A number is rounded first, unless it comes last where PyTorch takes it as it is."""
    t = f"torch.tensor({shape}, dtype=torch.{dtype})"
    for sign in ("//", "%", "/", "*", "+", "-"):
        agree(f"{number} {sign} {t}")
        agree(f"{t} {sign} {number}")
