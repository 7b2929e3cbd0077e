"""``pgdyno compare``: measure variants side by side, with verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pgdyno.cli._measuring_options import measuring_options, protocol_option, workload_option
from pgdyno.cli.measuring import Measuring, parsed_variant
from pgdyno.cli.output import json_option

if TYPE_CHECKING:  # imported late to keep --help fast
    from pgdyno.base.ports import Progress
    from pgdyno.measure.conditions import LoadSource
    from pgdyno.model.experiments.experiment import Experiment


@click.command(
    name="compare",
    epilog="\b\nExamples:\n"
    "  pgdyno compare default big:shared_buffers=2GB --workload pgbench-select --embedded\n"
    "  pgdyno compare default idx:sql=orders.sql --workload shop.toml --embedded --budget 5m\n"
    "  pgdyno compare default default --workload pgbench-select --blocks 6 --embedded --json\n"
    "  pgdyno compare default big:shared_buffers=2GB --workload pgbench-select --embedded --cell hosts.toml",
)
@click.argument("variants", nargs=-1, required=True, metavar="VARIANT VARIANT...")
@workload_option
@protocol_option
@measuring_options
@json_option
def command(
    variants: tuple[str, ...], *, load_from: LoadSource | None, is_json: bool, **options: Any
) -> None:
    """Compare variants of a server; the first is the baseline.

    A VARIANT has the form [SERVER@]NAME[:setting=value,…]. A setting is one of: a PostgreSQL setting (jit); a
    sysctl (vm.swappiness) or another kernel file by its path, set by root during a trial; an environment
    variable of the server's memory allocator (env.LD_PRELOAD=libjemalloc.so.2); the server's scheduling
    policy (process.scheduling_policy=batch). Kernel files that no lever sets need --allow-file. Settings
    that name paths or programs are refused. Naming the same variant twice measures the noise floor.

    sql=FILE.sql changes the schema of the variant's copy of the data: CREATE, DROP and ALTER INDEX, CREATE
    STATISTICS, storage parameters, statistics targets, VACUUM, ANALYZE, CLUSTER (docs/guides/schemas.md).
    """
    from pgdyno.cli.results import deliver
    from pgdyno.measure.measure import measure
    from pgdyno.studies.compare import comparison

    measuring = Measuring(**options)
    parsed = tuple(map(parsed_variant, variants))
    conditions = measuring.conditions_on(load_from)

    def run(progress: Progress) -> Experiment:
        study = comparison(parsed, conditions.workloads, conditions.design)
        return measure(study, conditions, progress)

    deliver(run, is_json=is_json, is_gate=measuring.gate)
