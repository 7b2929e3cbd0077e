"""Huge-page memory of a server process, reserved or transparent: proof that huge pages are in use.

The kernel takes milliseconds to add up a process's mappings, so only two processes are read: the one that has
touched most memory, for shared memory, and the youngest, which serves a client, for private memory.

Source: Linux, Documentation/filesystems/proc.rst, smaps_rollup.
"""

from __future__ import annotations

from pgdyno.measure.meters._contract import Counters, Meter, MeterContext, level, number_of

METER = Meter("huge_page_bytes", "/proc/PID/smaps_rollup of the server process that has most of it")

_LABELS = ("ShmemPmdMapped", "AnonHugePages", "Shared_Hugetlb", "Private_Hugetlb")


def read(context: MeterContext) -> Counters | None:
    """Return the current size, in bytes."""
    touched = {pid: _touched(context.read_process(pid, "status")) for pid in context.server_pids()}
    if not touched:
        return None
    chosen = {max(touched, key=touched.__getitem__), max(touched)}
    sizes = [size for pid in chosen if (size := _on_huge_pages(context, pid)) is not None]
    return (max(sizes),) if sizes else None


def _on_huge_pages(context: MeterContext, pid: int) -> float | None:
    rollup = context.read_process(pid, "smaps_rollup")
    sizes = [size for label in _LABELS if (size := number_of(rollup, label)) is not None]
    return sum(sizes) * 1024 if sizes else None


def _touched(status: str | None) -> float:
    """Return the memory that a process has mapped, reserved huge pages included, in kB."""
    return (number_of(status, "VmRSS") or 0) + (number_of(status, "HugetlbPages") or 0)


value = level
