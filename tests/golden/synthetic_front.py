"""A made-up search for throughput and WAL, and the proof of its front, with known effects."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from functools import cache

from tests.golden.synthetic import experiment as of_a_plan

from pgdyno.experiments.verdicts.analysis import analyse
from pgdyno.model.experiments.experiment import ArmBlock, Block, Experiment, ResetPolicy
from pgdyno.model.plans.plan import Layer
from pgdyno.model.plans.terms import PLAN
from pgdyno.model.tuning.aims import Aim
from pgdyno.model.tuning.space import Dimension, Point, Space
from pgdyno.model.tuning.tuning import FrontMember, Trial, TrialRound, TrialState, Tuning
from pgdyno.model.variants.variant import Variant

AIMS = (Aim.THROUGHPUT, Aim.WAL)
WORKLOAD = "pgbench-tpcb"
ROUNDS = 8
SEARCH = "20261121-090000-tune"
RATIOS = {  # throughput and WAL per transaction over the default's
    "default": (1.0, 1.0),
    "member-1": (1.40, 1.0),
    "member-2": (1.25, 0.55),
    "member-3": (1.252, 0.551),  # as member-2, with more changes
    "member-4": (1.10, 0.80),  # member-2 is better in both
    PLAN: (1.38, 1.10),
}
_PLAN: Point = {"shared_buffers": "2048MB", "work_mem": "16MB"}
_POINTS: dict[str, Point] = {
    "member-1": {**_PLAN, "plan_cache_mode": "force_generic_plan"},
    "member-2": {**_PLAN, "wal_compression": "lz4"},
    "member-3": {**_PLAN, "wal_compression": "lz4", "jit": "off", "io_workers": "8"},
    "member-4": {**_PLAN, "wal_compression": "pglz"},
}


@cache
def experiment() -> Experiment:
    """Return the proof: 8 rounds of a block each, half a percent of noise."""
    drawn = random.Random(6)  # noqa: S311 — made-up data, not a secret
    base = of_a_plan()
    blocks = tuple(
        Block(
            WORKLOAD,
            round_,
            0,
            base.blocks[0].started_ns + round_ * 10**10,
            tuple(_arm(drawn, name, *ratios) for name, ratios in RATIOS.items()),
        )
        for round_ in range(ROUNDS)
    )
    names = tuple(RATIOS)
    verdicts = analyse(blocks, workloads=(WORKLOAD,), variants=names, baseline="default", design=base.design)
    return replace(
        base,
        name="tune",
        question=f"Which configurations are best in throughput and WAL per transaction ({SEARCH})?",
        variants=tuple(Variant(name, _POINTS.get(name, _PLAN if name == PLAN else {})) for name in names),
        workloads=(WORKLOAD,),
        reset_policies={WORKLOAD: ResetPolicy.RESTORE},
        scales={WORKLOAD: 4},
        blocks=blocks,
        verdicts=verdicts,
        plan=None,
        noise_floor=(),
        settings=(),
    )


def _arm(drawn: random.Random, name: str, throughput: float, wal: float) -> ArmBlock:
    rate = 1000 * throughput * (1 + drawn.gauss(0, 0.005))
    written = 900 * wal * (1 + drawn.gauss(0, 0.005))
    values = {"throughput_tps": rate, "wal_bytes_per_transaction": written, "latency_ms_p99": 4 / throughput}
    return ArmBlock(name, int(rate * 6), 6.0, values)


def tuning() -> Tuning:
    """Return the search: the plan, a trial for each member, and one that failed."""
    trials = (
        _trial(1, _PLAN, TrialState.LOST, RATIOS[PLAN], "trial 2 is better"),
        *(
            _trial(place, _POINTS[name], TrialState.WON, RATIOS[name])
            for place, name in enumerate(_POINTS, start=2)
        ),
        Trial(6, {"io_method": "io_uring"}, None, (), TrialState.FAILED, "it did not start"),
    )
    return Tuning(
        id=SEARCH,
        sampler="guided",
        seed=1,
        workloads=(WORKLOAD,),
        subject="embedded 18.6",
        space=Space(
            tuple(
                Dimension(key, Layer.APPLICATION, (value,), "", planned=value) for key, value in _PLAN.items()
            )
        ),
        trials=trials,
        experiment=of_a_plan().id,
        aims=AIMS,
        members=tuple(
            FrontMember(name, place, point) for place, (name, point) in enumerate(_POINTS.items(), start=2)
        ),
    )


def _trial(
    number: int, point: Point, state: TrialState, ratios: tuple[float, float], reason: str = ""
) -> Trial:
    logs = dict(zip(AIMS, map(math.log, ratios), strict=True))
    one = TrialRound(0.0, logs[Aim.THROUGHPUT], 0.0, by_aim=logs)
    return Trial(number, point, None, (one, one), state, reason)
