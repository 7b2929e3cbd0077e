"""Processes of a running server or generator, from /proc."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_EMULATORS = "qemu-"  # name prefix of qemu's user-mode emulators: qemu-aarch64-static
_IN_KB = re.compile(r"^(\w+):\s+(\d+) kB$", re.MULTILINE)
_CPUCLOCK_SCHED = 2  # include/linux/posix-timers_types.h: sum of the scheduler's run time


@dataclass
class CpuClock:
    """CPU time of a fixed set of processes, cheap enough to be read twice per slice.

    Processes that start later are not counted; those that end keep their last reading.
    """

    _last_ns: dict[int, int]

    @classmethod
    def of(cls, pids: Iterable[int]) -> CpuClock:
        """Return a clock over ``pids``; processes that have ended are omitted."""
        read = {pid: cpu_ns(pid) for pid in pids}
        return cls({pid: used_ns for pid, used_ns in read.items() if used_ns is not None})

    def read_ns(self) -> int:
        """Return the processes' total CPU time so far, in ns."""
        for pid in self._last_ns:
            used_ns = cpu_ns(pid)
            if used_ns is not None:
                self._last_ns[pid] = used_ns
        return sum(self._last_ns.values())


def cpu_ns(pid: int) -> int | None:
    """Return the CPU time, in ns, of all current and past threads of a process; None if it has ended.

    /proc/PID/schedstat covers only the first thread, and would omit the kernel's worker threads of a backend
    that uses io_uring. The clock id is that of clock_getcpuclockid(3).
    """
    try:
        return time.clock_gettime_ns((~pid << 3) | _CPUCLOCK_SCHED)
    except OSError as error:
        if error.errno == errno.EINVAL:  # no such process
            return None
        raise


def queue_ns(pid: int, thread: int | None = None) -> int:
    """Return how long a process's thread was runnable but waiting for a CPU, in ns; 0 if it has ended.

    This is the second number in /proc/PID/schedstat, the time on a run queue.
    """
    text = read_process(pid, "schedstat" if thread is None else f"task/{thread}/schedstat")
    return 0 if text is None else int(text.split()[1])


def children(pid: int) -> tuple[int, ...]:
    """Return the direct children of a process; empty if it has ended."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ()
    return tuple(int(child) for child in text.split())


def is_alive(pid: int) -> bool:
    """Whether a process has not exited; a zombie has."""
    return _state(pid) not in ("", "Z", "X")


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped by a signal."""
    return _state(pid) == "T"


def _state(pid: int) -> str:
    """Return the letter of a process's state, as ps shows it; empty if there is no such process."""
    text = read_process(pid, "stat")
    return "" if text is None else text.rpartition(") ")[2][:1]


def threads(pid: int) -> tuple[int, ...]:
    """Return the thread ids of a process, in ascending order; empty if it has ended."""
    try:
        found = [entry.name for entry in Path(f"/proc/{pid}/task").iterdir()]
    except (FileNotFoundError, ProcessLookupError):
        return ()
    return tuple(sorted(int(thread) for thread in found))


def read_process(pid: int, name: str) -> str | None:
    """Return ``/proc/PID/NAME``; None if the process has ended or the file is not readable."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None


def resident_bytes(pid: int) -> int:
    """Return a process's resident memory, including touched shared memory; 0 if it has ended."""
    return int((read_process(pid, "statm") or "0 0").split()[1]) * os.sysconf("SC_PAGESIZE")


def memory_bytes(pids: Iterable[int]) -> int:
    """Return the memory of a server's processes: their private memory, plus shared memory counted once.

    Source: RssAnon, VmSwap (private memory), RssShmem and HugetlbPages in /proc/PID/status. The shared part
    is the largest of any process. Processes that have ended, or are not readable, count as 0.
    """
    of_all = [_memory_kb(read_process(pid, "status") or "") for pid in pids]
    own_kb = sum(one.get("RssAnon", 0) + one.get("VmSwap", 0) for one in of_all)
    shared_kb = max((one.get("RssShmem", 0) + one.get("HugetlbPages", 0) for one in of_all), default=0)
    return (own_kb + shared_kb) * 1024


def _memory_kb(status: str) -> dict[str, int]:
    return {name: int(kb) for name, kb in _IN_KB.findall(status)}


def pin(pid: int, cpus: Iterable[int]) -> None:
    """Pin a process to CPUs. It does nothing if the process has ended or may not be pinned."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.sched_setaffinity(pid, cpus)


def running_from(prefix: Path) -> tuple[int, ...]:
    """Return the visible processes that run a program below a directory."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            if entry.name.isdigit() and program_of(entry).is_relative_to(prefix):
                found.append(int(entry.name))
    return tuple(sorted(found))


def program_of(process: Path) -> Path:
    """Return the program that a process runs; for an emulated one, not the emulator.

    The kernel passes the program's path as the emulator's first argument (binfmt_misc).
    """
    program = (process / "exe").readlink()
    if not program.name.startswith(_EMULATORS):
        return program
    arguments = (process / "cmdline").read_bytes().split(b"\0")
    if len(arguments) < 2:
        return program
    named = Path(os.fsdecode(arguments[1]))  # as given at the start; it may be relative
    return named if named.is_absolute() else (process / "cwd").readlink() / named
