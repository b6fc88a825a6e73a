"""Printed texts as PyTorch 2.13 gave them, for where it is not installed; knows no rule of them."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np
import pytest

from engine import device, dtypes, printing


class Node:
    """A graph node as far as printing looks at it."""

    name = "AddBackward0"


class Subject:
    """What printing reads of a tensor."""

    def __init__(self, numbers: Any, dtype: str = "float32", on: str = "cpu") -> None:
        self.dtype = dtypes.by_name[dtype]
        self.device = device.device(on)
        self.array: Any = np.array(numbers, self.dtype.np)
        self.shape = self.array.shape
        self.requires_grad = False
        self.ag = None
        self.grad_fn: Node | None = None


@pytest.fixture(autouse=True)
def _default_options() -> Any:
    yield
    printing.reset_options()


def text(subject: Any, default_dtype: str = "float32") -> str:
    return printing.tensor_text(subject, default_dtype=dtypes.by_name[default_dtype])


NUMBERS: list[tuple[Any, str, str]] = [
    (1.5, "float32", "tensor(1.5000)"),
    (3, "int64", "tensor(3)"),
    (True, "bool", "tensor(True)"),
    ([1.0, 2.0], "float32", "tensor([1., 2.])"),
    ([1.0, -2.5, nan, inf], "float32", "tensor([ 1.0000, -2.5000,     nan,     inf])"),
    ([1.0, nan, -inf, 0.0], "float32", "tensor([1., nan, -inf, 0.])"),
    ([nan, inf, -0.0], "float32", "tensor([nan, inf, -0.])"),
    ([1e-5, 1.0], "float32", "tensor([1.0000e-05, 1.0000e+00])"),
    ([1e9, 1.0], "float32", "tensor([1.0000e+09, 1.0000e+00])"),
    ([1.0, 1000.5], "float64", "tensor([1.0000e+00, 1.0005e+03], dtype=torch.float64)"),
    ([1.0, 1000.0], "float32", "tensor([   1., 1000.])"),
    ([[1, -20], [300, 4]], "int32", "tensor([[  1, -20],\n        [300,   4]], dtype=torch.int32)"),
    ([[True, False]], "bool", "tensor([[ True, False]])"),
    ([250, 3], "uint8", "tensor([250,   3], dtype=torch.uint8)"),
    ([2**64 - 1, 7], "uint64", f"tensor([{2**64 - 1},{7:21}], dtype=torch.uint64)"),
    ([0.1, -2.0], "float16", "tensor([ 0.1000, -2.0000], dtype=torch.float16)"),
    ([0.1, 1000.0], "bfloat16", "tensor([1.0010e-01, 1.0000e+03], dtype=torch.bfloat16)"),
    ([0.1, 448.0], "float8_e4m3fn", "tensor([1.0156e-01, 4.4800e+02], dtype=torch.float8_e4m3fn)"),
    ([0.1, 57344.0], "float8_e5m2", "tensor([9.3750e-02, 5.7344e+04], dtype=torch.float8_e5m2)"),
    ([1 + 2j, -3.5 - 0.25j], "complex64", "tensor([ 1.0000+2.0000j, -3.5000-0.2500j])"),
    (complex(1, -0.0), "complex128", "tensor(1.-0.j, dtype=torch.complex128)"),
    ([complex(nan, inf)], "complex64", "tensor([nan+infj])"),
    ([], "float32", "tensor([])"),
    ([], "int64", "tensor([], dtype=torch.int64)"),
    ([[], []], "float32", "tensor([], size=(2, 0))"),
    (
        [[[1.0], [2.0]], [[3.0], [4.0]]],
        "float32",
        "tensor([[[1.],\n         [2.]],\n\n        [[3.],\n         [4.]]])",
    ),
    (
        range(30),
        "int64",
        "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])",
    ),
    (range(1001), "int64", "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
]


@pytest.mark.parametrize(("numbers", "dtype", "expected"), NUMBERS)
def test_numbers(numbers: Any, dtype: str, expected: str) -> None:
    assert text(Subject(numbers, dtype)) == expected


OPTIONS: list[tuple[Any, dict[str, Any], str]] = [
    ([0.123456789, 2.0], {"precision": 8}, "tensor([0.12345679, 2.00000000])"),
    ([0.5, 2.5], {"precision": 0}, "tensor([0, 2])"),
    ([0.1234, 2.0], {"profile": "short"}, "tensor([0.12, 2.00])"),
    ([0.1234, 2.0], {"sci_mode": True}, "tensor([1.2340e-01, 2.0000e+00])"),
    ([1e-7, 2.0], {"sci_mode": False}, "tensor([0.0000, 2.0000])"),
    (
        [1.25, 2.5, 3.75, 4.125, 5.0],
        {"linewidth": 24},
        "tensor([1.2500, 2.5000,\n        3.7500, 4.1250,\n        5.0000],\n"
        "       dtype=torch.float64)",
    ),
    ([1.0, 2.0], {"edgeitems": 0, "threshold": 1}, "tensor([...], size=(2,))"),
    (
        [[float(7 * i + j) for j in range(7)] for i in range(7)],
        {"threshold": 10, "edgeitems": 2},
        "tensor([[ 0.,  1.,  ...,  5.,  6.],\n        [ 7.,  8.,  ..., 12., 13.],\n"
        "        ...,\n        [35., 36.,  ..., 40., 41.],\n        [42., 43.,  ..., 47., 48.]])",
    ),
]


@pytest.mark.parametrize(("numbers", "options", "expected"), OPTIONS)
def test_options(numbers: Any, options: dict[str, Any], expected: str) -> None:
    printing.set_printoptions(**options)
    default = "float32" if "dtype" in expected else "float64"
    assert text(Subject(numbers, "float64"), default) == expected


def test_history() -> None:
    leaf = Subject([0.0, 0.0])
    leaf.requires_grad = True
    assert text(leaf) == "tensor([0., 0.], requires_grad=True)"
    leaf.grad_fn = Node()
    assert text(leaf) == "tensor([0., 0.], grad_fn=<AddBackward0>)"
    long = Subject(range(1, 13), "float64")
    long.requires_grad = True
    long.grad_fn = Node()
    assert text(long) == (
        "tensor([ 1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12.],\n"
        "       dtype=torch.float64, grad_fn=<AddBackward0>)"
    )


def test_history_that_cannot_be_told() -> None:
    class Broken(Subject):
        @property
        def grad_fn(self) -> Node | None:
            raise RuntimeError

        @grad_fn.setter
        def grad_fn(self, node: Node | None) -> None:
            pass

    assert text(Broken([1.0])) == "tensor([1.], grad_fn=<Invalid>)"


def test_meta() -> None:
    assert text(Subject(np.zeros((2, 3)), on="meta")) == "tensor(..., device='meta', size=(2, 3))"
    assert text(Subject([1, 2], "int64", "meta")) == (
        "tensor(..., device='meta', size=(2,), dtype=torch.int64)"
    )


@pytest.mark.parametrize(
    ("numbers", "dtype", "expected"),
    [
        ([1.0], "float64", "tensor([1.])"),
        ([1.0], "float32", "tensor([1.], dtype=torch.float32)"),
        ([1j], "complex128", "tensor([0.+1.j])"),
        ([1j], "complex64", "tensor([0.+1.j], dtype=torch.complex64)"),
    ],
)
def test_default_dtype_goes_unnamed(numbers: Any, dtype: str, expected: str) -> None:
    assert text(Subject(numbers, dtype), "float64") == expected


def test_summary_reads_only_what_it_shows() -> None:
    class Counted(np.ndarray[Any, Any]):
        converted = 0

        def tolist(self) -> Any:
            Counted.converted += self.size
            return super().tolist()

    subject = Subject(np.zeros((200, 50, 100)))
    subject.array = subject.array.view(Counted)
    text(subject)
    assert Counted.converted == 6**3


def test_format_specs() -> None:
    scalar: Any = Subject(2.5, "bfloat16")
    assert printing.format_tensor_value(scalar, ">8.2f") == "    2.50"
    assert printing.format_tensor_value(scalar, "", format_item=lambda x, spec: repr(x)) == "2.5"
    row: Any = Subject([2.5])
    assert printing.format_tensor_value(row, "") == "tensor([2.5000])"
    with pytest.raises(TypeError, match=r"^unsupported format string passed to Tensor.__format__$"):
        printing.format_tensor_value(row, ".2f")


def test_options_come_and_go() -> None:
    fresh = printing.get_options()
    assert fresh == {
        "precision": 4,
        "threshold": 1000,
        "edgeitems": 3,
        "linewidth": 80,
        "sci_mode": None,
    }
    printing.set_printoptions(precision=2, sci_mode=True)
    kept = printing.get_options()
    printing.set_printoptions(linewidth=40)
    assert printing.get_options() == {**fresh, "precision": 2, "linewidth": 40}
    printing.set_printoptions(**kept)
    assert printing.get_options() == kept
    printing.reset_options()
    assert printing.get_options() == fresh
