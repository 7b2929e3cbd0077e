"""Which cells the next round measures, on curves whose knee is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.golden.synthetic_clients import experiment

from pgdyno.measure.experiment import next_cells
from pgdyno.measure.verdicts.scaling import knees, measured_curves
from pgdyno.model.experiments.experiment import ArmBlock, Block, Experiment
from pgdyno.model.experiments.workload import Cell
from pgdyno.model.variants.variant import Variant
from pgdyno.stats.curves.scaling_law import observe

SIZE = 1 << 30


def grid(most: int, rounds: Sequence[dict[str, float]] = ()) -> Experiment:
    """Return an experiment with a curve by workers, of which so many rounds were measured."""
    cells = {f"count-{workers}": Cell("count", SIZE, 1, workers) for workers in range(most + 1)}
    blocks = tuple(
        Block(name, round_, 0, 0, (ArmBlock("default", 1, 1.0, {"throughput_tps": rate}),))
        for round_, rates in enumerate(rounds)
        for name, rate in rates.items()
    )
    return replace(
        experiment(), variants=(Variant("default"),), workloads=tuple(cells), cells=cells, blocks=blocks
    )


def usl(workers: int) -> float:
    """N/(1 + N(N−1)/128) of N processes: highest at √128 = 11.3; 95 % of that from 9 on, or 8 workers."""
    n = workers + 1
    return 100 * n / (1 + n * (n - 1) / 128)


def test_few_levels_are_all_measured() -> None:
    assert next_cells(grid(4), 9) == ("count-0", "count-1", "count-2", "count-3", "count-4")


def test_of_many_the_first_rounds_take_those_that_double() -> None:
    first = ("count-0", "count-2", "count-4", "count-8", "count-16", "count-32")
    assert next_cells(grid(32), 9) == first
    assert next_cells(grid(32, [dict.fromkeys(first, 1.0)] * 4), 9) == first


def run(most: int, rate: Callable[[int], float], rounds: int) -> Experiment:
    """Measure what is asked for, round by round, with noise of 1 %."""
    random = np.random.default_rng(7)
    measured: list[dict[str, float]] = []
    for number in range(rounds):
        names = next_cells(grid(most, measured), rounds - number)
        slowed = random.uniform(0.8, 1.0)
        measured.append(
            {name: rate(int(name[6:])) * slowed * math.exp(random.normal(0, 0.01)) for name in names}
        )
    return grid(most, measured)


def test_the_knee_among_65_levels_is_found_with_a_tenth_of_the_trials() -> None:
    done = run(64, usl, 24)
    (found,) = knees(done)
    assert found.knee is not None
    assert found.knee.low <= 8
    assert found.knee.high is not None
    assert 8 <= found.knee.high <= 9
    assert len(done.blocks) < 24 * 65 / 10


@pytest.mark.parametrize("rounds", [5, 8, 12, 18, 24])
def test_whenever_the_time_is_over_every_level_has_the_rounds_of_a_verdict(rounds: int) -> None:
    done = run(64, usl, rounds)
    (curve,) = measured_curves(done)
    levels = observe(curve.rounds).levels
    assert min(one.blocks for one in levels) >= 5
    assert all(math.isfinite(one.ratio_to_best.high) for one in levels)


def test_the_knee_stays_known_while_further_levels_are_tried() -> None:
    """A curve that rises to the end, of which there is always a level that was not tried."""
    for rounds in (6, 11, 16, 21):
        (found,) = knees(run(64, lambda workers: 100 * (workers + 1) / (1 + 0.3 * workers), rounds))
        assert found.knee is not None
        assert found.knee.high is not None, rounds


def test_what_disturbed_rounds_have_spared_is_measured_again() -> None:
    """Of level 0 two rounds do not count; by rounds of one level alone nothing can be said."""
    rates = {f"count-{workers}": rate for workers, rate in enumerate((10.0, 50.0, 97.0, 99.0, 100.0))}
    rounds = [{name: rate * slowed for name, rate in rates.items()} for slowed in (1.0, 0.9, 0.8, 0.95, 1.1)]
    for one in rounds[:2]:
        del one["count-0"]
    assert next_cells(grid(4, rounds), 9) == ("count-0", "count-2", "count-3", "count-4")
    assert next_cells(grid(4, [{"count-1": 1.0}] * 5), 9) == tuple(rates)


def test_a_knee_that_is_known_is_measured_beside_the_best_and_its_neighbours() -> None:
    rates = {f"count-{workers}": rate for workers, rate in enumerate((10.0, 50.0, 97.0, 99.0, 100.0))}
    rounds = [{name: rate * slowed for name, rate in rates.items()} for slowed in (1.0, 0.9, 0.8, 0.95, 1.1)]
    assert next_cells(grid(4, rounds), 9) == ("count-1", "count-2", "count-3", "count-4")


def test_a_knee_at_the_lowest_level_has_something_to_be_compared_with() -> None:
    rates = {f"count-{workers}": rate for workers, rate in enumerate((100.0, 80.0, 70.0, 60.0, 50.0))}
    rounds = [{name: rate * slowed for name, rate in rates.items()} for slowed in (1.0, 0.9, 0.8, 0.95, 1.1)]
    assert next_cells(grid(4, rounds), 9) == ("count-0", "count-1")


@pytest.mark.parametrize("variants", [("a", "b")])
def test_where_variants_are_compared_nothing_is_chosen(variants: tuple[str, ...]) -> None:
    assert next_cells(replace(grid(4), variants=tuple(map(Variant, variants))), 9) == ()
