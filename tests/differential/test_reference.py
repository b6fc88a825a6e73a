"""What the reference says of composed operations, against what PyTorch's do on the same example."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from engine.registry import functions  # noqa: E402
from tensorcli import observing, ops_command, reference  # noqa: E402

# Entries where PyTorch differs, with the reason; one that agrees must go.
DIFFERENT = {
    "frobenius_norm": "PyTorch goes by its older norm, whose node has another name",
}
COMPOSED = [
    pytest.param(
        entry,
        id=entry.name,
        marks=[pytest.mark.xfail(reason=DIFFERENT[entry.name], strict=True)]
        if entry.name in DIFFERENT
        else [],
    )
    for entry in reference.entries()
    if entry.composed
    # Settings would outlive the test; transforms record what the given function does, in PyTorch
    # between nodes of their own.
    and not entry.name.rpartition(".")[2].startswith(("set_", "use_"))
    and not entry.name.startswith("func.")
]


def tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from tensors(part)


def copied(value: Any, least: bool) -> Any:
    """The same with its tensors recorded copies; whole numbers too where ``least`` says so."""
    if isinstance(value, torch.Tensor):
        if not (value.is_floating_point() or value.is_complex()):
            if not least:
                return value.clone()
            value = value.float()
        return value.detach().clone().requires_grad_().clone()
    if type(value) in (tuple, list):
        return type(value)([copied(part, least) for part in value])
    return value


class Theirs:
    """What the first call of a function of PyTorch's does."""

    def __init__(self) -> None:
        self.memory: str | None = None
        self.nodes: list[str] = []

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self.memory is not None:
                return function(*args, **kwargs)
            given = [*tensors(args), *tensors(list(kwargs.values()))]
            if given and not any(t.requires_grad for t in given):
                self.recorded(function, args, kwargs, False)
                if not self.nodes:
                    self.recorded(function, args, kwargs, True)
            self.memory = observing.NO_TENSOR  # unless a result comes
            return self.told(function, args, kwargs)

        return call

    def recorded(self, function: Any, args: Any, kwargs: Any, least: bool) -> None:
        named = {k: copied(v, least) for k, v in kwargs.items()}
        try:
            self.told(function, copied(args, least), named)
        except (RuntimeError, TypeError, ValueError, IndexError):
            self.nodes = []

    def told(self, function: Any, args: Any, kwargs: Any) -> Any:
        given = [*tensors(args), *tensors(list(kwargs.values()))]
        before = [t._version for t in given]
        old = [t.grad_fn for t in given]
        result = function(*args, **kwargs)
        found = list(tensors(result))
        changed = [t for t, n in zip(given, before, strict=True) if t._version != n]
        places = {t.untyped_storage().data_ptr() for t in given if t.numel()}
        if not found:
            self.memory = observing.NO_TENSOR
        elif any(y is t for y in found for t in changed):
            self.memory = observing.CHANGED
        elif any(y is t for y in found for t in given):
            self.memory = observing.SAME
        elif any(y.untyped_storage().data_ptr() in places for y in found):
            self.memory = observing.VIEW
        else:
            self.memory = observing.OWN
        made = [y.grad_fn for y in found if y.grad_fn is not None]
        fresh = [node.name() for node in made if not any(node is n for n in old)]
        self.nodes = self.nodes or fresh
        return result


def theirs(entry: reference.Entry, monkeypatch: pytest.MonkeyPatch) -> Theirs:
    names = {**vars(torch), "torch": torch, "np": np, "nn": torch.nn, "F": torch.nn.functional}
    watch = Theirs()
    for spelling in entry.spellings:
        space, _, name = spelling.rpartition(".")
        place = torch.Tensor if space == "Tensor" else import_module(space)
        value = getattr(place, name)
        if type(functions.get(entry.name)) is type:
            watch.memory = observing.NO_TENSOR
            return watch
        spied = watch.around(value)
        monkeypatch.setattr(place, name, spied)
        if space == "torch":
            names[name] = spied
    tree = ast.parse(entry.example)
    with warnings.catch_warnings(), redirect_stdout(StringIO()):
        warnings.simplefilter("ignore")
        exec(compile(tree, "example", "exec"), names)
    return watch


@pytest.mark.parametrize("entry", COMPOSED)
def test_what_is_said_of_memory_and_of_the_graph(
    entry: reference.Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    with observing.watching(entry) as watch:
        ops_command.example_text(entry)
    assert watch.seen is not None
    wanted = theirs(entry, monkeypatch)
    assert watch.seen.memory == wanted.memory
    assert watch.seen.nodes[:1] == tuple(wanted.nodes[:1])
