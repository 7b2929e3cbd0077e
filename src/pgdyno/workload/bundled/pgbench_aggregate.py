"""A sum over a thousand accounts of pgbench, from a random one on; our own, pgbench has no such script."""

from __future__ import annotations

from pgdyno.model.experiments.experiment import ResetPolicy
from pgdyno.model.experiments.workload import Workload
from pgdyno.workload.bundled._pgbench import PGBENCH_DATA

WORKLOAD = Workload(
    name="pgbench-aggregate",
    title="a sum over 1,000 of pgbench's accounts, read by primary key",
    data_set=PGBENCH_DATA,
    reset=ResetPolicy.KEEP,
)
