"""Stride rules and promotion against PyTorch: random cases (`--cases`), all pairs of dtypes."""

from __future__ import annotations

import random
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from engine import dtypes, errors  # noqa: E402
from engine import layout as layouts  # noqa: E402
from engine.layout import Layout  # noqa: E402
from tests.registry_samples import F  # noqa: E402


@pytest.fixture
def cases(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--cases"))


def some_shape(r: random.Random, least: int = 0) -> tuple[int, ...]:
    return tuple(r.choice((least, 1, 1, 2, 3, 4)) for _ in range(r.randint(0, 4)))


def some_layout(r: random.Random, shape: tuple[int, ...]) -> Layout:
    """Dense in some order of the dimensions, stepped, expanded or padded."""
    order = list(range(len(shape)))
    if r.random() < 0.6:
        r.shuffle(order)
    strides = list(layouts.strides_along(shape, order))
    step = r.choice((1, 1, 1, 2))
    for d in range(len(shape)):
        strides[d] = r.choice((0, 5)) if r.random() < 0.12 else strides[d] * step
    return layouts.layout(shape, tuple(strides))


def part_of(r: random.Random, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to ``shape``."""
    kept = shape[r.randint(0, len(shape)) if r.random() < 0.3 else 0 :]
    return tuple(1 if r.random() < 0.2 else n for n in kept)


def theirs(layout: Layout) -> Any:
    memory = torch.zeros(layout.span + 1)
    return memory.as_strided(layout.shape, layout.strides)


def test_strides_of_elementwise_results(cases: int) -> None:
    r = random.Random(0)
    for _ in range(cases):
        shape = some_shape(r)
        count = r.randint(1, 3)
        operands = [some_layout(r, shape)]
        operands += [some_layout(r, part_of(r, shape)) for _ in range(count - 1)]
        r.shuffle(operands)
        tensors = [theirs(o) for o in operands]
        if count == 1:
            wanted = torch.exp(*tensors)
        else:
            wanted = torch.add(*tensors) if count == 2 else torch.addcmul(*tensors)
        found = layouts.elementwise(operands, tuple(wanted.shape))
        assert found.strides == wanted.stride(), operands


def test_strides_of_views(cases: int) -> None:
    r = random.Random(1)
    for _ in range(cases):
        old = some_layout(r, some_shape(r))
        new = some_shape_like(r, old)
        try:
            wanted = theirs(old).view(new).stride()
        except RuntimeError:
            wanted = None
        assert layouts.view_strides(old.shape, old.strides, new) == wanted, (old, new)


def some_shape_like(r: random.Random, old: Layout) -> tuple[int, ...]:
    """Another shape with as many elements: dimensions split, merged and ones put in."""
    if old.numel == 0:
        return tuple(r.sample(old.shape, old.ndim)) + (1,) * r.randint(0, 1)
    shape: list[int] = []
    for n in old.shape:
        if shape and r.random() < 0.4:
            shape[-1] *= n
        elif n == 4 and r.random() < 0.5:
            shape += [2, 2]
        else:
            shape.append(n)
    if r.random() < 0.3:
        shape.insert(r.randint(0, len(shape)), 1)
    if r.random() < 0.1:
        r.shuffle(shape)
    return tuple(shape)


def test_dense_contiguous_and_preserved(cases: int) -> None:
    r = random.Random(2)
    for _ in range(cases // 2):
        layout = some_layout(r, some_shape(r))
        there = theirs(layout)
        assert layout.contiguous == there.is_contiguous(), layout
        assert layouts.preserved(layout).strides == there.clone().stride(), layout


def test_expand_and_unsqueeze(cases: int) -> None:
    r = random.Random(3)
    for _ in range(cases // 2):
        layout = some_layout(r, some_shape(r))
        sizes = [r.choice((0, 1, 3)) for _ in range(r.randint(0, 2))]
        sizes += [r.choice((n, -1)) if n != 1 else r.choice((1, 3, -1)) for n in layout.shape]
        there = theirs(layout)
        assert layouts.expand(layout, sizes).strides == there.expand(sizes).stride(), (
            layout,
            sizes,
        )
        dim = r.randint(0, layout.ndim)
        assert layouts.unsqueeze(layout, dim).strides == there.unsqueeze(dim).stride(), layout


SHARED = [name for name in dtypes.by_name if hasattr(torch, name)]


@pytest.mark.parametrize("a", SHARED)
def test_promotion(a: str) -> None:
    for b in SHARED:
        ours = answer(dtypes, dtypes.promote, dtypes.by_name[a], dtypes.by_name[b])
        assert ours == answer(torch, torch.promote_types, getattr(torch, a), getattr(torch, b))


@pytest.mark.parametrize("a", SHARED)
def test_promotion_of_tensors_and_numbers(a: str) -> None:
    for b in SHARED:
        for ndims in ((1, 1), (1, 0), (0, 1), (0, 0)):
            mine = [
                F.zeros((1,) * n, dtype=dtypes.by_name[d])
                for n, d in zip(ndims, (a, b), strict=True)
            ]
            their = [
                torch.zeros((1,) * n, dtype=getattr(torch, d))
                for n, d in zip(ndims, (a, b), strict=True)
            ]
            ours = answer(dtypes, F.result_type, *mine)
            assert same(ours, answer(torch, torch.result_type, *their)), (a, b, ndims)
    for number in (True, 2, 2.5, 1j):
        for n in (0, 1):
            mine = F.zeros((1,) * n, dtype=dtypes.by_name[a])
            there = torch.zeros((1,) * n, dtype=getattr(torch, a))
            ours = answer(dtypes, F.result_type, mine, number)
            assert same(ours, answer(torch, torch.result_type, there, number)), (a, number, n)


def same(ours: str, theirs: str) -> bool:
    """complex32, which there is none of here, is complex64."""
    return ours == theirs.replace("complex32", "complex64")


def answer(module: Any, call: Any, *args: Any) -> str:
    """A dtype's name, or the error's type and sentence."""
    try:
        return str(call(*args))
    except Exception as error:
        kind = type(error).__name__ if module is torch else errors.public_type(error)
        return f"{kind}: {error}".split("\n")[0]
