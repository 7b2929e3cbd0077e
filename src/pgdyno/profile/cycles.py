"""Counts, samples and traces of one arm, by window."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pgdyno.profile.parts import part_of
from pgdyno.profile.scheduling import Delays
from pgdyno.profile.stacks import Stack

PAGE_FAULTS = "page faults"
INTERRUPTS = "interrupts"
GIVING_WAY = "giving way to other processes"
ENTERING = "entering and leaving system calls"
OTHERS = "others"
_SYSTEM_CALL = re.compile(r"__(?:x64|arm64|riscv|s390x|powerpc)_sys_(\w+)")
# The outermost match decides: an interrupt can occur during a page fault, but not the reverse.
_FAULTS = re.compile(
    r"asm_exc_page_fault|exc_page_fault|do_user_addr_fault|do_(mem|translation)_abort|do_page_fault"
)
_INTERRUPTS = re.compile(r"asm_sysvec_\w+|asm_common_interrupt|irqentry_\w+|el0t?_(64_)?irq\w*|el0_interrupt")
_LEAVING = re.compile(r"exit_to_user_mode_loop|do_notify_resume")
_ENTRY = re.compile(r"do_syscall_64|entry_SYSCALL_\w+|syscall_return_\w+|el0_svc\w*|invoke_syscall")


@dataclass(frozen=True)
class Counters:
    """Counters of an arm's processes, or their increments; all in ns.

    ``…_queue`` is the time in which the processes were runnable but did not run. ``stolen`` is steal time of
    the server's CPUs; ``busy`` is the time in which these CPUs ran anything.
    """

    session_cpu: int
    session_queue: int
    background_cpu: int
    client_cpu: int
    client_queue: int
    stolen: int
    busy: int

    def since(self, before: Counters) -> Counters:
        """Return the increments since an earlier reading."""
        return Counters(*(b - a for a, b in zip(vars(before).values(), vars(self).values(), strict=True)))


@dataclass(frozen=True)
class Window:
    """A period in which the load ran. ``latency_us`` is the mean latency of its transactions.

    ``added`` are the counters' increments; None if the server's processes are not visible.
    """

    seconds: float
    transactions: int
    latency_us: float
    added: Counters | None = None

    @property
    def rate(self) -> float:
        """Transactions per second."""
        return self.transactions / self.seconds

    def us(self, counter: str) -> float:
        """Return a counter's increment in µs per transaction."""
        return 0.0 if self.added is None else getattr(self.added, counter) / self.transactions / 1000


@dataclass(frozen=True)
class Sampled:
    """Counts of stack samples: by part, by part in the kernel, by way of entry into the kernel, and by stack.

    Stacks are innermost first. ``code`` counts samples outside the kernel by file, offset and function.
    """

    parts: Mapping[str, int]
    in_kernel: Mapping[str, int]
    entries: Mapping[str, int]
    stacks: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    code: Mapping[tuple[str, int, str], int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Number of all samples."""
        return sum(self.parts.values())

    @classmethod
    def of(cls, stacks: Iterable[Stack], pids: Collection[int]) -> Sampled:
        """Count the stacks of the processes ``pids``."""
        parts, in_kernel, entries = Counter[str](), Counter[str](), Counter[str]()
        frames = Counter[tuple[str, ...]]()
        code = Counter[tuple[str, int, str]]()
        for stack in stacks:
            if stack.pid in pids:
                frames[stack.frames] += 1
                part = part_of(stack.frames)
                parts[part] += 1
                if stack.in_kernel:
                    in_kernel[part] += 1
                    entries[kernel_entry(stack.frames)] += 1
                elif stack.frames:
                    code[stack.file, stack.offset, stack.frames[0]] += 1
        return cls(parts, in_kernel, entries, frames, code)


@dataclass(frozen=True)
class Traced:
    """A window of the scheduler's trace: delays of the server's sessions and the load generator's threads."""

    window: Window
    server: Delays
    client: Delays


@dataclass(frozen=True)
class Cycle:
    """One window of each kind; for a server's own traffic, one window for all kinds.

    ``waits`` is the mean number of sessions waiting for each event, except for their clients.
    ``client_waits`` is the mean number waiting for clients; it is used if no load generator measures that
    time. ``working`` is the mean number of sessions without a wait event.
    """

    plain: Window
    sampled_window: Window | None = None
    sampled: Sampled | None = None
    waits: Mapping[str, float] = field(default_factory=dict)
    traced: Traced | None = None
    client_waits: Mapping[str, float] = field(default_factory=dict)
    working: float = 0.0


def kernel_entry(frames: Sequence[str]) -> str:
    """Return the system call's name, or one of the names above, for a stack sampled in the kernel."""
    for function in reversed(frames):
        if call := _SYSTEM_CALL.fullmatch(function):
            return call[1]
        if _FAULTS.fullmatch(function):
            return PAGE_FAULTS
        if _INTERRUPTS.fullmatch(function):
            return INTERRUPTS
        if _LEAVING.fullmatch(function):
            return GIVING_WAY
    return ENTERING if any(map(_ENTRY.fullmatch, frames)) else OTHERS
