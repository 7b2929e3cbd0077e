"""Storage I/O of a set of processes, as the kernel's block layer counts it."""

from __future__ import annotations

from pgdyno.measure.meters._contract import Counters, MeterContext, number_of

_READINGS = 5  # arbitrary; processes seldom end in the very milliseconds of one


def io_bytes(context: MeterContext, label: str) -> Counters | None:
    """Sum a field of /proc/PID/io over the server's live processes; None if no process shows it.

    The kernel adds what a process has done to its parent's figures when the parent has waited for it, as the
    postmaster does for all of its own: remembering those that have ended would count them twice. A reading
    in the middle of which one ended has it twice or not at all, and is repeated.
    """
    read: list[float | None] = []
    for _ in range(_READINGS):
        pids = frozenset(context.server_pids())
        read = [number_of(context.read_process(pid, "io"), label) for pid in pids]
        if pids <= frozenset(context.server_pids()):
            break
    known = [value for value in read if value is not None]
    return (sum(known),) if known else None
