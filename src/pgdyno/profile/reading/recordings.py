"""perf's recordings during a profile: samples of stacks, and the scheduler's trace if permitted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from pgdyno.base.errors import ServerError
from pgdyno.host.tracing.perf import (
    SCHEDULING,
    STACKS,
    Recording,
    Wrap,
    find_perf,
    in_own_mounts,
    read_recording,
    recording,
    sampling,
    scheduling,
)
from pgdyno.postgres.process.account import Account, caller, one_off_account
from pgdyno.postgres.process.local_machine import online_cpus
from pgdyno.profile.scheduling import SchedulingEvent, parse_scheduling
from pgdyno.profile.stacks import Stack, parse_stacks

_MOST_HZ = 997
_KERNEL_NAMES = Path("/proc/kallsyms")
_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
_NO_PERF = (
    "perf is not installed for this kernel: the parts of PostgreSQL's work are not distinguished "
    "(Debian: linux-perf)"
)
_NO_KERNEL = (
    "the parts of PostgreSQL's work are not distinguished: without root, perf does not sample the kernel's "
    "work for it here (kernel.perf_event_paranoid is above 1)"
)
_NO_TRACE = (
    "the scheduler is not traced: waking an idle CPU and waiting for a busy CPU are one line, without the "
    "time to interrupt an idle CPU"
)


@dataclass
class Recordings:
    """Recordings in a directory that only root writes to.

    They contain pieces of memory of all processes, and reading them also reads the servers' programs, which
    may be untrusted. So the account ``reader`` reads them; for root, it is an account used for nothing else.
    ``remarks`` state what is not recorded, and why.
    """

    directory: Path
    reader: Account
    remarks: list[str] = field(default_factory=list)
    of_stacks: Recording | None = None
    of_schedule: Recording | None = None

    @property
    def has_trace(self) -> bool:
        """Whether the scheduler is traced."""
        return self.of_schedule is not None

    def sampling(self) -> AbstractContextManager[None]:
        """Sample within the context, if possible."""
        return nullcontext() if self.of_stacks is None else self.of_stacks.on()

    def tracing(self) -> AbstractContextManager[None]:
        """Trace the scheduler within the context, if possible."""
        return nullcontext() if self.of_schedule is None else self.of_schedule.on()

    def end(self) -> None:
        """End the recordings, to read them. A failed recording is dropped, with a remark."""
        self.of_stacks, self.of_schedule = self._ended(self.of_stacks), self._ended(self.of_schedule)

    def _ended(self, one: Recording | None) -> Recording | None:
        if one is None:
            return None
        try:
            one.end()
        except ServerError as error:
            self.remarks.append(_text(error))
            return None
        self.reader.own(one.file)
        return one

    def stacks(self) -> Iterator[Stack]:
        """Yield the samples."""
        return parse_stacks(self._lines(self.of_stacks, STACKS))

    def events(self) -> Iterator[SchedulingEvent]:
        """Yield the events of the trace."""
        return parse_scheduling(self._lines(self.of_schedule, SCHEDULING))

    def _lines(self, one: Recording | None, fields: str) -> Iterator[str]:
        if one is None:
            return iter(())
        names = self.directory / "kernel-names"
        if not names.exists():
            shutil.copyfile(_KERNEL_NAMES, names)
            names.chmod(0o400)
            self.reader.own(names)
        return read_recording(one.program, one.file, fields, self.reader.command, names)


@contextmanager
def open_recordings(
    directory: Path, pids: Collection[int], samples_per_s: int, *, is_traced: bool
) -> Iterator[Recordings]:
    """Provide recordings, initially switched off.

    ``pids`` are sampled if sampling whole CPUs is not permitted. ``samples_per_s`` is the rate of all CPUs
    together; each sample takes 8 kB on disk. ``is_traced``: also trace the scheduler.
    """
    opened, is_root = Recordings(directory, one_off_account()), os.geteuid() == 0
    with ExitStack() as stack:
        program = find_perf()
        if program is None:
            opened.remarks.append(_NO_PERF)
        elif not is_root and not _sees_kernel():
            opened.remarks.append(_NO_KERNEL)
        else:
            options = sampling(_frequency_hz(samples_per_s), () if is_root else pids)
            opened.of_stacks = _opened(opened, stack, program, options, "stacks", caller().command)
            if is_root and is_traced:
                wrap = in_own_mounts(caller().command)
                opened.of_schedule = _opened(opened, stack, program, scheduling(), "schedule", wrap)
        if opened.of_schedule is None:
            opened.remarks.append(_NO_TRACE)
        yield opened


def _sees_kernel() -> bool:
    """Return whether an ordinary user's perf samples the kernel's work for its own processes."""
    return int(_PARANOID.read_text()) <= 1


def _frequency_hz(samples_per_s: int) -> int:
    """Return the frequency per CPU: odd, to avoid lockstep with periodic work."""
    return max(1, min(_MOST_HZ, samples_per_s // len(online_cpus())) - 1 | 1)


def _opened(
    opened: Recordings, stack: ExitStack, program: str, options: Sequence[str], name: str, wrap: Wrap
) -> Recording | None:
    try:
        file = opened.directory / f"perf-{name}.data"
        return stack.enter_context(recording(program, options, file, wrap))
    except ServerError as error:
        opened.remarks.append(_text(error))
        return None


def _text(error: ServerError) -> str:
    return f"{error.message}: {error.detail}" if error.detail else error.message
