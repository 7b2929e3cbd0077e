"""sysbench's script ``oltp_read_only``, uniformly distributed."""

from __future__ import annotations

from pgdyno.model.experiments.workload import ResetPolicy, SysbenchScript, Workload
from pgdyno.workload.bundled._sysbench import SYSBENCH_DATA

WORKLOAD = Workload(
    name="sysbench-read-only",
    title="sysbench OLTP read-only: 10 point reads and 4 range reads per transaction",
    data_set=SYSBENCH_DATA,
    reset=ResetPolicy.KEEP,
    kind=SysbenchScript("oltp_read_only"),
)
