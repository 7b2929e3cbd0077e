"""Scans of sysbench's tables in shared_buffers, in the page cache, and on disk.

The data set has many small tables rather than a few large ones, to complete many scans within a turn: with
four clients on one CPU a scan of a table takes 8 ms, and about 40 ms from disk. The workloads are named after
the plans for tables of 20 000 rows; ``driver/src/workload/scan.rs`` has the statements.
"""

from __future__ import annotations

from pgdyno.model.experiments.workload import DataSet, ResetPolicy, Workload

# ``scale`` counts thousands of rows per table; size per table as measured for SYSBENCH_DATA.
_ROWS, _BYTES_PER_TABLE = 20, 256_250

# 77 MB: less than the default shared_buffers of 128 MB. Each table is smaller than a quarter of it, since
# sequential scans of larger tables use only a small ring of buffers.
_CACHED = DataSet("sysbench", _ROWS, 15 * _BYTES_PER_TABLE, {"tables": "15"})
# 1 GB: seven times the default shared_buffers, three times _MEMORY_BYTES.
_LARGE = DataSet("sysbench", _ROWS, 200 * _BYTES_PER_TABLE, {"tables": "200"})

# Room for the default shared_buffers and some hundred MB of processes and page cache.
_MEMORY_BYTES = 320 << 20


def scans(name: str, title: str, *, issued_as: str | None = None) -> tuple[Workload, ...]:
    """Return a scan workload for data in shared_buffers, in the page cache, and on disk.

    ``issued_as`` is the driver's name of the scan.
    """
    return (
        _scan(f"{name}-cached", f"{title}, data in shared_buffers", _CACHED, issued_as or name),
        _scan(f"{name}-page-cache", f"{title}, data in the page cache", _LARGE, issued_as or name),
        _scan(f"{name}-io-bound", f"{title}, data on the disk", _LARGE, issued_as or name, _MEMORY_BYTES),
    )


def _scan(
    name: str, title: str, data_set: DataSet, issued_as: str, server_memory_bytes: int | None = None
) -> Workload:
    return Workload(
        name,
        title,
        data_set,
        ResetPolicy.KEEP,
        issued_as=issued_as,
        server_memory_bytes=server_memory_bytes,
    )
