"""Page tables of the server's processes: each process has its own for the shared memory it has touched.

A process that has touched 1 GB needs 2 MB of page tables with 4 kB pages, and almost none with huge pages.
"""

from __future__ import annotations

from pgdyno.measure.meters._contract import Counters, Meter, MeterContext, level, number_of

METER = Meter("page_table_bytes", "VmPTE in /proc/PID/status of all server processes")


def read(context: MeterContext) -> Counters | None:
    """Return their current size, in bytes."""
    statuses = (context.read_process(pid, "status") for pid in context.server_pids())
    sizes = [size for status in statuses if (size := number_of(status, "VmPTE")) is not None]
    return (sum(sizes) * 1024,) if sizes else None


value = level
