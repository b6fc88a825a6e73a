"""The reference of operations, read from their records: what help, `:ops` and `ops` show.

An entry is data; knows no rendering. Importing this loads every operation's record.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import engine.ops
from engine import registry
from engine.kinds.record import parameters, spoken_name
from engine.overloads import texts_of
from engine.signature import REQUIRED
from engine.written_forms import names_in
from tensorcli import observing
from tensorcli.examples import EXAMPLES
from tensorcli.language import names, tables  # noqa: F401 - tables fills the one of names
from tensorcli.tiers import tier_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

VIEWS = {
    "no": observing.OWN,
    "always": "the result is a view: it shares memory",
    "sometimes": "the result is a view where strides allow it, a copy otherwise",
}


# The kinds of records whose derivative is that of their parts.
_COMPOSED = ("composite", "contraction", "functional")


@dataclass(frozen=True, slots=True)
class Entry:
    """What there is to say about one operation.

    `forms` are its call forms where it has several, in PyTorch's words. `saves` is None where it
    has no derivative. One that is `composed` of others is observed on its example: until then
    `view` is empty and `saves` is None; `nodes` are the ones that the example's call records.
    """

    name: str
    spellings: tuple[str, ...]
    signature: str
    forms: tuple[str, ...]
    doc: str
    example: str
    family: str
    view: str
    saves: tuple[str, ...] | None
    data_dependent: bool
    composed: bool
    nodes: tuple[str, ...] = ()

    @property
    def tier(self) -> int:
        """How common it is, 1 to 3."""
        return tier_of((self.name, *self.spellings))

    @property
    def summary(self) -> str:
        """The first sentence of the documentation."""
        paragraph = " ".join(self.doc.partition("\n\n")[0].split())
        return paragraph.partition(". ")[0].removesuffix(".")


def find(name: str) -> Entry | None:
    """The entry of an operation by any of its spellings: `exp`, `torch.exp`, `Tensor.exp_`."""
    _, _, bare = name.rpartition("Tensor.") if "Tensor." in name else name.rpartition("torch.")
    return _by_spelling().get(bare)


def search(word: str) -> list[Entry]:
    """The entries that speak of a word, those whose name does first; all of them without one."""
    wanted = word.lower()
    named = [e for e in entries() if any(wanted in s.lower() for s in e.spellings)]
    told = [e for e in entries() if e not in named and wanted in f"{e.doc} {e.family}".lower()]
    return named + told


def near(name: str) -> list[str]:
    """Names that somebody may have meant."""
    from difflib import get_close_matches

    return get_close_matches(name, _by_spelling(), n=3, cutoff=0.7)


def entries() -> list[Entry]:
    """Every operation that a program can name, but PyTorch's private ones, in order of name."""
    public = {entry for entry in _by_spelling().values() if entry.name[:1] != "_"}
    return sorted(public, key=lambda entry: entry.name)


_spellings: dict[str, Entry] = {}


def _by_spelling() -> dict[str, Entry]:
    """Bare spelling → entry, made on first use."""
    if not _spellings:
        engine.ops.load_all()
        for op in registry.ops.values():
            entry = of_op(op)
            for spelling in _written(op):
                _spellings.setdefault(spelling, entry)
        for name in registry.functions.names():
            if name not in _spellings:
                _spellings[name] = _of_function(name, registry.functions[name])
    return _spellings


def _written(op: registry.Op) -> tuple[str, ...]:
    """The names of an operation in programs; a part of others has none."""
    return (*op.names, *op.methods, *op.inplace)


def of_op(op: registry.Op) -> Entry:
    """The entry of a record."""
    written = _written(op)
    name = op.name if op.name in written or not written else written[0]
    no_derivative = op.derivatives is None
    composed = no_derivative and op.kind in _COMPOSED
    return Entry(
        name=name,
        spellings=(
            *(f"torch.{name}" for name in op.names),
            *(f"Tensor.{name}" for name in (*op.methods, *op.inplace)),
        ),
        signature=f"{name}({_parameter_text(parameters(op))})",
        forms=_several(_forms_of_op(op)),
        doc=_dedented(op.doc),
        example=_as_program(op.example) or EXAMPLES.get(op.name, ""),
        family=op.family,
        view="" if composed else _view(op),
        saves=() if op.kind == "view" else None if no_derivative else tuple(_saved(op)),
        data_dependent=op.data_dependent,
        composed=composed,
    )


def _view(op: registry.Op) -> str:
    """What the result's memory is, and which of the names change their argument instead."""
    if not (op.names or op.methods):
        return observing.CHANGED
    twins = ", ".join(op.inplace)
    return VIEWS[op.view] + (f"; of {twins} it is the argument, changed in place" if twins else "")


def observed(entry: Entry, seen: observing.Seen | None) -> Entry:
    """The entry with what its example was seen to do, where its record does not say it."""
    if seen is None or not entry.composed:
        return entry
    return replace(entry, view=seen.memory, saves=seen.saves, nodes=seen.nodes)


def _of_function(name: str, function: Any) -> Entry:
    function = getattr(function, "__wrapped__", function)
    forms = _forms(name) or texts_of(name)
    return Entry(
        name=name,
        spellings=(f"torch.{name}",),
        signature=name + (_form_text(forms[0]) if forms else _bare_signature(function)),
        forms=_several(forms),
        doc=_dedented(function.__doc__ or ""),
        example=EXAMPLES.get(name, ""),
        family="functions",
        view="",
        saves=None,
        data_dependent=False,
        composed=True,
    )


def _forms_of_op(op: registry.Op) -> tuple[str, ...]:
    """The call forms of a record; what only changes its argument has one."""
    return op.forms or (texts_of(spoken_name(op)) if op.names or op.methods else ())


def _forms(name: str) -> tuple[Any, ...]:
    """The call forms that the definition of a name gives."""
    forms = registry.call_forms.get(name, ())
    return forms() if callable(forms) else forms


def _several(forms: tuple[Any, ...]) -> tuple[str, ...]:
    return forms if len(forms) > 1 else ()


def _form_text(form: Any) -> str:
    return f"({names_in(form) if isinstance(form, str) else _parameter_text(form)})"


def _bare_signature(function: Any) -> str:
    """A function's or a class's parameters and defaults without their annotations."""
    from inspect import Signature, signature

    found = signature(function).parameters.values()
    return str(Signature([p.replace(annotation=p.empty) for p in found]))


def _as_program(example: str) -> str:
    """The example as a program may write it: a bare `sum` is Python's, PyTorch's is `torch.sum`."""
    return f"torch.{example}" if example.partition("(")[0] in names.BUILTINS else example


def _dedented(doc: str) -> str:
    first, _, rest = doc.strip().partition("\n")
    lines = [line.strip() for line in rest.split("\n")]
    return "\n".join([first, *lines]).strip()


def _parameter_text(found: Iterable[Any]) -> str:
    """Parameters as in a definition: the default where there is one, a star before keywords."""
    words: list[str] = []
    for parameter in found:
        if parameter.keyword_only and "*" not in words:
            words.append("*")
        default = parameter.default
        words.append(
            parameter.name if default is REQUIRED else f"{parameter.name}={_default_text(default)}"
        )
    return ", ".join(words)


def _default_text(default: object) -> str:
    simple = default is None or isinstance(default, bool | int | float | complex | str | tuple)
    return repr(default) if simple else str(default)


def _saved(op: registry.Op) -> Iterator[str]:
    """The tensors that backward keeps, read off the parameter names of the derivatives."""
    derivatives = op.derivatives
    functions = derivatives.values() if isinstance(derivatives, dict) else [derivatives]
    known = {p.name: p.kind in ("Tensor", "Tensors", "Operand") for p in parameters(op)}
    seen: dict[str, None] = {}
    for function in functions:
        code = getattr(function, "__code__", None)
        for name in code.co_varnames[: code.co_argcount] if code is not None else ():
            derived = name.endswith(("_shape", "_layout", "_dtype"))
            if name not in ("g", "needed") and not derived and known.get(name, True):
                seen["its result" if name == "y" else name] = None
    yield from seen
