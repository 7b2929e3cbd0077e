"""Progress of a fleet as a table, and in a line. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pgdyno.model import numbers
from pgdyno.model.fleets.fleet_progress import FleetProgress, MachineProgress
from pgdyno.report.elements.tables import NOTHING, Column, Table

_COLUMNS = ("trials", "done", "measuring", "waiting", "failed", "each takes", "left", "price")
_REASON_CHARACTERS = 300  # arbitrary: the store has all of it


def progress_table(fleet: FleetProgress) -> Table:
    """Return a row for each machine, and one for all."""
    rows = [_row(one) for one in fleet.machines]
    total = (
        "all",
        *(str(sum(counts)) for counts in zip(*map(_counts, fleet.machines), strict=True)),
        "",
        _duration(fleet.left_s),
        _price(fleet.cost),
    )
    columns = (Column("machine"), *(Column(title, is_number=True) for title in _COLUMNS))
    return Table(f"Fleet {fleet.name}: pgdyno {' '.join(fleet.command)}", columns, (*rows, total), totals=1)


def progress_line(fleet: FleetProgress) -> str:
    """Return it in a line: ``3 of 10 trials are done, 1 failed``."""
    failed = f", {fleet.failed} failed" if fleet.failed else ""
    left = "" if not fleet.left_s else f", about {numbers.duration(fleet.left_s)} left"
    return f"{fleet.done} of {fleet.trials} trials are done{failed}{left}"


def progress_notes(fleet: FleetProgress, without_worker: Collection[str]) -> Iterator[str]:
    """Yield where the times come from, which machines have no worker, and why trials failed."""
    if any(one.trial_s is not None for one in fleet.machines):
        source = "trials that were made" if fleet.is_measured else "the experiment's budget, without loading"
        yield f"Times are those of {source}. Machines work beside each other."
    else:
        yield "How long a trial takes is not known before the first has ended: its command has no --budget."
    if fleet.lost or fleet.dropped:
        yield f"Leases whose worker was lost: {fleet.lost}; answers that came too late: {fleet.dropped}."
    for machine in without_worker:
        yield (
            f"{machine} has no worker. On it: "
            f"dask worker SCHEDULER --name {machine} --nthreads 1 --resources measuring=1"
        )
    for one in fleet.machines:
        if one.reason is not None:
            yield f"{one.machine}, last failure: {one.reason[:_REASON_CHARACTERS]}"


def _row(one: MachineProgress) -> tuple[str, ...]:
    return (
        one.machine,
        *map(str, _counts(one)),
        _duration(one.trial_s),
        _duration(one.left_s),
        _price(one.cost),
    )


def _counts(one: MachineProgress) -> tuple[int, ...]:
    return one.trials, one.done, one.measuring, one.waiting, one.failed


def _duration(seconds: float | None) -> str:
    return NOTHING if seconds is None else numbers.duration(seconds)


def _price(amount: float | None) -> str:
    return NOTHING if amount is None else f"{amount:,.2f}"
