"""Sequential scans: the read stream at its simplest."""

from __future__ import annotations

from pgdyno.workload.bundled._scans import scans

WORKLOADS = scans("scan-sequential", "sequential scan of a table")
