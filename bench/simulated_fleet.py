"""A simulated fleet on a local Dask cluster: its trials in the store, its overhead, its report.

    python -m bench.simulated_fleet HOME [MACHINES] [TRIALS] [MINUTES] [STORE]      200, 50 and 60 by default

Each machine has a worker, all of them in one process; a trial is a recorded result with noise, two of a
hundred fail, and one of a hundred takes its worker along (``bench.simulated_trial``). After MINUTES the
controller is stopped; started again with the same HOME, it goes on. STORE is a connection string. When all
trials are there: prints one JSON document, and exits with 1 if a trial is not exactly once in the store
(docs/scale.md has the figures).
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import sqlite3
import sys
import time
from contextlib import closing
from multiprocessing.queues import Queue
from pathlib import Path

import dask
from bench.simulated_trial import simulated_trial
from distributed import Scheduler, Worker
from tests.onlookers import Onlooker

from pgdyno.app.fleets.fleet_report import combine_experiments, write_fleet
from pgdyno.app.fleets.run_fleet import run_fleet
from pgdyno.app.fleets.trial_stores import begun_trials, fleet_path
from pgdyno.app.local_machine import open_store
from pgdyno.model.fleets.fleet_order import FleetOrder
from pgdyno.remote.dask_workers import RESOURCE, dask_workers
from pgdyno.report.plain.fleet_text import fleet_text
from pgdyno.store.fleets.fleet_file import read_fleet_file

_QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "10s",
    "logging": {"distributed": "critical"},
}


class _TimeIsUpError(Exception):
    """The controller is stopped."""


def serve(machines: list[str], address: Queue[str]) -> None:
    """Run a scheduler and a worker for each machine, until the process that wants them ends."""

    async def run() -> None:
        async with Scheduler(port=0, dashboard_address="127.0.0.1:0", host="127.0.0.1") as scheduler:
            workers = [
                Worker(scheduler.address, name=name, nthreads=1, resources={RESOURCE: 1}) for name in machines
            ]
            await asyncio.gather(*workers)
            address.put(scheduler.address)
            parent = multiprocessing.parent_process()
            if parent is not None:
                await asyncio.to_thread(parent.join)

    with dask.config.set(_QUIET):
        asyncio.run(run())


def controlled(order: FleetOrder, address: str, minutes: float) -> tuple[float, float, bool]:
    """Run the fleet; return wall and CPU time of the controller, and whether it came to its end."""
    began_s, cpu_s = time.monotonic(), time.process_time()

    def look() -> None:
        if time.monotonic() - began_s > minutes * 60:
            raise _TimeIsUpError

    is_whole = True
    try:
        with dask_workers(address) as workers:
            run_fleet(order, workers, Onlooker(look), make=simulated_trial)
    except _TimeIsUpError:
        is_whole = False
    return time.monotonic() - began_s, time.process_time() - cpu_s, is_whole


def figures(file: Path, order: FleetOrder) -> dict[str, object]:
    """Return what the stores hold, and how long the report takes."""
    began_s = time.monotonic()
    fleet = combine_experiments([str(file)])
    page = write_fleet(fleet)
    text = fleet_text(fleet)
    report_s = time.monotonic() - began_s
    store = begun_trials(order)
    assert store is not None  # noqa: S101 — it was run
    with closing(store):
        trials, events = store.trials(), store.events()
        found = [one.experiment for _, one in store.findings()]
    with closing(open_store()) as experiments:
        stored = experiments.ids()
    return {
        "trials": len(trials),
        "done": sum(one.experiment is not None for one in trials),
        "results": len(found),
        "different_results": len(set(found)),
        "stored_experiments": len(stored),
        "events": events,
        "report_s": round(report_s, 2),
        "page_bytes": page.stat().st_size,
        "text_lines": text.count("\n"),
    }


def size_bytes(path: Path) -> int | None:
    """Return the size of a SQLite file, its log written back; None: there is none."""
    if not path.is_file():
        return None
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.stat().st_size


def main() -> None:
    """Run the simulation."""
    home = Path(sys.argv[1]).absolute()
    machines, trials, minutes = (
        int(sys.argv[at]) if len(sys.argv) > at else usual for at, usual in ((2, 200), (3, 50), (4, 60))
    )
    home.mkdir(parents=True, exist_ok=True)
    os.environ["PGDYNO_HOME"] = str(home)
    file, times = home / "simulated.toml", home / "times.jsonl"
    store = f'store = "{sys.argv[5]}"\n' if len(sys.argv) > 5 else ""
    names = [f"m{number:03d}" for number in range(1, machines + 1)]
    file.write_text(
        f'{store}command = "compare default direct"\ntrials = {trials}\n'
        + "".join(f"[machines.{name}]\n" for name in names)
    )
    order = read_fleet_file(file)
    context = multiprocessing.get_context("spawn")
    address: Queue[str] = context.Queue()
    cluster = context.Process(target=serve, args=(names, address), daemon=True)
    cluster.start()
    try:
        wall_s, cpu_s, is_whole = controlled(order, address.get(timeout=120), minutes)
    finally:
        cluster.terminate()
        cluster.join()
    with times.open("a") as log:
        log.write(json.dumps([wall_s, cpu_s]) + "\n")
    if not is_whole:
        print(f"stopped after {wall_s:.0f} s; start it again: it goes on")
        sys.exit(3)
    runs = [json.loads(line) for line in times.read_text().splitlines()]
    found = figures(file, order)
    count = machines * trials
    print(
        json.dumps(
            {
                **found,
                "controllers": len(runs),
                "wall_s": round(sum(wall for wall, _ in runs)),
                "wall_ms_per_trial": round(1000 * sum(wall for wall, _ in runs) / count, 1),
                "controller_cpu_ms_per_trial": round(1000 * sum(cpu for _, cpu in runs) / count, 1),
                "fleet_store_bytes": size_bytes(fleet_path(order)),
                "experiments_bytes": size_bytes(home / "experiments/experiments.sqlite"),
            },
            indent=1,
        )
    )
    is_once = found["done"] == found["different_results"] == found["stored_experiments"] == count
    sys.exit(0 if is_once else 1)


if __name__ == "__main__":
    main()
