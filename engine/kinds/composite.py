"""Composites: operations written with other operations; they need no derivative of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import tape
from engine.kinds.kernel import store_parts
from engine.kinds.record import body_caller, make_op, parameters, spoken_name
from engine.kinds.results import check_destination, write
from engine.modes import state
from engine.overloads import first_that_binds
from engine.registry import ops
from engine.signature import bind
from engine.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.registry import Op


def composite(*, inplace: bool = False, out: bool = True, **record: Any) -> Callable[[Any], Any]:
    """An op whose body works with tensors; arguments are bound and converted like any op's.

    ``inplace`` adds a twin that copies the result into the input.
    """

    def decorate(body: Any) -> Any:
        return make_op(
            body,
            "composite",
            lambda op: _build(op, out),
            _build_inplace if inplace else None,
            inplace=inplace,
            **record,
        )

    return decorate


def _build(op: Op, takes_out: bool) -> Any:
    name = spoken_name(op)
    ps = parameters(op)
    run = body_caller(op)

    count = len(ps)

    def call(*args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None) if takes_out else None
        y = run(bind(name, ps, args, kwargs))
        return y if out is None else store_parts(out, y, name)

    def call_tensors(*args: Any, **kwargs: Any) -> Any:
        """Tensors in the places of tensors need no binding."""
        if kwargs or len(args) != count:
            return call(*args, **kwargs)
        for a in args:
            if a.__class__ is not Tensor:
                return call(*args)
        return body(*args)

    if count and all(p.kind == "Tensor" and not p.keyword_only for p in ps):
        body = op.body
        return call_tensors
    return call


def _build_inplace(op: Op) -> Any:
    def call(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        needs = state.grad and tape.requires_grad(x)
        tape.check_inplace(x, needs)
        tape.check_overlap(x)
        y = op.function(x, *args, **kwargs)
        check_destination(x, y.kind, y.layout.shape, needs)
        if y.ag is not None and y.ag.requires_grad:
            return x.copy_(y)
        write(x, y)
        tape.bump(x)
        return x

    return call


def overloaded(*overloads: tuple[str, str], **record: Any) -> Callable[[Any], Any]:
    """An op that is several ops under one name: the first whose parameters fit is called.

    Each overload is (name of an op, PyTorch's signature text). The body only names parameters
    and documents.
    """

    def decorate(body: Any) -> Any:
        texts = tuple([text for _, text in overloads])
        return make_op(
            body, "composite", lambda op: _build_overloaded(op, overloads), forms=texts, **record
        )

    return decorate


def _build_overloaded(op: Op, overloads: tuple[tuple[str, str], ...]) -> Any:
    name = spoken_name(op)
    candidates = [ops[at].function for at, _ in overloads]
    texts = op.forms
    first = candidates[0]
    takes_dim = [_second(ops[at]) == "dim" for at, _ in overloads]
    by_dim = sorted(candidates, key=lambda c: not takes_dim[candidates.index(c)])

    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and args[0].__class__ is Tensor:
            return first(args[0])
        if "dim" in kwargs or (len(args) > 1 and args[1].__class__ is int):
            return first_that_binds(name, by_dim, args, kwargs, texts)
        return first_that_binds(name, candidates, args, kwargs, texts)

    return call


def _second(op: Op) -> str:
    ps = parameters(op)
    return ps[1].name if len(ps) > 1 else ""
