"""From a derivative to a recorder: which values a node keeps, and how its gradients come about.

A derivative is a function whose parameter names say what it needs: ``g`` the incoming gradient,
``y`` the output, the name of an input or attribute that value; ``input_shape``,
``input_layout``, ``input_dtype`` need no tensor to be kept. One function serves one input, or
several when its key lists them ("input,weight").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import tape
from engine.dtypes import FLOAT
from engine.kinds.record import parameters
from engine.modes import state
from engine.tape import FREED, Gradient, Node, make_node, output_alias, requires_grad, unpack
from engine.tensor import Autograd, Tensor, alias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.registry import Op

_new = object.__new__
_ZERO, _ZEROS = (0,), (0, 0)
# What a derivative looks like that hands its gradient on as it is.
_HANDS_ON = (lambda g: g).__code__.co_code
# Kinds of parameters whose values are never tensors.
_NUMBERS_AND_NAMES = (
    "Scalar", "Dim", "int", "float", "bool", "str", "Dims", "SpreadDims", "Size", "Shape", "DType",
)  # fmt: skip
_DERIVED = ("_shape", "_layout", "_dtype", "_offset")


class _Plan:
    """For one set of inputs that need gradients: what to keep and which rules to run.

    ``positions`` gives for each kept name where its value comes from; a rule is (places in the
    result, function, where its arguments are among the kept values, -1 for ``g``).
    """

    __slots__ = ("bare", "gradient", "names", "outputs_kept", "rules", "sources")

    def __init__(
        self, op: Op, needed: tuple[bool, ...], inputs: tuple[str, ...], name: str | None = None
    ):
        names: list[str] = []
        self.rules: list[tuple[Any, Any, tuple[int, ...]]] = []
        for key, fn in derivatives(op, name).items():
            places = tuple(inputs.index(k) for k in key.split(",") if k in inputs)
            if not any(needed[p] for p in places):
                continue
            arguments = fn.__code__.co_varnames[: fn.__code__.co_argcount]
            where = []
            for argument in arguments:
                if argument == "g":
                    where.append(-1)
                    continue
                if argument == "needed":
                    argument = f"needed:{''.join('1' if needed[p] else '0' for p in places)}"
                if argument not in names:
                    names.append(argument)
                where.append(names.index(argument))
            self.rules.append((places if len(places) > 1 else places[0], fn, tuple(where)))
        self.names = tuple(names)
        self.outputs_kept = tuple(i for i, n in enumerate(names) if n == "y")
        order = {p.name: i for i, p in enumerate(parameters(op))}
        kinds = {p.name: "" if p.optional else p.kind for p in parameters(op)}
        self.sources = tuple(_source(n, order, kinds) for n in names)
        # Whether nothing that is kept can be a tensor, so that no counter needs a look.
        self.bare = all(
            n.startswith("needed:")
            or (n not in kinds and n.endswith(_DERIVED))
            or kinds.get(n) in _NUMBERS_AND_NAMES
            for n in names
        )
        self.gradient = Gradient(name or op.node_name, _make_apply(self, len(inputs)), self.names)


def derivatives(op: Op, name: str | None = None) -> dict[str, Any]:
    """The op's derivatives by input; a bare function is that of the first parameter.

    A table whose keys are nodes' names has one bare function for each variant of the op.
    """
    vjp = op.derivatives
    if vjp is None:
        return {}
    if not isinstance(vjp, dict):
        return {parameters(op)[0].name: vjp}
    if op.variant is not None and next(iter(vjp))[:1].isupper():
        return {parameters(op)[0].name: vjp[name] if name else next(iter(vjp.values()))}
    return vjp


def _source(name: str, order: dict[str, int], kinds: dict[str, str]) -> Any:
    """The place of that name among the values, or a function from (values, y) to its value."""
    if name == "y":
        return lambda values, y: (
            output_alias(y) if y.__class__ is Tensor else tuple(output_alias(t) for t in y)
        )
    if name.startswith("needed:"):
        flags = tuple(c == "1" for c in name[7:])
        return lambda values, y: flags
    if name in order:
        return order[name]
    for suffix in _DERIVED:
        if name.endswith(suffix):
            owner = name.removesuffix(suffix)
            if owner == "y":
                return lambda values, y: _part(y, suffix)
            at = order[owner]
            if kinds[owner] in ("Tensor", "Layout") and suffix in ("_shape", "_layout"):
                if suffix == "_shape":
                    return lambda values, y: values[at].layout.shape
                return lambda values, y: values[at].layout
            if suffix == "_shape":
                return lambda values, y: _shape(values[at])
            if suffix == "_layout":
                return lambda values, y: _layout(values[at])
            return lambda values, y: _part(values[at], suffix)
    raise AssertionError(f"no parameter {name}")


def _shape(t: Any) -> Any:
    if t.__class__ is tuple:
        return tuple([_shape(item) for item in t])
    return t.layout.shape if t.__class__ is Tensor else None


def _layout(t: Any) -> Any:
    return t.layout if t.__class__ is Tensor else None


def _part(t: Any, suffix: str) -> Any:
    if t.__class__ is tuple:
        return tuple([_part(item, suffix) for item in t])
    if not isinstance(t, Tensor):
        return None
    if suffix == "_dtype":
        return t.dtype
    if suffix == "_offset":
        return t.offset
    return t.layout if suffix == "_layout" else t.layout.shape


def _make_apply(plan: _Plan, count: int) -> Any:
    """The function that takes a node backward; the common shapes of rules get one of their own."""
    rules = plan.rules
    if len(rules) == 1 and rules[0][0].__class__ is int and not plan.outputs_kept:
        place, fn, where = rules[0]
        if where == (-1,):
            if fn.__code__.co_code == _HANDS_ON and count <= 2:
                return _apply_nothing(place, count)
            return _apply_linear(place, fn, count)
        if where == (-1, *range(len(plan.names))):
            return _apply_in_order(place, fn, count, len(plan.names) == 1)

    def apply(node: Node, g: Any) -> Sequence[Any]:
        saved = unpack(node)
        if state.grad and plan.outputs_kept:
            saved = _with_history(saved, plan.outputs_kept, node)
        result: list[Any] = [None] * (node.attributes or count)
        for places, fn, where in rules:
            value = fn(*[g if i < 0 else saved[i] for i in where])
            if places.__class__ is tuple:
                for place, part in zip(places, value, strict=True):
                    result[place] = part
            elif value.__class__ in (tuple, list):
                result[places : places + 1] = value
            else:
                result[places] = value
        return result

    return apply


def _apply_nothing(place: int, count: int) -> Any:
    """One input, whose gradient is that of the result."""
    if count == 1:
        return lambda node, g: (g,)
    if place == 0:
        return lambda node, g: (g, None)
    return lambda node, g: (None, g)


def _apply_linear(place: int, fn: Any, count: int) -> Any:
    """One input, nothing kept."""
    before, after = (None,) * place, (None,) * (count - place - 1)

    def apply(node: Node, g: Any) -> Sequence[Any]:
        value = fn(g)
        if value.__class__ is Tensor and count <= 2:
            return (value,) if count == 1 else (value, None) if place == 0 else (None, value)
        return (*before, *_listed(value), *after)

    return apply


def _apply_in_order(place: int, fn: Any, count: int, one: bool) -> Any:
    """One input; the derivative takes ``g`` and then the kept values (or the ``one``) in order."""
    before, after = (None,) * place, (None,) * (count - place - 1)

    def apply(node: Node, g: Any) -> Sequence[Any]:
        saved = node.saved
        versions = node.versions
        if len(versions) == 1 and saved[0].__class__ is Tensor:
            counter = saved[0].counter
            if counter is not None and counter.n != versions[0]:
                unpack(node)
        elif versions or saved is FREED:
            unpack(node)
        value = fn(g, saved[0]) if one else fn(g, *saved)
        if value.__class__ is Tensor and count <= 2:
            return (value,) if count == 1 else (value, None) if place == 0 else (None, value)
        return (*before, *_listed(value), *after)

    return apply


def _listed(value: Any) -> Sequence[Any]:
    return value if value.__class__ in (tuple, list) else (value,)


def _with_history(saved: tuple[Any, ...], outputs: tuple[int, ...], node: Node) -> tuple[Any, ...]:
    """The kept outputs tied to their node again, for a derivative that is itself recorded."""
    values = list(saved)
    for at in outputs:
        kept = values[at]
        if kept.__class__ is tuple:
            values[at] = tuple(
                _tied(t, node, nr) if t.dtype.category >= FLOAT else t for nr, t in enumerate(kept)
            )
        else:
            values[at] = _tied(kept, node, 0)
    return tuple(values)


def _tied(kept: Tensor, node: Node, nr: int) -> Tensor:
    again = alias(kept)
    again.ag = Autograd(True, node, nr)
    return again


def _with_edge(t: Tensor) -> Tensor:
    """The same memory with the edge that ``t`` has now, whatever is written later.

    For a view that counts as a leaf the edge is the view itself, in the place of a node.
    """
    target, nr = tape.edge(t)
    again = alias(t)
    if target is not None:
        again.ag = Autograd(True, target, nr)
    return again


class Recorder:
    """Records calls of one op; made when the op is first recorded."""

    __slots__ = ("both", "first_only", "input_places", "inputs", "op", "plans", "quick", "variant")

    def __init__(self, op: Op):
        self.op = op
        table = derivatives(op)
        wanted = {k for key in table for k in key.split(",")}
        self.inputs = tuple(p.name for p in parameters(op) if p.name in wanted)
        order = {p.name: i for i, p in enumerate(parameters(op))}
        self.input_places = tuple(order[n] for n in self.inputs)
        self.plans: dict[Any, _Plan] = {}
        self.variant = op.variant
        self.first_only = self.input_places == (0,)
        self.both = self.input_places == (0, 1)
        self.quick: dict[Any, _Plan] = {}

    def record_first(self, values: Sequence[Any], y: Tensor) -> None:
        """As ``record`` for an op of which only the first operand, a tensor, can have a
        derivative; attaches the node."""
        if self.inputs:
            node = self._record_first(values, y)
            if node is not None:
                # As Autograd(True, node), at half the cost.
                ag: Autograd = _new(Autograd)
                ag.requires_grad = True
                ag.node = node
                ag.nr = ag.times = 0
                ag.grad = ag.hooks = ag.after = None
                ag.retains = False
                y.ag = ag

    def _record_first(self, values: Sequence[Any], y: Tensor) -> Node | None:
        """As ``record`` where only the first parameter has a derivative."""
        x = values[0]
        ag = x.ag
        if x.base is not None:
            target, nr = tape.edge(x)
            if target is None:
                return None
        elif ag is None or not ag.requires_grad:
            return None
        elif ag.node is None:
            target, nr = x, 0
        else:
            target, nr = ag.node, ag.nr
        name = None if self.variant is None else self.variant(*values)
        plan = self.quick.get(name)
        if plan is None:
            plan = self.quick[name] = _Plan(self.op, (True,), self.inputs, name)
        node: Node = _new(Node)
        node.next = (target,)
        node.nr = _ZERO if nr == 0 else (nr,)
        node.gradient = plan.gradient
        node.kind = y.kind
        node.layout = y.layout
        node.outputs = node.attributes = node.hooks = None
        node.site = state.site
        state.sequence = node.sequence = state.sequence + 1
        if plan.sources:
            _keep(node, plan, y, values)
        else:
            node.saved = node.versions = ()
        return node

    def record_two(self, a: Any, b: Any, y: Tensor) -> None:
        """As ``record`` for an op of two operands, tensors or numbers; attaches the node."""
        target = other = None
        nr = number = 0
        if a.__class__ is Tensor:
            ag = a.ag
            if a.base is not None:
                target, nr = tape.edge(a)
            elif ag is not None and ag.requires_grad:
                target, nr = ag.node, ag.nr
                if target is None:
                    target = a
        if b.__class__ is Tensor:
            ag = b.ag
            if b.base is not None:
                other, number = tape.edge(b)
            elif ag is not None and ag.requires_grad:
                other, number = ag.node, ag.nr
                if other is None:
                    other = b
        key: Any = (2 if target is not None else 0) + (other is not None)
        name = None
        if self.variant is not None:
            name = self.variant(a, b)
            key = (key, name)
        plan = self.quick.get(key)
        if plan is None:
            plan = self._plan_two(key, (target is not None, other is not None), name)
            if plan is None:
                return
        node: Node = _new(Node)
        if self.both:
            node.next = (target, other)
            node.nr = _ZEROS if nr == number == 0 else (nr, number)
        elif self.first_only:
            node.next = (target,)
            node.nr = (nr,)
        else:
            node.next = (other,)
            node.nr = (number,)
        # Nothing is called that can be written out: this is the hottest place of all.
        node.gradient = plan.gradient
        node.kind = y.kind
        node.layout = y.layout
        node.outputs = node.attributes = node.hooks = None
        node.site = state.site
        state.sequence = node.sequence = state.sequence + 1
        sources = plan.sources
        if not sources:
            node.saved = node.versions = ()
        elif len(sources) == 1 and sources[0].__class__ is int:
            kept = b if sources[0] else a
            node.saved = (kept,)
            if kept.__class__ is not Tensor:
                node.versions = ()
            elif kept.counter is None:
                node.versions = _ZERO
            else:
                node.versions = (tape.version_of(kept),)
        else:
            _keep(node, plan, y, (a, b))
        ag = _new(Autograd)
        ag.requires_grad = True
        ag.node = node
        ag.nr = ag.times = 0
        ag.grad = ag.hooks = ag.after = None
        ag.retains = False
        y.ag = ag

    def _plan_two(self, key: Any, known: tuple[bool, bool], name: str | None) -> _Plan | None:
        needed = tuple(known[place] for place in self.input_places)
        if True not in needed:
            return None
        plan = self.quick[key] = _Plan(self.op, needed, self.inputs, name)
        return plan

    def before_write(self, values: Sequence[Any]) -> list[Any]:
        """``values`` for an in-place call, with the edges that its tensors have now.

        Where a derivative looks at the destination as it was, a copy of it stands in its place.
        """
        x = values[0]
        kept = _with_edge(x)
        if _uses_input(self.op):
            copied = x.detach().clone()
            copied.ag = kept.ag
            kept = copied
        rest = [
            _with_edge(v) if isinstance(v, Tensor) and (v is x or v.base is not None) else v
            for v in values[1:]
        ]
        return [kept, *rest]

    def record(self, values: Sequence[Any], y: Any) -> Node | None:
        """The node of a call with ``values`` (by parameter) that gave ``y``; None if none is
        needed. ``y`` is a tensor or a tuple of them; the caller attaches the node."""
        if self.first_only and y.__class__ is Tensor and values[0].__class__ is Tensor:
            return self._record_first(values, y)
        needed: list[bool] = []
        edges: list[Tensor | None] = []
        spread = 0
        for place in self.input_places:
            value = values[place]
            if value.__class__ is Tensor or isinstance(value, Tensor):
                needs = requires_grad(value)
                needed.append(needs)
                edges.append(value if needs else None)
            elif value.__class__ is tuple:
                each = [requires_grad(t) for t in value]
                needed.append(any(each))
                edges.extend(t if f else None for t, f in zip(value, each, strict=True))
                spread = len(value) - 1
            else:
                needed.append(False)
                edges.append(None)
        if True not in needed:
            return None
        flags = tuple(needed)
        name = None if self.variant is None else self.variant(*values)
        plan = self.plans.get((flags, name))
        if plan is None:
            plan = self.plans[flags, name] = _Plan(self.op, flags, self.inputs, name)
        first = y if y.__class__ is Tensor else y[0]
        node = make_node(plan.gradient, first, edges)
        if spread:
            node.attributes = None
        if y.__class__ is tuple:
            node.outputs = [(t.kind, t.layout) for t in y]
        if plan.names:
            _keep(node, plan, y, values)
        return node


def _keep(node: Node, plan: _Plan, y: Any, values: Sequence[Any]) -> None:
    """Store what ``plan`` tells on ``node``, with the counters of the tensors among it."""
    sources = plan.sources
    source = sources[0]
    if plan.bare and len(sources) > 1:
        node.saved = tuple([values[s] if s.__class__ is int else s(values, y) for s in sources])
        node.versions = ()
        return
    value = values[source] if source.__class__ is int else source(values, y)
    if len(sources) == 1:
        node.saved = (value,)
        if plan.bare:
            node.versions = ()
            return
        if value.__class__ is Tensor:
            node.versions = (tape.version_of(value),)
        else:
            node.versions = () if value.__class__ is not tuple else tape.versions_of(node.saved)
    elif len(sources) == 2:
        source = sources[1]
        other = values[source] if source.__class__ is int else source(values, y)
        node.saved = (value, other)
        if value.__class__ is Tensor or other.__class__ is Tensor:
            node.versions = (
                tape.version_of(value) if value.__class__ is Tensor else 0,
                tape.version_of(other) if other.__class__ is Tensor else 0,
            )
        else:
            node.versions = tape.versions_of(node.saved)
    else:
        node.saved = tuple([values[s] if s.__class__ is int else s(values, y) for s in sources])
        node.versions = tape.versions_of(node.saved)


def _uses_input(op: Op) -> bool:
    first = parameters(op)[0].name
    return any(
        first in fn.__code__.co_varnames[: fn.__code__.co_argcount]
        for fn in derivatives(op).values()
    )
