"""Layout arithmetic against numpy, which works on the table of memory addresses instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import layout as layouts
from engine.errors import BroadcastError, TensorRuntimeError
from engine.layout import Layout

sizes = st.integers(0, 4)
shapes = st.lists(sizes, max_size=4).map(tuple)


@st.composite
def some_layouts(draw: Any, shape: Any = shapes) -> Layout:
    """Dense, stepped or expanded, the dimensions in any order."""
    n = draw(shape)
    order = draw(st.permutations(range(len(n))))
    step = draw(st.sampled_from((1, 1, 2, 3)))
    strides = [step * s for s in layouts.strides_along(n, order)]
    for d in draw(st.sets(st.integers(0, 3), max_size=2)):
        if d < len(n):
            strides[d] = draw(st.sampled_from((0, 0, 7)))
    return layouts.layout(n, tuple(strides))


def addresses(layout: Layout, offset: int = 0) -> Any:
    """For every element the cell of memory that holds it."""
    places = np.indices(layout.shape, dtype=np.int64).reshape((layout.ndim, *layout.shape))
    strides = np.array(layout.strides, np.int64).reshape((-1,) + (1,) * layout.ndim)
    return (places * strides).sum(axis=0) + offset


def equal(layout: Layout, wanted: Any, offset: int = 0) -> None:
    np.testing.assert_array_equal(addresses(layout, offset), wanted)


@given(shapes)
def test_contiguous_counts_up(shape: tuple[int, ...]) -> None:
    found = layouts.contiguous(shape)
    equal(found, np.arange(found.numel).reshape(shape))
    assert found.contiguous
    assert found.dense


@given(some_layouts())
def test_flags_follow_from_addresses(layout: Layout) -> None:
    cells = addresses(layout).ravel()
    assert layout.contiguous == np.array_equal(cells, np.arange(layout.numel))
    if layout.numel:
        assert layout.dense == np.array_equal(np.sort(cells), np.arange(layout.numel))
        assert layout.span == cells.max() + 1
    if not layouts.may_overlap(layout):
        assert len(set(cells.tolist())) == layout.numel


@given(some_layouts(), st.data())
def test_permute(layout: Layout, data: st.DataObject) -> None:
    dims = data.draw(st.permutations(range(layout.ndim)))
    equal(layouts.permute(layout, dims), addresses(layout).transpose(dims))


@given(some_layouts(), st.data())
def test_select_and_narrow(layout: Layout, data: st.DataObject) -> None:
    dims = [d for d in range(layout.ndim) if layout.shape[d]]
    if not dims:
        return
    dim = data.draw(st.sampled_from(dims))
    n = layout.shape[dim]
    at = data.draw(st.integers(0, n - 1))
    one, move = layouts.select(layout, dim, at)
    equal(one, addresses(layout).take(at, axis=dim), move)
    step = data.draw(st.integers(1, 3))
    length = data.draw(st.integers(0, (n - at + step - 1) // step))
    part, move = layouts.narrow(layout, dim, at, length, step)
    index = (slice(None),) * dim + (slice(at, at + length * step, step),)
    equal(part, addresses(layout)[index], move)


@given(some_layouts(), st.data())
def test_expand(layout: Layout, data: st.DataObject) -> None:
    lead = data.draw(st.lists(sizes, max_size=2))
    wanted = [*lead, *(data.draw(sizes) if n == 1 else n for n in layout.shape)]
    equal(layouts.expand(layout, wanted), np.broadcast_to(addresses(layout), wanted))
    kept = [*lead, *(-1 for _ in layout.shape)]
    assert layouts.expand(layout, kept).shape == (*lead, *layout.shape)


@given(some_layouts(), st.data())
def test_unsqueeze_and_squeeze(layout: Layout, data: st.DataObject) -> None:
    dim = data.draw(st.integers(0, layout.ndim))
    wide = layouts.unsqueeze(layout, dim)
    equal(wide, np.expand_dims(addresses(layout), dim))
    assert layouts.squeeze(wide, (dim,)) is layout
    equal(layouts.squeeze(layout, range(layout.ndim)), addresses(layout).squeeze())


@st.composite
def reshapings(draw: Any) -> tuple[Layout, tuple[int, ...]]:
    """A layout and another shape of as many elements."""
    layout = draw(some_layouts(st.lists(st.integers(1, 4), max_size=4).map(tuple)))
    rest, shape = layout.numel, []
    while rest > 1 or draw(st.integers(0, 3)) == 0:
        n = draw(st.sampled_from([d for d in range(1, rest + 1) if rest % d == 0]))
        shape.append(n)
        rest //= n
        if len(shape) > 5:
            shape.append(rest)
            break
    return layout, tuple(shape)


@given(reshapings())
def test_view_shows_the_same_cells_whenever_strides_can(case: tuple[Layout, Any]) -> None:
    layout, shape = case
    cells = addresses(layout).reshape(shape)
    strides = layouts.view_strides(layout.shape, layout.strides, shape)
    if strides is not None:
        equal(layouts.layout(shape, strides), cells)
    else:
        assert not evenly_spaced(cells)


def evenly_spaced(cells: Any) -> bool:
    """Whether some strides give just these addresses."""
    origin = cells.flat[0]
    strides = tuple(
        int(cells[(0,) * d + (1,) + (0,) * (cells.ndim - d - 1)] - origin) if n > 1 else 0
        for d, n in enumerate(cells.shape)
    )
    return bool(np.array_equal(addresses(layouts.layout(cells.shape, strides), origin), cells))


@given(shapes, shapes)
def test_broadcast_shapes(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    try:
        wanted = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(BroadcastError):
            layouts.broadcast_shapes(a, b)
    else:
        assert layouts.broadcast_shapes(a, b) == wanted


@given(some_layouts(), st.data())
def test_elementwise_results_are_dense_and_keep_order(layout: Layout, data: st.DataObject) -> None:
    other = data.draw(some_layouts(st.just(layout.shape)))
    found = layouts.elementwise([layout, other], layout.shape)
    assert found.shape == layout.shape
    assert found.numel == 0 or found.dense
    alone = layouts.elementwise([layout], layout.shape)
    if layout.dense and not layout.contiguous:
        assert alone is layout
    if layout.contiguous and other.contiguous:
        assert found.strides == layouts.contiguous_strides(layout.shape)


@given(shapes, st.lists(st.integers(-2, 6), max_size=4).map(tuple))
def test_infer_shape(old: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    numel = int(np.prod(old, dtype=np.int64))
    try:
        expected = None if min(wanted, default=0) < -1 else np.empty(old).reshape(wanted).shape
    except ValueError:
        expected = None
    if expected is None:
        with pytest.raises(TensorRuntimeError):
            layouts.infer_shape(wanted, numel)
    else:
        assert layouts.infer_shape(wanted, numel) == expected


@given(st.integers(-7, 7), st.integers(0, 5))
def test_wrap_dim(dim: int, ndim: int) -> None:
    span = max(ndim, 1)
    if -span <= dim < span:
        assert layouts.wrap_dim(dim, ndim) == dim % span
    else:
        with pytest.raises(IndexError):
            layouts.wrap_dim(dim, ndim)
