"""Figures of a round, from blocks that are known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import pytest
from tests.unit.tune.test_tune import Unasked

from pgdyno.cli.output import Lines
from pgdyno.measure.arenas.scratch_arena import ScratchArena
from pgdyno.model.experiments.experiment import ArmBlock, Block, Design
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.tuning.tuning import Point, Space
from pgdyno.model.variants.variant import Variant
from pgdyno.tune.trial_rounds import TrialRounds

CANDIDATE: Point = {"wal_compression": "lz4"}
BLOCKS = {  # throughput of the default, then of the candidate
    "pgbench-tpcb": [(1000.0, 1100.0), (1000.0, 1100.0)],
    "sysbench-read-write": [(500.0, 500.0)],
}


@dataclass
class Known(TrialRounds):
    """Rounds whose blocks are known."""

    def _compared(self, others: Mapping[str, Variant], candidate: Point) -> Mapping[str, Sequence[Block]]:
        assert list(others) == ["default"]
        assert candidate == CANDIDATE
        return {
            workload: [
                Block(workload, 0, place, 0, (_arm("default", old), _arm("candidate", new)))
                for place, (old, new) in enumerate(blocks)
            ]
            for workload, blocks in BLOCKS.items()
        }


def _arm(name: str, throughput: float) -> ArmBlock:
    return ArmBlock(name, 1000, 1.0, {THROUGHPUT: throughput})


def test_a_figure_is_a_mean_over_workloads_of_logarithms_of_ratios() -> None:
    arena = cast("ScratchArena", Unasked())
    rounds = Known(arena, Variant("default"), Space(()), {}, Design(), Lines())
    found = rounds.trial({}, CANDIDATE)
    assert found.to_default == pytest.approx(math.log(1.1) / 2)
    assert found.by_workload["sysbench-read-write"].to_default == 0.0
