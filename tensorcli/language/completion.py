"""Completion as a pure function of a text, a cursor and the user's names; runs no program.

What stands before a dot is looked up, not evaluated: only names and chains of attributes are.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tensorcli.language.attributes import attribute, attribute_names, names_in
from tensorcli.language.functions import Function
from tensorcli.language.names import BARE_NAMES, BUILTINS, MISSING, SPECIAL_FORMS, lookup
from tensorcli.language.namespaces import MODULES, Namespace, module

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

KEYWORDS = (
    "False", "None", "True", "and", "as", "assert", "break", "continue", "def", "del", "elif",
    "else", "except", "finally", "for", "from", "if", "import", "in", "is", "lambda", "nonlocal",
    "not", "or", "pass", "raise", "return", "try", "while", "with",
)  # fmt: skip

_WORD = re.compile(r"[^\W\d]\w*\Z|\Z")
_CHAIN = re.compile(r"(?:[^\W\d]\w*\s*\.\s*)*[^\W\d]\w*\s*\Z")
_IMPORT = re.compile(r"\s*import\s+(?:.*,\s*)?([\w.]*)\Z")
_FROM = re.compile(r"\s*from\s+([\w.]*)\Z")
_FROM_IMPORT = re.compile(r"\s*from\s+([\w.]+)\s+import\s+(?:.*[,(]\s*)?(\w*)\Z")


class Candidate:
    """A text that may stand from `start` to the cursor; `kind` is what it is."""

    __slots__ = ("kind", "start", "text")

    def __init__(self, text: str, start: int, kind: str) -> None:
        self.text = text
        self.start = start
        self.kind = kind

    def __repr__(self) -> str:
        return f"Candidate({self.text!r}, {self.start}, {self.kind!r})"


def complete(text: str, cursor: int, names: Mapping[str, object]) -> list[Candidate]:
    """What the word before the cursor may be, the likeliest kinds first."""
    before = text[:cursor]
    if _inside_text(before):
        return []
    line = before[before.rfind("\n") + 1 :]
    if line.lstrip().startswith(("import", "from")):
        found = _imports(line, cursor)
        if found is not None:
            return found
    match = _WORD.search(before)
    word = match[0] if match else ""
    start = cursor - len(word)
    rest = before[:start].rstrip()
    if rest.endswith("."):
        return _attributes(rest[:-1], word, start, names)
    found = [Candidate(f"{n}=", start, "argument") for n in _arguments(rest, names)
             if n.startswith(word)]  # fmt: skip
    seen: set[str] = set()
    for kind, known in _names(word, names):
        for name in known:
            if _fits(name, word) and name not in seen:
                seen.add(name)
                found.append(Candidate(name, start, kind))
    return found


def _fits(name: str, word: str) -> bool:
    return name.startswith(word) and (not name.startswith("_") or word.startswith("_"))


def _names(word: str, names: Mapping[str, object]) -> Iterator[tuple[str, Iterable[str]]]:
    yield "name", sorted(name for name in names if isinstance(name, str))
    if not word:
        # Nothing typed yet: two thousand names would help nobody.
        return
    yield "keyword", KEYWORDS
    yield "builtin", sorted(BUILTINS)
    yield "explanation", sorted(SPECIAL_FORMS)
    for table in BARE_NAMES:
        yield "torch", sorted(names_in(table))


def _attributes(rest: str, word: str, start: int, names: Mapping[str, object]) -> list[Candidate]:
    match = _CHAIN.search(rest)
    if match is None:
        return []
    value = _value_of(match[0], rest[: match.start()], names)
    if value is MISSING:
        return []
    return [
        Candidate(name, start, "attribute")
        for name in attribute_names(value)
        if _fits(name, word) and name.isidentifier()
    ]


def _value_of(chain: str, before: str, names: Mapping[str, object]) -> Any:
    """The value of a chain of names, or MISSING; nothing is called, nothing is indexed."""
    if before.rstrip().endswith("."):
        return MISSING
    first, *others = [part.strip() for part in chain.split(".")]
    value: Any = names.get(first, MISSING)
    if value is MISSING:
        value = lookup(first)
    if value is MISSING:
        value = module(first) or MISSING
    try:
        for name in others:
            value = attribute(value, name)
    except Exception:
        return MISSING
    return value


def _arguments(rest: str, names: Mapping[str, object]) -> list[str]:
    """The parameter names of the call whose parenthesis is the innermost open one."""
    if not rest.endswith(("(", ",")):
        return []
    position = _open_parenthesis(rest)
    if position is None:
        return []
    match = _CHAIN.search(rest[:position])
    if match is None:
        return []
    function = _value_of(match[0], rest[: match.start()], names)
    if isinstance(function, Function):
        parameters = function.parameters
        return [*parameters.positional[parameters.positional_only :], *parameters.keyword_only]
    return _op_parameters([part.strip() for part in match[0].split(".")], names)


def _op_parameters(chain: list[str], names: Mapping[str, object]) -> list[str]:
    """The parameter names of an operation of the engine."""
    from engine import registry
    from engine.kinds.record import parameters

    owner = _value_of(".".join(chain[:-1]), "", names) if len(chain) > 1 else MISSING
    is_method = len(chain) > 1 and not isinstance(owner, Namespace)
    space = (
        owner.name.removeprefix("torch").removeprefix(".") if isinstance(owner, Namespace) else ""
    )
    wanted = f"{space}.{chain[-1]}" if space else chain[-1]
    if wanted not in (registry.methods if is_method else registry.functions):
        return []
    for op in registry.ops.values():
        if wanted in (op.methods if is_method else op.names):
            return [p.name for p in parameters(op)][is_method:]
    return []


def _open_parenthesis(text: str) -> int | None:
    depth = 0
    for position in range(len(text) - 1, -1, -1):
        character = text[position]
        if character in ")]}":
            depth += 1
        elif character in "([{":
            if depth == 0:
                return position if character == "(" else None
            depth -= 1
    return None


def _imports(line: str, cursor: int) -> list[Candidate] | None:
    """Candidates in an import statement; None where the line is none."""
    match = _FROM_IMPORT.match(line)
    if match is not None:
        namespace = module(match[1])
        found = [] if namespace is None else attribute_names(namespace)
        start = cursor - len(match[2])
        return [Candidate(n, start, "attribute") for n in found if _fits(n, match[2])]
    match = _IMPORT.match(line) or _FROM.match(line)
    if match is None:
        return None
    start = cursor - len(match[1])
    return [Candidate(n, start, "module") for n in sorted(MODULES) if n.startswith(match[1])]


def _inside_text(before: str) -> bool:
    """Whether the cursor is in a text or a comment. Braces of f-strings count as text."""
    quote, position = "", 0
    while position < len(before):
        character = before[position]
        if quote:
            if character == "\\":
                position += 1
            elif before.startswith(quote, position):
                position += len(quote) - 1
                quote = ""
            elif character == "\n" and len(quote) == 1:
                quote = ""
        elif character == "#":
            end = before.find("\n", position)
            if end < 0:
                return True
            position = end
        elif character in "'\"":
            triple = before.startswith(character * 3, position)
            quote = character * 3 if triple else character
            position += len(quote) - 1
        position += 1
    return bool(quote)
