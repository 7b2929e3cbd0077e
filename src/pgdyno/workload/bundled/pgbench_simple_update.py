"""pgbench's built-in script ``simple-update``."""

from __future__ import annotations

from pgdyno.model.experiments.workload import PgbenchScripts, ResetPolicy, Script, Workload
from pgdyno.workload.bundled._pgbench import PGBENCH_DATA

WORKLOAD = Workload(
    name="pgbench-simple-update",
    title="pgbench: one update, one read, one insert, without the hot rows of TPC-B",
    data_set=PGBENCH_DATA,
    reset=ResetPolicy.RESTORE,
    kind=PgbenchScripts((Script("simple-update"),)),
)
