"""``pgdyno fleet``: the same comparison on several machines, measured, and as one report."""

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

if TYPE_CHECKING:  # imported late, so that --help stays fast
    from pgdyno.model.experiments.fleet import FleetOrder
    from pgdyno.results.fleets.run_fleet import Answers, Say


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
    help="Use the workers of this Dask scheduler: tcp:// within this machine, or tls://. Not as root.",
)
@click.option(
    "--tls",
    nargs=3,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="CA CERT KEY",
    help="With tls://: the authority's certificate, ours, and its key, in PEM files.",
)
@click.option("--here", metavar="MACHINE", help="Measure the part of this machine here, without Dask.")
@json_option
def run(
    file: Path,
    *,
    scheduler: str | None,
    tls: tuple[Path, Path, Path] | None,
    here: str | None,
    is_json: bool,
) -> None:
    """Have each machine of a fleet measure the experiment once.

    The answers are bundles, kept in $PGDYNO_HOME/fleets. Run again, it leaves out the machines whose bundle
    is there. Ctrl-C interrupts what is being measured. Exit code 1 if a machine has failed.
    """
    from pgdyno.base.document import to_document
    from pgdyno.results.fleets.run_fleet import run_fleet

    order = _order(file)
    if (scheduler is None) == (here is None):
        raise UsageError(
            "it is not said who measures" if here is None else "--here goes without --scheduler",
            hint="--scheduler ADDRESS for Dask workers on the machines, --here MACHINE for this one alone",
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
    """Combine comparisons that experiments of several machines share.

    Given is the file of a fleet that was run, for the bundles that are there, or experiments: each a bundle's
    file or the id of a stored one. Experiments on hardware that is alike count as one machine, unless the
    machines are named: NAME=FILE.
    """
    from pgdyno.base.document import to_document
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
    """Return the order in a file. Raises: UsageError for options that its command does not have."""
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
            f"the fleet's command is not understood: {error.format_message()}",
            detail=f"pgdyno {' '.join(words)}",
            hint=f"see pgdyno {words[0]} --help",
        ) from error
    if refused := [f"--{name}" for name in ("resume", "gate", "json") if given.get(name)]:
        raise UsageError(
            f'the command of "{file}" has {" and ".join(refused)}',
            hint="leave it out: a machine measures from the beginning, and answers with the experiment",
        )
    return order


@contextmanager
def _answers(
    order: FleetOrder, scheduler: str | None, tls: tuple[Path, Path, Path] | None, say: Say
) -> Iterator[Answers]:
    """Provide the answers of this machine, or of workers.

    Raises: RefusedError for workers' answers as root; as ``dask_scheduler``.
    """
    from pgdyno.remote.dask_scheduler import dask_scheduler
    from pgdyno.results.fleets.run_fleet import from_here, from_workers

    if scheduler is None:
        yield from_here(order, say)
        return
    if os.geteuid() == 0:
        raise RefusedError(
            "fleet run --scheduler is not for root",
            detail="a worker's answer is a Python object, and could run programs here",
            hint="run it as the user of the scheduler and the workers, or another one: docs/guides/fleets.md",
        )
    with dask_scheduler(scheduler, tls) as connected:
        yield from_workers(order, connected, say)
