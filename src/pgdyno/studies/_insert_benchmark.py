"""The Insert Benchmark by Mark Callaghan: ten steps, each a workload on what the one before has left.

l.i0   inserts in primary key order       qr100, qr500, qr1000   range queries beside inserts and deletes
l.x    builds three secondary indexes     qp100, qp500, qp1000   point queries beside inserts and deletes
l.i1   inserts and deletes, 50 rows a commit
l.i2   the same with 5 rows a commit      between l.i2 and qr100: vacuum and checkpoint

Statements and values are in ``driver/src/workload/insert_benchmark``.
Source: github.com/mdcallag/mytools, bench/ibench.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pgdyno.model.experiment import ResetPolicy
from pgdyno.model.workload import DataSet, Step, Workload

PREFIX = "insert-benchmark-"
CLEAN_UP = f"{PREFIX}clean-up"

_EMPTY = DataSet(name="empty", scale=1, bytes_per_scale=0)
_ROWS_PER_COMMIT = {"l.i0": 100, "l.x": 100, "l.i1": 50, "l.i2": 5}
_TITLES = {
    "l.i0": "rows inserted per second, in primary key order",
    "l.x": "rows indexed per second, three secondary indexes each",
    "l.i1": "rows inserted per second beside as many deletes, 50 per commit",
    "l.i2": "rows inserted per second beside as many deletes, 5 per commit",
}
_RATES = (100, 500, 1000)  # rows inserted, and deleted, per second and client
_QUERY_ROWS_PER_COMMIT = 50


@dataclass(frozen=True)
class Size:
    """How large the benchmark is. Rows are per client: of l.i0, l.i1 and l.i2."""

    clients: int
    rows: tuple[int, int, int]
    step_s: int  # length of each of the query steps
    settle_s: float  # from the beginning of the clean-up until the query steps start
    is_faithful: bool = False


PRESETS: Mapping[str, Size] = {
    # Fits two CPUs: about a minute per pass.
    "quick": Size(clients=2, rows=(400_000, 100_000, 10_000), step_s=6, settle_s=3.0),
}


def steps(size: Size) -> dict[str, Workload]:
    """Return the ten steps by name, in their order."""
    names = [*_TITLES, *(f"{kind}{rate}" for rate in _RATES for kind in ("qr", "qp"))]
    return {f"{PREFIX}{name}": _workload(name, size) for name in names}


def clean_up(size: Size) -> Workload:
    """Return the work between the writing and the reading steps: it has no clients, and no result."""
    step = Step(_options(size), size.clients, operations="rows", rows_per_commit=0)
    return Workload(CLEAN_UP, "vacuum and checkpoint", _EMPTY, ResetPolicy.RESTORE, step=step)


def _workload(name: str, size: Size) -> Workload:
    if name in _TITLES:
        rows, _, _ = size.rows
        step = Step(
            _options(size),
            size.clients,
            operations="rows",
            rows_per_commit=_ROWS_PER_COMMIT[name],
            indexed_rows=size.clients * (rows + _ROWS_PER_COMMIT[name]) if name == "l.x" else None,
        )
        return Workload(f"{PREFIX}{name}", _TITLES[name], _EMPTY, ResetPolicy.RESTORE, step=step)
    kind, rate = name[:2], int(name[2:])
    step = Step(
        _options(size) | ({} if size.is_faithful else {"ends": "time"}),
        size.clients,
        operations="queries",
        rows_per_commit=_QUERY_ROWS_PER_COMMIT,
        duration_s=None if size.is_faithful else size.step_s,
        target_rows_per_s=rate * size.clients,
        settle_s=size.settle_s if name == "qr100" else None,
    )
    what = "range" if kind == "qr" else "point"
    title = f"{what} queries per second beside {rate} inserts and deletes per second and client"
    return Workload(f"{PREFIX}{name}", title, _EMPTY, ResetPolicy.RESTORE, step=step)


def _options(size: Size) -> dict[str, object]:
    i0, i1, i2 = size.rows
    return {
        "rows": {"i0": i0, "i1": i1, "i2": i2},
        "step_seconds": size.step_s,
        "mode": "faithful" if size.is_faithful else "corrected",
    }
