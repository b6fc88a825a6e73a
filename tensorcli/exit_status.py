"""The exit statuses of the command line; knows nothing of what leads to them."""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """What the shell sees; scripts rely on the numbers."""

    OK = 0
    ERROR = 1
    """The program ended in an error that it did not catch."""
    USAGE = 2
    """The command line, or a setting, is wrong."""
    INVALID = 3
    """The text is no valid program: grammar, refused construct, encoding, nesting."""
    FILE = 4
    """A file named on the command line, or an output stream, could not be read or written."""
    ASSERTION = 5
    """An assertion or a check failed."""
    LIMIT = 6
    """A limit was reached: time, memory, steps, output, integer or text size, call depth."""
    INTERRUPTED = 130
