"""A fleet's store with many trials that are done: the times of status, of a run that goes on, of a report.

    python -m bench.large_fleet HOME [TRIALS] [MACHINES]      100,000 and 200 by default

Findings are of one recorded experiment, with other names, figures and times. Prints a Markdown table
(docs/scale.md has it); HOME has to be a directory of its own.
"""

from __future__ import annotations

import os
import resource
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import numpy as np
from tests.golden.synthetic_fleet import fleet
from tests.onlookers import Onlooker

from pgdyno.app.fleets.fleet_report import combine_experiments, write_fleet
from pgdyno.app.fleets.fleet_state import progress_of
from pgdyno.app.fleets.run_fleet import run_fleet
from pgdyno.app.fleets.trial_stores import fleet_path
from pgdyno.app.fleets.worker_here import WorkerHere
from pgdyno.experiments.fleets.found import found_in
from pgdyno.model.fleets.finding import FleetFinding, FoundEffect
from pgdyno.model.fleets.fleet_order import FleetOrder
from pgdyno.model.fleets.fleet_trial import FleetTrialState
from pgdyno.report.plain.fleet_text import fleet_text
from pgdyno.store.fleets.fleet_file import read_fleet_file
from pgdyno.store.fleets.fleet_trials import FleetStore
from pgdyno.store.fleets.stored_finding import finding_text

_BEGAN = datetime(2026, 11, 26, tzinfo=UTC)
_SPREAD = 0.03  # of the effects of machines, and of their trials

_RESULT = "INSERT INTO result VALUES (?, ?, ?)"
_DONE = "UPDATE trial SET state = ?, lease = 1, experiment = ? WHERE machine = ? AND number = ?"
_EVENT = "INSERT INTO event VALUES (?, ?, ?, 1, ?, NULL)"

_T = TypeVar("_T")


def fill(order: FleetOrder) -> None:
    """Write all trials but the last one as done, each with a finding of its own; in one transaction."""
    known, random = found_in(fleet(1)[0]), np.random.default_rng(1)
    with closing(FleetStore(fleet_path(order))) as store:
        store.begin(order, f"{order.name}-bench")
        trials = store.trials()[:-1]
    with closing(sqlite3.connect(fleet_path(order))) as connection, connection:
        for number, trial in enumerate(trials):
            began = _BEGAN + timedelta(seconds=number)
            finding = _other(known, number, began.isoformat(), float(random.normal(0, _SPREAD)))
            connection.execute(_RESULT, (finding.experiment, finding.blocks_sha256, finding_text(finding)))
            connection.execute(_DONE, (FleetTrialState.DONE, finding.experiment, *trial.place))
            for after_min, what in ((0, "leased"), (20, "done")):
                at = (began + timedelta(minutes=after_min)).isoformat(timespec="milliseconds")
                connection.execute(_EVENT, (at, *trial.place, what))


def _other(known: FleetFinding, number: int, created: str, apart: float) -> FleetFinding:
    """Return a finding like a known one, of another experiment."""
    comparisons = tuple(
        replace(one, effects={metric: _moved(found, apart) for metric, found in one.effects.items()})
        for one in known.comparisons
    )
    own = {"experiment": f"on-{number}", "created": created, "blocks_sha256": f"{number:064x}"}
    return replace(known, **own, comparisons=comparisons)  # type: ignore[arg-type]


def _moved(found: FoundEffect, apart: float) -> FoundEffect:
    if found.effect is None:
        return found
    return replace(found, effect=replace(found.effect, mean=found.effect.mean + apart))


def beginning(order: FleetOrder) -> None:
    """Let a controller begin where all but one trial are done, and make that one, which fails at once."""

    def fails(_: object) -> bytes:
        return b""

    run_fleet(order, WorkerHere(max(one.name for one in order.machines)), Onlooker(), make=fails, turn_s=0.01)


def report(file: Path) -> int:
    """Return the size of a fleet's report."""
    combined = combine_experiments([str(file)])
    return write_fleet(combined).stat().st_size + len(fleet_text(combined))


def timed(what: str, do: Callable[[], _T]) -> _T:
    """Do it, and print a row."""
    began_s = time.monotonic()
    found = do()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"| {what} | {time.monotonic() - began_s:.1f} s | {memory:.0f} MB |", flush=True)
    return found


def main() -> None:
    """Fill a store, and print the table."""
    home = Path(sys.argv[1])
    trials = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    machines = int(sys.argv[3]) if len(sys.argv) > 3 else 200
    os.environ["PGDYNO_HOME"] = str(home)
    home.mkdir(parents=True, exist_ok=True)
    file = home / "large.toml"
    tables = "".join(f"[machines.m{number}]\n" for number in range(machines))
    file.write_text(f'command = "pgdyno compare a b"\ntrials = {trials // machines}\n{tables}')
    order = read_fleet_file(file)
    print("| what | time | most memory so far |\n|---|---:|---:|")
    timed("fill", lambda: fill(order))
    print(f"| its file: {fleet_path(order).stat().st_size / 1e6:.0f} MB | | |")
    found = timed("status", lambda: progress_of(order, None))
    assert found.done == trials - 1  # noqa: S101 — a bench of something else says nothing
    timed("run, with one trial left", lambda: beginning(order))
    with closing(FleetStore(fleet_path(order))) as store:
        assert store.trials()[-1].state is FleetTrialState.FAILED  # noqa: S101
    timed("report", lambda: report(file))


if __name__ == "__main__":
    main()
