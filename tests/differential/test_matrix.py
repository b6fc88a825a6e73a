"""Products of matrices and vectors against PyTorch: values, strides, graph names and refusals."""

from __future__ import annotations

import itertools
import math

import pytest

torch = pytest.importorskip("torch")

from tests.differential.agree import agree  # noqa: E402

SHAPES = [
    (), (2,), (3,), (2, 3), (3, 4), (2, 4, 3), (3, 3, 4), (1, 3, 2), (2, 1, 3, 4), (1, 2, 4, 3),
    (0,), (0, 3), (3, 0), (2, 0, 3),
]  # fmt: skip


def filled(shape: tuple[int, ...], more: str = "") -> str:
    return f"(torch.arange({math.prod(shape)}.) * 0.7).sin().reshape({shape}){more}"


@pytest.mark.parametrize("name", ["mm", "mv", "dot", "vdot", "bmm", "matmul", "inner", "outer"])
def test_products_of_every_pair_of_shapes(name: str) -> None:
    for a, b in itertools.product(SHAPES, SHAPES):
        agree(f"torch.{name}({filled(a)}, {filled(b)})", 8, 1e-6)


@pytest.mark.parametrize(("first", "second"), [(True, True), (True, False), (False, True)])
def test_matmul_records_what_pytorch_records(first: bool, second: bool) -> None:
    for a, b in itertools.product(SHAPES, SHAPES):
        program = (
            f"a = {filled(a)}.requires_grad_({first})\nb = {filled(b)}.requires_grad_({second})\n"
            "c = a @ b\n"
        )
        agree(program + "c", 8, 1e-6)
        agree(program + "(c * c).sum().backward()\n(a.grad, b.grad)", 16, 1e-5)


@pytest.mark.parametrize(
    "dtype",
    "bool uint8 int16 int32 int64 float16 bfloat16 float64 complex64 uint16 float8_e5m2".split(),
)
def test_products_in_other_dtypes(dtype: str) -> None:
    more = f".to(torch.{dtype})"
    for name, a, b in (
        ("mm", (2, 3), (3, 4)),
        ("mv", (2, 3), (3,)),
        ("dot", (3,), (3,)),
        ("vdot", (3,), (3,)),
        ("bmm", (2, 4, 3), (2, 3, 4)),
        ("matmul", (3,), (3, 4)),
        ("matmul", (2, 4, 3), (3,)),
        ("matmul", (2, 3), (2, 3, 4)),
        ("matmul", (2, 0), (0, 2)),
    ):
        agree(f"torch.{name}({filled(a, more)}, {filled(b, more)})", 4, 1e-6)
        agree(f"torch.{name}({filled(a)}, {filled(b, more)})", 4, 1e-6)
        agree(
            f"torch.{name}({filled(a)}, {filled(b)}, out=torch.zeros(1).to(torch.{dtype}))", 8, 1e-6
        )


ADDED = {
    "addmm": ((2,), (2, 3), (3, 2)),
    "addmv": ((2,), (2, 3), (3,)),
    "addbmm": ((2, 2), (2, 2, 3), (2, 3, 2)),
    "baddbmm": ((2, 2), (2, 2, 3), (2, 3, 2)),
    "addr": ((2, 3), (2,), (3,)),
}
OTHERS = {
    "inner": ((2, 3), (2, 3)),
    "kron": ((2, 3), (2,)),
    "trace": ((3, 2),),
    "cross": ((2, 3), (2, 3)),
    "outer": ((2,), (3,)),
    "linalg.vecdot": ((2, 3), (2, 3)),
}


@pytest.mark.parametrize("more", ["", ".to(torch.complex64) * (1 + 1j)", ".double()"])
@pytest.mark.parametrize("name", [*ADDED, *OTHERS])
def test_gradients(name: str, more: str) -> None:
    shapes = {**ADDED, **OTHERS}[name]
    names = "abc"[: len(shapes)]
    setup = "".join(
        f"{n} = ({filled(s, more)}).requires_grad_()\n" for n, s in zip(names, shapes, strict=True)
    )
    grads = ", ".join(f"{n}.grad" for n in names)
    for options in ["", ", beta=2, alpha=0.5"] if name in ADDED else [""]:
        agree(
            f"{setup}y = torch.{name}({', '.join(names)}{options})\n"
            f"(y * y.conj()).real.sum().backward()\n(y, {grads})",
            32,
            1e-5,
        )


def test_second_derivative_and_strides_of_gradients() -> None:
    agree(
        "a = torch.ones(2, 3).requires_grad_()\nb = torch.ones(3, 2).requires_grad_()\n"
        "g = torch.autograd.grad((a @ b).pow(2).sum(), [a, b], create_graph=True)\n"
        "torch.autograd.grad((g[0] * g[1].t()).sum(), [a, b])"
    )
    agree(
        "a = torch.ones(3, 2).t().requires_grad_()\nb = torch.ones(4, 3).t().requires_grad_()\n"
        "torch.autograd.grad((a @ b).sum(), [a, b])"
    )


@pytest.mark.parametrize(
    "call",
    [
        "torch.addmm(torch.zeros(2), torch.zeros(2, 3), torch.zeros(3, 4))",
        "torch.addmm(torch.zeros(2), torch.zeros(2, 3), torch.zeros(2, 4))",
        "torch.addmm(torch.zeros(2), torch.zeros(3), torch.zeros(4))",
        "torch.addmm(torch.tensor([inf - inf, 1.]), torch.ones(2, 3), torch.ones(3, 2), beta=0)",
        "torch.zeros(2).addmm_(torch.zeros(2, 3), torch.zeros(3, 2))",
        "torch.addmv(torch.zeros(2, 2), torch.zeros(2, 3), torch.zeros(3))",
        "torch.addbmm(torch.zeros(2), torch.zeros(2, 3), torch.zeros(3))",
        "torch.baddbmm(torch.zeros(2).long(), torch.zeros(2, 2, 3), torch.zeros(2, 3, 2))",
        "torch.addr(torch.ones(2).long(), torch.ones(2).long(), torch.ones(2).long(), beta=1.5)",
        "torch.trace(torch.zeros(3))",
        "torch.trace(torch.ones(2, 3).int())",
        "torch.cross(torch.zeros(2, 4), torch.zeros(2, 4))",
        "torch.linalg.cross(torch.zeros(3, 4), torch.zeros(3, 4))",
        "torch.tensordot(torch.ones(2, 3), torch.ones(3, 4), dims=0)",
        "torch.tensordot(torch.zeros(2, 3), torch.zeros(3, 4), dims=([1], [1]))",
        "torch.tensordot(torch.zeros(2, 3), torch.zeros(2, 3), dims=3)",
        "torch.linalg.multi_dot([torch.ones(3), torch.ones(3, 4), torch.ones(4)])",
        "torch.linalg.multi_dot([torch.zeros(2, 3), torch.zeros(4, 2)])",
        "torch.linalg.multi_dot([torch.zeros(3)])",
        "torch.linalg.vander(torch.arange(3))",
    ],
)
def test_sentences(call: str) -> None:
    agree(call)


EQUATIONS = {
    "ij,jk->ik": ((2, 3), (3, 4)),
    "ii->i": ((3, 3),),
    "ii": ((3, 3),),
    "ij,ij->": ((2, 3), (2, 3)),
    "i,j->ij": ((2,), (3,)),
    "bij,bjk->bik": ((2, 2, 3), (2, 3, 2)),
    "ij->ji": ((2, 3),),
    "ij,jk,kl->il": ((2, 3), (3, 4), (4, 2)),
    "...ij,...jk->...ik": ((5, 2, 3), (3, 4)),
    "bn,anm,bm->ba": ((2, 3), (4, 3, 5), (2, 5)),
    "bhid,bhjd->bhij": ((2, 2, 3, 4), (2, 2, 5, 4)),
    "ij,kj->ki": ((2, 3), (4, 3)),
    "ij,ij->i": ((2, 3), (2, 3)),
    "iij,jk->ik": ((2, 2, 3), (3, 2)),
    "i...->...": ((2, 3, 4),),
    "ij,j,k->ik": ((2, 3), (1,), (4,)),
    "Ba": ((2, 3),),
}


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum(equation: str) -> None:
    shapes = EQUATIONS[equation]
    names = "abc"[: len(shapes)]
    setup = "".join(
        f"{n} = {filled(s)}.requires_grad_()\n" for n, s in zip(names, shapes, strict=True)
    )
    grads = ", ".join(f"{n}.grad" for n in names)
    agree(
        f"{setup}y = torch.einsum('{equation}', {', '.join(names)})\n"
        f"(y * y).sum().backward()\n(y, {grads})",
        32,
        1e-5,
    )


@pytest.mark.parametrize(
    "arguments",
    [
        "'ij,jk->ik', torch.zeros(2, 3), torch.zeros(4, 4)",
        "'ij,jk->il', torch.zeros(2, 3), torch.zeros(3, 4)",
        "'ij,jk->iik', torch.zeros(2, 3), torch.zeros(3, 4)",
        "'ij->ij', torch.zeros(2, 3, 4)",
        "'ij,jk->ik', torch.zeros(2, 3)",
        "'ij', torch.zeros(2, 3), torch.zeros(2, 3)",
        "'i1->i', torch.zeros(2, 3)",
        "'i..j->i', torch.zeros(2, 3)",
        "'ii', torch.zeros(2, 3)",
        "'...ij,...jk->...ik', torch.zeros(5, 2, 3), torch.zeros(6, 3, 4)",
        "'ij,jk->ik', torch.zeros(2, 3), torch.zeros(3, 4).long()",
        "torch.ones(2, 3), [0, 1], torch.ones(3, 4), [1, 2], [0, 2]",
        "torch.zeros(2, 3), [0, 60], [0]",
        "'ij'",
        "3, torch.zeros(2)",
    ],
)
def test_einsum_sentences(arguments: str) -> None:
    agree(f"torch.einsum({arguments})")
