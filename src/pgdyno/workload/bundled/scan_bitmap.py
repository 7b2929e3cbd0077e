"""Bitmap heap scans: pages far apart that are known beforehand."""

from __future__ import annotations

from pgdyno.workload.bundled._scans import scans

WORKLOADS = scans("scan-bitmap", "bitmap heap scan of one row in 200")
