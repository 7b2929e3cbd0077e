"""Figures of a round in every aim, from blocks that are known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import pytest
from tests.unit.app.tuning.test_proof import Unasked

from pgdyno.app.arenas.scratch_arena import ScratchArena
from pgdyno.app.tuning.trial_rounds import TrialRounds
from pgdyno.cli.output import Lines
from pgdyno.model.errors import MeasurementError
from pgdyno.model.experiments.experiment import ArmBlock, Block, Design
from pgdyno.model.experiments.metric import TAIL_MEAN, THROUGHPUT, WAL_BYTES
from pgdyno.model.tuning.aims import Aim
from pgdyno.model.tuning.space import Point, Space
from pgdyno.model.variants.variant import Variant

CANDIDATE: Point = {"wal_compression": "lz4"}
BLOCKS = {  # throughput, WAL and tail of the default, then of the candidate
    "pgbench-tpcb": [
        ((1000.0, 900.0, 4.0), (1100.0, 450.0, 4.0)),
        ((1000.0, 900.0, 4.0), (1100.0, 450.0, 5.0)),
    ],
    "sysbench-read-write": [((500.0, 8000.0, 10.0), (500.0, 6000.0, 10.0))],
}


def worst_case(point: Point) -> int:
    return 3_000 if point else 2_000


@dataclass
class Known(TrialRounds):
    """Rounds whose blocks are known."""

    def _beside(self, others: Mapping[str, Variant], candidate: Point) -> Mapping[str, Sequence[Block]]:
        assert list(others) == ["default"]
        assert candidate == CANDIDATE
        return {
            workload: [
                Block(workload, 0, place, 0, (_arm("default", old), _arm("candidate", new)))
                for place, (old, new) in enumerate(blocks)
            ]
            for workload, blocks in BLOCKS.items()
        }


def _arm(name: str, figures: tuple[float, float, float]) -> ArmBlock:
    values = dict(zip((THROUGHPUT, WAL_BYTES, TAIL_MEAN), figures, strict=True))
    return ArmBlock(name, 1000, 1.0, {key: value for key, value in values.items() if value})


def rounds(*aims: Aim) -> TrialRounds:
    arena = cast("ScratchArena", Unasked())
    return Known(arena, Variant("default"), Space(()), {}, Design(), Lines(), aims, worst_case)


def test_each_aim_is_a_mean_over_workloads_of_logarithms_of_ratios() -> None:
    found = rounds(*Aim).trial({}, CANDIDATE)
    assert found.by_aim[Aim.THROUGHPUT] == pytest.approx(math.log(1.1) / 2)
    assert found.by_aim[Aim.WAL] == pytest.approx((math.log(0.5) + math.log(0.75)) / 2)
    assert found.by_aim[Aim.TAIL] == pytest.approx(
        math.log(1.25) / 2 / 2
    )  # in one of two blocks of one of two
    assert found.by_aim[Aim.MEMORY] == pytest.approx(math.log(1.5))
    assert found.to_default == pytest.approx(math.log(1.1) / 2)


def test_a_search_with_one_aim_has_none_of_it() -> None:
    assert rounds().trial({}, CANDIDATE).by_aim == {}


def test_a_workload_without_a_figure_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BLOCKS, "pgbench-tpcb", [((1000.0, 0.0, 4.0), (1100.0, 450.0, 4.0))])
    with pytest.raises(MeasurementError) as caught:
        rounds(Aim.WAL).trial({}, CANDIDATE)
    assert caught.value.message == "pgbench-tpcb gave no figure of WAL per transaction"
    assert caught.value.hint == "leave out --aim wal"
