"""Destinations of other dtypes, of shared memory, of wrong number: ``out=`` as PyTorch takes it."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from engine.kinds import destinations  # noqa: E402
from tests.differential import agree  # noqa: E402

MADE = "x = torch.tensor([[2.0, 1.0], [1.0, 3.0]])\nv = torch.tensor([1.0, 2.0, 3.0])\n"
DTYPES = ("float64", "float16", "int32", "int64", "int16", "bool", "uint8", "complex64")

# Calls with {} where the destination goes, and its shape.
ONE = {
    "torch.abs(v, {})": (3,),
    "torch.clamp(v, 0, 1, {})": (3,),
    "torch.exp(v, {})": (3,),
    "torch.add(v, v, {})": (3,),
    "torch.softmax(v, 0, {})": (3,),
    "torch.cat((v, v), {})": (6,),
    "torch.hstack((v, v), {})": (6,),
    "torch.logcumsumexp(v, 0, {})": (3,),
    "torch.logsumexp(v, 0, {})": (),
    "torch.complex(v, v, {})": (3,),
    "torch.fft.fft(v, {})": (3,),
    "torch.fft.irfft(v, 2, {})": (2,),
    "torch.histc(v, 3, {})": (3,),
    "torch.quantile(v, 0.5, {})": (),
    "torch.tensordot(v, v, 1, {})": (),
    "torch.nan_to_num(v, {})": (3,),
    "torch.signbit(v, {})": (3,),
    "torch.searchsorted(v, v, {})": (3,),
    "torch.bucketize(v, v, out_int32=True, {})": (3,),
    "torch.tril(x, {})": (2, 2),
    "torch.linalg.inv(x, {})": (2, 2),
    "torch.linalg.det(x, {})": (),
    "torch.linalg.eigvals(x, {})": (2,),
    "torch.linalg.eigvalsh(x, {})": (2,),
    "torch.linalg.pinv(x, {})": (2, 2),
    "torch.linalg.matrix_rank(x, {})": (),
    "torch.linalg.matrix_norm(x, {})": (),
    "torch.linalg.norm(v, {})": (),
    "torch.linalg.vector_norm(v, {})": (),
    "torch.linalg.multi_dot([x, x, x], {})": (2, 2),
    "torch.linalg.solve_triangular(x, x, upper=True, {})": (2, 2),
    "torch.linalg.matrix_power(x, 2, {})": (2, 2),
    "torch.ormqr(x, v[:2], x, {})": (2, 2),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("call", ONE)
def test_a_destination_of_another_dtype(call: str, dtype: str) -> None:
    out = f"out=torch.zeros({ONE[call]}, dtype=torch.{dtype})"
    agree.agree(MADE + call.format(out), ulp=16, atol=1e-5)


# The same with several results: the destinations' dtypes.
SEVERAL = {
    "torch.max(x, 1, out={})": ("float64", "int64"),
    "torch.sort(v, out={})": ("float32", "int32"),
    "torch.topk(v, 1, out={})": ("float32", "float32"),
    "torch.aminmax(v, out={})": ("float32", "float64"),
    "torch.mode(v, out={})": ("float32", "float32"),
    "torch.mode(v, 0, out={})": ("float16", "int64"),
    "torch.kthvalue(v, 1, out={})": ("float32", "int32"),
    "torch.kthvalue(v, 2, out={})": ("float64", "int64"),
    "torch.cummax(v, 0, out={})": ("float32", "int32"),
    "torch.frexp(v, out={})": ("float32", "float32"),
    "torch.linalg.slogdet(x, out={})": ("float32", "float64"),
    "torch.linalg.eigh(x, out={})": ("float32", "float64"),
    "torch.linalg.eig(x, out={})": ("complex64", "float32"),
    "torch.linalg.qr(x, out={})": ("float64", "float32"),
}


@pytest.mark.parametrize("call", SEVERAL)
def test_one_destination_of_several_of_another_dtype(call: str) -> None:
    outs = ", ".join(f"torch.empty(0, dtype=torch.{dtype})" for dtype in SEVERAL[call])
    agree.agree(MADE + call.format(f"({outs})"))


TUPLES = ["5", "torch.zeros(1)", "(torch.zeros(1),)", "[torch.zeros(1)] * 3", "'a'"]


@pytest.mark.parametrize("out", TUPLES)
@pytest.mark.parametrize("name", ["topk(v, 1", "linalg.qr(x", "cummin(v, 0", "mode(v"])
def test_a_wrong_number_of_destinations(name: str, out: str) -> None:
    agree.agree(f"{MADE}torch.{name}, out={out})")


SHARED = [
    "torch.exp(v[:2], out=v[1:])",
    "torch.add(v[:2], v[1:], out=v[1:])",
    "torch.mul(v[:2], 2, out=v[1:])",
    "torch.addcmul(v[:2], v[:2], v[:2], out=v[1:])",
    "torch.lerp(v[:2], v[:2], 0.5, out=v[1:])",
    "torch.cumsum(v[:2], 0, out=v[1:])",
    "torch.logcumsumexp(v[:2], 0, out=v[1:])",
    "torch.sin(v, out=v)",
    "torch.add(v, v, out=v)",
    "torch.kthvalue(v, 1, out=(v, torch.tensor(0)))",
    "torch.where(v > 1, v, v, out=v)",
]


@pytest.mark.parametrize("call", SHARED)
def test_a_destination_that_shares_memory(call: str) -> None:
    agree.agree(f"{MADE}{call}")
    agree.agree(f"{MADE}try:\n    {call}\nexcept RuntimeError:\n    pass\nv")


@pytest.mark.parametrize("name", sorted(destinations.WITHOUT - {"isclose"}))
def test_no_destination_is_taken(name: str) -> None:
    agree.agree(f"{MADE}torch.{name}(v, out=torch.zeros(3))")


NONE_TAKEN = [
    "torch.isclose(v, v, {})", "torch.dist(v, v, {})", "torch.det(x, {})", "torch.logdet(x, {})",
    "torch.matrix_exp(x, {})", "torch.linalg.matrix_exp(x, {})", "torch.linalg.vander(v, {})",
    "torch.poisson(v, {})", "torch.binomial(v, v / 4, {})", "torch.scalar_tensor(1, {})",
    "torch.select_scatter(x, x[0], 0, 0, {})", "torch.diagonal_scatter(x, x[0], {})",
]  # fmt: skip


@pytest.mark.parametrize("call", NONE_TAKEN)
def test_others_that_take_no_destination(call: str) -> None:
    agree.agree(MADE + call.format("out=torch.zeros(2)"))


# Integers where a tuple is wanted, names for dimensions given twice, names of parameters.
ARGUMENTS = [
    "torch.permute(x, 1, 0)", "torch.permute(v, 0)", "x.permute(1, 0)", "torch.permute(x, (1, 0))",
    "torch.reshape(x, 4)", "torch.reshape(x, 2, 2)", "x.reshape(4)", "torch.reshape(x, shape=(4,))",
    "torch.tile(v, 2)", "v.tile(2)", "torch.flip(v, 0)", "torch.flip(x, 0, 1)", "x.flip(0, 1)",
    "torch.broadcast_to(v, 3)", "torch.rand(size=3)", "torch.zeros(size=3)", "v.new_ones(size=3)",
    "torch.zeros(3)", "torch.ones(2, 3)", "torch.roll(v, 1, dims=None)",
    "torch.mean(x, 0, axis=0)", "torch.cumsum(v, 0, axis=0)", "torch.sum(x, axis=0)",
    "torch.argmax(x, 1, axis=0)",
    "torch.linalg.eigh(A=x)", "torch.linalg.eigh(input=x)", "torch.linalg.eig(None)",
    "torch.linalg.eigvals(v)",
    "torch.linalg.solve_triangular(input=x, B=x, upper=True)", "F.dropout(v, True)",
]  # fmt: skip


@pytest.mark.parametrize("call", ARGUMENTS)
def test_arguments(call: str) -> None:
    agree.agree(f"torch.manual_seed(0)\n{MADE}{call}", ulp=16)
