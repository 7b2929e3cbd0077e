"""Index scans over adjacent rows."""

from __future__ import annotations

from pgdyno.workload.bundled._scans import scans

WORKLOADS = scans("scan-index", "index scan of one row in 20, in the order of the rows")
