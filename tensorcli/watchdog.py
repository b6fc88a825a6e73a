"""Ends the process when one computation outlives the time limit; knows no language.

The language looks at the clock between statements and loop steps. A single kernel can run for
minutes without coming back to it; a second thread then says so, flushes, and leaves.
"""

from __future__ import annotations

import _thread
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

GRACE = 0.5
"""Seconds that the language has to stop by itself, which is better: later files still run."""


def watch(seconds: float, at_the_end: Callable[[], int]) -> Callable[[], None]:
    """Call `at_the_end` once the time is over, and end the process with the status it gives.

    Returns a function that calls the watch off. `_thread` because numpy has it loaded already,
    and importing threading costs more than starting the thread.
    """
    running = _thread.allocate_lock()
    running.acquire()

    def wait() -> None:
        if not running.acquire(timeout=seconds + GRACE):
            os._exit(at_the_end())

    _thread.start_new_thread(wait, ())

    def stop() -> None:
        running.release()

    return stop
