"""What a call in a program does with memory and with the graph, seen while the program runs.

For operations that are composed of others nobody wrote down what they keep for their derivative
and whether their result is a view: it is observed, on the reference's own example.
"""

from __future__ import annotations

import ast
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine import dtypes, modes, registry
from engine.errors import EngineError
from engine.tape import Node, node_of, requires_grad
from engine.tensor import Tensor
from tensorcli.language.namespaces import module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorcli.reference import Entry

NO_TENSOR = "no tensor comes out"
OWN = "the result has memory of its own"
VIEW = "the result shares memory with an argument"
SAME = "the result is the argument itself"
CHANGED = "the result is the argument itself, changed in place"


@dataclass(frozen=True, slots=True)
class Seen:
    """One call: what its result's memory is, and the nodes that it recorded.

    `saves` are what these nodes keep, None where nothing is recorded.
    """

    memory: str
    saves: tuple[str, ...] | None
    nodes: tuple[str, ...]


class Watch:
    """The first call of an operation, once it has been made."""

    __slots__ = ("names", "seen")

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.seen: Seen | None = None

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, which tells what its first call does."""

        def call(*args: Any, **kwargs: Any) -> Any:
            if self.seen is not None:
                return function(*args, **kwargs)
            return self._watched(function, args, kwargs)

        return call

    def _watched(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        recorded = None
        given = [t for _, t in self._named(args, kwargs)]
        if given and not any(requires_grad(t) for t in given):
            recorded = self._on_copies(function, args, kwargs, dtypes.FLOAT)
            if recorded is None or recorded.saves is None:  # whole numbers may stand for any
                recorded = self._on_copies(function, args, kwargs, dtypes.INT) or recorded
        try:
            result, seen = self._told(function, args, kwargs)
        except Exception:
            self.seen = Seen(NO_TENSOR, None, ())
            raise
        if recorded is not None and seen.saves is None:
            seen = Seen(seen.memory, recorded.saves, recorded.nodes)
        self.seen = seen
        return result

    def _told(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Seen]:
        """What the call gives, and what it was seen to do."""
        given = list(self._named(args, kwargs))
        versions = [_version(t) for _, t in given]
        since = modes.state.sequence
        result = function(*args, **kwargs)
        found = list(_tensors(result))
        changed = [t for (_, t), n in zip(given, versions, strict=True) if n != _version(t)]
        nodes = list(_recorded(found, since))
        memory = _memory(found, [t for _, t in given], changed)
        saves = tuple(_kept(nodes, given, found)) if nodes else None
        return result, Seen(memory, saves, tuple([node.name for node in nodes]))

    def _on_copies(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any, least: int
    ) -> Seen | None:
        """The call made once more, on copies that require grad; it leaves no trace."""
        copies: dict[int, Tensor] = {}
        state, random = modes.state.snapshot(), registry.functions["get_rng_state"]()
        modes.state.warn = None
        try:
            given = _copied(args, copies, least), _copied(kwargs, copies, least)
            return self._told(function, *given)[1]
        except (EngineError, TypeError, ValueError):
            return None
        finally:
            modes.state.restore(state)
            registry.functions["set_rng_state"](random)

    def _named(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, Tensor]]:
        """The tensors among arguments, under the names of the parameters."""
        names = self.names or ("",)
        for at, value in enumerate(args):
            for t in _tensors(value):
                yield names[min(at, len(names) - 1)], t
        for name, value in kwargs.items():
            for t in _tensors(value):
                yield name, t


def _version(t: Tensor) -> int | None:
    counter = t.version
    return None if counter is None else counter.n


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _tensors(part)


def _copied(value: Any, copies: dict[int, Tensor], least: int) -> Any:
    """The same with each tensor a copy, which requires grad if its dtype's category is as high."""
    if isinstance(value, Tensor):
        if value.dtype.category < least:
            return value.clone()
        if id(value) not in copies:
            floating = value if value.dtype.category >= dtypes.FLOAT else value.to(dtypes.float32)
            copies[id(value)] = floating.detach().clone().requires_grad_().clone()
        return copies[id(value)]
    if type(value) in (tuple, list):
        return type(value)([_copied(part, copies, least) for part in value])
    if type(value) is dict:
        return {key: _copied(part, copies, least) for key, part in value.items()}
    return value


def _memory(found: list[Tensor], given: list[Tensor], changed: list[Tensor]) -> str:
    if not found:
        return NO_TENSOR
    if any(y is t for y in found for t in changed):
        return CHANGED
    if any(y is t for y in found for t in given):
        return SAME
    memory = {id(t.storage.root) for t in given}
    return VIEW if any(id(y.storage.root) in memory for y in found) else OWN


def _recorded(results: list[Tensor], since: int) -> Iterator[Node]:
    """The nodes behind results that are younger than that, the last one first."""
    waiting = [node for y in results if (node := node_of(y)) is not None]
    seen: set[int] = set()
    while waiting:
        node = waiting.pop(0)
        if node.__class__ is not Node or node.sequence <= since or id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        waiting += [target for target in node.next if target.__class__ is Node]


def _kept(
    nodes: list[Node], given: list[tuple[str, Tensor]], results: list[Tensor]
) -> Iterator[str]:
    """What nodes keep, each once: an argument, a result, or something made on the way."""
    known = {id(t.storage.root): name for name, t in given}
    own = {id(t.storage.root) for t in results}
    told: dict[str, None] = {}
    others: set[int] = set()
    for node in nodes:
        for value in _tensors(_values(node)):
            memory = id(value.storage.root)
            if memory in known:
                told[known[memory]] = None
            elif memory in own:
                told["its result"] = None
            else:
                others.add(memory)
    yield from told
    if others:
        yield f"{len(others)} tensor{'s' if len(others) > 1 else ''} made on the way"


def _values(node: Node) -> tuple[Any, ...]:
    """What a node keeps; one that stands for a view's keeps what that one does."""
    inner = node.attributes
    return (*node.saved, *(inner.saved if inner.__class__ is Node else ()))


@contextmanager
def watching(entry: Entry) -> Iterator[Watch]:
    """Watch for a call of the operation in what runs inside."""
    watch = Watch(_parameter_names(entry.signature))
    replaced: list[tuple[dict[str, Any], str, Any]] = []
    for table, name in _places(entry):
        value = table.get(name)
        if type(value) is type:  # calling it makes an object
            watch.seen = Seen(NO_TENSOR, None, ())
        elif callable(value):
            replaced.append((table, name, value))
            table[name] = watch.around(value)
    try:
        yield watch
    finally:
        for table, name, value in replaced:
            table[name] = value


def _places(entry: Entry) -> Iterator[tuple[Any, str]]:
    """The tables in which programs find the operation, with its name there."""
    for spelling in entry.spellings:
        space, _, name = spelling.rpartition(".")
        if space == "Tensor":
            yield registry.methods, name
        else:
            found = module(space)
            if found is not None:
                yield found.table, name


def _parameter_names(signature: str) -> tuple[str, ...]:
    """The names of a signature's positional parameters; the last one takes what is left."""
    try:
        tree = ast.parse(f"def f{signature[signature.index('(') :]}: ...")
    except (SyntaxError, ValueError):
        return ()
    found = tree.body[0]
    assert isinstance(found, ast.FunctionDef)
    names = [p.arg for p in (*found.args.posonlyargs, *found.args.args)]
    return (*names, found.args.vararg.arg) if found.args.vararg else tuple(names)
