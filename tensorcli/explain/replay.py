"""Running a session's texts once more, watched: for explanations that must know who did what.

The rerun starts from nothing, as the session did: its names, the modes, the generator and the
print options are its own and are put back afterwards; nothing that it prints is heard.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    from collections.abc import Sequence
    from typing import Any

    from tensorcli.diagnostics import Span
    from tensorcli.language.compiling import Action, Value
    from tensorcli.language.source import Source

TIME = 2.0
"""Seconds after which a rerun is given up: an explanation is not worth a longer wait."""

MOST_RERUNS = 6


class Place:
    """A statement of one of the session's texts; `text` is the number of that text."""

    __slots__ = ("node", "source", "text")

    def __init__(self, text: int, source: Source, node: ast.AST) -> None:
        self.text = text
        self.source = source
        self.node = node

    @property
    def span(self) -> Span:
        return self.source.span(self.node)

    @property
    def words(self) -> str:
        return self.source.segment(self.node)


class Watcher:
    """What is told of each statement of a rerun; this one does nothing."""

    def before(self, place: Place, frame: Any) -> None:
        pass

    def after(self, place: Place, frame: Any) -> None:
        pass

    def forgives(self, place: Place, exc: Exception) -> bool:
        """Whether the run goes on after a statement that failed."""
        return False

    def begin(self) -> None:
        """The rerun starts; the modes are as in a fresh session."""

    def expression(self, text: int, source: Source, node: ast.expr, value: Value) -> Value:
        """The closure of an expression, or one around it."""
        return value


class Enough(BaseException):
    """A watcher has seen what it wanted; no exception of the language."""


class Outcome:
    """How a rerun ended: with an exception in a text, or None; `finished`: not given up."""

    __slots__ = ("error", "finished", "names", "text")

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.finished = False
        self.names: dict[str, object] = {}
        self.text = 0


class Replay:
    """A session's texts so far, and the one whose run has just failed."""

    __slots__ = ("most", "runs", "seconds", "seed", "texts")

    def __init__(self, earlier: Sequence[str], text: str, seed: int | None = None) -> None:
        self.texts = [*earlier, text]
        self.seed = seed
        self.runs = 0
        self.most = MOST_RERUNS
        self.seconds = TIME

    def run(self, watcher: Watcher | None = None, changed: dict[int, str] | None = None) -> Outcome:
        """Run all texts, some of them in other words, until one fails.

        A failure of an earlier text is passed over, as it was at the prompt.
        """
        from engine import modes, printing
        from engine.registry import functions
        from tensorcli.language import limits
        from tensorcli.language.running import now

        state = modes.state
        outcome = Outcome()
        self.runs += 1
        if self.runs > self.most:
            return outcome
        meter = limits.meter()
        outer, now.replay = now.replay, None
        kept = {name: getattr(state, name) for name in type(state).__slots__}
        options = printing.get_options()
        generator = functions["get_rng_state"]()
        limits.use(limits.Limits(time=self.seconds, memory=meter.limits.memory, steps=200_000))
        try:
            state.reset()
            state.warn = None
            if self.seed is not None:
                functions["manual_seed"](self.seed)
            if watcher is not None:
                watcher.begin()
            self._run(outcome, watcher, changed or {})
        except limits.LimitReached:
            outcome.finished = False
        except Enough:
            outcome.finished = True
        finally:
            limits.use(meter)
            now.replay = outer
            for name, value in kept.items():
                setattr(state, name, value)
            printing.set_printoptions(**options)
            functions["set_rng_state"](generator)
        return outcome

    def _run(self, outcome: Outcome, watcher: Watcher | None, changed: dict[int, str]) -> None:
        from tensorcli.language.errors import Refused
        from tensorcli.language.program import compile_program
        from tensorcli.language.running import Silence
        from tensorcli.language.source import Source

        for number, text in enumerate(self.texts):
            source = Source(changed.get(number, text))
            trace = None if watcher is None else _trace(watcher, number, source)
            watch = None if watcher is None else _watch(watcher, number, source)
            try:
                program = compile_program(source, trace=trace, watch=watch)
                program.run(outcome.names, Silence())
            except Refused:
                return
            except Exception as exc:
                outcome.error = exc
                outcome.text = number
                continue
            if number == len(self.texts) - 1:
                outcome.error = None
        outcome.finished = True


def _trace(watcher: Watcher, number: int, source: Source) -> Any:
    def trace(node: ast.stmt, action: Action) -> Action:
        place = Place(number, source, node)

        def watched(frame: Any) -> Any:
            watcher.before(place, frame)
            try:
                return action(frame)
            except Exception as exc:
                if not watcher.forgives(place, exc):
                    raise
                return None
            finally:
                watcher.after(place, frame)

        return watched

    return trace


def _watch(watcher: Watcher, number: int, source: Source) -> Any:
    if type(watcher).expression is Watcher.expression:
        return None
    return lambda node, value: watcher.expression(number, source, node, value)


def rewritten(source: Source, span: Span, words: str) -> str:
    """A text with other words at a place of it."""
    lines = source.lines
    start = sum(len(line) + 1 for line in lines[: span.line - 1]) + span.column - 1
    stop = sum(len(line) + 1 for line in lines[: span.end_line - 1]) + span.end_column - 1
    return source.text[:start] + words + source.text[stop:]
