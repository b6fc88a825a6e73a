"""The reference of operations: found by any spelling, complete, and its examples run."""

from __future__ import annotations

import dataclasses
import json
from io import StringIO

import pytest

from tensorcli import observing, ops_command, reference
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


def test_no_signature_hides_its_parameters() -> None:
    hidden = {e.name for e in reference.entries() if "*args" in e.signature}
    assert hidden == {"utils.checkpoint.checkpoint"}  # PyTorch's own takes any


@pytest.mark.parametrize("name", ["arange", "eye", "normal", "randint", "where", "squeeze"])
def test_call_forms_are_those_that_errors_list(name: str) -> None:
    found = reference.find(name)
    assert found is not None
    _, out, _ = shown(name)
    assert len(found.forms) > 1
    assert found.forms[0].split(",")[0] in out
    call = f"torch.{name}()"
    told = ops_command.example_text(dataclasses.replace(found, example=call))
    for form in found.forms:
        assert f" * {form}" in "\n".join(told)


@pytest.mark.parametrize(
    ("name", "view", "saves", "nodes"),
    [
        ("atleast_1d", observing.VIEW, (), ("ViewBackward0",)),
        ("chunk", observing.VIEW, (), ("SplitBackward0",)),
        ("broadcast_tensors", observing.VIEW, (), ("ExpandBackward0",)),
        ("positive", observing.SAME, None, ()),
        ("nn.functional.mse_loss", observing.OWN, ("input", "target"), ("MseLossBackward0",)),
        ("log_softmax", observing.OWN, ("its result",), ("LogSoftmaxBackward0",)),
        (
            "nn.functional.tanhshrink",
            observing.OWN,
            ("1 tensor made on the way",),
            ("SubBackward0", "TanhBackward0"),
        ),
        ("celu_", observing.CHANGED, ("1 tensor made on the way",), ("CeluBackward1",)),
        ("cdist", observing.OWN, ("x1", "x2", "its result"), ("CdistBackward0",)),
        ("optim.SGD", observing.NO_TENSOR, None, ()),
        ("cuda.synchronize", observing.NO_TENSOR, None, ()),
    ],
)
def test_composed_operations_are_observed(
    name: str, view: str, saves: tuple[str, ...] | None, nodes: tuple[str, ...]
) -> None:
    found = reference.find(name)
    assert found is not None
    assert found.composed
    seen = ops_command.observed(found)
    assert (seen.view, seen.saves, seen.nodes) == (view, saves, nodes)


@pytest.mark.parametrize("entry", reference.entries(), ids=lambda entry: entry.name)
def test_what_a_record_says_of_memory_is_what_its_example_does(entry: reference.Entry) -> None:
    with observing.watching(entry) as watch:
        ops_command.example_text(entry)
    seen = watch.seen
    assert (seen is not None) or entry.name in WITHOUT_A_CALL
    if entry.composed or seen is None:
        return
    if entry.view.startswith(reference.VIEWS["always"]):
        assert seen.memory == observing.VIEW
    elif entry.view == observing.CHANGED:
        assert seen.memory == observing.CHANGED
    elif entry.view.startswith(observing.OWN):
        assert seen.memory in (observing.OWN, observing.NO_TENSOR, observing.CHANGED)


WITHOUT_A_CALL: set[str] = set()


def test_observing_leaves_no_trace() -> None:
    found = reference.find("dropout")
    assert found is not None
    plain = ops_command.example_text(found)
    assert ops_command.observed(found).nodes == ("MulBackward0",)
    assert ops_command.example_text(found) == plain


def test_changes_in_place_are_told() -> None:
    _, out, _ = shown("normal_")
    assert observing.CHANGED in out
    assert observing.OWN not in out
    _, out, _ = shown("exp")
    assert observing.OWN in out
    assert "of exp_" in out
