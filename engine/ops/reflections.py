"""Householder reflections: what geqrf leaves, and the orthogonal matrices made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import TensorRuntimeError
from engine.formats import contiguous_format
from engine.kinds import composite, kernel, made
from engine.kinds.missing import unwritten
from engine.matrices import check_kernel, column_major
from engine.registry import F, functions

if TYPE_CHECKING:
    from engine.kinds import Made
    from engine.tensor import Tensor


def _linalg(name: str) -> Any:
    return functions[f"linalg.{name}"]


def _reflected(xp: Any, a: Any, tau: Any) -> Any:
    """The first columns of H₁ H₂ …, each Hᵢ = I - τᵢ vᵢ vᵢᴴ with vᵢ below the diagonal of a."""
    m, n = a.shape[-2:]
    y = xp.zeros(a.shape, a.dtype)
    y[..., range(n), range(n)] = 1
    for i in range(tau.shape[-1] - 1, -1, -1):
        v = xp.array(a[..., i:, i : i + 1])
        v[..., 0, 0] = 1
        y[..., i:, :] -= tau[..., i, None, None] * v @ (v.swapaxes(-1, -2).conj() @ y[..., i:, :])
    return y


def _householder_gradient(g: Tensor, input: Tensor, tau: Tensor, needed: tuple[bool, ...]) -> Any:
    """By way of the same product written with recorded ops."""
    return _through(_product_of_reflections, g, (input, tau), needed)


def _through(build: Any, g: Tensor, inputs: tuple[Tensor, ...], needed: tuple[bool, ...]) -> Any:
    create = functions["is_grad_enabled"]()
    leaves = [t if create and t.requires_grad else t.detach().requires_grad_() for t in inputs]
    with functions["enable_grad"]():
        y = build(*leaves)
    if not y.requires_grad:  # no reflections
        return (None,) * len(inputs)
    found = functions["autograd.grad"](y, leaves, g, create_graph=create, allow_unused=True)
    return tuple(f if n else None for f, n in zip(found, needed, strict=True))


def _product_of_reflections(a: Tensor, tau: Tensor) -> Tensor:
    m, n = a.layout.shape[-2:]
    y = F.eye(m, n, dtype=a.dtype).expand(a.layout.shape)
    for i in range(tau.layout.shape[-1] - 1, -1, -1):
        below = a.narrow(-2, i + 1, m - i - 1).narrow(-1, i, 1)
        one = below.new_ones((*a.layout.shape[:-2], 1, 1))
        zeros = below.new_zeros((*a.layout.shape[:-2], i, 1))
        v = F.cat((zeros, one, below), -2)
        y = y - tau.narrow(-1, i, 1).unsqueeze(-1) * (v @ (v.mH @ y))
    return y


@kernel(
    name="linalg.householder_product",
    spaces=("linalg.",),
    method=False,
    vjp={"input,tau": _householder_gradient},
    node="LinalgHouseholderProductBackward0",
    example="linalg.householder_product(*geqrf(tensor([[3., 1.], [4., 2.]])))",
)
def householder_product(input: Tensor, tau: Tensor) -> Made:
    """The first columns of a product of Householder reflections, as geqrf leaves them."""
    name = "torch.linalg.householder_product"
    if input.ndim < 2:
        raise TensorRuntimeError(f"{name}: input must have at least 2 dimensions.")
    m, n = input.layout.shape[-2:]
    if m < n:
        raise TensorRuntimeError(
            f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]"
        )
    if n < tau.layout.shape[-1]:
        raise TensorRuntimeError(
            f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]"
        )
    if input.ndim - tau.ndim != 1:
        raise TensorRuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal "
            f"to {tau.ndim} and input.ndim is equal to {input.ndim}"
        )
    if input.layout.shape[:-2] != tau.layout.shape[:-1]:
        raise TensorRuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got "
            f"{list(tau.layout.shape[:-1])}"
        )
    if input.dtype is not tau.dtype:
        raise TensorRuntimeError(
            f"{name}: tau dtype {tau.dtype!r} does not match input dtype {input.dtype!r}"
        )
    check_kernel("orgqr_cpu", input.dtype)
    return made(
        input.dtype,
        column_major(tuple(input.layout.shape)),
        lambda xp: _reflected(xp, input.array, tau.array),
    )


@composite(example="orgqr(*geqrf(tensor([[3., 1.], [4., 2.]])))")
def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """An older name of linalg.householder_product."""
    return _linalg("householder_product")(input, input2)


@kernel(
    vjp=unwritten("geqrf"),
    fields=("a", "tau"),
    example="geqrf(tensor([[3., 1.], [4., 2.]])).tau",
)
def geqrf(input: Tensor) -> Any:
    """R above the diagonal and the Householder vectors below it, with their factors."""
    if input.ndim < 2:
        raise TensorRuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    check_kernel("geqrf_cpu", input.dtype)
    *lead, m, n = input.layout.shape
    k = min(m, n)

    def run(xp: Any) -> Any:
        h, tau = xp.linalg.qr(input.array, "raw")
        return [h.swapaxes(-1, -2), tau]

    return (
        made(input.dtype, column_major(tuple(input.layout.shape)), run),
        made(input.dtype, (*lead, k), run),
    )


@composite(example="ormqr(*geqrf(tensor([[3., 1.], [4., 2.]])), ones(2, 1))")
def ormqr(
    input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    """The full Q of reflections (or its adjoint) times a matrix, from the left or the right."""
    if input.ndim < 2:
        raise TensorRuntimeError("torch.ormqr: input must have at least 2 dimensions.")
    if other.ndim < 2:
        raise TensorRuntimeError("torch.ormqr: other must have at least 2 dimensions.")
    check_kernel("ormqr_cpu", input.dtype)
    m, n = input.layout.shape[-2:]
    whole = input
    if n < m:
        whole = F.cat((input, input.new_zeros((*input.layout.shape[:-1], m - n))), -1)
    elif n > m:
        whole = input.narrow(-1, 0, m)
    q = _linalg("householder_product")(whole, tau)
    q = q.mH if transpose else q
    y = q @ other if left else other @ q
    return y.mT.clone(memory_format=contiguous_format).mT
