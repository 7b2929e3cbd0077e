"""pgbench's built-in script ``tpcb-like``."""

from __future__ import annotations

from pgdyno.model.experiments.workload import PgbenchScripts, ResetPolicy, Script, Workload
from pgdyno.workload.bundled._pgbench import BALANCES_AGREE, PGBENCH_DATA

WORKLOAD = Workload(
    name="pgbench-tpcb",
    title="pgbench: TPC-B-like: three updates, one read, one insert",
    data_set=PGBENCH_DATA,
    reset=ResetPolicy.RESTORE,
    kind=PgbenchScripts((Script("tpcb-like"),)),
    invariant=BALANCES_AGREE,
)
