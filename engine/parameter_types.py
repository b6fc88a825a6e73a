"""The kinds of parameters as type checkers see them: what bound arguments have become.

Imported for annotations only; signature.py reads the kinds from the annotations' text.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from engine.tensor import Tensor

Operand: TypeAlias = Any
Scalar: TypeAlias = Any
Dim: TypeAlias = int
Dims: TypeAlias = tuple[int, ...]
SpreadDims: TypeAlias = tuple[int, ...]
Size: TypeAlias = tuple[int, ...]
Shape: TypeAlias = tuple[int, ...]
Tensors: TypeAlias = tuple[Tensor, ...]
