"""Several machines with known true effects, combined."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tests.golden.synthetic import READ_ONLY
from tests.golden.synthetic_fleet import ON_READ_ONLY, fleet, given, on_machine

from pgdyno.model.experiments.experiment import Stopping
from pgdyno.model.experiments.fleet import Fleet, FleetComparison
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.verdict import Decision
from pgdyno.results.fleets.fleet import combine
from pgdyno.results.fleets.fleet_sentences import remarks

TPS = "throughput_tps"


def comparison(found: Fleet, workload: str = READ_ONLY, metric: str = THROUGHPUT) -> FleetComparison:
    (one,) = [one for one in found.comparisons if (one.workload, one.metric) == (workload, metric)]
    return one


def test_a_variant_that_is_better_on_all_machines_wins() -> None:
    one = comparison(combine(given(fleet())))
    assert one.verdict.decision is Decision.BETTER
    assert [effect.verdict.decision for effect in one.machines] == [Decision.BETTER] * 5
    mean = math.exp(math.fsum(map(math.log, ON_READ_ONLY)) / 5)
    assert one.verdict.effect == pytest.approx(mean, rel=0.01)
    assert one.verdict.interval is not None
    assert one.verdict.interval.low < mean < one.verdict.interval.high
    assert (one.verdict.rounds, one.verdict.blocks, one.verdict.void_blocks) == (5, 55, 5)


def test_experiments_of_one_machine_are_its_occasions_and_no_fleet() -> None:
    morning = on_machine(1, 1.19, 1.0)
    evening = on_machine(2, 1.21, 1.0, host=morning.host)
    found = combine(given([morning, evening]))
    assert [one.name for one in found.machines] == ["A"]
    one = comparison(found)
    assert [occasion.experiment for occasion in one.machines[0].occasions] == ["on-1", "on-2"]
    assert one.machines[0].verdict.decision is Decision.BETTER
    assert one.machines[0].verdict.effect == pytest.approx(math.sqrt(1.19 * 1.21), rel=0.01)
    assert (one.between, one.prediction, one.verdict.interval, one.verdict.p_value) == (None,) * 4
    assert one.verdict.reason == "withheld: only one machine was measured, which does not represent others"


def test_experiments_that_ended_by_their_results_have_no_common_interval() -> None:
    first, *others = fleet()
    looking = replace(first.design, stopping=Stopping.DECIDED)
    morning = replace(first, design=looking)
    evening = replace(on_machine(9, 1.19, 1.0, host=first.host), design=looking)
    found = combine(given([morning, evening, *others]))
    one = comparison(found)
    own = one.machines[0].verdict
    assert (own.decision, own.interval, own.is_withheld) == (Decision.INCONCLUSIVE, None, True)
    assert own.effect == pytest.approx(1.19, rel=0.01)
    reason = (
        "withheld: the length of its experiments depended on their data, and no valid interval is known for "
        "the mean of such experiments"
    )
    assert own.reason == reason
    assert len(one.machines[0].occasions) == 2
    assert f"A: {reason}." in remarks(one, found)
    assert one.verdict.decision is Decision.BETTER


def test_a_machine_of_several_experiments_counts_once() -> None:
    first, *others = fleet()
    again = on_machine(9, 1.0, 1.0, host=first.host)
    one = comparison(combine(given([first, again, *others])))
    assert [effect.machine for effect in one.machines] == ["A", "B", "C", "D", "E"]
    assert one.machines[0].verdict.effect == pytest.approx(math.sqrt(1.19), rel=0.01)
    assert one.verdict.rounds == 5


def test_an_experiment_without_a_verdict_of_its_own_is_left_out_with_the_reason() -> None:
    short = fleet()[-1]
    short = replace(short, blocks=tuple(block for block in short.blocks if block.round < 4))
    found = combine(given([*fleet()[:4], short]))
    assert len(comparison(found).machines) == 4
    assert (
        "E (on-5.zip), plan against default on sysbench-read-only, sysbench-read-write: throughput "
        "(withheld: 4 rounds of started servers are too few to rule out chance, at least 5 are needed)"
    ) in found.left_out


def test_comparisons_of_one_experiment_alone_are_named() -> None:
    first, second = fleet(2)
    only_reading = replace(
        second, workloads=(READ_ONLY,), verdicts=tuple(v for v in second.verdicts if v.workload == READ_ONLY)
    )
    found = combine(given([first, only_reading]))
    assert {one.workload for one in found.comparisons} == {READ_ONLY}
    assert found.left_out == ("only A (on-1.zip) has plan against default on sysbench-read-write",)


def test_what_was_interrupted_simulated_or_not_durable_is_told_first() -> None:
    first, second = fleet(2)
    odd = replace(
        second,
        is_complete=False,
        notes=("SIMULATED: made up",),
        variants=(second.variants[0], replace(second.variants[1], settings={"fsync": "off"})),
    )
    both = replace(first, variants=odd.variants)
    assert combine(given([both, odd])).warnings == (
        "NOT DURABLE: plan on A (on-1.zip): fsync=off",
        "B (on-2.zip) is SIMULATED: made up",
        "NOT DURABLE: plan on B (on-2.zip): fsync=off",
        "B (on-2.zip) was interrupted: it did not run to its planned end",
    )


def test_machines_of_one_type_are_told_in_one_sentence() -> None:
    first = on_machine(1, 1.19, 1.0)
    alike = [first, *(on_machine(100 + n, 1.19, 1.0, id=str(n), host=first.host) for n in range(6))]
    warnings = combine(given(alike, [f"m{n}" for n in range(7)])).warnings
    (note,) = warnings
    assert note == (
        "m0, m1, m2, m3, m4 and 2 more have matching processors, caches and memory: they count as 7 machines "
        "because of their names"
    )
