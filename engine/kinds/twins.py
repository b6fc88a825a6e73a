"""Nodes under other names than their operation's: in-place twins', and those of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import tape
from engine.kinds.underived import NODE, refusing, unlisted
from engine.modes import state
from engine.tape import Gradient, make_node
from engine.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.registry import Op
    from engine.tape import Node

    Build = Callable[[Op], Callable[..., Any]]

_others: dict[Gradient, Gradient] = {}
_refused: dict[Gradient, Gradient] = {}


def numbered_on(build: Build, by: int, derived: bool = True) -> Build:
    """The twin with the number at the end of its node's name so much higher: PyTorch counts on
    where it lists the twin's derivative apart. One without a derivative says its own name; one
    that is not ``derived`` has none though the operation has."""

    def built(op: Op) -> Callable[..., Any]:
        call = build(op)

        def renumbered(*args: Any, **kwargs: Any) -> Any:
            since = state.sequence
            y = call(*args, **kwargs)
            node = None if y.ag is None else y.ag.node
            if node is not None and node.sequence > since and y.base is None:
                _renumber(node, op, by)
                if not derived:
                    node.gradient = _refusing(node.gradient, op.name)
            return y

        return renumbered

    return built


def _renumber(node: Node, op: Op, by: int) -> None:
    known = node.gradient
    node.gradient = refusing(f"{op.name}_") if known.name == NODE else _numbered(known, by)


def _refusing(known: Gradient, name: str) -> Gradient:
    found = _refused.get(known)
    if found is None:
        refuse = unlisted(f"inplace version of {name}")
        found = Gradient(known.name, lambda node, g: refuse(g), known.saved_names)
        _refused[known] = found
    return found


def _numbered(known: Gradient, by: int) -> Gradient:
    other = _others.get(known)
    if other is None:
        bare = known.name.rstrip("0123456789")
        number = int(known.name[len(bare) :]) + by
        other = _others[known] = Gradient(f"{bare}{number}", known.apply, known.saved_names)
    return other


def by_number(y: Tensor) -> Tensor:
    """``y``, just made from a tensor and a number where PyTorch does so in C++: the node has the
    number that stands for that overload."""
    return as_numbered(y, 1)


def as_numbered(y: Tensor, by: int) -> Tensor:
    """``y``, just made by a step that PyTorch takes in place: its node's number so much higher."""
    node = None if y.ag is None else y.ag.node
    if node is not None:
        node.gradient = _numbered(node.gradient, by)
    return y


def erasing(build: Build) -> Build:
    """The twin of an operation without a derivative that writes over what was there: on the way
    back it gives zeros, and its node is numbered by whether the second operand is a tensor."""

    def built(op: Op) -> Callable[..., Any]:
        call = build(op)
        bare = f"{op.name.capitalize()}Backward"
        kinds = [Gradient(f"{bare}{n}", _zeros) for n in (0, 1)]

        def erase(*args: Any, **kwargs: Any) -> Any:
            given = [*args, *kwargs.values()]
            recorded = state.grad and any(
                isinstance(t, Tensor) and tape.requires_grad(t) for t in given
            )
            if not recorded or len(given) != 2 or not isinstance(given[0], Tensor):
                return call(*args, **kwargs)
            x, other = given
            tape.check_inplace(x, True)
            tensor = isinstance(other, Tensor)
            node = make_node(kinds[tensor], x, (x, other if tensor else None))
            node.attributes = [t.layout.shape if isinstance(t, Tensor) else () for t in given]
            y = call(*args, **kwargs)
            tape.rebase(x, node)
            return y

        return erase

    return built


def _zeros(node: Node, g: Tensor) -> list[Tensor]:
    return [g.new_zeros(shape) for shape in node.attributes]
