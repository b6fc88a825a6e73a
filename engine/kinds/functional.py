"""Functions that are written in Python in PyTorch too, most of torch.nn.functional.

Nothing is bound or converted: Python's own complaints about arguments are the right ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.kinds.record import make_op

if TYPE_CHECKING:
    from collections.abc import Callable

_SPACE = "nn.functional."


def functional(*, name: str | None = None, **record: Any) -> Callable[[Any], Any]:
    """A function of ``torch.nn.functional`` that is its body, called as it is."""

    def decorate(body: Any) -> Any:
        base = name or body.__name__
        body.__qualname__ = body.__name__ = base
        make_op(
            body, "functional", lambda op: op.body, name=f"{_SPACE}{base}", method=False, **record
        )
        return body

    return decorate
