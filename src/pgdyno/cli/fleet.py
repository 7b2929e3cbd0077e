"""``pgdyno fleet``: run the same comparison on several machines, and report the combined results."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pgdyno.base.errors import RefusedError, UsageError
from pgdyno.cli.output import echo, json_option, open_progress, print_json

if TYPE_CHECKING:  # imported late to keep --help fast
    from pgdyno.model.experiments.fleet import FleetOrder
    from pgdyno.results.fleets.run_fleet import Answers, Report


@click.group(name="fleet")
def command() -> None:
    """Measure on several machines, and combine their results."""


@command.command(
    name="run",
    epilog="\b\nExamples:\n"
    "  pgdyno fleet run fleet.toml --scheduler tcp://127.0.0.1:8786\n"
    "  pgdyno fleet run fleet.toml --scheduler tls://10.0.0.1:8786 --tls ca.pem me.pem me.key\n"
    "  pgdyno fleet run fleet.toml --here db1",
)
@click.argument("file", type=click.Path(path_type=Path), metavar="FLEET.toml")
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Use the workers of this Dask scheduler: tcp:// on this machine, or tls://. Not as root.",
)
@click.option(
    "--tls",
    nargs=3,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="CA CERT KEY",
    help="With tls://: the certificate authority's certificate, the client certificate and its key, as PEM "
    "files.",
)
@click.option("--here", metavar="MACHINE", help="Run the part of MACHINE on this machine, without Dask.")
@json_option
def run(
    file: Path,
    *,
    scheduler: str | None,
    tls: tuple[Path, Path, Path] | None,
    here: str | None,
    is_json: bool,
) -> None:
    """Run the experiment once on each machine of a fleet.

    The results are bundles in $PGDYNO_HOME/fleets. A repeated run skips machines that already have a bundle.
    Ctrl-C interrupts the running measurements. Exit code 1 means that a machine failed.
    """
    from pgdyno.base.facts import to_document
    from pgdyno.results.fleets.run_fleet import run_fleet

    order = _order(file)
    if (scheduler is None) == (here is None):
        raise UsageError(
            "no machine to measure on was named" if here is None else "--here excludes --scheduler",
            hint="--scheduler ADDRESS for Dask workers on the machines, --here MACHINE for this machine only",
        )
    if here is not None and here not in order.machines:
        raise UsageError(
            f'the fleet "{order.name}" has no machine "{here}"',
            detail=f"it has {', '.join(order.machines[:20])}",
        )
    machines = order.machines if here is None else (here,)
    with closing(open_progress()) as progress, _answers(order, scheduler, tls, progress.step) as answers:
        outcomes = run_fleet(order, machines, answers, progress.step)
    if is_json:
        print_json({"fleet": order.name, "machines": to_document(outcomes)})
    else:
        for one in outcomes:
            echo(f"{one.machine}: {one.bundle or f'failed: {one.reason}'}")
        echo(f"The results: pgdyno fleet report {file}")
    if any(one.bundle is None for one in outcomes):
        sys.exit(1)


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
    """Combine the comparisons common to experiments on several machines.

    Give the file of a fleet to combine the bundles of its runs, or give experiments: bundle files or ids of
    stored experiments. Experiments on identical hardware count as one machine, unless the machines are named:
    NAME=FILE.
    """
    from pgdyno.base.facts import to_document
    from pgdyno.results.fleets.fleet_report import combine_experiments, write_fleet
    from pgdyno.results.fleets.fleet_text import fleet_text

    found = combine_experiments(experiments)
    path = write_fleet(found, output)
    if is_json:
        print_json({"fleet": to_document(found), "report": str(path)})
    else:
        echo(fleet_text(found))
        echo(f"Report: {path}")


def _order(file: Path) -> FleetOrder:
    """Return the order in a fleet file. Raises: UsageError for a command with unknown or refused options."""
    from pgdyno.cli import compare, run
    from pgdyno.store.fleet_file import read_fleet_file

    order = read_fleet_file(file)
    words = order.machine.command
    read = {"compare": compare.command, "run": run.command}[words[0]]
    try:
        with read.make_context(words[0], [*words[1:]]) as context:
            given = {**context.params, "json": context.params["is_json"]}
    except click.ClickException as error:
        raise UsageError(
            f"invalid command in the fleet file: {error.format_message()}",
            detail=f"pgdyno {' '.join(words)}",
            hint=f"see pgdyno {words[0]} --help",
        ) from error
    if refused := [f"--{name}" for name in ("resume", "gate", "json") if given.get(name)]:
        raise UsageError(
            f'the command of "{file}" must not contain {" or ".join(refused)}',
            hint="leave it out: each machine measures from the beginning, and returns the whole experiment",
        )
    return order


@contextmanager
def _answers(
    order: FleetOrder, scheduler: str | None, tls: tuple[Path, Path, Path] | None, report_step: Report
) -> Iterator[Answers]:
    """Provide the results of this machine, or of Dask workers.

    Raises: RefusedError for root with Dask workers; like ``dask_scheduler``.
    """
    from pgdyno.remote.dask_scheduler import dask_scheduler
    from pgdyno.results.fleets.run_fleet import from_here, from_workers

    if scheduler is None:
        yield from_here(order, report_step)
        return
    if os.geteuid() == 0:
        raise RefusedError(
            "fleet run --scheduler cannot run as root",
            detail="a worker returns a Python object, which could run programs here",
            hint="run it as the user of the scheduler and workers, or as another user: docs/guides/fleets.md",
        )
    with dask_scheduler(scheduler, tls) as connected:
        yield from_workers(order, connected, report_step)
