"""Files of numpy, safetensors and PyTorch as programs read them, and ours as those read them."""

from __future__ import annotations

import collections
import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.tensor import Tensor
from tensorcli import results
from tensorcli.environment import Environment
from tensorcli.session import Session
from tensorcli.settings import Settings

torch = pytest.importorskip("torch")

DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16",
    "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2", "complex64", "complex128",
]  # fmt: skip
NUMPY_DTYPES = [name for name in DTYPES if "float8" not in name and name != "bfloat16"]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def ours(text: str) -> dict[str, Any]:
    """The names after a program."""
    environment = Environment(
        stdin=io.StringIO(), stdout=io.StringIO(), stderr=io.StringIO(), variables={}
    )
    session = Session(environment, Settings(hints="off"))
    errors: list[Any] = []
    session.run(text, lambda r: errors.append(r) if isinstance(r, results.ErrorResult) else None)
    assert not errors, errors[0].diagnostic.message
    return session.names


def bits(value: Any) -> bytes:
    """The elements of a tensor of either side, row by row."""
    if isinstance(value, Tensor):
        return np.asarray(value.array).tobytes()
    flat = value.detach().clone(memory_format=torch.contiguous_format).reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes()


def same(mine: Any, theirs: Any, *, strides: bool = True) -> bool:
    if str(mine.dtype) != str(theirs.dtype) or tuple(mine.shape) != tuple(theirs.shape):
        return False
    if strides and tuple(mine.layout.strides) != theirs.stride():
        return False
    return bits(mine) == bits(theirs) and mine.requires_grad == theirs.requires_grad


def samples(dtype: str) -> dict[str, Any]:
    """Tensors of all kinds of layouts, two of which share a storage."""
    raw = torch.from_numpy(np.random.default_rng(0).integers(0, 2, 4 * 6 * 16, np.uint8))
    if dtype != "bool":
        raw = torch.from_numpy(np.random.default_rng(0).integers(0, 60, 4 * 6 * 16, np.uint8))
    flat = raw.view(getattr(torch, dtype))
    base = flat[:24].view(4, 6)
    return {
        "base": base,
        "transposed": base.t(),
        "part": base[1:, ::2],
        "number": base[2, 3].clone(),
        "empty": base[:0],
        "expanded": base[0, :1].clone().expand(3),
        "nothing": torch.zeros(0, 3, dtype=getattr(torch, dtype)).t(),
    }


@pytest.mark.parametrize("dtype", DTYPES)
def test_pt_of_pytorch(dtype: str) -> None:
    theirs = samples(dtype)
    torch.save(theirs, "x.pt")
    mine = ours("x = torch.load('x.pt')\nx['base'][1, 0] = 0")["x"]
    theirs["base"][1, 0] = 0
    assert list(mine) == list(theirs)
    for name, tensor in theirs.items():
        assert same(mine[name], tensor), name
        assert mine[name].offset == tensor.storage_offset()


@pytest.mark.parametrize("dtype", DTYPES)
def test_pt_of_ours(dtype: str) -> None:
    torch.save(samples(dtype), "x.pt")
    ours("torch.save(torch.load('x.pt'), 'y.pt')")
    before, after = torch.load("x.pt"), torch.load("y.pt")
    before["base"].zero_()
    after["base"].zero_()
    for name, tensor in before.items():
        assert after[name].dtype == tensor.dtype
        assert after[name].stride() == tensor.stride()
        assert after[name].storage_offset() == tensor.storage_offset()
        assert bits(after[name]) == bits(tensor), name
    assert after["part"].untyped_storage().nbytes() == before["part"].untyped_storage().nbytes()


def test_values_besides_tensors() -> None:
    value = {
        "numbers": [0, 255, 256, 65536, -1, 2**31, -(2**63), 10**300, 1.5, float("inf"), 1 - 2j],
        "text": ["", "ä\n", "x" * 300],
        "others": (None, True, False, (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), set(), {1, 2}),
        2: {"size": torch.Size([2, 3]), "dtype": torch.bfloat16, "device": torch.device("cpu")},
        (1, "key"): [[], {}],
        "many": list(range(3000)),
    }
    torch.save(value, "x.pt")
    names = ours("x = torch.load('x.pt')\ntorch.save(x, 'y.pt')")
    assert repr(torch.load("y.pt")) == repr(value)
    assert repr(names["x"]["numbers"]) == repr(value["numbers"])


def test_models_and_optimisers() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    optimiser = torch.optim.Adam(model.parameters())
    model(torch.randn(4, 3)).sum().backward()
    optimiser.step()
    torch.save({"model": model.state_dict(), "optimiser": optimiser.state_dict()}, "x.pt")
    mine = ours("x = torch.load('x.pt', map_location=lambda storage, loc: storage)")["x"]
    for name, tensor in model.state_dict().items():
        assert same(mine["model"][name], tensor), name
    ours(
        "x = torch.load('x.pt')\ntorch.save(x['model'], 'y.pt')\ntorch.save(x['optimiser'], 'z.pt')"
    )
    model.load_state_dict(torch.load("y.pt"))
    optimiser.load_state_dict(torch.load("z.pt"))


def test_parameters_leaves_conjugates_and_meta() -> None:
    z = torch.tensor([1 + 2j, 3 - 1j])
    theirs = {
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "frozen": torch.nn.Parameter(torch.ones(2), requires_grad=False),
        "result": torch.ones(2, requires_grad=True) * 2,
        "conjugate": z.conj(),
        "negative": torch.tensor([1 + 2j]).conj().imag,
        "ordered": collections.OrderedDict([("b", 1), ("a", 2)]),
        "meta": torch.empty(2, 3, device="meta").t(),
    }
    torch.save(theirs, "x.pt")
    mine = ours("x = torch.load('x.pt')\ntorch.save(x, 'y.pt')")["x"]
    for name in ("parameter", "frozen", "result"):
        assert same(mine[name], theirs[name]), name
    assert bits(mine["conjugate"]) == bits(theirs["conjugate"].resolve_conj())
    assert bits(mine["negative"]) == bits(theirs["negative"].resolve_neg())
    assert list(mine["ordered"].items()) == [("b", 1), ("a", 2)]
    after = torch.load("y.pt")
    assert after["meta"].is_meta
    assert after["meta"].stride() == (1, 3)
    assert isinstance(after["parameter"], torch.nn.Parameter)
    assert after["result"].is_leaf
    assert torch.equal(after["conjugate"], theirs["conjugate"])
    assert after["conjugate"].is_conj()
    assert after["negative"].is_neg()
    assert torch.equal(after["negative"], theirs["negative"])


def test_a_conjugate_shares_its_memory_in_a_file() -> None:
    ours("z = torch.tensor([1 + 2j, 3j])\ntorch.save([z, z.conj()], 'x.pt')")
    plain, seen = torch.load("x.pt")
    assert seen.is_conj()
    assert seen._base is None
    assert plain.data_ptr() == seen.data_ptr()
    assert torch.equal(seen, plain.conj())
    torch.save([plain, seen], "y.pt")
    mine = ours("x = torch.load('y.pt')")["x"]
    assert [t.is_conj() for t in mine] == [False, True]
    assert mine[1]._base is None
    assert mine[0].data_ptr() == mine[1].data_ptr()
    assert mine[1].tolist() == seen.tolist()


def test_mapped_files_of_ours() -> None:
    ours("torch.save({'x': torch.arange(5.)}, 'x.pt')")
    loaded = torch.load("x.pt", mmap=True)["x"]
    assert loaded.tolist() == [0, 1, 2, 3, 4]
    assert loaded.data_ptr() % 64 == 0


def test_legacy_files_are_refused() -> None:
    torch.save(torch.ones(2), "x.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(AssertionError, match="legacy format"):
        ours("torch.load('x.pt')")


def test_big_endian_files() -> None:
    torch.save(torch.tensor([1.0, 2.0]), "x.pt")
    content = Path("x.pt").read_bytes()
    import zipfile

    swapped = {"x/byteorder": b"big", "x/data/0": np.array([1, 2], ">f4").tobytes()}
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile("y.pt", "w") as new:
        for info in old.infolist():
            new.writestr(info.filename, swapped.get(info.filename, old.read(info)))
    assert ours("x = torch.load('y.pt').tolist()")["x"] == [1.0, 2.0]


@pytest.mark.parametrize(
    "program",
    [
        "torch.load('none.pt')",
        "torch.load('.')",
        "torch.load(3)",
        "torch.load()",
        "torch.save(1)",
        "torch.save(1, 3)",
        "torch.save(1, 'none/x.pt')",
        "torch.load('x.pt', map_location='cuda')",
        "torch.load('x.pt', map_location='foo')",
        "torch.load('x.pt', map_location=3)",
        "torch.save([x, x.view(torch.int32)], 'y.pt')",
    ],
)
def test_messages(program: str) -> None:
    x = torch.ones(2)
    torch.save(x, "x.pt")
    with pytest.raises(Exception) as theirs:  # noqa: B017, PT011 - whatever PyTorch raises
        eval(program, {"torch": torch, "x": x})
    caught = f"x = torch.ones(2)\ntry:\n    {program}\nexcept Exception as e:\n    m = str(e)"
    assert ours(f"{caught}\n    t = type(e).__name__")["m"] == str(theirs.value)


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_npy_both_ways(dtype: str) -> None:
    arrays = {name: x.resolve_conj().numpy() for name, x in samples(dtype).items()}
    np.savez("x.npz", **arrays)
    np.savez_compressed("c.npz", **arrays)
    for name, array in arrays.items():
        np.save(f"{name}.npy", array)
        swapped = array.astype(array.dtype.newbyteorder(">"))
        np.save(f"{name}_swapped.npy", swapped)
        program = f"x = load('{name}.npy')\ny = load('{name}_swapped.npy')\nsave(x, 'y.npy')"
        names = ours(program)
        expected = torch.from_numpy(np.load(f"{name}.npy"))
        assert same(names["x"], expected), name
        assert same(names["y"], expected, strides=False)
        assert Path("y.npy").read_bytes() == Path(f"{name}.npy").read_bytes()
    found = ours("x = load('x.npz')\nc = load('c.npz')\nsave(x, 'y.npz')")
    with np.load("y.npz") as again:
        for name, array in arrays.items():
            assert same(found["x"][name], torch.from_numpy(np.load(f"{name}.npy")))
            assert bits(found["c"][name]) == bits(found["x"][name])
            assert again[name].dtype == array.dtype
            assert again[name].tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name != "complex128"])
def test_safetensors_both_ways(dtype: str) -> None:
    library = pytest.importorskip("safetensors.torch")
    theirs = {name: x.contiguous().clone() for name, x in samples(dtype).items()}
    library.save_file(theirs, "x.safetensors", {"format": "pt"})
    theirs = library.load_file("x.safetensors")
    mine = ours("x = load('x.safetensors')\nsave(x, 'y.safetensors')")["x"]
    after = library.load_file("y.safetensors")
    assert sorted(mine) == sorted(theirs) == sorted(after)
    for name, tensor in theirs.items():
        assert same(mine[name], tensor), name
        assert after[name].dtype == tensor.dtype
        assert bits(after[name]) == bits(tensor)


def test_tables_both_ways() -> None:
    values = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    np.savetxt("x.csv", values, delimiter=",", header="a,b,c", comments="")
    np.savetxt("x.tsv", values.astype(int), delimiter="\t", fmt="%d")
    names = ours("x = load('x.csv')\ny = load('x.tsv')\nsave(x, 'y.csv')\nsave(y, 'y.tsv')")
    assert bits(names["x"]) == values.tobytes()
    assert np.array_equal(np.loadtxt("y.csv", np.float32, delimiter=","), values)
    assert np.array_equal(np.loadtxt("y.tsv", int), values.astype(int))


def test_an_unknown_protocol_is_refused() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.save([1], "x.pt", pickle_protocol=4)
    with pytest.raises(AssertionError, match="protocol 4"):
        ours("torch.load('x.pt')")
