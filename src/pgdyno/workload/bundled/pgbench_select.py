"""pgbench's built-in script ``select-only``."""

from __future__ import annotations

from pgdyno.model.experiments.workload import PgbenchScripts, ResetPolicy, Script, Workload
from pgdyno.workload.bundled._pgbench import PGBENCH_DATA

WORKLOAD = Workload(
    name="pgbench-select",
    title="pgbench: one indexed read of an account by primary key",
    data_set=PGBENCH_DATA,
    reset=ResetPolicy.KEEP,
    kind=PgbenchScripts((Script("select-only"),)),
)
