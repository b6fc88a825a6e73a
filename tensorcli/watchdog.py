"""Ends the process when one computation outlives the time limit or an interrupt; no language.

The language looks at the clock, and Python at its signals, between statements and loop steps. A
single kernel can run for minutes without coming back to them; a second thread then says so,
flushes, and leaves.
"""

from __future__ import annotations

# `signal` wraps this in enumerations, which takes longer than all of the rest.
import _signal  # type: ignore[import-not-found]  # built in, but typeshed has no stub
import _thread
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

GRACE = 0.5
"""Seconds that the language has to stop by itself, which is better: later files still run."""

INTERRUPT = 2
"""The number of the signal that ^C sends, everywhere."""


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


def watch_interrupt(at_the_end: Callable[[], int]) -> Callable[[], None]:
    """Call `at_the_end` if nothing heeds ^C, and end the process with the status it gives.

    Returns a function that calls the watch off. To be called in the main thread.
    """
    running = _thread.allocate_lock()
    running.acquire()
    inlet, outlet = os.pipe()
    os.set_blocking(outlet, False)
    before = _signal.set_wakeup_fd(outlet, warn_on_full_buffer=False)

    def wait() -> None:
        while number := os.read(inlet, 1):
            if number[0] == INTERRUPT:
                if not running.acquire(timeout=GRACE):
                    os._exit(at_the_end())
                break
        os.close(inlet)

    _thread.start_new_thread(wait, ())

    def stop() -> None:
        running.release()
        _signal.set_wakeup_fd(before)
        os.close(outlet)

    return stop
