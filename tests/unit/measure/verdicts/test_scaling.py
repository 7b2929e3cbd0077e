"""What a grid with one variant says about clients, on a curve whose law is known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.golden.synthetic_clients import CLIENTS, CONTENTION, CROSSTALK, experiment, rate
from tests.golden.synthetic_clients import experiment as by_clients
from tests.golden.synthetic_workers import experiment as experiment_of_degree_settings

from pgdyno.measure.verdicts.scaling import CurveKnee, degree_settings, knees, scaling_curves
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.scaling import Knee
from pgdyno.model.variants.variant import Variant

TRUE_KNEE = next(n for n in CLIENTS if rate(n) >= 0.95 * max(map(rate, CLIENTS)))


def test_the_knee_and_the_law_are_those_of_the_curve() -> None:
    """By hand: 21,750 at 4, 22,500 at 6, 21,302 at 8 clients; 95 % of the highest is 21,375."""
    (curve,) = scaling_curves(experiment())
    assert TRUE_KNEE == 4
    assert curve.scaling.knee == Knee(4, 4, 0.05)
    assert curve.scaling.law == "USL"
    law = curve.scaling.laws[1]
    assert law.contention.low <= CONTENTION <= law.contention.high
    assert law.crosstalk is not None
    assert law.crosstalk.low <= CROSSTALK <= law.crosstalk.high
    assert [one.level for one in curve.scaling.levels] == list(CLIENTS)
    assert all(one.blocks == 8 for one in curve.scaling.levels)


def test_the_clients_share_is_that_of_both_their_cpu_time() -> None:
    (curve,) = scaling_curves(experiment())
    assert curve.client_shares == pytest.approx(dict.fromkeys(CLIENTS, 0.25))


def test_knees_are_named_by_load_and_size() -> None:
    assert knees(experiment()) == (CurveKnee("pgbench-select, 591\xa0MB", "clients", Knee(4, 4, 0.05)),)


def test_blocks_that_are_void_do_not_count() -> None:
    of = experiment()
    void = tuple(
        replace(block, void="stolen") if block.workload.endswith("-8") and block.round < 3 else block
        for block in of.blocks
    )
    (curve,) = scaling_curves(replace(of, blocks=void))
    assert [one.blocks for one in curve.scaling.levels] == [8, 8, 8, 8, 8, 5]


def _two_variants(of: Experiment) -> Experiment:
    return replace(of, variants=(*of.variants, Variant("other")))


def _two_levels(of: Experiment) -> Experiment:
    return replace(of, blocks=tuple(b for b in of.blocks if b.workload[-1] in "12"))


def test_with_several_variants_the_question_is_another() -> None:
    of = _two_variants(experiment())
    assert scaling_curves(of) == ()
    assert knees(of) == ()


@pytest.mark.parametrize(
    "of", [_two_levels(experiment()), experiment(rounds=4)], ids=["two levels", "four rounds"]
)
def test_a_curve_of_which_too_little_counts_is_named_without_a_knee(of: Experiment) -> None:
    assert scaling_curves(of) == ()
    assert knees(of) == (CurveKnee("pgbench-select, 591\xa0MB", "clients", None),)


def test_the_smallest_number_that_is_good_enough_is_set_with_what_it_costs_others() -> None:
    """By hand: 10.5 of 10.7 are 98.1 %, 7 are 65 %; 11 of the 15 that two clients make without are 73.3 %."""
    (found,) = degree_settings(experiment_of_degree_settings())
    assert (found.load, found.setting) == ("count", "max_parallel_workers_per_gather")
    assert (found.workers, found.is_confirmed) == (1, True)
    (others,) = found.at_once
    assert (others.load, others.best) == ("count, 2 clients at once", 0)
    assert others.ratio is not None
    assert others.ratio.point == pytest.approx(11 / 15, rel=0.01)
    assert others.ratio.low < 11 / 15 < others.ratio.high


def test_a_number_that_is_best_for_others_too_costs_them_nothing() -> None:
    (found,) = degree_settings(experiment_of_degree_settings(at_once={0: 8.0, 1: 11.0, 2: 9.0}))
    assert [(one.best, one.ratio, one.is_measured) for one in found.at_once] == [(1, None, True)]


def test_a_number_that_others_were_not_measured_with_is_said_to_be_so() -> None:
    (found,) = degree_settings(experiment_of_degree_settings(at_once={0: 15.0, 2: 11.0, 4: 10.5}))
    assert [(one.best, one.ratio, one.is_measured) for one in found.at_once] == [(0, None, False)]


def test_several_clients_are_no_query_by_itself() -> None:
    assert degree_settings(experiment_of_degree_settings(alone={0: 7.0, 1: 10.5})) == ()


def test_nothing_is_set_while_it_is_not_certain() -> None:
    (found,) = degree_settings(experiment_of_degree_settings(alone={0: 10.0, 1: 10.2, 2: 10.4}, noise=0.2))
    assert found.workers is None
    assert found.knee.high is None
    assert found.at_once == ()


def test_the_building_of_an_index_has_a_setting_of_its_own() -> None:
    (found,) = degree_settings(experiment_of_degree_settings("create-index"))
    assert (found.setting, found.also) == ("max_parallel_maintenance_workers", ())
    (found,) = degree_settings(experiment_of_degree_settings("partition-wise"))
    assert found.also == ("enable_partitionwise_join", "enable_partitionwise_aggregate")


def test_clients_are_not_set() -> None:
    assert degree_settings(by_clients()) == ()
