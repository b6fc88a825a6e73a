"""The JSON contract, schema 1: the objects of each kind, strictness, and the shortest decimals."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import dtypes
from tensorcli.render.numbers import array_text
from tests.in_memory import World
from tests.json_schema import mistakes


def strictly(text: str) -> Any:
    """Parsed JSON; NaN and Infinity, which Python would take, are refused."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def records(text: str, *flags: str, status: int = 0) -> list[dict[str, Any]]:
    """The objects that a program gives; all have the schema's number."""
    world = World()
    assert world.run("eval", "--json", *flags, text) == status, world.out
    assert world.err == ""
    found = [strictly(line) for line in world.out.splitlines()]
    assert [mistakes(record) for record in found] == [[] for record in found]
    assert all(record.pop("schema") == 1 for record in found)
    return found


def value(text: str) -> Any:
    """Type and value of the only object."""
    [record] = records(text)
    assert (record.pop("kind"), record.pop("line")) == ("value", 1)
    return record.pop("type"), record.pop("value"), record


def test_a_tensor() -> None:
    assert records("tensor([[1., 2.], [3., 4.]]).t()") == [
        {
            "kind": "tensor",
            "line": 1,
            "dtype": "float32",
            "shape": [2, 2],
            "stride": [1, 2],
            "storage_offset": 0,
            "contiguous": False,
            "device": "cpu",
            "requires_grad": False,
            "is_leaf": True,
            "grad_fn": None,
            "data": [[1.0, 3.0], [2.0, 4.0]],
        }
    ]


def test_what_autograd_knows_of_a_tensor() -> None:
    leaf, result = records("x = tensor(2., requires_grad=True)\nx\nx * 2")
    assert (leaf["requires_grad"], leaf["is_leaf"], leaf["grad_fn"]) == (True, True, None)
    assert (result["is_leaf"], result["grad_fn"]) == (False, "MulBackward0")
    assert result["data"] == 4.0


def test_numbers_that_json_lacks() -> None:
    [record] = records("tensor([float('nan'), float('inf'), -float('inf'), -0.0])")
    assert record["data"][:3] == ["nan", "inf", "-inf"]
    assert math.copysign(1, record["data"][3]) == -1


def test_meta_and_large_tensors() -> None:
    meta, large = records("zeros(2, 3, device='meta')\nzeros(1001, 1000)")
    assert (meta["data"], meta["device"], meta["shape"]) == (None, "meta", [2, 3])
    assert (large["data"], large["data_omitted"]) == (None, 1_001_000)
    [full] = records("zeros(1001, 1000)", "--full")
    assert len(full["data"]) == 1001


VALUES = [
    ("3", "int", 3),
    ("2**70", "int", 2**70),
    ("1.5", "float", 1.5),
    ("float('nan')", "float", "nan"),
    ("-float('inf')", "float", "-inf"),
    ("1e300", "float", 1e300),
    ("True", "bool", True),
    ("'a\\n\\x1b\\ud800'", "str", "a\n\x1b\ud800"),
    ("1 + 2j", "complex", [1.0, 2.0]),
    ("(1, 2.5, 'a', None, True)", "tuple", [1, 2.5, "a", None, True]),
    ("[]", "list", []),
    ("[float('inf')]", "list", [{"kind": "value", "type": "float", "value": "inf"}]),
    ("[(1,), 2j]", "list", [
        {"kind": "value", "type": "tuple", "value": [1]},
        {"kind": "value", "type": "complex", "value": [0.0, 2.0]},
    ]),
    ("{'a': 1, 2: [3]}", "dict", [["a", 1], [2, {"kind": "value", "type": "list", "value": [3]}]]),
    ("{3, 1}", "set", [1, 3]),
    ("zeros(2, 3).shape", "Size", [2, 3]),
    ("torch.bfloat16", "dtype", "bfloat16"),
    ("zeros(1).device", "device", "cpu"),
    ("slice(1, 2)", "slice", "slice(1, 2, None)"),
    ("range(3)", "range", "range(0, 3)"),
    ("np.arange(3)", "ndarray", "array([0, 1, 2])"),
    ("def f(): pass\nf\n", "function", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "wanted"), VALUES, ids=[row[0] for row in VALUES])
def test_other_values(text: str, kind: str, wanted: Any) -> None:
    [record] = records(text)
    assert (record["kind"], record["type"], record["value"]) == ("value", kind, wanted)


def test_tensors_inside_containers_have_no_line() -> None:
    _, [pair], _ = value("{'w': ones(1)}")
    name, tensor = pair
    assert (name, tensor["kind"], tensor["data"]) == ("w", "tensor", [1.0])
    assert "line" not in tensor


def test_named_tuples() -> None:
    kind, parts, rest = value("torch.max(tensor([1., 3.]), 0)")
    assert (kind, rest) == ("return_types.max", {"fields": ["values", "indices"]})
    assert [part["data"] for part in parts] == [3.0, 1]


def test_numpys_scalars_are_numbers() -> None:
    assert value("[np.float64(1.5), np.ones(2).sum()]")[1] == [1.5, 2.0]


def test_lists_in_themselves_and_very_deep() -> None:
    first, second = records("a = []\na.append(a)\na\nfor i in range(5000): a = [a]\na")
    assert first["value"] == [{"kind": "value", "type": "list", "value": None}]
    assert second["kind"] == "value"


def test_everything_is_emitted() -> None:
    text = "for i in range(2): i\ndef f():\n    5\nf()\nx = zeros(1)\nx.add_(1)\nx.mul_(2)"
    assert [record["line"] for record in records(text)] == [1, 1, 6, 7]
    assert len(records(text, "--show", "none")) == 4


def test_explanations() -> None:
    text = """
x = tensor([[1., 70000.], [float('nan'), 4.]], requires_grad=True)
layout(x.t())
x.sum().backward()
grads()
precision(x)
broadcast(x, (3, 1, 1))
broadcast(x, (3,))
graph((x * x).sum())
"""
    kinds = ["layout", "gradients", "precision", "broadcast", "broadcast", "graph"]
    assert [record["kind"] for record in records(text)] == kinds


def test_the_schema_refuses_what_is_wrong() -> None:
    assert mistakes({"schema": 1, "kind": "end", "file": "a"}) == []
    for wrong in (
        {"schema": 2, "kind": "end", "file": "a"},
        {"schema": 1, "kind": "end"},
        {"schema": 1, "kind": "print", "line": 1, "text": 3},
        {"schema": 1, "kind": "print", "line": "1", "text": ""},
        {"schema": 1, "kind": "value", "line": 1, "type": "list", "value": [{"kind": "x"}]},
    ):
        assert mistakes(wrong)


def test_print() -> None:
    assert records("print('a', 1)\nprint('b\\n')\nprint(end='')") == [
        {"kind": "print", "line": 1, "text": "a 1"},
        {"kind": "print", "line": 2, "text": "b\n"},
        {"kind": "print", "line": 3, "text": ""},
    ]


def test_the_line_of_a_print_inside_a_function() -> None:
    [record] = records("def f():\n    x = 1\n    print(x)\n\nf()")
    assert record["line"] == 3


def test_an_error_is_last() -> None:
    first, error = records("1\nx = zeros(2, 3)\ny = x + zeros(2)", status=1)
    assert first["value"] == 1
    assert {name: error[name] for name in ("kind", "type", "code")} == {
        "kind": "error",
        "type": "RuntimeError",
        "code": "broadcast",
    }
    assert error["message"].startswith("The size of tensor a (3) must match the size of tensor b")
    assert place(error) == [3, 5, 3, 17]
    assert [(place(label), label["text"]) for label in error["labels"]] == [
        ([3, 5, 3, 6], "shape [2, 3], float32"),
        ([3, 9, 3, 17], "shape [2], float32"),
    ]
    assert len(error["notes"]) == 1
    assert error["fixes"] == [{"expr": "x + zeros(2).unsqueeze(1)", "shape": [2, 3]}]


def place(record: dict[str, Any]) -> list[int]:
    return [record[name] for name in ("line", "column", "end_line", "end_column")]


def test_columns_count_characters() -> None:
    [error] = records("a = '数据'; b = c", status=1)
    assert (error["column"], error["end_column"]) == (15, 16)


def test_errors_without_a_program() -> None:
    world = World()
    assert world.run("run", "--json", "/nowhere/x.tx") == 4
    error, end = map(strictly, world.out.splitlines())
    assert (error["type"], error["line"], error["file"]) == ("OSError", None, "/nowhere/x.tx")
    assert end == {"schema": 1, "kind": "end", "file": "/nowhere/x.tx"}


@pytest.mark.parametrize(
    ("text", "kind", "code", "status"),
    [
        ("x = (", "SyntaxError", "syntax", 3),
        ("class A: pass", "SyntaxError", "construct", 3),
        ("a", "NameError", "name", 1),
        ("ones(1).a", "AttributeError", "attribute", 1),
        ("ones(1)[3]", "IndexError", "index", 1),
        ("{}['a']", "KeyError", "key", 1),
        ("1 / 0", "ZeroDivisionError", "zero-division", 1),
        ("assert 0", "AssertionError", "assertion", 5),
        ("[0] * 10**15", "LimitError", "limit-memory", 6),
        ("1 << 10**12", "LimitError", "limit-integer", 6),
        ("'a' * 10**12", "LimitError", "limit-text", 6),
        ("f = lambda: f()\nf()", "LimitError", "limit-depth", 6),
    ],
)
def test_codes(text: str, kind: str, code: str, status: int) -> None:
    [error] = records(text, status=status)
    assert (error["type"], error["code"]) == (kind, code)
    assert error["line"] == len(text.splitlines())


def test_every_file_ends(tmp_path: Path) -> None:
    first, second = tmp_path / "a.tx", tmp_path / "b.tx"
    first.write_text("1\nunknown\n2")
    second.write_text("torch.set_default_dtype(torch.float64)\nones(1)")
    world = World()
    assert world.run("run", "--json", str(first), str(second), str(second)) == 1
    found = [strictly(line) for line in world.out.splitlines()]
    assert [(record["kind"], record["file"]) for record in found] == [
        ("value", str(first)),
        ("error", str(first)),
        ("end", str(first)),
        ("tensor", str(second)),
        ("end", str(second)),
        ("tensor", str(second)),
        ("end", str(second)),
    ]


def test_seeds_are_for_each_file(tmp_path: Path) -> None:
    path = tmp_path / "a.tx"
    path.write_text("rand(1)")
    world = World()
    assert world.run("run", "--json", "--seed", "0", str(path), str(path)) == 0
    data = [strictly(line).get("data") for line in world.out.splitlines()]
    assert data[0] == data[2] == [0.4962566]


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_small_dtypes_read_back(name: str) -> None:
    dtype = dtypes.by_name[name].np
    bits = np.arange(256**dtype.itemsize, dtype=f"u{dtype.itemsize}")
    values = bits.view(dtype)
    read = np.array([float(x) for x in strictly(array_text(values, name))])
    back = read.astype(np.float32).astype(dtype).view(bits.dtype)
    assert ((back == bits) | np.isnan(read)).all()


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_wide_dtypes_read_back_and_are_short(name: str) -> None:
    dtype = np.dtype(name)
    generator = np.random.default_rng(0)
    bits = generator.integers(0, 1 << 32, 4000, dtype=np.uint64).astype(f"u{dtype.itemsize}")
    if dtype.itemsize == 8:
        bits = bits << np.uint64(32) | generator.integers(0, 1 << 32, 4000, dtype=np.uint64)
    values = bits.view(dtype)
    values = values[np.isfinite(values)]
    texts = array_text(values, name)[1:-1].split(",")
    assert [dtype.type(text) for text in texts] == list(values)
    assert all(len(text) <= len(str(value)) for text, value in zip(texts, values, strict=True))


def test_shapes_are_nested() -> None:
    for shape in [(), (0,), (2, 0, 3), (1,), (2, 1, 3)]:
        array = np.zeros(shape, np.float32)
        assert strictly(array_text(array, "float32")) == array.tolist()
    assert strictly(array_text(np.ones((2,), np.complex64), "complex64")) == [[1.0, 0.0]] * 2
    assert strictly(array_text(np.array([True, False]), "bool")) == [True, False]
    largest = np.array([2**64 - 1], np.uint64)
    assert strictly(array_text(largest, "uint64")) == [2**64 - 1]
