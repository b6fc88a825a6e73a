"""Limits on what a program may cost and the meter that counts; knows no language, no tensors."""

from __future__ import annotations

import os
import sys
import time
from typing import NoReturn

# Steps between two looks at the clock: a step is one loop iteration or call, at least 0.1 µs.
BATCH = 1024
# Allocations between two looks at the process's memory.
SLACK = 64 << 20


class LimitReached(BaseException):
    """A limit was reached. No exception of the language: programs can neither catch nor delay it.

    `kind` is one of time, memory, steps, depth, integer, text, output.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class Limits:
    """What a program may use; None is no limit. Times in seconds, sizes in bytes or characters."""

    __slots__ = ("depth", "integer_bits", "memory", "output", "steps", "text", "time")

    def __init__(
        self,
        *,
        time: float | None = None,
        memory: int | None = None,
        steps: int | None = None,
        depth: int = 900,
        integer_bits: int = 1_000_000,
        text: int = 100_000_000,
        output: int | None = None,
    ) -> None:
        self.time = time
        self.memory = physical_memory() if memory is None else memory
        self.steps = steps
        self.depth = depth
        self.integer_bits = integer_bits
        self.text = text
        self.output = output


def physical_memory() -> int:
    """The memory in bytes that this process may hope for; 8 GiB where the system does not tell."""
    try:
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        machine = 8 << 30
    try:
        with open("/sys/fs/cgroup/memory.max", "rb") as container:
            return min(machine, int(container.read()))
    except (OSError, ValueError):
        return machine


def resident_memory() -> int:
    """Bytes of memory this process occupies now; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


class Meter:
    """Counts what one evaluation uses against its limits.

    `credit` is how many steps remain until the next look at clock, steps and memory: loops
    decrement it in line and call `refill` below zero. `depth` is how many program calls are open.
    """

    __slots__ = (
        "_batch",
        "_deadline",
        "_refills",
        "_unseen",
        "_written",
        "credit",
        "depth",
        "depth_limit",
        "limits",
        "steps",
    )

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.depth = 0
        self.depth_limit = limits.depth
        self.steps = 0
        self._deadline = None if limits.time is None else time.monotonic() + limits.time
        self._unseen = 0
        self._refills = 0
        self._written = 0
        self._batch = self._next_batch()
        self.credit = self._batch

    @property
    def used(self) -> int:
        """Steps counted so far."""
        return self.steps + self._batch - max(self.credit, 0)

    def _next_batch(self) -> int:
        most = self.limits.steps
        return BATCH if most is None else max(0, min(BATCH, most - self.steps))

    def refill(self) -> None:
        """Look at steps, clock and memory, then grant the next steps."""
        self.steps += self._batch - max(self.credit, 0)
        if self.credit < 0 and self.limits.steps is not None and self.steps >= self.limits.steps:
            reached("steps", f"more than {self.limits.steps} loop steps and calls")
        self.check_time()
        self._refills += 1
        if self._refills % 64 == 0:
            self._check_resident(0)
        self._batch = self._next_batch()
        self.credit = self._batch - 1 if self.credit < 0 else self._batch

    def step(self) -> None:
        """Count one loop iteration or one call."""
        self.credit -= 1
        if self.credit < 0:
            self.refill()

    def charge_steps(self, count: int) -> None:
        """Count work of known length, such as a loop inside a built-in function, before it runs."""
        if count <= self.credit:
            self.credit -= count
            return
        most = self.limits.steps
        done = self.steps + self._batch - max(self.credit, 0) + count
        if most is not None and done > most:
            reached("steps", f"more than {most} loop steps and calls")
        self.steps = done
        self.check_time()
        self._batch = self.credit = self._next_batch()

    def check_time(self) -> None:
        if self._deadline is not None and time.monotonic() > self._deadline:
            reached("time", f"ran longer than {self.limits.time:g} s")

    def charge_bytes(self, count: int) -> None:
        """Ask for memory before it is allocated."""
        most = self.limits.memory
        if count > most:
            reached("memory", f"{count} bytes wanted at once, the limit is {most} bytes")
        self._unseen += count
        if self._unseen > SLACK:
            self._unseen = 0
            self.check_time()
            self._check_resident(count)

    def _check_resident(self, wanted: int) -> None:
        most = self.limits.memory
        if resident_memory() + wanted > most:
            reached("memory", f"more than {most} bytes of memory in use")

    def check_integer_bits(self, bits: int) -> None:
        """Refuse an integer of more bits than allowed before it is computed."""
        most = self.limits.integer_bits
        if bits > most:
            reached("integer", f"an integer of {bits} bits, the limit is {most} bits")

    def check_text(self, length: int) -> None:
        """Refuse a text of more characters than allowed before it is made."""
        most = self.limits.text
        if length > most:
            reached("text", f"a text of {length} characters, the limit is {most} characters")

    def charge_output(self, length: int) -> None:
        """Count characters written to the results."""
        most = self.limits.output
        self._written += length
        if most is not None and self._written > most:
            reached("output", f"more than {most} characters of output")

    def enter_call(self) -> None:
        """Count a call of a program's function; pair it with `leave_call`."""
        self.credit -= 1
        if self.credit < 0:
            self.refill()
        if self.depth >= self.depth_limit:
            self.too_deep()
        self.depth += 1

    def leave_call(self) -> None:
        self.depth -= 1

    def too_deep(self) -> NoReturn:
        reached("depth", f"calls nested more than {self.depth_limit} deep")


def reached(kind: str, message: str) -> NoReturn:
    raise LimitReached(kind, message)


_current = Meter(Limits())


def meter() -> Meter:
    """The meter of the evaluation that is running."""
    return _current


def use(limits: Limits | Meter) -> Meter:
    """Start counting afresh against `limits` (or go on with a meter); returns the meter."""
    global _current
    _current = limits if isinstance(limits, Meter) else Meter(limits)
    return _current


# One program call takes about ten of Python's frames; the rest is for nested expressions.
_FRAMES = 20_000
_FRAMES_SMALL_STACK = 3_000
_STACK = 100 << 20


def secure_stack() -> None:
    """Let Python recurse as deep as programs may, without running off the C stack.

    The main thread's stack grows up to the soft limit of the moment, and Linux keeps 128 MiB of
    addresses free for it, so raising that limit is enough. Where it cannot be raised, Python's own
    limit stays low and deep programs reach it earlier.
    """
    frames = _FRAMES if _raise_stack_limit() else _FRAMES_SMALL_STACK
    if sys.getrecursionlimit() < frames:
        sys.setrecursionlimit(frames)


def _raise_stack_limit() -> bool:
    if not sys.platform.startswith("linux"):
        return False
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    if soft == resource.RLIM_INFINITY or soft >= _STACK:
        return True
    if hard != resource.RLIM_INFINITY and hard < _STACK:
        return False
    try:
        resource.setrlimit(resource.RLIMIT_STACK, (_STACK, hard))
    except (ValueError, OSError):
        return False
    return True


def charge_bytes(count: int) -> None:
    """Ask the meter in use for memory before it is allocated."""
    meter().charge_bytes(count)


# What modules that are imported later, BLAS and threads take.
_UNCOUNTED = 512 << 20


def confine(memory: int) -> None:
    """Have the system refuse this process more than about that many bytes beyond what it has.

    Kernels ask for their results; what they need beside them, numpy takes unasked. A refusal is
    a MemoryError, which is the limit's diagnostic. Where the system knows no such bound, nothing.
    """
    if not sys.platform.startswith("linux"):
        return
    import resource

    try:
        with open("/proc/self/statm", "rb") as statm:
            used = int(statm.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = used + memory + _UNCOUNTED
        if hard == resource.RLIM_INFINITY or wanted <= hard:
            resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))
    except (OSError, ValueError, IndexError):
        return
