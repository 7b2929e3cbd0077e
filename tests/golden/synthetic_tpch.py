"""A made-up run like TPC-H's: two variants, six rounds. Its figures come from nobody's machine.

Every execution of "default" takes 125 ms, and of "big" 62.5 ms in q1, 125 ms in all others, give or take
noise that adds up to nothing: the geometric means over the rounds are exactly these. Round 3 of q6 is void.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.golden.synthetic import DESIGN, HOST, SERVER

from pgdyno.measure.verdicts.analysis import analyse
from pgdyno.model.experiments.experiment import ArmBlock, Block, DesignKind, Experiment
from pgdyno.model.experiments.step_record import DISCLAIMER, TpchFacts
from pgdyno.model.experiments.workload import ResetPolicy
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.plan_document import PlanNode

ROUNDS = 6
NAMES = (*(f"q{number}" for number in range(1, 23)), "rf1", "rf2", "power", "throughput")
_RATES = {("default", "throughput"): 20.0, ("big", "q1"): 16.0, ("big", "throughput"): 30.0}
_NOISE = (1.02, 1 / 1.02, 1.01, 1 / 1.01, 1.005, 1 / 1.005)  # by round: their product is 1

SCAN = PlanNode("Seq Scan on lineitem", rows=6_000_000)
SERIAL = PlanNode("Aggregate", ("Sorted",), children=(PlanNode("Sort", children=(SCAN,)),))
PARALLEL = PlanNode(
    "Gather", workers=2, children=(PlanNode("Aggregate", ("Hashed",), children=(replace(SCAN),)),)
)


def experiment() -> Experiment:
    """Return a finished comparison of two settings."""
    settings = {"default": {"work_mem": "4MB"}, "big": {"work_mem": "64MB"}}
    rates = {
        (name, variant, round_): _rate(variant, name) * noise
        for name in NAMES
        for round_ in range(ROUNDS)
        for variant, noise in (("default", 1.0), ("big", _NOISE[round_]))
    }
    found = experiment_of(settings, rates)
    blocks = tuple(
        replace(block, void="a test says so") if (block.workload, block.round) == ("tpch-q6", 2) else block
        for block in found.blocks
    )
    plans = {"default": {"q1": SERIAL, "q6": SCAN}, "big": {"q1": PARALLEL, "q6": replace(SCAN)}}
    return replace(
        found,
        blocks=blocks,
        verdicts=analyse(
            blocks,
            workloads=found.workloads,
            variants=("default", "big"),
            baseline="default",
            design=found.design,
        ),
        tpch=TpchFacts(100, 2, plans),
        factors=("work_mem",),
    )


def experiment_of(
    settings: Mapping[str, Mapping[str, str]],
    rates: Mapping[tuple[str, str, int], float],
    others: Mapping[tuple[str, str], Mapping[str, float]] | None = None,
) -> Experiment:
    """Return a finished experiment without verdicts and plans.

    ``settings`` are by variant, ``rates`` by execution, variant and round; ``others`` are further metrics by
    execution and variant.
    """
    names = tuple(f"tpch-{name}" for name in NAMES)
    rounds = 1 + max(round_ for _, _, round_ in rates)
    design = replace(DESIGN, kind=DesignKind.ALTERNATING, rounds=rounds, blocks_per_round=1, clients=2)
    return Experiment(
        id="20261122-140312-tpch",
        name="tpch",
        question="How do the variants do on the 22 queries of a TPC-H-like workload at scale 0.1?",
        created="2026-11-22T14:03:12Z",
        pgdyno_version="0.1.0",
        design=replace(design, is_isolated=False),
        variants=tuple(Variant(name, own) for name, own in settings.items()),
        baseline=next(iter(settings)),
        workloads=names,
        reset_policies=dict.fromkeys(names, ResetPolicy.RESTORE),
        blocks=tuple(
            Block(
                workload=f"tpch-{name}",
                round=round_,
                index=0,
                started_ns=1_795_000_000_000_000_000 + round_ * 10**12,
                arms=tuple(
                    ArmBlock(
                        variant,
                        1,
                        0.125,
                        {
                            "throughput_tps": rates[name, variant, round_],
                            **(others or {}).get((name, variant), {}),
                        },
                    )
                    for variant in settings
                ),
            )
            for round_ in range(rounds)
            for name in NAMES
        ),
        host=HOST,
        server=SERVER,
        notes=(f"{DISCLAIMER}; scale 0.1, 2 streams in the throughput run",),
        is_complete=True,
        installation="embedded",
        scales=dict.fromkeys(names, 100),
        generators=dict.fromkeys(names, "driver"),
        operations=dict.fromkeys(names, "executions"),
        options={"scale": "0.1"},
        tpch=TpchFacts(100, 2),
    )


def _rate(variant: str, name: str) -> float:
    return _RATES.get((variant, name), 8.0)
