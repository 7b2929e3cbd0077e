"""Bitmap heap scans: the scattered pages are known in advance."""

from __future__ import annotations

from pgdyno.workload.bundled._scans import scans

WORKLOADS = scans("scan-bitmap", "bitmap heap scan of one row in 200")
