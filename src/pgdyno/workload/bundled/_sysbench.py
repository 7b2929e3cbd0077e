"""The tables of sysbench's OLTP family."""

from __future__ import annotations

from pgdyno.model.experiments.workload import DataSet

# Eight tables of 300 000 rows are 612 MB: several times the default shared_buffers of 128 MB.
# ``scale`` counts thousands of rows per table; size measured with PostgreSQL 18.
SYSBENCH_DATA = DataSet(name="sysbench", scale=300, bytes_per_scale=2_050_000, options={"tables": "8"})
