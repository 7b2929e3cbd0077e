"""What can be told apart on this machine, and how soon: the minimum detectable effect against time.

For both designs (duet, alternating) this runs the same A/A comparison for as long as ``--budget`` says, then
computes, from its first 2, 3, … rounds, the minimum detectable effect for throughput and for server CPU per
transaction against the time those rounds took, set-up included. Prints a table; with ``--output`` it also
writes the points as JSON and draws them as SVG.

    python -m bench.precision --workload sysbench-read-only --budget 10m --output docs/results/precision
"""

from __future__ import annotations

import argparse
import itertools
import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from bench.precision_chart import Point, precision_chart

from pgdyno.base.units import parse_duration_s
from pgdyno.cli.output import open_progress
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.design.schedule import alternating
from pgdyno.measure.measure import measure
from pgdyno.measure.verdicts.analysis import analyse
from pgdyno.model.experiments.experiment import Design, Experiment
from pgdyno.model.experiments.workload import DRIVER
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.registry import choose_installation
from pgdyno.studies.compare import comparison
from pgdyno.workload.workload_choice import find_workloads

METRICS = ("throughput_tps", "server_cpu_us_per_transaction")


def measured(kind: str, workload: str, generator: str, budget_s: float, seed: int) -> Experiment:
    """Run one A/A comparison."""
    design = replace(Design(), seed=seed)
    if kind == "alternating":
        design = alternating(design)
    conditions = Conditions(
        choose_installation(is_embedded=True, bin_directory=None),
        find_workloads((workload,), generator=generator),
        design,
        budget_s,
    )
    progress = open_progress()
    try:
        same = (Variant("default"), Variant("default"))
        study = comparison(same, conditions.workloads, conditions.design)
        return measure(study, conditions, progress)
    finally:
        progress.close()


def points(experiment: Experiment) -> list[Point]:
    """Return the minimum detectable effect after every round."""
    names = [variant.name for variant in experiment.variants]
    rounds = sorted({block.round for block in experiment.blocks})
    start_ns = datetime.fromisoformat(experiment.created).timestamp() * 1e9
    found = []
    for last in rounds[1:]:
        seen = [block for block in experiment.blocks if block.round <= last]
        # To the end of the round's last block; what follows belongs to the next round.
        elapsed_s = (max(b.started_ns for b in seen) - start_ns) / 1e9 + experiment.design.block_s
        verdicts = analyse(
            seen,
            workloads=experiment.workloads,
            variants=names,
            baseline=experiment.baseline,
            design=experiment.design,
        )
        found += [
            Point(_label(experiment), v.metric, v.rounds, elapsed_s, v.mde)
            for v in verdicts
            if v.metric in METRICS
        ]
    return found


def _label(experiment: Experiment) -> str:
    (generator,) = experiment.generators.values()
    kind = experiment.design.kind.value
    return kind if generator == DRIVER else f"{kind}-{generator}"


def _print_spread(experiment: Experiment) -> None:
    """Print what of the spread is between rounds and within them, as standard deviations of log-ratios."""
    for verdict in experiment.verdicts:
        if verdict.metric in METRICS and verdict.components is not None:
            between, within = verdict.components.between_rounds, verdict.components.within_rounds
            print(f"  {verdict.metric}: sd {between:.4f} between rounds, {within:.4f} within")


def main() -> None:
    """Run both designs and print what each can tell apart."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workload", default="pgbench-select")
    parser.add_argument("--budget", default="10m")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--design", action="append", choices=["duet", "alternating"])
    parser.add_argument("--generator", action="append", help="repeatable [default: driver]")
    parser.add_argument("--goal", type=float, default=0.01, help="a dashed line in the chart")
    parser.add_argument("--output", type=Path, help="where to write: OUTPUT-WORKLOAD.json and .svg")
    asked = parser.parse_args()
    found: list[Point] = []
    asked_for = itertools.product(asked.design or ["duet", "alternating"], asked.generator or [DRIVER])
    for kind, generator in asked_for:
        experiment = measured(kind, asked.workload, generator, parse_duration_s(asked.budget), asked.seed)
        found += points(experiment)
        void = sum(1 for block in experiment.blocks if block.void)
        print(
            f"{_label(experiment)}: experiment {experiment.id}, {len(experiment.blocks)} blocks, {void} void"
        )
        for verdict in experiment.verdicts:
            print(f"  {verdict.metric}: {verdict.decision.value}, {verdict.reason}")
        _print_spread(experiment)
    print(f"\n{'design':20} {'metric':32} {'rounds':>6} {'time':>7} {'MDE':>8}")
    for point in found:
        mde = "-" if point.mde is None else f"{point.mde:.2%}"
        print(f"{point.design:20} {point.metric:32} {point.rounds:6} {point.elapsed_s:6.0f}s {mde:>8}")
    if asked.output:
        name = f"{asked.output}-{asked.workload}"
        Path(f"{name}.json").write_text(json.dumps([vars(point) for point in found], indent=1) + "\n")
        Path(f"{name}.svg").write_text(precision_chart(found, asked.workload, asked.goal) + "\n")


if __name__ == "__main__":
    main()
