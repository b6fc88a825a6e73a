"""Op records: one per operation, with its names, parameters, derivative and documentation.

Registration stores, nothing more; the function that a name stands for is made when the name is
first used. Tensor methods, ``torch.`` functions, in-place twins and ``out=`` all come from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.autocasting import guarded
from engine.plain_calls import complaining, gathering
from engine.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


class Op:
    """Everything there is to know about one operation.

    ``names`` are its spellings as ``torch.`` functions, ``methods`` those as Tensor methods;
    ``build`` makes the callable, ``build_inplace`` its in-place twin. ``view`` is "no",
    "always" or "sometimes". ``variant`` gives the node's name from the values of a call, for ops
    that PyTorch has several derivatives of. ``saves`` maps an input to what its derivative keeps.
    ``forms`` are the texts of its call forms where its parameters do not tell them.
    """

    __slots__ = (
        "body", "build", "build_inplace", "call", "data_dependent", "derivatives", "doc",
        "domain", "errors", "example", "family", "forms", "inplace", "kind", "methods", "name",
        "names", "node_name", "parameters", "samples", "spoken", "variant", "view",
    )  # fmt: skip

    name: str
    names: tuple[str, ...]
    methods: tuple[str, ...]
    spoken: str
    kind: str
    family: str
    body: Callable[..., Any]
    build: Callable[[Op], Callable[..., Any]]
    build_inplace: Callable[[Op], Callable[..., Any]] | None
    call: Callable[..., Any] | None
    derivatives: Any
    node_name: str
    parameters: Any
    variant: Callable[..., str] | None
    view: str
    data_dependent: bool
    inplace: tuple[str, ...]
    domain: Any
    samples: Any
    errors: Any
    forms: tuple[str, ...]
    doc: str
    example: str

    @property
    def function(self) -> Callable[..., Any]:
        """The callable, made on first use."""
        call = self.call
        if call is None:
            call = self.call = guarded(self.name, self.build(self))
        return call


def _nothing_more(table: str, name: str) -> bool:
    return False


def _no_names(table: str) -> Iterable[str]:
    return ()


_load: Callable[[str, str], bool] = _nothing_more
_listed: Callable[[str], Iterable[str]] = _no_names


def use_loader(load: Callable[[str, str], bool], listed: Callable[[str], Iterable[str]]) -> None:
    """Have ``load(table, name)`` import the module that defines a name not known yet; it tells
    whether it did. ``listed(table)`` are the names it can load. The tables are FUNCTIONS,
    METHODS, ATTRIBUTES and OPS."""
    global _load, _listed
    _load = load
    _listed = listed


class _Lazy(dict[str, Any]):
    """Name → record or getter, filled by the modules that define them as they are asked for."""

    def __init__(self, table: str):
        super().__init__()
        self._table = table

    def __missing__(self, name: str) -> Any:
        if _load(self._table, name) and dict.__contains__(self, name):
            return self[name]
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return dict.__contains__(self, name) or (
            isinstance(name, str) and _load(self._table, name) and dict.__contains__(self, name)
        )

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default

    def names(self) -> list[str]:
        """Every name, sorted, those included whose module was not imported yet."""
        return sorted({*self, *_listed(self._table)})


# The in-place twins that PyTorch has as functions too; all others are methods only.
_INPLACE_FUNCTIONS = frozenset(
    (
        "abs_ acos_ acosh_ addmv_ alpha_dropout_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ "
        "arctanh_ as_strided_ asin_ asinh_ atan_ atanh_ ceil_ celu_ clamp_ clamp_max_ clamp_min_ "
        "clip_ conj_physical_ cos_ cosh_ deg2rad_ detach_ dropout_ embedding_renorm_ erf_ erfc_ "
        "exp2_ exp_ expm1_ feature_alpha_dropout_ feature_dropout_ fill_ fix_ floor_ frac_ gcd_ "
        "i0_ index_put_ lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ "
        "rad2deg_ reciprocal_ relu_ resize_as_ resize_as_sparse_ round_ rrelu_ rsqrt_ selu_ "
        "sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ threshold_ trunc_ xlogy_ zero_"
    ).split()
)

ops: dict[str, Op] = _Lazy("OPS")
_function_ops: dict[str, Op] = {}
_method_ops: dict[str, Op] = {}
_inplace_ops: dict[str, Op] = {}
_plain_functions: dict[str, Callable[..., Any]] = {}
_plain_methods: dict[str, Callable[..., Any]] = {}
call_forms: dict[str, tuple[Any, ...] | Callable[[], tuple[Any, ...]]] = {}

attributes: dict[str, Callable[[Tensor], Any]] = _Lazy("ATTRIBUTES")
setters: dict[str, Callable[[Tensor, Any], None]] = _Lazy("ATTRIBUTES")


def register(op: Op) -> None:
    """Enter a record under all its names. A name may be taken only once."""
    assert not dict.__contains__(ops, op.name), op.name
    ops[op.name] = op
    for name in op.names:
        assert name not in _function_ops, name
        _function_ops[name] = op
    for name in op.methods:
        assert name not in _method_ops, name
        _method_ops[name] = op
    for name in op.inplace:
        assert name not in _inplace_ops, name
        _inplace_ops[name] = op


def function(
    *names: str, forms: tuple[Any, ...] | Callable[[], tuple[Any, ...]] = ()
) -> Callable[[Any], Any]:
    """Enter a plain function (no op of its own) under ``torch.`` names.

    ``forms`` are its call forms where its own parameters do not tell them, or what gives them:
    texts as PyTorch's complaints spell signatures, or parameters to bind.
    """

    def enter(body: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            _plain_functions[name] = body
            if forms:
                call_forms[name] = forms
        return body

    return enter


def method(*names: str) -> Callable[[Any], Any]:
    """Enter a plain function as a Tensor method."""

    def enter(body: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            _plain_methods[name] = body
        return body

    return enter


def attribute(
    name: str, setter: Callable[[Tensor, Any], None] | None = None
) -> Callable[[Any], Any]:
    """Enter a getter as a Tensor attribute of PyTorch's."""

    def enter(body: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
        attributes[name] = body
        if setter is not None:
            setters[name] = setter
        return body

    return enter


class _Table(dict[str, Any]):
    """Name → callable, filled when a name is first asked for; ``in`` knows all names."""

    def __init__(self, table: str, find: Callable[[str], Any], names: Callable[[], Iterator[str]]):
        super().__init__()
        self._table = table
        self._find = find
        self._names = names

    def __missing__(self, name: str) -> Any:
        found = self._find(name)
        if found is None:
            raise KeyError(name)
        self[name] = found
        return found

    def __contains__(self, name: object) -> bool:
        return dict.__contains__(self, name) or (
            isinstance(name, str) and self._find(name) is not None
        )

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default

    def names(self) -> list[str]:
        """Every name, sorted, those included whose module was not imported yet."""
        return sorted({*self._names(), *_listed(self._table)})


def _find_function(name: str) -> Any:
    found = _known_function(name)
    if found is None and _load("FUNCTIONS", name):
        found = _known_function(name)
    return found


def _known_function(name: str) -> Any:
    if name in _plain_functions:
        return complaining(name, _plain_functions[name])
    op = _function_ops.get(name)
    if op is not None:
        return gathering(name, op.function)
    op = _inplace_ops.get(name)
    if op is not None and name in _INPLACE_FUNCTIONS:
        return methods[name]
    return None


def _find_method(name: str) -> Any:
    found = _known_method(name)
    if found is None and _load("METHODS", name):
        found = _known_method(name)
    return found


def _known_method(name: str) -> Any:
    if name in _plain_methods:
        return _plain_methods[name]
    op = _method_ops.get(name)
    if op is not None:
        return op.function
    op = _inplace_ops.get(name)
    if op is not None:
        assert op.build_inplace is not None
        return op.build_inplace(op)
    return None


def op_of_method(name: str) -> Op | None:
    """The record behind a method, None for a plain function or an in-place twin."""
    if name not in methods:
        return None
    return None if name in _plain_methods else _method_ops.get(name)


def op_of_inplace(name: str) -> Op | None:
    """The record whose in-place twin a method is, None for all others."""
    return _inplace_ops.get(name) if name in methods and name not in _plain_methods else None


def op_of_function(name: str) -> Op | None:
    """The record behind a function, None for a plain one."""
    if name not in functions:
        return None
    return None if name in _plain_functions else _function_ops.get(name)


def origins() -> dict[str, dict[str, str]]:
    """For each of the loader's tables the names known now and the modules that define them."""
    inplace = dict(_inplace_ops)
    functions = {n: inplace[n] for n in _function_names() if n in inplace}
    return {
        "FUNCTIONS": _modules({**functions, **_function_ops}, _plain_functions),
        "METHODS": _modules({**inplace, **_method_ops}, _plain_methods),
        "ATTRIBUTES": _modules({}, attributes),
        "OPS": _modules(ops, {}),
    }


def _modules(records: dict[str, Op], plain: dict[str, Any]) -> dict[str, str]:
    found = {name: op.body.__module__ for name, op in records.items()}
    found.update((name, _module_of(body)) for name, body in plain.items())
    return found


def _module_of(body: Any) -> str:
    return str(getattr(body, "__module__", ""))


def _function_names() -> Iterator[str]:
    yield from _plain_functions
    yield from _function_ops
    yield from (n for n in _inplace_ops if n in _INPLACE_FUNCTIONS)


def _method_names() -> Iterator[str]:
    yield from _plain_methods
    yield from _method_ops
    yield from _inplace_ops


functions = _Table("FUNCTIONS", _find_function, _function_names)
methods = _Table("METHODS", _find_method, _method_names)


class Functions:
    """``F.add(x, y)``: the table of functions by attribute, for derivatives and composites."""

    def __getattr__(self, name: str) -> Any:
        call = functions[name] if name in functions else functions[f"nn.functional.{name}"]
        call = getattr(call, "spreading", call)
        setattr(self, name, call)
        return call


F: Any = Functions()


def install(names: Iterable[str] = (), getters: Iterable[str] = ()) -> None:
    """Give Tensor its methods and attributes, those known and the ones named; a method is made
    when it is first called."""
    for name in {*_method_names(), *names}:
        if name not in Tensor.__dict__:
            setattr(Tensor, name, _first_call(name))
    for name in {*attributes, *getters}:
        if name not in Tensor.__dict__:
            setattr(Tensor, name, _first_get(name))


def _first_get(name: str) -> Any:
    return property(lambda t: attributes[name](t), lambda t, value: setter_of(name)(t, value))


def setter_of(name: str) -> Callable[[Tensor, Any], None]:
    """How an attribute of that name is set. Raises AttributeError where it cannot be."""
    found = setters.get(name)
    if found is None:
        raise AttributeError(f"attribute '{name}' of 'torch._C.TensorBase' objects is not writable")
    return found


def _first_call(name: str) -> Any:
    def first_call(*args: Any, **kwargs: Any) -> Any:
        real = methods[name]
        setattr(Tensor, name, real)
        return real(*args, **kwargs)

    return first_call
