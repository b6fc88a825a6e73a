"""torch.linalg against PyTorch: values, column-major strides, gradients and refusals.

Vectors that are unique up to their sign are compared by size.
"""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tests.differential.agree import agree  # noqa: E402

SETUP = """\
A = ((torch.arange(9.) * 1.3) ** 2).sin().reshape(3, 3)
S = A @ A.t() + torch.eye(3)
B = ((torch.arange(18.) * 0.9 + 1) ** 2).sin().reshape(2, 3, 3)
SB = B @ B.mT + torch.eye(3)
R = ((torch.arange(12.) * 0.7 + 1) ** 2).sin().reshape(4, 3)
W = ((torch.arange(12.) * 0.7 + 1) ** 2).sin().reshape(3, 4)
b = R[0]
"""

# What is differentiated in x, and the values of x.
DIFFERENTIATED = {
    "torch.linalg.det(x)": "A B torch.zeros(3,3) torch.ones(2,2)",
    "torch.linalg.slogdet(x)[1]": "A B",
    "torch.logdet(x)": "S",
    "torch.linalg.inv(x)": "A B",
    "torch.linalg.solve(x, b)": "A B",
    "torch.linalg.solve(x, W)": "A B",
    "torch.linalg.solve(x, R, left=False)": "A",
    "torch.linalg.eigh(x)[0]": "S SB",
    "torch.linalg.eigh(x)[1].abs()": "S SB",
    "torch.linalg.eigvalsh(x)": "S",
    "torch.linalg.eig(x)[0].abs().sum()": "A B",
    "torch.linalg.svd(x)[1]": "R W A",
    "torch.linalg.svd(x, full_matrices=False)[0].abs()": "R W A B",
    "torch.linalg.svd(x, full_matrices=False)[2].abs()": "R W A",
    "torch.linalg.svdvals(x)": "R B",
    "torch.svd(x)[2].abs()": "R W",
    "torch.linalg.qr(x)[0].abs()": "R A W",
    "torch.linalg.qr(x)[1].abs()": "R A W",
    "torch.linalg.cholesky(x)": "S SB",
    "torch.linalg.cholesky(x, upper=True)": "S",
    "torch.cholesky_inverse(x)": "S",
    "torch.cholesky_solve(R[:3], x)": "S",
    "torch.linalg.solve_triangular(x, A, upper=True)": "S",
    "torch.linalg.solve_triangular(S, x, upper=False)": "A",
    "torch.linalg.pinv(x)": "R W A",
    "torch.linalg.lstsq(x, R[:, :2])[0]": "R",
    "torch.linalg.matrix_power(x, 5)": "A B",
    "torch.linalg.matrix_power(x, -2)": "A",
    "torch.linalg.matrix_exp(x)": "A B",
    "torch.linalg.cond(x)": "A",
    "torch.linalg.norm(x, 'fro')": "R",
    "torch.linalg.norm(x, 'nuc')": "R",
    "torch.linalg.norm(x, 1)": "R",
    "torch.linalg.norm(x, -2)": "R",
    "torch.linalg.matrix_norm(x, 2, dim=(0, 2))": "B",
    "torch.linalg.matrix_norm(x, inf, dim=(0, 2), keepdim=True)": "B",
    "torch.linalg.lu(x)[1]": "A R W",
    "torch.linalg.lu(x)[2]": "A R W",
    "torch.linalg.lu_factor(x)[0]": "A R W",
    "torch.linalg.lu_solve(*torch.linalg.lu_factor(x), R[:3])": "A",
    "torch.linalg.householder_product(x, R[0])": "R",
    "torch.linalg.multi_dot([x, A, B[0]])": "R",
}


@pytest.mark.parametrize("expression", DIFFERENTIATED)
def test_value_and_gradient(expression: str) -> None:
    for x in DIFFERENTIATED[expression].split():
        agree(
            f"{SETUP}x = ({x}).clone().requires_grad_()\ny = {expression}\n"
            "w = (torch.arange(y.numel() * 1.) + 1).cos().reshape(y.shape)\n"
            "(y * w).sum().backward()\n(y, x.grad)",
            400,
            3e-4,
        )


@pytest.mark.parametrize(
    "expression",
    [
        "torch.linalg.det(R)",
        "torch.linalg.det(torch.zeros(3))",
        "torch.linalg.det(torch.zeros(3, 3).long())",
        "torch.linalg.inv(torch.zeros(2, 2))",
        "torch.linalg.inv(torch.zeros(2, 2, 2))",
        "torch.linalg.inv(torch.zeros(3, 3).half())",
        "torch.linalg.inv(torch.zeros(0, 0))",
        "torch.linalg.solve(A, torch.zeros(4))",
        "torch.linalg.solve(torch.zeros(2, 2), torch.zeros(2))",
        "torch.linalg.solve(A, torch.zeros(3).double())",
        "torch.linalg.solve(B, torch.zeros(2, 3))",
        "torch.linalg.eigh(S, UPLO='X')",
        "torch.linalg.eigh(torch.zeros(3, 3).long())",
        "torch.linalg.eig(torch.full((2, 2), inf))",
        "torch.linalg.svd(torch.full((2, 2), inf))[1]",
        "torch.linalg.svd(torch.zeros(0, 3))[1]",
        "torch.linalg.qr(R, mode='x')",
        "torch.linalg.qr(R, mode='r')[0]",
        "torch.linalg.cholesky(-S)",
        "torch.linalg.cholesky(-SB)",
        "torch.cholesky(-S)",
        "torch.linalg.lstsq(R, torch.zeros(3, 2))",
        "torch.linalg.lstsq(R, torch.ones(4, 2), driver='gelsd')[1:3]",
        "torch.linalg.pinv(torch.zeros(3))",
        "torch.linalg.matrix_rank(R)",
        "torch.linalg.matrix_rank(R, tol=100.)",
        "torch.linalg.matrix_power(A, 2.5)",
        "torch.linalg.cond(A, 3)",
        "torch.linalg.cond(torch.zeros(2, 2), 1)",
        "torch.linalg.norm(R, 3)",
        "torch.linalg.norm(B, 2)",
        "torch.linalg.norm(B, dim=(0, 1, 2))",
        "torch.linalg.matrix_norm(torch.zeros(3))",
        "torch.linalg.matrix_norm(B, 2, dim=(0, 0))",
        "torch.linalg.lu_factor(torch.zeros(2, 2))",
        "torch.linalg.lu(A, pivot=False)",
        "torch.lu_unpack(*torch.linalg.lu_factor(R))",
        "torch.linalg.solve_triangular(A, R, upper=True)",
        "torch.linalg.solve_triangular(A, R[:3])",
        "torch.linalg.ldl_solve(*torch.linalg.ldl_factor(S), W)",
        "torch.linalg.tensorinv(torch.zeros(4, 2, 2))",
        "torch.linalg.diagonal(B, offset=1)",
    ],
)
def test_values_and_sentences(expression: str) -> None:
    agree(SETUP + expression, 400, 1e-4)


def test_second_derivatives() -> None:
    for y in (
        "torch.linalg.inv(x)",
        "torch.linalg.det(x)",
        "torch.linalg.svdvals(x)",
        "torch.linalg.qr(x)[1]",
        "torch.linalg.solve(x, b)",
    ):
        agree(
            f"{SETUP}x = A.clone().requires_grad_()\ny = {y}\n"
            "g = torch.autograd.grad((y * y).sum(), x, create_graph=True)[0]\n"
            "torch.autograd.grad((g * g).sum(), x)[0]",
            20000,
            2e-2,
        )
