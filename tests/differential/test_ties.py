"""The choice among equal elements, and the order they are left in, are PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from engine.tensor import from_array  # noqa: E402
from tests.differential.agree import compare  # noqa: E402

EXPRESSIONS = """
x.sort()
x.sort(0)
x.sort(descending=True)
x.sort(stable=True, descending=True)
x.argsort(descending=True)
x.topk(K)
x.topk(K, largest=False)
x.topk(K, sorted=False)
x.kthvalue(K)
x.median(1)
x.nanmedian(1)
x.median()
x.nanmedian()
x.mode(1)
x.unique(return_inverse=True, return_counts=True)
x.unique_consecutive(return_counts=True)
x.cummax(1)
x.cummin(1)
x.max(1)
x.argmin()
""".strip().split("\n")


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("n", [1, 3, 17, 20, 70, 130, 300])
def test_choice(expression: str, n: int) -> None:
    random = np.random.default_rng(n)
    for values, dtype, nans in ((2, "int64", 0), (20, "float32", 0), (9, "float64", 0.2)):
        x = random.integers(0, values, (2, n)).astype(dtype)
        if nans:
            x[random.random(x.shape) < nans] = np.nan
        k = int(random.integers(1, n + 1))
        text = expression.replace("K", str(k))
        theirs = eval(text, {"x": torch.from_numpy(x.copy())})
        ours = eval(text, {"x": from_array(x.copy())})
        assert compare(theirs, ours) is None, (text, x.tolist())
