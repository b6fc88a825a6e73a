"""Files from programs: what load and save take, refuse and leave behind; PyTorch is not needed."""

from __future__ import annotations

import io
import os
import struct
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tensorcli import check_command, results
from tensorcli.environment import Environment
from tensorcli.files import archives
from tensorcli.files.disk import open_input
from tensorcli.session import Session
from tensorcli.settings import Settings


class Ran:
    """What a program showed, and how it ended."""

    def __init__(self, text: str, settings: Settings | None = None) -> None:
        streams = [io.StringIO() for _ in range(3)]
        environment = Environment(
            stdin=streams[0], stdout=streams[1], stderr=streams[2], variables={}
        )
        self.results: list[results.Result] = []
        session = Session(environment, settings or Settings(hints="off"))
        self.status = session.run(text, self.results.append)
        errors = [r.diagnostic for r in self.results if isinstance(r, results.ErrorResult)]
        self.error = f"{errors[0].type}: {errors[0].message}" if errors else ""
        self.text = "".join(r.text for r in self.results if isinstance(r, results.PrintResult))


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def shows(text: str) -> str:
    ran = Ran(text)
    assert not ran.error, ran.error
    return ran.text.rstrip("\n")


def fails(text: str) -> str:
    ran = Ran(text)
    assert ran.status == 1
    return ran.error


@pytest.mark.parametrize("suffix", ["npy", "npz", "safetensors", "pt", "csv", "tsv"])
def test_a_tensor_survives_its_file(suffix: str) -> None:
    named = "{'x': x}" if suffix in ("npz", "safetensors") else "x"
    inner = "['x']" if suffix in ("npz", "safetensors") else ""
    program = f"""
x = torch.tensor([[0.1, -2.5e-30], [float('nan'), float('inf')]])
save({named}, 'f.{suffix}')
y = load('f.{suffix}'){inner}
print(y.dtype, y.shape, torch.equal(y.nan_to_num(7.), x.nan_to_num(7.)))
"""
    assert shows(program) == "torch.float32 torch.Size([2, 2]) True"


def test_strides_storages_and_identity_survive_in_pt() -> None:
    program = """
x = torch.arange(12.).view(3, 4)
torch.save({'x': x, 'part': x.t()[1:], 'again': x, 'nested': [x, (1, 'a')]}, 'f.pt')
d = torch.load('f.pt', weights_only=True, map_location='cpu')
d['x'][0, 1] = 99.
print(d['part'].stride(), d['part'].storage_offset(), d['part'][0, 0].item())
print(d['again'] is d['x'], d['nested'][0] is d['x'], d['nested'][1])
print(torch.load('f.pt', map_location=lambda storage, loc: storage)['part'].shape)
print(torch.load('f.pt', map_location='meta')['part'].is_meta)
"""
    assert shows(program).splitlines() == [
        "(1, 4) 1 99.0", "True True (1, 'a')", "torch.Size([3, 3])", "True",
    ]  # fmt: skip


def test_a_list_that_holds_itself_does_so_again() -> None:
    program = (
        "x = [1]\nx.append(x)\ntorch.save(x, 'f.pt')\ny = torch.load('f.pt')\nprint(y[1] is y)"
    )
    assert shows(program) == "True"


def test_training_goes_on_from_a_checkpoint() -> None:
    program = """
w = torch.ones(3, requires_grad=True)
optimiser = torch.optim.SGD([w], lr=0.1, momentum=0.9)
for step in range(2):
    optimiser.zero_grad()
    (w ** 2).sum().backward()
    optimiser.step()
torch.save({'w': w, 'optimiser': optimiser.state_dict(), 'step': step}, 'f.pt')
c = torch.load('f.pt')
print(c['w'].requires_grad, c['w'].is_leaf, c['step'], torch.equal(c['w'], w))
other = torch.optim.SGD([c['w']], lr=0.5)
other.load_state_dict(c['optimiser'])
print(other.param_groups[0]['lr'])
"""
    assert shows(program).splitlines() == ["True True 1 True", "0.1"]


@pytest.mark.parametrize(
    ("program", "error"),
    [
        ("load('none.npy')", "FileNotFoundError: [Errno 2] No such file or directory: 'none.npy'"),
        ("torch.load('a\\x1b.pt')",
         "FileNotFoundError: [Errno 2] No such file or directory: 'a\\x1b.pt'"),
        ("load('.')", "IsADirectoryError: [Errno 21] Is a directory: '.'"),
        ("load(3)", "TypeError: load(): the path must be str, not int"),
        ("load('/dev/null')", "OSError: [Errno 22] Neither a file nor a pipe: '/dev/null'"),
        ("save(ones(2), 'none/x.npy')", "FileNotFoundError: [Errno 2] No such file or directory: "
         "'none/x.npy'"),
        ("torch.save(ones(2), 'none/x.pt')", "RuntimeError: Parent directory none does not exist."),
        ("save(ones(2), 'x.what')", "ValueError: the name 'x.what' tells no format: .npy, .npz"),
        ("save(ones(2, dtype=torch.bfloat16), 'x.npy')", "TypeError: .npy has no bfloat16"),
        ("save(ones(2, device='meta'), 'x.npy')", "TypeError: a tensor on meta has no data"),
        ("save(ones(2), 'x.safetensors')", "TypeError: a .safetensors file holds tensors by name"),
        ("save(ones(2, 2, 2), 'x.csv')", "ValueError: a table has rows and columns, the tensor"),
        ("torch.save(lambda: 1, 'x.pt')", "TypeError: cannot pickle 'function' object"),
        ("torch.save(1, 3)", "AttributeError: expected 'f' to be string, path, or a file-like"),
        ("torch.load(3)", "AttributeError: 'int' object has no attribute 'seek'."),
        ("torch.load()", "TypeError: load() missing 1 required positional argument: 'f'"),
        ("torch.save()", "TypeError: save() missing 2 required positional arguments: 'obj' and"),
        ("x = ones(2)\ntorch.save([x, x.view(torch.int32)], 'x.pt')",
         "RuntimeError: Cannot save multiple tensors or storages that view the same data as"),
    ],
)  # fmt: skip
def test_refusals(program: str, error: str) -> None:
    assert fails(program).startswith(error)


def test_nothing_is_left_of_a_save_that_failed() -> None:
    assert shows("save(ones(2), 'x.csv')\nprint(load('x.csv').shape)") == "torch.Size([2, 1])"
    before = Path("x.csv").read_bytes()
    fails("save(ones(2, 2, 2), 'x.csv')")
    assert os.listdir() == ["x.csv"]
    assert Path("x.csv").read_bytes() == before


def test_a_save_keeps_permissions_and_links() -> None:
    Path("real.npy").write_bytes(b"")
    os.chmod("real.npy", 0o640)
    os.symlink("real.npy", "link.npy")
    shows("save(ones(2), 'link.npy')")
    assert os.path.islink("link.npy")
    assert os.stat("real.npy").st_mode & 0o777 == 0o640
    assert np.load("real.npy").shape == (2,)


def test_only_files_are_replaced() -> None:
    os.mkfifo("pipe.npy")
    assert fails("save(ones(2), 'pipe.npy')") == "OSError: [Errno 22] Not a file: 'pipe.npy'"


def test_a_pipe_is_read_to_its_end() -> None:
    os.mkfifo("pipe")
    writer = threading.Thread(target=Path("pipe").write_text, args=("1,2\n3,4\n",))
    writer.start()
    assert shows("print(load('pipe'))") == "tensor([[1, 2],\n        [3, 4]])"
    writer.join()


def test_without_files_a_program_reaches_none() -> None:
    Path("x.csv").write_text("1\n")
    for program in ("load('x.csv')", "save(1, 'y.csv')", "torch.load('x')", "torch.save(1, 'y')"):
        ran = Ran(program, Settings(hints="off", files=False))
        assert ran.status == 1
        assert ran.error.startswith("PermissionError: "), ran.error
        assert "is turned off" in ran.error
    assert os.listdir() == ["x.csv"]


def test_a_program_can_catch_the_error() -> None:
    program = (
        "try:\n    load('none.pt')\nexcept FileNotFoundError as e:\n    print('no', e.filename)"
    )
    assert shows(program) == "no none.pt"


def test_reruns_and_shape_queries_write_nothing() -> None:
    program = """
x = torch.ones(2, requires_grad=True)
save(x, 'x.npy')
y = (x * 2).sum()
check_grad(y)
save(x * 2, 'x.npy')
y = shape(load('x.npy') @ ones(2, 3))
"""
    ran = Ran(program)
    assert not ran.error, ran.error
    assert np.load("x.npy").tolist() == [2.0, 2.0]
    ran = Ran("x = ones(2)\nsave(x, 'y.npy')\nx @ ones(3)")
    assert ran.status == 1
    assert np.load("y.npy").tolist() == [1.0, 1.0]


def test_a_checked_program_reads_shapes_and_writes_nothing() -> None:
    np.save("x.npy", np.ones((2, 3), np.float32))
    Path("p.tx").write_text("x = load('x.npy')\ny = x @ ones(3, 4)\nsave(y, 'y.npy')\n")
    streams = [io.StringIO() for _ in range(3)]
    environment = Environment(
        stdin=streams[0], stdout=streams[1], stderr=streams[2], variables={}, width=80
    )
    assert check_command.check(["p.tx"], environment, Settings()) == 0
    assert "[2, 4]" in streams[1].getvalue()
    assert not os.path.exists("y.npy")
    assert check_command.check(["p.tx"], environment, Settings(files=False)) == 5
    assert "is turned off" in streams[2].getvalue()


# -- tables of text ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,2\n3,4\n", "torch.int64 [[1, 2], [3, 4]]"),
        ("1,2\r\n3,4", "torch.int64 [[1, 2], [3, 4]]"),
        ("a,b\n1,2\n", "torch.int64 [[1, 2]]"),
        (",b\n1,2\n", "torch.int64 [[1, 2]]"),
        ("\ufeff1;2\n".replace(";", ","), "torch.int64 [[1, 2]]"),
        ("1,2.5\n\n3,1e2\n", "torch.float32 [[1.0, 2.5], [3.0, 100.0]]"),
        ('"1","-inf"\n', "torch.float32 [[1.0, -inf]]"),
        ("1,\n2,3\n", "torch.float32 [[1.0, nan], [2.0, 3.0]]"),
        ("18446744073709551616\n", "torch.float32 [[1.8446744073709552e+19]]"),
        ("1+2j,3\n", "torch.complex64 [[(1+2j), (3+0j)]]"),
        ("", "torch.float32 []"),
    ],
)
def test_tables(text: str, expected: str) -> None:
    Path("x.csv").write_text(text, encoding="utf-8", newline="")
    assert shows("x = load('x.csv')\nprint(x.dtype, x.tolist())") == expected


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"1,2\n3\n", "ValueError: 'x.csv', line 2: 1 cells, 2 in the lines before"),
        (b"1,2\n3,x\x1b[1m\n", "ValueError: 'x.csv', line 2: 'x\\x1b[1m' is no number"),
        (b"1,2\n3,1_0\n", "ValueError: 'x.csv', line 2: '1_0' is no number"),
        (b"\xff\xfe\n", "ValueError: 'x.csv' is no table of text: 'utf-8' codec"),
    ],
)
def test_what_is_no_table(content: bytes, error: str) -> None:
    Path("x.csv").write_bytes(content)
    assert fails("load('x.csv')").startswith(error)


# -- damaged and hostile files ------------------------------------------------------------------


def npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + data


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", "'x.npy' is no .npy file"),
        (b"\x93NUMPY\1\0\xff\xff{}", "'x.npy': a header of 65535 bytes"),
        (b"\x93NUMPY\7\0\1\0{}  ", "'x.npy': version 7 of the format is not known"),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }"),
         "'x.npy': 4000000000000 bytes of data expected, 0 found"),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }"),
         "'x.npy': a tensor of more than 2**62 bytes"),
        (npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"cos\nsystem\n"),
         "'x.npy' holds Python objects"),
        (npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }"),
         "'x.npy' holds records"),
        (npy("{'descr': '<V2', 'fortran_order': False, 'shape': (1,), }"),
         "'x.npy' holds elements of 2 raw bytes"),
        (npy("{'descr': '<M8[s]', 'fortran_order': False, 'shape': (1,), }"),
         "'x.npy' holds elements of type '<M8[s]'"),
        (npy("__import__('os').system('true')"), "'x.npy': the header does not describe an array"),
    ],
)  # fmt: skip
def test_what_is_no_npy(content: bytes, error: str) -> None:
    Path("x.npy").write_bytes(content)
    assert fails("load('x.npy')").startswith(f"ValueError: {error}")


def test_archives_state_what_they_hold() -> None:
    np.savez_compressed("x.npz", x=np.zeros(100_000))
    assert shows("print(load('x.npz')['x'].shape)") == "torch.Size([100000])"
    content = Path("x.npz").read_bytes()
    Path("x.npz").write_bytes(content[:-40])
    assert fails("load('x.npz')").startswith("ValueError: 'x.npz' is a damaged archive")
    at = content.index(b"\x93NUMPY") if b"\x93NUMPY" in content else 60
    Path("x.npz").write_bytes(content[:at] + b"\xff" + content[at + 1 :])
    assert "is damaged" in fails("load('x.npz')")
    size = struct.pack("<I", 800_128)
    Path("x.npz").write_bytes(content.replace(size, struct.pack("<I", 0x7FFFFFFF)))
    assert "which cannot be in" in fails("load('x.npz')")


def test_a_member_without_a_name_is_an_array() -> None:
    content = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", b"\0\0\x80?")
    with zipfile.ZipFile("x.npz", "w") as archive:
        archive.writestr(zipfile.ZipInfo(""), content)
        archive.writestr("folder/", b"")
    assert shows("print(load('x.npz'))") == "{'': tensor([1.])}"


def test_the_directory_of_an_archive_is_measured() -> None:
    with zipfile.ZipFile("x.npz", "w") as archive:
        archive.writestr("a", b"1")
    with open_input("x.npz") as source:
        assert archives.directory_length(source) == 46 + 1
    end = Path("x.npz").read_bytes()
    at = end.rindex(b"PK\5\6")
    Path("x.npz").write_bytes(end[: at + 12] + b"\xff\xff\xff\x7f" + end[at + 16 :])
    assert "directory has 2147483647 bytes" in fails("load('x.npz')")


@pytest.mark.parametrize(
    "content",
    [b"", b"1234567", b"\xff" * 8, b"\x02\0\0\0\0\0\0\0{}", b"\x10" + b"\0" * 7 + b"{" * 16],
)
def test_what_is_no_safetensors(content: bytes) -> None:
    Path("x.safetensors").write_bytes(content)
    if content.endswith(b"{}"):
        assert shows("print(load('x.safetensors'))") == "{}"
    else:
        assert fails("load('x.safetensors')").startswith("ValueError: 'x.safetensors' is no")


def pt(pickle: bytes, *storages: bytes) -> None:
    with zipfile.ZipFile("x.pt", "w") as archive:
        archive.writestr("a/data.pkl", pickle)
        for number, content in enumerate(storages):
            archive.writestr(f"a/data/{number}", content)


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def a_tensor(shape: bytes, strides: bytes, offset: bytes = b"K\0", count: bytes = b"K\2") -> bytes:
    """A pickled tensor over storage 0."""
    return (
        b"\x80\2ctorch._utils\n_rebuild_tensor_v2\n(("
        + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + count + b"tQ"
        + offset + shape + strides + b"\x89ccollections\nOrderedDict\n)RtR."
    )  # fmt: skip


@pytest.mark.parametrize(
    ("pickle", "error"),
    [
        (b"\x80\2cos\nsystem\n" + text("true") + b"\x85R.",
         "Unsupported global: GLOBAL os.system was not an allowed global by default"),
        (b"\x80\2cos\x1b[1m\nsystem\n.", "Unsupported global: GLOBAL os\\x1b[1m.system"),
        (b"\x80\2ibuiltins\neval\n.", "Unsupported operand 105 at byte 2"),
        (b"\x80\4\x8c\2os.", "protocol 4 of pickle is not read"),
        (b"\x80\2" + b"c" + b"a" * 2000, "a name of more than 1000 bytes"),
        (b"\x80\2X\xff\xff\xff\x7fab", "the data ends within an operand"),
        (b"\x80\2}K\1", "the data is damaged before byte 5"),
        (b"\x80\2h\5.", "the data is damaged before byte 4"),
        (b"\x80\2)K\1a.", "Can only append to lists, but got tuple"),
        (b"\x80\2](s.", "the data is damaged before byte"),
        (b"\x80\2]" + text("append") + b"R.", "Trying to call reduce for unrecognized function"),
        (b"\x80\2}]K\1s.", "a key of type list"),
        (b"\x80\2ctorch\nFloatStorage\n.", "a storage or a name that belongs to no tensor"),
        (b"\x80\2ctorch\nSize\n" + text("a") + b"\x85R.", "a torch.Size of something else"),
        (b"\x80\2\x8b\xff\xff\xff\x7f.", "an integer of 2147483647 bytes"),
        (b"\x80\2}N}b.", "Can only build OrderedDict, but got NoneType"),
        (b"\x80\2" + text("storage") + b"\x85Q.", "Only persistent_load of storage is allowed"),
        (a_tensor(b"K\3\x85", b"K\1\x85"), "a tensor of shape [3] and strides [1] at 0 reaches"),
        (a_tensor(b"K\2\x85", b"K\1\x85", b"K\1"), "a tensor of shape [2] and strides [1] at 1"),
        (a_tensor(b"K\2\x85", b"J\xff\xff\xff\xff\x85"), "a tensor whose strides do not fit"),
        (a_tensor(b"J\xff\xff\xff\xff\x85", b"K\1\x85"), "the file: a tensor with a size of -1"),
        (a_tensor(b"K\2\x85", b"K\1\x85", b"J\xff\xff\xff\xff"), "a tensor with a storage offset"),
        (a_tensor(b"K\2\x85", b")"), "a tensor whose strides do not fit its sizes"),
        (a_tensor(b"K\2\x85", b"K\1\x85", count=b"K\3"), "storage '0' has 8 bytes, not 3 elements"),
    ],
)  # fmt: skip
def test_what_a_pt_file_may_not_hold(pickle: bytes, error: str) -> None:
    pt(pickle, struct.pack("<2f", 1, 2))
    assert fails("torch.load('x.pt', weights_only=False)").startswith(
        f"UnpicklingError: Weights only load failed. {error}"
    )


def test_handmade_pt_files() -> None:
    pt(a_tensor(b"K\2\x85", b"K\1\x85"), struct.pack("<2f", 1, 2))
    assert shows("print(load('x.pt'))") == "tensor([1., 2.])"
    # An expanded tensor may have more elements than memory holds.
    huge = b"\x8a\6" + (10**12).to_bytes(6, "little")
    pt(a_tensor(huge + b"\x85", b"K\0\x85"), struct.pack("<2f", 1, 2))
    assert shows("print(load('x.pt').shape)") == "torch.Size([1000000000000])"


def test_old_and_foreign_files_are_named() -> None:
    Path("x.pt").write_bytes(b"\x80\2\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.")
    assert fails("torch.load('x.pt')").startswith("RuntimeError: 'x.pt' is in PyTorch's legacy")
    Path("x.pt").write_bytes(b"something")
    assert fails("torch.load('x.pt')").startswith("UnpicklingError: Weights only load failed. 'x")
    Path("x.pt").write_bytes(b"")
    assert fails("torch.load('x.pt')") == "EOFError: Ran out of input"
    shows("torch.save(ones(9), 'x.pt')")
    Path("x.pt").write_bytes(Path("x.pt").read_bytes()[:-100])
    assert fails("torch.load('x.pt')").startswith("RuntimeError: PytorchStreamReader failed")


def test_memory_is_asked_for_before_it_is_taken() -> None:
    with open("x.npy", "wb") as file:
        file.write(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000,), }"))
        file.truncate(4_000_000_100)
    ran = Ran("load('x.npy')", Settings(hints="off", memory_limit=1 << 30))
    assert ran.status == 6
    assert "4000000100 bytes wanted" in ran.error
    pt(b"\x80\2" + b"]" * 3_000_000 + b".")
    ran = Ran("load('x.pt')", Settings(hints="off", memory_limit=1 << 20))
    assert ran.status == 6


def test_map_locations() -> None:
    shows("torch.save(ones(2), 'x.pt')")
    error = fails("torch.load('x.pt', map_location='cuda')")
    assert error.startswith("RuntimeError: Attempting to deserialize object on a CUDA device")
    error = fails("torch.load('x.pt', map_location='foo')")
    assert error.startswith("RuntimeError: don't know how to restore data location")
    assert fails("torch.load('x.pt', 3)") == "TypeError: 'int' object is not callable"
    assert shows("print(torch.load('x.pt', {'cpu': 'meta'}).device)") == "meta"


def test_bare_names_and_torchs() -> None:
    program = "print(load is torch.load)\nfrom torch import load\nprint(load is torch.load)"
    assert shows(program) == "False\nTrue"
