"""Single rows by primary key: read-ahead is impossible."""

from __future__ import annotations

from pgdyno.workload.bundled._scans import scans

WORKLOADS = scans("scan-point", "one row by primary key", issued_as="sysbench-point-select")
