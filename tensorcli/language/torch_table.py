"""The torch module as programs see it: the engine's registry by prefix; defines nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import engine.ops  # noqa: F401  # enters the operations in the registry
from engine import registry
from engine.namespace import constants
from tensorcli.language import file_functions
from tensorcli.language.functions import GUARDED_CALLS, PLAIN_CALLABLES
from tensorcli.language.namespaces import Namespace, register
from tensorcli.language.torch_values import CALLS

if TYPE_CHECKING:
    from collections.abc import Iterator

# The modules inside torch; functions belong to the longest of these that their name begins with.
MODULES = (
    "", "amp", "autograd", "autograd.functional", "autograd.grad_mode", "autograd.gradcheck",
    "autograd.graph",
    "backends", "backends.cudnn", "backends.mps", "compiler", "cuda", "cuda.amp", "cpu",
    "fft", "func", "linalg", "nn", "nn.functional", "nn.init", "nn.parameter",
    "nn.utils", "optim", "optim.lr_scheduler", "random",
    "signal", "signal.windows", "special",
    "testing", "utils", "utils.checkpoint", "version",
)  # fmt: skip
# Modules whose place in the outer one a function has taken: only an import finds them.
IMPORTED_ONLY = ("autograd.gradcheck",)


class TorchTable(dict[str, Any]):
    """Name -> value of one module, filled when a name is first asked for."""

    def __init__(self, prefix: str, values: dict[str, object]) -> None:
        super().__init__(values)
        self._prefix = prefix + "." if prefix else ""

    def __missing__(self, name: str) -> Any:
        value = registry.functions.get(self._prefix + name) if "." not in name else None
        if value is None:
            raise KeyError(name)
        if type(value) not in PLAIN_CALLABLES and callable(value):
            # A class that the engine enters as a function, no_grad for one: it may be called.
            GUARDED_CALLS.setdefault(value, value)
        self[name] = value
        return value

    def __contains__(self, name: object) -> bool:
        return dict.__contains__(self, name) or (
            isinstance(name, str) and "." not in name and self._prefix + name in registry.functions
        )

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default

    def __iter__(self) -> Iterator[str]:
        names = set(dict.keys(self))
        start = len(self._prefix)
        for full in registry.functions.names():
            if full.startswith(self._prefix) and "." not in full[start:]:
                names.add(full[start:])
        return iter(sorted(names))


def _values(module: str) -> dict[str, object]:
    """The constants of a module."""
    start = f"{module}." if module else ""
    return {
        name[len(start) :]: value
        for name, value in constants.items()
        if name.startswith(start) and "." not in name[len(start) :]
    }


def _make() -> dict[str, Namespace]:
    made: dict[str, Namespace] = {}
    for name in MODULES:
        full = f"torch.{name}" if name else "torch"
        made[name] = Namespace(full, TorchTable(name, _values(name)))
        outer, _, last = name.rpartition(".")
        if name and name not in IMPORTED_ONLY:
            made[outer].table[last] = made[name]  # type: ignore[index]  # these tables are ours
    return made


def install(bare_names: list[Any]) -> None:
    """Let programs use torch: as a module, and by bare names."""
    made = _make()
    made[""].table.update(file_functions.TORCH)  # type: ignore[attr-defined]  # these tables are ours
    for name, namespace in made.items():
        register(namespace.name, lambda namespace=namespace: namespace)  # type: ignore[misc]
        if name == "":
            bare_names.append(namespace.table)
    GUARDED_CALLS.update(CALLS)
