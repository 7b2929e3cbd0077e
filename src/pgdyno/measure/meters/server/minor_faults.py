"""Minor page faults of the server per transaction: a sign of page-table cost."""

from __future__ import annotations

from pgdyno.measure.meters._contract import Counters, Meter, MeterContext, per_transaction

METER = Meter("minor_faults_per_transaction", "/proc/PID/stat of all server processes")

_MINOR_FAULTS = 7  # field 10 of /proc/PID/stat, counted after the process name


def read(context: MeterContext) -> Counters | None:
    """Return the number of minor faults so far."""
    stats = {pid: context.read_process(pid, "stat") for pid in context.server_pids()}
    by_pid = {p: float(stat.rpartition(")")[2].split()[_MINOR_FAULTS]) for p, stat in stats.items() if stat}
    return (context.add_up("minor faults", by_pid),) if by_pid else None


value = per_transaction
