"""Whether servers are paired more closely by letting transactions end before the next turn, or by freezing.

pgdyno-driver drains, sysbench and pgbench are frozen by signals. Both run the same comparison of two
identical servers (A/A), a round of four blocks at a time, A B B A and so on. The true ratio is 1, so that a
block's log-ratio is its error. Blocks that the usual rules call void are left out, and no round is repeated
for them: neighbours do not disturb both designs alike.

    within     standard deviation of blocks around the mean of their round
    overall    root mean square of all blocks: what a started server adds is in it

The interval of the ratio (drained / frozen) is a bootstrap over pairs of rounds.

    python -m bench.turns --workload sysbench-read-only --budget 10m --json turns.json
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pgdyno.base.units import parse_duration_s
from pgdyno.cli.output import Lines
from pgdyno.measure.blocks.blocks import void_reason
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.measure import measure
from pgdyno.model.experiments.experiment import Block, Design, VoidThresholds
from pgdyno.model.experiments.workload import DRIVER
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.registry import choose_installation
from pgdyno.studies.compare import comparison
from pgdyno.workload.workload_choice import find_workloads

METRICS = ("throughput_tps", "server_cpu_us_per_transaction", "latency_ms_p99")
NOTHING_IS_VOID = VoidThresholds(1.0, 1.0, 2.0, 1.0, 1.0)
BLOCKS = 4
RESAMPLES = 10_000
LEVEL = 0.95
MINIMUM_PAIRS = 5

Errors = list[NDArray[np.float64]]
"""By round: the log-ratios of two identical arms in the blocks that count."""


@dataclass(frozen=True)
class Comparison:
    """Drained against frozen for one metric: spreads as fractions; ratios with their interval."""

    metric: str
    drained_blocks: int
    frozen_blocks: int
    drained_within: float
    frozen_within: float
    drained_overall: float
    frozen_overall: float
    ratio_within: tuple[float, float, float]  # estimate, low, high
    ratio_overall: tuple[float, float, float]


def run_round(workload: str, generator: str, seed: int) -> dict[str, list[float]]:
    """Run one A/A round and return the log-ratios of the blocks that count, by metric."""
    design = replace(Design(), rounds=1, blocks_per_round=BLOCKS, seed=seed, thresholds=NOTHING_IS_VOID)
    conditions = Conditions(
        choose_installation(is_embedded=True, bin_directory=None),
        find_workloads((workload,), generator=generator),
        design,
    )
    same = (Variant("default"), Variant("default"))
    study = comparison(same, conditions.workloads, conditions.design)
    experiment = measure(study, conditions, Lines())
    return {
        metric: [
            math.log(second.values[metric] / first.values[metric])
            for first, second in (block.arms for block in experiment.blocks if _counts(block))
        ]
        for metric in METRICS
    }


def _counts(block: Block) -> bool:
    return void_reason(block.audit, VoidThresholds()) is None


def within(errors: Errors) -> float:
    """Return the standard deviation of blocks around the mean of their round."""
    squares = sum(float(((of_round - of_round.mean()) ** 2).sum()) for of_round in errors if of_round.size)
    freedom = sum(of_round.size - 1 for of_round in errors if of_round.size)
    return math.sqrt(squares / freedom) if freedom else math.nan


def overall(errors: Errors) -> float:
    """Return the root mean square of all errors."""
    return float(np.sqrt((np.concatenate(errors) ** 2).mean()))


def compared(metric: str, drained: Errors, frozen: Errors) -> Comparison:
    """Return both spreads and their ratios; row N of one was measured beside row N of the other."""
    random = np.random.default_rng(1)
    picks = random.integers(len(drained), size=(RESAMPLES, len(drained)))
    tail = 100 * (1 - LEVEL) / 2
    ratios = []
    for spread in (within, overall):
        resampled = [
            spread([drained[pair] for pair in pick]) / spread([frozen[pair] for pair in pick])
            for pick in picks
        ]
        low, high = np.nanpercentile(resampled, [tail, 100 - tail])
        ratios.append((spread(drained) / spread(frozen), float(low), float(high)))
    return Comparison(
        metric,
        sum(of_round.size for of_round in drained),
        sum(of_round.size for of_round in frozen),
        within(drained),
        within(frozen),
        overall(drained),
        overall(frozen),
        ratios[0],
        ratios[1],
    )


def main() -> None:
    """Run pairs of rounds until the budget is used, and print what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workload", default="sysbench-read-only")
    parser.add_argument("--frozen", default="sysbench", help="the generator that is frozen")
    parser.add_argument("--budget", default="10m")
    parser.add_argument("--json", type=Path, help="where to write every block's log-ratio")
    asked = parser.parse_args()
    began_s, budget_s = time.monotonic(), parse_duration_s(asked.budget)
    found: dict[str, list[dict[str, list[float]]]] = {DRIVER: [], asked.frozen: []}
    pair = 0
    while pair < MINIMUM_PAIRS or (time.monotonic() - began_s) * (pair + 1) / pair < budget_s:
        order = (DRIVER, asked.frozen) if pair % 2 == 0 else (asked.frozen, DRIVER)
        for generator in order:
            found[generator].append(run_round(asked.workload, generator, seed=pair + 1))
        pair += 1
    comparisons = [
        compared(metric, *([np.array(one[metric]) for one in rounds] for rounds in found.values()))
        for metric in METRICS
    ]
    print(
        f"\n{asked.workload}: {pair} pairs of rounds, {BLOCKS} blocks each; drained / frozen ({asked.frozen})"
    )
    for one in comparisons:
        within_text = f"within {one.drained_within:.2%} / {one.frozen_within:.2%}"
        overall_text = f"overall {one.drained_overall:.2%} / {one.frozen_overall:.2%}"
        print(
            f"  {one.metric:32} {one.drained_blocks} / {one.frozen_blocks} blocks,"
            f" {within_text} = {_interval(one.ratio_within)}, {overall_text} = {_interval(one.ratio_overall)}"
        )
    if asked.json:
        document = {"comparisons": [asdict(one) for one in comparisons], "log_ratios": found}
        asked.json.write_text(json.dumps(document, indent=1) + "\n")


def _interval(ratio: tuple[float, float, float]) -> str:
    estimate, low, high = ratio
    return f"{estimate:.2f} ({low:.2f}-{high:.2f})"


if __name__ == "__main__":
    main()
