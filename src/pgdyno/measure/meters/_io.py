"""Storage I/O of a server's processes, as counted by the kernel's block layer."""

from __future__ import annotations

from pgdyno.measure.meters._contract import Counters, MeterContext, number_of

_READINGS = 5  # arbitrary; processes rarely exit during the milliseconds of a reading


def io_bytes(context: MeterContext, label: str) -> Counters | None:
    """Sum a field of /proc/PID/io over the server's live processes; None if no process has it.

    When a parent waits for an exited child, the kernel adds the child's figures to the parent's. The
    postmaster waits for all its children, so remembering exited ones would count them twice. If a process
    exits during a reading, it is counted twice or not at all, and the reading is repeated.
    """
    read: list[float | None] = []
    for _ in range(_READINGS):
        pids = frozenset(context.server_pids())
        read = [number_of(context.read_process(pid, "io"), label) for pid in pids]
        if pids <= frozenset(context.server_pids()):
            break
    known = [value for value in read if value is not None]
    return (sum(known),) if known else None
