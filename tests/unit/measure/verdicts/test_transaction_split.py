"""The split of a transaction's time, on loads whose parts are known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.golden.synthetic_clients import CLIENTS, LOAD
from tests.golden.synthetic_clients import experiment as experiment_of_sharing_cost
from tests.golden.synthetic_loop import CELLS, experiment

from pgdyno.measure.verdicts.transaction_split import (
    TransactionSplit,
    sharing_costs,
    shown_by_splits,
    transaction_splits,
)
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.workload import Cell

# By hand, of 40: 40 − 28, 28 − (6.02 − 0.02), 6.02 − 0.02 − 5, 5; beside it 7.52 − (6.02 − 0.02).
PARTS = {
    "network + client": 12.0,
    "protocol + transaction": 22.0,
    "executor start and end": 1.0,
    "the query itself": 5.0,
}
SLOWED = 1.15  # on average, see the fixture


def split_of(of: Experiment) -> TransactionSplit:
    (found,) = transaction_splits(of)
    return found


def test_every_part_is_what_one_load_has_and_the_next_has_not() -> None:
    found = split_of(experiment(rounds=40))
    assert {part.name: part.time_us.mean for part in found.parts} == pytest.approx(
        {name: time * SLOWED for name, time in PARTS.items()}, rel=0.05
    )
    assert found.plpgsql.time_us.mean == pytest.approx(1.52 * SLOWED, rel=0.1)
    assert found.loop_ns.mean == pytest.approx(20 * SLOWED, rel=0.05)
    assert found.per_cpu_s["C loop"].mean == pytest.approx(1e6 / 6.02 / SLOWED, rel=0.05)


def test_parts_add_up_to_the_transaction_and_have_shares_of_it() -> None:
    found = split_of(experiment())
    assert sum(part.time_us.mean for part in found.parts) == pytest.approx(found.whole_us.mean)
    assert sum(part.share for part in found.parts) == pytest.approx(1.0)
    assert found.parts[0].share == pytest.approx(12 / 40, abs=0.01)


def test_what_the_noise_hides_is_not_distinguishable() -> None:
    quiet, noisy = (split_of(experiment(noise=noise)).parts for noise in (0.01, 0.6))
    assert all(part.is_distinguishable for part in quiet)
    (executor,) = [part for part in noisy if part.name == "executor start and end"]
    assert executor.time_us.low < 0 < executor.time_us.high
    assert not executor.is_distinguishable


def test_rounds_count_in_which_all_loads_do() -> None:
    of = experiment()
    void = tuple(
        replace(block, void="stolen") if block.round < 2 and block.workload == "one query-1" else block
        for block in of.blocks
    )
    assert split_of(replace(of, blocks=void)).rounds == 6
    unmetered = tuple(
        replace(block, arms=(replace(block.arms[0], values={"throughput_tps": 1.0}),))
        if block.round < 4
        else block
        for block in of.blocks
    )
    assert transaction_splits(replace(of, blocks=unmetered)) == ()  # four rounds are left
    assert shown_by_splits(replace(of, blocks=unmetered)) == frozenset()


def test_each_statement_and_kind_of_tables_has_a_split_of_its_own() -> None:
    of = experiment()
    own = {f"{name}, own": replace(cell, load=f"{cell.load}, 4 own tables") for name, cell in CELLS.items()}
    blocks = tuple(replace(block, workload=f"{block.workload}, own") for block in of.blocks)
    both = replace(of, cells={**CELLS, **own}, workloads=(*CELLS, *own), blocks=(*of.blocks, *blocks))
    splits = transaction_splits(both)
    assert [one.words for one in splits] == ["", "4 own tables"]
    assert splits[0].parts == splits[1].parts == split_of(of).parts
    assert shown_by_splits(both) == {
        f"{name}{own}" for name in ("empty loop-1", "one query-1") for own in ("", ", own")
    }


def test_without_its_loads_there_is_none() -> None:
    of = experiment()
    cells = {name: cell for name, cell in CELLS.items() if cell.load != "empty loop"}
    assert transaction_splits(replace(of, cells=cells)) == ()
    assert shown_by_splits(of) == {"empty loop-1", "one query-1"}


KEPT = {2: 0.9, 3: 0.8, 4: 0.75, 6: 0.6, 8: 0.5}  # of what own tables scale
OWN_AT_ONE = 1.3  # few clients are faster on few rows


def on_both(rounds: int = 8) -> Experiment:
    """Return the curve on shared tables, and one on own tables of which it keeps known shares."""
    of = experiment_of_sharing_cost(rounds)
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
    assert sharing_costs(experiment_of_sharing_cost()) == ()
    assert sharing_costs(on_both(rounds=4)) == ()
