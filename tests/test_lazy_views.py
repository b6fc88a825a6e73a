"""Lazy conjugates and negated views: one memory, seen in two ways; values recorded from PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine.ops  # noqa: F401  # enters the operations in the registry
from engine import dtypes, lazy
from engine.lazy import CONJUGATED, NEGATED, Shown
from engine.modes import state
from engine.registry import F, functions
from engine.tensor import Tensor

ROWS = [[1 + 2j, 3 - 1j, 5 + 4j], [2j, -1 + 1j, 4 - 4j]]


def matrix(**options: Any) -> Tensor:
    return F.tensor(ROWS, **options)  # type: ignore[no-any-return]


def conjugated(rows: Any) -> Any:
    return [conjugated(v) for v in rows] if isinstance(rows, list) else rows.conjugate()


# -- the array that stands for a lazy view's ------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize(
    ("shape", "strides"), [((2, 3), (3, 1)), ((2, 2), (4, 6)), ((3, 2), (1, 5)), ((2, 3), (0, 1))]
)
def test_reading_keeps_the_strides(
    dtype: str, shape: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    cells = np.arange(12).astype(dtype) * (1 if dtype[0] == "f" else 1 + 2j)
    size = cells.itemsize
    held = np.ndarray(shape, dtype, cells, size, tuple(s * size for s in strides))
    for change in (CONJUGATED, NEGATED):
        seen = Shown(held, change).read()
        assert seen.strides == held.strides
        assert seen.tolist() == change(np.ascontiguousarray(held)).tolist()


def test_a_write_that_would_be_lost_fails() -> None:
    shown = Shown(np.arange(3.0), NEGATED)
    for lose in (lambda: shown.reshape(-1).fill(1), lambda: np.asarray(shown).sort()):
        with pytest.raises(ValueError, match="read-only"):
            lose()


def test_what_is_written_reaches_the_memory_changed() -> None:
    held = np.arange(4.0)
    shown = Shown(held, NEGATED)
    shown[0] = 5
    shown[1:3] += 10
    shown[3:][0] = 7
    assert held.tolist() == [-5, -9, -8, -7]
    np.add(shown, 1, out=shown)
    np.add.at(shown, [0, 0], 1)
    assert held.tolist() == [-8, -10, -9, -8]
    np.copyto(shown, np.ones(4), where=[True, False, False, False])
    np.put(shown, [1], 2)
    np.cumsum([1.0, 1, 1, 1], out=shown)
    assert held.tolist() == [-1, -2, -3, -4]


# -- tensors --------------------------------------------------------------------------------------


def test_a_conjugate_shows_the_same_memory() -> None:
    z = matrix()
    c = z.conj()
    assert c.is_conj()
    assert c._base is z
    assert c.data_ptr() == z.data_ptr()
    assert c.tolist() == conjugated(ROWS)
    z[0, 0] = 7j
    assert c[0, 0].item() == -7j
    c.mul_(1j)
    assert z.tolist()[1] == [2, 1 + 1j, -4 - 4j]
    assert (c._version, z._version) == (2, 2)


def test_twice_is_the_memory_as_it_is() -> None:
    z = matrix()
    again = z.conj().conj()
    assert not again.is_conj()
    assert again._base is z
    assert not lazy.is_lazy(again)
    again.zero_()
    assert z.abs().sum().item() == 0


KEEP = (
    "t[0]", "t[:, 1]", "t[None]", "t.T", "t.mT", "t.view(6)", "t.reshape(6)", "t.flatten()",
    "t.unsqueeze(0)", "t.squeeze()", "t.expand(2, 2, 3)", "t.unbind()[1]", "t.split(1)[0]",
    "t.narrow(0, 0, 1)", "t.as_strided((2,), (1,))", "t.diagonal()", "t.unfold(1, 2, 1)",
    "t.detach()", "t.data", "t.contiguous()", "t.cfloat()", "t.positive()", "t.view_as(t)",
    "F.as_tensor(t)", "F.vmap(lambda row: row.conj())(t.conj())",
)  # fmt: skip
DROP = (
    "t.clone()", "t.T.contiguous()", "t.resolve_conj()", "t.conj_physical()", "t.mH", "t.H",
    "t.conj()", "t.real", "t.T.reshape(6)", "t[[0]]", "t[t.real > 0]", "t.flip(0)", "t + 1",
    "F.cat([t, t])", "t.sum()", "t @ t.T", "t.to(F.complex128)", "F.zeros_like(t)", "-t",
    "t.new_zeros(2)", "F.tensor(t)", "t.diag()", "t.repeat(1, 1)", "t.roll(1)",
)  # fmt: skip


@pytest.mark.parametrize("text", KEEP)
def test_views_go_on_being_lazy(text: str) -> None:
    namespace = {"t": matrix().conj(), "F": _Torch()}
    lazy_one = eval(text, dict(namespace))
    plain = eval(text, namespace | {"t": F.tensor(conjugated(ROWS))})
    assert lazy_one.is_conj()
    assert lazy_one.tolist() == plain.tolist()
    assert lazy_one.stride() == plain.stride()


@pytest.mark.parametrize("text", DROP)
def test_results_are_plain(text: str) -> None:
    namespace = {"t": matrix().conj(), "F": _Torch()}
    result = eval(text, dict(namespace))
    plain = eval(text, namespace | {"t": F.tensor(conjugated(ROWS))})
    assert not result.is_conj()
    assert result.tolist() == (
        plain.resolve_conj().tolist() if isinstance(plain, Tensor) else plain.tolist()
    )


class _Torch:
    def __getattr__(self, name: str) -> Any:
        return dtypes.by_name.get(name) or functions[name]


def test_the_imaginary_part_is_negated_lazily() -> None:
    z = matrix()
    n = z.conj().imag
    assert n.is_neg()
    assert not z.imag.is_neg()
    assert n.tolist() == [[-2, 1, -4], [-2, -1, 4]]
    assert n.storage_offset() == 1
    n.add_(1)
    assert z.imag.tolist() == [[1, -2, 3], [1, 0, -5]]
    z.conj().imag = 3.0
    assert z.imag.tolist() == [[-3, -3, -3], [-3, -3, -3]]
    assert not n.resolve_neg().is_neg()
    assert n.resolve_conj() is n
    assert not n.contiguous().is_neg()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c: F.view_as_real(c), "view_as_real doesn't work on unresolved conjugated tensors"),
        (lambda c: c.numpy(), "has conjugate bit set. Use tensor.resolve_conj()"),
        (lambda c: c.imag.numpy(), "has negative bit set. Use tensor.resolve_neg()"),
        (lambda c: c.view(F.zeros(0).dtype), "not supported for conjugate view tensors"),
        (lambda c: c.imag.view(c.dtype), "not supported for tensors with negative bit set"),
    ],
)
def test_what_reads_the_memory_itself_is_refused(call: Any, words: str) -> None:
    with pytest.raises(RuntimeError, match=words.replace("(", r"\(").replace(")", r"\)")):
        call(matrix().conj())


def test_out_and_copies() -> None:
    z = matrix()
    c = z.conj()
    assert F.add(z, 1, out=c) is c
    assert c.tolist() == [[v + 1 for v in row] for row in ROWS]
    empty = F.empty(0, dtype=z.dtype).conj()
    F.add(z, 0, out=empty)
    assert empty.is_conj()
    assert empty.tolist() == z.tolist()
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        z.view(6)[:4].copy_(z.view(6)[1:5].conj())
    z.view(6)[:4].add_(z.view(6)[1:5].conj())  # computed with a copy
    z = matrix()
    z.copy_(z.conj())
    assert z.tolist() == conjugated(ROWS)


def test_a_lazy_view_resized_or_given_other_data() -> None:
    c = F.tensor([1 + 2j, 3j]).conj()
    c.resize_(4)
    assert c.is_conj()
    assert c.tolist()[:2] == [1 - 2j, -3j]
    z = matrix()
    z.data = c
    assert z.is_conj()
    c.data = matrix()
    assert not c.is_conj()


def test_on_meta_too() -> None:
    z = F.empty(2, 3, dtype=matrix().dtype, device="meta")
    assert z.conj().is_conj()
    assert z.mH.is_conj()
    assert z.conj().imag.is_neg()
    assert not (z.conj() + 1).is_conj()


# -- gradients ------------------------------------------------------------------------------------


def names_of(node: Any) -> list[str]:
    found = []
    while hasattr(node, "next"):
        found.append(node.type_name)
        node = node.next[0]
    return found


def test_nodes() -> None:
    w = matrix(requires_grad=True)
    assert names_of(w.conj().grad_fn) == ["ConjBackward0"]
    assert names_of(w.mH.grad_fn) == ["ConjBackward0", "TransposeBackward0"]
    assert names_of(w.conj().imag.grad_fn) == [
        "SelectBackward0", "NegViewBackward0", "ViewAsRealBackward0", "ConjBackward0",
        "ConjBackward0",
    ]  # fmt: skip
    assert names_of(w.conj().resolve_conj().grad_fn) == ["CloneBackward0", "ConjBackward0"]


def test_changes_through_lazy_views_and_parts_reach_the_base() -> None:
    for change, nodes in (
        (lambda y: y.conj(), ["ConjBackward0", "CopySlices", "MulBackward0"]),
        (
            lambda y: y[0].conj(),
            ["ConjBackward0", "AsStridedBackward0", "CopySlices", "MulBackward0"],
        ),
        (
            lambda y: y.real,
            ["AsStridedBackward0", "ViewAsRealBackward0", "CopySlices", "MulBackward0"],
        ),
    ):
        y = matrix(requires_grad=True) * 1
        view = change(y)
        view.mul_(3)
        assert names_of(view.grad_fn) == nodes
        assert names_of(y.grad_fn)[0] == "CopySlices"


def test_gradients_through_changed_lazy_views() -> None:
    def loss(w: Tensor) -> Tensor:
        y = w * 1
        y.conj().mul_(2j)
        y.conj()[0].imag.mul_(3)
        y.real[1].add_(y.real[0])
        return (y.conj().abs() ** 2).sum() + y.conj().imag.sum()  # type: ignore[no-any-return]

    w = matrix(dtype=dtypes.complex128, requires_grad=True)
    loss(w).backward()
    step = 1e-6
    for row in range(2):
        for column in range(3):
            slopes = []
            for move in (step, step * 1j):
                ahead, behind = w.detach().clone(), w.detach().clone()
                ahead[row, column] += move
                behind[row, column] -= move
                slopes.append((loss(ahead).item() - loss(behind).item()) / (2 * step))
            assert w.grad is not None
            assert abs(w.grad[row, column].item() - complex(*slopes)) < 1e-6


def test_a_gradient_may_be_lazy_itself() -> None:
    w = matrix(requires_grad=True)
    w.conj().backward(F.full((2, 3), 1 + 1j))
    assert w.grad.is_conj()
    w.conj().backward(F.full((2, 3), 1 + 1j))
    assert w.grad.tolist() == [[2 - 2j] * 3] * 2
    v = matrix().conj().requires_grad_()
    (v * 1j).backward(F.full((2, 3), 1 + 1j))
    assert v.grad.tolist() == [[1 - 1j] * 3] * 2


def test_what_a_node_kept_is_checked_through_lazy_views() -> None:
    y = matrix(requires_grad=True) * 1
    squares = y * y
    y.conj().zero_()
    with pytest.raises(RuntimeError, match=r"\[CPUComplexFloatType \[2, 3\]\].* is at version 1"):
        squares.abs().sum().backward()


def test_an_operand_in_the_same_memory_is_kept_as_it_was() -> None:
    y = matrix(requires_grad=True) * 1
    y.mul_(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.abs().sum().backward()


def test_negating_strided_memory() -> None:
    x = F.arange(12.0)
    x.as_strided((2, 2), (6, 4)).neg_()
    assert x.tolist() == [0, 1, 2, 3, -4, 5, -6, 7, 8, 9, -10, 11]


def test_numbers_have_an_adjoint() -> None:
    heard: list[str] = []
    state.warn = lambda message, category: heard.append(message)
    try:
        for number in (F.tensor(1j), F.tensor(1j)):
            assert [t.is_conj() for t in (number.mH, number.H, number.adjoint())] == [True] * 3
            assert number.mT is number
    finally:
        state.warn = None
        state.kept.warned.clear()
    assert [message.split()[0] for message in heard] == [
        "Tensor.mH", "Tensor.H", "adjoint()", "Tensor.mT",
    ]  # fmt: skip
    real = F.tensor(1.0)
    assert real.mH is real
    with pytest.raises(RuntimeError, match="For batches of matrices, consider using tensor.mH"):
        _ = F.zeros(1, 2, 3).H


def test_changes_of_real_conjugates_count() -> None:
    x = F.tensor([1.0, 2.0])
    assert x.conj_physical_() is x
    assert x._version == 1
    x.resize_(1)
    assert x._version == 2


def test_half_precision_has_no_complex_view() -> None:
    with pytest.raises(NotImplementedError, match="complex32, which is not among the dtypes here"):
        F.view_as_complex(F.zeros(1, 2, dtype=dtypes.float16))
