"""The decision on the report's page: a state, a sentence, and the limits it was decided by."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.golden.synthetic import experiment

from pgdyno.accelerate.view import decision_box, more_sentence
from pgdyno.base.numbers import SPACE
from pgdyno.measure.decisions.plan_decision import PlanDecision, PlanState
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.plans.plan import Terms
from pgdyno.results.bundle import portable_experiment
from pgdyno.results.page import render_page
from pgdyno.store.documents import dump_experiment, load_experiment

# The made-up plan gains 20 % where it reads; where it reads and writes its p99 is 7 to 12 % longer.
TERMS = Terms(0.02, 0.05, 0.10)


def judged(terms: Terms = TERMS) -> Experiment:
    return replace(experiment(), terms=terms)


def test_the_page_begins_with_the_state_the_sentence_and_the_limits() -> None:
    page = render_page(judged())
    begin = page[page.index("<h1>") : page.index('<div class="cards">')]
    assert "✗ Faster, tail worse" in begin
    assert "The plan is faster, but its slowest transactions take longer: throughput +20" in begin
    assert f"more than 2{SPACE}%, on at least one workload" in begin
    assert f"at most 5{SPACE}%, on every workload" in begin
    assert f"at most 10{SPACE}% longer, on every workload" in begin


def test_the_state_follows_the_limits_that_are_stored() -> None:
    box = decision_box(judged(Terms(0.0, 0.05, 0.30)))
    assert box is not None
    assert (box.state, box.style, box.terms[0][1]) == ("pays", "better", "any gain, on at least one workload")


def test_what_is_open_says_which_budget_would_tell() -> None:
    box = decision_box(judged(Terms(0.19, 0.05, 0.30)))
    assert box is not None
    assert (box.state, box.symbol) == ("undecided", "?")
    assert " more minutes would decide: --budget " in box.more


@pytest.mark.parametrize(
    ("rounds", "said"), [(1, "Less than a minute more would decide: "), (60, " more minutes would decide: ")]
)
def test_nobody_is_told_to_wait_for_no_time(rounds: int, said: str) -> None:
    # The rounds of the made-up experiment are 32 s apart, as its blocks' own clock says.
    decision = PlanDecision(PlanState.UNDECIDED, "", (), rounds_to_decide=rounds)
    assert said in more_sentence(experiment(), decision)


def test_a_bundle_carries_the_limits() -> None:
    document = json.loads(json.dumps(dump_experiment(portable_experiment(judged()))))
    assert decision_box(load_experiment(document)) == decision_box(judged())


def test_nothing_is_decided_without_limits_or_before_the_end() -> None:
    assert decision_box(experiment()) is None
    assert decision_box(replace(judged(), is_complete=False)) is None
    assert 'class="decision' not in render_page(experiment())
