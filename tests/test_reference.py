"""The reference of operations: found by any spelling, complete, and its examples run."""

from __future__ import annotations

import dataclasses
import json
from io import StringIO

import pytest

from tensorcli import ops_command, reference
from tensorcli.environment import Environment
from tensorcli.settings import Settings


def shown(word: str | None, format: str = "plain") -> tuple[int, str, str]:
    """Exit status, standard output and standard error of `tensorcli ops WORD`."""
    out, err = StringIO(), StringIO()
    environment = Environment(stdin=StringIO(), stdout=out, stderr=err, variables={}, width=80)
    status = ops_command.show(word, environment, Settings(format=format))
    return status, out.getvalue(), err.getvalue()


@pytest.mark.parametrize("name", ["exp", "torch.exp", "Tensor.exp", "Tensor.exp_", "exp_"])
def test_any_spelling_finds_the_entry(name: str) -> None:
    entry = reference.find(name)
    assert entry is not None
    assert entry.name == "exp"


def test_page() -> None:
    status, out, _ = shown("exp")
    assert status == 0
    assert out.splitlines()[0] == "exp(input)"
    assert "torch.exp, Tensor.exp, Tensor.exp_" in out
    assert "its result" in out
    assert "tensor([1.0000, 2.7183])" in out
    assert max(map(len, out.splitlines())) <= 80


def test_list_and_search() -> None:
    _, everything, _ = shown(None)
    names = [line.split()[0] for line in everything.splitlines()]
    assert len(names) == len(set(names))
    assert {"normal", "normal_"} <= set(names)
    assert not {"fft_c2c", "div_trunc"} & set(names)
    assert {"add", "exp", "transpose"} <= set(names)
    assert not [name for name in names if name.startswith("_")]
    _, some, _ = shown("transpos")
    assert "transpose" in some.split()
    assert "exp" not in some.split()


def test_an_unknown_name_is_wrong_usage_with_names_near_it() -> None:
    status, out, err = shown("transposs")
    assert (status, out) == (2, "")
    assert "transpose" in err


def test_records() -> None:
    _, out, _ = shown("exp", "json")
    record = json.loads(out)
    assert (record["schema"], record["kind"], record["name"]) == (1, "operation", "exp")


@pytest.mark.parametrize("entry", reference.entries(), ids=lambda entry: entry.name)
def test_example_runs(entry: reference.Entry) -> None:
    text = "\n".join(ops_command.example_text(entry))
    assert "Error" not in text
    assert text


@pytest.mark.parametrize("entry", reference.entries(), ids=lambda entry: entry.name)
def test_entry_can_be_written(entry: reference.Entry) -> None:
    """Parts of other operations, which no program can name, are not listed."""
    assert entry.spellings


def test_a_session_begins_with_its_own_settings() -> None:
    change = "torch.set_num_threads(3); torch.set_float32_matmul_precision('high')"
    ask = "torch.get_num_threads(), torch.get_float32_matmul_precision()"
    found = reference.find("ones")
    assert found is not None
    ops_command.example_text(dataclasses.replace(found, example=change))
    told = ops_command.example_text(dataclasses.replace(found, example=ask))
    assert told == ["(1, 'highest')"]


def test_lines_of_an_example_stay_apart() -> None:
    _, out, _ = shown("no_grad")
    assert "                      y = x * 2" in out.splitlines()


@pytest.mark.parametrize(
    ("name", "signature"),
    [
        ("atleast_1d", "atleast_1d(*tensors)"),
        ("optim.lr_scheduler.StepLR", "(optimizer, step_size, gamma=0.1, last_epoch=-1)"),
        ("get_default_dtype", "get_default_dtype()"),
    ],
)
def test_signature_of_a_function_or_a_class(name: str, signature: str) -> None:
    found = reference.find(name)
    assert found is not None
    assert found.signature.endswith(signature)
