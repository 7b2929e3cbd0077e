"""Single rows by primary key, which no server can read ahead."""

from __future__ import annotations

from pgdyno.workload.bundled._scans import scans

WORKLOADS = scans("scan-point", "one row by primary key", issued_as="sysbench-point-select")
