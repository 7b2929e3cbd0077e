"""Page tables of the server's processes.

Each process has its own for the shared memory that it has touched.

With 4 kB pages a process that has touched 1 GB of it needs 2 MB of them; with huge pages next to nothing.
"""

from __future__ import annotations

from pgdyno.measure.meters._contract import Counters, Meter, MeterContext, level, number_of

METER = Meter("page_table_bytes", "VmPTE in /proc/PID/status of all server processes")


def read(context: MeterContext) -> Counters | None:
    """Return their size now, in bytes."""
    statuses = (context.read_process(pid, "status") for pid in context.server_pids())
    sizes = [size for status in statuses if (size := number_of(status, "VmPTE")) is not None]
    return (sum(sizes) * 1024,) if sizes else None


value = level
