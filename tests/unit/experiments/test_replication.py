"""How a trial's variance decides where the next experiment's time goes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.golden.synthetic import experiment

from pgdyno.experiments.replication import blocks_per_round, expectations, replication_cost
from pgdyno.model.experiment import ArmBlock, Block, Experiment
from pgdyno.model.verdict import VarianceComponents


def trial(between: float, within: float, blocks: int = 2) -> Experiment:
    """Return four rounds of one workload, 20 s from round to round, blocks of 6 s."""
    base = experiment()
    arms = (ArmBlock("default", 1, 1.0, {}), ArmBlock("plan", 1, 1.0, {}))
    verdict = replace(
        base.verdicts[0],
        metric="throughput_tps",
        variant="plan",
        components=VarianceComponents(between_rounds=between, within_rounds=within),
    )
    return replace(
        base,
        workloads=("w",),
        verdicts=(verdict,),
        design=replace(base.design, blocks_per_round=blocks, block_s=6.0, warmup_s=1.0),
        blocks=tuple(
            Block("w", r, b, int((20 * r + 7 * b) * 1e9), arms) for r in range(4) for b in range(blocks)
        ),
    )


def test_a_rounds_cost_is_the_time_between_rounds_without_the_blocks() -> None:
    cost = replication_cost(trial(0.01, 0.01))
    assert cost.round_s == pytest.approx(8.0)  # 20 s less two blocks of 6 s
    assert cost.block_s == 6.0


def test_noise_within_rounds_is_met_with_more_blocks() -> None:
    # Kalibera and Jones: n = sqrt(8/6) * 0.03/0.01 = 3.46, so 4.
    assert blocks_per_round(trial(0.01, 0.03), "plan", 600.0) == 4


def test_differences_between_started_servers_are_met_with_more_rounds() -> None:
    assert blocks_per_round(trial(0.03, 0.01), "plan", 600.0) == 1


def test_a_budget_too_small_for_five_such_rounds_gets_fewer_blocks() -> None:
    # Five rounds of 8 s and 4 blocks take 160 s; with 2 blocks 100 s.
    assert blocks_per_round(trial(0.01, 0.03), "plan", 100.0) == 2


def test_one_block_per_round_cannot_tell_the_two_apart_and_is_kept() -> None:
    assert blocks_per_round(trial(0.01, 0.0, blocks=1), "plan", 600.0) == 1


def test_what_can_be_found_is_said_beforehand() -> None:
    # 3 rounds of 20 s in 60 s: s.e. = 0.01/sqrt(3) = 0.58 %, and t(2) is wide: far more than 2.8 s.e.
    (sentence,) = expectations(trial(0.01, 0.0), "plan", 2, 60.0)
    assert sentence.startswith("expected beforehand, from 2026-11-21-0930-duet-7f3a: on sysbench-read-only")
    (longer,) = expectations(trial(0.01, 0.0), "plan", 2, 6000.0)
    assert percent(longer) < percent(sentence) / 5


def percent(sentence: str) -> float:
    return float(sentence.split("throughput of ")[1].split("%", maxsplit=1)[0])
