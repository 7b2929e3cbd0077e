"""A plan whose layers lead on from each other, and a machine that measures them at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pgdyno.model.experiment import ArmBlock, Block, Experiment
from pgdyno.model.study import Study
from pgdyno.model.variant import Variant
from pgdyno.studies._contract import PGTUNE, PLAN

SWAPPINESS = "/proc/sys/vm/swappiness"
WORKLOAD = "sysbench-read-only"
PATH = ("default", "application", "application+system", PLAN)
STUDY = Study(
    "accelerate",
    "Is PostgreSQL faster?",
    (
        Variant("default"),
        Variant("application", {"work_mem": "8MB"}),
        Variant("application+system", {"work_mem": "8MB", SWAPPINESS: "1"}),
        Variant(PLAN, {"work_mem": "8MB", SWAPPINESS: "1"}, server="built"),
        Variant(PGTUNE, {"work_mem": "4MB"}),
    ),
    (WORKLOAD,),
    notes=("pgtune's io_method is left out",),
)
TPS = {"default": 100.0, "application": 110.0, "application+system": 110.0, PLAN: 143.0, PGTUNE: 90.0}


@dataclass
class Machine:
    """Measures at once, in a time that its clock shows; an error that ``fails`` returns is raised instead.

    ``tps`` are its throughputs by variant.
    """

    now_s: float = 0.0
    takes_s: float = 100.0
    fails: Callable[[Study], Exception | None] = lambda _: None
    tps: Mapping[str, float] = field(default_factory=lambda: TPS)
    asked: list[tuple[Study, float | None]] = field(default_factory=list)

    def clock(self) -> float:
        return self.now_s

    def measure(self, study: Study, budget_s: float | None) -> Experiment:
        self.asked.append((study, budget_s))
        if (error := self.fails(study)) is not None:
            raise error
        self.now_s += self.takes_s
        return Experiment(
            id=f"of-{study.name}",
            name=study.name,
            question=study.question,
            created="",
            pgdyno_version="",
            design=replace(study.design, rounds=6),
            variants=study.variants,
            baseline=study.baseline,
            workloads=study.workloads,
            reset_policies={},
            blocks=blocks(study, self.tps),
            notes=(*study.notes, "write workloads: checkpoints are charged", *own_notes(study)),
            is_complete=True,
        )


def own_notes(study: Study) -> tuple[str, ...]:
    return ("alternating trials instead of a duet",) if study.name.endswith("-2") else ()


def blocks(study: Study, tps: Mapping[str, float]) -> tuple[Block, ...]:
    """Return 6 rounds of one block; the baseline's throughput moves a little."""
    moves = (0.99, 1.01, 1.0, 1.02, 0.98, 1.0)
    return tuple(
        Block(
            WORKLOAD, place, 0, 0,
            tuple(
                ArmBlock(v.name, 1, 1.0, {"throughput_tps": tps[v.name] * (move if at == 0 else 1.0)})
                for at, v in enumerate(study.variants)
            ),
        )
        for place, move in enumerate(moves)
    )  # fmt: skip
