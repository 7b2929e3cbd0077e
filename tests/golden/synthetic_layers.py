"""An experiment in which each layer of a plan was left out in turn, with known effects. Made up."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.golden.synthetic import experiment as of_a_plan

from pgdyno.model.experiments.experiment import ArmBlock, Block, Experiment
from pgdyno.model.plans.plan import Terms
from pgdyno.model.variants.variant import Variant

ROUNDS = 8
TIMES = {
    # The plan is 1.5 times as fast. Of application and compiler each is lost alone; what both bring alike
    # (1.5 / (1.2 * 1.1 * 1.0) = 1.136) is lost with neither.
    "sysbench-read-only": {
        "default": 1.0, "plan": 1.5, "without-application": 1.5 / 1.2, "without-compiler": 1.5 / 1.1,
        "without-system": 1.5,
    },
    # 1.3 / (1.4 * 1.2 * 0.95) = 0.815: application and compiler need each other; the system's layer costs.
    "sysbench-read-write": {
        "default": 1.0, "plan": 1.3, "without-application": 1.3 / 1.4, "without-compiler": 1.3 / 1.2,
        "without-system": 1.3 / 0.95,
    },
}  # fmt: skip


def experiment() -> Experiment:
    """Return the experiment: 8 rounds of 2 blocks, half a percent of noise."""
    drawn = random.Random(11)  # noqa: S311 — made-up data, not a secret
    base = of_a_plan()
    blocks = tuple(
        Block(workload, round_, index, base.blocks[0].started_ns + (round_ * 2 + index) * 10**10, arms)
        for round_ in range(ROUNDS)
        for workload, times in TIMES.items()
        for index in range(2)
        for arms in [tuple(_arm(drawn, variant, ratio) for variant, ratio in times.items())]
    )
    variants = tuple(Variant(name) for name in TIMES["sysbench-read-only"])
    return replace(base, variants=variants, blocks=blocks, verdicts=(), terms=Terms(0.05))


def _arm(drawn: random.Random, variant: str, ratio: float) -> ArmBlock:
    rate = 1000 * ratio * (1 + drawn.gauss(0, 0.005))
    return ArmBlock(variant, int(rate * 3), 3.0, {"throughput_tps": rate, "latency_ms_p99": 4 / ratio})
