"""An experiment of peers beside pgdyno's configurations, with known effects. Made up."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.golden.synthetic import experiment as of_a_plan

from pgdyno.model.experiments.experiment import ArmBlock, Block, Experiment
from pgdyno.model.variants.variant import Variant

ROUNDS = 8
SPEEDS = {
    "sysbench-read-only": {
        "default": 1.0, "pgconfig": 1.1, "pgtune": 1.25, "mine": 1.2,
        "plan": 1.5, "without-plan_cache_mode": 1.4, "whole-stack": 2.0,
    },
    # pgconfig is the fastest peer here, and the plan without plan_cache_mode is no faster.
    "sysbench-read-write": {
        "default": 1.0, "pgconfig": 1.2, "pgtune": 1.1, "mine": 1.0,
        "plan": 1.32, "without-plan_cache_mode": 1.2, "whole-stack": 1.8,
    },
}  # fmt: skip


def experiment() -> Experiment:
    """Return the experiment: 8 rounds of 2 blocks, half a percent of noise."""
    drawn = random.Random(26)  # noqa: S311 — made-up data, not a secret
    base = of_a_plan()
    blocks = tuple(
        Block(workload, round_, index, base.blocks[0].started_ns + (round_ * 2 + index) * 10**10, arms)
        for round_ in range(ROUNDS)
        for workload, speeds in SPEEDS.items()
        for index in range(2)
        for arms in [tuple(_arm(drawn, variant, speed) for variant, speed in speeds.items())]
    )
    variants = tuple(Variant(name) for name in SPEEDS["sysbench-read-only"])
    return replace(
        base, name="peers", variants=variants, blocks=blocks, verdicts=(), plan=None,
        options={"memory": "3328MB"},
    )  # fmt: skip


def _arm(drawn: random.Random, variant: str, speed: float) -> ArmBlock:
    rate = 1000 * speed * (1 + drawn.gauss(0, 0.005))
    return ArmBlock(variant, int(rate * 3), 3.0, {"throughput_tps": rate, "latency_ms_p99": 4 / speed})
