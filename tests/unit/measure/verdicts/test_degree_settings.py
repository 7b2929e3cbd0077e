"""Which number of workers is recommended for a query, and what it leaves to several clients."""

from __future__ import annotations

import pytest
from tests.golden.synthetic_clients import experiment as by_clients
from tests.golden.synthetic_workers import experiment

from pgdyno.measure.verdicts.degree_settings import degree_settings


def test_the_smallest_number_that_is_good_enough_is_set_with_what_it_costs_others() -> None:
    """By hand: 10.5 of 10.7 are 98.1 %, 7 are 65 %; 11 of the 15 that two clients make without are 73.3 %."""
    (found,) = degree_settings(experiment())
    assert (found.load, found.setting) == ("count", "max_parallel_workers_per_gather")
    assert (found.workers, found.is_confirmed) == (1, True)
    (others,) = found.at_once
    assert (others.load, others.best) == ("count, 2 clients at once", 0)
    assert others.ratio is not None
    assert others.ratio.point == pytest.approx(11 / 15, rel=0.01)
    assert others.ratio.low < 11 / 15 < others.ratio.high


def test_a_number_that_is_best_for_others_too_costs_them_nothing() -> None:
    (found,) = degree_settings(experiment(at_once={0: 8.0, 1: 11.0, 2: 9.0}))
    assert [(one.best, one.ratio, one.is_measured) for one in found.at_once] == [(1, None, True)]


def test_a_number_that_others_were_not_measured_with_is_said_to_be_so() -> None:
    (found,) = degree_settings(experiment(at_once={0: 15.0, 2: 11.0, 4: 10.5}))
    assert [(one.best, one.ratio, one.is_measured) for one in found.at_once] == [(0, None, False)]


def test_several_clients_are_no_query_by_itself() -> None:
    assert degree_settings(experiment(alone={0: 7.0, 1: 10.5})) == ()


def test_nothing_is_set_while_it_is_not_certain() -> None:
    (found,) = degree_settings(experiment(alone={0: 10.0, 1: 10.2, 2: 10.4}, noise=0.2))
    assert found.workers is None
    assert found.knee.high is None
    assert found.at_once == ()


def test_the_building_of_an_index_has_a_setting_of_its_own() -> None:
    (found,) = degree_settings(experiment("create-index"))
    assert (found.setting, found.also) == ("max_parallel_maintenance_workers", ())
    (found,) = degree_settings(experiment("partition-wise"))
    assert found.also == ("enable_partitionwise_join", "enable_partitionwise_aggregate")


def test_clients_are_not_set() -> None:
    assert degree_settings(by_clients()) == ()
