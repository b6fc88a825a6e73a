"""Where results go: to standard output and error, each in the rendering that suits it."""

from __future__ import annotations

from tensorcli import results
from tensorcli.environment import is_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from tensorcli.environment import Environment
    from tensorcli.settings import Settings


class OutputFailed(BaseException):
    """A stream cannot be written; no exception of the language, so no program can catch it.

    `closed`: nobody reads any more, which is no mistake.
    """

    def __init__(self, message: str, closed: bool) -> None:
        super().__init__(message)
        self.message = message
        self.closed = closed


class Output:
    """Renders and writes results as they happen.

    `file` is the file that is being run; None for expressions. `flush_each`: json records go out
    one by one, so that whoever reads from a running script sees them when they happen.
    """

    __slots__ = (
        "_environment",
        "_format",
        "_full",
        "_json",
        "_rich",
        "_settings",
        "file",
        "flush_each",
    )

    def __init__(self, environment: Environment, settings: Settings) -> None:
        self._environment = environment
        self._settings = settings
        self._format = settings.format
        self._json = settings.format == "json"
        self._full = settings.full
        self._rich: dict[int, bool] = {}
        self.file: str | None = None
        self.flush_each = False

    def emit(self, result: results.Result) -> None:
        """Write one result where it belongs."""
        kind = type(result)
        if kind is results.HintResult and not (self._json and self._settings.hints == "on"):
            self._hint(result)
        elif self._json:
            from tensorcli.render.json import record

            self._write(self._environment.stdout, record(result, self.file, self._full) + "\n")
            if self.flush_each:
                self.flush()
        elif kind is results.ErrorResult or kind is results.WarningResult:
            self.flush()
            self._write(self._environment.stderr, self._text(result, self._environment.stderr))
            self._flush(self._environment.stderr)
        elif result.shown:
            stdout = self._environment.stdout
            self._write(stdout, self._text(result, stdout))

    def _hint(self, result: results.Result) -> None:
        """Hints are no results: whatever reads those is not to stumble over them."""
        stderr = self._environment.stderr
        self.flush()
        self._write(stderr, self._text(result, stderr))
        self._flush(stderr)

    def end(self) -> None:
        """The file is done."""
        if self._json and self.file is not None:
            from tensorcli.render.json import end_record

            self._write(self._environment.stdout, end_record(self.file) + "\n")
        self.flush()

    def is_rich(self, stream: TextIO) -> bool:
        """Each stream by itself: a terminal gets rich text, a pipe plain."""
        rich = self._rich.get(id(stream))
        if rich is None:
            rich = self._format == "rich" or (self._format == "auto" and is_terminal(stream))
            self._rich[id(stream)] = rich
        return rich

    def _text(self, result: results.Result, stream: TextIO) -> str:
        if not self.is_rich(stream):
            from tensorcli.render import plain

            if type(result) in plain.OF_ANY_WIDTH:
                return plain.text(result)  # asking for the width takes as long as the rest
            text = plain.text(result, self._environment.width(), self.file)
            return text if self._has_unicode(stream) else text.translate(ASCII)
        from tensorcli.render import rich

        width = self._environment.width()
        colour = self._environment.colour(stream, self._settings.color)
        if not self._has_unicode(stream):
            return rich.text(_in_ascii(result), width, self.file, colour).translate(ASCII)
        if colour and getattr(result, "is_image", False) and stream is self._environment.stdout:
            protocol = self._environment.pictures()
            if protocol is not None and not getattr(result, "ascii", False):
                return rich.image(result, width, protocol, colour)  # type: ignore[arg-type]  # a heat map
        text = rich.text(result, width, self.file, colour)
        return text.translate(ASCII) if getattr(result, "ascii", False) else text

    def _has_unicode(self, stream: TextIO) -> bool:
        return not self._settings.ascii and _has_unicode(stream)

    def flush(self) -> None:
        self._flush(self._environment.stdout)

    def _write(self, stream: TextIO, text: str) -> None:
        try:
            stream.write(text)
        except OSError as error:
            raise _failed(error) from None

    def _flush(self, stream: TextIO) -> None:
        try:
            stream.flush()
        except OSError as error:
            raise _failed(error) from None


# What explanations draw with beyond ASCII, and what stands for it where there is no more.
ASCII = str.maketrans(
    {"·": "-", "±": "~", "…": "~", **dict(zip("▁▂▃▄▅▆▇█", "__..--##", strict=True))}
)


def _in_ascii(result: results.Result) -> results.Result:
    """A picture that is to be drawn in ASCII."""
    if getattr(result, "is_picture", False):
        result.ascii = True  # type: ignore[attr-defined]  # all pictures have it
    return result


def _has_unicode(stream: TextIO) -> bool:
    return (stream.encoding or "utf-8").lower().startswith("utf")


def _failed(error: OSError) -> OutputFailed:
    return OutputFailed(f"cannot write: {error.strerror}", isinstance(error, BrokenPipeError))
