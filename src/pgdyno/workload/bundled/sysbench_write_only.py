"""sysbench's script ``oltp_write_only``, uniformly distributed."""

from __future__ import annotations

from pgdyno.model.experiments.workload import ResetPolicy, SysbenchScript, Workload
from pgdyno.workload.bundled._sysbench import SYSBENCH_DATA

WORKLOAD = Workload(
    name="sysbench-write-only",
    title="sysbench OLTP write-only: 4 writes per transaction",
    data_set=SYSBENCH_DATA,
    reset=ResetPolicy.RESTORE,
    kind=SysbenchScript("oltp_write_only"),
)
