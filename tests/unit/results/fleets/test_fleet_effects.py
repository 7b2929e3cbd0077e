"""Effects over the machines of a fleet: interval, spread and decision."""

from __future__ import annotations

import math

import pytest
from tests.golden.synthetic import READ_WRITE
from tests.golden.synthetic_fleet import fleet, given, on_machine
from tests.unit.results.fleets.test_fleet import comparison

from pgdyno.model.experiments.metric import SERVER_CPU
from pgdyno.model.experiments.verdict import Decision
from pgdyno.results.fleets.fleet import combine


def test_the_spread_of_machines_is_told_without_the_noise_of_measuring() -> None:
    """The standard deviation of the logarithms of the five effects is 0.0255."""
    one = comparison(combine(given(fleet())))
    assert one.between is not None
    assert one.between.low < 0.0255 < one.between.high
    assert one.between.sd == pytest.approx(0.0255, abs=0.005)
    assert one.prediction is not None
    assert one.verdict.interval is not None
    assert one.prediction.low < one.verdict.interval.low
    assert one.prediction.high > one.verdict.interval.high
    # t(4) √(1 + 1/5) S against t(4) S/√5: √6 times as far.
    width = math.log(one.prediction.high / one.prediction.low)
    assert width == pytest.approx(
        math.sqrt(6) * math.log(one.verdict.interval.high / one.verdict.interval.low)
    )


def test_each_metric_is_combined_by_its_own_direction() -> None:
    one = comparison(combine(given(fleet())), metric=SERVER_CPU)
    assert one.verdict.decision is Decision.BETTER
    assert one.verdict.effect == pytest.approx(1 / 1.196, rel=0.01)


def test_machines_that_disagree_are_not_decided() -> None:
    one = comparison(combine(given(fleet())), READ_WRITE)
    assert one.verdict.decision is Decision.INCONCLUSIVE
    assert one.verdict.reason.startswith("cannot tell: the interval ")


def test_no_winner_where_one_machine_is_surely_worse() -> None:
    """Eleven machines gain about 10 %, one loses 3 %: the mean gains, and yet it does not win."""
    effects = [1.08, 1.09, 1.10, 1.11, 1.12, 1.10, 1.09, 1.11, 1.10, 1.10, 1.10, 0.97]
    machines = [
        on_machine(number, effect, 1.0, created="2026-11-21T09:30:12Z")
        for number, effect in enumerate(effects)
    ]
    verdict = comparison(combine(given(machines))).verdict
    assert verdict.p_value is not None
    assert verdict.p_value < 0.001
    assert verdict.decision is Decision.INCONCLUSIVE
    assert verdict.reason.startswith("not everywhere: on the mean of the machines it is 8.")
    assert verdict.reason.endswith("% on L")
    assert ", but certainly \N{MINUS SIGN}" in verdict.reason


def test_no_loser_where_one_machine_is_surely_better() -> None:
    """The mirror image: eleven machines lose about 10 %, one gains 3 %."""
    effects = [1.08, 1.09, 1.10, 1.11, 1.12, 1.10, 1.09, 1.11, 1.10, 1.10, 1.10, 0.97]
    machines = [
        on_machine(number, 1 / effect, 1.0, created="2026-11-21T09:30:12Z")
        for number, effect in enumerate(effects)
    ]
    verdict = comparison(combine(given(machines))).verdict
    assert verdict.p_value is not None
    assert verdict.p_value < 0.001
    assert verdict.decision is Decision.INCONCLUSIVE
    assert verdict.reason.startswith("not everywhere: on the mean of the machines it is 8.")
    assert ", but certainly +" in verdict.reason
    assert verdict.reason.endswith("% on L")


def test_no_equivalence_where_machines_surely_differ_in_both_directions() -> None:
    """Half of 40 machines gain 4 %, half lose as much: on the mean nothing changes, and it matters."""
    machines = [
        on_machine(number, 1.04 if number % 2 else 1 / 1.04, 1.0, created="2026-11-21T09:30:12Z")
        for number in range(40)
    ]
    verdict = comparison(combine(given(machines))).verdict
    assert verdict.equivalence is not None
    assert verdict.equivalence.p_value < 0.05
    assert verdict.decision is Decision.INCONCLUSIVE
    assert "within ±2\N{NO-BREAK SPACE}%" in verdict.reason


@pytest.mark.parametrize("machines", [2, 3, 4])
def test_few_machines_get_an_interval_and_no_verdict(machines: int) -> None:
    verdict = comparison(combine(given(fleet(machines)))).verdict
    assert verdict.interval is not None
    assert verdict.is_withheld
    assert verdict.decision is Decision.INCONCLUSIVE
    assert verdict.reason == (
        f"withheld: {machines} machines are too few to rule out that they agree by chance, at least 5 are "
        "needed"
    )
