"""What the graph refuses, by name: who kept a value and who changed it, who freed it, who cut it.

The culprit's line is found by running the program once more and watching; a rewrite is shown only
if the program with it got past the place of the error.
"""

from __future__ import annotations

import ast
from itertools import chain

from engine import errors as faults
from engine.tensor import Tensor
from tensorcli.diagnostics import Label, line_span
from tensorcli.explain import severed
from tensorcli.explain.layout import seen
from tensorcli.explain.names import named_tensors
from tensorcli.explain.replay import rewritten
from tensorcli.explain.rewrites import carried, first_that_runs, got_past, keeping, other_ways
from tensorcli.explain.shapes import Reason, named, out_of_place, short
from tensorcli.explain.trial import Fix
from tensorcli.explain.watching import Changes, Frees

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tensorcli.explain.replay import Place, Replay
    from tensorcli.explain.trial import Failure


def explain(
    failure: Failure, exc: Any, since: int, replay: Replay | None
) -> tuple[Reason, list[Label]]:
    """Notes, tried fixes, and labels on the lines of the culprits."""
    if isinstance(exc, faults.SavedTensorError):
        return _changed(failure, exc, since, replay)
    if isinstance(exc, faults.FreedGraphError):
        return _freed(failure, exc, since, replay)
    text = str(exc)
    for words, explanation in REFUSALS:
        if words in text:
            return explanation(failure, exc, replay), []
    if isinstance(exc, faults.OverlapError):
        return _overlap(failure), []
    return Reason(), []


# -- a kept value that was changed -----------------------------------------------------------


def _changed(
    failure: Failure, exc: Any, since: int, replay: Replay | None
) -> tuple[Reason, list[Label]]:
    node = exc.node
    labels = _kept_label(failure, node, since, "changed since")
    watcher = Changes()
    outcome = None if replay is None else replay.run(watcher)
    error: Any = None if outcome is None else outcome.error
    is_same = isinstance(error, faults.SavedTensorError)
    if outcome is None or not outcome.finished or not is_same:
        return Reason(_unwatched(failure, node)), labels
    kept = error.tensor
    versions = dict(zip(map(id, error.node.saved), error.node.versions, strict=False))
    place = watcher.culprit(kept, versions.get(id(kept), 0))
    name = _name_of(kept, error.node, outcome.names) or watcher.names.get(id(kept.counter))
    subject = f"`{name}`" if name is not None else "a value without a name"
    kept_by = _kept_by(error.node, failure, since, replay)
    note = f"{subject}, kept by {kept_by} for its derivative, was changed"
    if place is None:
        return Reason([note + " in place since"]), labels
    note += f" by `{short(place.words)}`{_on_line(place, replay)}"
    if replay is not None and place.text == len(replay.texts) - 1:
        labels.append(Label(place.span, "changed here"))
    fixes = first_that_runs(other_ways(place, watcher.last, replay), replay)
    return Reason([note], fixes), labels


def _unwatched(failure: Failure, node: Any) -> list[str]:
    if node is None:
        return []
    return [f"{node.type_name} kept it for its derivative before it was changed in place"]


def _kept_label(failure: Failure, node: Any, since: int, what: str) -> list[Label]:
    line = getattr(node, "site", None)
    if not isinstance(line, int) or node.sequence <= since:
        return []
    text = f"{node.type_name} kept a value here, {what}"
    return [Label(line_span(failure.source.text, line), text)]


def _kept_by(node: Any, failure: Failure, since: int, replay: Replay | None) -> str:
    """The expression that recorded a node, as far as its line tells it."""
    line = node.site if isinstance(node.site, int) else None
    if line is None or replay is None:
        return str(node.type_name)
    if len(replay.texts) > 1:
        # Lines count in each input by itself, so that only the words can tell which one it was.
        found = {_expression_of(node, text, line) for text in replay.texts} - {None}
        return f"`{found.pop()}`" if len(found) == 1 else str(node.type_name)
    words = _expression_of(node, failure.source.text, line)
    return f"`{words}` on line {line}" if words else f"{node.type_name} on line {line}"


def _expression_of(node: Any, text: str, line: int) -> str | None:
    """The part of a line that makes nodes of that name: the operator or the call."""
    name = node.short_name.lower().removesuffix("backward")
    found = []
    for part in ast.walk(ast.parse(text)):
        if getattr(part, "lineno", None) != line:
            continue
        if isinstance(part, ast.BinOp):
            made = {"Add": "add", "Sub": "sub", "Mult": "mul", "Div": "div", "Pow": "pow",
                    "MatMult": "mm"}.get(type(part.op).__name__, "")  # fmt: skip
        elif isinstance(part, ast.Call):
            function = part.func
            made = str(getattr(function, "attr", "") or getattr(function, "id", ""))
        else:
            continue
        if made and name.replace("_", "").startswith(made.replace("_", "").rstrip("_")):
            found.append(part)
    if len(found) != 1:
        return None
    segment = ast.get_source_segment(text, found[0])
    return None if segment is None else short(segment)


def _name_of(tensor: Any, node: Any, names: dict[str, object]) -> str | None:
    """A variable that shows the memory of a kept value, the one of the same shape first."""
    same = [
        (name, value)
        for name, value in named_tensors(names)
        if value.counter is not None and value.counter is tensor.counter
    ]
    exact = [
        name
        for name, value in same
        if value.layout is tensor.layout and value.offset == tensor.offset
    ]
    own = [name for name, value in same if value.ag is not None and value.ag.node is node]
    return next(iter([*own, *exact, *(name for name, _ in same)]), None)


def _on_line(place: Place, replay: Replay | None) -> str:
    if replay is not None and place.text != len(replay.texts) - 1:
        return " in an earlier input"
    return f" on line {place.span.line}"


# -- a graph that was freed ------------------------------------------------------------------


def _freed(
    failure: Failure, exc: Any, since: int, replay: Replay | None
) -> tuple[Reason, list[Label]]:
    labels = _kept_label(failure, exc.node, since, "freed since")
    watcher = Frees()
    outcome = None if replay is None else replay.run(watcher)
    error: Any = None if outcome is None else outcome.error
    is_same = isinstance(error, faults.FreedGraphError)
    if outcome is None or not outcome.finished or not is_same:
        name = exc.node.type_name if exc.node is not None else "the graph"
        return Reason([f"an earlier backward pass freed what {name} had kept"]), labels
    place = watcher.culprit(error.node)
    kept_by = _kept_by(error.node, failure, since, replay)
    if place is None:
        return Reason([f"an earlier backward pass freed what {kept_by} had kept"]), labels
    where = _on_line(place, replay)
    last = watcher.last
    note = f"what {kept_by} had kept for its derivative was freed by `{short(place.words)}`{where}"
    again = last is not None and last.node is place.node
    ways = chain(carried(place), keeping(place)) if again else keeping(place)
    if again:
        note += ", in an earlier pass through this line"
    elif replay is not None and place.text == len(replay.texts) - 1:
        labels.append(Label(place.span, "freed here"))
    return Reason([note], first_that_runs(ways, replay)), labels


# -- refusals before anything is written -----------------------------------------------------


def _leaf(failure: Failure, exc: Any, replay: Replay | None) -> Reason:
    subject = named(failure, 0) if failure.parts else "a leaf"
    is_view = bool(failure.tensors) and failure.tensors[0][1].ag.node is not None
    what = "shows memory of a leaf" if is_view else "is a leaf"
    note = (
        f"{subject} {what} that requires grad: its gradient belongs to the values that it "
        "has. Change it unrecorded, as an optimiser does, or make a new tensor"
    )
    tries = [failure.inside("with torch.no_grad(): "), *out_of_place(failure)]
    return Reason([note], _that_run(failure, failure.first(tries, most=2), replay))


def _mode_view(failure: Failure, exc: Any, replay: Replay | None) -> Reason:
    mode = "inference_mode" if "inference mode" in str(exc) else "no_grad"
    note = (
        f"{named(failure, 0)} was taken as a view inside {mode}(): take the view and write on the "
        "same side of it, both inside (not recorded) or both outside (recorded)"
    )
    tries = [failure.inside(f"with torch.{mode}(): "), *out_of_place(failure)]
    return Reason([note], _that_run(failure, failure.first(tries, most=2), replay))


def _multi_view(failure: Failure, exc: Any, replay: Replay | None) -> Reason:
    note = (
        f"{named(failure, 0)} is one of several views that one call made (unbind, split, chunk, "
        "a loop over a tensor); those cannot be changed in place where gradients are recorded"
    )
    fixes = failure.first(out_of_place(failure), most=1)
    return Reason([note], _that_run(failure, fixes, replay))


def _that_run(failure: Failure, fixes: list[Fix], replay: Replay | None) -> list[Fix]:
    """Those with which the program gets past the failing statement: a copy has no history."""
    if replay is None:
        return fixes
    found = []
    for fix in fixes:
        text = rewritten(failure.source, failure.source.span(failure.statement), fix.expr)
        outcome = replay.run(changed={len(replay.texts) - 1: text})
        if outcome.finished and got_past(outcome, replay):
            found.append(fix)
    return found


def _overlap(failure: Failure) -> Reason:
    number = next(
        (n for n, t in failure.tensors if any(
            s == 0 and size > 1 for s, size in zip(t.layout.strides, t.layout.shape, strict=True)
        )),
        None,
    )  # fmt: skip
    if number is None:
        return _partly_over(failure)
    layout = failure.parts[number].value.layout  # type: ignore[attr-defined]  # a tensor
    dims = [
        d
        for d, (s, n) in enumerate(zip(layout.strides, layout.shape, strict=True))
        if s == 0 and n > 1
    ]
    note = (
        f"{named(failure, number)} has stride 0 in dim {dims[0]}: all {layout.shape[dims[0]]} "
        "elements along it are one cell of memory (expand makes such views); copy it first"
    )

    def tries() -> Iterator[Fix | None]:
        yield from out_of_place(failure)
        name = failure.parts[number].text
        if isinstance(failure.parts[number].node, ast.Name):
            yield failure.inside(f"{name} = {name}.clone(); ", number)

    return Reason([note], failure.first(tries(), most=2))


def _partly_over(failure: Failure) -> Reason:
    """An operand that shows the memory that is written to, in another order."""
    if len(failure.tensors) < 2:
        return Reason()
    (written, own), (read, other) = failure.tensors[0], failure.tensors[-1]
    if own.storage.root is not other.storage.root:
        return Reason()
    note = (
        f"{named(failure, read)} shows the memory of {named(failure, written)} in another place: "
        "it would be overwritten while it is read"
    )

    def tries() -> Iterator[Fix | None]:
        yield failure.with_parts({read: "{}.clone()"})
        yield from out_of_place(failure)

    return Reason([note], failure.first(tries(), most=2))


def _flag(failure: Failure, exc: Any, replay: Replay | None) -> Reason:
    if not failure.parts or not isinstance(failure.parts[0].value, Tensor):
        return Reason()
    from engine.tape import shown_node

    node = shown_node(failure.parts[0].value)
    made = "" if node is None else f" by {node.type_name}"
    note = f"{named(failure, 0)} was computed{made}, so it is no leaf; detach() gives one that is"
    return Reason([note], failure.first([failure.as_written("{0}.detach()")]))


def _inference(failure: Failure, exc: Any, replay: Replay | None) -> Reason:
    frozen = [n for n, t in failure.tensors if t.is_inference()]
    if not frozen:
        return Reason()
    subject = named(failure, frozen[0])
    note = (
        f"{subject} was made inside inference_mode(): clone() it out here, or use no_grad() there "
        "if its values go back into training"
    )
    return Reason([note], failure.first([failure.with_parts(dict.fromkeys(frozen, "{}.clone()"))]))


def _scalar(failure: Failure, exc: Any, replay: Replay | None) -> Reason:
    if not failure.tensors:
        return Reason()
    number, tensor = failure.tensors[0]
    shape = list(tensor.layout.shape)
    note = (
        f"{named(failure, number)} has shape {shape}: backward() starts from one number, or takes "
        "the weight of each element"
    )
    if failure.operation == "backward":
        tries = [
            failure.with_parts({number: "{}.sum()"}),
            failure.with_parts({number: "{}.mean()"}),
            failure.as_written(f"{{{number}}}.backward(torch.ones_like({{{number}}}))"),
        ]
    else:
        tries = [failure.with_parts({number: "{}.sum()"})]
    return Reason([note], failure.first(tries))


def _unresolved(failure: Failure, exc: Any, replay: Replay | None) -> Reason:
    if not failure.tensors:
        return Reason()
    number, tensor = failure.tensors[0]
    change = seen(tensor)
    if change is None:
        return Reason()
    note = (
        f"{named(failure, number)} is a lazy view: the memory is not its own and holds the numbers "
        f"as they were; they are {change} at each look"
    )
    resolve = "resolve_conj" if change == "conjugated" else "resolve_neg"
    return Reason([note], failure.first([failure.with_parts({number: f"{{}}.{resolve}()"})]))


def _detached(failure: Failure, exc: Any, replay: Replay | None) -> Reason:
    if not failure.tensors:
        return Reason()
    number = failure.tensors[0][0]
    note = (
        f"{named(failure, number)} is recorded for gradients, and what goes out of the graph is not"
    )
    return Reason([note], failure.first([failure.with_parts({number: "{}.detach()"})]))


def _not_float(failure: Failure, exc: Any, replay: Replay | None) -> Reason:
    note = "gradients are slopes, which only floating-point (and complex) tensors have"

    def tries() -> Iterator[Fix | None]:
        yield failure.with_parts({}, keyword="dtype=torch.float32")
        for number, _ in failure.tensors:
            yield failure.with_parts({number: "{}.float()"})

    return Reason([note], failure.first(tries(), most=1))


def _seed_shape(failure: Failure, exc: Any, replay: Replay | None) -> Reason:
    note = (
        "the gradient that goes in must have the shape of the output: one weight per element; "
        "a batch of them, one row at a time, takes is_grads_batched=True"
    )

    return Reason([note], _once_more(failure, replay, "is_grads_batched=True"))


def _once_more(failure: Failure, replay: Replay | None, keyword: str) -> list[Fix]:
    """The call with another keyword, tried by running the program once more with it.

    A try on copies would tell nothing: it is the way between the tensors that matters.
    """
    if replay is None:
        return []
    words = failure.words({}, keyword=keyword)
    text = rewritten(failure.source, failure.source.span(failure.node), words)
    outcome = replay.run(changed={len(replay.texts) - 1: text})
    works = outcome.finished and got_past(outcome, replay)
    return [Fix(words, None)] if works else []


def _unused(failure: Failure, exc: Any, replay: Replay | None) -> Reason:
    numbers = [n for n, t in failure.tensors][1:]
    subject = named(failure, numbers[-1]) if len(numbers) == 1 else "one of the inputs"
    note = f"{subject} is not part of what the output was computed from, so there is no path to it"
    return Reason([note], _once_more(failure, replay, "allow_unused=True"))


# The words of a refusal, and what is said about it.
REFUSALS = (
    ("a leaf Variable that requires grad", _leaf),
    ("returns multiple views", _multi_view),
    ("so error-prone", _mode_view),
    ("ambiguous and error-prone", _mode_view),
    ("requires_grad flags of leaf", _flag),
    ("Inference tensors cannot be saved", _inference),
    ("inference tensor", _inference),
    ("implicitly created only for scalar", _scalar),
    ("Can't call numpy() on Tensor that has", _unresolved),
    ("doesn't work on unresolved conjugated", _unresolved),
    ("Can't call numpy()", _detached),
    ("can require gradients", _not_float),
    ("Mismatch in shape: grad_output", _seed_shape),
    ("not have been used in the graph", _unused),
    ("does not require grad and does not have a grad_fn", severed.explain),
    ("does not require grad", severed.explain),
)
