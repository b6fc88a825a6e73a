"""numpy as the language has it, held to numpy itself; and what it refuses."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np
import pytest

from tensorcli.language import limits
from tensorcli.language.numpy_array import NDArray
from tensorcli.language.program import compile_program


class Heard:
    """Keeps what a program's expression statements gave."""

    def __init__(self) -> None:
        self.values: list[object] = []

    def value(self, value: object, statement: object) -> None:
        self.values.append(value)

    def print(self, text: str, line: int) -> None:
        self.values.append(text)


def ours(text: str) -> object:
    heard = Heard()
    compile_program(f"import math\nimport numpy as np\n{text}").run({}, heard)
    return heard.values[-1] if heard.values else None


CALLS = [
    line
    for line in Path(__file__).with_name("numpy_calls.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]


def outcome(run: object) -> tuple[object, ...]:
    try:
        return ("value", repr(run()))  # type: ignore[operator]
    except Exception as error:
        # How our type and its functions are called in a complaint is not what is compared.
        return ("error", type(error), str(error).replace("numpy.ndarray", "ndarray"))


@pytest.fixture(autouse=True)
def _plenty() -> None:
    limits.use(limits.Limits())


@pytest.mark.parametrize("text", CALLS)
def test_like_numpy(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = outcome(lambda: eval(text, {"math": math, "np": np}))
    assert outcome(lambda: ours(text)) == expected


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("a = np.arange(3)\na[0] = 9\na", [9, 1, 2]),
        ("a = np.arange(3)\nb = a[1:]\nb[0] = 7\na", [0, 7, 2]),
        ("a = np.arange(4)\na[a > 1] = 0\na", [0, 1, 0, 0]),
        ("a = np.arange(4)\na[[0, 1]] = [8, 9]\na", [8, 9, 2, 3]),
        ("a = np.arange(3)\nb = a\na += 1\nb", [1, 2, 3]),
        ("a = np.zeros((2, 2))\na[:, 0] = np.array([1, 2])\na", [[1, 0], [2, 0]]),
        ("a = np.arange(3)\na[0] += 5\na", [5, 1, 2]),
        ("a = np.array([3, 1])\na.sort()\na", [1, 3]),
        ("a = np.zeros(2)\na.fill(3)\na", [3, 3]),
        ("a = np.arange(3)\nb = np.array(a)\nb[0] = 9\na", [0, 1, 2]),
        ("a = np.arange(3)\nb = np.asarray(a)\nb[0] = 9\na", [9, 1, 2]),
        ("a = np.arange(6).reshape(2, 3)\na.T[0] = 5\na", [[5, 1, 2], [5, 4, 5]]),
    ],
)
def test_writing(program: str, expected: list[object]) -> None:
    array = ours(program)
    assert isinstance(array, NDArray)
    assert array.array.tolist() == expected


@pytest.mark.parametrize(
    "text",
    [
        "np.array(['a'])",
        "np.array('a')",
        "np.array([None])",
        "np.array({})",
        "np.array([1], dtype=object)",
        "np.array([1], dtype='O')",
        "np.array([1], dtype='f4,f4')",
        "np.array([1], dtype='U1000000000')",
        "np.array([2**80])",
        "np.array([len])",
        "np.zeros(2, dtype=str)",
        "np.arange(3).astype('S5')",
        "np.arange(3)['name']",
        "np.random.rand(3)",
        "np.load('file')",
        "np.arange(3).tofile('file')",
        "np.arange(3).data",
        "np.arange(3).array",
        "np.arange(3).ctypes",
        "np.float64.mro",
        "np.float64(1).data",
        "np.dtype([('a', int)])",
        "np.vectorize(len)",
        "np.full(2, 'a')",
        "np.sum([1], out=np.zeros(1))",
        "np.add(1, 2, np.zeros(1))",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(
        (TypeError, AttributeError, IndexError, NameError, OverflowError, ValueError)
    ):
        ours(text)


HOSTILE = [
    "np.zeros(10**12)",
    "np.ones((10**6, 10**6))",
    "np.full((10**9, 10**9), 1)",
    "np.arange(10**13)",
    "np.arange(0, 1, 1e-15)",
    "np.linspace(0, 1, 10**12)",
    "np.eye(10**7)",
    "np.identity(10**7)",
    "np.array(range(10**12))",
    "np.array([range(10**12)])",
    "np.arange(10**6).reshape(-1, 1) + np.arange(10**6)",
    "np.add(np.arange(10**6).reshape(-1, 1), np.arange(10**6))",
    "np.outer(np.arange(10**6), np.arange(10**6))",
    "np.tile(np.arange(10**6), 10**6)",
    "np.repeat(np.arange(10**6), 10**6)",
    "np.meshgrid(np.arange(10**6), np.arange(10**6))",
    "np.diag(np.arange(10**6))",
    "np.ones((10**6, 1)) @ np.ones((1, 10**6))",
    "np.ones((10**5, 100))[np.zeros(10**5, dtype=int)][:, np.zeros(10**5, dtype=int)]",
    "np.broadcast_to(1.0, (10**6, 10**6)) + 1",
    "np.broadcast_to(1.0, (10**6, 10**6)).copy()",
    "np.broadcast_to(1.0, (10**6, 10**6)).tolist()",
    "np.broadcast_to(1.0, (10**6, 10**6)).sum()",
    "str(np.broadcast_to(1.0, (7,) * 12))",
    "np.take(np.ones((2, 10**6)), np.zeros(10**6, dtype=int), axis=0)",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_calls_reach_limits(text: str) -> None:
    limits.use(limits.Limits(steps=10**6, memory=5 * 10**8, text=10**6))
    with pytest.raises(limits.LimitReached):
        ours(text)
