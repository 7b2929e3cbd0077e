"""Measures a fleet: each machine once. A machine's answer is a bundle, which is stored here.

A machine with a valid bundle is done: the next run skips it.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from pgdyno.base import numbers
from pgdyno.base.errors import LockHeldError, MeasurementError, PgdynoError, StorageError, as_pgdyno_error
from pgdyno.host.files.lock import exclusive_lock
from pgdyno.measure.design.isolation import split_cpus
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.fleet import FleetOrder, MachineOrder
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.remote.dask_scheduler import DaskScheduler, task_is_wanted
from pgdyno.remote.forwarded_command import allowed_cpus, run_pgdyno
from pgdyno.results.bundle import export_bundle, verify_bundle
from pgdyno.results.bundle_import import verified_experiment
from pgdyno.results.stored import load_stored
from pgdyno.store.files import write_whole

_BUSY_S = 2.0  # arbitrary: between two attempts on a machine where another pgdyno measures


def measure_on_worker(order: MachineOrder) -> bytes:
    """Measure in a Dask task, which is interrupted when no client waits for it any more.

    Raises: RefusedError on a worker that runs as root or is reachable by network; as ``measure_machine``.
    """
    return measure_machine(order, task_is_wanted())


def measure_machine(
    order: MachineOrder,
    is_wanted: Callable[[], bool] = lambda: True,
    run: Callable[..., str] = run_pgdyno,
) -> bytes:
    """Run the ordered command and return the bundle of its experiment, without raw series.

    Waits while another pgdyno measures on this machine, for example that of a killed worker.
    Raises: MeasurementError if the command fails; LockHeldError if the machine was not free within the limit;
    StorageError.
    """
    servers = split_cpus(allowed_cpus(), is_wanted=True)  # pgdyno's own split: the other CPUs issue the load
    words = [*order.command, "--json"]
    ends_s = time.monotonic() + order.limit_s
    while True:
        try:
            printed = run(words, order.limit_s, is_wanted, worker_cpus=servers.client)
        except LockHeldError:
            if time.monotonic() >= ends_s or not is_wanted():
                raise
            time.sleep(_BUSY_S)
        else:
            return _bundle(_experiment(printed))


def _experiment(printed: str) -> str:
    try:
        return str(json.loads(printed)["experiment"])
    except (ValueError, KeyError, TypeError) as error:
        raise MeasurementError(
            "the command printed no experiment",
            detail=printed[:200],
            hint="order a command that measures: pgdyno compare … or pgdyno run …",
        ) from error


def _bundle(experiment: str) -> bytes:
    """Return the bundle's bytes. The raw series, some megabytes, stay in the store of this machine."""
    with tempfile.TemporaryDirectory(prefix="pgdyno-fleet-") as directory:
        return export_bundle(load_stored(experiment), Path(directory) / "answer.zip").read_bytes()


_MOST_BYTES = 64 << 20  # of a bundle without raw series: measured sizes are 40 kB to 1 MB
_POLL_S = 1.0  # arbitrary
_MOST_NAMED = 8  # machines in a line
_AWAITED = "waiting for workers with these resources"
Answers: TypeAlias = Callable[[Sequence[str]], Iterator[tuple[str, object]]]
"""Yields each of these machines with its answer, or with an error instead."""
Report: TypeAlias = Callable[[str], None]


@dataclass(frozen=True)
class MachineOutcome:
    """A machine's bundle, or the reason why it has none."""

    machine: str
    bundle: Path | None
    reason: str | None = None


def run_fleet(
    order: FleetOrder, machines: Sequence[str], answers: Answers, report: Report
) -> list[MachineOutcome]:
    """Measure the machines that are not done, and return the outcome of each machine.

    Raises: LockHeldError while another pgdyno runs the fleet here; StorageError; RemoteHostError.
    """
    directory = fleet_directory(order)
    directory.mkdir(mode=0o700, exist_ok=True)
    with exclusive_lock(directory / "run.lock"):
        done, reasons = kept_bundles(order, report), {}
        for machine, answer in answers([one for one in machines if one not in done]):
            try:
                done[machine] = _taken(order, machine, answer, done)
            except MeasurementError as error:
                reasons[machine] = _words(error)
                report(f"{machine}: {reasons[machine]}")
    return [
        MachineOutcome(one, directory / order.bundle_name(one) if one in done else None, reasons.get(one))
        for one in machines
    ]


def kept_bundles(order: FleetOrder, report: Report) -> dict[str, Experiment]:
    """Return the experiments of the machines that are done; invalid bundles are passed to ``report``."""
    found = {}
    for machine in order.machines:
        path = fleet_directory(order) / order.bundle_name(machine)
        if path.exists():
            try:
                found[machine] = verified_experiment(verify_bundle(path))
            except StorageError as error:
                report(f"{machine} counts as not measured: {_words(error)}")
    return found


def fleet_directory(order: FleetOrder) -> Path:
    """Return the directory of a fleet's bundles."""
    return workspace().fleets() / order.name


def from_here(order: FleetOrder, report: Report) -> Answers:
    """Return a source of answers that measures on this machine, in this process."""

    def answers(machines: Sequence[str]) -> Iterator[tuple[str, object]]:
        for machine in machines:
            report(f"{machine}: measuring here")
            try:
                yield machine, measure_machine(order.machine)
            except PgdynoError as error:
                yield machine, error

    return answers


def from_workers(
    order: FleetOrder,
    scheduler: DaskScheduler,
    report: Report,
    make: Callable[[MachineOrder], bytes] = measure_on_worker,
) -> Answers:
    """Return a source of answers from workers. It waits for machines without a worker, and reports this."""

    def answers(machines: Sequence[str]) -> Iterator[tuple[str, object]]:
        waiting, last = set(machines), ""
        for machine in machines:
            scheduler.give(machine, make, order.machine)
        while waiting:
            time.sleep(_POLL_S)
            for machine, answer in scheduler.answers():
                waiting.remove(machine)
                yield machine, answer
            measuring = scheduler.measuring() & waiting
            if waiting:
                parts = (_listed("measuring", measuring), _listed(_AWAITED, waiting - measuring))
                progress = "; ".join(filter(None, (f"{len(waiting)} to go", *parts)))
                if progress != last:
                    report(progress)
                last = progress

    return answers


def _listed(words: str, machines: Collection[str]) -> str:
    more = len(machines) - _MOST_NAMED
    named = ", ".join(sorted(machines)[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"{words}: {named}" if machines else ""


def _taken(order: FleetOrder, machine: str, answer: object, done: Mapping[str, Experiment]) -> Experiment:
    """Store an answer's bundle and return its experiment.

    Raises: MeasurementError if it does not answer this order; StorageError if it cannot be stored.
    """
    if isinstance(answer, BaseException):
        raise MeasurementError(_words(answer))
    if not isinstance(answer, bytes):
        raise MeasurementError(f"the answer is not a bundle, but a {type(answer).__name__}")
    if len(answer) > _MOST_BYTES:
        raise MeasurementError(
            f"the answer is too large: {numbers.size(len(answer))}, more than {numbers.size(_MOST_BYTES)}"
        )
    with tempfile.TemporaryDirectory(prefix="pgdyno-answer-") as directory:
        path = Path(directory) / "answer.zip"
        path.write_bytes(answer)
        try:
            experiment = verified_experiment(verify_bundle(path))
        except StorageError as error:
            raise MeasurementError(
                "the answer is not a valid bundle", detail=error.detail or str(error)
            ) from error
    _require_ordered(experiment, done)
    write_whole(fleet_directory(order) / order.bundle_name(machine), answer)
    return experiment


def _require_ordered(experiment: Experiment, done: Mapping[str, Experiment]) -> None:
    """Raise MeasurementError if it compares nothing, is another machine's, or answers another order."""
    compared = _compared(experiment)
    if not compared:
        raise MeasurementError(f'the experiment "{experiment.id}" compares nothing')
    for machine, other in done.items():
        if experiment.id == other.id or experiment.blocks == other.blocks:
            raise MeasurementError(f'the experiment "{experiment.id}" is the one of {machine}')
        if not compared & _compared(other):
            raise MeasurementError(
                f"the experiment has no comparison in common with that of {machine}",
                detail=f"its question: {experiment.question} That of {machine}: {other.question}",
            )


def _compared(experiment: Experiment) -> set[tuple[str, str, str]]:
    return {(one.workload, one.variant, one.baseline) for one in experiment.verdicts}


def _words(error: BaseException) -> str:
    """Return an error in one line. Errors of workers may have any type and any text."""
    if not isinstance(error, Exception):
        return type(error).__name__
    known = as_pgdyno_error(error)
    return " ".join(": ".join(filter(None, (known.message, known.detail))).splitlines())
