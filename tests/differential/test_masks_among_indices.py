"""A mask stands for several dimensions at once: random indices with masks, as in PyTorch."""

from __future__ import annotations

import random
from typing import Any

import pytest

import engine.ops  # noqa: F401 - fills the registry
from engine.registry import functions

torch: Any = pytest.importorskip("torch")


def an_index(shape: list[int], draw: random.Random) -> list[Any]:
    """A few indices; masks as nested lists in a tuple of one."""
    index: list[Any] = []
    dim = 0
    for _ in range(draw.randint(1, 4)):
        kind = draw.choice("ilsnm")
        if kind == "n":
            index.append(None)
        elif dim >= len(shape):
            break
        elif kind == "m":
            sizes = shape[dim : dim + draw.randint(1, 2)]
            mask = torch.tensor([draw.random() < 0.6 for _ in range(torch.Size(sizes).numel())])
            index.append((mask.reshape(sizes).tolist(),))
            dim += len(sizes)
        else:
            index.append({"i": 0, "l": [0, 0], "s": slice(0, 1)}[kind])
            dim += 1
    return index


def outcome(x: Any, index: list[Any], tensor: Any) -> Any:
    try:
        found = x[tuple(tensor(i[0]) if isinstance(i, tuple) else i for i in index)]
    except (IndexError, RuntimeError) as exc:
        return str(exc)
    return list(found.shape), found.tolist(), list(found.stride())


@pytest.mark.parametrize("seed", range(400))
def test_masks_among_indices(seed: int) -> None:
    draw = random.Random(seed)
    shape = [draw.randint(1, 3) for _ in range(draw.randint(1, 4))]
    count = torch.Size(shape).numel()
    index = an_index(shape, draw)
    expected = outcome(torch.arange(count).reshape(shape), index, torch.tensor)
    ours = functions["arange"](count).reshape(shape)
    assert outcome(ours, index, functions["tensor"]) == expected, index
