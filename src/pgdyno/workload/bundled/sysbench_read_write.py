"""sysbench's script ``oltp_read_write``, uniformly distributed."""

from __future__ import annotations

from pgdyno.model.experiments.workload import ResetPolicy, SysbenchScript, Workload
from pgdyno.workload.bundled._sysbench import SYSBENCH_DATA

WORKLOAD = Workload(
    name="sysbench-read-write",
    title="sysbench OLTP read-write: 10 point reads, 4 range reads, 4 writes per transaction",
    data_set=SYSBENCH_DATA,
    reset=ResetPolicy.RESTORE,
    kind=SysbenchScript("oltp_read_write"),
)
