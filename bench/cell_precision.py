"""How precisely a cell measures, beside one host with the same budget: comparisons of equal variants (A/A).

The load comes from this host, from the cell's load hosts, from them again, and from this host again; each
comparison is an experiment of its own. A true effect of nothing lies in the intervals; their half-width is
what the budget buys. Load hosts that are namespaces of this machine take CPUs from the server as well, and
say nothing about the precision of real ones.

    python -m bench.cell_precision hosts.toml --workload sysbench-read-only --budget 3m
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

from pgdyno.base.units import parse_duration_s
from pgdyno.cli.output import Lines
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.load_hosts import FromCell
from pgdyno.measure.measure import measure
from pgdyno.model.experiments.experiment import Design, Experiment
from pgdyno.model.experiments.verdict import Interval
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.registry import choose_installation
from pgdyno.remote.inventory import read_cell
from pgdyno.studies.compare import comparison
from pgdyno.workload.workload_choice import find_workloads

PLACES = ("host", "cell", "cell", "host")
METRICS = ("throughput_tps", "server_cpu_us_per_transaction")


@dataclass(frozen=True)
class Precision:
    """One metric of an A/A experiment: its effect (true: 1), and half of its interval's width in percent."""

    place: str
    metric: str
    rounds: int
    blocks: int
    void_blocks: int
    effect: float | None
    half_width_percent: float | None


def measured(workload: str, budget_s: float, seed: int, cell_file: Path | None) -> Experiment:
    """Compare the default configuration with itself for a time."""
    conditions = Conditions(
        choose_installation(is_embedded=True, bin_directory=None),
        find_workloads((workload,)),
        Design(seed=seed),
        budget_s,
        load_from=FromCell(read_cell(cell_file)) if cell_file else None,
    )
    same = (Variant("default"), Variant("default"))
    study = comparison(same, conditions.workloads, conditions.design)
    return measure(study, conditions, Lines())


def precisions(place: str, experiment: Experiment) -> list[Precision]:
    """Return the precision of each metric."""
    found = [verdict for verdict in experiment.verdicts if verdict.metric in METRICS]
    return [
        Precision(
            place,
            verdict.metric,
            verdict.rounds,
            verdict.blocks,
            verdict.void_blocks,
            verdict.effect,
            half_width_percent(verdict.interval),
        )
        for verdict in found
    ]


def half_width_percent(interval: Interval | None) -> float | None:
    """Return half of an interval's width in logarithms, in percent."""
    return None if interval is None else 50 * math.log(interval.high / interval.low)


def main() -> None:
    """Measure by turns, and print what was found as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cell", type=Path)
    parser.add_argument("--workload", default="sysbench-read-only")
    parser.add_argument("--budget", default="3m", help="of each of the four comparisons")
    asked = parser.parse_args()
    found: list[Precision] = []
    for seed, place in enumerate(PLACES, 1):
        cell_file = asked.cell if place == "cell" else None
        experiment = measured(asked.workload, parse_duration_s(asked.budget), seed, cell_file)
        found += precisions(place, experiment)
        print(json.dumps([asdict(one) for one in found], indent=2), flush=True)


if __name__ == "__main__":
    main()
