"""Asks a terminal whether it draws pictures: kitty's protocol, sixel, or neither.

The question goes out when a picture is due, and once for a terminal; an answer that does not come
within a moment is a no. What a person has typed ahead is left alone: nothing is asked then.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

SECONDS = 0.3
"""How long an answer may take; a terminal at the other end of the world gets half blocks."""

# A picture of one pixel that is only to be judged, then "what are you?", which every terminal
# answers, so that silence about the first part is known as such.
QUESTION = "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[c"
ATTRIBUTES = re.compile(r"\x1b\[\?([\d;]*)c")
SIXEL = "4"


def protocol_in(answer: str) -> str | None:
    """ "kitty", "sixel" or None, as a terminal answered."""
    if "\x1b_Gi=31;OK" in answer:
        return "kitty"
    found = ATTRIBUTES.search(answer)
    return "sixel" if found is not None and SIXEL in found.group(1).split(";") else None


def ask(stdin: TextIO, stdout: TextIO, variables: Mapping[str, str]) -> str | None:
    """What the terminal that both streams belong to draws; None if they belong to none."""
    if variables.get("TERM", "dumb") == "dumb" or not (stdin.isatty() and stdout.isatty()):
        return None
    try:
        import select
        import termios
        import tty
    except ImportError:  # no POSIX terminal
        return None
    try:
        descriptor = stdin.fileno()
        if select.select([descriptor], [], [], 0)[0]:
            return None  # typed ahead
        kept = termios.tcgetattr(descriptor)
    except (OSError, ValueError, termios.error):
        return None
    try:
        tty.setcbreak(descriptor, termios.TCSANOW)
        stdout.write(QUESTION)
        stdout.flush()
        return protocol_in(_answer(descriptor))
    except (OSError, ValueError, termios.error):
        return None
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, kept)


def _answer(descriptor: int) -> str:
    """What comes back, up to the answer to the second part or the end of the time."""
    import os
    import select
    import time

    end = time.monotonic() + SECONDS
    found = ""
    while ATTRIBUTES.search(found) is None:
        left = end - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            break
        part = os.read(descriptor, 1024)
        if not part:
            break
        found += part.decode("latin-1")
    return found
