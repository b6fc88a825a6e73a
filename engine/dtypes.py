"""Dtype records, promotion and numeric limits; knows numpy's scalar types and no arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine.errors import DtypeError

if TYPE_CHECKING:
    from collections.abc import Iterable

BOOL, INT, FLOAT, COMPLEX = range(4)


_C_TYPES = {
    "int16": "short int",
    "int64": "long int",
    "uint16": "short unsigned int",
    "uint32": "unsigned int",
    "uint64": "long unsigned int",
}


class DType:
    """One element type. ``category`` orders bool < integer < float < complex.

    ``title`` is the name in messages such as "not implemented for 'Half'", ``cpp`` the one in
    messages of matrix products.
    """

    __slots__ = ("_np", "category", "cpp", "index", "itemsize", "low", "name", "signed", "title")

    def __init__(
        self, index: int, name: str, title: str, cpp: str, category: int, itemsize: int, np_: Any
    ):
        self.index = index
        self.name = name
        self.title = title
        self.cpp = cpp
        self.category = category
        self.itemsize = itemsize
        self.signed = category >= FLOAT or name.startswith("int")
        self.low = category == FLOAT and itemsize < 4
        self._np = np_

    @property
    def np(self) -> Any:
        """The numpy dtype; ml_dtypes is imported when one of its types is first asked for."""
        found = self._np
        if found.__class__ is str:
            import ml_dtypes

            found = self._np = np.dtype(getattr(ml_dtypes, found))
        return found

    @property
    def c_type(self) -> str:
        """The name of the C++ type behind it, as messages about tensors' memory spell it."""
        return _C_TYPES.get(self.name, self.cpp)

    @property
    def is_floating_point(self) -> bool:
        return self.category == FLOAT

    @property
    def is_complex(self) -> bool:
        return self.category == COMPLEX

    @property
    def is_integral(self) -> bool:
        return self.category == INT

    @property
    def is_bool(self) -> bool:
        return self.category == BOOL

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return by_name.__getitem__, (self.name,)


DType.__name__ = "torch.dtype"  # what Python's own errors call it


def _record(name: str, title: str, cpp: str, category: int, size: int, np_: Any) -> DType:
    dtype = DType(len(by_name), name, title, cpp, category, size, np_)
    by_name[name] = dtype
    return dtype


by_name: dict[str, DType] = {}

bool_ = _record("bool", "Bool", "bool", BOOL, 1, np.dtype(np.bool_))
uint8 = _record("uint8", "Byte", "unsigned char", INT, 1, np.dtype(np.uint8))
int8 = _record("int8", "Char", "signed char", INT, 1, np.dtype(np.int8))
int16 = _record("int16", "Short", "short", INT, 2, np.dtype(np.int16))
int32 = _record("int32", "Int", "int", INT, 4, np.dtype(np.int32))
int64 = _record("int64", "Long", "long", INT, 8, np.dtype(np.int64))
uint16 = _record("uint16", "UInt16", "unsigned short", INT, 2, np.dtype(np.uint16))
uint32 = _record("uint32", "UInt32", "unsigned int", INT, 4, np.dtype(np.uint32))
uint64 = _record("uint64", "UInt64", "unsigned long", INT, 8, np.dtype(np.uint64))
float8_e4m3fn = _record(
    "float8_e4m3fn", "Float8_e4m3fn", "c10::Float8_e4m3fn", FLOAT, 1, "float8_e4m3fn"
)
float8_e5m2 = _record("float8_e5m2", "Float8_e5m2", "c10::Float8_e5m2", FLOAT, 1, "float8_e5m2")
float16 = _record("float16", "Half", "c10::Half", FLOAT, 2, np.dtype(np.float16))
bfloat16 = _record("bfloat16", "BFloat16", "c10::BFloat16", FLOAT, 2, "bfloat16")
float32 = _record("float32", "Float", "float", FLOAT, 4, np.dtype(np.float32))
float64 = _record("float64", "Double", "double", FLOAT, 8, np.dtype(np.float64))
complex64 = _record(
    "complex64", "ComplexFloat", "c10::complex<float>", COMPLEX, 8, np.dtype(np.complex64)
)
complex128 = _record(
    "complex128", "ComplexDouble", "c10::complex<double>", COMPLEX, 16, np.dtype(np.complex128)
)

ALIASES = {
    "float": float32,
    "double": float64,
    "half": float16,
    "int": int32,
    "long": int64,
    "short": int16,
    "cfloat": complex64,
    "cdouble": complex128,
}

_SIGNED = {1: int8, 2: int16, 4: int32, 8: int64}
_WIDE_UNSIGNED = (uint16, uint32, uint64)
_FLOAT8 = (float8_e4m3fn, float8_e5m2)
_REAL_OF = {complex64: float32, complex128: float64}
_COMPLEX_OF = {float64: complex128, complex64: complex64, complex128: complex128}
_by_np: dict[Any, DType] = {d._np: d for d in by_name.values() if d._np.__class__ is not str}
_pairs: dict[tuple[DType, DType], DType] = {}


def from_np(dtype: Any) -> DType | None:
    """The record for a numpy dtype (either byte order), or None if PyTorch has none for it."""
    found = _by_np.get(dtype)
    if found is None:
        found = by_name.get(dtype.name) or _by_np.get(dtype.newbyteorder("="))
    return found


def real_of(dtype: DType) -> DType:
    """The dtype of the real part (itself when not complex)."""
    return _REAL_OF.get(dtype, dtype)


def complex_of(dtype: DType) -> DType:
    """The complex dtype whose parts hold ``dtype`` (complex64 for the half types)."""
    return _COMPLEX_OF.get(dtype, complex64)


def promote(a: DType, b: DType) -> DType:
    """The smallest dtype that PyTorch promotes both to.

    Raises DtypeError for the pairs PyTorch refuses: float8 with others, wide unsigned integers
    with all but the floating-point types.
    """
    if a is b:
        return a
    found = _pairs.get((a, b))
    if found is None:
        found = _pairs[a, b] = _promote(a, b)
    return found


def _promote(a: DType, b: DType) -> DType:
    if a in _FLOAT8 or b in _FLOAT8:
        raise DtypeError(
            f"Promotion for Float8 Types is not supported, attempted to promote "
            f"{a.title} and {b.title}"
        )
    if (a in _WIDE_UNSIGNED and b.category != FLOAT) or (
        b in _WIDE_UNSIGNED and a.category != FLOAT
    ):
        raise DtypeError(
            "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote "
            f"{a.title} and {b.title}"
        )
    if a.category < b.category:
        a, b = b, a
    if a.category == COMPLEX:
        return complex128 if float64 in (a, b) or complex128 in (a, b) else complex64
    if a.category != b.category:
        return a
    if a.category == FLOAT:
        if a.itemsize == b.itemsize:
            return float32
        return a if a.itemsize > b.itemsize else b
    if a.signed == b.signed:
        return a if a.itemsize >= b.itemsize else b
    unsigned, signed = (a, b) if b.signed else (b, a)
    return signed if signed.itemsize > unsigned.itemsize else _SIGNED[unsigned.itemsize * 2]


def result_type(
    dimensioned: Iterable[DType], zero_dim: Iterable[DType], wrapped: Iterable[DType]
) -> DType:
    """PyTorch's result dtype: category first, then tensors over 0-d tensors over numbers."""
    weak = _combine(_join(zero_dim), _join(wrapped))
    return _combine(_join(dimensioned), weak) or float32


def _combine(strong: DType | None, weak: DType | None) -> DType | None:
    """The dtype of operands of two ranks: the weaker rank only raises the category."""
    if strong is None or weak is None:
        return strong or weak
    if strong.category < COMPLEX and weak.category == COMPLEX:
        if strong in _FLOAT8:
            raise DtypeError(f"Unknown Complex ScalarType for {strong.title}")
        return weak if strong.category < FLOAT else complex_of(strong)
    if strong.category < FLOAT and (strong.category == BOOL or weak.category == FLOAT):
        return promote(strong, weak)
    return strong


def _join(dtypes: Iterable[DType]) -> DType | None:
    result: DType | None = None
    for dtype in dtypes:
        result = dtype if result is None else promote(result, dtype)
    return result


def can_cast(source: DType, target: DType) -> bool:
    """Whether an in-place result of ``source`` may be stored in ``target``."""
    return source.category <= target.category


def compute_dtype(dtype: DType) -> DType:
    """The dtype in which element-wise kernels work: float32 for the low-precision types."""
    return float32 if dtype.low else dtype
