"""Nodes without a derivative, nodes of in-place twins, and arguments that may not require grad."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tests.differential import agree  # noqa: E402

LEAF = "x = torch.tensor([0.25, 0.5, 2.0], requires_grad=True)\n"
UNDERIVED = [
    "torch.detach_copy(x)",
    "torch.permute_copy(x, (0,), out=torch.ones(3))",
    "torch.bernoulli(x.clamp(0, 1), 0.5)",
    "torch.floor_divide(x, x)",
    "torch.remainder(3.0, x)",
    "torch.heaviside(x, x.detach())",
    "torch.bincount(torch.tensor([0, 1, 1]), x)",
    "torch.histogram(x, 3)[0]",
    "torch.histogramdd(x.reshape(3, 1), [2])[0]",
    "torch.binomial(x.detach(), x.clamp(0, 1))",
    "torch.scatter(torch.ones(1, 3), 1, torch.tensor([[2, 2, 0]]), x[None], reduce='multiply')",
    "torch.linalg.ldl_factor(x * torch.eye(3))[0]",
    "torch.linalg.ldl_solve(*torch.linalg.ldl_factor(torch.eye(3)), x[:, None])",
    "torch.native_channel_shuffle(x.reshape(1, 3, 1, 1), 3)",
    "torch.geqrf(x * torch.eye(3))[0]",
    "torch.special.zeta(x, x.detach())",
    "torch.igamma(x, x.detach())",
    "torch.embedding_renorm_(x[:, None] * 1, torch.tensor([0]), 0.1, 2.0)",
    "(x * 1).floor_divide_(x)",
    "(x * 1).heaviside_(x.detach())",
]


@pytest.mark.parametrize("call", UNDERIVED)
def test_no_derivative(call: str) -> None:
    made = f"{LEAF}torch.manual_seed(0)\ny = {call}\n"
    agree.agree(f"{made}y", ulp=4)
    agree.agree(f"{made}y.sum().backward()")


TWINS = [
    "F.elu(x * 1, inplace=True)",
    "F.selu(x * 1, inplace=True)",
    "F.celu(x * 1, inplace=True)",
    "F.hardtanh(x * 1, inplace=True)",
    "F.leaky_relu(x * 1, inplace=True)",
    "F.threshold(x * 1, 0.3, 9.0, inplace=True)",
    "F.rrelu(x * 1, training=True, inplace=True)",
    "(x * 1).asinh_()",
    "(x + 1).acosh_()",
    "(x * 0.1).atanh_()",
    "(x * 1).polygamma_(2)",
    "(x * 1).unsqueeze_(0)",
    "(x[None] * 1).transpose_(0, 1)",
    "(x[None] * 1).t_()",
    "(x[None] * 1).squeeze_()",
    "(x[None] * 1).squeeze_(0)",
    "(x[None] * 1).squeeze_((0,))",
    "(x * 1).as_strided_((2,), (1,))",
    "(x * 1).eq_(0.5)",
    "(x * 1).ne_(x.detach())",
    "(x * 1).lt_(1)",
    "(x * 1).less_equal_(0.5)",
    "(x * 1).gt_(x)",
    "(x * 1).ge_(torch.tensor(0.5))",
    "torch.ones(2, 3).eq_(x)",
    "(x * 1)[1:].mul_(2).eq_(1)",
    "(x * 1).logical_not_()",
    "torch.ormqr(torch.eye(3), torch.ones(3), x[:, None])",
    "torch.ormqr(x * torch.eye(3), x, torch.ones(3, 2), True, True)",
    "torch.special.ndtr(x)",
    "torch.trapezoid(x, dx=2)",
    "torch.trapezoid(x, x.detach())",
    "torch.cumulative_trapezoid(x)",
    "torch.quantile(x, 0.3)",
    "torch.stft(x.repeat(6), 4, window=torch.ones(4), return_complex=True).abs()",
    "torch.nn.utils.get_total_norm([x])",
]


@pytest.mark.parametrize("call", TWINS)
def test_nodes_and_gradients(call: str) -> None:
    made = f"{LEAF}torch.manual_seed(0)\ny = {call}\n"
    agree.agree(f"{made}y", ulp=4)
    agree.agree(f"{made}y.sum().backward() if y.requires_grad else None\nx.grad", ulp=16)


def test_a_gradient_that_a_comparison_ends_reaches_the_base_of_a_view() -> None:
    agree.agree(f"{LEAF}b = x * 3\nb[:2].gt_(1)\nb.sum().backward()\n(b, x.grad)")


UNDIFFERENTIATED = [
    "F.soft_margin_loss(torch.ones(3), x)",
    "F.nll_loss(torch.ones(1, 3), torch.tensor([1]), weight=x)",
    "F.nll_loss(torch.ones(1, 3, 1), torch.tensor([[1]]), weight=x)",
    "F.cross_entropy(torch.ones(1, 3), torch.tensor([1]), weight=x, label_smoothing=0.1)",
    "F.binary_cross_entropy(torch.ones(3), torch.ones(3), weight=x)",
    "F.binary_cross_entropy_with_logits(torch.ones(3), torch.ones(3), weight=x)",
    "F.binary_cross_entropy_with_logits(torch.ones(3), torch.ones(3), pos_weight=x)",
    "F.multi_margin_loss(torch.ones(1, 3), torch.tensor([1]), weight=x)",
    "F.batch_norm(torch.ones(2, 3), x, torch.ones(3))",
    "F.batch_norm(torch.ones(2, 3), torch.ones(3), x, training=True)",
    "torch.select_copy(x * 1j, 0, 0)",
    "torch.slice_copy(x * 1j)",
    "torch.view_as_complex_copy(torch.stack((x, x), 1))",
]


@pytest.mark.parametrize("call", UNDIFFERENTIATED)
def test_arguments_that_may_not_require_grad(call: str) -> None:
    agree.agree(f"{LEAF}{call}")
    agree.agree(f"x = torch.tensor([0.25, 0.5, 2.0])\n{call}", ulp=4)


REFUSED = [
    "torch.permute_copy(x, 1)",
    "torch.permute_copy(x)",
    "torch.view_copy(x, 2, 3)",
    "torch.squeeze_copy(x, [slice(1)])",
    "torch.unbind_copy(x, 0, 0)",
    "torch.slice_copy(x, zz=1)",
    "torch.narrow_copy(x, 0, 0)",
    "x.narrow_copy(0, 0)",
    "torch.unbind_copy(x.detach(), out=[torch.ones(2)])",
    "torch.split_with_sizes_copy(x.detach(), [1, 2], out=[torch.ones(2)])",
    "torch.permute_copy(x.detach(), (0,), out=torch.ones(3, dtype=torch.int32))",
    "torch.FloatTensor(a=3)",
    "torch.FloatTensor(x, 1)",
    "torch.FloatTensor(1, 'a')",
    "torch.bernoulli()",
    "torch.bernoulli(x, 1, 2, 3)",
    "torch.ormqr(torch.eye(3), torch.ones(3), torch.ones(2, 2))",
    "torch.ormqr(torch.eye(3), torch.ones(2), torch.ones(3, 2))",
    "torch.ormqr(torch.eye(3), torch.ones(3, 3), torch.ones(3, 2))",
    "torch.ormqr(torch.eye(3), torch.ones(3), torch.ones(1, 3, 2))",
    "torch.ormqr(torch.eye(3), torch.ones(3), torch.ones(3, 2).double())",
    "torch.ormqr(torch.eye(3), torch.ones(3).double(), torch.ones(3, 2))",
    "torch.ormqr(torch.eye(3)[None], torch.ones(1, 3), torch.ones(2, 3, 2))",
]


@pytest.mark.parametrize("call", REFUSED)
def test_refusals(call: str) -> None:
    agree.agree(f"{LEAF}{call}")


def test_resizing_like_another_counts_as_a_change() -> None:
    agree.agree("x = torch.ones(3)\nx.resize_as_(torch.ones(2))\nx._version")
    agree.agree("x = torch.ones(3)\nx.resize_as_(torch.zeros(3))\nx._version")
