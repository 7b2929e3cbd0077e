"""Sentences on a fleet: its head, its answer and its remarks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.golden.synthetic_fleet import fleet, given, on_machine
from tests.unit.results.fleets.test_fleet_text import NBSP

from pgdyno.model.experiments.fleet import Fleet, MachineSpread
from pgdyno.results.fleets.fleet import combine
from pgdyno.results.fleets.fleet_sentences import TWO_MACHINES, answer, headline, remarks
from pgdyno.results.fleets.fleet_text import fleet_text


@pytest.fixture(scope="module")
def five() -> Fleet:
    return combine(given(fleet()))


def test_the_head_counts_machines_and_experiments(five: Fleet) -> None:
    assert headline(five) == "5 machines, 5 experiments"
    first = on_machine(1, 1.19, 1.0)
    assert headline(combine(given([first, on_machine(2, 1.19, 1.0, host=first.host)]))) == (
        "1 machine, 2 experiments"
    )


def test_the_answer_names_winners_and_what_is_open(five: Fleet) -> None:
    assert answer(five) == (
        "Across machines, better: plan on sysbench-read-only; not decided: plan on sysbench-read-write."
    )


def test_where_nothing_is_decided_the_answer_says_why_once() -> None:
    two = combine(given(fleet(2)))
    assert answer(two) == (
        "Across machines, nothing is decided: withheld: 2 machines are too few to rule out that they agree "
        "by chance, at least 5 are needed."
    )
    assert fleet_text(two).count("too few") == 1
    assert TWO_MACHINES.split(":", maxsplit=1)[0] in fleet_text(two)


def test_reasons_that_differ_stand_with_their_comparisons(five: Fleet) -> None:
    reading, writing = (one for one in five.comparisons if one.metric == "throughput_tps")
    assert [remark.partition(" ")[0] for remark in remarks(reading, five)] == ["Standard", "Individually:"]
    assert [remark.partition(":")[0] for remark in remarks(writing, five)] == [
        *("Standard deviation between machines", "? Cannot tell", "Individually")
    ]
    *_, own = remarks(writing, five)
    assert own == "Individually: better on 4, worse on 1 of 5 machines."


def test_a_deviation_of_nothing_and_a_boundless_one_have_words(five: Fleet) -> None:
    open_ended = replace(five.comparisons[0], between=MachineSpread(0.0, 0.02, 1000.0, 0.95))
    said = next(remarks(open_ended, five)).replace(NBSP, " ")
    assert said == "Standard deviation between machines: 2.0 % (95 % interval 0 % … ×4.9e+08)."


def test_a_spread_below_the_noise_is_no_certainty(five: Fleet) -> None:
    closer = replace(five.comparisons[0], between=MachineSpread(0.0, 0.0, 0.0, 0.95))
    assert next(remarks(closer, five)) == (
        "Machines differ less than the noise explains: no interval of their standard deviation."
    )
