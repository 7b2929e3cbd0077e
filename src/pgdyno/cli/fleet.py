"""``pgdyno fleet``: the same comparison on several machines, measured, and as one report."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgdyno.cli._fleet_watch import FleetWatch
from pgdyno.cli.output import echo, json_option, print_json, print_wide
from pgdyno.model.errors import UsageError

if TYPE_CHECKING:  # imported late, so that --help stays fast
    from pgdyno.model.fleets.fleet_order import FleetOrder
    from pgdyno.model.fleets.fleet_progress import FleetProgress
    from pgdyno.model.fleets.trial_workers import TrialWorkers
    from pgdyno.remote.dask_workers import Waiting

_file_argument = click.argument("file", type=click.Path(path_type=Path), metavar="FLEET.toml")
_scheduler_option = click.option(
    "--scheduler", metavar="ADDRESS", help="Use the workers of this Dask scheduler (tcp://…, tls://…)."
)


@click.group(name="fleet")
def command() -> None:
    """Measure on several machines, and combine their results."""


@command.command(
    name="plan", epilog="\b\nExample:\n  pgdyno fleet plan fleet.toml --scheduler tcp://10.0.0.1:8786"
)
@_file_argument
@_scheduler_option
@json_option
def plan(file: Path, *, scheduler: str | None, is_json: bool) -> None:
    """Show a fleet's trials, their time and price.

    Nothing is started. With --scheduler, machines are named that have no worker there.
    """
    order, budget_s = _order(file)
    _show_state(order, budget_s, () if scheduler is None else _missing(order, scheduler), is_json=is_json)


@command.command(
    name="run",
    epilog="\b\nExamples:\n"
    "  pgdyno fleet run fleet.toml --scheduler tcp://10.0.0.1:8786\n"
    "  pgdyno fleet run fleet.toml --here db1",
)
@_file_argument
@_scheduler_option
@click.option("--here", metavar="MACHINE", help="Make the trials of this machine here, without workers.")
@json_option
def run(file: Path, *, scheduler: str | None, here: str | None, is_json: bool) -> None:
    """Have a fleet's trials made by workers.

    Their experiments are stored here. It can be stopped and started again: it goes on. With a store in the
    file, controllers on several machines share the trials. Exit code 1 if trials are left that failed, or
    whose machine has no worker.
    """
    from pgdyno.app.fleets.run_fleet import run_fleet
    from pgdyno.remote.dask_workers import Waiting

    order, budget_s = _order(file)
    watch = FleetWatch(order, budget_s)
    try:
        again = shlex.join(["pgdyno", "fleet", "run", str(file), "--scheduler", str(scheduler)])
        with _workers(order, scheduler, here, Waiting(watch.say, again)) as workers:
            run_fleet(order, workers, watch)
    finally:
        watch.close()
    done = _show_state(order, budget_s, (), is_json=is_json)
    if done.done < done.trials:
        sys.exit(1)
    if not is_json:
        echo(f"Its results: pgdyno fleet report {file}")


@command.command(name="status")
@_file_argument
@json_option
def status(file: Path, *, is_json: bool) -> None:
    """Show how far a fleet is, also while it runs."""
    _show_state(*_order(file), (), is_json=is_json)


@command.command(
    name="report",
    epilog="\b\nExamples:\n"
    "  pgdyno fleet report fleet.toml\n"
    "  pgdyno fleet report epyc.zip xeon.zip graviton.zip\n"
    "  pgdyno fleet report db1=a.zip db2=b.zip db3=20261122-101500-compare",
)
@click.argument("experiments", nargs=-1, required=True, metavar="FLEET.toml | [NAME=]FILE|ID ...")
@click.option(
    "--output", type=click.Path(path_type=Path), metavar="FILE.html", help="Where to write the page."
)
@json_option
def report(experiments: tuple[str, ...], *, output: Path | None, is_json: bool) -> None:
    """Combine comparisons that experiments of several machines share.

    Given is the file of a fleet that was run, for the results it has so far, or experiments: each a bundle's
    file or the id of a stored one. Experiments on hardware that is alike count as one machine, unless the
    machines are named: NAME=FILE.
    """
    from pgdyno.app.fleets.fleet_report import combine_experiments, write_fleet
    from pgdyno.model.document import to_document
    from pgdyno.report.plain.fleet_text import fleet_text

    found = combine_experiments(experiments)
    path = write_fleet(found, output)
    if is_json:
        print_json({"fleet": to_document(found), "report": str(path)})
    else:
        echo(fleet_text(found))
        echo(f"Report: {path}")


def _order(file: Path) -> tuple[FleetOrder, float | None]:
    """Return the order in a file, and the budget of its experiment, if it has one.

    Its command is read as the command line would be. Raises: UsageError for options that it does not have.
    """
    from pgdyno.store.fleets.fleet_file import read_fleet_file

    order = read_fleet_file(file)
    given = _read_command(order.command)
    if refused := [f"--{name}" for name in ("resume", "gate", "json") if given.get(name)]:
        raise UsageError(
            f'the command of "{file}" has {" and ".join(refused)}',
            hint="leave it out: a trial is measured from its beginning, and its answer is the experiment",
        )
    return order, given.get("budget_s")


def _read_command(words: Sequence[str]) -> dict[str, Any]:
    """Return a command's options by parameter. Raises: UsageError for a word that it does not take."""
    from pgdyno.cli import compare, run

    read = {"compare": compare.command, "run": run.command}[words[0]]
    try:
        with read.make_context(words[0], [*words[1:]]) as context:
            return {**context.params, "json": context.params["is_json"]}
    except click.ClickException as error:
        raise UsageError(
            f"the fleet's command is not understood: {error.format_message()}",
            detail=f"pgdyno {' '.join(words)}",
            hint=f"see pgdyno {words[0]} --help",
        ) from error


def _workers(
    order: FleetOrder, scheduler: str | None, here: str | None, waiting: Waiting | None = None
) -> AbstractContextManager[TrialWorkers]:
    """Return the requested workers. Raises: UsageError unless exactly one kind is requested."""
    if (scheduler is None) == (here is None):
        raise UsageError(
            "it is not said who makes the trials" if here is None else "--here goes without --scheduler",
            hint="--scheduler ADDRESS for Dask workers on the machines, --here MACHINE for this one alone",
        )
    if scheduler is not None:
        from pgdyno.remote.dask_workers import dask_workers

        return dask_workers(scheduler, waiting)
    from pgdyno.app.fleets.worker_here import WorkerHere

    names = [one.name for one in order.machines]
    if here not in names:
        raise UsageError(
            f'the fleet "{order.name}" has no machine "{here}"', detail=f"it has {', '.join(names[:20])}"
        )
    return nullcontext(WorkerHere(here))


def _missing(order: FleetOrder, scheduler: str) -> list[str]:
    """Return the machines without a worker."""
    with _workers(order, scheduler, None) as workers:
        there = workers.beats()
    return [one.name for one in order.machines if one.name not in there]


def _show_state(
    order: FleetOrder, budget_s: float | None, missing: Collection[str], *, is_json: bool
) -> FleetProgress:
    from pgdyno.app.fleets.fleet_state import progress_of
    from pgdyno.model.document import to_document
    from pgdyno.report.elements.terminal import PlainTable
    from pgdyno.report.plain.fleet_progress_text import progress_line, progress_notes, progress_table

    found = progress_of(order, budget_s)
    if is_json:
        print_json({"fleet": to_document(found), "without_worker": to_document([*missing])})
        return found
    table = progress_table(found)
    echo(f"{table.caption}\n")
    print_wide(PlainTable(table))
    echo(f"\n{progress_line(found)}.")
    for note in progress_notes(found, missing):
        echo(note)
    return found
