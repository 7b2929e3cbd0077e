"""``pgdyno bench``: measure the throughput and latency of one variant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pgdyno.cli._measuring_options import measuring_options, protocol_option
from pgdyno.cli.measuring import Measuring, parsed_variant
from pgdyno.cli.output import json_option

if TYPE_CHECKING:  # imported late to keep --help fast
    from pgdyno.base.ports import Progress
    from pgdyno.measure.conditions import LoadSource
    from pgdyno.model.experiments.experiment import Experiment


@click.command(
    name="bench",
    epilog="\b\nExamples:\n"
    "  pgdyno bench pgbench-select --embedded --blocks 8\n"
    "  pgdyno bench pgbench-select pgbench-tpcb --variant big:shared_buffers=2GB --embedded\n"
    "  pgdyno bench --script own.sql --protocol simple --embedded",
)
@click.argument("workloads", nargs=-1, metavar="WORKLOAD...")
@click.option(
    "--variant",
    default="default",
    show_default=True,
    metavar="VARIANT",
    help="The variant to measure: [SERVER@]NAME[:setting=value,…].",
)
@protocol_option
@measuring_options
@json_option
def command(variant: str, *, load_from: LoadSource | None, is_json: bool, **options: Any) -> None:
    """Measure one variant alone, without a verdict."""
    from pgdyno.cli.results import deliver
    from pgdyno.measure.measure import measure
    from pgdyno.studies.compare import one_alone

    measuring = Measuring(**options)
    parsed = parsed_variant(variant)

    def run(progress: Progress) -> Experiment:
        conditions = measuring.conditions_on(load_from)
        study = one_alone(parsed, conditions.workloads, conditions.design)
        return measure(study, conditions, progress)

    deliver(run, is_json=is_json, is_gate=measuring.gate)
