"""Processes of a running server or generator, through /proc."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_EMULATORS = "qemu-"  # as qemu's own are called: qemu-aarch64-static
_IN_KB = re.compile(r"^(\w+):\s+(\d+) kB$", re.MULTILINE)
_CPUCLOCK_SCHED = 2  # include/linux/posix-timers_types.h: sum of the scheduler's run time


@dataclass
class CpuClock:
    """CPU time of a fixed set of processes, cheap enough to be read twice per slice.

    Processes that start later are not seen; those that end stay at their last reading.
    """

    _last_ns: dict[int, int]

    @classmethod
    def of(cls, pids: Iterable[int]) -> CpuClock:
        """Return a clock over ``pids``; processes that have ended already are left out."""
        read = {pid: cpu_ns(pid) for pid in pids}
        return cls({pid: used_ns for pid, used_ns in read.items() if used_ns is not None})

    def read_ns(self) -> int:
        """Return the sum of nanoseconds on a CPU so far."""
        for pid in self._last_ns:
            used_ns = cpu_ns(pid)
            if used_ns is not None:
                self._last_ns[pid] = used_ns
        return sum(self._last_ns.values())


def cpu_ns(pid: int) -> int | None:
    """Return the nanoseconds on a CPU of all threads that a process has and had; None if it has ended.

    /proc/PID/schedstat knows the first thread alone: what the kernel's threads do for a backend that uses
    io_uring would be missing. The clock's number is that of clock_getcpuclockid(3).
    """
    try:
        return time.clock_gettime_ns((~pid << 3) | _CPUCLOCK_SCHED)
    except OSError as error:
        if error.errno == errno.EINVAL:  # no such process
            return None
        raise


def queue_ns(pid: int, thread: int | None = None) -> int:
    """Return how long a process's thread could have run and did not, in ns; 0 if it has ended.

    The second number of /proc/PID/schedstat: from when it joined the queue of a CPU.
    """
    text = read_process(pid, "schedstat" if thread is None else f"task/{thread}/schedstat")
    return 0 if text is None else int(text.split()[1])


def children(pid: int) -> tuple[int, ...]:
    """Return the direct children of a process; none if it has ended."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ()
    return tuple(int(child) for child in text.split())


def is_alive(pid: int) -> bool:
    """Whether a process has not ended; one that nobody has waited for yet has."""
    return _state(pid) not in ("", "Z", "X")


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped by a signal."""
    return _state(pid) == "T"


def _state(pid: int) -> str:
    """Return the letter of a process's state, as ps shows it; nothing if there is no such process."""
    text = read_process(pid, "stat")
    return "" if text is None else text.rpartition(") ")[2][:1]


def threads(pid: int) -> tuple[int, ...]:
    """Return the threads of a process, itself first; none if it has ended."""
    try:
        found = [entry.name for entry in Path(f"/proc/{pid}/task").iterdir()]
    except (FileNotFoundError, ProcessLookupError):
        return ()
    return tuple(sorted(int(thread) for thread in found))


def read_process(pid: int, name: str) -> str | None:
    """Return ``/proc/PID/NAME``; None if the process has ended or the file may not be read."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None


def resident_bytes(pid: int) -> int:
    """Return a process's memory in RAM, shared memory that it has touched included; 0 if it has ended."""
    return int((read_process(pid, "statm") or "0 0").split()[1]) * os.sysconf("SC_PAGESIZE")


def memory_bytes(pids: Iterable[int]) -> int:
    """Return the memory of a server's processes: their own, and their shared memory, which counts once.

    /proc/PID/status, fields RssAnon, VmSwap (of their own memory), RssShmem and HugetlbPages. The shared part
    is that of the process which has touched most of it. Processes that have ended, or may not be looked at,
    count as nothing.
    """
    of_all = [_memory_kb(read_process(pid, "status") or "") for pid in pids]
    own_kb = sum(one.get("RssAnon", 0) + one.get("VmSwap", 0) for one in of_all)
    shared_kb = max((one.get("RssShmem", 0) + one.get("HugetlbPages", 0) for one in of_all), default=0)
    return (own_kb + shared_kb) * 1024


def _memory_kb(status: str) -> dict[str, int]:
    return {name: int(kb) for name, kb in _IN_KB.findall(status)}


def pin(pid: int, cpus: Iterable[int]) -> None:
    """Let a process run on these CPUs only. Nothing happens if it has ended, or is not ours to pin."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.sched_setaffinity(pid, cpus)


def running_from(prefix: Path) -> tuple[int, ...]:
    """Return the processes whose program lies below a directory, as far as we may see them."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            if entry.name.isdigit() and program_of(entry).is_relative_to(prefix):
                found.append(int(entry.name))
    return tuple(sorted(found))


def program_of(process: Path) -> Path:
    """Return the program that a process runs; of one that is emulated, not the emulator.

    The kernel starts an emulator with the path of the program before all other arguments (binfmt_misc).
    """
    program = (process / "exe").readlink()
    if not program.name.startswith(_EMULATORS):
        return program
    arguments = (process / "cmdline").read_bytes().split(b"\0")
    if len(arguments) < 2:
        return program
    named = Path(os.fsdecode(arguments[1]))  # as it was started: it may be relative
    return named if named.is_absolute() else (process / "cwd").readlink() / named
