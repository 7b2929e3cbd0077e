"""A sum over a thousand of pgbench's accounts from a random one on; pgbench itself has no such script."""

from __future__ import annotations

from pgdyno.model.experiments.workload import ResetPolicy, Workload
from pgdyno.workload.bundled._pgbench import PGBENCH_DATA

WORKLOAD = Workload(
    name="pgbench-aggregate",
    title="a sum over 1,000 of pgbench's accounts, read by primary key",
    data_set=PGBENCH_DATA,
    reset=ResetPolicy.KEEP,
)
