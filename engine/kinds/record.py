"""Making op records: what the decorators of all kinds have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.kinds.twins import numbered_on
from engine.kinds.underived import NODE
from engine.registry import Op, register
from engine.signature import parameters_of
from engine.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def make_op(
    body: Callable[..., Any],
    kind: str,
    build: Callable[[Op], Callable[..., Any]],
    build_inplace: Callable[[Op], Callable[..., Any]] | None = None,
    *,
    name: str | None = None,
    aliases: tuple[str, ...] = (),
    function: bool = True,
    method: bool = True,
    inplace: bool = False,
    named_inplace: bool = True,
    spoken: str = "",
    vjp: Any = None,
    node: str | None = None,
    variant: Callable[..., str] | None = None,
    view: str = "no",
    data_dependent: bool = False,
    example: str = "",
    domain: Any = None,
    samples: Any = None,
    errors: Any = None,
    spaces: tuple[str, ...] | None = None,
    forms: tuple[str, ...] = (),
    inplace_number: int = 0,
    inplace_derived: bool = True,
) -> Op:
    """Build and register the record of ``body``.

    ``spaces`` are the prefixes under which the function lives ("" for torch itself, "linalg.",
    "nn.functional." …; by default what a dotted ``name`` begins with); ``aliases`` apply to
    function and method alike. The in-place twin is a Tensor method unless ``named_inplace`` is
    false; then it is reached by ``twin`` only. ``spoken`` is the name in complaints about arguments
    where that is another. ``samples`` are more calls in the form of the ``example``, for the tests
    of all ops. ``domain`` says where those tests draw numbers for derivatives from: an interval for
    all elements, "hermitian", "lower" or "upper" for matrices of which the op looks at a part, or
    a table of these by parameter; by default the numbers are the samples' own, moved a little.
    ``inplace_number`` is added to the number in the node's name for the twin's, which has no
    derivative where ``inplace_derived`` is false.
    ``forms`` are the texts of the call forms where the body's parameters are not what callers see.
    """
    op = Op()
    op.name = name or body.__name__
    base = op.name.rpartition(".")[2]
    spelled = (base, *aliases)
    if spaces is None:
        spaces = (op.name.removesuffix(base),)
    op.names = tuple(space + n for space in spaces for n in spelled) if function else ()
    op.methods = spelled if method else ()
    named_inplace = named_inplace and base[0] != "_"
    op.inplace = tuple(f"{n}_" for n in spelled) if inplace and named_inplace else ()
    op.spoken = spoken
    op.kind = kind
    op.family = body.__module__.rpartition(".")[2]
    op.body = body
    op.build = build
    op.build_inplace = build_inplace
    if build_inplace is not None and (inplace_number or node == NODE):
        op.build_inplace = numbered_on(build_inplace, inplace_number, inplace_derived)
    op.call = None
    op.derivatives = vjp
    op.node_name = node or default_node_name(base)
    op.variant = variant
    op.view = view
    op.data_dependent = data_dependent
    op.domain = domain
    op.samples = samples
    op.errors = errors
    op.example = example
    op.doc = body.__doc__ or ""
    op.parameters = None
    op.forms = forms
    register(op)
    return op


def twin(op: Op) -> Callable[..., Any]:
    """The op's in-place twin, whether or not it is a Tensor method."""
    assert op.build_inplace is not None, op.name
    found = _twins.get(op.name)
    if found is None:
        found = _twins[op.name] = op.build_inplace(op)
    return found


_twins: dict[str, Callable[..., Any]] = {}
_PREFIXED = ("linalg", "fft", "special")


def spoken_name(op: Op) -> str:
    """The op's name in complaints about arguments: linalg.qr is linalg_qr there."""
    if op.spoken:
        return op.spoken
    space, _, base = op.name.rpartition(".")
    return f"{space}_{base}" if space in _PREFIXED else base


def default_node_name(name: str) -> str:
    """PyTorch's name for a node: log_softmax → LogSoftmaxBackward0, log1p → Log1PBackward0."""
    letters = []
    first = True
    for letter in name:
        letters.append(letter.upper() if first else letter)
        first = letter == "_" or letter.isdigit()
    return "".join(letters).replace("_", "") + "Backward0"


def body_caller(op: Op) -> Callable[[list[Any]], Any]:
    """A function from bound values (in parameter order) to what the op's body gives."""
    body = op.body
    ps = parameters(op)
    first = sum(not p.keyword_only for p in ps)
    if first == len(ps):
        return lambda values: body(*values)
    names = [p.name for p in ps[first:]]
    return lambda values: body(*values[:first], **dict(zip(names, values[first:], strict=True)))


def beside_tensors(values: Sequence[Any]) -> list[Any]:
    """What a call was given beside the elements of its tensors."""
    return [
        (v.kind, v.layout)
        if isinstance(v, Tensor)
        else beside_tensors(v)
        if v.__class__ is tuple
        else (v.__class__, v)
        for v in values
    ]


def parameters(op: Op) -> Any:
    """The op's parameters, read from its body on first use."""
    found = op.parameters
    if found is None:
        found = op.parameters = parameters_of(op.body)
    return found
