"""The Insert Benchmark by Mark Callaghan: ten steps.

Each step is a workload on the data left by the previous one.

l.i0   inserts in primary key order       qr100, qr500, qr1000   range queries with inserts and deletes
l.x    builds three secondary indexes     qp100, qp500, qp1000   point queries with inserts and deletes
l.i1   inserts and deletes, 50 rows per commit
l.i2   the same, 5 rows per commit        between l.i2 and the first q step: vacuum and checkpoint

Statements and values are in ``driver/src/workload/insert_benchmark``, sizes in ``sizes.py``.
Source: github.com/mdcallag/mytools, bench/ibench.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pgdyno.base.errors import UsageError
from pgdyno.model.experiments.workload import EMPTY, ResetPolicy, Step, Workload
from pgdyno.studies.bundled.insert_benchmark.sizes import RATES, ROWS_PER_COMMIT, Size

PREFIX = "insert-benchmark-"
CLEAN_UP = f"{PREFIX}clean-up"

_WRITES = {
    "l.i0": "rows inserted per second, in primary key order",
    "l.x": "rows indexed per second, three secondary indexes each",
    "l.i1": "rows inserted per second with as many deletes, 50 per commit",
    "l.i2": "rows inserted per second with as many deletes, 5 per commit",
}
_QUERY_ROWS_PER_COMMIT = 50
_QUERIES = tuple(f"{kind}{rate}" for rate in RATES for kind in ("qr", "qp"))
STEPS = (*_WRITES, *_QUERIES)

_INTERVALS_PER_STEP = 24  # arbitrary; makes a stall of a few percent of a step visible
_INTERVAL_S = (0.1, 1.0)  # shortest and longest; the longest is the published one
_SLOWEST_ROWS_PER_S = 20_000  # of index builds and vacuum, on slower storage than any measured here
_PATIENCE_S = 600.0


def steps(size: Size, chosen: Sequence[str] = ()) -> dict[str, Workload]:
    """Return the chosen steps by name, in order; all ten if none is chosen.

    A step includes the steps that must precede it and were not chosen: all earlier writing steps.
    Raises: UsageError for an unknown step.
    """
    unknown = [name for name in chosen if name not in STEPS]
    if unknown:
        raise UsageError(
            f'the Insert Benchmark has no step "{unknown[0]}"', hint=f"known: {', '.join(STEPS)}"
        )
    found: dict[str, Workload] = {}
    before: list[Step] = []
    is_settled = False
    for name in STEPS:
        if chosen and name not in chosen:
            before += [_writing_step(name, size)] if name in _WRITES else []
            continue
        needs_clean_up = name in _QUERIES and not is_settled
        is_settled = is_settled or needs_clean_up
        workload = _workload(name, size, preceded_by=tuple(before), needs_clean_up=needs_clean_up)
        found[workload.name] = workload
        before = []
    return found


def _workload(
    name: str, size: Size, *, preceded_by: tuple[Step, ...] = (), needs_clean_up: bool = False
) -> Workload:
    step = replace(
        _writing_step(name, size) if name in _WRITES else _query_step(name, size),
        preceded_by=preceded_by,
        settle_s=size.settle_s if needs_clean_up else None,
    )
    return Workload(
        step.name,
        _title(name),
        EMPTY,
        ResetPolicy.RESTORE,
        kind=step,
        server_memory_bytes=size.server_memory_bytes,
        disk_bytes=size.disk_bytes,
        made_bytes=size.made_bytes,
    )


def _writing_step(name: str, size: Size) -> Step:
    rows_per_commit = ROWS_PER_COMMIT[name]
    # Every client of l.x inserts one statement's rows before it builds its indexes, like the original's code;
    # the original's description has 100 rows in total.
    indexed_rows = size.table_rows + size.clients * rows_per_commit if name == "l.x" else None
    return replace(
        _step(name, size), operations="rows", rows_per_commit=rows_per_commit, indexed_rows=indexed_rows
    )


def _query_step(name: str, size: Size) -> Step:
    step = replace(_step(name, size), target_rows_per_s=_rate(name) * size.clients)
    if size.is_faithful:
        return step
    return replace(step, options={**step.options, "ends": "time"}, duration_s=size.step_s)


def _step(name: str, size: Size) -> Step:
    """Return the common part of all steps, with the values of a query step."""
    i0, i1, i2 = size.rows
    shortest_s, longest_s = _INTERVAL_S
    return Step(
        f"{PREFIX}{name}",
        {
            "rows": {"i0": i0, "i1": i1, "i2": i2},
            "step_seconds": size.step_s,
            "mode": "faithful" if size.is_faithful else "corrected",
        },
        size.clients,
        operations="queries",
        rows_per_commit=_QUERY_ROWS_PER_COMMIT,
        label=size.label,
        interval_s=min(max(size.step_s / _INTERVALS_PER_STEP, shortest_s), longest_s),
        patience_s=_PATIENCE_S + size.table_rows / _SLOWEST_ROWS_PER_S,
    )


def _title(name: str) -> str:
    if name in _WRITES:
        return _WRITES[name]
    what = "range" if name.startswith("qr") else "point"
    return f"{what} queries per second with {_rate(name)} inserts and deletes per second and client"


def _rate(name: str) -> int:
    return int(name[2:])
