"""The counts, samples and traces of one arm, window by window."""

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
# The first one from outside decides: an interrupt can come while a fault is handled, not the reverse.
_FAULTS = re.compile(
    r"asm_exc_page_fault|exc_page_fault|do_user_addr_fault|do_(mem|translation)_abort|do_page_fault"
)
_INTERRUPTS = re.compile(r"asm_sysvec_\w+|asm_common_interrupt|irqentry_\w+|el0t?_(64_)?irq\w*|el0_interrupt")
_LEAVING = re.compile(r"exit_to_user_mode_loop|do_notify_resume")
_ENTRY = re.compile(r"do_syscall_64|entry_SYSCALL_\w+|syscall_return_\w+|el0_svc\w*|invoke_syscall")


@dataclass(frozen=True)
class Counters:
    """Counters of an arm's processes, or their increments; all in ns.

    ``queue``: they could have run, and did not. ``stolen``: by the hypervisor, from the server's CPUs;
    ``busy``: how long these ran anything.
    """

    session_cpu: int
    session_queue: int
    background_cpu: int
    client_cpu: int
    client_queue: int
    stolen: int
    busy: int

    def since(self, before: Counters) -> Counters:
        """Return the increments."""
        return Counters(*(b - a for a, b in zip(vars(before).values(), vars(self).values(), strict=True)))


@dataclass(frozen=True)
class Window:
    """A time in which the load ran. ``latency_us`` is the mean of its transactions.

    ``added`` are the counters' increments; None: the server's processes are not seen.
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
    """Samples of the sessions' stacks: by part, by part in the kernel, by way into the kernel, and by stack.

    Stacks are innermost first. ``code`` counts samples outside the kernel by file, place in it and function.
    """

    parts: Mapping[str, int]
    in_kernel: Mapping[str, int]
    entries: Mapping[str, int]
    stacks: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    code: Mapping[tuple[str, int, str], int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """All of them."""
        return sum(self.parts.values())

    @classmethod
    def of(cls, stacks: Iterable[Stack], pids: Collection[int]) -> Sampled:
        """Count the stacks of these processes."""
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
    """A window of the scheduler's trace: the delays of the server's sessions and of the load's threads."""

    window: Window
    server: Delays
    client: Delays


@dataclass(frozen=True)
class Cycle:
    """One window of each kind; of a server's own traffic, one for all.

    ``waits`` is how many sessions waited for each event on average, without those that waited for their
    clients; those are in ``client_waits``, where no load generator says it. ``working`` is how many waited
    for nothing.
    """

    plain: Window
    sampled_window: Window | None = None
    sampled: Sampled | None = None
    waits: Mapping[str, float] = field(default_factory=dict)
    traced: Traced | None = None
    client_waits: Mapping[str, float] = field(default_factory=dict)
    working: float = 0.0


def kernel_entry(frames: Sequence[str]) -> str:
    """Return the system call's name, or one of the names above, for a stack that begins in the kernel."""
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
