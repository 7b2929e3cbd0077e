"""The cost of shared tables, on curves whose laws are known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.golden.synthetic_clients import CLIENTS, LOAD, experiment

from pgdyno.measure.verdicts.sharing_cost import sharing_costs
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.workload import Cell

KEPT = {2: 0.9, 3: 0.8, 4: 0.75, 6: 0.6, 8: 0.5}  # of what own tables scale
OWN_AT_ONE = 1.3  # few clients are faster on few rows


def on_both(rounds: int = 8) -> Experiment:
    """Return the curve on shared tables, and one on own tables of which it keeps known shares."""
    of = experiment(rounds)
    cells = {f"{LOAD}-own-{n}": Cell(f"{LOAD}, 8 own tables", 620_000_000, n) for n in CLIENTS}
    own = []
    for block in of.blocks:
        clients = of.cells[block.workload].clients
        (arm,) = block.arms
        values = {
            **arm.values,
            "throughput_tps": arm.values["throughput_tps"] * OWN_AT_ONE / KEPT.get(clients, 1.0),
        }
        arms = (replace(arm, values=values),)
        own.append(replace(block, workload=f"{LOAD}-own-{clients}", arms=arms))
    return replace(
        of, cells={**of.cells, **cells}, workloads=(*of.workloads, *cells), blocks=(*of.blocks, *own)
    )


def test_what_shared_tables_keep_is_told_at_every_number_of_clients_but_one() -> None:
    (cost,) = sharing_costs(on_both())
    assert cost.load == LOAD
    assert {one.level: one.ratio.point for one in cost.levels} == pytest.approx(KEPT)
    assert {one.rounds for one in cost.levels} == {8}
    assert all(one.ratio.level == 0.95 for one in cost.levels)


def test_rounds_count_that_have_all_four_rates() -> None:
    of = on_both()
    lost = {(f"{LOAD}-own-4", 0), (f"{LOAD}-own-4", 1), (f"{LOAD}-4", 2), (f"{LOAD}-1", 3)}
    void = tuple(
        replace(block, void="stolen") if (block.workload, block.round) in lost else block
        for block in of.blocks
    )
    (cost,) = sharing_costs(replace(of, blocks=void))
    assert {one.level: one.rounds for one in cost.levels} == {2: 7, 3: 7, 6: 7, 8: 7}  # four rounds left at 4


def test_without_own_tables_or_in_few_rounds_there_is_none() -> None:
    assert sharing_costs(experiment()) == ()
    assert sharing_costs(on_both(rounds=4)) == ()
