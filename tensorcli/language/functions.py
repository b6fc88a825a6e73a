"""Functions that programs define: binding of arguments, calls, and calls of everything else."""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any, NoReturn

from engine.modes import state
from tensorcli.language import limits
from tensorcli.language.attributes import Method, type_name
from tensorcli.language.compiling import GLOBALS, PARENT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tensorcli.language.compiling import Frame, Value


class Parameters:
    """A parameter list as written, without the values of its defaults."""

    __slots__ = ("extra_keywords", "extra_positional", "keyword_only", "only_plain", "positional",
                 "positional_only")  # fmt: skip

    def __init__(
        self,
        positional: tuple[str, ...],
        positional_only: int,
        keyword_only: tuple[str, ...],
        extra_positional: str | None,
        extra_keywords: str | None,
    ) -> None:
        self.positional = positional
        self.positional_only = positional_only
        self.keyword_only = keyword_only
        self.extra_positional = extra_positional
        self.extra_keywords = extra_keywords
        self.only_plain = not keyword_only and extra_positional is None and extra_keywords is None

    @property
    def names(self) -> tuple[str, ...]:
        extra = [n for n in (self.extra_positional, self.extra_keywords) if n is not None]
        return (*self.positional, *self.keyword_only, *extra)


class Function:
    """A function of the program; `run` computes its body in a frame of bound arguments.

    `contexts` are the gradient modes it was decorated with: each makes a fresh context per call.
    """

    __slots__ = (
        "body", "contexts", "defaults", "globals", "keyword_defaults", "name", "parameters",
        "parent", "qualname", "run",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        qualname: str,
        parameters: Parameters,
        run: Value,
        globals: Frame,
        parent: Frame,
        defaults: tuple[object, ...],
        keyword_defaults: dict[str, object],
    ) -> None:
        self.name = name
        self.qualname = qualname
        self.parameters = parameters
        self.run = run
        self.globals = globals
        self.parent = parent
        self.defaults = defaults
        self.keyword_defaults = keyword_defaults
        self.contexts: tuple[Callable[[], Any], ...] = ()
        # What the body reads and calls, if it only computes with tensors.
        self.body: Any = None

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return invoke(self, args, kwargs)

    def __repr__(self) -> str:
        return f"<function {self.qualname}>"


Function.__name__ = "function"


def invoke(
    function: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None
) -> Any:
    """Call a function of the program."""
    parameters = function.parameters
    frame: Frame = {GLOBALS: function.globals, PARENT: function.parent}
    if not kwargs and parameters.only_plain and len(args) == len(parameters.positional):
        frame.update(zip(parameters.positional, args, strict=False))
    else:
        bind(function, frame, args, kwargs or {})
    meter = limits.meter()
    meter.credit -= 1
    if meter.credit < 0:
        meter.refill()
    if meter.depth >= meter.depth_limit:
        meter.too_deep()
    site = state.site
    meter.depth += 1
    try:
        if function.contexts:
            value = _run_in_contexts(function, frame)
        else:
            value = function.run(frame)
    except BaseException:
        # The line that was running stays noted: somebody will ask where it happened.
        meter.depth -= 1
        raise
    meter.depth -= 1
    state.site = site
    return value


def _run_in_contexts(function: Function, frame: Frame) -> Any:
    opened: list[Callable[[], None]] = []
    try:
        for make in function.contexts:
            opened.append(make())
        return function.run(frame)
    finally:
        for leave in reversed(opened):
            leave()


def bind(
    function: Function, frame: Frame, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> None:
    """Put arguments under their names as Python does, with Python's complaints."""
    parameters = function.parameters
    positional = parameters.positional
    count = len(positional)
    frame.update(zip(positional, args, strict=False))
    if parameters.extra_positional is not None:
        frame[parameters.extra_positional] = args[count:]
    unknown: dict[str, Any] = {}
    by_keyword = set(positional[parameters.positional_only :])
    by_keyword.update(parameters.keyword_only)
    for name, value in kwargs.items():
        if name not in by_keyword:
            unknown[name] = value
        elif name in frame:
            _complain(function, f"got multiple values for argument '{name}'")
        else:
            frame[name] = value
    if parameters.extra_keywords is not None:
        frame[parameters.extra_keywords] = unknown
    elif unknown:
        _complain_unknown(function, unknown)
    if len(args) > count and parameters.extra_positional is None:
        _complain_too_many(function, frame, len(args))
    _fill_defaults(function, frame, len(args))


def _fill_defaults(function: Function, frame: Frame, given: int) -> None:
    parameters = function.parameters
    positional = parameters.positional
    required = len(positional) - len(function.defaults)
    missing = [name for name in positional[given:required] if name not in frame]
    if missing:
        _complain_missing(function, "positional", missing)
    for name, value in zip(positional[required:], function.defaults, strict=True):
        frame.setdefault(name, value)
    for name in parameters.keyword_only:
        if name not in frame:
            if name in function.keyword_defaults:
                frame[name] = function.keyword_defaults[name]
            else:
                missing.append(name)
    if missing:
        _complain_missing(function, "keyword-only", missing)


def _complain(function: Function, text: str) -> NoReturn:
    raise TypeError(f"{function.qualname}() {text}")


def called_name(function: object, text: str) -> str:
    """What Python's complaints about stars call a function; `text` is how the program calls it."""
    return f"__main__.{function.qualname}()" if type(function) is Function else f"{text}()"


def _complain_unknown(function: Function, unknown: dict[str, Any]) -> NoReturn:
    parameters = function.parameters
    only = [n for n in parameters.positional[: parameters.positional_only] if n in unknown]
    if only:
        names = ", ".join(only)
        _complain(
            function,
            f"got some positional-only arguments passed as keyword arguments: '{names}'",
        )
    _complain(function, f"got an unexpected keyword argument '{next(iter(unknown))}'")


def _complain_too_many(function: Function, frame: Frame, given: int) -> NoReturn:
    parameters = function.parameters
    most = len(parameters.positional)
    least = most - len(function.defaults)
    takes = f"from {least} to {most}" if function.defaults else str(most)
    plural = "" if most == 1 and not function.defaults else "s"
    keywords = sum(name in frame for name in parameters.keyword_only)
    if keywords:
        extra = f"{'s' if keywords != 1 else ''}"
        got = (
            f"{given} positional argument{'s' if given != 1 else ''} "
            f"(and {keywords} keyword-only argument{extra}) were"
        )
    else:
        got = f"{given} {'was' if given == 1 else 'were'}"
    _complain(function, f"takes {takes} positional argument{plural} but {got} given")


def _complain_missing(function: Function, kind: str, missing: list[str]) -> NoReturn:
    names = [f"'{name}'" for name in missing]
    if len(names) == 1:
        text = names[0]
    elif len(names) == 2:
        text = f"{names[0]} and {names[1]}"
    else:
        text = f"{', '.join(names[:-1])}, and {names[-1]}"
    plural = "" if len(names) == 1 else "s"
    _complain(function, f"missing {len(names)} required {kind} argument{plural}: {text}")


# Types of the values in our tables that may simply be called.
PLAIN_CALLABLES: set[type] = {FunctionType, BuiltinFunctionType, Method}
# Value -> what a call of it does: type objects, and whatever must not be called itself.
GUARDED_CALLS: dict[Any, Callable[..., Any]] = {}


def callable_for(value: object) -> Callable[..., Any] | None:
    """The Python callable behind a value of the program, or None."""
    kind = type(value)
    if kind in PLAIN_CALLABLES or kind is Function:
        return value  # type: ignore[return-value]  # these are callables
    if isinstance(value, type):
        guarded = GUARDED_CALLS.get(value)
        if guarded is None and issubclass(value, Exception):
            return value
        return guarded
    if isinstance(value, (tuple, frozenset)):
        # Looking one up would hash it, however deep it is.
        return None
    try:
        return GUARDED_CALLS.get(value)
    except TypeError:
        return None


def caller(value: object) -> Callable[..., Any]:
    """What the engine may call for a value that the program passes as a function.

    What is no function fails when it is called, as in Python.
    """
    found = callable_for(value)
    return found if found is not None else lambda *args, **kwargs: call(value, args, kwargs)


def call(value: object, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Call a value of the program; raises TypeError where it is no function."""
    if type(value) is Function:
        return invoke(value, args, kwargs)
    function = callable_for(value)
    if function is None:
        raise not_callable(value)
    return function(*args, **kwargs)


def not_callable(value: object) -> TypeError:
    if isinstance(value, type):
        return TypeError(f"cannot create '{value.__name__}' instances")
    return TypeError(f"'{type_name(value)}' object is not callable")
