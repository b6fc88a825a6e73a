"""log, sin … of float64 arrays with the C library's bits where there are few elements.

PyTorch's serial kernels call the C library; numpy's own vector functions differ in the last bit
for up to 7 % of the arguments (log1p) and are 25 to 50 times quicker (1 against 40 ns).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

FEW = 1024


def _pair(
    exact: Callable[[float], float], quick: Any
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    def apply(x: NDArray[np.float64]) -> NDArray[np.float64]:
        if x.size <= FEW:
            try:
                return np.fromiter(map(exact, x.tolist()), np.float64, x.size)
            except (ValueError, OverflowError):  # log(0), exp(1000): Python raises, C does not
                pass
        with np.errstate(all="ignore"):
            values: NDArray[np.float64] = quick(x)
        return values

    return apply


log = _pair(math.log, np.log)
log1p = _pair(math.log1p, np.log1p)
exp = _pair(math.exp, np.exp)
sin = _pair(math.sin, np.sin)
cos = _pair(math.cos, np.cos)
tan = _pair(math.tan, np.tan)
