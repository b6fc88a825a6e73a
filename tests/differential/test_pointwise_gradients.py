"""Derivatives of element-wise operations as PyTorch has them, ties and edges included."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tests.differential.agree import agree  # noqa: E402

PROGRAM = """
x = torch.tensor({values}, dtype=torch.{dtype}, requires_grad=True)
y = torch.tensor({others}, dtype=torch.{dtype}, requires_grad=True)
z = {expression}
r = torch.view_as_real(z) if z.is_complex() else z
(r * torch.arange(1., 1. + r.numel(), dtype=r.dtype).reshape(r.shape)).sum().backward()
(z, x.grad, y.grad)
"""

# Inside every domain: between 0 and 1.
UNARY = (
    "abs acos angle asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 "
    "expm1 floor frac i0 lgamma log log10 log1p log2 logit nan_to_num neg rad2deg reciprocal relu "
    "round rsqrt sgn sigmoid sign sin sinc sinh sqrt square tan tanh trunc special.entr "
    "special.erfcx special.i0e special.i1 special.i1e special.log_ndtr special.ndtri "
    "special.expit special.gammaln special.psi"
).split()

COMPLEX = (
    "abs acos acosh angle asin asinh atan atanh conj_physical cos cosh exp exp2 expm1 log log10 "
    "log1p log2 neg reciprocal rsqrt sgn sigmoid sin sinc sinh sqrt square tan tanh real imag"
).split()

# x against y on numbers, zeros and ties; "N" stands for a number.
BINARY = """
x + y
x - y
x * y
x / y
x ** y.abs()
x.abs() ** y
x % y
x.fmod(y)
N + x
N - x
N * x
N / x
N ** x
x ** N
x % N
x ** 0
x ** 2
x ** 3
x ** 0.5
0 ** x.abs()
torch.add(x, y, alpha=N)
torch.sub(x, y, alpha=N)
torch.rsub(x, y, alpha=N)
torch.maximum(x, y)
torch.minimum(x, y)
torch.fmax(x, y)
torch.fmin(x, y)
torch.clamp(x, 0, 1)
torch.clamp(x, -1)
torch.clamp(x, max=0.5)
torch.clamp(x, y, y + 1)
torch.clamp(x, y, y - 1)
torch.clamp_min(x, y)
torch.clamp_max(x, y)
torch.atan2(x, y)
torch.hypot(x, y)
torch.copysign(x, y)
torch.copysign(x, -1)
torch.lerp(x, y, 0.3)
torch.lerp(x, y, y)
torch.addcmul(x, y, y, value=3)
torch.addcdiv(x, x, y, value=3)
torch.logaddexp(x, y)
torch.logaddexp2(x, y)
torch.xlogy(x, y.abs())
torch.xlogy(x, N)
torch.xlogy(N, y.abs())
torch.special.xlog1py(x, y.abs())
torch.ldexp(x, y)
torch.nextafter(x, y)
torch.div(x, y, rounding_mode='floor')
torch.div(x, y, rounding_mode='trunc')
torch.float_power(x.abs(), y)
torch.polygamma(1, x.abs() + 1)
torch.mvlgamma(x.abs() + 3, 2)
torch.igamma(torch.ones(4, dtype=torch.float64), y.abs())
torch.special.zeta(torch.tensor(2., dtype=torch.float64), x.abs() + 1)
torch.complex(x, y)
torch.polar(x, y)
torch.relu(x)
torch.gradient(x)[0]
x.square()
x.frexp()[0]
"""


def run(expression: str, values: str, others: str, dtype: str = "float64") -> None:
    agree(
        PROGRAM.format(expression=expression, values=values, others=others, dtype=dtype),
        ulp=32,
        atol=1e-12 if dtype in ("float64", "complex128") else 1e-6,
    )


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_unary(name: str, dtype: str) -> None:
    run(f"torch.{name}(x)", "[[0.1, 0.45], [0.7, 0.95]]", "[0., 1.]", dtype)


@pytest.mark.parametrize("name", COMPLEX)
def test_complex(name: str) -> None:
    run(f"torch.{name}(x)", "[0.3+0.4j, -0.6+0.2j, 0.1-0.5j]", "[1+0j]", "complex128")


@pytest.mark.parametrize("expression", [line for line in BINARY.split("\n") if line])
def test_binary(expression: str) -> None:
    values, others = "[0.5, -2., 0., 1.5]", "[0.5, 1., 2., -0.7]"
    run(expression.replace("N", "2.5"), values, others)


@pytest.mark.parametrize("expression", ["x * y", "x / y", "x ** y", "x - y", "x + y", "2 ** x"])
def test_complex_binary(expression: str) -> None:
    run(expression, "[0.3+0.4j, -0.6+0.2j]", "[1+1j, 0.5-2j]", "complex128")


@pytest.mark.parametrize(
    "expression", ["x * y", "x / y", "x ** 2 * y", "torch.maximum(x, y)", "torch.atan2(x, y)"]
)
def test_broadcast(expression: str) -> None:
    run(expression, "[[0.5], [-2.]]", "[0.5, 1., 2.]")


@pytest.mark.parametrize(
    "expression",
    [
        "x.exp()", "x.sin()", "x.tanh()", "x.sigmoid()", "x.log()", "x.sqrt()", "x ** 3", "1 / x",
        "x.erf()", "x.relu()", "x.abs()", "x.clamp(0, 1)", "x.lgamma()", "x.rsqrt()", "x * x",
        "x.atan2(x * x)", "x.logit()", "x ** x", "x.asinh()",
    ],
)  # fmt: skip
def test_second_order(expression: str) -> None:
    agree(
        f"""
x = torch.tensor([0.3, 0.8], dtype=torch.float64, requires_grad=True)
x.requires_grad
({expression}).sum().backward(create_graph=True)
g = x.grad
x.grad = None
g.requires_grad and (g * g).sum().backward()
(g.detach(), x.grad)
""",
        ulp=256,
    )
