"""A step's figures in the form published by the Insert Benchmark.

Names and definitions are the benchmark's own.

=================  =====================================================================================
ips, qps           rows inserted, queries, per second
rps rmbps          reads per second of the data directory's block device, and MiB per second
wps wmbps          writes, in the same way
rpq rkbpq          reads and KiB read per row inserted (steps l.*), per query (steps q*): totals by totals
wpi wkbpi          writes and KiB written per row inserted, in every step
csps cpups         context switches per second, percentage of all CPUs busy: the whole host, client included
cspq cpupq         context switches, CPU microseconds of the whole host, per row or query
dbgb1 dbgb2        GiB of the database; of all files of the data directory, WAL included
rss                GiB resident in the largest of the server's processes
maxop              longest response in seconds: of an insert in l.*, of a query in q*
p50 p99            rate of the second that this percentage of the seconds *exceed*
=================  =====================================================================================

Differences from the original:

- Rates use the time from the clients' common start to the end of the last client, not whole seconds from the
  first fork on.
- In l.x every client inserts 100 rows before it builds its indexes, and ips counts all of them; the
  original's description has 100 rows in total.
- p50 and p99 cover all clients, the original's only client 1.
- maxop counts from the intended start in corrected mode, from the real start in faithful mode.
- rss is the largest resident size, the original's is that of the process with the largest virtual size.
- Means over a step use counters, not samples every 5 s.
- The field ``tag`` is the variant's name.

Figures that could not be read are absent.

Source: github.com/mdcallag/mytools, bench/ibench: np.sh, ios.sh, etl.sh.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pgdyno.host.host import DeviceUse, SystemUse
from pgdyno.model.experiments.step_record import IntervalRecord

_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30
_SECOND = 0.95  # intervals add up to roughly a second
_MIN_SECONDS = 10  # with fewer, the original prints no percentiles


@dataclass(frozen=True)
class Work:
    """The work done by a step. ``rates`` are operations per second, one value per second."""

    is_loading: bool  # steps l.*
    rows_inserted: int  # in l.x: indexed
    queries: int
    elapsed_s: float
    longest_ms: float | None
    rates: Sequence[float]


@dataclass(frozen=True)
class Footprint:
    """Sizes of a server at the end of a step; its largest process at any time during the step."""

    database_bytes: float | None = None
    directory_bytes: float | None = None
    largest_process_bytes: float | None = None


def published(
    work: Work, system: SystemUse | None, device: DeviceUse | None, footprint: Footprint
) -> dict[str, float]:
    """Return the published figures of a step, without unknown ones."""
    ips, qps = work.rows_inserted / work.elapsed_s, work.queries / work.elapsed_s
    operations = work.rows_inserted if work.is_loading else work.queries
    found: dict[str, float | None] = {"ips": ips, "qps": qps}
    if device is not None:
        found |= _of_device(device, work.rows_inserted, operations)
    if system is not None:
        found |= _of_system(system, operations)
    found |= {
        "dbgb1": _over(footprint.database_bytes, _GIB),
        "dbgb2": _over(footprint.directory_bytes, _GIB),
        "rss": _over(footprint.largest_process_bytes, _GIB),
        "maxop": _over(work.longest_ms, 1000),
        "p50": _rate_at(work.rates, 50),
        "p99": _rate_at(work.rates, 99),
    }
    return {name: value for name, value in found.items() if value is not None}


def rates_by_second(
    intervals: Iterable[IntervalRecord], role: str, operations_per_transaction: int
) -> list[float]:
    """Return a role's operations per second, one value per second; shorter intervals are combined."""
    rates, transactions, length_s = [], 0, 0.0
    for interval in intervals:
        transactions += interval.transactions.get(role, 0)
        length_s += interval.length_s
        if length_s >= _SECOND:
            rates.append(transactions * operations_per_transaction / length_s)
            transactions, length_s = 0, 0.0
    return rates


def _of_device(device: DeviceUse, rows_inserted: int, operations: int) -> dict[str, float | None]:
    return {
        "rps": device.reads / device.wall_s,
        "rmbps": device.read_bytes / device.wall_s / _MIB,
        "wps": device.writes / device.wall_s,
        "wmbps": device.written_bytes / device.wall_s / _MIB,
        "rpq": _over(device.reads, operations),
        "rkbpq": _over(device.read_bytes / _KIB, operations),
        "wpi": _over(device.writes, rows_inserted),
        "wkbpi": _over(device.written_bytes / _KIB, rows_inserted),
    }


def _of_system(system: SystemUse, operations: int) -> dict[str, float | None]:
    return {
        "csps": system.context_switches / system.wall_s,
        "cpups": system.busy_share * 100,
        "cspq": _over(system.context_switches, operations),
        "cpupq": _over(system.busy_share * system.cpus * system.wall_s * 1e6, operations),
    }


def _rate_at(rates: Sequence[float], percent: int) -> float | None:
    """Return the rate of the n-th fastest second, n being ``percent`` of their number, rounded.

    None for fewer than ``_MIN_SECONDS``.
    """
    if len(rates) < _MIN_SECONDS:
        return None
    return sorted(rates, reverse=True)[round(percent / 100 * len(rates)) - 1]


def _over(value: float | None, divisor: float) -> float | None:
    return None if value is None or divisor == 0 else value / divisor
